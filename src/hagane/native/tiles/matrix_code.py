"""One block of results in matrix tiles: the products as assembly, the epilogue as C."""

from __future__ import annotations

import itertools

from hagane.native.kernels.elementwise_loops import expression_text
from hagane.native.kernels.expression import Expression, leaves
from hagane.native.tiles.tile import Store, Tile, Words, bounded

ROWS = LANES = 16
TILE_FLOATS = ROWS * LANES
_TILE_BYTES = 4 * TILE_FLOATS
_PRODUCT = {Words.PAIR: "tdpbf16ps", Words.TRIPLE: "tdpbf16ps", Words.QUAD: "tdpbusd"}
# Pairs of pieces of the inputs and the weights, small products first. The remainder
# is less than 2^-22 of a product, to either side. From one to the next,
# only one side is loaded.
_ORDER = {1: ((0, 0),), 3: ((2, 0), (1, 0), (1, 1), (0, 1), (0, 0), (0, 2))}


def product_function(
    name: str,
    high: int,
    wide: int,
    tile: Tile,
    row_step: int,
    prefetch: int,
) -> str:
    """Return a C function that adds products to a block of ``high`` × ``wide`` tiles.

    ``name(p0, p1, w, c, pf, blocks, begun, plane)``: rows at ``p0`` and ``p1``, weights at ``w``,
    the sums at ``c``, one tile after the other, which start from zero unless ``begun``; sums go
    over ``blocks`` blocks of inputs and all taps. Returns the end of the weights that it fetched
    ahead of ``pf``.

    Args:
        name: The function's name.
        high: Tiles of rows.
        wide: Tiles of channels.
        tile: Words, taps and distances.
        row_step: Bytes from one row of a tile to the next.
        prefetch: Cache lines of later weights to fetch for each tap of a block of inputs.
    """
    rows, columns = tile.taps
    operation = _PRODUCT[tile.words]
    # As hg_tiles_begin shapes them: six of as many rows as a tile of pixels has, two of weights.
    results = [[f"%%tmm{2 * i + j}" for j in range(wide)] for i in range(high)]
    inputs = [f"%%tmm{4 + i}" for i in range(high)]
    weights = [f"%%tmm{6 + j}" for j in range(wide)]
    places = [
        (result, f"{(i * wide + j) * _TILE_BYTES}(%[c],%[line],1)")
        for i, row in enumerate(results)
        for j, result in enumerate(row)
    ]
    text = ["test %[begun], %[begun]", "jnz 1f"]
    text += [f"tilezero {result}" for result, _ in places]
    text += ["jmp 2f", "1:"]
    text += [f"tileloadd {place}, {result}" for result, place in places]
    text += ["2:", *(f"mov %[p{i}], %[x{i}]" for i in range(high))]
    if rows > 1:
        text += [f"mov ${rows}, %[kh]", "3:"]
    pieces = tile.words.pieces
    for column in range(columns):
        loaded: tuple[int | None, int | None] = (None, None)
        for of_input, of_weight in _ORDER[pieces]:
            at = column * tile.column_step * 4 + of_input * 64
            for i, j in itertools.product(range(high), range(wide)):
                place = ((column * pieces + of_weight) * wide + j) * _TILE_BYTES
                if i == 0 and of_weight != loaded[1]:
                    text.append(f"tileloadd {place}(%[w],%[line],1), {weights[j]}")
                if j == 0 and of_input != loaded[0]:
                    text.append(f"tileloadd {at}(%[x{i}],%[step],1), {inputs[i]}")
                text.append(f"{operation} {weights[j]}, {inputs[i]}, {results[i][j]}")
            loaded = of_input, of_weight
        text += [f"prefetcht1 {64 * (column * prefetch + n)}(%[pf])" for n in range(prefetch)]
    text.append(f"add ${columns * wide * pieces * _TILE_BYTES}, %[w]")
    if prefetch:
        text.append(f"add ${64 * prefetch * columns}, %[pf]")
    if rows > 1:
        text += [f"add ${tile.known[2] * 4}, %[x{i}]" for i in range(high)]
        text += ["dec %[kh]", "jnz 3b"]
    plane = "%[plane]" if tile.source_plane is None else f"${tile.source_plane * 4}"
    text += [f"add {plane}, %[p{i}]" for i in range(high)]
    text += ["dec %[blocks]", "jnz 2b"]
    text += [f"tilestored {result}, {place}" for result, place in places]
    lines = "\n".join(f'    "{line}\\n\\t"' for line in text)
    used = ", ".join(
        [f'[p{i}] "+r"(p{i}), [x{i}] "=&r"(x{i})' for i in range(high)]
        + (['[kh] "=&r"(kh)'] if rows > 1 else [])
    )
    last = ', [plane] "r"(plane)' if tile.source_plane is None else ""
    return f"""INLINE const float *{name}(const float *p0, const float *p1, const float *w, float *c,
    const float *pf, int64_t blocks, int64_t begun, int64_t plane) {{
  const float *x0, *x1;
  int64_t kh;
  (void)p1, (void)x1, (void)kh, (void)plane;
  __asm__ volatile(
{lines}
    : [w] "+r"(w), [pf] "+r"(pf), [blocks] "+r"(blocks), {used}
    : [c] "r"(c), [begun] "r"(begun), [line] "r"((int64_t)64), [step] "r"((int64_t){row_step}){last}
    : "memory", "cc");
  return pf;
}}
"""


