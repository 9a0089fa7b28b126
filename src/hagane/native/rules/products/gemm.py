"""Products of computed matrices: both sides are packed, then come register tiles.

The classical scheme of "Anatomy of High-Performance Matrix Multiplication" (Goto and van de
Geijn, ACM TOMS 2008): a block of columns of the right side and a few rows of the left one are
copied into the order in which the inner kernel reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import onnx_ir as ir

from hagane.machine import Level
from hagane.native.kernels.kernel import Body, work_of
from hagane.native.kernels.names import sizes
from hagane.native.kernels.tensor import Tensor
from hagane.native.tiles.tile import tile_pixels
from hagane.symbolic import Dim, ceildiv, floordiv, maximum, minimum, product

if TYPE_CHECKING:
    from hagane.native.lowering.state import Lowering

# The most columns of the right side that one task packs, in groups of one tile's width.
_GROUPS = 8
_BLOCKS = 2
# So much of the inner size is summed at once: a tile's rows stay in the first cache, and the columns
# of a task in the second.
_DEPTH = 256
# Tiles of rows of a task, and how many tasks there should be for each thread.
_LEAST_TILES, _TASKS = 4, 2
# Groups of columns of a task, as long as there are so many.
_LEAST_GROUPS = 4
# How many tasks there are for each thread at least, as long as there are columns.
_SHARES = 2


def panel_function(name: str, rows: int, level: Level, *, vectors: int = _BLOCKS) -> str:
    """Return a C function ``name(s, w, k, c, cs, d, ds)``: ``d[t] = c[t] + sum over k of s × w``.

    ``s`` is packed as ``[k][rows]``, ``w`` as ``[k][columns]``; rows of ``c`` are ``cs`` floats apart,
    those of ``d`` ``ds``; there are two vectors of columns.

    Args:
        name: Of the function.
        rows: Rows that it computes.
        level: Vector instructions.
        vectors: Vectors of columns that it computes, of two.
    """
    lanes = level.lanes
    signature = (
        f"INLINE void {name}(const float *s, const float *w, int64_t k, const float *c, int64_t cs, "
        "float *d, int64_t ds)"
    )
    if not level.assembly:
        lines = [f"{signature} {{"]
        lines += [
            f"  vf a{t}_{j} = v_load(c + {t} * cs + {j * lanes});"
            for t in range(rows)
            for j in range(vectors)
        ]
        lines.append(f"  for (; k > 0; k--, s += {rows}, w += {_BLOCKS * lanes}) {{")
        lines += [f"    vf w{j} = v_load(w + {j * lanes});" for j in range(vectors)]
        lines += [f"    a{t}_{j} += s[{t}] * w{j};" for t in range(rows) for j in range(vectors)]
        lines.append("  }")
        lines += [
            f"  v_store(d + {t} * ds + {j * lanes}, a{t}_{j});"
            for t in range(rows)
            for j in range(vectors)
        ]
        return "\n".join([*lines, "}\n"])
    register = "zmm" if lanes == 16 else "ymm"
    used = rows * vectors
    weights = [f"%%{register}{used + j}" for j in range(vectors)]
    spare = [f"%%{register}{i}" for i in range(used + vectors, level.registers)][-3:]
    text = []
    for t in range(rows):
        text += [
            f"vmovups {j * lanes * 4}(%[c]), %%{register}{t * vectors + j}" for j in range(vectors)
        ]
        text += ["add %[cs], %[c]"] if t < rows - 1 else []

    def step(u: int) -> list[str]:
        out = [
            f"vmovups {(u * _BLOCKS + j) * lanes * 4}(%[w]), {weights[j]}" for j in range(vectors)
        ]
        for t in range(rows):
            x = spare[(u * rows + t) % len(spare)]
            out.append(f"vbroadcastss {(u * rows + t) * 4}(%[s]), {x}")
            out += [
                f"vfmadd231ps {weights[j]}, {x}, %%{register}{t * vectors + j}"
                for j in range(vectors)
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
    for t in range(rows):
        text += [
            f"vmovups %%{register}{t * vectors + j}, {j * lanes * 4}(%[d])" for j in range(vectors)
        ]
        text += ["add %[ds], %[d]"] if t < rows - 1 else []
    body = "\n".join(f'    "{line}\\n\\t"' for line in text)
    clobbered = ", ".join(f'"{register}{i}"' for i in range(level.registers))
    return f"""{signature} {{
  int64_t n;
  __asm__ volatile(
{body}
    : [s] "+r"(s), [w] "+r"(w), [c] "+r"(c), [d] "+r"(d), [n] "=&r"(n)
    : [k] "r"(k), [cs] "r"(cs * 4), [ds] "r"(ds * 4)
    : "memory", "cc", {clobbered});
}}
"""


def _panels(body: Body, level: Level, heights: Sequence[int], n: Dim) -> list[str]:
    """Write products of tiles of some heights; return the calls of them, by ``height``.

    The last columns take half a tile where that is enough.
    """
    wide = _BLOCKS * level.lanes
    narrow = not isinstance(n, int) or 0 < n % wide <= level.lanes
    cases = []
    for height in heights:
        body.helper(panel_function(f"KERNEL_panel{height}", height, level))
        call = f"KERNEL_panel{height}(left, w, kc, c, cs, d, ds);"
        if narrow:
            body.helper(panel_function(f"KERNEL_narrow{height}", height, level, vectors=1))
            half = f"KERNEL_narrow{height}(left, w, kc, c, cs, d, ds);"
            call = f"if (width <= {level.lanes}) {half} else {call}"
        cases.append(f"case {height}: {call} break;")
    return ["switch (height) {", *cases, "}"]


def turn_function(name: str, lanes: int) -> str:
    """Return a C function that writes a square of at most ``VL`` rows and columns as columns.

    ``name(s, step, rows, count, d, to)`` reads ``rows`` rows of ``count`` floats, ``step`` apart, and
    writes ``count`` rows of ``VL`` floats, ``to`` apart, in order; missing rows are zeros.
    """
    lines = [
        "#ifdef __clang__",
        "#define HG_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)",
        "#else",
        "#define HG_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (vi){__VA_ARGS__})",
        "#endif",
        f"INLINE void {name}(const float *s, int64_t step, int64_t rows, int64_t count, float *d, "
        "int64_t to) {",
        "const vf none = {0};",
        "vf " + ", ".join(f"r{i}" for i in range(lanes)) + ", t;",
        f"if (rows >= {lanes} && count >= {lanes}) {{",
        *(f"r{i} = v_load(s + {i} * step);" for i in range(lanes)),
        "} else {",
        *(
            f"r{i} = rows > {i} ? v_load_n(s + {i} * step, hg_min(count, VL)) : none;"
            for i in range(lanes)
        ),
        "}",
    ]
    apart = lanes // 2
    while apart:
        low = [i if not i & apart else lanes + i - apart for i in range(lanes)]
        high = [i + apart if not i & apart else lanes + i for i in range(lanes)]
        for i in range(lanes):
            if not i & apart:
                one, other = f"r{i}", f"r{i + apart}"
                lines += [
                    f"t = HG_SHUFFLE({one}, {other}, {', '.join(map(str, low))});",
                    f"{other} = HG_SHUFFLE({one}, {other}, {', '.join(map(str, high))});",
                    f"{one} = t;",
                ]
        apart //= 2
    lines += [f"if (count > {i}) v_store(d + {i} * to, r{i});" for i in range(lanes)]
    return "\n".join([*lines, "}\n"])


def _pack_left(body: Body, rows: int, lanes: int, a: Tensor) -> None:
    """Write the packing of ``m`` rows from ``top``, missing ones of ``height`` as zeros."""
    row, step = body.size(a.strides[-2]), body.size(a.strides[-1])
    body.add(
        f"const float *from = a0 + top * {row} + k0 * {step};",
        f"if (height == 1) for (int64_t k = 0; k < kc; k++) left[k] = from[k * {step}];",
    )
    if a.strides[-1] == 1 and rows <= lanes:
        # Rows of VL floats, of which the next one covers the end.
        body.add(
            "else for (int64_t k = 0; k < kc; k += VL)",
            f"KERNEL_turn(from + k, {row}, m, kc - k, left + k * height, height);",
        )
    elif a.strides[-2] == 1 and rows <= lanes:
        body.add(
            "else for (int64_t k = 0; k < kc; k++)",
            f"v_store(left + k * height, v_load_n(from + k * {step}, m));",
        )
    else:
        body.add(
            "else for (int64_t k = 0; k < kc; k++) for (int64_t t = 0; t < height; t++)",
            f"left[k * height + t] = t < m ? from[t * {row} + k * {step}] : 0;",
        )


def _pack_right(body: Body, wide: int, b: Tensor) -> None:
    """Write the packing of ``width`` columns of a group; missing ones are zeros."""
    row, step = body.size(b.strides[-2]), body.size(b.strides[-1])
    body.add(
        f"int64_t width = hg_min({wide}, columns - g * {wide});",
        f"const float *from = b0 + (column + g * {wide}) * {step} + k0 * {row};",
        f"float *to = right + g * kc * {wide};",
    )
    if b.strides[-1] == 1:
        body.add(
            f"if (width < {wide}) memset(to, 0, kc * {wide * 4});",
            f"if (width == {wide}) for (int64_t k = 0; k < kc; k++) "
            f"memcpy(to + k * {wide}, from + k * {row}, {wide * 4});",
            f"else for (int64_t k = 0; k < kc; k++) "
            f"memcpy(to + k * {wide}, from + k * {row}, width * 4);",
        )
    elif b.strides[-2] == 1:
        body.add(
            f"for (int64_t c = 0; c < {wide}; c += VL) for (int64_t k = 0; k < kc; k += VL)",
            f"KERNEL_turn(from + c * {step} + k, {step}, width - c, kc - k, "
            f"to + k * {wide} + c, {wide});",
        )
    else:
        body.add(
            f"for (int64_t k = 0; k < kc; k++) for (int64_t c = 0; c < {wide}; c++)",
            f"to[k * {wide} + c] = c < width ? from[c * {step} + k * {row}] : 0;",
        )


def _as_rows(a: Tensor, b: Tensor, target: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return a stack of left sides that share one right side as one left side, where it lies so."""
    batch = len(target.shape) - 2
    if not batch or any(stride != 0 for stride in b.strides[:batch]):
        return a, b, target
    for i in range(batch):
        if a.strides[i] != a.shape[i + 1] * a.strides[i + 1]:
            return a, b, target
    rows = product(a.shape[:-1])
    a = replace(a, shape=(rows, a.shape[-1]), strides=a.strides[-2:])
    b = replace(b, shape=b.shape[-2:], strides=b.strides[-2:])
    return a, b, target.reshaped((rows, target.shape[-1]))


