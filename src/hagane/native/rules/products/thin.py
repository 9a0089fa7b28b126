"""Products of few rows or few columns: nothing is packed, as each number meets but few others.

Few rows pass along the rows of the right side, of which several are added at once; few columns are
sums of products along the rows of the left side. Either reads the large matrix once, in order.
"""

from __future__ import annotations

from functools import partial

from hagane.native.kernels.kernel import shared_function

# Rows that are not packed, and columns.
FEW_ROWS, FEW_COLUMNS = 4, 4
# So many rows of the right side are added at once; of the left side, summed at once.
_AT_ONCE = 8
_SUMMED = 4
# So many products make a sum that is worth vectors of its own, and so many numbers a right side that
# is worth no packing.
_LONG, _LARGE = 32, 512
# Columns whose sums stay in the first cache.
_STRETCH = 1024

# The C type of numbers: that of vectors, their lanes, and what begins the names of their functions.
_VECTORS = {"float": ("vf", "VL", "v"), "double": ("vd", "(VL / 2)", "vd")}


def thin_functions(kind: str) -> str:
    """Return C functions, compiled once for all kernels, of the products of few rows, and of few columns.

    ``KERNEL_along(a, am, ak, m, b, bk, k, n, y, ys, row)`` writes ``m`` rows of ``n`` numbers, ``ys``
    apart: ``row``, or zeros if it is NULL, and the product of ``a`` and the rows of ``b``, whose
    columns lie side by side. ``KERNEL_dots(x, xs, count, v, k, y, ys, first, fs)`` writes ``count``
    numbers: ``first``, or zero, and the products of ``v`` and the rows of ``x``.

    Args:
        kind: ``float`` or ``double``.
    """
    functions = ((_along, "KERNEL_along"), (_dots, "KERNEL_dots"))
    return "\n".join(shared_function(partial(made, kind), name)[1] for made, name in functions)


def _along(kind: str, name: str) -> str:
    vector, lanes, f = _VECTORS[kind]

    def added(many: int) -> str:
        rows = range(many)
        pointers = " ".join(f"const {kind} *r{i} = b + (i + {i}) * bk + j0;" for i in rows)
        factors = " ".join(f"const {kind} f{i} = from[{i} * ak];" for i in rows)
        step = " ".join(f"s += {f}_load(r{i} + j) * f{i};" for i in rows)
        rest = " ".join(f"s += {f}_load_n(r{i} + j, n1 - j) * f{i};" for i in rows)
        return f"""
  for (; i + {many} <= k; i += {many}) {{
    {pointers}
    for (int64_t r = 0; r < m; r++) {{
      const {kind} *from = a + r * am + i * ak;
      {factors}
      {kind} *to = y + r * ys + j0;
      int64_t j = 0;
      for (; j + {lanes} <= n1; j += {lanes}) {{ {vector} s = {f}_load(to + j); {step} {f}_store(to + j, s); }}
      if (j < n1) {{ {vector} s = {f}_load_n(to + j, n1 - j); {rest} {f}_store_n(to + j, s, n1 - j); }}
    }}
  }}"""

    return f"""
SHARED void {name}(const {kind} *a, int64_t am, int64_t ak, int64_t m, const {kind} *b, int64_t bk,
                   int64_t k, int64_t n, {kind} *y, int64_t ys, const {kind} *row) {{
  for (int64_t j0 = 0; j0 < n; j0 += {_STRETCH}) {{
  const int64_t n1 = hg_min({_STRETCH}, n - j0);
  for (int64_t r = 0; r < m; r++) for (int64_t j = 0; j < n1; j++) y[r * ys + j0 + j] = row ? row[j0 + j] : 0;
  int64_t i = 0;{added(_AT_ONCE)}{added(1)}
  }}
}}
"""


