"""Elementwise operators as expressions; groups of them become one kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.elementwise_loops import emit_elementwise
from hagane.native.kernels.expression import (
    BOOL,
    FLOAT32,
    HALVES,
    NARROW,
    TINY_FLOATS,
    Apply,
    Constant,
    Expression,
    Leaf,
    is_real,
    leaves,
    vectorizes,
)
from hagane.native.kernels.packing import Packing, as_is, padded_rows
from hagane.native.kernels.tensor import Blocked, Buffer, Kind, Tensor, row_major
from hagane.native.lowering.facts import DRAWN, NotNative
from hagane.native.lowering.forms import Lazy, operand
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.formulas import BUILDERS, Attributes
from hagane.ops.definition import Array
from hagane.symbolic import product

# Expressions that read more tensors than this are stored, so that kernels stay small.
_MOST_LEAVES = 12


def lower_elementwise(low: Lowering, node: ir.Node) -> None:
    """Make the node's output a lazy expression over its operands."""
    out = node.outputs[0]
    attributes = low.facts.attributes(node)
    _check(low, node, attributes)
    n_inputs = 1 if node.op_type in ("Dropout", "CastLike", "Identity") else len(node.inputs)
    inputs = list(node.inputs[:n_inputs])
    blocked, operands = operands_of(low, inputs, out)
    expression = _built(node, attributes, operands, low.facts.dtype(out))
    low.stretched.add(node)
    lazy = Lazy(
        expression, low.facts.dtype(out), low.facts.shape(out), blocked, nodes_of(low, node)
    )
    keep(low, out, lazy)


def _built(
    node: ir.Node,
    attributes: Attributes,
    operands: Sequence[Expression | None],
    dtype: np.dtype[Any],
) -> Expression:
    """Return a node's expression; 16-bit floats are widened, and the result is rounded."""
    kinds = {found.dtype for found in operands if found is not None}
    if dtype not in HALVES and kinds.isdisjoint(NARROW):
        return BUILDERS[node.op_type](attributes, operands, dtype)  # type: ignore[arg-type]
    if node.op_type in _KEEP_BITS and kinds - {BOOL} == {dtype}:
        return BUILDERS[node.op_type](attributes, operands, dtype)  # type: ignore[arg-type]
    if node.op_type in ("Cast", "CastLike"):
        if dtype in HALVES:
            operands = [found and _as_float(found, "hg_odd({0})") for found in operands]
    elif node.op_type == "Pow":
        operands = [found and _as_float(found, "(float){0}") for found in operands]
    elif any(not _widens(kind) for kind in kinds):
        raise NotNative(f"a result of {dtype} that is rounded twice")
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
    return dtype in NARROW or dtype in (FLOAT32, BOOL) or dtype.kind in "iu"


def _widened(expression: Expression) -> Expression:
    dtype = expression.dtype
    if dtype not in HALVES and dtype not in TINY_FLOATS:
        return expression
    if isinstance(expression, Constant):
        return Constant(expression.value, FLOAT32)
    return Apply("{0}", (expression,), FLOAT32, vector=dtype in HALVES)


def _as_float(expression: Expression, text: str) -> Expression:
    """Return a double as a float, by C text that says how."""
    if expression.dtype != np.float64:
        return expression
    return Apply(text, (expression,), FLOAT32, vector=False)


def nodes_of(low: Lowering, node: ir.Node) -> tuple[ir.Node, ...]:
    """Return the nodes of a lazy value: this one after those of its lazy inputs."""
    forms = [low.forms.found(value) for value in node.inputs if value is not None]
    before = [each for form in forms if isinstance(form, Lazy) for each in form.nodes]
    return (*before, node)


def _check(low: Lowering, node: ir.Node, attributes: Attributes) -> None:
    if node.op_type != "Dropout":
        if any(value is not None and low.facts.uses(value) for value in node.outputs[1:]):
            raise NotNative("a second output")
        return
    ratio, training = (*map(low.facts.constant, node.inputs[1:]), None, None)[:2]
    trains = len(node.inputs) > 2 and node.inputs[2] is not None
    if trains and (training is None or bool(training)) and (ratio is None or ratio.any()):
        raise NotNative(DRAWN)


def lower_dropout(low: Lowering, node: ir.Node) -> None:
    """Lower Dropout where it keeps everything."""
    lower_elementwise(low, node)
    for mask in node.outputs[1:]:
        if low.facts.uses(mask):
            target = low.forms.result(mask)
            emit_elementwise(low.recorder, f"mask '{node.name}'", Constant(True, BOOL), target)
            low.forms[mask] = target


def function_of(low: Lowering, value: ir.Value) -> tuple[ir.Node, Expression] | None:
    """Return the node that alone reads a float32 value and computes a function of it, and that.

    The function reads one tensor, which stands for the value; all else in it is constant, and it
    can be computed on vectors.
    """
    node = low.only_use(value)
    if node is None or node.op_type not in BUILDERS or len(node.outputs) != 1:
        return None
    out = node.outputs[0]
    if low.facts.dtype(out) != FLOAT32 or low.facts.shape(out) != low.facts.shape(value):
        return None
    attributes = low.facts.attributes(node)
    try:
        _check(low, node, attributes)
    except NotNative:
        return None
    stand_in = Leaf(Tensor(Buffer(str(value.name), 0, Kind.ARENA), FLOAT32, (), ()))
    n_inputs = 1 if node.op_type in ("Dropout", "CastLike", "Identity") else len(node.inputs)
    operands: list[Expression | None] = []
    for each in node.inputs[:n_inputs]:
        found = stand_in if each is value else None if each is None else _scalar(low, each)
        if each is not None and found is None:
            return None
        operands.append(found)
    expression = _built(node, attributes, operands, FLOAT32)
    return (node, expression) if vectorizes(expression) else None


