"""Results of a shape that comes with the data: filled, repeated, padded, counted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.elementwise_loops import emit_elementwise
from hagane.native.kernels.expression import Constant
from hagane.native.kernels.tensor import Tensor
from hagane.native.kernels.written import (
    as_bits,
    bits_type,
    coordinates,
    emit_written,
    is_real,
    loaded,
    number_type,
    stored,
)
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.found import new_size
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.indexing.axes import number_input, whole_numbers
from hagane.native.rules.movement import emit_triangles
from hagane.native.rules.shaping.numbers import found_numbers, length_of
from hagane.symbolic import Dim, product

# More bytes than any memory holds are refused before they are multiplied.
_MOST = "(1LL << 46)"


def _shape_numbers(low: Lowering, node: ir.Node, shape: Tensor, wanted: tuple[Dim, ...]) -> None:
    """Find the sizes that a tensor of sizes gives."""
    text = f"""
double total = 1;
for (int64_t i = 0; i < {len(wanted)}; i++) {{
if (shape[i] < 0) {{ hg_fail(thread, shape[i]); return; }}
total *= (double)shape[i];
found[i] = shape[i];
}}
if (total > (double){_MOST}) {{ hg_fail(thread, -1); return; }}"""
    found_numbers(low, node, text, list(wanted), reads={"shape": shape})


def lower_constant_of_shape(low: Lowering, node: ir.Node) -> None:
    """Fill a result whose shape a kernel reads."""
    out = node.outputs[0]
    length_of(low, node.inputs[0])
    _shape_numbers(low, node, whole_numbers(low, node.inputs[0]), low.facts.shape(out))
    tensor = low.facts.attributes(node).get("value")
    dtype = low.facts.dtype(out)
    item = 0 if tensor is None else np.asarray(tensor).reshape(-1)[0].item()
    target = low.forms.result(out)
    label = f"ConstantOfShape '{node.name}'"
    emit_elementwise(low.recorder, label, Constant(item, dtype), target)
    low.forms[out] = target


def lower_reshape(low: Lowering, node: ir.Node) -> None:
    """Give the same elements a shape that a kernel reads."""
    out = node.outputs[0]
    shape, x = low.facts.shape(out), low.forms.contiguous(node.inputs[0])
    keeps = not low.facts.attributes(node)["allowzero"]
    rank, have = len(shape), len(x.shape)
    copied = f"""
if (n == 0 && {int(keeps)}) {{
if (i >= {have}) {{ hg_fail(thread, i); return; }}
n = dims[i];
}}"""
    dims = ", ".join(f"X{i}" for i in range(have)) or "0"
    text = f"""
const int64_t dims[] = {{{dims}}}; (void)dims;
int64_t open = -1, rest = 1;
for (int64_t i = 0; i < {rank}; i++) {{
int64_t n = shape[i];
{copied}
if (n < -1 || (n == -1 && open >= 0)) {{ hg_fail(thread, n); return; }}
if (n == -1) {{ open = i; continue; }}
if (n != 0 && rest > {_MOST} / n) {{ hg_fail(thread, n); return; }}
rest *= found[i] = n;
}}
if (open >= 0) {{
if (rest == 0 || total % rest != 0) {{ hg_fail(thread, total); return; }}
found[open] = total / rest;
}} else if (rest != total) {{ hg_fail(thread, rest); return; }}"""
    sizes: dict[str, Dim] = {f"X{i}": dim for i, dim in enumerate(x.shape)}
    found_numbers(
        low, node, text, list(shape),
        reads={"shape": whole_numbers(low, node.inputs[1])}, sizes=sizes | {"total": x.size},
    )  # fmt: skip
    low.forms[out] = x.reshaped(shape)


def _repeated(low: Lowering, node: ir.Node, x: Tensor, place: str, row: str) -> None:
    """Write the kernel whose elements are those of ``x`` at ``place`` of their coordinates.

    Args:
        low: The state of lowering.
        node: The node.
        x: Its operand, in row-major order.
        place: C of a coordinate of the operand from ``c{i}`` of the result, sizes ``X{i}``, ``Y{i}``.
        row: C that fills a row of ``Y`` elements ``to`` from one of ``X`` elements ``from``.
    """
    out = node.outputs[0]
    y = low.forms.result(out)
    rank = len(y.shape)
    lead, last = rank - len(x.shape), rank - 1
    sizes: dict[str, Dim] = {f"Y{i}": dim for i, dim in enumerate(y.shape)}
    sizes |= {f"X{i}": x.shape[i - lead] for i in range(lead, rank)}
    sizes |= {f"S{i}": x.strides[i - lead] for i in range(lead, rank)}
    at = " + ".join(f"({place.format(i=i)}) * S{i}" for i in range(lead, last))
    text = f"""
