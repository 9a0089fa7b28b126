"""Products of bytes that come with the data: both sides are packed in each run.

``sum((a - za) * (b - zb)) = sum(a*b) - zb*sum(a) - za*sum(b) + k*za*zb`` for any zero points, one a row
of ``a`` and one a column of ``b``. Rows of ``a`` are brought to signed bytes, columns of ``b`` to
unsigned ones, by 128 with their zero points, as products of four bytes at once (VNNI) have it. A task
packs 64 columns into memory of its thread, where they meet all rows.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from hagane.machine import multiplies_bytes
from hagane.native.kernels.kernel import c_type, work_of
from hagane.native.kernels.tensor import Tensor
from hagane.native.kernels.written import emit_written
from hagane.native.lowering.state import Lowering
from hagane.native.rules.bytes.operands import INT32_TERMS
from hagane.symbolic import Dim, ceildiv, minimum, product

# Columns of one task, rows of one task, and rows of one tile.
COLUMNS, ROWS, _TILE_ROWS = 64, 256, 6

# Fills `made`, sums of `m` rows and 64 columns. `b` has quads of four rows, or else rows.
_VNNI = """
__attribute__((target("avx512vnni"), always_inline))
static inline void KERNEL_some(const int8_t *a, int64_t lda, int64_t m, const uint8_t *b, int64_t quads, int32_t *made, const int R) {
typedef int vi16 __attribute__((vector_size(64)));
vi16 s[6][4] = {0};
for (int64_t k = 0; k < quads; k++, b += 256) {
vi16 w0 = *(const vi16 *)b, w1 = *(const vi16 *)(b + 64), w2 = *(const vi16 *)(b + 128), w3 = *(const vi16 *)(b + 192);
#pragma GCC unroll 6
for (int r = 0; r < R; r++) {
int32_t four; __builtin_memcpy(&four, a + (r < m ? r : 0) * lda + 4 * k, 4);
vi16 x = (vi16){0} + four;
__asm__("vpdpbusd %2, %1, %0" : "+v"(s[r][0]) : "v"(w0), "v"(x));
__asm__("vpdpbusd %2, %1, %0" : "+v"(s[r][1]) : "v"(w1), "v"(x));
__asm__("vpdpbusd %2, %1, %0" : "+v"(s[r][2]) : "v"(w2), "v"(x));
__asm__("vpdpbusd %2, %1, %0" : "+v"(s[r][3]) : "v"(w3), "v"(x));
} }
#pragma GCC unroll 6
for (int r = 0; r < R; r++) for (int j = 0; j < 4; j++) __builtin_memcpy(made + r * 64 + 16 * j, &s[r][j], 64);
}
__attribute__((target("avx512vnni")))
static void KERNEL_tile(const int8_t *a, int64_t lda, int64_t m, const uint8_t *b, int64_t quads, int32_t *made) {
if (m == 1) KERNEL_some(a, lda, m, b, quads, made, 1);
else if (m <= 3) KERNEL_some(a, lda, m, b, quads, made, 3);
else KERNEL_some(a, lda, m, b, quads, made, 6);
}
static inline void KERNEL_store(uint8_t *to, uint8_t line[4][64]) {
uint32_t *quad = (uint32_t *)to;
for (int j = 0; j < 64; j++)
quad[j] = line[0][j] | (uint32_t)line[1][j] << 8 | (uint32_t)line[2][j] << 16 | (uint32_t)line[3][j] << 24;
}
"""
_PLAIN = """
static void KERNEL_tile(const int8_t *a, int64_t lda, int64_t m, const uint8_t *b, int64_t quads, int32_t *made) {
for (int64_t r = 0; r < m; r++) {
int32_t s[64] = {0};
const uint8_t *w = b;
for (int64_t k = 0; k < 4 * quads; k++, w += 64) {
const int32_t x = a[r * lda + k];
for (int j = 0; j < 64; j++) s[j] += x * (int32_t)w[j];
}
memcpy(made + r * 64, s, sizeof s);
} }
static inline void KERNEL_store(uint8_t *to, uint8_t line[4][64]) { memcpy(to, line, 256); }
"""


def tile_functions(low: Lowering) -> str:
    """Return the C of ``KERNEL_tile`` and ``KERNEL_store`` of this level."""
    return _VNNI if multiplies_bytes(low.facts.level) else _PLAIN


def are_bytes(*tensors: Tensor) -> bool:
    """Whether tensors have elements of one byte that are whole numbers."""
    return all(tensor.dtype.name in ("int8", "uint8") for tensor in tensors)


def prepared(low: Lowering, node: ir.Node, a: Tensor) -> tuple[Tensor, Tensor]:
    """Return rows ``(..., k)`` as signed bytes, filled up to whole quads, and the sum of each.

    Args:
        low: Takes the kernel.
        node: The node that they are for.
        a: The rows, in row-major order.
    """
    *lead, k = a.shape
    wide = ceildiv(k, 4) * 4
    rows = low.recorder.new(f"{node.outputs[0].name} rows", np.dtype(np.int8), (*lead, wide))
    sums = low.recorder.new(f"{node.outputs[0].name} sums", np.dtype(np.int32), tuple(lead))
    flip = 128 if a.dtype == np.uint8 else 0
    text = f"""
