"""Operators that move elements: views where possible, copies where not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.elementwise_loops import emit_copy
from hagane.native.kernels.kernel import Body, c_type
from hagane.native.kernels.tensor import Blocked, Tensor
from hagane.native.kernels.written import as_bits, bits_type, emit_written
from hagane.native.layouts.image_kernels import emit_image
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.forms import Lazy, Lowered
from hagane.native.lowering.state import Lowering, Rule
from hagane.symbolic import Dim, floordiv, maximum, minimum, product, symbols_of

# From so many inputs on, little memory is joined by one kernel.
_SEVERAL, _LITTLE_BYTES = 4, 1 << 18


def lower_reshape(low: Lowering, node: ir.Node) -> None:
    """Give the same elements another shape; the shape is known from type inference."""
    out = node.outputs[0]
    low.facts.dtype(out)
    image = _same_image(low, node.inputs[0], out)
    if image is not None:
        low.forms[out] = image
        return
    view = low.forms.plain(node.inputs[0]).viewed(low.facts.shape(out))
    low.forms[out] = view or low.forms.contiguous(node.inputs[0]).reshaped(low.facts.shape(out))


def _same_image(low: Lowering, value: ir.Value | None, out: ir.Value) -> Blocked | None:
    """Return an image in blocks under another shape that has its one long axis elsewhere."""
    found = low.forms.found(value) if value is not None else None
    if isinstance(found, Lazy) and found.blocked:
        found = low.forms.stored(value)
    if not isinstance(found, Blocked) or any(found.pads) or out in low.facts.outputs:
        return None
    shape = low.facts.shape(out)
    if len(shape) not in (3, 4) or shape[:2] != found.shape[:2] or 0 in shape:
        return None
    # (The elements are the same, so that the long axes are equally long.)
    lines = (shape[2:], found.shape[2:])
    same = all(len(sizes) - sizes.count(1) <= 1 for sizes in lines)
    return replace(found, shape=shape) if same else None


def lower_transpose(low: Lowering, node: ir.Node) -> None:
    """Return a view with its axes permuted; kernels that need rows in order copy it."""
    found = low.forms.plain(node.inputs[0])
    order = low.facts.attributes(node).get("perm") or list(range(len(found.shape)))[::-1]
    low.forms[node.outputs[0]] = found.permuted([int(i) for i in order])


def _normal(axis: int, rank: int) -> int:
    return axis + rank if axis < 0 else axis


def lower_concat(low: Lowering, node: ir.Node) -> None:
    """Copy each input into its part of the output; whole blocks of channels stay blocked."""
    out = node.outputs[0]
    inputs = [value for value in node.inputs if value is not None]
    axis = _normal(int(low.facts.attributes(node)["axis"]), len(low.facts.shape(out)))
    if axis == 1 and all(_in_blocks(low.forms.found(value)) for value in inputs):
        lanes = low.facts.level.lanes
        if all(low.facts.shape(value)[1] % lanes == 0 for value in inputs[:-1]):
            _concat_blocks(low, node, inputs)
            return
    target = low.forms.result(out)
    at: Dim = 0
    sources = [low.forms.plain(value) for value in inputs]
    if len(sources) >= _SEVERAL and _are_pieces(sources, target, axis):
        _join_pieces(low, node, sources, target)
        low.forms[out] = target
        return
    for source in sources:
        part = replace(target, shape=source.shape, offset=target.offset + at * target.strides[axis])
        if source.size != 0 and not source.is_at(part):
            emit_copy(low.recorder, source, part)
        at = at + source.shape[axis]
    low.forms[out] = target


def _are_pieces(sources: Sequence[Tensor], target: Tensor, axis: int) -> bool:
    """Whether sources become a little memory one behind the other."""
    whole = target.size * target.dtype.itemsize
    return (
        isinstance(whole, int)
        and whole <= _LITTLE_BYTES
        and product(target.shape[:axis]) == 1
        and all(source.contiguous for source in sources)
    )


def _join_pieces(low: Lowering, node: ir.Node, sources: Sequence[Tensor], target: Tensor) -> None:
    """Write one kernel that copies them all: a call of each takes longer than its copy."""
    lines, at = [], 0
    for i, source in enumerate(sources):
        assert isinstance(source.size, int)
        lines.append(f"memcpy(y + {at}, x{i}, {source.size} * sizeof(T));")
        at += source.size
    emit_written(
        low.recorder, node, "\n".join(lines),
        reads={f"x{i}": as_bits(source) for i, source in enumerate(sources)},
        writes={"y": as_bits(target)}, types={"T": bits_type(target.dtype)}, tasks=1,
        work=at * target.dtype.itemsize / 16,
    )  # fmt: skip


def _in_blocks(found: Lowered | None) -> bool:
    return isinstance(found, Blocked) or (isinstance(found, Lazy) and found.blocked)


def _concat_blocks(low: Lowering, node: ir.Node, inputs: list[ir.Value]) -> None:
    """Bring images in blocks, or values computed from such, into whole blocks of the output."""
    out = node.outputs[0]
    target = low.forms.new_blocked(out, low.facts.shape(out))
    view = target.view()
    at = 0
    for value in inputs:
        channels = low.facts.shape(value)[1]
        assert isinstance(channels, int), value
        blocks = -(-channels // target.lanes)
        shape = (view.shape[0], blocks, *view.shape[2:])
        part = replace(view, shape=shape, offset=view.offset + at * target.plane_stride)
        found = low.forms.get(value)
        if isinstance(found, Lazy):
            nodes = (*found.nodes, node)
            label = f"{found.operators}+{node.op_type} '{node.name}'"
            emit_image(low.recorder, label, found.expression, part, nodes=nodes)
        else:
            assert isinstance(found, Blocked), found
            emit_copy(low.recorder, found.view(), part)
        at += blocks
    low.forms[out] = target


def _ints(low: Lowering, node: ir.Node, index: int) -> list[int] | None:
    if len(node.inputs) <= index or node.inputs[index] is None:
        return None
    array = low.facts.constant(node.inputs[index])
    if array is None:
        raise NotNative(f"input {index + 1} is known only at run time")
    return [int(item) for item in array.reshape(-1)]


def lower_slice(low: Lowering, node: ir.Node) -> None:
    """Return a view of a slice whose bounds are fixed; the size of the axis may be open."""
    found = low.forms.plain(node.inputs[0])
    rank = len(found.shape)
    starts = _ints(low, node, 1)
    assert starts is not None
    axes = _ints(low, node, 3) or list(range(len(starts)))
    steps = _ints(low, node, 4) or [1] * len(starts)
    shape, strides, offset = list(found.shape), list(found.strides), found.offset
    out_shape = low.facts.shape(node.outputs[0])
    for start, step, axis in zip(starts, steps, axes, strict=True):
        axis = _normal(axis, rank)
        size = shape[axis]
        first: Dim = start + size if start < 0 else start
        first = minimum(maximum(first, 0), size - 1 if step < 0 else size)
        offset = offset + first * strides[axis]
        strides[axis] = strides[axis] * step
        shape[axis] = out_shape[axis]
    low.forms[node.outputs[0]] = Tensor(
        found.buffer, found.dtype, tuple(shape), tuple(strides), offset
    )


def lower_split(low: Lowering, node: ir.Node) -> None:
    """Return a view for each part."""
    found = low.forms.plain(node.inputs[0])
    axis = _normal(int(low.facts.attributes(node)["axis"]), len(found.shape))
    at: Dim = 0
    for out in node.outputs:
        shape = low.facts.shape(out)
        low.forms[out] = replace(found, shape=shape, offset=found.offset + at * found.strides[axis])
        at = at + shape[axis]


def _told(low: Lowering, *values: ir.Value | None) -> None:
    """Refuse numbers that only the data tell: a declared size of the result need not be theirs."""
    for value in values:
        known = value in low.facts.types.values or low.facts.constant(value) is not None
        if value is not None and not known:
            raise NotNative("a shape that only the data tell")


def lower_expand(low: Lowering, node: ir.Node) -> None:
    """Return a view in which axes of length one repeat."""
    _told(low, node.inputs[1])
    found = low.forms.plain(node.inputs[0])
    low.stretched.add(node)
    low.forms[node.outputs[0]] = found.broadcast(low.facts.shape(node.outputs[0]))


def lower_gather(low: Lowering, node: ir.Node) -> None:
    """Gather whole slices; an index out of range is reported, not followed."""
    axis_value = int(low.facts.attributes(node)["axis"])
    data, out = node.inputs[0], node.outputs[0]
    axis = _normal(axis_value, len(low.facts.shape(data)))
    fixed = low.facts.constant(node.inputs[1])
    size = low.facts.shape(data)[axis]
    # Where the size is open, only a run can tell whether the index is in range.
    if fixed is not None and fixed.size == 1 and isinstance(size, int):
        found = low.forms.plain(data)
        index = int(fixed.reshape(-1)[0])
        if not -size <= index < size:
            raise NotNative("an index out of range")
        index = index + size if index < 0 else index
        lead = [1] * fixed.ndim
        shape = (*found.shape[:axis], *lead, *found.shape[axis + 1 :])
        strides = (*found.strides[:axis], *[0] * fixed.ndim, *found.strides[axis + 1 :])
        low.forms[out] = Tensor(
            found.buffer, found.dtype, shape, strides, found.offset + index * found.strides[axis]
        )
        return
    source, indices = low.forms.contiguous(data), low.forms.contiguous(node.inputs[1])
    target = low.forms.result(out)
    inner = product(source.shape[axis + 1 :])
    text = """