const int64_t Y = Y{last}, X = {f"X{last}" if last >= lead else "1"};
for (int64_t row = first; row < last; row++) {{
int64_t left = row;
{coordinates([f"c{i}" for i in range(last)], [f"Y{i}" for i in range(last)]) if last else "(void)left;"}
const T *from = x + ({at or "0"});
T *to = y + row * Y;
{row}
}}"""
    emit_written(
        low.recorder, node, text,
        reads={"x": as_bits(x)}, writes={"y": as_bits(y)}, sizes=sizes,
        types={"T": bits_type(x.dtype)}, items=product(y.shape[:-1]), each=y.shape[-1], cost=0.3,
    )  # fmt: skip
    low.forms[out] = y


def lower_expand(low: Lowering, node: ir.Node) -> None:
    """Repeat axes of length one as far as a shape says that a kernel reads."""
    out, x = node.outputs[0], low.forms.contiguous(node.inputs[0])
    shape, count = low.facts.shape(out), length_of(low, node.inputs[1])
    rank, have = len(shape), len(x.shape)
    if rank == 0:
        low.forms[out] = x
        return
    lines = []
    for i in range(rank):
        of_x, of_shape = i - (rank - have), i - (rank - count)
        x_size = f"X{of_x}" if of_x >= 0 else "1"
        wanted = f"shape[{of_shape}]" if of_shape >= 0 else "1"
        lines.append(
            f"{{ int64_t have = {x_size}, want = {wanted};\n"
            "if (want < 0 || (have != 1 && want != 1 && have != want)) { hg_fail(thread, want); return; }\n"
            f"found[{i}] = have == 1 ? want : have; }}"
        )
    found_numbers(
        low, node, "\n".join(lines), list(shape),
        reads={"shape": whole_numbers(low, node.inputs[1])},
        sizes={f"X{i}": dim for i, dim in enumerate(x.shape)},
    )  # fmt: skip
    row = """
if (X == Y) memcpy(to, from, (size_t)Y * sizeof(T));
else { const T v = from[0]; for (int64_t i = 0; i < Y; i++) to[i] = v; }"""
    _repeated(low, node, x, "X{i} == 1 ? 0 : c{i}", row)


def lower_tile(low: Lowering, node: ir.Node) -> None:
    """Repeat the input as often as a kernel reads."""
    out, x = node.outputs[0], low.forms.contiguous(node.inputs[0])
    shape = low.facts.shape(out)
    text = "\n".join(
        f"if (repeats[{i}] < 0 || (X{i} != 0 && repeats[{i}] > {_MOST} / X{i})) "
        f"{{ hg_fail(thread, repeats[{i}]); return; }}\nfound[{i}] = X{i} * repeats[{i}];"
        for i in range(len(shape))
    )
    if not shape:
        low.forms[out] = x
        return
    found_numbers(
        low, node, text, list(shape),
        reads={"repeats": whole_numbers(low, node.inputs[1])},
        sizes={f"X{i}": dim for i, dim in enumerate(x.shape)},
    )  # fmt: skip
    row = "for (int64_t i = 0; i < Y; i += X) memcpy(to + i, from, (size_t)X * sizeof(T));"
    _repeated(low, node, x, "c{i} % X{i}", row)


_PLACES = {
    "constant": "i",
    "edge": "i < 0 ? 0 : i >= n ? n - 1 : i",
    "wrap": "(i % n + n) % n",
    "reflect": "n == 1 ? 0 : (i = (i % (2 * n - 2) + 2 * n - 2) % (2 * n - 2)) < n ? i : 2 * n - 2 - i",
}


def lower_pad(low: Lowering, node: ir.Node) -> None:
    """Pad or cut by amounts that a kernel reads, negative ones first."""
    out, x = node.outputs[0], low.forms.contiguous(node.inputs[0])
    shape, rank = low.facts.shape(out), len(x.shape)
    mode = str(low.facts.attributes(node)["mode"])
    reads = {"pads": whole_numbers(low, node.inputs[1])}
    axes_input, value = number_input(low, node, 3), number_input(low, node, 2)
    count = rank
    text = f"int64_t ends[{2 * rank + 2}] = {{0}};\n"
    if axes_input is None:
        text += f"for (int64_t i = 0; i < {2 * rank}; i++) ends[i] = pads[i];\n"
    else:
        count = length_of(low, axes_input)
        reads["axes"] = whole_numbers(low, axes_input)
        text += f"""