def keep(low: Lowering, value: ir.Value, lazy: Lazy) -> None:
    """Hold an elementwise value back for its one reader, or store it where it has several."""
    n_leaves = sum(1 for _ in leaves(lazy.expression))
    if low.only_use(value) is not None and n_leaves <= _MOST_LEAVES:
        low.forms[value] = lazy
    elif isinstance(lazy.expression, Leaf) and value not in low.facts.outputs and not lazy.blocked:
        low.forms[value] = lazy.expression.tensor
    else:
        low.forms[value] = low.forms.store(value, lazy)


def operands_of(
    low: Lowering, inputs: Sequence[ir.Value | None], out: ir.Value
) -> tuple[bool, list[Expression | None]]:
    """Return the operands of an elementwise node, and whether they are blocked images."""
    shape = low.facts.shape(out)
    forms = [None if value is None else low.forms.get(value) for value in inputs]
    # Blocks hold float32, and so do results in them.
    is_blocked = low.facts.dtype(out) == FLOAT32 and any(
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
    return False, [None if value is None else _plain_operand(low, value, out) for value in inputs]


def _scalar(low: Lowering, value: ir.Value) -> Constant | None:
    array = low.facts.constant(value)
    if array is None or array.size != 1:
        return None
    dtype = low.facts.dtype(value)
    item = array.reshape(-1)[0]
    if is_real(dtype):
        return Constant(float(item), dtype)
    return Constant(bool(item) if dtype == BOOL else int(item), dtype)


def _plain_operand(low: Lowering, value: ir.Value, out: ir.Value) -> Expression:
    scalar = _scalar(low, value)
    if scalar is not None:
        return scalar
    found = low.forms.get(value)
    if isinstance(found, Lazy) and not found.blocked:
        # The result's shape may be larger; then computing it once is cheaper. (Nodes held back
        # has one reader: the node at hand, which counts as done by now.)
        fits = low.facts.shape(out) == low.facts.shape(value)
        return found.expression if fits else operand(low.forms.stored(value))
    return Leaf(low.forms.plain(value))


def _blocked_operand(low: Lowering, value: ir.Value | None, out: ir.Value) -> Expression | None:
    if value is None:
        return None
    scalar = _scalar(low, value)
    if scalar is not None:
        return scalar
    if low.facts.dtype(value) != FLOAT32:
        return None
    out_shape, shape = low.facts.shape(out), low.facts.shape(value)
    channels = out_shape[1]
    array = low.facts.constant(value)
    if array is not None:
        padded = (1,) * (len(out_shape) - len(shape)) + shape
        if padded == (1, channels) + (1,) * (len(out_shape) - 2):
            return Leaf(per_channel(low, value, array))
        return None
    found = low.forms.get(value)
    if len(shape) != len(out_shape) or shape[1] != channels:
        return None
    if isinstance(found, Lazy) and found.blocked:
        return found.expression if shape == out_shape else Leaf(low.forms.blocked(value).view())
    if isinstance(found, Blocked):
        return Leaf(found.view())
    if shape == out_shape or product(shape[2:]) == 1:
        return Leaf(low.forms.blocked(value).view())
    return None


def per_channel(low: Lowering, key: Any, array: Array) -> Tensor:
    """Return one number a channel as an image in blocks, ``(1, blocks, 1, 1, lanes)``."""
    lanes = low.facts.level.lanes
    blocks = -(-array.size // lanes)
    packing = Packing(padded_rows, ((array,), blocks * lanes, "float32"))
    buffer = low.recorder.weight(("channels", key), packing, blocks * lanes * 4)
    return Tensor(buffer, FLOAT32, (1, blocks, 1, 1, lanes), (0, lanes, 0, 0, 1))


def lower_batch_norm(low: Lowering, node: ir.Node) -> None:
    """Lower a batch normalisation by fixed statistics: one multiplication, one addition."""
    attributes = low.facts.attributes(node)
    arrays = [low.facts.constant(value) for value in node.inputs[1:5]]
    if attributes.get("training_mode") or any(array is None for array in arrays):
        raise NotNative("statistics that are not constant")
    scale, bias, mean, variance = (np.asarray(array, np.float64) for array in arrays)
    factor = scale / np.sqrt(variance + attributes["epsilon"])
    out, x = node.outputs[0], node.inputs[0]
    if not low.facts.is_float(x):
        raise NotNative(f"element type {low.facts.dtype(x)}")
    blocked, (value,) = operands_of(low, [x], out)
    assert value is not None
    rank = len(low.facts.shape(out))

    def leaf(name: str, array: Array) -> Leaf:
        kept = array.astype(np.float32).reshape(-1, *[1] * (rank - 2))
        if blocked:
            return Leaf(per_channel(low, (node, name), kept))
        buffer = low.recorder.weight((node, name), Packing(as_is, (kept,)), kept.nbytes)
        return Leaf(Tensor(buffer, FLOAT32, kept.shape, row_major(kept.shape)))

    terms = (value, leaf("scale", factor), leaf("shift", bias - mean * factor))
    expression = Apply("v_fma({0}, {1}, {2})", terms, FLOAT32)
    keep(low, out, Lazy(expression, FLOAT32, low.facts.shape(out), blocked, nodes_of(low, node)))


RULES: dict[str, Rule] = {
    **dict.fromkeys(BUILDERS, lower_elementwise),
    "BatchNormalization": lower_batch_norm,
    "Dropout": lower_dropout,
}
