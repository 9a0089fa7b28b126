"""Elementwise operators as expressions; groups of them become one kernel."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.native.expression import BOOL, FLOAT32, HALVES, Apply, Constant, Expression, Leaf
from hagane.native.lowering import Lazy, Lowering, NotNative, Rule, leaves, operand
from hagane.native.tensor import Blocked, Tensor, row_major
from hagane.ops.definition import Array

Attributes = Mapping[str, Any]
Builder = Callable[[Attributes, Sequence[Expression], "np.dtype[Any]"], Expression]

# Expressions that read more tensors than this are stored, so that kernels stay small.
_MOST_LEAVES = 12


def _is_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f"


def _template(
    floats: str | None, integers: str | None = None, booleans: str | None = None
) -> Builder:
    """Return the builder of an operator whose text depends only on the kind of element."""

    def build(
        attributes: Attributes, arguments: Sequence[Expression], dtype: np.dtype[Any]
    ) -> Expression:
        kind = arguments[0].dtype
        text = floats if _is_float(kind) else booleans if kind == BOOL else integers
        if text is None:
            raise NotNative(f"element type {kind}")
        return Apply(text, tuple(arguments), dtype, vector=kind in (FLOAT32, BOOL))

    return build


def _folded(floats: str, integers: str) -> Builder:
    """Return the builder of an operator that takes any number of inputs, two at a time."""
    pair = _template(floats, integers)

    def build(
        attributes: Attributes, arguments: Sequence[Expression], dtype: np.dtype[Any]
    ) -> Expression:
        total = arguments[0]
        for argument in arguments[1:]:
            total = pair(attributes, (total, argument), dtype)
        return total

    return build


def _with_numbers(text: str, *names: str) -> Builder:
    """Return the builder of a float operator whose attributes are numbers in the text."""

    def build(
        attributes: Attributes, arguments: Sequence[Expression], dtype: np.dtype[Any]
    ) -> Expression:
        if not _is_float(dtype):
            raise NotNative(f"element type {dtype}")
        constants = tuple(Constant(float(attributes[name]), dtype) for name in names)
        return Apply(text, (arguments[0], *constants), dtype)

    return build


def _quotient(
    attributes: Attributes, arguments: Sequence[Expression], dtype: np.dtype[Any]
) -> Expression:
    unsigned = "_unsigned" if dtype.kind == "u" else ""
    return _template("{0} / {1}", f"hg_quotient{unsigned}({{0}}, {{1}})")(
        attributes, arguments, dtype
    )


def _power(
    attributes: Attributes, arguments: Sequence[Expression], dtype: np.dtype[Any]
) -> Expression:
    base, exponent = arguments
    if not _is_float(dtype) or base.dtype != dtype:
        raise NotNative(f"a power of element type {base.dtype}")
    if isinstance(exponent, Constant):
        known = {
            2.0: "{0} * {0}",
            3.0: "{0} * {0} * {0}",
            1.0: "{0}",
            0.5: "v_sqrt({0})",
            -1.0: "v_reciprocal({0})",
            -0.5: "v_reciprocal(v_sqrt({0}))",
        }
        text = known.get(float(exponent.value))
        if text is not None:
            return Apply(text, (base,), dtype)
    if exponent.dtype != dtype:
        raise NotNative(f"a power to element type {exponent.dtype}")
    return Apply("v_pow({0}, {1})", (base, exponent), dtype)


def _modulo(
    attributes: Attributes, arguments: Sequence[Expression], dtype: np.dtype[Any]
) -> Expression:
    if _is_float(dtype) and attributes["fmod"]:
        return Apply("v_fmod({0}, {1})", tuple(arguments), dtype)
    raise NotNative("a remainder of whole numbers")


def _clip(
    attributes: Attributes, arguments: Sequence[Expression], dtype: np.dtype[Any]
) -> Expression:
    result = arguments[0]
    names = (
        ("v_max({0}, {1})", "({0} > {1} ? {0} : {1})"),
        ("v_min({0}, {1})", "({0} < {1} ? {0} : {1})"),
    )
    for (floats, integers), bound in zip(names, arguments[1:], strict=False):
        if bound is not None:
            result = _template(floats, integers)(attributes, (result, bound), dtype)
    return result


def _gelu(
    attributes: Attributes, arguments: Sequence[Expression], dtype: np.dtype[Any]
) -> Expression:
    half = "{0} * v_num(0.5) * (v_num(1) + "
    if attributes["approximate"] == "tanh":
        inner = "v_tanh(v_num(0.7978845608028654) * ({0} + v_num(0.044715) * {0} * {0} * {0})))"
    else:
        inner = "v_erf({0} * v_num(0.7071067811865476)))"
    return _template(half + inner)(attributes, arguments, dtype)


def _where(
    attributes: Attributes, arguments: Sequence[Expression], dtype: np.dtype[Any]
) -> Expression:
    if dtype in (FLOAT32, np.dtype(np.float64)):
        return Apply("v_sel({0}, {1}, {2})", tuple(arguments), dtype, vector=dtype == FLOAT32)
    return Apply("({0} ? {1} : {2})", tuple(arguments), dtype, vector=False)


def _cast(
    attributes: Attributes, arguments: Sequence[Expression], dtype: np.dtype[Any]
) -> Expression:
    from hagane.native.kernel import c_type

    (source,) = arguments
    if source.dtype == dtype:
        return source
    if dtype == BOOL:
        if source.dtype == FLOAT32:
            return Apply("v_nonzero({0})", (source,), dtype)
        return Apply("({0} != 0)", (source,), dtype, vector=False)
    if source.dtype == BOOL and dtype == FLOAT32:
        return Apply("v_of_mask({0})", (source,), dtype)
    if source.dtype.kind == "f" and dtype.kind in "iu":
        if dtype.name not in ("int32", "int64"):
            raise NotNative(f"a cast of {source.dtype} to {dtype}")
        # As the processor has it: what does not fit becomes the smallest number.
        low, high = ("-0x1p63", "0x1p63") if dtype.name == "int64" else ("-0x1p31", "0x1p31")
        least = "INT64_MIN" if dtype.name == "int64" else "INT32_MIN"
        text = f"({{0}} >= {low} && {{0}} < {high} ? ({c_type(dtype)}){{0}} : {least})"
        return Apply(text, (source,), dtype, vector=False)
    return Apply(f"({c_type(dtype)}){{0}}", (source,), dtype, vector=False)


def _mean(
    attributes: Attributes, arguments: Sequence[Expression], dtype: np.dtype[Any]
) -> Expression:
    total = _folded("{0} + {1}", "{0} + {1}")(attributes, arguments, dtype)
    return Apply("{0} / {1}", (total, Constant(float(len(arguments)), dtype)), dtype)


def _compare(name: str, sign: str) -> Builder:
    def build(
        attributes: Attributes, arguments: Sequence[Expression], dtype: np.dtype[Any]
    ) -> Expression:
        kind = arguments[0].dtype
        if kind == BOOL:
            raise NotNative("a comparison of truth values")
        if _is_float(kind):
            return Apply(f"v_{name}({{0}}, {{1}})", tuple(arguments), BOOL, vector=kind == FLOAT32)
        return Apply(f"({{0}} {sign} {{1}})", tuple(arguments), BOOL, vector=False)

    return build


def _shift(
    attributes: Attributes, arguments: Sequence[Expression], dtype: np.dtype[Any]
) -> Expression:
    if dtype.kind != "u":
        raise NotNative(f"element type {dtype}")
    sign = "<<" if attributes["direction"] == "LEFT" else ">>"
    # C leaves shifts by the width and more undefined; here they leave nothing.
    text = f"({{1}} >= {8 * dtype.itemsize} ? 0 : {{0}} {sign} {{1}})"
    return Apply(text, tuple(arguments), dtype, vector=False)


def _first(
    attributes: Attributes, arguments: Sequence[Expression], dtype: np.dtype[Any]
) -> Expression:
    return arguments[0]


_ABS = "({0} < 0 ? 0 - {0} : {0})"
_POSITIVE = "v_max({0}, v_num(0))"
_NEGATIVE = "v_min({0}, v_num(0))"
BUILDERS: dict[str, Builder] = {
    "Abs": _template("v_abs({0})", _ABS),
    "Acos": _template("v_acos({0})"),
    "Acosh": _template("v_acosh({0})"),
    "Add": _template("{0} + {1}", "{0} + {1}"),
    "And": _template(None, None, "v_and({0}, {1})"),
    "Asin": _template("v_asin({0})"),
    "Asinh": _template("v_asinh({0})"),
    "Atan": _template("v_atan({0})"),
    "Atanh": _template("v_atanh({0})"),
    "BitShift": _shift,
    "BitwiseAnd": _template(None, "{0} & {1}"),
    "BitwiseNot": _template(None, "~{0}"),
    "BitwiseOr": _template(None, "{0} | {1}"),
    "BitwiseXor": _template(None, "{0} ^ {1}"),
    "Cast": _cast,
    "CastLike": lambda attributes, arguments, dtype: _cast(attributes, arguments[:1], dtype),
    "Ceil": _template("v_ceil({0})", "{0}"),
    "Celu": _with_numbers(f"{_POSITIVE} + {{1}} * v_expm1({_NEGATIVE} / {{1}})", "alpha"),
    "Clip": _clip,
    "Cos": _template("v_cos({0})"),
    "Cosh": _template("v_cosh({0})"),
    "Div": _quotient,
    "Dropout": _first,
    "Elu": _with_numbers(f"{_POSITIVE} + {{1}} * v_expm1({_NEGATIVE})", "alpha"),
    "Equal": _compare("eq", "=="),
    "Erf": _template("v_erf({0})"),
    "Exp": _template("v_exp({0})"),
    "Floor": _template("v_floor({0})", "{0}"),
    "Gelu": _gelu,
    "Greater": _compare("gt", ">"),
    "GreaterOrEqual": _compare("ge", ">="),
    "HardSigmoid": _with_numbers(
        "v_max(v_min({1} * {0} + {2}, v_num(1)), v_num(0))", "alpha", "beta"
    ),
    "HardSwish": _template(
        "{0} * v_max(v_min({0} * v_num(0.16666666666666666) + v_num(0.5), v_num(1)), v_num(0))"
    ),
    "Identity": _first,
    "IsInf": _template("v_isinf({0})"),
    "IsNaN": _template("v_isnan({0})"),
    "LeakyRelu": _with_numbers(f"{_POSITIVE} + {{1}} * {_NEGATIVE}", "alpha"),
    "Less": _compare("lt", "<"),
    "LessOrEqual": _compare("le", "<="),
    "Log": _template("v_log({0})"),
    "Max": _folded("v_max({0}, {1})", "({0} > {1} ? {0} : {1})"),
    "Mean": _mean,
    "Min": _folded("v_min({0}, {1})", "({0} < {1} ? {0} : {1})"),
    "Mish": _template("{0} * v_tanh(v_softplus({0}))"),
    "Mod": _modulo,
    "Mul": _template("{0} * {1}", "{0} * {1}"),
    "Neg": _template("v_neg({0})", "0 - {0}"),
    "Not": _template(None, None, "v_not({0})"),
    "Or": _template(None, None, "v_or({0}, {1})"),
    "Pow": _power,
    "PRelu": _template(f"{_POSITIVE} + {{1}} * {_NEGATIVE}"),
    "Reciprocal": _template("v_reciprocal({0})"),
    "Relu": _template("v_relu({0})", "({0} > 0 ? {0} : 0)"),
    "Round": _template("v_round({0})"),
    "Selu": _with_numbers(
        f"{{2}} * ({_POSITIVE} + {{1}} * v_expm1({_NEGATIVE}))", "alpha", "gamma"
    ),
    "Shrink": _with_numbers(
        "v_sel(v_lt({0}, v_neg({1})), {0} + {2}, v_sel(v_gt({0}, {1}), {0} - {2}, v_num(0)))",
        "lambd",
        "bias",
    ),
    "Sigmoid": _template("v_sigmoid({0})"),
    "Sign": _template("v_sign({0})", "(({0} > 0) - ({0} < 0))"),
    "Sin": _template("v_sin({0})"),
    "Sinh": _template("v_sinh({0})"),
    "Softplus": _template("v_softplus({0})"),
    "Softsign": _template("{0} / (v_num(1) + v_abs({0}))"),
    "Sqrt": _template("v_sqrt({0})"),
    "Sub": _template("{0} - {1}", "{0} - {1}"),
    "Sum": _folded("{0} + {1}", "{0} + {1}"),
    "Swish": _with_numbers("{0} * v_sigmoid({1} * {0})", "alpha"),
    "Tan": _template("v_tan({0})"),
    "Tanh": _template("v_tanh({0})"),
    "ThresholdedRelu": _with_numbers("v_sel(v_gt({0}, {1}), {0}, v_num(0))", "alpha"),
    "Where": _where,
    "Xor": _template(None, None, "v_xor({0}, {1})"),
}


def lower_elementwise(low: Lowering, node: ir.Node) -> None:
    """Make the node's output a lazy expression over its operands."""
    out = node.outputs[0]
    attributes = low.attributes(node)
    _check(low, node, attributes)
    n_inputs = 1 if node.op_type in ("Dropout", "CastLike", "Identity") else len(node.inputs)
    inputs = list(node.inputs[:n_inputs])
    blocked, operands = operands_of(low, inputs, out)
    expression = _built(node, attributes, operands, low.dtype(out))
    lazy = Lazy(expression, low.dtype(out), low.shape(out), blocked, operators(low, node))
    keep(low, out, lazy)


