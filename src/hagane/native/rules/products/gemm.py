"""Products of computed matrices: both sides are packed, then come register tiles.

The classical scheme of "Anatomy of High-Performance Matrix Multiplication" (Goto and van de
Geijn, ACM TOMS 2008): a block of columns of the right side and a few rows of the left one are
copied into the order in which the inner kernel reads them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx_ir as ir

from hagane.machine import Level
from hagane.native.kernels.kernel import Body, work_of
from hagane.native.kernels.names import sizes
from hagane.native.kernels.tensor import Tensor
from hagane.native.tiles.tile import tile_pixels
from hagane.symbolic import Dim, ceildiv, product

if TYPE_CHECKING:
    from hagane.native.lowering.state import Lowering

# Columns of the right side that one task packs, in groups of one tile's width.
_GROUPS = 8
_BLOCKS = 2


def panel_function(name: str, rows: int, level: Level) -> str:
    """Return a C function ``name(s, w, k, d)``: ``d[rows][columns] = sum over k of s × w``.

    ``s`` is packed as ``[k][rows]``, ``w`` as ``[k][columns]``; there are two vectors of columns.
    """
    lanes = level.lanes
    signature = f"INLINE void {name}(const float *s, const float *w, int64_t k, float *d)"
    if not level.assembly:
        lines = [f"{signature} {{"]
        lines += [f"  vf a{t}_{j} = {{0}};" for t in range(rows) for j in range(_BLOCKS)]
        lines.append(f"  for (; k > 0; k--, s += {rows}, w += {_BLOCKS * lanes}) {{")
        lines += [f"    vf w{j} = v_load(w + {j * lanes});" for j in range(_BLOCKS)]
        lines += [f"    a{t}_{j} += s[{t}] * w{j};" for t in range(rows) for j in range(_BLOCKS)]
        lines.append("  }")
        lines += [
            f"  v_store(d + {(t * _BLOCKS + j) * lanes}, a{t}_{j});"
            for t in range(rows)
            for j in range(_BLOCKS)
        ]
        return "\n".join([*lines, "}\n"])
    register = "zmm" if lanes == 16 else "ymm"
    used = rows * _BLOCKS
    weights = [f"%%{register}{used + j}" for j in range(_BLOCKS)]
    spare = [f"%%{register}{i}" for i in range(used + _BLOCKS, level.registers)][-3:]
    text = [f"vxorps %%xmm{i}, %%xmm{i}, %%xmm{i}" for i in range(min(used, 16))]
    text += [f"vpxord %%zmm{i}, %%zmm{i}, %%zmm{i}" for i in range(16, used)]

    def step(u: int) -> list[str]:
        out = [
            f"vmovups {(u * _BLOCKS + j) * lanes * 4}(%[w]), {weights[j]}" for j in range(_BLOCKS)
        ]
        for t in range(rows):
            x = spare[(u * rows + t) % len(spare)]
            out.append(f"vbroadcastss {(u * rows + t) * 4}(%[s]), {x}")
            out += [
                f"vfmadd231ps {weights[j]}, {x}, %%{register}{t * _BLOCKS + j}"
                for j in range(_BLOCKS)
            ]
        return out

    text += ["mov %[k], %[n]", "shr $2, %[n]", "jz 2f", "1:"]
    for u in range(4):
        text += step(u)
    text += [
        f"add ${16 * rows}, %[s]",
        f"add ${4 * _BLOCKS * lanes * 4}, %[w]",
        "dec %[n]",
        "jnz 1b",
    ]
    text += ["2:", "mov %[k], %[n]", "and $3, %[n]", "jz 4f", "3:", *step(0)]
    text += [
        f"add ${4 * rows}, %[s]",
        f"add ${_BLOCKS * lanes * 4}, %[w]",
        "dec %[n]",
        "jnz 3b",
        "4:",
    ]
    text += [f"vmovups %%{register}{i}, {i * lanes * 4}(%[d])" for i in range(used)]
    body = "\n".join(f'    "{line}\\n\\t"' for line in text)
    clobbered = ", ".join(f'"{register}{i}"' for i in range(level.registers))
    return f"""{signature} {{
  int64_t n;
  __asm__ volatile(
{body}
    : [s] "+r"(s), [w] "+r"(w), [n] "=&r"(n)
    : [k] "r"(k), [d] "r"(d)
    : "memory", "cc", {clobbered});
}}
"""


def _helpers(body: Body, level: Level) -> int:
    rows = tile_pixels(level, _BLOCKS)
    body.helper(panel_function("KERNEL_panel", rows, level))
    body.helper(panel_function("KERNEL_row", 1, level))
    return rows


def _pack_rows(body: Body, rows: int, source: str, row_step: str, k_step: str) -> None:
    """Pack ``m`` rows, the missing ones of a tile as zeros, or one row alone."""
    body.add(
        f"int64_t height = m == 1 ? 1 : {rows};",
        "for (int64_t t = 0; t < height; t++) {",
        f"if (t < m) {{ const float *from = {source} + t * {row_step};",
        f"for (int64_t k = 0; k < K; k++) left[k * height + t] = from[k * {k_step}]; }}",
        "else for (int64_t k = 0; k < K; k++) left[k * height + t] = 0;",
        "}",
    )


def emit_batched(low: Lowering, node: ir.Node, a: Tensor, b: Tensor, target: Tensor) -> None:
    """Write products of stacks of matrices, ``(…, m, k) × (…, k, n)``, of any strides."""
    level, lanes = low.facts.level, low.facts.level.lanes
    wide = _BLOCKS * lanes
    m, k = a.shape[-2:]
    n = b.shape[-1]
    batch = target.shape[:-2]
    body = Body()
    rows = _helpers(body, level)
    tiles_of_task = 8
    row_tasks = ceildiv(m, rows * tiles_of_task)
    column_tasks = ceildiv(n, wide * _GROUPS)
    s, w = body.pointer(a), body.pointer(b)
    d = body.pointer(target, written=True)
    body.add(
        f"const int64_t K = {body.size(k)}, M = {body.size(m)}, N = {body.size(n)};",
        f"int64_t column = q % {body.size(column_tasks)} * {wide * _GROUPS}, left_q = q / {body.size(column_tasks)};",
        f"int64_t first = left_q % {body.size(row_tasks)} * {rows * tiles_of_task};",
        f"int64_t index = left_q / {body.size(row_tasks)};",
        f"float *out0 = {d} + index * M * N;",
        f"const float *a0 = {s}, *b0 = {w};",
    )
    for i in reversed(range(len(batch))):
        body.add(
            f"{{ int64_t at = index % {body.size(batch[i])}; index /= {body.size(batch[i])};",
            f"a0 += at * {body.size(a.strides[i])}; b0 += at * {body.size(b.strides[i])}; }}",
        )
    bk, bn = body.size(b.strides[-2]), body.size(b.strides[-1])
    body.add(
        f"int64_t columns = hg_min({wide * _GROUPS}, N - column), groups = (columns + {wide - 1}) / {wide};",
        f"float *right = (float *)thread->scratch, *left = right + K * {wide * _GROUPS};",
        f"float tile[{rows * wide}] __attribute__((aligned(64)));",
        "for (int64_t g = 0; g < groups; g++) {",
        f"int64_t width = hg_min({wide}, columns - g * {wide});",
        f"const float *from = b0 + (column + g * {wide}) * {bn}; float *to = right + g * K * {wide};",
        f"if (width < {wide}) memset(to, 0, K * {wide * 4});",
    )
    if b.strides[-1] == 1:
        body.add(
            f"if (width == {wide}) for (int64_t k = 0; k < K; k++) memcpy(to + k * {wide}, from + k * {bk}, {wide * 4});",
            f"else for (int64_t k = 0; k < K; k++) memcpy(to + k * {wide}, from + k * {bk}, width * 4);",
        )
    else:
        body.add(
            "for (int64_t c = 0; c < width; c++) for (int64_t k = 0; k < K; k++)",
            f"to[k * {wide} + c] = from[k * {bk} + c * {bn}];",
        )
    body.add(
        "}",
        f"for (int64_t top = first; top < hg_min(M, first + {rows * tiles_of_task}); top += {rows}) {{",
        f"int64_t m = hg_min({rows}, M - top);",
    )
    _pack_rows(
        body,
        rows,
        f"(a0 + top * {body.size(a.strides[-2])})",
        body.size(a.strides[-2]),
        body.size(a.strides[-1]),
    )
    body.add(
        "for (int64_t g = 0; g < groups; g++) {",
        f"const float *w = right + g * K * {wide};",
        "if (height == 1) KERNEL_row(left, w, K, tile); else KERNEL_panel(left, w, K, tile);",
        f"int64_t width = hg_min({wide}, columns - g * {wide});",
        f"float *out = out0 + top * N + column + g * {wide};",
        f"if (width == {wide}) for (int64_t t = 0; t < m; t++) memcpy(out + t * N, tile + t * {wide}, {wide * 4});",
        f"else for (int64_t t = 0; t < m; t++) memcpy(out + t * N, tile + t * {wide}, width * 4);",
        "} }",
    )
    count = product(batch)
    whole = product((count, m, n, k))
    scratch: Dim = (k * wide * _GROUPS + k * rows) * 4
    low.recorder.emit(
        node,
        body,
        count * row_tasks * column_tasks,
        work=work_of(whole, 2.0 / 50),
        flops=work_of(whole, 2.0),
        scratch=scratch,
        name=f"matmul_{sizes((*batch, m, k, n))}",
    )
