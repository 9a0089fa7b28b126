"""Functions of PyTorch that work element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.libraries.computing import computed
from hagane.frontends.libraries.memory.written import IN_PLACE
from hagane.frontends.libraries.torch.columns import refuse_square
from hagane.frontends.libraries.torch.functions.numbers.storing import stored
from hagane.frontends.libraries.torch.operands import (
    BOOL,
    FLOAT,
    INT64,
    as_float,
    cast,
    category,
    is_scalar,
    name_dtype,
    need_tensor,
    of_numpy,
    promote,
    shape_of,
    to_tensor,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.values import (
    Tensor,
    Truth,
    Value,
)
from hagane.ops.builder import op
from hagane.ops.functions.numbers import activations, division, integers, pairs
from hagane.ops.functions.numbers.activations import at_least, at_most

BINARY = {"add": "Add", "sub": "Sub", "mul": "Mul", "truediv": "Div", "pow": "Pow", "mod": "Mod"}
_COMPARE = {
    "eq": "Equal", "lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual",
}  # fmt: skip
_BITWISE = {"and": "And", "or": "Or", "xor": "Xor"}


def apply_(t: Core, operator: str, x: Tensor) -> Tensor:
    """Apply an operator, or only its type where PyTorch's function is none of ONNX."""
    if operator and category(x.dtype) != 3 and x.dtype != BOOL:
        return t.op(operator, x)
    return t.emit.typed(operator or "Elementwise", [x], x.dtype, x.shape)


@TORCH.function("nn.functional.prelu", "prelu", methods=("prelu",))
def prelu(t: Core, input: Value, weight: Value) -> Tensor:
    """Return max(0, x) + weight * min(0, x), one weight for all or one a channel."""
    x, w = need_tensor(t, input, "input"), need_tensor(t, weight, "weight")
    shape, count = shape_of(t, x), shape_of(t, w)
    one = count in ((), (1,))
    if not one and (len(shape) < 2 or t.emit.differ(count[0], shape[1])):
        t.fail("shape-mismatch", f"expected one weight, or one a channel of {t.show(x)}, got "
               f"{t.show(w)}", x, w)  # fmt: skip
    made = t.emit.typed("PRelu", [x, w], x.dtype, x.shape)
    if not one and len(shape) > 2:
        w = t.op("Unsqueeze", w, np.arange(1, len(shape) - 1))
    if not shape and count:  # a tensor without axes stays one
        w = t.op("Reshape", w, np.array([], np.int64))
    return computed(t, made, activations.prelu, x, w)


def binary(t: Core, name: str, left: Value, right: Value) -> Tensor:
    """Return an arithmetic operator of two operands, promoted and broadcast."""
    if name == "truediv":  # numbers are not those of an integer tensor's type
        tensors = [v for v in (left, right) if isinstance(v, Tensor)]
        if len(tensors) == 1 and category(tensors[0].dtype) < 2:
            left, right = (cast(t, v, FLOAT) if v is tensors[0] else v for v in (left, right))
    if name == "sub":
        for value in (left, right):
            if isinstance(value, bool | Truth) or (
                isinstance(value, Tensor) and value.dtype == BOOL
            ):
                t.fail(
                    "dtype-mismatch",
                    f"subtraction with a bool tensor is not supported, got {t.show(value)}",
                    *([value] if isinstance(value, Tensor) else []),
                    remedy="use ~ to invert, ^ to compare, or convert it with .int()",
                )
    a, b = promote(t, left, right)
    if name == "truediv" and category(a.dtype) < 2:
        a, b = cast(t, a, FLOAT), cast(t, b, FLOAT)
    if name in ("floordiv", "mod") and category(a.dtype) >= 2:
        made = broadcast_typed(t, "Mod", a, b, a.dtype)
        if category(a.dtype) == 3:
            return made
        rest = division.floor_remainder if name == "mod" else division.floor_quotient
        return computed(t, made, rest, a, b)
    if name == "pow" and category(a.dtype) < 2 and isinstance(right, int) and right < 0:
        t.fail(
            "value",
            f"RuntimeError: Integers to negative integer powers are not allowed: {t.show(a)} ** "
            f"{right}",
            a,
            remedy="convert it with .float()",
        )
    counted = a.dtype in (INT64, ir.DataType.INT32) and isinstance(right, int) and right >= 0
    plain = category(a.dtype) == 2 or counted or name != "pow"
    if a.dtype == BOOL or category(a.dtype) == 3 or name == "floordiv" or not plain:
        made = broadcast_typed(t, BINARY.get(name, "Div"), a, b, a.dtype)
        if name == "floordiv" and category(a.dtype) == 1:
            return computed(t, made, division.floor_quotient, a, b)
        if name == "pow" and a.dtype.is_integer() and a.dtype != BOOL:
            return computed(t, made, division.whole_power, a, b)
        if a.dtype == BOOL and name in ("add", "mul"):
            return computed(t, made, op, "Or" if name == "add" else "And", a, b)
        return made
    return t.op(BINARY[name], a, b)