def _built(
    node: ir.Node,
    attributes: Attributes,
    operands: Sequence[Expression | None],
    dtype: np.dtype[Any],
) -> Expression:
    """Return what a node computes; 16-bit floats are widened, and the result is rounded."""
    kinds = {found.dtype for found in operands if found is not None}
    if dtype not in HALVES and kinds.isdisjoint(HALVES):
        return BUILDERS[node.op_type](attributes, operands, dtype)  # type: ignore[arg-type]
    if np.dtype(np.float64) in kinds or any(not _widens(kind) for kind in kinds):
        raise NotNative(f"a cast to {dtype} that rounds twice")
    if node.op_type in _KEEP_BITS and kinds - {BOOL} == {dtype}:
        return BUILDERS[node.op_type](attributes, operands, dtype)  # type: ignore[arg-type]
    wide = [None if found is None else _widened(found) for found in operands]
    result_type = FLOAT32 if dtype in HALVES else dtype
    result = BUILDERS[node.op_type](attributes, wide, result_type)  # type: ignore[arg-type]
    if dtype not in HALVES:
        return result
    return Apply(f"v_round_{HALVES[dtype]}({{0}})", (result,), dtype)


# Operators that choose among their operands and compute nothing.
_KEEP_BITS = ("Identity", "Dropout")


