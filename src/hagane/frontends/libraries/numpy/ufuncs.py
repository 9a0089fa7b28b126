"""Universal functions: NumPy itself says which element types they take and return.

``numpy.ufunc.resolve_dtypes`` knows every loop and the weak numbers of Python (NEP 50).
"""

from __future__ import annotations

import math
import operator as python
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.libraries.computing import built, computed
from hagane.frontends.libraries.numpy import array_programs
from hagane.frontends.libraries.numpy.operands import (
    BOOL,
    DOUBLE,
    FLOATS,
    INT64,
    agreed,
    broadcast_shape,
    cast,
    content,
    dtype_of,
    fits,
    is_number,
    promoted,
    readings,
    shape_of,
    to_array,
    typed,
    weak,
)
from hagane.frontends.libraries.numpy.rules import Rule, rule_of
from hagane.frontends.libraries.numpy.table import NUMPY
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.interpret.own_programs import run_own
from hagane.frontends.python.report.findings import OPEN, CheckError
from hagane.frontends.python.values.values import (
    Tensor,
    Truth,
    Value,
    is_plain,
)
from hagane.ops.builder import op
from hagane.ops.functions.numbers import pairs, special
from hagane.symbolic import Expr

# Python's operations on known content, sizes among it.
_PYTHON = {
    "add": python.add, "subtract": python.sub, "multiply": python.mul, "power": python.pow,
    "floor_divide": python.floordiv, "remainder": python.mod, "negative": python.neg,
}  # fmt: skip
_BY_OPERATOR = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "pow": "power",
    "floordiv": "floor_divide", "mod": "remainder", "matmul": "matmul", "and": "bitwise_and",
    "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "left_shift", "rshift": "right_shift",
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater",
    "ge": "greater_equal",
}  # fmt: skip


def resolved(
    t: Core, name: str, values: Sequence[Value], wanted: ir.DataType | None = None,
    casting: str = "same_kind",
) -> list[ir.DataType]:  # fmt: skip
    """Return the element types that the loop of a ufunc takes and returns.

    Args:
        t: The interpreter.
        name: Of the ufunc.
        values: Its operands.
        wanted: The element type of its results, where the program chooses one.
        casting: By which rule the operands become those of the loop.
    """
    ufunc: np.ufunc = getattr(np, name)
    given: list[Any] = [v.dtype.numpy() if isinstance(v, Tensor) else type(weak(v)) for v in values]
    # bool is no weak type; a complex number is resolved by the kind it promotes to.
    given = [np.dtype(bool) if g is bool else g for g in given]
    outputs = [None] * ufunc.nout
    settings: dict[str, Any] = {"casting": casting}
    if wanted is not None:
        settings["signature"] = (*[None] * ufunc.nin, *[wanted.numpy()] * ufunc.nout)
    try:
        found = [
            ufunc.resolve_dtypes((*each, *outputs), **settings)
            for each in readings(t, values, given, int)
        ]
    except TypeError as error:
        tensors = [v for v in values if isinstance(v, Tensor)]
        t.fail("dtype-mismatch", f"{type(error).__name__}: {error}", *tensors)
    if name in _COMPARISONS and not any(_may_be_float(t, value) for value in values):
        # An integer compares alike in all types that hold it.
        chosen = max(found, key=lambda dtypes: sum(dtype.itemsize for dtype in dtypes))
        return [ir.DataType.from_numpy(dtype) for dtype in chosen]
    return [ir.DataType.from_numpy(dtype) for dtype in agreed(t, values, found)]


def _may_be_float(t: Core, value: Value) -> bool:
    """Whether a number may be a float of NumPy besides what it is."""
    kinds = t.emit.also(value)
    return any(isinstance(kind, ir.DataType) and not kind.is_integer() for kind in kinds)


_COMPARISONS = frozenset(
    ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
)  # fmt: skip
# Their names in errors of broadcasting.
_ARITHMETIC = {
    "add": "Add", "subtract": "Sub", "multiply": "Mul", "divide": "Div", "true_divide": "Div",
}  # fmt: skip