for (int64_t i = 0; i < {count}; i++) {{ int64_t axis = axes[i];
if (axis < -{rank} || axis >= {rank}) {{ hg_fail(thread, axis); return; }}
axis += axis < 0 ? {rank} : 0;
ends[axis] = pads[i]; ends[{rank} + axis] = pads[i + {count}]; }}
"""
    if rank == 0:
        low.forms[out] = x
        return
    wanted: list[Dim] = []
    for axis in range(rank):
        at = 4 * axis
        text += f"""
{{ int64_t before = ends[{axis}], after = ends[{rank + axis}], size = X{axis};
if (before > {_MOST} || after > {_MOST} || before < -{_MOST} || after < -{_MOST}) {{ hg_fail(thread, before); return; }}
int64_t cut = before < 0 ? -before : 0, left = size - cut - (after < 0 ? -after : 0);
if ({int(mode == "constant")} && left < 0 && size + before + after >= 0) left = cut = 0;
if (left < 0 || (left == 0 && {int(mode != "constant")} && (size > 0 || before + after != 0))) {{ hg_fail(thread, left); return; }}
found[{at}] = size + before + after; found[{at + 1}] = cut; found[{at + 2}] = left;
found[{at + 3}] = before > 0 ? before : 0; }}"""
        names = [new_size(low, out, f"{name} {axis}") for name in ("cut", "left", "lead")]
        wanted += [shape[axis], *names]
    sizes: dict[str, Dim] = {f"X{i}": dim for i, dim in enumerate(x.shape)}
    found_numbers(low, node, text, wanted, reads=reads, sizes=sizes)
    y = low.forms.result(out)
    cuts = {i: wanted[4 * i + 1 : 4 * i + 4] for i in range(rank)}
    sizes = {f"Y{i}": dim for i, dim in enumerate(y.shape)}
    sizes |= {f"S{i}": stride for i, stride in enumerate(x.strides)}
    for i, (cut, left, lead) in cuts.items():
        sizes |= {f"cut{i}": cut, f"n{i}": left, f"lead{i}": lead}
    last = rank - 1
    operands = {"x": as_bits(x)}
    fill = "T fill = 0;"
    if value is not None:
        operands["value"] = as_bits(low.forms.contiguous(value))
        fill = "T fill = value[0];"
    helper = f"INLINE int64_t KERNEL_index(int64_t i, int64_t n) {{ return {_PLACES[mode]}; }}"
    outer = "\n".join(
        f"c{i} = KERNEL_index(c{i} - lead{i}, n{i}); inside &= c{i} >= 0 && c{i} < n{i}; "
        f"at += (c{i} + cut{i}) * S{i};"
        for i in range(last)
    )
    border = f"""{{ const int64_t k = KERNEL_index(j - lead{last}, n{last});
to[j] = inside && k >= 0 && k < n{last} ? from[k] : fill; }}"""
    loop = f"""
{fill}
const int64_t begin = hg_min(hg_max(lead{last}, 0), Y{last}), end = hg_max(begin, hg_min(lead{last} + n{last}, Y{last}));
for (int64_t row = first; row < last; row++) {{
int64_t left = row, at = 0; int inside = 1;
{coordinates([f"c{i}" for i in range(last)], [f"Y{i}" for i in range(last)]) if last else "(void)left;"}
{outer}
T *to = y + row * Y{last};
const T *from = x + (inside ? at : 0) + cut{last};
for (int64_t j = 0; j < begin; j++) {border}
if (!inside) for (int64_t j = begin; j < end; j++) to[j] = fill;
else if (end > begin) memcpy(to + begin, from + begin - lead{last}, (size_t)(end - begin) * sizeof(T));
for (int64_t j = end; j < Y{last}; j++) {border}
}}"""
    emit_written(
        low.recorder, node, loop,
        reads=operands, writes={"y": as_bits(y)}, sizes=sizes, types={"T": bits_type(x.dtype)},
        items=product(y.shape[:-1]), each=y.shape[-1], helper=helper,
    )  # fmt: skip
    low.forms[out] = y


def lower_range(low: Lowering, node: ir.Node) -> None:
    """Count from a start to a limit, both of any type."""
    out = node.outputs[0]
    dtype = low.facts.dtype(out)
    kind = number_type(dtype)
    delta = number_input(low, node, 2)
    reads = {
        "start": low.forms.contiguous(node.inputs[0]),
        "limit": low.forms.contiguous(node.inputs[1]),
    }
    if delta is not None:
        reads["delta"] = low.forms.contiguous(delta)
    step = loaded(dtype, "delta[0]") if delta is not None else "1"
    ends = f"{kind} a = {loaded(dtype, 'start[0]')}, b = {loaded(dtype, 'limit[0]')}, d = {step};"
    if is_real(dtype):
        count = f"""