def _widens(dtype: np.dtype[Any]) -> bool:
    """Whether a number of this type is a float32, or rounds to one far from 16 bits."""
    return dtype in HALVES or dtype in (FLOAT32, BOOL) or dtype.kind in "iu"


def _widened(expression: Expression) -> Expression:
    if expression.dtype not in HALVES:
        return expression
    if isinstance(expression, Constant):
        return Constant(expression.value, FLOAT32)
    return Apply("{0}", (expression,), FLOAT32)


def operators(low: Lowering, node: ir.Node) -> tuple[str, ...]:
    """Return the operators of a lazy value: the node's after those of its lazy inputs."""
    forms = [low.lowered.get(value) for value in node.inputs if value is not None]
    names = [name for form in forms if isinstance(form, Lazy) for name in form.operators]
    return (*names, node.op_type)


def _check(low: Lowering, node: ir.Node, attributes: Attributes) -> None:
    if any(value is not None and low.uses(value) for value in node.outputs[1:]):
        raise NotNative("a second output")
    if node.op_type == "Dropout" and len(node.inputs) > 2 and node.inputs[2] is not None:
        training = low.constant(node.inputs[2])
        if training is None or bool(training):
            raise NotNative("dropout while training")
    if node.op_type == "IsInf" and not (
        attributes["detect_negative"] and attributes["detect_positive"]
    ):
        raise NotNative("infinities of one sign")
    if node.op_type in ("Cast", "CastLike") and attributes.get("saturate", 1) != 1:
        raise NotNative("a cast without saturation")