def emit_batched(
    low: Lowering,
    node: ir.Node,
    a: Tensor,
    b: Tensor,
    target: Tensor,
    row: Tensor | None = None,
    followers: Sequence[ir.Node] = (),
) -> None:
    """Write products of stacks of matrices, ``(…, m, k) × (…, k, n)``, of any strides.

    The inner size is summed in blocks, so that packed blocks stay in the caches.

    Args:
        low: The kernels so far.
        node: The product.
        a: The left sides.
        b: The right sides.
        target: The results.
        row: ``n`` numbers, contiguous, that are added to each row.
        followers: The nodes that are computed with the product.
    """
    level, lanes = low.facts.level, low.facts.level.lanes
    wide = _BLOCKS * lanes
    a, b, target = _as_rows(a, b, target)
    m, k = a.shape[-2:]
    n = b.shape[-1]
    batch = target.shape[:-2]
    count = product(batch)
    body = Body()
    rows = tile_pixels(level, _BLOCKS)
    body.helper(turn_function("KERNEL_turn", lanes))
    # Tiles of equal heights, so that the last one is not mostly zeros.
    tiles = ceildiv(m, rows)
    height = ceildiv(m, maximum(1, tiles))
    heights = [max(1, height)] if isinstance(height, int) else range(1, rows + 1)
    calls = _panels(body, level, heights, n)
    # Tasks that share rows would pack the same columns: columns are divided first, as far as packed
    # rows serve some groups of them, then rows, until all threads have tasks.
    groups = ceildiv(n, wide)
    tasks = _TASKS * max(1, low.facts.threads)
    apart = minimum(ceildiv(groups, _LEAST_GROUPS), ceildiv(tasks, maximum(1, count)))
    # Where there are too few rows for that, columns alone are divided, down to one group.
    rough = maximum(1, count * ceildiv(tiles, _LEAST_TILES))
    spread = minimum(groups, ceildiv(_SHARES * low.facts.threads, rough))
    wanted = maximum(maximum(ceildiv(groups, _GROUPS), apart), spread)
    per_task = ceildiv(groups, maximum(1, wanted))
    column_tasks = ceildiv(groups, maximum(1, per_task))
    share = floordiv(tiles * column_tasks * count, tasks)
    each = maximum(_LEAST_TILES, minimum(tiles, share))
    row_tasks = ceildiv(tiles, maximum(1, each))
    s, w = body.pointer(a), body.pointer(b)
    added = None if row is None else body.pointer(row)
    d = body.pointer(target, written=True)
    body.add(
        f"const int64_t K = {body.size(k)}, M = {body.size(m)}, N = {body.size(n)};",
        f"const int64_t height = {body.size(height)}, most = {body.size(per_task)} * {wide};",
        f"int64_t column = q % {body.size(column_tasks)} * most, left_q = q / {body.size(column_tasks)};",
        f"int64_t first = left_q % {body.size(row_tasks)} * {body.size(each)} * height;",
        f"int64_t last = hg_min(M, first + {body.size(each)} * height);",
        f"int64_t index = left_q / {body.size(row_tasks)};",
        f"float *out0 = {d} + index * M * N;",
        f"const float *a0 = {s}, *b0 = {w};",
    )
    for i in reversed(range(len(batch))):
        body.add(
            f"{{ int64_t at = index % {body.size(batch[i])}; index /= {body.size(batch[i])};",
            f"a0 += at * {body.size(a.strides[i])}; b0 += at * {body.size(b.strides[i])}; }}",
        )
    deep: Dim = minimum(_DEPTH, maximum(1, k))
    body.add(
        f"int64_t columns = hg_min(most, N - column), groups = (columns + {wide - 1}) / {wide};",
        f"float *right = (float *)thread->scratch, *left = right + {body.size(deep)} * {wide * _GROUPS};",
        f"float tile[{rows * wide}] __attribute__((aligned(64)));",
        f"static const float none[{wide}] __attribute__((aligned(64)));",
        "int64_t k0 = 0;",
        "do {",
        f"const int64_t kc = hg_min({_DEPTH}, K - k0);",
        "for (int64_t g = 0; g < groups; g++) {",
    )
    _pack_right(body, wide, b)
    body.add(
        "}",
        "for (int64_t top = first; top < last; top += height) {",
        "int64_t m = hg_min(height, last - top);",
    )
    _pack_left(body, rows, lanes, a)
    # Whole tiles are summed from the row or the sums so far, into their place.
    begin = "none" if added is None else f"{added} + column + g * {wide}"
    body.add(
        "for (int64_t g = 0; g < groups; g++) {",
        f"const float *w = right + g * kc * {wide};",
        f"int64_t width = hg_min({wide}, columns - g * {wide});",
        f"float *out = out0 + top * N + column + g * {wide};",
        f"const int whole = width == {wide} && m == height;",
        "const float *c = none; int64_t cs = 0; float *d = out; int64_t ds = N;",
        "if (whole && k0 > 0) c = out, cs = N;",
        *([] if added is None else [f"else if (whole) c = {begin};"]),
        f"if (!whole) d = tile, ds = {wide};",
        *calls,
        "if (!whole) for (int64_t t = 0; t < m; t++) for (int64_t i = 0; i < width; i++)",
        f"out[t * N + i] = tile[t * {wide} + i] + (k0 > 0 ? out[t * N + i] : "
        + ("0.f);" if added is None else f"({begin})[i]);"),
        "} }",
        f"k0 += {_DEPTH};",
        "} while (k0 < K);",
    )
    whole = product((count, m, n, k))
    scratch: Dim = (deep * (wide * _GROUPS + rows) + lanes) * 4
    low.recorder.emit(
        node,
        body,
        count * row_tasks * column_tasks,
        work=work_of(whole, 2.0 / 50),
        flops=work_of(whole, 2.0),
        scratch=scratch,
        followers=followers,
        name=f"matmul_{sizes((*batch, m, k, n))}",
    )