def broadcast_typed(t: Core, name: str, a: Tensor, b: Tensor, dtype: ir.DataType) -> Tensor:
    """Return the type of an elementwise operation that is none of ONNX's for this type."""
    shape = broadcast_shape(t, a, b)
    return t.emit.typed(name, [a, b], dtype, shape)


def broadcast_shape(t: Core, *tensors: Tensor) -> Any:
    """Return the shape that tensors broadcast to, by the rule of the operators."""
    with t.emit.types_only():
        floats = [t.emit.like(x, FLOAT) for x in tensors]
        return t.op("Sum", *floats).shape if len(floats) > 1 else floats[0].shape


def operator(t: Core, name: str, left: Value, right: Value) -> Value:
    """Return ``left op right`` for an operator of Python; ``iadd`` and others work in place."""
    if isinstance(right, str) or isinstance(left, str) or right is None or left is None:
        return _refused(t, name, left, right)
    if isinstance(left, list | tuple) or isinstance(right, list | tuple):
        return _refused(t, name, left, right)
    in_place = name in IN_PLACE
    left, right = left if in_place else of_numpy(left), of_numpy(right)
    refuse_square(t, name, left, right)
    if in_place:
        return _in_place(t, name[1:], left, right)
    for value in (left, right):
        if not isinstance(value, Tensor) and not is_scalar(value):
            return _refused(t, name, left, right)
    if name == "matmul":
        return t.call_library("torch.matmul", [left, right])
    if name in _COMPARE or name == "ne":
        return compare(t, name, left, right)
    if name in _BITWISE:
        return bitwise(t, name, left, right)
    if name in ("lshift", "rshift"):
        a, b = promote(t, left, right)
        if category(a.dtype) > 1:
            t.fail("dtype-mismatch", f"a shift takes integers, got {name_dtype(a)}", a, b)
        made = broadcast_typed(t, "BitShift", a, b, a.dtype)
        if a.dtype == BOOL:
            return made
        rule = integers.shift_left if name == "lshift" else integers.shift_right
        return computed(t, made, rule, a, b)
    return binary(t, name, left, right)


def _refused(t: Core, name: str, left: Value, right: Value) -> Value:
    if name in ("eq", "ne"):
        return name == "ne"
    raise CheckError(
        "type", f"unsupported operands for '{name}': {t.show(left)} and {t.show(right)}"
    )


def _in_place(t: Core, name: str, left: Value, right: Value) -> Value:
    return stored(t, left, operator(t, name, left, right))


def compare(t: Core, name: str, left: Value, right: Value) -> Tensor:
    """Return a comparison, bool elements."""
    a, b = promote(t, left, right)
    if a.dtype == BOOL:
        a, b = cast(t, a, INT64), cast(t, b, INT64)
    if category(a.dtype) == 3:
        return broadcast_typed(t, "Equal", a, b, BOOL)
    found: Tensor = t.op(_COMPARE["eq" if name == "ne" else name], a, b)
    return t.op("Not", found) if name == "ne" else found


def _comparison(name: str) -> None:
    def function(t: Core, input: Value, other: Value, *, out: Value = None) -> Tensor:
        return compare(t, name, need_tensor(t, input, "input"), other)

    TORCH.function(name, methods=(name, f"{name}_", f"__{name}__"))(function)


for _name in (*_COMPARE, "ne"):
    _comparison(_name)