for (int64_t row = first; row < last; row++) {{
const uint8_t *from = (const uint8_t *)a + row * K;
int8_t *to = rows + row * wide;
int32_t sum = 0;
for (int64_t i = 0; i < K; i++) {{ to[i] = (int8_t)(from[i] ^ {flip}); sum += to[i]; }}
for (int64_t i = K; i < wide; i++) to[i] = 0;
sums[row] = sum;
}}"""
    emit_written(
        low.recorder, node, text,
        reads={"a": a}, writes={"rows": rows, "sums": sums}, sizes={"K": k, "wide": wide},
        items=product(lead), each=k, cost=0.1,
    )  # fmt: skip
    return rows, sums


def emit_byte_sums(
    low: Lowering,
    node: ir.Node,
    a: tuple[Tensor, Tensor],
    b: Tensor,
    y: Tensor,
    *,
    start: str,
    line: str,
    zeros: tuple[str, str],
    signed: tuple[bool, bool],
    result: str,
    reads: Mapping[str, Tensor],
    sizes: Mapping[str, Dim],
    pieces: Dim,
    exact: bool = False,
    helper: str = "",
) -> None:
    """Append the kernel of a stack of products ``(M, K)`` times ``(K, N)``.

    Args:
        low: Takes the kernel.
        node: The node that it computes.
        a: The result of ``prepared``.
        b: The right side, of which ``line`` reads.
        y: The result, ``(pieces, M, N)``.
        start: C that declares ``row0``, the first of the prepared rows, and ``out``, where the
            result of ``piece`` begins.
        line: C that fills ``to``, the ``w`` elements from column ``n0`` on in row ``k`` of the right
            side, each by ``^ FLIP``.
        zeros: C of the zero points of row ``row`` and of column ``c``.
        signed: Whether elements of the left, and of the right side are.
        result: C of an element of the result, of ``sum``, ``row`` and ``c``.
        reads: Further operands by name.
        sizes: ``M``, ``K``, ``N`` and others by name.
        pieces: How many products there are.
        exact: Make ``sum`` of 64 bits where 32 may not hold it; else it wraps around.
        helper: Functions before the kernel.
    """
    m, k, n = sizes["M"], sizes["K"], sizes["N"]
    rows, sums = a
    quads, chunks, blocks = ceildiv(k, 4), ceildiv(n, COLUMNS), ceildiv(m, ROWS)
    shift_a, shift_b = 0 if signed[0] else 128, 128 if signed[1] else 0
    long = exact and not (isinstance(k, int) and k <= INT32_TERMS)
    wide, sums_name = ("int64_t", "total") if long else ("int32_t", "made")
    tile = f"int32_t made[{_TILE_ROWS} * 64] __attribute__((aligned(64)));\n"
    if long:
        # (Four products of signed and unsigned bytes make a quad: a piece's sum fits 32 bits.)
        tile += f"""
int64_t total[{_TILE_ROWS} * 64] = {{0}};
for (int64_t quad = 0; quad < quads; quad += {INT32_TERMS // 4}) {{
KERNEL_tile(rows + (row0 + r0) * (4 * quads) + 4 * quad, 4 * quads, count, packed + quad * 256, hg_min({INT32_TERMS // 4}, quads - quad), made);
for (int64_t j = 0; j < count * 64; j++) total[j] += made[j]; }}"""
    else:
        tile += (
            "KERNEL_tile(rows + (row0 + r0) * (4 * quads), 4 * quads, count, packed, quads, made);"
        )
    text = f"""
enum {{ FLIP = {shift_b} }};
int64_t left = q;
const int64_t n0 = left % chunks * {COLUMNS}; left /= chunks;
const int64_t first = left % blocks * {ROWS}, piece = left / blocks;
const int64_t w = hg_min({COLUMNS}, N - n0), end = hg_min(M, first + {ROWS});
{start}
uint8_t *packed = (uint8_t *)(((uintptr_t)thread->scratch + 63) & ~(uintptr_t)63);
int32_t columns[64] = {{0}}, sum_b[64], zero_b[64] = {{0}};
uint8_t lines[4][64] __attribute__((aligned(64))) = {{{{0}}}};
for (int64_t quad = 0; quad < quads; quad++) {{
for (int64_t t = 0; t < 4; t++) {{
const int64_t k = 4 * quad + t;
uint8_t *to = lines[t];
if (k >= K) {{ memset(to, 0, 64); continue; }}
{line}
for (int64_t j = 0; j < 64; j++) columns[j] += to[j];
}}
KERNEL_store(packed + quad * 256, lines);
}}
for (int64_t j = 0; j < w; j++) {{ const int64_t c = n0 + j; (void)c; zero_b[j] = (int32_t){zeros[1]} + {shift_b}; }}
memcpy(sum_b, columns, sizeof columns);
for (int64_t r0 = first; r0 < end; r0 += {_TILE_ROWS}) {{
const int64_t count = hg_min({_TILE_ROWS}, end - r0);
{tile}
for (int64_t r = 0; r < count; r++) {{
const int64_t row = r0 + r;
const {wide} za = (int32_t){zeros[0]} - {shift_a}, of_row = row_sums[row0 + row], more = ({wide})K * za;
{wide} *sums = {sums_name} + r * 64;
for (int64_t j = 0; j < 64; j++) sums[j] += zero_b[j] * (more - of_row) - za * sum_b[j];
Y *to = out + row * N + n0;
for (int64_t j = 0; j < w; j++) {{ const int64_t c = n0 + j; const {wide} sum = sums[j]; (void)c; to[j] = {result}; }}
}} }}"""
    own: dict[str, Dim] = {"quads": quads, "chunks": chunks, "blocks": blocks}
    tasks = pieces * chunks * blocks
    emit_written(
        low.recorder, node, text,
        reads={"rows": rows, "row_sums": sums, "b": b, **reads}, writes={"y": y},
        sizes={**sizes, **own}, types={"Y": c_type(y.dtype)}, tasks=tasks,
        work=work_of(tasks * k * (minimum(m, ROWS) + 40), 0.5), scratch=quads * 256 + 64,
        helper=tile_functions(low) + helper,
    )  # fmt: skip