int64_t at = first % count, outer = first / count;
for (int64_t slice = first; slice < last; slice++) {
const int64_t given = indices[at], index = given < 0 ? given + size : given;
if (index < 0 || index >= size) { hg_fail(thread, given); return; }
const T *from = x + (outer * size + index) * n; T *to = y + slice * n;
if (n * sizeof(T) >= 64) memcpy(to, from, n * sizeof(T));
else for (int64_t k = 0; k < n; k++) to[k] = from[k];
if (++at == count) at = 0, outer++; }"""
    emit_written(
        low.recorder, node, text,
        reads={"x": as_bits(source), "indices": indices}, writes={"y": as_bits(target)},
        sizes={"n": inner, "size": source.shape[axis], "count": indices.size},
        types={"T": bits_type(source.dtype)}, items=product(source.shape[:axis]) * indices.size,
        each=inner + 4, cost=0.2,
        failure=f"index {{value}} is out of range for axis {axis} with size {{0}}",
        failure_sizes=(source.shape[axis],),
    )  # fmt: skip
    low.forms[out] = target


def lower_pad(low: Lowering, node: ir.Node) -> None:
    """Fill the output with the constant, then copy the input into it."""
    attributes = low.facts.attributes(node)
    out = node.outputs[0]
    source = low.forms.plain(node.inputs[0])
    pads = _ints(low, node, 1)
    assert pads is not None
    value_input = node.inputs[2] if len(node.inputs) > 2 else None
    value = (
        low.facts.constant(value_input) if value_input is not None else np.zeros(1, source.dtype)
    )
    if value is None:
        raise NotNative("a padding value known only at run time")
    rank = len(source.shape)
    axes = _ints(low, node, 3)
    axes = list(range(rank)) if axes is None else [_normal(axis, rank) for axis in axes]
    if any(pad < 0 for pad in pads):
        raise NotNative("negative padding")
    if attributes["mode"] != "constant":
        _pad_by_repeating(low, node, source, axes, pads)
        return
    from hagane.native.kernels.elementwise_loops import emit_elementwise
    from hagane.native.kernels.expression import Constant

    target = low.forms.result(out)
    item = value.reshape(-1)[0].item()
    emit_elementwise(low.recorder, f"Pad '{node.name}'", Constant(item, source.dtype), target)
    offset = target.offset
    for axis, before in zip(axes, pads[: len(axes)], strict=True):
        offset = offset + before * target.strides[axis]
    if source.size != 0:
        emit_copy(low.recorder, source, replace(target, shape=source.shape, offset=offset))
    low.forms[out] = target


_INDEX = {
    "edge": "hg_min(hg_max(i, 0), n - 1)",
    "wrap": "(i % n + n) % n",
    "reflect": "n == 1 ? 0 : (i = (i % (2 * n - 2) + 2 * n - 2) % (2 * n - 2)) < n ? i : 2 * n - 2 - i",
}


def _pad_by_repeating(
    low: Lowering, node: ir.Node, source: Tensor, axes: list[int], pads: list[int]
) -> None:
    """Fill the padding from the input itself, by the mode's index rule for each axis."""
    out = node.outputs[0]
    before = dict(zip(axes, pads, strict=False))
    mode = low.facts.attributes(node)["mode"]
    if source.size == 0:
        raise NotNative("an empty input")
    target = low.forms.result(out)
    body = Body()
    body.helper(f"INLINE int64_t KERNEL_index(int64_t i, int64_t n) {{ return {_INDEX[mode]}; }}")
    kind = c_type(source.dtype)
    s, d = body.pointer(source), body.pointer(target, written=True)
    rank = len(target.shape)
    for axis, first, last in zip(axes, pads, pads[len(axes) :], strict=False):
        if first + last > 0 and not isinstance(source.shape[axis], int):
            size = body.size(source.shape[axis])
            body.add(f"if ({size} == 0) {{ hg_fail(thread, {axis}); return; }}")
    body.add("int64_t left = q, at = 0;")
    for axis in reversed(range(rank - 1)):
        n, stride = body.size(source.shape[axis]), body.size(source.strides[axis])
        length = body.size(target.shape[axis])
        body.add(
            f"at += KERNEL_index(left % {length} - {before.get(axis, 0)}, {n}) * {stride}; left /= {length};"
        )
    n, stride = body.size(source.shape[-1]), body.size(source.strides[-1])
    length, lead = body.size(target.shape[-1]), before.get(rank - 1, 0)
    body.add(
        f"const {kind} *from = {s} + at; {kind} *to = {d} + q * {length};",
        f"for (int64_t x = 0; x < {length}; x++) {{ int64_t i = x - {lead};",
        f"to[x] = from[(i >= 0 && i < {n} ? i : KERNEL_index(i, {n})) * {stride}]; }}",
    )
    failure = "axis {value} is empty, expected an element to repeat"
    low.recorder.emit(node, body, product(target.shape[:-1]), work=65536 * 0.5, failure=failure)
    low.forms[out] = target