def keep(low: Lowering, value: ir.Value, lazy: Lazy) -> None:
    """Hold an elementwise value back for its one reader, or store it where it has several."""
    n_leaves = sum(1 for _ in leaves(lazy.expression))
    if low.only_use(value) is not None and n_leaves <= _MOST_LEAVES:
        low.lowered[value] = lazy
    elif isinstance(lazy.expression, Leaf) and value not in low.outputs and not lazy.blocked:
        low.lowered[value] = lazy.expression.tensor
    else:
        low.lowered[value] = low.store(value, lazy)


def operands_of(
    low: Lowering, inputs: Sequence[ir.Value | None], out: ir.Value
) -> tuple[bool, list[Expression | None]]:
    """Return the operands of an elementwise node, and whether they are blocked images."""
    shape = low.shape(out)
    forms = [None if value is None else low.get(value) for value in inputs]
    # Blocks hold float32, and so does what is computed in them.
    is_blocked = low.dtype(out) == FLOAT32 and any(
        (isinstance(form, Blocked) or (isinstance(form, Lazy) and form.blocked))
        and form.shape == shape
        for form in forms
    )
    if is_blocked:
        operands = [_blocked_operand(low, value, out) for value in inputs]
        if all(
            found is not None or value is None
            for found, value in zip(operands, inputs, strict=True)
        ):
            return True, operands
    return False, [None if value is None else _plain_operand(low, value) for value in inputs]