for _name, _other in (("greater", "gt"), ("less", "lt"), ("greater_equal", "ge"),
                      ("less_equal", "le"), ("not_equal", "ne")):  # fmt: skip
    TORCH.function(_name, methods=(_name,))(TORCH.functions[f"torch.{_other}"])


def bitwise(t: Core, name: str, left: Value, right: Value) -> Tensor:
    """Return a bitwise operator of integers or bools."""
    a, b = promote(t, left, right)
    if category(a.dtype) > 1:
        t.fail(
            "dtype-mismatch",
            f"expected integers or bools for a bitwise operator, got {name_dtype(a)}",
            a,
            b,
        )
    if a.dtype == BOOL:
        return t.op(_BITWISE[name], a, b)
    return t.op(f"Bitwise{_BITWISE[name]}", a, b)


def _bits(name: str) -> None:
    def bits(t: Core, input: Value, other: Value) -> Tensor:
        return bitwise(t, name, need_tensor(t, input, "input"), other)

    def logical(t: Core, input: Value, other: Value) -> Tensor:
        a, b = cast(t, need_tensor(t, input, "input"), BOOL), cast(t, to_tensor(t, other), BOOL)
        return t.op(_BITWISE[name], a, b)

    for kind, function in (("bitwise", bits), ("logical", logical)):
        TORCH.function(f"{kind}_{name}", methods=(f"{kind}_{name}", f"{kind}_{name}_"))(function)


for _name in _BITWISE:
    _bits(_name)


def _shifted(name: str, method: str) -> None:
    def function(t: Core, input: Value, other: Value) -> Value:
        return operator(t, method, input, other)

    TORCH.function(name, methods=(name,))(function)


_shifted("bitwise_left_shift", "lshift")
_shifted("bitwise_right_shift", "rshift")


@TORCH.function("logical_not", methods=("logical_not",))
def logical_not(t: Core, input: Value) -> Tensor:
    """Return whether each element is zero."""
    return t.op("Not", cast(t, need_tensor(t, input, "input"), BOOL))


@TORCH.function("bitwise_not", methods=("bitwise_not", "__invert__"))
def bitwise_not(t: Core, input: Value) -> Tensor:
    """Return ``~input``."""
    return unary(t, "invert", need_tensor(t, input, "input"))


def unary(t: Core, name: str, x: Tensor) -> Tensor:
    """Return an operator of Python on one tensor."""
    if name == "neg":
        if x.dtype == BOOL:
            t.fail("dtype-mismatch", "'-' of a bool tensor is not supported", x, remedy="use ~")
        negative: Tensor = t.call_library("torch.neg", [x])  # (of unsigned integers too)
        return negative
    if name == "invert":
        if category(x.dtype) > 1:
            t.fail("dtype-mismatch", f"'~' takes integers or bools, got {t.show(x)}", x)
        return t.op("Not" if x.dtype == BOOL else "BitwiseNot", x)
    return x


def _times(t: Core, value: Value, factor: Value) -> Value:
    """Return a product; the value itself where the factor is 1."""
    return value if isinstance(factor, int) and factor == 1 else operator(t, "mul", value, factor)


def _scaled(t: Core, input: Value, other: Value, alpha: Value) -> Value:
    """Return ``alpha * other`` as PyTorch adds it: of the type that both operands have together."""
    if isinstance(alpha, int) and alpha == 1:
        return other
    _, b = promote(t, input, other)
    made = operator(t, "mul", b, alpha)
    return cast(t, made, b.dtype) if isinstance(made, Tensor) else made


def _arithmetic(name: str, method: str) -> None:
    def function(
        t: Core,
        input: Value,
        other: Value,
        *,
        alpha: Value = 1,
        rounding_mode: Value = None,
        out: Value = None,
    ) -> Value:
        if rounding_mode is not None:
            a, b = promote(t, input, other)
            made = broadcast_typed(t, "Div", a, b, a.dtype)
            if category(a.dtype) not in (1, 2):
                return made
            floor = rounding_mode == "floor"
            rest = division.floor_quotient if floor else division.whole_quotient
            return computed(t, made, rest, a, b)
        if name == "fmod":
            a, b = promote(t, input, other)
            made = binary(t, "mod", a, b)
            return (
                computed(t, made, lambda: op("Mod", a, b, fmod=1)) if made.dtype != BOOL else made
            )
        return operator(t, method, input, _scaled(t, input, other, alpha))

    def in_place(t: Core, input: Value, other: Value, *, alpha: Value = 1) -> Value:
        return operator(t, f"i{method}", input, _scaled(t, input, other, alpha))

    TORCH.function(name, methods=(name,))(function)
    TORCH.method(f"{name}_")(in_place)


