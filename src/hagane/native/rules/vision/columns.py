"""Images from columns: each row of pixels gathers from the blocks that cover it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.kernel import c_type
from hagane.native.kernels.tensor import Tensor
from hagane.native.kernels.written import coordinates, emit_written, loaded, number_type, stored
from hagane.native.lowering.state import Lowering
from hagane.symbolic import Dim, product

# Numbers of a line from ``lo`` on and below ``hi``, zeros around them.
_PART = """
static inline __attribute__((always_inline)) vf KERNEL_part(const float *p, int64_t lo, int64_t hi) {
if (lo <= 0 && hi >= VL) return v_load(p);
#if defined(__AVX512F__)
return (vf)_mm512_maskz_loadu_ps((__mmask16)(hg_lanes(hi) & ~hg_lanes(lo)), p);
#else
vf x = {0};
for (int64_t i = lo < 0 ? 0 : lo; i < (hi < VL ? hi : VL); i++) x[i] = p[i];
return x;
#endif
}
"""


def emit_columns(
    low: Lowering,
    node: ir.Node,
    x: Tensor,
    y: Tensor,
    kernel: Sequence[Dim],
    steps: tuple[Sequence[int], Sequence[int]],
    before: Sequence[str],
    *,
    blocks: str = "",
    sizes: Mapping[str, Dim] | None = None,
    bias: Tensor | None = None,
) -> None:
    """Write the kernel that sums columns to the pixels that they belong to.

    Args:
        low: Takes the kernel.
        node: The node that it computes.
        x: Columns ``(images, maps × taps, blocks)``, row-major.
        y: The image ``(images, maps, *lengths)``, whose lengths C knows as ``Y{i}``.
        kernel: Taps along each axis, in C ``K{i}``.
        steps: Strides and dilations.
        before: C of the padding before each axis.
        blocks: C that declares how many blocks ``B{i}`` there are along each axis, if not in ``sizes``.
        sizes: Further numbers that C needs.
        bias: A number for each map.
    """
    strides, dilations = steps
    last = len(kernel) - 1
    loops = "".join(
        f"for (int64_t k{i} = 0; k{i} < K{i}; k{i}++) {{\n"
        f"int64_t b{i} = c{i} + {before[i]} - k{i} * {dilations[i]};\n"
        f"if (b{i} < 0 || b{i} % {strides[i]} != 0 || (b{i} /= {strides[i]}) >= B{i}) continue;\n"
        for i in range(last)
    )
    tap, at = "0", "0"
    for i in range(last):
        tap, at = f"({tap}) * K{i} + k{i}", f"({at}) * B{i} + b{i}"
    step, start = strides[last], "0"
    reads = {"x": x}
    if bias is not None:
        reads["bias"] = bias
        start = loaded(bias.dtype, "bias[map % maps]")
    line = f"from + (({tap}) * K + k) * all + ({at}) * B"
    row = _vectors if x.dtype == np.float32 else _numbers
    text = f"""
{blocks}
const int64_t all = {" * ".join(f"B{i}" for i in range(last + 1))}, Y = Y{last}, B = B{last}, K = K{last};
if (all != columns) {{ hg_fail(thread, all); return; }}
N *restrict sums = (N *)thread->scratch;
for (int64_t row = first; row < last; row++) {{
int64_t left = row;
{coordinates(["map", *(f"c{i}" for i in range(last))], ["0", *(f"Y{i}" for i in range(last))])}
const T *from = x + map * ({" * ".join(f"K{i}" for i in range(last + 1))}) * all;
const N start = {start};
{row(x, loops, "}" * last, line, step, f"k * {dilations[last]} - {before[last]}")}
}}"""
    numbers: dict[str, Dim] = {
        "columns": x.shape[-1], "maps": y.shape[1], **(sizes or {}),
        **{f"Y{i}": dim for i, dim in enumerate(y.shape[2:])},
        **{f"K{i}": dim for i, dim in enumerate(kernel)},
    }  # fmt: skip
    emit_written(
        low.recorder, node, text, reads=reads, writes={"y": y}, sizes=numbers,
        types={"T": c_type(x.dtype), "N": number_type(x.dtype)}, items=product(y.shape[:-1]),
        each=y.shape[-1] * product(kernel), cost=0.3, scratch=y.shape[-1] * 8 + 64 * (step + 1),
        helper=_PART if x.dtype == np.float32 else "",
    )  # fmt: skip


def _vectors(x: Tensor, loops: str, ends: str, line: str, step: int, off: str) -> str:
    """Return C of a row of floats: pixels a stride apart, which the same taps reach, in vectors.

    Args:
        x: The columns.
        loops: C that begins loops over the taps of all axes but the last.
        ends: C that ends them.
        line: C of the place of a tap's line.
        step: The stride along a row.
        off: C of the pixel that a tap's first block reaches.
    """
    kept = "v_store_n(y + row * Y + j, sum, length - j);"
    spread = ""
    if step > 1:
        kept = "v_store(sums + p * apart + j, sum);"
        spread = f"""
for (int64_t j = 0; j < Y / {step}; j++) for (int p = 0; p < {step}; p++) y[row * Y + j * {step} + p] = sums[p * apart + j];
for (int64_t c = Y / {step} * {step}; c < Y; c++) y[row * Y + c] = sums[c % {step} * apart + c / {step}];"""
    return f"""
const int64_t apart = (Y / {step} + VL) / VL * VL;
for (int64_t p = 0; p < {step}; p++) {{
const int64_t length = (Y - p + {step - 1}) / {step};
for (int64_t j = 0; j < length; j += VL) {{
vf sum = v_set1(start);
{loops}
for (int64_t k = 0; k < K; k++) {{
const int64_t far = p - ({off});
if (far % {step} != 0) continue;
const int64_t b = j + far / {step};
sum += KERNEL_part({line} + b, -b, B - b); }}
{ends}
{kept} }} }}{spread}"""


def _numbers(x: Tensor, loops: str, ends: str, line: str, step: int, off: str) -> str:
    """Return C of a row of numbers of another type; see ``_vectors``."""
    return f"""
for (int64_t c = 0; c < Y; c++) sums[c] = start;
{loops}
for (int64_t k = 0; k < K; k++) {{
const T *restrict line = {line};
const int64_t off = {off};
const int64_t b0 = off < 0 ? (-off + {step - 1}) / {step} : 0;
const int64_t b1 = Y > off ? hg_min(B, (Y - off + {step - 1}) / {step}) : 0;
for (int64_t b = b0; b < b1; b++) sums[b * {step} + off] += {loaded(x.dtype, "line[b]")}; }}
{ends}
for (int64_t c = 0; c < Y; c++) y[row * Y + c] = {stored(x.dtype, "sums[c]")};"""