def _scalar(low: Lowering, value: ir.Value) -> Constant | None:
    array = low.constant(value)
    if array is None or array.size != 1:
        return None
    dtype = low.dtype(value)
    item = array.reshape(-1)[0]
    if dtype.kind == "f":
        return Constant(float(item), dtype)
    return Constant(bool(item) if dtype == BOOL else int(item), dtype)


def _plain_operand(low: Lowering, value: ir.Value) -> Expression:
    scalar = _scalar(low, value)
    if scalar is not None:
        return scalar
    found = low.get(value)
    if isinstance(found, Lazy) and not found.blocked:
        # The reader's shape may be larger; then computing it once is cheaper.
        return found.expression if _fits(low, value) else operand(low.stored(value))
    return Leaf(low.plain(value))


def _fits(low: Lowering, value: ir.Value) -> bool:
    reader = low.only_use(value)
    return reader is not None and low.shape(reader.outputs[0]) == low.shape(value)


def _blocked_operand(low: Lowering, value: ir.Value | None, out: ir.Value) -> Expression | None:
    if value is None:
        return None
    scalar = _scalar(low, value)
    if scalar is not None:
        return scalar
    if low.dtype(value) != FLOAT32:
        return None
    out_shape, shape = low.fixed_shape(out), low.fixed_shape(value)
    channels = out_shape[1]
    array = low.constant(value)
    if array is not None:
        padded = (1,) * (len(out_shape) - len(shape)) + shape
        if padded == (1, channels) + (1,) * (len(out_shape) - 2):
            return Leaf(per_channel(low, value, array))
        return None
    found = low.get(value)
    if len(shape) != len(out_shape) or shape[1] != channels:
        return None
    if isinstance(found, Lazy) and found.blocked:
        return found.expression if shape == out_shape else Leaf(low.blocked(value).view())
    if isinstance(found, Blocked):
        return Leaf(found.view())
    if shape == out_shape or math.prod(shape[2:]) == 1:
        return Leaf(low.blocked(value).view())
    return None


def per_channel(low: Lowering, key: Any, array: Array) -> Tensor:
    """Return one number a channel as an image in blocks, ``(1, blocks, 1, 1, lanes)``."""
    lanes = low.level.lanes
    blocks = -(-array.size // lanes)

    def make() -> Array:
        padded = np.zeros(blocks * lanes, np.float32)
        padded[: array.size] = array.reshape(-1)
        return padded

    buffer = low.weight(("channels", key), make, blocks * lanes * 4)
    return Tensor(buffer, FLOAT32, (1, blocks, 1, 1, lanes), (0, lanes, 0, 0, 1))


def lower_batch_norm(low: Lowering, node: ir.Node) -> None:
    """Lower a batch normalisation by fixed statistics: one multiplication, one addition."""
    attributes = low.attributes(node)
    arrays = [low.constant(value) for value in node.inputs[1:5]]
    if attributes.get("training_mode") or any(array is None for array in arrays):
        raise NotNative("statistics that are not constant")
    scale, bias, mean, variance = (np.asarray(array, np.float64) for array in arrays)
    factor = scale / np.sqrt(variance + attributes["epsilon"])
    out, x = node.outputs[0], node.inputs[0]
    if not low.is_float(x):
        raise NotNative(f"element type {low.dtype(x)}")
    blocked, (value,) = operands_of(low, [x], out)
    assert value is not None
    rank = len(low.shape(out))

    def leaf(name: str, array: Array) -> Leaf:
        kept = array.astype(np.float32).reshape(-1, *[1] * (rank - 2))
        if blocked:
            return Leaf(per_channel(low, (node, name), kept))
        buffer = low.weight((node, name), lambda: kept, kept.nbytes)
        return Leaf(Tensor(buffer, FLOAT32, kept.shape, row_major(kept.shape)))

    terms = (value, leaf("scale", factor), leaf("shift", bias - mean * factor))
    expression = Apply("v_fma({0}, {1}, {2})", terms, FLOAT32)
    keep(low, out, Lazy(expression, FLOAT32, low.shape(out), blocked, operators(low, node)))


RULES: dict[str, Rule] = {
    **dict.fromkeys(BUILDERS, lower_elementwise),
    "BatchNormalization": lower_batch_norm,
}
