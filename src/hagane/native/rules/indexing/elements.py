"""GatherElements and ScatterElements: an index for each element."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.elementwise_loops import emit_copy
from hagane.native.kernels.kernel import c_type
from hagane.native.kernels.tensor import Tensor
from hagane.native.kernels.written import (
    as_bits,
    bits_type,
    coordinates,
    emit_written,
    loaded,
    number_type,
    stored,
)
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.indexing.axes import axis_of, whole_numbers
from hagane.symbolic import Dim, ceildiv, product

# Elements of the last axis that one task handles at most.
_PIECE = 1024


def _sizes(whole: Tensor, part: Tensor) -> dict[str, Dim]:
    return {
        **{f"X{i}": dim for i, dim in enumerate(whole.shape)},
        **{f"I{i}": dim for i, dim in enumerate(part.shape)},
        **{f"S{i}": stride for i, stride in enumerate(whole.strides)},
    }


def _checks(whole: Tensor, part: Tensor, axis: int) -> str:
    """Return C text that refuses indices of more places than the indexed tensor has."""
    tests = [
        f"I{i} > X{i}"
        for i, (have, want) in enumerate(zip(whole.shape, part.shape, strict=True))
        if i != axis and have != want
    ]
    return f"if ({' || '.join(tests)}) {{ hg_fail(thread, 0); return; }}" if tests else ""


def lower_gather_elements(low: Lowering, node: ir.Node) -> None:
    """Lower GatherElements of any element type."""
    x, index = as_bits(low.forms.contiguous(node.inputs[0])), whole_numbers(low, node.inputs[1])
    rank = len(x.shape)
    if rank == 0:
        raise NotNative("a tensor without axes")
    axis, last = axis_of(low, node, rank), rank - 1
    y = low.forms.result(node.outputs[0])
    places = [f"c{i} * S{i}" for i in range(last) if i != axis]
    text = f"""
{_checks(x, index, axis)}
for (int64_t row = first; row < last; row++) {{
int64_t left = row;
{coordinates([f"c{i}" for i in range(last)], [f"I{i}" for i in range(last)]) if last else ""}
const T *from = x + ({" + ".join(places) or "0"});
for (int64_t j = 0; j < I{last}; j++) {{
int64_t at = index[row * I{last} + j];
if (at < -X{axis} || at >= X{axis}) {{ hg_fail(thread, at); return; }}
if (at < 0) at += X{axis};
y[row * I{last} + j] = from[at * S{axis}{"" if axis == last else " + j"}];
}} }}"""
    emit_written(
        low.recorder, node, text,
        reads={"x": x, "index": index}, writes={"y": as_bits(y)}, sizes=_sizes(x, index),
        types={"T": bits_type(x.dtype)}, items=product(index.shape[:-1]), each=index.shape[-1],
    )  # fmt: skip
    low.forms[node.outputs[0]] = y


def combined(reduction: str, dtype: np.dtype[np.generic], old: str, new: str) -> str:
    """Return C text that joins an element with another, as the attribute ``reduction`` has it."""
    kind = number_type(dtype)
    if dtype == np.bool_:
        reduction = {"add": "max", "mul": "min"}.get(reduction, reduction)
    match reduction:
        case "none":
            return new
        case "add":
            return f"({kind})({old} + {new})"
        case "mul":
            return f"({kind})({old} * {new})"
        case "max":
            return f"({old} >= {new} || {old} != {old} ? {old} : {new})"
        case "min":
            return f"({old} <= {new} || {old} != {old} ? {old} : {new})"
    raise NotNative(f"reduction '{reduction}'")


def copied(low: Lowering, node: ir.Node) -> Tensor:
    """Return a node's result, into which its first input is copied."""
    x, y = low.forms.plain(node.inputs[0]), low.forms.result(node.outputs[0])
    if x.size != 0 and not x.is_at(y):
        emit_copy(low.recorder, x, y)
    return y


def put(low: Lowering, node: ir.Node, y: Tensor) -> tuple[Tensor, str, dict[str, str]]:
    """Return the scattered values, C text that joins ``u`` with ``*to``, and its types."""
    updates = low.forms.contiguous(node.inputs[2])
    reduction = str(low.facts.attributes(node)["reduction"])
    dtype = y.dtype
    if reduction == "none":
        return as_bits(updates), "*to = u;", {"T": bits_type(dtype), "N": bits_type(dtype)}
    old, new = loaded(dtype, "*to"), loaded(dtype, "u")
    kind = number_type(dtype)
    text = (
        f"{{ {kind} o = {old}, n = {new}; "
        f"*to = {stored(dtype, combined(reduction, dtype, 'o', 'n'))}; }}"
    )
    return updates, text, {"T": c_type(dtype), "N": kind}


def lower_scatter_elements(low: Lowering, node: ir.Node) -> None:
    """Lower ScatterElements; places that lie apart off the axis are independent of one another."""
    index = whole_numbers(low, node.inputs[1])
    rank = len(index.shape)
    if rank == 0:
        raise NotNative("a tensor without axes")
    axis, last = axis_of(low, node, rank), rank - 1
    y = copied(low, node)
    updates, join, types = put(low, node, y)
    into = as_bits(y) if types["T"] == types["N"] and join == "*to = u;" else y
    others = [i for i in range(rank) if i not in (axis, last)]
    steps = dict(zip(range(rank), _strides(index), strict=True))
    sizes = _sizes(y, index) | {f"J{i}": step for i, step in steps.items()}
    taken = coordinates([f"c{i}" for i in others], [f"I{i}" for i in others]) if others else ""
    into_row = " + ".join(f"c{i} * S{i}" for i in others) or "0"
    from_row = " + ".join(f"c{i} * J{i}" for i in others) or "0"
    pieces: Dim = 1 if axis == last else ceildiv(index.shape[last], _PIECE)
    along = (
        "j0 = 0, j1 = 1"
        if axis == last
        else f"j0 = piece * {_PIECE}, j1 = hg_min(j0 + {_PIECE}, I{last})"
    )
    text = f"""
{_checks(y, index, axis)}
int64_t left = q / pieces, piece = q % pieces; (void)piece;
{taken}
int64_t base = {into_row}, from = {from_row}, {along};
for (int64_t k = 0; k < I{axis}; k++)
for (int64_t j = j0; j < j1; j++) {{
int64_t place = from + k * J{axis}{"" if axis == last else " + j"};
int64_t at = index[place];
if (at < -X{axis} || at >= X{axis}) {{ hg_fail(thread, at); return; }}
if (at < 0) at += X{axis};
T u = updates[place], *to = y + base + at * S{axis}{"" if axis == last else " + j"};
{join}
}}"""
    rows = product([index.shape[i] for i in others])
    emit_written(
        low.recorder, node, text,
        reads={"index": index, "updates": updates}, writes={"y": into},
        sizes={**sizes, "pieces": pieces}, types={"T": types["T"]},
        tasks=rows * pieces, cost=16.0,
    )  # fmt: skip
    low.forms[node.outputs[0]] = y


def _strides(tensor: Tensor) -> tuple[Dim, ...]:
    return tensor.strides


RULES: dict[tuple[str, str], Rule] = {
    ("", "GatherElements"): lower_gather_elements,
    ("", "ScatterElements"): lower_scatter_elements,
}
