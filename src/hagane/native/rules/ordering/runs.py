"""C functions that reduce runs of elements: those in a row to one number, or rows to a row."""

from __future__ import annotations

from dataclasses import dataclass

# Results side by side at most, and elements that are summed in the quick type before their sum is
# added to the others.
RESULTS, _PIECE = 128, 4096
# Steps of rows that are summed in the quick type.
_ROWS = 256
# Bytes of sums side by side along a row, four of the widest vectors.
_BYTES = 256
_WIDTHS = {"double": 8, "int64_t": 8, "uint64_t": 8, "float": 4, "int32_t": 4, "uint32_t": 4,
           "int16_t": 2, "uint16_t": 2, "int8_t": 1, "uint8_t": 1}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Step:
    """One reduction of elements of one type.

    Attributes:
        element: The C type of an element.
        load: C text for an element ``x[at]`` as a number.
        quick: The C type in which few numbers are put together.
        start: The result of no elements.
        step: C text that takes an element ``v`` to a sum ``a``.
        wide: The C type in which those sums are put together.
        join: C text that puts the sums ``a`` and ``v`` together.
        shift: The C type of a number ``top`` that ``step`` knows for each result, if any.
        mark: The C type of marks of elements that are not numbers, if ``step`` passes over these and
            the result is to be none.
    """

    element: str
    load: str
    quick: str
    start: str
    step: str
    wide: str
    join: str
    shift: str = ""
    mark: str = ""


_TEXT = """
INLINE QUICK RUNS_step(QUICK a, QUICK vTOP_VALUE) { return STEP; }
INLINE QUICK RUNS_both(QUICK a, QUICK v) { return BOTH; }
INLINE WIDE RUNS_join(WIDE a, WIDE v) { return JOIN; }
INLINE QUICK RUNS_load(const ELEMENT *x, int64_t at) { return LOAD; }

LINE
/* The result of some runs of m elements, stride apart. */
static WIDE RUNS_lines(const ELEMENT *x, int64_t m, int64_t stride, int64_t countTOP_VALUE) {
  const int64_t group = hg_max(1, PIECE / LANES / ((m + LANES - 1) / LANES)), n = m;
  WIDE sum = START;
  for (int64_t r0 = 0; r0 < count; r0 += group) {
    QUICK own[LANES];
    for (int j = 0; j < LANES; j++) own[j] = START;
MARKED    MARK bad[LANES] = {0}, any = 0;
    for (int64_t r = r0; r < hg_min(count, r0 + group); r++) {
      const ELEMENT *row = x + r * stride;
      int64_t k = 0;
      for (; k + LANES <= m; k += LANES)
        for (int j = 0; j < LANES; j++) {
          const QUICK v = RUNS_load(row, k + j);
          own[j] = RUNS_step(own[j], vTOP_ONE);
MARKED          bad[j] |= v != v;
        }
      for (int64_t j = 0; j < m - k; j++) {
        const QUICK v = RUNS_load(row, k + j);
        own[j] = RUNS_step(own[j], vTOP_ONE);
MARKED        bad[j] |= v != v;
      }
    }
MARKED    for (int j = 0; j < LANES; j++) any |= bad[j];
MARKED    if (any) return NAN;
FOLD    sum = RUNS_join(sum, own[0]);
  }
  return sum;
}

/* m rows of w elements, stride apart, to one row of sums. */
INLINE void RUNS_rows(const ELEMENT *x, int64_t m, int64_t stride, const int64_t w, WIDE *sumsTOP_ROW) {
  QUICK own[RESULTS];
MARKED  MARK bad[RESULTS];
  for (; m > 0; x += ROWS * stride, m -= ROWS) {
    for (int64_t j = 0; j < w; j++) own[j] = START;
MARKED    for (int64_t j = 0; j < w; j++) bad[j] = 0;
    for (int64_t k = 0; k < hg_min(m, ROWS); k++)
      for (int64_t j = 0; j < w; j++) {
        const QUICK v = RUNS_load(x, k * stride + j);
        own[j] = RUNS_step(own[j], vTOP_J);
MARKED        bad[j] |= v != v;
      }
MARKED    for (int64_t j = 0; j < w; j++) own[j] = bad[j] ? (QUICK)NAN : own[j];
    for (int64_t j = 0; j < w; j++) sums[j] = RUNS_join(sums[j], own[j]);
  }
}
static void RUNS_across(const ELEMENT *x, int64_t m, int64_t stride, int64_t w, WIDE *sumsTOP_ROW) {
  if (w == RESULTS) RUNS_rows(x, m, stride, RESULTS, sumsTOP_PASS);
  else if (w == RESULTS / 2) RUNS_rows(x, m, stride, RESULTS / 2, sumsTOP_PASS);
  else if (w == stride && w < RESULTS / 4 && m > 8) {
    /* Rows that follow each other are one long row of several. */
    const int64_t count = RESULTS / w, length = count * w;
    WIDE long_sums[RESULTS];
LONG_TOP
    for (int64_t j = 0; j < length; j++) long_sums[j] = START;
    RUNS_rows(x, m / count, length, length, long_sumsTOP_LONG);
    for (int64_t i = 0; i < count; i++)
      for (int64_t j = 0; j < w; j++) sums[j] = RUNS_join(sums[j], long_sums[i * w + j]);
    RUNS_rows(x + m / count * length, m % count, w, w, sumsTOP_PASS);
  }
  else RUNS_rows(x, m, stride, w, sumsTOP_PASS);
}
"""
_LINE = """
/* The result of m elements in a row. */
static WIDE RUNS_line(const ELEMENT *x, int64_t mTOP_VALUE) {
  WIDE sum = START;
  if (m < 16) {
    QUICK own = START;
MARKED    MARK bad = 0;
MARKED    for (int64_t k = 0; k < m; k++) bad |= RUNS_load(x, k) != RUNS_load(x, k);
    for (int64_t k = 0; k < m; k++) own = RUNS_step(own, RUNS_load(x, k)TOP_ONE);
MARKED    if (bad) return NAN;
    return own;
  }
  for (; m > 0; x += PIECE, m -= PIECE) {
    const int64_t n = hg_min(m, PIECE);
    QUICK own[LANES];
    int64_t k = 0;
MARKED    MARK bad[LANES] = {0}, any = 0;
    for (int j = 0; j < LANES; j++) own[j] = START;
    for (; k + LANES <= n; k += LANES)
      for (int j = 0; j < LANES; j++) {
        const QUICK v = RUNS_load(x, k + j);
        own[j] = RUNS_step(own[j], vTOP_ONE);
MARKED        bad[j] |= v != v;
      }
AGAIN    if (n >= LANES && k < n) for (int j = 0; j < LANES; j++) /* some of them again */
AGAIN      own[j] = RUNS_step(own[j], RUNS_load(x, n - LANES + j));
AGAIN    else
    for (int j = 0; j < n - k; j++) {
      const QUICK v = RUNS_load(x, k + j);
      own[j] = RUNS_step(own[j], vTOP_ONE);
MARKED      bad[j] |= v != v;
    }
MARKED    for (int j = 0; j < LANES; j++) any |= bad[j];
MARKED    if (any) return NAN;
FOLD    sum = RUNS_join(sum, own[0]);
  }
  return sum;
}
"""
# The largest or least float of a line.
_EXTREME = """
static WIDE RUNS_line(const ELEMENT *x, int64_t m) { return hg_extreme_of(x, m, SIGN); }
"""
# e^x of numbers not above zero, within 2 ulp.
_EXP = """
INLINE float RUNS_exp(float x) {
  float y = x < -87.f ? -87.f : x > 87.f ? 87.f : x, n = rintf(y * 1.44269504f);
  float r = n * -0.693359375f + y;
  r = n * 2.12194440e-4f + r;
  float p = 1.394110957e-03f;
  p = p * r + 8.363175256e-03f;
  p = p * r + 4.166637530e-02f;
  p = p * r + 1.666657701e-01f;
  p = p * r + 5.000000027e-01f;
  p = p * (r * r) + r + 1.f;
  union { int32_t bits; float number; } scale = {((int32_t)n + 127) << 23};
  return x < -87.f ? 0.f : p * scale.number;
}
"""


