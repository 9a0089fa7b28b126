"""Attention on matrix tiles: queries, keys, probabilities and values in bfloat16.

Scores, softmax and sums stay in float32. Keys become tiles of 16 keys, two numbers of each in a
word; values tiles of 16 columns, two keys of each in a word.
"""

from __future__ import annotations

import onnx_ir as ir

from hagane.native.kernels.expression import float_text
from hagane.native.kernels.kernel import Body, work_of
from hagane.native.kernels.tensor import Tensor
from hagane.native.lowering.state import Lowering
from hagane.native.tiles.matrix_code import ROWS, product_function
from hagane.native.tiles.tile import Tile, Words
from hagane.symbolic import Dim, ceildiv, product

# Keys, columns of values and queries that two by two tiles have.
_WIDE = 32
# Rows of queries of one task, where there are too few heads for the threads.
QUERIES = 4 * _WIDE


def fits_tiles(low: Lowering, q: Tensor, k: Tensor, v: Tensor) -> bool:
    """Whether attention is computed on matrix tiles."""
    sizes = (q.shape[3], v.shape[3])
    return (
        low.facts.pairs
        and low.facts.level.tiles
        and all(isinstance(size, int) for size in sizes)
        and all(tensor.strides[3] == 1 for tensor in (q, k, v))
    )