for _name, _method in (
    ("add", "add"), ("sub", "sub"), ("subtract", "sub"), ("mul", "mul"), ("multiply", "mul"),
    ("div", "truediv"), ("divide", "truediv"), ("true_divide", "truediv"), ("pow", "pow"),
    ("remainder", "mod"), ("fmod", "mod"), ("floor_divide", "floordiv"),
):  # fmt: skip
    _arithmetic(_name, _method)


@TORCH.function("rsub")
def rsub(t: Core, input: Value, other: Value, *, alpha: Value = 1) -> Value:
    """Return ``other - alpha * input``."""
    return operator(t, "sub", other, _times(t, input, alpha))


@TORCH.function("float_power", methods=("float_power",))
def float_power(t: Core, input: Value, exponent: Value) -> Tensor:
    """Return a power, computed in float64."""
    a, b = promote(t, input, exponent)
    wide = ir.DataType.COMPLEX128 if category(a.dtype) == 3 else ir.DataType.DOUBLE
    a, b = cast(t, a, wide), cast(t, b, wide)
    made = broadcast_typed(t, "Pow", a, b, wide)
    return computed(t, made, lambda x, y: op("Pow", x, y), a, b)


# Some functions of pairs over the builder; the rest have only types.
_PAIRS: dict[str, Callable[[Any, Any], Any]] = {
    "maximum": lambda x, y: op("Max", x, y),
    "minimum": lambda x, y: op("Min", x, y),
    "hypot": division.hypotenuse,
    "logaddexp": division.log_add_exp,
    "logaddexp2": pairs.log_add_exp2,
    "fmax": pairs.largest_number,
    "fmin": pairs.smallest_number,
    "gcd": integers.greatest_divisor,
    "lcm": integers.least_multiple,
    "heaviside": pairs.step,
    "atan2": pairs.angle_of,
    "arctan2": pairs.angle_of,
    "xlogy": pairs.times_log,
    "special.xlogy": pairs.times_log,
    "special.xlog1py": lambda x, y: pairs.times_log(x, y, 1.0),
    "copysign": pairs.copy_sign,
    "ldexp": pairs.scaled_by_two,
}
_WHOLE_PAIRS = ("gcd", "lcm")  # fmt: skip
_PAIRS_IN_PLACE = ("gcd", "lcm", "heaviside", "nextafter", "atan2", "arctan2", "hypot", "xlogy",
                   "copysign", "ldexp")  # fmt: skip


def _pairwise(name: str, *, real: bool = False, dtype: ir.DataType | None = None) -> None:
    def function(t: Core, input: Value, other: Value, **_: Value) -> Tensor:
        a, b = promote(t, input, other)
        if real:
            a, b = as_float(t, a), as_float(t, b)
        made = broadcast_typed(t, name, a, b, dtype or a.dtype)
        function_of = _PAIRS.get(name)
        if name in ("fmax", "fmin") and category(a.dtype) == 1:
            function_of = _PAIRS["maximum" if name == "fmax" else "minimum"]
        if name == "nextafter":
            function_of = pairs.next_after if a.dtype == FLOAT else None
        if function_of is None or category(a.dtype) not in (1, 2):
            return made
        return computed(t, made, function_of, a, b)

    in_place = [f"{name}_"] if name in _PAIRS_IN_PLACE else []
    TORCH.function(name, methods=() if "." in name else (name, *in_place))(function)


for _name in ("maximum", "minimum", "fmax", "fmin", "gcd", "lcm", "heaviside", "nextafter"):
    _pairwise(_name)
for _name in ("atan2", "arctan2", "hypot", "logaddexp", "logaddexp2", "xlogy", "copysign",
              "ldexp", "special.xlogy", "special.xlog1py", "special.zeta"):  # fmt: skip
    _pairwise(_name, real=True)