def finish_function(
    name: str,
    wide: int,
    tile: Tile,
    row_step: int,
    steps: tuple[int, int],
    partial: bool,
    padded: bool,
    after: Expression | None = None,
) -> str:
    """Return a C function that brings sums of neighbouring pixels where they belong.

    ``name(c, count, b, r, d, left, p, w, plane)``: sums from ``c`` on, one row of a tile a pixel;
    the numbers of the channels at ``b``, the residual at ``r``, results at ``d``. From the first
    channel on, ``left`` exist. Sums of numbers in pieces that are not finite are summed again, from
    the inputs at ``p`` and the weights at ``w``.

    Args:
        name: The function's name.
        wide: Tiles of channels.
        tile: The use of the sums, and how blocks of channels lie.
        row_step: Words between neighbouring pixels at ``p``.
        steps: Words between neighbouring pixels at ``d`` and at ``r``.
        partial: Whether some channels may not exist. Nothing is added to these, and functions of
            them are zero: results may lie in wider blocks than the residual, and zero weights meet
            them in the next product, where an infinity would not vanish.
        padded: Whether results of channels that do not exist are stored.
        after: A function of one tensor, which results take the place of.
    """
    target_step, residual_step = steps
    if tile.store is Store.QUAD:
        return _finish_bytes(name, wide, tile, steps, partial)
    out = [
        f"INLINE void {name}(const float *c, int64_t count, const float *b, const float *r, float *d,"
        " int64_t left, const float *p, const float *w, int64_t plane) {",
        "  (void)r, (void)left, (void)p, (void)w, (void)plane;",
    ]
    split = tile.words.pieces > 1
    if split:
        out.insert(0, _sum_function(f"{name}_sum", wide, tile))
    for j in range(wide):
        out += [f"  {line}" for line in _numbers(tile, j)]
        if partial:
            out.append(
                f"  const __mmask16 lanes{j} = hg_lanes(left - {j * LANES}); (void)lanes{j};"
            )
    out.append(
        f"  for (int64_t i = 0; i < count; i++, c += {LANES}, d += {target_step}, r += {residual_step}) {{"
    )
    if split:
        bad = " | ".join(f"v_not_finite(v_load(c + {j * TILE_FLOATS}))" for j in range(wide))
        out.append(
            f"    if (__builtin_expect({bad}, 0)) {name}_sum(p + i * {row_step}, w, (float *)c, plane);"
        )
    for j in range(wide):
        out.append(f"    vf x{j} = {_scaled(tile, j)};")
        if tile.residuals is not None:
            at = j // tile.residual_parts * tile.known[1]
            at += j % tile.residual_parts * tile.residual_part
            out.append(f"    x{j} += {_added(tile, at, f'lanes{j}' if partial else '')};")
        value = bounded(f"x{j}", tile.activation)
        if after is not None:
            lines = [f"vf y{j} = {value};"]
            value = expression_text(
                after, tuple(leaves(after))[:1], {0: f"y{j}"}, lines, vector=True
            )
            out.append(f"    {{ {' '.join(lines)} x{j} = {value}; }}")
            value = f"v_kept(x{j}, lanes{j})" if partial and padded else f"x{j}"
        at = j // tile.target_parts * tile.known[0] + j % tile.target_parts * tile.part
        cut = f"lanes{j}" if partial and not padded else ""
        out.append(f"    {_stored(tile, at, value, cut)}")
    return "\n".join([*out, "  }", "}\n"])


def _sum_function(name: str, wide: int, tile: Tile) -> str:
    """Return a C function that sums one row as floats: ``name(p, w, c, plane)``.

    Pieces of infinity, multiplied one by one, are no numbers.
    """
    rows, columns = tile.taps
    plane = "plane / 4" if tile.source_plane is None else str(tile.source_plane)
    return f"""static __attribute__((noinline)) void {name}(const float *p, const float *w, float *c,
    int64_t plane) {{
  vf sums[{wide}] = {{{{0}}}};
  (void)plane;
  for (int64_t k = 0; k < {tile.depth}; k++)
    for (int64_t y = 0; y < {rows}; y++)
      for (int64_t x = 0; x < {columns}; x++, w += {2 * wide * TILE_FLOATS}) {{
        const uint16_t *s = (const uint16_t *)(p + k * {plane} + y * {tile.row_step} + x * {tile.column_step});
        for (int64_t i = 0; i < hg_min(32, {32 * tile.depth - tile.missing} - k * 32); i++)
          for (int64_t j = 0; j < {wide}; j++)
            sums[j] = v_fma(v_set1(s_load_triple(s + i)), v_load(w + (i * {wide} + j) * {LANES}), sums[j]);
      }}
  for (int64_t j = 0; j < {wide}; j++) v_store(c + j * {TILE_FLOATS}, sums[j]);
}}
"""


