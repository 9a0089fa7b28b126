"""Products of 8-bit integers: rows against packed weights, in the dot products of VNNI.

``sum((a - za) * (b - zb)) = sum(a*b) - za*sum(b) - zb*sum(a) + k*za*zb``: the inner loop multiplies
unsigned by signed bytes, four at a time, and zero points come in afterwards. Signed rows and
unsigned weights are shifted by 128 with their zero points.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from hagane.machine import multiplies_bytes
from hagane.native.kernels.kernel import Body, work_of
from hagane.native.kernels.packing import Packing, as_is
from hagane.native.kernels.tensor import Tensor
from hagane.native.lowering.state import Lowering
from hagane.ops.definition import Array
from hagane.symbolic import Dim

# Columns of one packed block, and rows of one tile: 6 x 4 vectors of sums stay in registers.
_COLUMNS = 64
_ROWS = 6

_TILE = """
#define HG_INT8_ROWS %(rows)d
%(target)s
static void KERNEL_int8_tile(const uint8_t *a, int64_t lda, int64_t m, const int8_t *b, int64_t k4, int32_t *sum) {
%(body)s
}
"""
_VNNI = """
  typedef int vi __attribute__((vector_size(64)));
  vi s[HG_INT8_ROWS][4] = {0};
  for (int64_t k = 0; k < k4; k++, b += 256) {
    vi w0 = *(const vi *)b, w1 = *(const vi *)(b + 64), w2 = *(const vi *)(b + 128), w3 = *(const vi *)(b + 192);
    #pragma GCC unroll 6
    for (int r = 0; r < HG_INT8_ROWS; r++) {
      int32_t four; __builtin_memcpy(&four, a + (r < m ? r : 0) * lda + 4 * k, 4);
      vi x = (vi){0} + four;
      __asm__("vpdpbusd %1, %2, %0" : "+v"(s[r][0]) : "v"(w0), "v"(x));
      __asm__("vpdpbusd %1, %2, %0" : "+v"(s[r][1]) : "v"(w1), "v"(x));
      __asm__("vpdpbusd %1, %2, %0" : "+v"(s[r][2]) : "v"(w2), "v"(x));
      __asm__("vpdpbusd %1, %2, %0" : "+v"(s[r][3]) : "v"(w3), "v"(x));
    }
  }
  #pragma GCC unroll 6
  for (int r = 0; r < HG_INT8_ROWS; r++)
    for (int j = 0; j < 4; j++) __builtin_memcpy(sum + r * 64 + 16 * j, &s[r][j], 64);
"""
_PLAIN = """
  for (int64_t r = 0; r < m; r++) {
    int32_t s[64] = {0};
    const int8_t *w = b;
    for (int64_t k = 0; k < k4; k++, w += 256)
      for (int j = 0; j < 64; j++)
        for (int t = 0; t < 4; t++) s[j] += (int32_t)a[r * lda + 4 * k + t] * w[4 * j + t];
    for (int j = 0; j < 64; j++) sum[r * 64 + j] = s[j];
  }