def emit_attention_tiles(
    low: Lowering,
    node: ir.Node,
    body: Body,
    softmax: list[str],
    sizes: tuple[Dim, ...],
    scale: float,
    tasks: Dim,
) -> None:
    """Write the loops over queries, and the kernel.

    Args:
        low: Takes the kernel.
        node: The node that it computes.
        body: Has the pointers ``Q``, ``K``, ``V``, ``O`` of a head, their distances ``q2`` and so on,
            ``LQ``, ``LK``, ``first`` and ``last``.
        softmax: Lines that turn the scores ``x`` of ``row`` into probabilities.
        sizes: Batch, heads, queries, keys, size of a head, columns of values.
        scale: The factor of scores.
        tasks: How many there are.
    """
    batch, heads, queries, keys, size, width = sizes
    assert isinstance(size, int)
    assert isinstance(width, int)
    words = -(-size // _WIDE)  # blocks of 32 numbers of a head
    groups = -(-width // _WIDE)
    rows = Tile(1, (), (), None, 0, 16, 0, _WIDE * ROWS, 0, words=Words.PAIR)
    body.helper(product_function("KERNEL_tiles", 2, 2, rows, 64, 0))
    plane = _WIDE * ROWS  # words of 32 rows of one block
    body.add(
        f"const int64_t GK = (LK + {_WIDE - 1}) / {_WIDE}, LS = GK * {_WIDE};",
        f"uint32_t *PK = (uint32_t *)thread->scratch, *PV = PK + GK * {words * plane};",
        f"uint32_t *PQ = PV + GK * {groups * plane}, *PP = PQ + {words * plane};",
        f"float *S = (float *)(PP + GK * {plane});",
        "float sums[1024] __attribute__((aligned(64)));",
        *_pack_keys(size, words, plane),
        *_pack_values(width, groups, plane),
        "hg_tiles_begin(16);",
        f"for (int64_t top = first; top < last; top += {_WIDE}) {{",
        f"int64_t m = hg_min({_WIDE}, last - top);",
        *_pack_queries(size, words, plane),
        "for (int64_t g = 0; g < GK; g++) {",
        f"const float *w = (const float *)(PK + g * {words * plane});",
        f"KERNEL_tiles((const float *)PQ, (const float *)PQ + {ROWS * ROWS}, w, sums, w, {words}, 0, 0);",
        f"vf scale = v_set1({float_text(scale)});",
        "for (int64_t t = 0; t < m; t++) {",
        "const float *c = sums + (t >> 4) * 512 + (t & 15) * 16;",
        f"v_store(S + t * LS + g * {_WIDE}, v_load(c) * scale);",
        f"v_store(S + t * LS + g * {_WIDE} + 16, v_load(c + 256) * scale); }} }}",
        "for (int64_t t = 0; t < m; t++) { float *x = S + t * LS; int64_t row = top + t;",
        *softmax,
        "for (int64_t j = LK; j < LS; j++) x[j] = 0;",
        f"for (int64_t j = 0; j < LS; j += 16) v_store_pairs((uint16_t *)(PP + j / {_WIDE} * {plane}"
        " + t * 16) + j % 32, v_load(x + j)); }",
        f"for (int64_t g = 0; g < {groups}; g++) {{",
        f"const float *w = (const float *)(PV + g * GK * {plane});",
        f"KERNEL_tiles((const float *)PP, (const float *)PP + {ROWS * ROWS}, w, sums, w, GK, 0, 0);",
        f"int64_t n0 = hg_min(16, {width} - g * {_WIDE}), n1 = hg_min(16, {width} - g * {_WIDE} - 16);",
        f"float *o = O + top * o2 + g * {_WIDE};",
        "for (int64_t t = 0; t < m; t++, o += o2) {",
        "const float *c = sums + (t >> 4) * 512 + (t & 15) * 16;",
        "v_store_n(o, v_load(c), n0); if (n1 > 0) v_store_n(o + 16, v_load(c + 256), n1); } }",
        "}",
        "hg_tiles_end();",
    )
    key_blocks = ceildiv(keys, _WIDE)
    count = key_blocks * ((words + groups) * plane + plane + _WIDE * _WIDE) + words * plane
    whole = product((batch, heads, queries, keys, size + width))
    low.recorder.emit(
        node,
        body,
        tasks,
        work=work_of(whole, 2.0 / 300),
        flops=work_of(whole, 2.0),
        scratch=count * 4 + 64,
    )


def _pack_keys(size: int, words: int, plane: int) -> list[str]:
    """Return lines that bring keys into tiles, ``[keys / 32][words][2][16 words][16 keys]``."""
    return [
        "{ __m512i at = _mm512_mullo_epi32(_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, "
        "2, 1, 0), _mm512_set1_epi32(64));",
        f"for (int64_t j = 0; j < GK * {_WIDE}; j++) {{ const float *from = K + j * k2;",
        f"uint32_t *to = PK + j / {_WIDE} * {words * plane} + j % {_WIDE} / 16 * 256 + j % 16;",
        f"for (int64_t i = 0; i < {words * _WIDE}; i += {_WIDE}, to += {plane}) {{",
        f"vf a = v_set1(0.f), b = a; int64_t n = j < LK ? {size} - i : 0;",
        "if (n > 0) a = n >= 16 ? v_load(from + i) : v_load_n(from + i, n);",
        "if (n > 16) b = n >= 32 ? v_load(from + i + 16) : v_load_n(from + i + 16, n - 16);",
        "_mm512_i32scatter_epi32(to, at, v_two_pairs(a, b), 1); } } }",
    ]


def _pack_values(width: int, groups: int, plane: int) -> list[str]:
    """Return lines that bring values into tiles, ``[columns / 32][keys / 32][2][16 pairs][16]``."""
    return [
        f"for (int64_t j = 0; j < GK * {_WIDE}; j += 2) {{ const float *from = V + j * v2;",
        f"for (int64_t c = 0; c < {groups * _WIDE}; c += 16) {{",
        f"uint32_t *to = PV + (c / {_WIDE} * GK + j / {_WIDE}) * {plane} + c % {_WIDE} * 16 + j % {_WIDE} * 8;",
        f"vf a = v_set1(0.f), b = a; int64_t n = hg_min(16, {width} - c);",
        "if (n > 0 && j < LK) a = n == 16 ? v_load(from + c) : v_load_n(from + c, n);",
        "if (n > 0 && j + 1 < LK) b = n == 16 ? v_load(from + v2 + c) : v_load_n(from + v2 + c, n);",
        "v_store_pixels2((uint16_t *)to, a, b, 16); } }",
    ]


def _pack_queries(size: int, words: int, plane: int) -> list[str]:
    """Return lines that round the queries of a tile, ``[words][32 rows][32]``."""
    return [
        "for (int64_t t = 0; t < m; t++) { const float *from = Q + (top + t) * q2;",
        f"for (int64_t i = 0; i < {words * _WIDE}; i += 16) {{",
        f"int64_t n = hg_min(16, {size} - i);",
        "vf a = n >= 16 ? v_load(from + i) : n > 0 ? v_load_n(from + i, n) : v_set1(0.f);",
        f"v_store_pairs((uint16_t *)(PQ + i / {_WIDE} * {plane} + t * 16) + i % {_WIDE}, a); }} }}",
    ]