@TORCH.function("clamp", "clip", methods=("clamp", "clip", "clamp_", "clip_"))
def clamp(t: Core, input: Value, min: Value = None, max: Value = None) -> Tensor:
    """Return the input cut to a range; the bounds are numbers or tensors."""
    x = need_tensor(t, input, "input")
    given = [(f, b) for f, b in ((at_least, min), (at_most, max)) if b is not None]
    if not given:
        t.fail("value", "expected at least one of min and max", x)
    result = x
    for function, bound in given:
        a, b = promote(t, result, bound)
        result = broadcast_typed(t, "Clip", a, b, a.dtype)
        if category(a.dtype) in (1, 2):
            result = computed(t, result, function, a, b)
    return result


@TORCH.function("clamp_min", methods=("clamp_min", "clamp_min_"))
def clamp_min(t: Core, input: Value, min: Value) -> Tensor:
    """Return the input, or the bound where that is more."""
    return clamp(t, input, min)


@TORCH.function("clamp_max", methods=("clamp_max", "clamp_max_"))
def clamp_max(t: Core, input: Value, max: Value) -> Tensor:
    """Return the input, or the bound where that is less."""
    return clamp(t, input, None, max)


@TORCH.function("where", methods=())
def where(t: Core, condition: Value, input: Value = None, other: Value = None) -> Value:
    """Return elements of the input where the condition holds, else of the other."""
    c = need_tensor(t, condition, "condition")
    if input is None:
        return t.call_library("torch.nonzero", [c], {"as_tuple": True})
    if c.dtype == ir.DataType.UINT8:  # a mask of PyTorch's first versions
        c = t.op("Cast", c, to=BOOL)
    if c.dtype != BOOL:
        t.fail("dtype-mismatch", f"expected a bool condition, got {t.show(c)}", c)
    a, b = promote(t, input, other)
    return t.op("Where", c, a, b)


@TORCH.method("where")
def where_method(t: Core, input: Value, condition: Value, other: Value) -> Value:
    """Return elements of the tensor where the condition holds, else of the other."""
    return where(t, condition, input, other)


@TORCH.function("masked_fill", methods=("masked_fill", "masked_fill_"))
def masked_fill(t: Core, input: Value, mask: Value, value: Value) -> Tensor:
    """Return the input with a number where the mask holds."""
    x, m = need_tensor(t, input, "input"), need_tensor(t, mask, "mask")
    if m.dtype != BOOL:
        t.fail(
            "dtype-mismatch",
            f"masked_fill takes a bool mask, got {t.show(m)}",
            m,
            remedy="compare it first, as in mask == 0, or convert it with .bool()",
        )
    if isinstance(value, Tensor) and value.shape != ():
        t.fail("shape-mismatch", f"expected a number as value, got {t.show(value)}", value)
    return t.op(
        "Where",
        m,
        cast(t, to_tensor(t, value, x.dtype), x.dtype),
        x,
    )


@TORCH.function("lerp", methods=("lerp", "lerp_"))
def lerp(t: Core, input: Value, end: Value, weight: Value) -> Tensor:
    """Return ``input + weight * (end - input)``."""
    a, b = need_tensor(t, input, "input"), need_tensor(t, end, "end")
    if a.dtype != b.dtype:
        t.fail(
            "dtype-mismatch",
            f"expected one element type, got {name_dtype(a)} and {name_dtype(b)}",
            a,
            b,
        )
    if category(a.dtype) < 2:
        t.fail("dtype-mismatch", f"lerp takes floating-point tensors, got {t.show(a)}", a)
    return binary(t, "add", a, binary(t, "mul", binary(t, "sub", b, a), weight))


@TORCH.function("addcmul", methods=("addcmul", "addcmul_"))
def addcmul(t: Core, input: Value, tensor1: Value, tensor2: Value, *, value: Value = 1) -> Tensor:
    """Return ``input + value * tensor1 * tensor2``."""
    return binary(t, "add", input, _times(t, binary(t, "mul", tensor1, tensor2), value))


@TORCH.function("addcdiv", methods=("addcdiv", "addcdiv_"))
def addcdiv(t: Core, input: Value, tensor1: Value, tensor2: Value, *, value: Value = 1) -> Tensor:
    """Return ``input + value * tensor1 / tensor2``."""
    return binary(t, "add", input, _times(t, binary(t, "truediv", tensor1, tensor2), value))


TORCH.operator = operator
TORCH.unary = unary