def lower_constant_of_shape(low: Lowering, node: ir.Node) -> None:
    """Fill the output with one number."""
    from hagane.native.kernels.elementwise_loops import emit_elementwise
    from hagane.native.kernels.expression import Constant

    _told(low, node.inputs[0])
    out = node.outputs[0]
    tensor = low.facts.attributes(node).get("value")
    dtype = low.facts.dtype(out)
    item = 0 if tensor is None else np.asarray(tensor).reshape(-1)[0].item()
    target = low.forms.result(out)
    emit_elementwise(low.recorder, f"ConstantOfShape '{node.name}'", Constant(item, dtype), target)
    low.forms[out] = target


def lower_depth_to_space(low: Lowering, node: ir.Node) -> None:
    """Split channels into pixels: a transposed copy."""
    attributes = low.facts.attributes(node)
    size = int(attributes["blocksize"])
    found = low.forms.contiguous(node.inputs[0])
    n, _, h, w = found.shape
    out = node.outputs[0]
    channels = low.facts.shape(out)[1]
    if attributes["mode"] == "DCR":
        view = found.reshaped((n, size, size, channels, h, w)).permuted((0, 3, 4, 1, 5, 2))
    else:
        view = found.reshaped((n, channels, size, size, h, w)).permuted((0, 1, 4, 2, 5, 3))
    target = low.forms.result(out)
    emit_copy(low.recorder, view, target.reshaped(view.shape))
    low.forms[out] = target


