"""Products of computed matrices: both sides are packed, then come register tiles.

The classical scheme of "Anatomy of High-Performance Matrix Multiplication" (Goto and van de
Geijn, ACM TOMS 2008): a block of columns of the right side and a few rows of the left one are
copied into the order in which the inner kernel reads them. Rows that many blocks of columns meet
are packed once, by a kernel of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import onnx_ir as ir

from hagane.machine import Level
from hagane.native.kernels.kernel import Body, c_type, work_of
from hagane.native.kernels.names import sizes
from hagane.native.kernels.tensor import Tensor
from hagane.native.layouts.pairs import BFLOAT16
from hagane.native.rules.products.left_side import DEPTH, pack_ahead, pack_left, turn_function
from hagane.native.rules.products.sides import side, words_of
from hagane.native.rules.products.thin import FEW_COLUMNS, FEW_ROWS, thin_functions, thin_lines
from hagane.native.tiles.tile import tile_pixels
from hagane.symbolic import Dim, ceildiv, floordiv, maximum, minimum, product

if TYPE_CHECKING:
    from hagane.native.lowering.state import Lowering

# The most columns of the right side that one task packs, in groups of one tile's width.
_GROUPS = 8
_BLOCKS = 2
# Tiles of rows of a task, and how many tasks there should be for each thread.
_LEAST_TILES, _TASKS = 4, 2
# The same where rows are packed ahead: each task packs its columns.
_TASKS_AHEAD = 3
# Groups of columns of a task, as long as there are so many.
_LEAST_GROUPS = 4
# So many rows of the right side ahead are fetched.
_FETCHED = 4
# How many tasks there are for each thread at least, as long as there are columns.
_SHARES = 2


def panel_function(
    name: str, rows: int, level: Level, *, vectors: int = _BLOCKS, pairs: bool = False
) -> str:
    """Return a C function ``name(s, w, k, c, cs, d, ds)``: ``d[t] = c[t] + sum over k of s × w``.

    The sum over k is added to ``c`` as a whole: one chain of thousands would lose digits.

    ``s`` is packed as ``[k][rows]``, ``w`` as ``[k][columns]``; rows of ``c`` are ``cs`` floats apart,
    those of ``d`` ``ds``; there are two vectors of columns.

    Args:
        name: Of the function.
        rows: Rows that it computes.
        level: Vector instructions.
        vectors: Vectors of columns that it computes, of two.
        pairs: Whether words are pairs of bfloat16, which takes assembly; else floats.
    """
    lanes = level.lanes
    signature = (
        f"SHARED void {name}(const float *s, const float *w, int64_t k, const float *c, int64_t cs, "
        "float *d, int64_t ds)"
    )
    if not level.assembly:
        lines = [f"{signature} {{"]
        lines += [f"  vf a{t}_{j} = {{0}};" for t in range(rows) for j in range(vectors)]
        lines.append(f"  for (; k > 0; k--, s += {rows}, w += {_BLOCKS * lanes}) {{")
        lines += [f"    vf w{j} = v_load(w + {j * lanes});" for j in range(vectors)]
        lines += [f"    a{t}_{j} += s[{t}] * w{j};" for t in range(rows) for j in range(vectors)]
        lines.append("  }")
        lines += [
            f"  v_store(d + {t} * ds + {j * lanes}, v_load(c + {t} * cs + {j * lanes}) + a{t}_{j});"
            for t in range(rows)
            for j in range(vectors)
        ]
        return "\n".join([*lines, "}\n"])
    register = "zmm" if lanes == 16 else "ymm"
    multiply = "vdpbf16ps" if pairs else "vfmadd231ps"
    used = rows * vectors
    weights = [f"%%{register}{used + j}" for j in range(vectors)]
    spare = [f"%%{register}{i}" for i in range(used + vectors, level.registers)][-3:]
    sums = [f"%%{register}{i}" for i in range(used)]
    clear = "vpxord" if lanes == 16 else "vxorps"
    text = [f"{clear} {acc}, {acc}, {acc}" for acc in sums]

    def step(u: int) -> list[str]:
        out = [
            f"vmovups {(u * _BLOCKS + j) * lanes * 4}(%[w]), {weights[j]}" for j in range(vectors)
        ]
        for t in range(rows):
            x = spare[(u * rows + t) % len(spare)]
            out.append(f"vbroadcastss {(u * rows + t) * 4}(%[s]), {x}")
            out += [
                f"{multiply} {weights[j]}, {x}, {sums[t * vectors + j]}" for j in range(vectors)
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
        for j in range(vectors):
            acc = sums[t * vectors + j]
            text += [
                f"vaddps {j * lanes * 4}(%[c]), {acc}, {acc}",
                f"vmovups {acc}, {j * lanes * 4}(%[d])",
            ]
        text += ["add %[cs], %[c]", "add %[ds], %[d]"] if t < rows - 1 else []
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


def _panels(body: Body, level: Level, heights: Sequence[int], n: Dim, *, pairs: bool) -> list[str]:
    """Write products of tiles of some heights; return the calls of them, by ``height``.

    The last columns take half a tile where that is enough.
    """
    wide = _BLOCKS * level.lanes
    narrow = not isinstance(n, int) or 0 < n % wide <= level.lanes
    cases = []
    for height in heights:
        whole = partial(panel_function, rows=height, level=level, pairs=pairs)
        call = f"{body.shared(whole)}(left, w, kc, c, cs, d, ds);"
        if narrow:
            half = f"{body.shared(partial(whole, vectors=1))}(left, w, kc, c, cs, d, ds);"
            call = f"if (width <= {level.lanes}) {half} else {call}"
        cases.append(f"case {height}: {call} break;")
    return ["switch (height) {", *cases, "}"]


def _pack_right(body: Body, wide: int, lanes: int, b: Tensor) -> None:
    """Write the packing of ``columns`` columns in groups; missing ones of the last are zeros."""
    read, step = side(body, b, -2), body.size(b.strides[-1])
    kind, at = read.kind, read.start("k")
    body.add(f"const {kind} *right_from = b0 + column * {step} + {read.start('k0')};")
    if b.strides[-1] == 1:
        # Groups side by side, as they share pages and lines of memory.
        body.add(
            "for (int64_t k = 0; k < kc; k++) {",
            f"const {kind} *from = right_from + {at}; float *to = right + k * {wide};",
            "for (int64_t c = 0; c < columns; c += 16) "
            f"__builtin_prefetch(from + {_FETCHED} * {read.inner} + c);",
            "int64_t g = 0;",
            f"for (; g < columns / {wide}; g++, from += {wide}, to += kc * {wide}) {{",
            *(
                f"v_store(to + {at}, {read.vector(f'from + {at}', 'k0 + k')});"
                for at in range(0, wide, lanes)
            ),
            "}",
            "if (g < groups) {",
            *(
                f"v_store(to + {at}, {read.vector(f'from + {at}', 'k0 + k', rest)});"
                for at in range(0, wide, lanes)
                for rest in (f"hg_max(0, hg_min(VL, columns - g * {wide} - {at}))",)
            ),
            "}",
            "}",
        )
        return
    body.add(
        "for (int64_t g = 0; g < groups; g++) {",
        f"int64_t width = hg_min({wide}, columns - g * {wide});",
        f"const {kind} *from = right_from + g * {wide} * {step};",
        f"float *to = right + g * kc * {wide};",
    )
    one = read.word(f"from + c * {step} + {at}", "k0 + k")
    each = (
        f"for (int64_t k = 0; k < kc; k++) for (int64_t c = 0; c < {wide}; c++) "
        f"to[k * {wide} + c] = c < width ? {one} : 0;"
    )
    if b.strides[-2] == 1:
        body.add(
            f"if ({read.in_order(step)})",
            f"for (int64_t c = 0; c < {wide}; c += VL) for (int64_t k = 0; k < kc; k += VL)",
            f"KERNEL_turn({read.words(f'from + c * {step}')} + k, {read.step(step)}, width - c, "
            f"kc - k, to + k * {wide} + c, {wide});",
            *([f"else {each}"] if read.pairs else []),
        )
    else:
        body.add(each)
    body.add("}")


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


def _is_packed_ahead(m: Dim, groups: Dim, batch: Sequence[Dim], rows: int) -> bool:
    """Whether a kernel of its own packs the left side: several tasks would read the same rows."""
    many = not isinstance(m, int) or m > _LEAST_TILES * rows
    return not batch and isinstance(groups, int) and groups > _LEAST_GROUPS and many


def _division(tiles: Dim, groups: Dim, count: Dim, threads: int, ahead: bool) -> tuple[Dim, Dim]:
    """Return the groups of columns and the tiles of rows of a task.

    Args:
        tiles: Of rows.
        groups: Of columns.
        count: Of products.
        threads: How many share the tasks.
        ahead: Whether rows are packed already.
    """
    tasks = (_TASKS_AHEAD if ahead else _TASKS) * max(1, threads)
    if ahead and isinstance(groups, int):
        # Columns are packed once where tasks take all rows, so rows are divided only for want of
        # tasks; of the numbers of columns, one that keeps the threads busy to the end.
        least = max(1, min(_LEAST_GROUPS, groups // (_SHARES * threads)))
        best = min(
            range(min(_GROUPS, groups), least - 1, -1),
            key=lambda share: -(-groups // share // threads) * share,
        )
        wanted = ceildiv(tasks, ceildiv(groups, best))
        return best, maximum(_LEAST_TILES, ceildiv(tiles, wanted))
    # Tasks that share rows would pack the same columns: columns are divided first, as far as packed
    # rows serve some groups of them, then rows, until all threads have tasks.
    apart = minimum(ceildiv(groups, _LEAST_GROUPS), ceildiv(tasks, maximum(1, count)))
    # Where there are too few rows for that, columns alone are divided, down to one group.
    rough = maximum(1, count * ceildiv(tiles, _LEAST_TILES))
    spread = minimum(groups, ceildiv(_SHARES * threads, rough))
    wanted = maximum(maximum(ceildiv(groups, _GROUPS), apart), spread)
    per_task = ceildiv(groups, maximum(1, wanted))
    share = floordiv(tiles * ceildiv(groups, maximum(1, per_task)) * count, tasks)
    return per_task, maximum(_LEAST_TILES, minimum(tiles, share))


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
        a: The left sides, floats or bfloat16; the latter takes a processor that multiplies these.
        b: The right sides, of the same type.
        target: The results, floats.
        row: ``n`` numbers, contiguous, that are added to each row.
        followers: The nodes that are computed with the product.
    """
    level, lanes = low.facts.level, low.facts.level.lanes
    wide = _BLOCKS * lanes
    a, b, target = _as_rows(a, b, target)
    m, k = a.shape[-2], words_of(a.shape[-1], a.dtype)
    n, pairs = b.shape[-1], a.dtype == BFLOAT16
    batch = target.shape[:-2]
    count = product(batch)
    body = Body()
    rows = tile_pixels(level, _BLOCKS)
    body.shared(partial(turn_function, lanes=lanes), "KERNEL_turn")
    # Tiles of equal heights, so that the last one is not mostly zeros; where they are not packed
    # ahead, heights differ by a row in place of zeros.
    tiles = ceildiv(m, rows)
    height = ceildiv(m, maximum(1, tiles))
    groups = ceildiv(n, wide)
    ahead, plain, inner = None, a, a.shape[-1]
    if _is_packed_ahead(m, groups, batch, rows):
        ahead = pack_ahead(low, node, a, rows, tiles, height)
        a = ahead.tensor
    heights: Sequence[int] = range(1, rows + 1)
    if isinstance(m, int) and isinstance(tiles, int) and isinstance(height, int):
        heights = sorted({max(1, height if ahead else m // max(1, tiles)), max(1, height)})
    calls = _panels(body, level, heights, n, pairs=pairs)
    per_task, each = _division(tiles, groups, count, low.facts.threads, ahead is not None)
    column_tasks = ceildiv(groups, maximum(1, per_task))
    row_tasks = ceildiv(tiles, maximum(1, each))
    few = False, False
    if not pairs:
        few = not isinstance(m, int) or m <= FEW_ROWS, not isinstance(n, int) or n <= FEW_COLUMNS
    s, w = body.pointer(a), body.pointer(b)
    given = body.pointer(plain) if ahead and any(few) else s
    added = None if row is None else body.pointer(row)
    d = body.pointer(target, written=True)
    body.add(
        f"const int64_t depth = {body.size(inner)}; (void)depth;",
        f"const int64_t K = {body.size(k)}, M = {body.size(m)}, N = {body.size(n)};",
        f"const int64_t most = {body.size(per_task)} * {wide};",
        *([f"const int64_t height = {body.size(height)};"] if ahead else []),
        f"const int64_t across = {body.size(column_tasks)}, part = q % across;",
        "int64_t column = part * most, left_q = q / across;",
        f"const int64_t tiles = {body.size(tiles)}, each = {body.size(each)};",
        f"int64_t first_tile = left_q % {body.size(row_tasks)} * each;",
        "const int64_t last_tile = hg_min(tiles, first_tile + each);",
        *(
            ["int64_t first = first_tile * height, last = hg_min(M, last_tile * height);"]
            if ahead
            else ["int64_t first = first_tile * M / tiles, last = last_tile * M / tiles;"]
        ),
        f"int64_t index = left_q / {body.size(row_tasks)};",
        f"float *out0 = {d} + index * M * N;",
        f"const {c_type(a.dtype)} *a0 = {s}; const {c_type(b.dtype)} *b0 = {w};",
    )
    for i in reversed(range(len(batch))):
        body.add(
            f"{{ int64_t at = index % {body.size(batch[i])}; index /= {body.size(batch[i])};",
            f"a0 += at * {body.size(a.strides[i])}; b0 += at * {body.size(b.strides[i])}; }}",
        )
    deep: Dim = minimum(DEPTH, maximum(1, k))
    if any(few):
        (am, ak), (bk, bn) = plain.strides[-2:], b.strides[-2:]
        body.add(
            "{",
            f"const int64_t am = {body.size(am)}, ak = {body.size(ak)};",
            f"const int64_t bk = {body.size(bk)}, bn = {body.size(bn)}; (void)bk; (void)bn;",
            *([f"const float *a0 = {given};"] if ahead else []),
        )
        room = f"{body.size(deep)} * {wide * _GROUPS} - 16"
        rows_too, columns_too = few
        body.helper(thin_functions("float"))
        lines = thin_lines(
            "float", rows=rows_too, columns=columns_too, row=added or "", room=room,
            threads=low.facts.threads,
        )  # fmt: skip
        body.add(*lines, "}")
    body.add(
        f"int64_t columns = hg_min(most, N - column), groups = (columns + {wide - 1}) / {wide};",
        "float *right = (float *)thread->scratch;",
        "" if ahead else f"float *left = right + {body.size(deep)} * {wide * _GROUPS};",
        f"float tile[{rows * wide}] __attribute__((aligned(64)));",
        f"static const float none[{wide}] __attribute__((aligned(64)));",
        "(void)first, (void)last;",
        "int64_t k0 = 0;",
        "do {",
        f"const int64_t kc = hg_min({DEPTH}, K - k0);",
    )
    _pack_right(body, wide, lanes, b)
    body.add("for (int64_t number = first_tile; number < last_tile; number++) {")
    if ahead is None:
        body.add(
            "const int64_t top = number * M / tiles, height = (number + 1) * M / tiles - top;",
            "const int64_t m = height;",
        )
        pack_left(body, rows, lanes, a)
    else:
        body.add(
            "const int64_t top = number * height, m = hg_min(height, M - top);",
            f"const float *left = {ahead.panel('a0', 'number', 'tiles', 'height')};",
        )
    # Whole tiles are added to the row or the sums so far, in their place.
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
        "if (!whole) for (int64_t t = 0; t < m; t++) for (int64_t i = 0; i < width; i += VL) {",
        f"vf sum = v_load(tile + t * {wide} + i); const int64_t n = hg_min(VL, width - i);",
        "if (k0 > 0) sum += v_load_n(out + t * N + i, n);",
        *([] if added is None else [f"else sum += v_load_n({begin} + i, n);"]),
        "v_store_n(out + t * N + i, sum, n); }",
        "} }",
        f"k0 += {DEPTH};",
        "} while (k0 < K);",
    )
    whole = product((count, m, n, inner))
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
