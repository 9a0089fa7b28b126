"""Slice, Split and CenterCropPad by bounds that come with the data."""

from __future__ import annotations

from dataclasses import replace

import onnx_ir as ir

from hagane.native.kernels.elementwise_loops import emit_copy, emit_elementwise
from hagane.native.kernels.expression import Constant
from hagane.native.kernels.recorder import label_of
from hagane.native.kernels.tensor import Tensor
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.found import new_size
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.indexing.axes import axis_of, number_input, whole_numbers
from hagane.native.rules.shaping.numbers import found_numbers, length_of
from hagane.symbolic import Dim

_BOUNDS = """
int64_t step = {step}, size = {size}, start = starts[{i}], end = ends[{i}];
if (step == 0) {{ hg_fail(thread, 0); return; }}
start = start < 0 ? (start < -size ? 0 : start + size) : start;
end = end < 0 ? (end < -size ? -1 : end + size) : end;
int64_t top = step < 0 ? size - 1 : size;
start = start > top ? top : start;
end = end > size ? size : step > 0 && end < 0 ? 0 : end;
int64_t count = step > 0 ? (end > start ? (end - start - 1) / step + 1 : 0)
: start > end ? (uint64_t)(start - end - 1) / (uint64_t)(-(step + 1) + 1ULL) + 1 : 0;
if (size == 0) count = start = 0;
"""


def lower_slice(low: Lowering, node: ir.Node) -> None:
    """Return a view of a slice whose bounds a kernel reads."""
    found, out = low.forms.plain(node.inputs[0]), node.outputs[0]
    rank, shape = len(found.shape), low.facts.shape(out)
    count = length_of(low, node.inputs[1])
    reads = {
        "starts": whole_numbers(low, node.inputs[1]),
        "ends": whole_numbers(low, node.inputs[2]),
    }
    axes_input, steps_input = number_input(low, node, 3), number_input(low, node, 4)
    axes = list(range(count)) if axes_input is None else None
    if axes_input is not None:
        known = low.facts.constant(axes_input)
        if known is not None:
            axes = [int(axis) % rank for axis in known.reshape(-1)]
        else:
            reads["axes"] = whole_numbers(low, axes_input)
    steps = None if steps_input is None else low.facts.constant(steps_input)
    if steps_input is not None:
        reads["steps"] = whole_numbers(low, steps_input)
    sizes = {f"X{i}": dim for i, dim in enumerate(found.shape)}
    wanted: list[Dim] = []
    strides, offset, result = list(found.strides), found.offset, list(found.shape)
    lines: list[str] = []
    for number in range(count) if axes is not None else range(rank):
        axis = axes[number] if axes is not None else number
        step: Dim = new_size(low, out, f"step {axis}")
        if axes is not None and steps_input is None:
            step = 1
        elif axes is not None and steps is not None:
            step = int(steps.reshape(-1)[number])
        first: Dim = new_size(low, out, f"first {axis}")
        at = 3 * number
        put = f"found[{at}] = count; found[{at + 1}] = start; found[{at + 2}] = step;"
        if axes is not None:
            read_step = "1" if steps_input is None else f"steps[{number}]"
            bounds = _BOUNDS.format(i=number, step=read_step, size=f"X{axis}")
            lines.append(f"{{ {bounds} {put} }}")
        else:
            lines.append(
                f"found[{at}] = X{axis}; found[{at + 1}] = 0; found[{at + 2}] = 1;\n"
                f"for (int64_t i = 0; i < {count}; i++) {{\n"
                f"if (axes[i] < -{rank} || axes[i] >= {rank}) {{ hg_fail(thread, axes[i]); return; }}\n"
                f"if (axes[i] == {axis} || axes[i] == {axis - rank}) {{"
                + _BOUNDS.format(
                    i="i", step="1" if steps_input is None else "steps[i]", size=f"X{axis}"
                )
                + f"{put} }} }}"
            )
        wanted += [shape[axis], first, step]
        offset = offset + first * strides[axis]
        strides[axis], result[axis] = strides[axis] * step, shape[axis]
    found_numbers(low, node, "\n".join(lines), wanted, reads=reads, sizes=sizes)
    low.forms[out] = Tensor(found.buffer, found.dtype, tuple(result), tuple(strides), offset)


def lower_split(low: Lowering, node: ir.Node) -> None:
    """Return a view for each part, of lengths that a kernel reads."""
    found = low.forms.plain(node.inputs[0])
    axis = axis_of(low, node, len(found.shape))
    lengths = whole_numbers(low, number_input(low, node, 1))
    count = len(node.outputs)
    shapes = [low.facts.shape(out)[axis] for out in node.outputs]
    text = f"""
int64_t total = 0;
for (int64_t i = 0; i < {count}; i++) {{
if (lengths[i] < 0) {{ hg_fail(thread, lengths[i]); return; }}
total += found[i] = lengths[i];
}}
if (total != size) {{ hg_fail(thread, total); return; }}"""
    sizes = {"size": found.shape[axis]}
    found_numbers(low, node, text, shapes, reads={"lengths": lengths}, sizes=sizes)
    at: Dim = 0
    for out, length in zip(node.outputs, shapes, strict=True):
        shape = (*found.shape[:axis], length, *found.shape[axis + 1 :])
        low.forms[out] = replace(found, shape=shape, offset=found.offset + at * found.strides[axis])
        at = at + length


def lower_center_crop_pad(low: Lowering, node: ir.Node) -> None:
    """Copy the middle of the input to the middle of zeros."""
    found, out = low.forms.plain(node.inputs[0]), node.outputs[0]
    rank, shape = len(found.shape), low.facts.shape(out)
    given = low.facts.attributes(node).get("axes")
    axes = list(range(rank)) if given is None else [int(axis) % rank for axis in given]
    lines, wanted = [], []
    part: list[Dim] = list(shape)
    source: Dim = found.offset
    strides = found.strides
    cuts: list[tuple[int, Dim]] = []
    for number, axis in enumerate(axes):
        skip, lead, both = (
            new_size(low, out, f"{name} {axis}") for name in ("skip", "lead", "both")
        )
        lines.append(
            f"{{ int64_t want = shape[{number}], have = X{axis};\n"
            "if (want < 0) { hg_fail(thread, want); return; }\n"
            f"found[{4 * number}] = want; found[{4 * number + 1}] = want < have ? (have - want) / 2 : 0;\n"
            f"found[{4 * number + 2}] = want < have ? 0 : (want - have) / 2;\n"
            f"found[{4 * number + 3}] = want < have ? want : have; }}"
        )
        wanted += [shape[axis], skip, lead, both]
        part[axis] = both
        source = source + skip * strides[axis]
        cuts.append((axis, lead))
    reads = {"shape": whole_numbers(low, node.inputs[1])}
    sizes = {f"X{i}": dim for i, dim in enumerate(found.shape)}
    found_numbers(low, node, "\n".join(lines), wanted, reads=reads, sizes=sizes)
    result = low.forms.result(out)
    if found.dtype.kind not in "biuf":
        raise NotNative(f"element type {found.dtype}")
    emit_elementwise(low.recorder, label_of(node), Constant(0, found.dtype), result)
    offset: Dim = result.offset
    for axis, before in cuts:
        offset = offset + before * result.strides[axis]
    middle = replace(found, shape=tuple(part), offset=source)
    emit_copy(low.recorder, middle, replace(result, shape=tuple(part), offset=offset))
    low.forms[out] = result


RULES: dict[tuple[str, str], Rule] = {
    ("", "CenterCropPad"): lower_center_crop_pad,
    ("", "Slice"): lower_slice,
    ("", "Split"): lower_split,
}