double n = ceil(({kind})(({kind})(b - a) / d));
if (!(d != 0) || !(n < (double){_MOST} && n > -(double){_MOST})) {{ hg_fail(thread, 0); return; }}
found[0] = n > 0 ? (int64_t)n : 0;"""
    else:
        count = f"""
if (d == 0) {{ hg_fail(thread, 0); return; }}
__int128 span = (__int128)b - (__int128)a, by = d;
__int128 n = by > 0 ? (span > 0 ? (span + by - 1) / by : 0) : span < 0 ? (span + by + 1) / by : 0;
if (n > {_MOST}) {{ hg_fail(thread, 0); return; }}
found[0] = (int64_t)n;"""
    found_numbers(low, node, ends + count, list(low.facts.shape(out)), reads=reads)
    y = low.forms.result(out)
    item = stored(dtype, f"({kind})(a + ({kind})i * d)")
    emit_written(
        low.recorder, node, f"{ends}(void)b;\nfor (int64_t i = first; i < last; i++) y[i] = {item};",
        reads=reads, writes={"y": y}, items=y.size,
    )  # fmt: skip
    low.forms[out] = y


def lower_eye_like(low: Lowering, node: ir.Node) -> None:
    """Write ones along a diagonal."""
    out = node.outputs[0]
    y = low.forms.result(out)
    k = int(low.facts.attributes(node)["k"])
    text = f"""
memset(y + first * n, 0, (size_t)((last - first) * n) * sizeof(*y));
for (int64_t row = first; row < last; row++)
if (row + ({k}) >= 0 && row + ({k}) < n) y[row * n + row + ({k})] = {stored(y.dtype, "1")};"""
    emit_written(
        low.recorder, node, text,
        reads={}, writes={"y": y}, sizes={"n": y.shape[1]}, items=y.shape[0], each=y.shape[1],
    )  # fmt: skip
    low.forms[out] = y


def lower_trilu(low: Lowering, node: ir.Node) -> None:
    """Keep the elements above or below a diagonal that the data name."""
    out, x = node.outputs[0], low.forms.contiguous(node.inputs[0])
    k = number_input(low, node, 1)
    if len(x.shape) < 2:
        raise NotNative("no matrix")
    reads = {} if k is None else {"given": whole_numbers(low, k)}
    y = low.forms.result(out)
    emit_triangles(low, node, x, y, "0" if k is None else "given[0]", reads)
    low.forms[out] = y


def lower_bit_cast(low: Lowering, node: ir.Node) -> None:
    """Read the same bits as elements of another type of the same width."""
    x, out = low.forms.contiguous(node.inputs[0]), node.outputs[0]
    dtype = low.facts.dtype(out)
    if dtype.itemsize != x.dtype.itemsize:
        raise NotNative("elements of another width")
    low.forms[out] = replace(x, dtype=dtype)


def lower_shape(low: Lowering, node: ir.Node) -> None:
    """Write sizes that are found while the part runs."""
    x, out = low.facts.shape(node.inputs[0]), node.outputs[0]
    attributes = low.facts.attributes(node)
    start, end = int(attributes["start"]), attributes.get("end")
    part = x[slice(start, None if end is None else int(end))]
    if node.op_type == "Size":
        part = (product(x),)
    y = low.forms.result(out)
    text = "\n".join(f"y[{i}] = n{i};" for i in range(len(part)))
    emit_written(
        low.recorder, node, text,
        reads={}, writes={"y": y}, sizes={f"n{i}": dim for i, dim in enumerate(part)}, tasks=1,
    )  # fmt: skip
    low.forms[out] = y


RULES: dict[tuple[str, str], Rule] = {
    ("", "BitCast"): lower_bit_cast,
    ("", "ConstantOfShape"): lower_constant_of_shape,
    ("", "Expand"): lower_expand,
    ("", "EyeLike"): lower_eye_like,
    ("", "Pad"): lower_pad,
    ("", "Range"): lower_range,
    ("", "Reshape"): lower_reshape,
    ("", "Shape"): lower_shape,
    ("", "Tile"): lower_tile,
    ("", "Trilu"): lower_trilu,
}