def _finish_bytes(name: str, wide: int, tile: Tile, steps: tuple[int, int], partial: bool) -> str:
    """Return the function for bytes: four vectors of sums become one vector."""
    at_once = 4 // wide
    target_step, residual_step = steps
    added = tile.residuals is not None
    rows = [f"{i * tile.parameters // 4}" for i in range(8)]
    out = [
        f"INLINE void {name}(const float *c, int64_t count, const float *b, const float *r, float *d,"
        " int64_t left, const float *p, const float *w, int64_t plane) {",
        "  (void)r, (void)left, (void)p, (void)w, (void)plane;",
        *(f"  {line}" for j in range(wide) for line in _numbers(tile, j)),
        f"  __m512i zero = _mm512_loadu_si512(b + {rows[2]}), least = _mm512_loadu_si512(b + {rows[3]});",
        f"  __m512 most = _mm512_loadu_ps(b + {rows[4]}); (void)most;",
        "  int64_t i = 0;",
    ]
    for j in range(wide if added else 0):
        out += [
            f"  const vf shift{j} = v_load(b + {rows[6]} + {j * LANES});",
            f"  const vf of_residual{j} = v_load(b + {rows[7]} + {j * LANES});",
        ]
        if partial:
            out.append(f"  const __mmask16 lanes{j} = hg_lanes(left - {j * LANES});")
    for pixels in (at_once, 1):
        values = []
        for v in range(4):
            pixel, j = divmod(v, wide) if pixels > 1 else (0, v % wide)
            sums = f"(__m512i)((vi)v_load(c + {pixel * LANES + j * TILE_FLOATS}) + (vi)start{j})"
            both = f"{sums}, (__m512)factor{j}"
            if added:
                at = pixel * residual_step + j // tile.residual_parts * tile.known[1]
                at += j % tile.residual_parts * tile.residual_part
                residual = _added(tile, at, f"lanes{j}" if partial else "")
                scaled = f"v_fma({residual}, of_residual{j}, v_fma((vf)_mm512_cvtepi32_ps({sums}), factor{j}, shift{j}))"
                values.append(
                    f"hg_rounded({scaled}, most)"
                    if tile.limited
                    else f"hg_rounded_freely({scaled})"
                )
                continue
            values.append(
                f"hg_scaled({both}, most)" if tile.limited else f"hg_scaled_freely({both})"
            )
        out += [
            f"  for (; i + {pixels} <= count; i += {pixels}, c += {pixels * LANES}, "
            f"d += {pixels * target_step}, r += {pixels * residual_step if added else 0}) {{",
            f"    __m512i y = hg_bytes_in_rows({', '.join(values)}, zero);",
            "    y = _mm512_max_epu8(y, least);",
        ]
        width = 16 * wide
        for pixel in range(pixels):
            part = "_mm512_castsi512_si128(y)" if width == 16 else "_mm512_castsi512_si256(y)"
            if pixel:
                kind = "32x4" if width == 16 else "64x4"
                part = f"_mm512_extracti{kind}_epi{kind[:2]}(y, {pixel})"
            kind = (
                "_mm_storeu_si128((__m128i *)" if width == 16 else "_mm256_storeu_si256((__m256i *)"
            )
            out.append(f"    {kind}(d + {pixel * target_step}), {part});")
        out.append("  }")
    return "\n".join([*out, "}\n"])


def _numbers(tile: Tile, block: int) -> list[str]:
    """Return declarations of a block's numbers: starts of sums, factors and so on."""
    count = {Store.SCALED: 3, Store.QUAD: 2}.get(tile.store, 1)
    names = ("start", "factor", "shift")[:count]
    return [
        f"vf {name}{block} = v_load(b + {i * tile.parameters // 4 + block * LANES});"
        for i, name in enumerate(names)
    ]


def _scaled(tile: Tile, j: int) -> str:
    """Return C text of a sum with its start, as a vector of floats or their bits."""
    sums = f"v_load(c + {j * TILE_FLOATS})"
    if tile.words is not Words.QUAD:
        return f"{sums} + start{j}"
    whole = f"((vi){sums} + (vi)start{j})"
    if tile.store is Store.SCALED:
        return f"v_fma(__builtin_convertvector({whole}, vf), factor{j}, shift{j})"
    return f"(vf){whole}"


def _added(tile: Tile, at: int, lanes: str) -> str:
    if tile.residual_words is Words.PAIR:
        return f"v_load_bf16((const uint16_t *)(r + {at}))"
    if tile.residual_words is Words.QUAD:
        return f"v_load_u8((const uint8_t *)(r + {at}))"
    if tile.residual_words is Words.TRIPLE:
        return f"v_load_triples((const uint16_t *)(r + {at}))"
    return f"v_load_kept(r + {at}, {lanes})" if lanes else f"v_load(r + {at})"


def _stored(tile: Tile, at: int, value: str, lanes: str) -> str:
    if tile.store in (Store.PAIR, Store.TRIPLE):
        return f"v_store_{tile.store.value}s((uint16_t *)(d + {at}), {value});"
    return f"v_store_kept(d + {at}, {value}, {lanes});" if lanes else f"v_store(d + {at}, {value});"