def lower_space_to_depth(low: Lowering, node: ir.Node) -> None:
    """Gather blocks of pixels into channels: a transposed copy."""
    attributes = low.facts.attributes(node)
    size = int(attributes["blocksize"])
    found = low.forms.contiguous(node.inputs[0])
    n, c, h, w = found.shape
    order = (0, 3, 5, 1, 2, 4) if attributes.get("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    rows, columns = floordiv(h, size), floordiv(w, size)
    # (Not by ``reshaped``: that the sizes are multiples is known to the type rule.)
    steps = (found.strides[0], found.strides[1], found.strides[2] * size, found.strides[2])
    view = replace(
        found, shape=(n, c, rows, size, columns, size), strides=(*steps, size, 1)
    ).permuted(order)
    target = low.forms.result(node.outputs[0])
    emit_copy(low.recorder, view, target.reshaped(view.shape))
    low.forms[node.outputs[0]] = target


def lower_tile(low: Lowering, node: ir.Node) -> None:
    """Repeat the input: a copy from a view whose repeated axes have stride zero."""
    found = low.forms.plain(node.inputs[0])
    repeats = _ints(low, node, 1)
    assert repeats is not None
    shape: list[Dim] = []
    strides: list[Dim] = []
    for count, dim, stride in zip(repeats, found.shape, found.strides, strict=True):
        shape += [count, dim]
        strides += [0, stride]
    view = replace(found, shape=tuple(shape), strides=tuple(strides))
    target = low.forms.result(node.outputs[0])
    if target.size != 0:
        emit_copy(low.recorder, view, target.reshaped(shape))
    low.forms[node.outputs[0]] = target


def lower_trilu(low: Lowering, node: ir.Node) -> None:
    """Copy one triangle of each matrix, zeros beside it; the diagonal is fixed."""
    source, target = low.forms.contiguous(node.inputs[0]), low.forms.result(node.outputs[0])
    shift = 0
    if len(node.inputs) > 1 and node.inputs[1] is not None:
        array = low.facts.constant(node.inputs[1])
        if array is None:
            raise NotNative("a diagonal known only at run time")
        shift = int(array.reshape(-1)[0])
    emit_triangles(low, node, source, target, str(shift), {})
    low.forms[node.outputs[0]] = target


def emit_triangles(
    low: Lowering,
    node: ir.Node,
    source: Tensor,
    target: Tensor,
    diagonal: str,
    reads: Mapping[str, Tensor],
) -> None:
    """Write the kernel that copies one triangle of each matrix, with zeros beside it.

    Args:
        low: Takes the kernel.
        node: The node, of which the attribute ``upper`` counts.
        source: The matrices, in row-major order.
        target: The result.
        diagonal: C of the first diagonal of the triangle.
        reads: Operands of that.
    """
    upper = low.facts.attributes(node)["upper"]
    parts = ("memset", "memcpy") if upper else ("memcpy", "memset")
    left, right = (
        f"memset(to{at}, 0, {count} * sizeof(T));"
        if part == "memset"
        else f"memcpy(to{at}, from{at}, {count} * sizeof(T));"
        for part, at, count in zip(parts, ("", " + cut"), ("cut", "(n - cut)"), strict=True)
    )
    text = f"""
const int64_t diagonal = hg_max(-rows - 1, hg_min({diagonal}, n + 1));
for (int64_t row = first; row < last; row++) {{
const T *from = x + row * n; T *to = y + row * n;
const int64_t cut = hg_min(n, hg_max(0, row % rows + diagonal{"" if upper else " + 1"}));
{left} {right} }}"""
    emit_written(
        low.recorder, node, text,
        reads={"x": as_bits(source), **reads}, writes={"y": as_bits(target)},
        sizes={"n": source.shape[-1], "rows": source.shape[-2]},
        types={"T": bits_type(source.dtype)}, items=product(source.shape[:-1]),
        each=source.shape[-1], cost=0.1,
    )  # fmt: skip


def lower_range(low: Lowering, node: ir.Node) -> None:
    """Count from a start in equal steps, where the number of steps is known beforehand."""
    out = node.outputs[0]
    dtype, (count,) = low.facts.dtype(out), low.facts.shape(out)
    if dtype.name not in ("int16", "int32", "int64"):
        raise NotNative(f"element type {dtype}")
    if set(symbols_of(count)) & low.facts.types.invented:
        raise NotNative("a count that data decide")
    _told(low, *node.inputs)
    start, step = low.forms.contiguous(node.inputs[0]), low.forms.contiguous(node.inputs[2])
    target = low.forms.result(out)
    body = Body()
    a, b, d = body.pointer(start), body.pointer(step), body.pointer(target, written=True)
    body.add(f"for (int64_t i = 0; i < {body.size(count)}; i++) {d}[i] = {a}[0] + i * {b}[0];")
    low.recorder.emit(node, body, 1, work=1000.0)
    low.forms[out] = target


RULES: dict[str, Rule] = {
    "Concat": lower_concat,
    "ConstantOfShape": lower_constant_of_shape,
    "DepthToSpace": lower_depth_to_space,
    "Expand": lower_expand,
    "Flatten": lower_reshape,
    "Gather": lower_gather,
    "Pad": lower_pad,
    "Range": lower_range,
    "Reshape": lower_reshape,
    "Slice": lower_slice,
    "SpaceToDepth": lower_space_to_depth,
    "Split": lower_split,
    "Squeeze": lower_reshape,
    "Tile": lower_tile,
    "Trilu": lower_trilu,
    "Transpose": lower_transpose,
    "Unsqueeze": lower_reshape,
}