def runs_of(step: Step, name: str) -> str:
    """Return C functions ``KERNEL_<name>_line``, ``KERNEL_<name>_lines`` and ``KERNEL_<name>_across``.

    The first takes elements and their number, the second also the distance of such lines and how many
    there are, the third rows, their number and distance, their length and sums that it adds to; then
    ``top``, or one for each result, if the step has one.
    """
    shifted = bool(step.shift)
    lanes = min(RESULTS, _BYTES // _WIDTHS[step.quick])
    halves = [lanes >> i for i in range(1, lanes.bit_length())]
    fold = "".join(
        f"    {f'if (n > {half}) ' if half >= 16 else ''}for (int j = 0; j < {half}; j++)"
        f" own[j] = RUNS_both(own[j], own[j + {half}]);\n"
        for half in halves
    )
    line = _EXTREME if step.mark and step.element == "float" else _LINE
    found = {
        "SIGN": str(int(step.start == "-INFINITY")),
        "TOP_VALUE": f", {step.shift} top" if shifted else "",
        "TOP_ROW": f", const {step.shift} *top" if shifted else "",
        "TOP_ONE": ", top" if shifted else "",
        "TOP_J": ", top[j]" if shifted else "",
        "TOP_PASS": ", top" if shifted else "",
        "TOP_LONG": ", tops" if shifted else "",
        "LONG_TOP": f"    {step.shift} tops[RESULTS];\n    for (int64_t j = 0; j < length; j++) tops[j] = top[j % w];"
        if shifted
        else "",
        "ELEMENT": step.element,
        "QUICK": step.quick,
        "WIDE": step.wide,
        "START": step.start,
        "STEP": step.step,
        "BOTH": step.step if step.mark else step.join,
        "MARK": step.mark,
        "JOIN": step.join,
        "LOAD": step.load,
        "FOLD": fold,
        "LANES": str(lanes),
        "PIECE": str(_PIECE),
        "RESULTS": str(RESULTS),
        "ROWS": str(_ROWS if step.wide != step.quick else 1 << 20),
    }
    text = (_EXP if "RUNS_exp(" in step.step and step.quick == "float" else "") + _TEXT.replace(
        "LINE\n", line
    )
    lines = text.splitlines(keepends=True)
    text = "".join(
        line.removeprefix("MARKED") for line in lines if step.mark or line[:6] != "MARKED"
    )
    # What is the largest or least stays so if elements are taken twice.
    twice = step.step == step.join and "?" in step.step
    lines = text.splitlines(keepends=True)
    text = "".join(line.removeprefix("AGAIN") for line in lines if twice or line[:5] != "AGAIN")
    for key, value in found.items():
        text = text.replace(key, value)
    if step.quick == "double":
        text = text.replace("RUNS_exp(", "exp(")
    return text.replace("RUNS_", f"KERNEL_{name}_")