def elementwise(
    t: Core, name: str, *values: Value, wanted: ir.DataType | None = None,
    casting: str = "same_kind",
) -> Any:  # fmt: skip
    """Return the result of a ufunc, an array or a tuple of them: see :func:`resolved`."""
    values = tuple(v if is_number(v) else to_array(t, v) for v in values)
    if name in _COMPARISONS and (outside := _compared_outside(t, name, values)) is not None:
        return outside
    dtypes = resolved(t, name, values, wanted, casting)
    count = len(values)
    tensors = [
        cast(t, to_array(t, v, dtype), dtype)
        if isinstance(v, Tensor)
        else to_array(t, v, dtype)
        if not isinstance(v, Expr)
        else cast(t, to_array(t, v, INT64), dtype)
        for v, dtype in zip(values, dtypes, strict=False)
    ]
    known = _known(name, tensors, dtypes[count])
    if name == "ldexp":
        tensors[1] = cast(t, tensors[1], tensors[0].dtype)
    same = all(x.dtype == tensors[0].dtype for x in tensors)
    if name == "power" and dtypes[0].is_integer() and _is_below_zero(tensors[1]):
        t.fail("value", "ValueError: Integers to negative integer powers are not allowed: "
               f"{t.show(tensors[0])} ** {t.show(tensors[1])}", *tensors,
               remedy="convert one with .astype(float)")  # fmt: skip
    by_zero = dtypes[0].is_integer() and _may_be_zero(tensors[-1])
    rule = rule_of(name, tensors[0].dtype, by_zero=by_zero) if same else None
    shape = broadcast_shape(t, *tensors, name=_ARITHMETIC.get(name, "Sum"))
    found = [
        typed(t, name, tensors, dtype, shape, known, _part(rule, number, len(dtypes) - count))
        for number, dtype in enumerate(dtypes[count:])
    ]
    return found[0] if len(found) == 1 else tuple(found)


def _compared_outside(t: Core, name: str, values: Sequence[Value]) -> Tensor | None:
    """Return the comparison of an array with a whole number outside the range of its elements."""
    x = next((v for v in values if isinstance(v, Tensor)), None)
    if x is None or all(fits(v, x.dtype) for v in values):
        return None
    shape = shape_of(t, x)
    truth = np.array(getattr(np, name)(*(0 if v is x else v for v in values)), dtype=bool)
    return built(t, (BOOL, shape), lambda _: op("Expand", truth, list(shape)), x)


def _is_below_zero(x: Tensor) -> bool:
    """Whether a known number of an array lies below zero."""
    items = () if x.known is None else x.known.ravel().tolist()
    return any(isinstance(item, int) and item < 0 for item in items)


def _may_be_zero(x: Tensor) -> bool:
    """Whether an element of an array may be 0; sizes are none."""
    return x.known is None or any(item == 0 for item in x.known.ravel().tolist())


def _part(rule: Rule | None, number: int, count: int) -> Rule | None:
    """Return the function that computes one of several results."""
    if rule is None or count == 1:
        return rule
    return lambda *operands: rule(*operands)[number]


def _known(name: str, tensors: Sequence[Tensor], dtype: ir.DataType) -> Any:
    """Return the content of the result where it is known, and sizes can go through it."""
    contents = [content(x) for x in tensors]
    if any(c is None for c in contents):
        return None
    if any(c.dtype == object for c in contents):
        if name not in _PYTHON or not dtype.is_integer():
            return None
        try:
            rule: Any = _PYTHON[name]
            return np.asarray(rule(*contents), dtype=object)
        except (TypeError, ValueError, ArithmeticError):
            return None
    with np.errstate(all="ignore"):
        try:
            found = getattr(np, name)(*contents)
        except (TypeError, ValueError, ArithmeticError):
            return None
    return None if isinstance(found, tuple) else np.asarray(found)


def _register(name: str, *names: str) -> None:
    count = getattr(np, name).nin

    def function(
        t: Core, *x: Value, out: Value = None, where: Value = True, dtype: Value = None,
        casting: Value = "same_kind", signature: Value = None, **_: Value,
    ) -> Any:  # fmt: skip
        if len(x) not in (count, count + 1):
            raise CheckError("call", f"{name}() takes {count} positional arguments, got {len(x)}")
        if signature is not None or not isinstance(casting, str):
            t.fail(OPEN, f"np.{name}: signature= is not followed; give it dtype=")
        wanted = None if dtype is None else dtype_of(t, dtype, DOUBLE)
        made = elementwise(t, name, *x[:count], wanted=wanted, casting=casting)
        if isinstance(out, Tensor):
            store(t, out, made)
            return out
        return made

    NUMPY.function(*(names or (name,)))(function)


_UFUNCS = sorted(
    name
    for name in vars(np)  # not dir, which names packages that load only when asked for
    if isinstance(vars(np)[name], np.ufunc) and vars(np)[name].signature is None
)
for _name in _UFUNCS:
    _register(_name)


