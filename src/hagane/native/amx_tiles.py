"""One block of results in matrix tiles: the products as assembly, what follows them as C."""

from __future__ import annotations

from hagane.native.elementwise import expression_text
from hagane.native.ending import bounded
from hagane.native.expression import Expression, leaves
from hagane.native.tile import Store, Tile, Words

ROWS = LANES = 16
TILE_FLOATS = ROWS * LANES
_TILE_BYTES = 4 * TILE_FLOATS
_PRODUCT = {Words.PAIR: "tdpbf16ps", Words.QUAD: "tdpbusd"}


def product_function(
    name: str, high: int, wide: int, tile: Tile, row_step: int, prefetch: int
) -> str:
    """Return a C function that adds products to a block of ``high`` × ``wide`` tiles.

    ``name(p0, p1, w, c, pf, blocks, begun, plane)``: rows at ``p0`` and ``p1``, weights at ``w``,
    the sums at ``c``, one tile after the other, which start from zero unless ``begun``; sums go
    over ``blocks`` blocks of inputs and all taps. Returns the end of what it fetched ahead of
    ``pf``.

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
    for column in range(columns):
        at = column * tile.column_step * 4
        for j in range(wide):
            place = (column * wide + j) * _TILE_BYTES
            text.append(f"tileloadd {place}(%[w],%[line],1), {weights[j]}")
            if j == 0:
                text.append(f"tileloadd {at}(%[x0],%[step],1), {inputs[0]}")
            text.append(f"{operation} {weights[j]}, {inputs[0]}, {results[0][j]}")
        for i in range(1, high):
            text.append(f"tileloadd {at}(%[x{i}],%[step],1), {inputs[i]}")
            text += [f"{operation} {weights[j]}, {inputs[i]}, {results[i][j]}" for j in range(wide)]
        text += [f"prefetcht1 {64 * (column * prefetch + n)}(%[pf])" for n in range(prefetch)]
    text.append(f"add ${columns * wide * _TILE_BYTES}, %[w]")
    if prefetch:
        text.append(f"add ${64 * prefetch * columns}, %[pf]")
    if rows > 1:
        text += [f"add ${tile.row_step * 4}, %[x{i}]" for i in range(high)]
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
    steps: tuple[int, int],
    partial: bool,
    after: Expression | None = None,
) -> str:
    """Return a C function that brings sums of neighbouring pixels where they belong.

    ``name(c, count, b, r, d, last)``: sums from ``c`` on, one row of a tile a pixel; the numbers of
    the channels at ``b``, what is added at ``r``, results at ``d``. The last block has ``last``
    channels.

    Args:
        name: The function's name.
        wide: Tiles of channels.
        tile: What is done with the sums, and how blocks of channels lie.
        steps: Words between neighbouring pixels at ``d`` and at ``r``.
        partial: Whether the last block of channels may be a part of one.
        after: A function of one tensor, which results take the place of.
    """
    target_step, residual_step = steps
    out = [
        f"INLINE void {name}(const float *c, int64_t count, const float *b, const float *r, float *d,"
        " int64_t last) {",
        "  (void)r, (void)last;",
    ]
    for j in range(wide):
        out += [f"  {line}" for line in _numbers(tile, j)]
    out.append(
        f"  for (int64_t i = 0; i < count; i++, c += {LANES}, d += {target_step}, r += {residual_step}) {{"
    )
    for j in range(wide):
        out.append(f"    vf x{j} = {_scaled(tile, j)};")
        masked = partial and j == wide - 1
        if tile.residuals is not None:
            at = j // tile.residual_parts * tile.residual_plane
            at += j % tile.residual_parts * tile.residual_part
            out.append(f"    x{j} += {_added(tile, at, masked)};")
        value = bounded(f"x{j}", tile.activation)
        if after is not None:
            lines = [f"vf y{j} = {value};"]
            value = expression_text(
                after, tuple(leaves(after))[:1], {0: f"y{j}"}, lines, vector=True
            )
            out.append(f"    {{ {' '.join(lines)} x{j} = {value}; }}")
            value = f"x{j}"
        at = j // tile.target_parts * tile.target_plane + j % tile.target_parts * tile.part
        out.append(f"    {_stored(tile, j, at, value, masked)}")
    return "\n".join([*out, "  }", "}\n"])


def _numbers(tile: Tile, block: int) -> list[str]:
    """Return declarations of a block's numbers: what sums start from, factors and so on."""
    count = {Store.SUM: 1, Store.PAIR: 1, Store.SCALED: 3, Store.QUAD: 5}[tile.store]
    names = ("start", "factor", "shift", "most", "least")[:count]
    return [
        f"vf {name}{block} = v_load(b + {i * tile.parameters // 4 + block * LANES});"
        for i, name in enumerate(names)
    ]


def _scaled(tile: Tile, j: int) -> str:
    """Return C text of a sum with what it starts from, as a vector of floats or their bits."""
    sums = f"v_load(c + {j * TILE_FLOATS})"
    if tile.words is Words.PAIR:
        return f"{sums} + start{j}"
    whole = f"((vi){sums} + (vi)start{j})"
    if tile.store is Store.SCALED:
        return f"v_fma(__builtin_convertvector({whole}, vf), factor{j}, shift{j})"
    if tile.store is Store.QUAD:
        return f"v_min2(__builtin_convertvector({whole}, vf) * factor{j}, most{j})"
    return f"(vf){whole}"


def _added(tile: Tile, at: int, masked: bool) -> str:
    if tile.residual_pairs:
        return f"v_load_bf16((const uint16_t *)(r + {at}))"
    return f"v_load_n(r + {at}, last)" if masked else f"v_load(r + {at})"


def _stored(tile: Tile, j: int, at: int, value: str, masked: bool) -> str:
    if tile.store is Store.PAIR:
        return f"v_store_pairs((uint16_t *)(d + {at}), {value});"
    if tile.store is Store.QUAD:
        whole = f"_mm512_cvtps_epi32((__m512){value})"
        bytes_ = (
            f"_mm512_max_epi32(_mm512_add_epi32({whole}, (__m512i)shift{j}), (__m512i)least{j})"
        )
        return f"_mm_storeu_si128((__m128i *)(d + {at}), _mm512_cvtusepi32_epi8({bytes_}));"
    return f"v_store_n(d + {at}, {value}, last);" if masked else f"v_store(d + {at}, {value});"