"""


def pack_columns(weight: Array) -> tuple[Array, Array]:
    """Return signed weights ``(k, n)`` in blocks ``(n / 64, k / 4, 64, 4)``, and column sums."""
    k, n = weight.shape
    signed = weight.astype(np.int16) - (128 if weight.dtype == np.uint8 else 0)
    blocks, quads = -(-n // _COLUMNS), -(-k // 4)
    padded = np.zeros((quads * 4, blocks * _COLUMNS), np.int8)
    padded[:k, :n] = signed
    packed = padded.reshape(quads, 4, blocks, _COLUMNS).transpose(2, 0, 3, 1)
    sums = np.zeros(blocks * _COLUMNS, np.int32)
    sums[:n] = signed.astype(np.int64).sum(0)
    return np.ascontiguousarray(packed), sums


def pack_rows(low: Lowering, node: ir.Node, a: Tensor, rows: Dim, k: int) -> Tensor:
    """Return rows ``(rows, k)`` as unsigned bytes, each padded to a multiple of four."""
    wide = -(-k // 4) * 4
    packed = low.recorder.new(f"{node.name} rows", np.dtype(np.uint8), (rows, wide))
    body = Body()
    s, d = body.pointer(a, ctype="uint8_t"), body.pointer(packed, written=True)
    flip = 128 if a.dtype == np.int8 else 0
    body.add(
        f"for (int64_t r = q * 16; r < hg_min({body.size(rows)}, (q + 1) * 16); r++) {{",
        f"for (int64_t i = 0; i < {k}; i++) {d}[r * {wide} + i] = {s}[r * {k} + i] ^ {flip};",
        f"for (int64_t i = {k}; i < {wide}; i++) {d}[r * {wide} + i] = 0; }}",
    )
    work = work_of(rows, wide * 0.02)
    low.recorder.emit(f"pack bytes '{node.name}'", body, (rows + 15) // 16, work=work)
    return packed


def emit_int8_product(
    low: Lowering,
    node: ir.Node,
    packed: Tensor,
    rows: Dim,
    weight: Array,
    zeros: tuple[Callable[[Body], str], int],
    target: Tensor,
    *,
    shifted: bool,
) -> None:
    """Write the kernel that fills ``target`` (rows, n) of int32.

    Args:
        low: Takes the kernel.
        node: The node it computes.
        packed: The result of ``pack_rows``.
        rows: How many rows.
        weight: The constant right side, ``(k, n)`` of int8 or uint8.
        zeros: The C text of the left zero point, given the body; the right one.
        target: Where the sums go.
        shifted: Whether the rows were signed, and 128 was added to them.
    """
    k, n = weight.shape
    quads, blocks = -(-k // 4), -(-n // _COLUMNS)
    content, sums = pack_columns(weight)
    weights = low.recorder.weight(("int8", id(node)), Packing(as_is, (content,)), content.size)
    columns = low.recorder.weight(("int8 sums", id(node)), Packing(as_is, (sums,)), sums.size * 4)
    vnni = multiplies_bytes(low.facts.level)
    body = Body()
    rows_of_tile = _ROWS
    body.helper(
        _TILE
        % {
            "rows": rows_of_tile,
            "target": '__attribute__((target("avx512vnni")))' if vnni else "",
            "body": _VNNI if vnni else _PLAIN,
        }
    )
    a, c = body.pointer(packed), body.pointer(target, written=True)
    b = body.raw(weights, ctype="int8_t")
    s = body.raw(columns, ctype="int32_t")
    left, right = zeros
    tiles = (rows + rows_of_tile - 1) // rows_of_tile
    right -= 128 if weight.dtype == np.uint8 else 0
    size = body.size(rows)
    body.add(
        f"int32_t za = {left(body)} + {128 if shifted else 0}, zb = {right};",
        # Neighbouring tasks share a block of weights, which stays in the nearest cache.
        f"int64_t block = q / {body.size(tiles)}, r0 = q % {body.size(tiles)} * {rows_of_tile};",
        f"int64_t m = hg_min({size} - r0, {rows_of_tile}), n0 = block * 64, w = hg_min({n} - n0, 64);",
        f"int32_t sum[{rows_of_tile} * 64] __attribute__((aligned(64)));",
        f"KERNEL_int8_tile({a} + r0 * {quads * 4}, {quads * 4}, m, {b} + block * {quads * 256}, {quads}, sum);",
        "for (int64_t r = 0; r < m; r++) {",
        "int32_t own = 0;",
        f"if (zb) for (int64_t i = 0; i < {k}; i++) own += {a}[(r0 + r) * {quads * 4} + i];",
        f"int32_t shift = {k} * za * zb - zb * own;",
        f"for (int64_t j = 0; j < w; j++) {c}[(r0 + r) * {n} + n0 + j] = sum[r * 64 + j] - za * {s}[n0 + j] + shift;",
        "}",
    )
    flops = 2.0 * k * n  # of a row
    work = work_of(rows, flops / 200)
    low.recorder.emit(node, body, tiles * blocks, work=work, flops=work_of(rows, flops))