def store(t: Core, target: Tensor, result: Tensor) -> None:
    """Fail unless ``result`` can be stored where ``target`` lies, as in ``target += ...``."""
    if not np.can_cast(result.dtype.numpy(), target.dtype.numpy(), "same_kind"):
        t.fail(
            "dtype-mismatch",
            f"the result {t.show(result)} cannot be stored in place in {t.show(target)}",
            target,
            result,
            remedy="convert it with .astype()",
        )
    if target.shape is None or result.shape is None:
        return
    if len(target.shape) != len(result.shape) or any(
        t.emit.differ(a, b) for a, b in zip(target.shape, result.shape, strict=True)
    ):
        t.fail(
            "shape-mismatch",
            f"the result {t.show(result)} does not fit in place into {t.show(target)}",
            target,
            result,
        )


def operator(t: Core, name: str, left: Value, right: Value) -> Value:
    """Return ``left op right``; ``iadd`` and others work in place."""
    if name.startswith("i") and name[1:] in _BY_OPERATOR:
        result = operator(t, name[1:], left, right)
        if isinstance(left, Tensor) and isinstance(result, Tensor):
            store(t, left, result)
            return cast(t, result, left.dtype)
        return result
    left, right = t.unwrap(left), t.unwrap(right)
    for value in (left, right):
        if not isinstance(value, Tensor | list | tuple) and not is_number(value):
            if name in ("eq", "ne"):
                return name == "ne"
            raise CheckError(
                "type",
                f"unsupported operands for '{name}': {t.show(t.wrap(left))} and "
                f"{t.show(t.wrap(right))}",
            )
    if name == "matmul":
        return t.call_library("numpy.matmul", [left, right])
    if name == "pow" and right == 2 and type(right) is int and isinstance(left, Tensor):
        return elementwise(t, "square", left)  # of another element type for truth values
    return elementwise(t, _BY_OPERATOR[name], left, right)


_UNARY = {"neg": "negative", "pos": "positive", "invert": "invert", "abs": "absolute"}


def unary(t: Core, name: str, x: Tensor) -> Value:
    """Return an operator of Python on one array."""
    return elementwise(t, _UNARY.get(name, name), x)


NUMPY.operator = operator
NUMPY.unary = unary


@NUMPY.function("isclose")
def isclose(
    t: Core, a: Value, b: Value, rtol: Value = 1e-5, atol: Value = 1e-8, equal_nan: Value = False
) -> Tensor:
    """Return where two arrays are nearly equal."""
    left, right = to_array(t, a), to_array(t, b)
    shape = broadcast_shape(t, left, right)
    given = isinstance(rtol, int | float) and isinstance(atol, int | float)
    numbers = all(map(is_number, (a, b)))  # a number beside an array has its type
    values = [x if is_number(x) and not numbers else y for x, y in ((a, left), (b, right))]
    dtype = promoted(t, [*values, 0.0])
    if not given or dtype not in FLOATS or not isinstance(equal_nan, bool):
        return typed(t, "IsClose", [left, right], BOOL, shape)
    operands = [cast(t, x, dtype) for x in (left, right)]
    return computed(
        t, (BOOL, shape), pairs.are_close, *operands, float(rtol), float(atol), equal_nan
    )


@NUMPY.function("allclose")
def allclose(
    t: Core, a: Value, b: Value, rtol: Value = 1e-5, atol: Value = 1e-8, equal_nan: Value = False
) -> Value:
    """Return whether two arrays are nearly equal."""
    near = isclose(t, a, b, rtol, atol, equal_nan)
    return t.as_truth(t.as_term(t.truth(t.call_library("numpy.all", [near]))))


@NUMPY.function("array_equal")
def array_equal(t: Core, a1: Value, a2: Value, equal_nan: Value = False) -> Value:
    """Return whether two arrays hold the same."""
    left, right = to_array(t, a1), to_array(t, a2)
    in_parts = any(x.dtype in _HALVES for x in (left, right))
    if left.shape is None or left.shape != right.shape or equal_nan or in_parts:
        if not t.emit.builds:
            return Truth(t.unknown_truth())
        inexact = all(x.dtype.numpy().kind in "fc" for x in (left, right))
        return run_own(t, array_programs.array_equal, [left, right, inexact and equal_nan], {})
    return _all_equal(t, left, right)


@NUMPY.function("array_equiv")
def array_equiv(t: Core, a1: Value, a2: Value) -> Value:
    """Return whether two arrays hold the same once they are broadcast."""
    left, right = to_array(t, a1), to_array(t, a2)
    if left.shape is None or left.shape != right.shape:
        if t.emit.builds:
            t.fail("capture", f"np.array_equiv: expected arrays of one known shape, got "
                   f"{t.show(left)} and {t.show(right)}; compare their shapes, then "
                   "(x == y).all()", left, right)  # fmt: skip
        return Truth(t.unknown_truth())
    return _all_equal(t, left, right)