def _dots(kind: str, name: str) -> str:
    """Several rows at a time, then single ones: sums of one order, so that equal rows have equal sums."""
    vector, lanes, f = _VECTORS[kind]

    def summed(many: int) -> str:
        rows = range(many)
        begin = f"{vector} " + ", ".join(f"s{i} = {{0}}, t{i} = {{0}}" for i in rows) + ";"
        pair = " ".join(
            f"s{i} += {f}_load(x + {i} * xs + i) * u; t{i} += {f}_load(x + {i} * xs + i + {lanes}) * w;"
            for i in rows
        )
        whole = " ".join(f"s{i} += {f}_load(x + {i} * xs + i) * u;" for i in rows)
        rest = " ".join(f"t{i} += {f}_load_n(x + {i} * xs + i, k - i) * u;" for i in rows)
        end = " ".join(
            f"y[{i} * ys] = {f}_sum(s{i} + t{i}) + (first ? first[{i} * fs] : 0);" for i in rows
        )
        return f"""
  for (; c + {many} <= count; c += {many}, x += {many} * xs, y += {many} * ys) {{
    {begin}
    int64_t i = 0;
    for (; i + 2 * {lanes} <= k; i += 2 * {lanes}) {{
      const {vector} u = {f}_load(v + i), w = {f}_load(v + i + {lanes});
      {pair}
    }}
    for (; i + {lanes} <= k; i += {lanes}) {{ const {vector} u = {f}_load(v + i); {whole} }}
    if (i < k) {{ const {vector} u = {f}_load_n(v + i, k - i); {rest} }}
    {end}
    if (first) first += {many} * fs;
  }}"""

    return f"""
SHARED void {name}(const {kind} *x, int64_t xs, int64_t count, const {kind} *v, int64_t k, {kind} *y,
                        int64_t ys, const {kind} *first, int64_t fs) {{
  int64_t c = 0;{summed(_SUMMED)}{summed(1)}
}}
"""


def thin_lines(
    kind: str, *, rows: bool, columns: bool, row: str, room: str, threads: int
) -> list[str]:
    """Return C that computes a product of few rows or columns, after which the kernel returns.

    The text before has ``M``, ``N``, ``K``, the strides ``am``, ``ak``, ``bk`` and ``bn``, the places
    ``a0``, ``b0`` and ``out0`` of the matrices, the number of column tasks ``across`` and which
    one this is, ``part``, and the rows of the task, from ``first`` up to ``last``; the kernel has
    ``thin_functions``.

    Args:
        kind: ``float`` or ``double``.
        rows: Whether there may be few rows.
        columns: Whether there may be few columns.
        row: C text of ``N`` numbers that are added to each row, or nothing.
        room: C text of how many numbers the thread's memory has room for.
        threads: How many threads share the tasks.
    """
    lines = []
    if columns:
        added, step = (f"{row} + c", "0") if row else ("NULL", "0")
        lines += [
            f"if (N <= {FEW_COLUMNS} && N < M && K >= {_LONG} && ak == 1 && (bk == 1 || N * K <= {room})) {{",
            "if (part) return;",
            f"const {kind} *column0 = b0; int64_t next = bn;",
            "if (bk != 1) {",
            f"{kind} *to = ({kind} *)(((uintptr_t)thread->scratch + 63) & ~(uintptr_t)63);",
            "for (int64_t c = 0; c < N; c++) for (int64_t k = 0; k < K; k++)",
            "to[c * K + k] = b0[k * bk + c * bn];",
            "column0 = to; next = K;",
            "}",
            f"for (int64_t r = first; r < last; r += {_SUMMED}) for (int64_t c = 0; c < N; c++)",
            f"KERNEL_dots(a0 + r * am, am, hg_min({_SUMMED}, last - r), column0 + c * next, K, "
            f"out0 + r * N + c, N, {added}, {step});",
            "return; }",
        ]
    if rows:
        shares = 2 * threads if threads > 1 else 1
        at = f"{row} + j" if row else "NULL"
        lines += [
            f"if (M <= {FEW_ROWS} && N * K >= {_LARGE} && (bn == 1 || (bk == 1 && ak == 1))) {{",
            f"const int64_t shares = hg_min(across, {shares}), share = (N + shares - 1) / shares;",
            "const int64_t j = part * share, n = hg_min(share, N - j);",
            "if (part >= shares || n <= 0) return;",
            "if (bn == 1)",
            f"KERNEL_along(a0, am, ak, M, b0 + j, bk, K, n, out0 + j, N, {at});",
            "else for (int64_t r = 0; r < M; r++)",
            "KERNEL_dots(b0 + j * bn, bn, n, a0 + r * am, K, "
            f"out0 + r * N + j, 1, {at}, {'1' if row else '0'});",
            "return; }",
        ]
    return lines