def _all_equal(t: Core, left: Tensor, right: Tensor) -> Value:
    same = elementwise(t, "equal", left, right)
    return t.as_truth(t.as_term(t.truth(t.call_library("numpy.all", [same]))))


@NUMPY.function("clip")
def clip(
    t: Core, a: Value, a_min: Value = None, a_max: Value = None, out: Value = None, *,
    min: Value = None, max: Value = None, **_: Value,
) -> Tensor:  # fmt: skip
    """Return the array cut to a range."""
    result = t.op("Identity", to_array(t, a))
    bounds = (
        ("maximum", a_min if min is None else min),
        ("minimum", a_max if max is None else max),
    )
    for name, bound in bounds:
        # A whole number cuts nothing off on the far side of the range of the elements.
        beyond = not fits(bound, result.dtype) and (bound < 0) == (name == "maximum")
        if bound is not None and not beyond:
            result = elementwise(t, name, result, bound)
    return result


@NUMPY.function("round", "around", "round_")
def round_(t: Core, a: Value, decimals: Value = 0, out: Value = None) -> Tensor:
    """Return the array rounded; the element type stays."""
    x = to_array(t, a)
    if x.dtype == BOOL:
        x = cast(t, x, ir.DataType.FLOAT16)
    if not isinstance(decimals, int) or (x.dtype not in FLOATS and decimals < 0):
        return typed(t, "Round", [x], x.dtype, x.shape)
    if x.dtype not in FLOATS:
        return typed(t, "Round", [x], x.dtype, x.shape, x.known, partial(op, "Identity"))
    return typed(t, "Round", [x], x.dtype, x.shape, None, lambda x: pairs.rounded(x, decimals))


_HALVES = {ir.DataType.COMPLEX64: ir.DataType.FLOAT, ir.DataType.COMPLEX128: ir.DataType.DOUBLE}


def _real_part(name: str, rule: Rule) -> None:
    def function(t: Core, val: Value) -> Value:
        if is_number(val):  # Python's own have the attribute, too
            plain = is_plain(val) or isinstance(val, complex)
            return getattr(val, name) if plain else val if name == "real" else weak(val)
        x = to_array(t, val)
        if x.dtype in _HALVES:
            return typed(t, "Real", [x], _HALVES[x.dtype], x.shape)
        return typed(t, "Real", [x], x.dtype, x.shape, None, rule)

    NUMPY.function(name)(function)


_real_part("real", partial(op, "Identity"))
_real_part("imag", special.zeros_of)


@NUMPY.function("angle")
def angle(t: Core, z: Value, deg: Value = False) -> Tensor:
    """Return the angles of complex numbers, in radians, or in degrees."""
    x = to_array(t, z)
    if x.dtype in _HALVES:
        return typed(t, "Real", [x], _HALVES[x.dtype], x.shape)
    x = cast(t, x, resolved(t, "arctan2", [0, x])[-1])
    factor = np.array(180 / math.pi if deg else 1, x.dtype.numpy())
    turned = lambda x: op("Mul", special.angle_of_reals(x), factor)  # noqa: E731
    return typed(t, "Real", [x], x.dtype, x.shape, None, turned)


@NUMPY.function("nan_to_num")
def nan_to_num(
    t: Core, x: Value, copy: Value = True, nan: Value = 0.0, posinf: Value = None,
    neginf: Value = None,
) -> Tensor:  # fmt: skip
    """Return the array with numbers in place of NaN and infinities."""
    found = to_array(t, x)
    if found.dtype not in FLOATS:
        same = partial(op, "Identity")
        return typed(t, "NanToNum", [found], found.dtype, found.shape, found.known, same)
    most = float(np.finfo(found.dtype.numpy()).max)
    numbers = nan, most if posinf is None else posinf, -most if neginf is None else neginf
    if not all(isinstance(number, int | float) for number in numbers):
        return typed(t, "NanToNum", [found], found.dtype, found.shape)
    return computed(t, found, pairs.with_numbers, found, *numbers)


@NUMPY.function("sinc")
def sinc(t: Core, x: Value) -> Tensor:
    """Return ``sin(pi x) / (pi x)``; integers become float64."""
    return _of_floats(t, x, special.sinc)


@NUMPY.function("i0")
def i0(t: Core, x: Value) -> Tensor:
    """Return Bessel's modified function of order 0; integers become float64."""
    return _of_floats(t, x, special.bessel_i0)


def _of_floats(t: Core, x: Value, function: Rule) -> Tensor:
    found = to_array(t, x)
    dtype = found.dtype if found.dtype in FLOATS else ir.DataType.DOUBLE
    return computed(t, (dtype, shape_of(t, found)), function, cast(t, found, dtype))
