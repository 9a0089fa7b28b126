"""TopK, CumSum, CumProd, Hardmax, ArgMax and ArgMin of any element type."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.kernel import c_type, work_of
from hagane.native.kernels.tensor import Tensor
from hagane.native.kernels.written import (
    as_bits,
    bits_type,
    emit_written,
    is_real,
    loaded,
    number_type,
    stored,
)
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.indexing.axes import around, axis_of
from hagane.native.rules.shaping.numbers import found_numbers
from hagane.symbolic import Dim, ceildiv, floordiv, maximum, minimum

# Neighbouring lines that one task walks along together.
_LINES = 64
# So few of the best are kept in order while others are looked at.
_FEW_BEST = 16
# Lines one behind the other that a sum walks along together; parts of a sum, and elements of one.
_BESIDE, _MOST_PARTS, _PART = 8, 32, 8192
# Neighbouring lines that TopK reads together.
_TOGETHER = 16
# No axis is longer.
_MOST = "(1LL << 40)"


def lower_top_k(low: Lowering, node: ir.Node) -> None:
    """Lower TopK. Of equal elements the lower index is better; NaN is larger than any number."""
    x = low.forms.contiguous(node.inputs[0])
    shape = low.facts.shape(node.outputs[0])
    axis = axis_of(low, node, len(x.shape))
    outer, n, inner = around(x.shape, axis)
    _find_count(low, node, shape[axis], "0")
    values = _result(low, node.outputs[0], x.dtype, shape)
    indices = _result(low, node.outputs[1], np.dtype(np.int64), shape)
    largest = bool(low.facts.attributes(node)["largest"])
    short = x.dtype.itemsize <= 4
    helper, text = (_chosen_by_keys if short else _chosen_by_heap)(x.dtype, largest=largest)
    emit_written(
        low.recorder, node, text,
        reads={"x": x}, writes={"y": values, "index": indices},
        sizes={"n": n, "K": shape[axis], "inner": inner}, types={"T": c_type(x.dtype)},
        items=outer * inner, each=n * 2, helper=helper, cost=0.5,
        scratch=(24 + (0 if inner == 1 else 4 * _TOGETHER)) * n + 2048 if short else 0,
    )  # fmt: skip
    low.forms[node.outputs[0]], low.forms[node.outputs[1]] = values, indices


def _chosen_by_keys(dtype: np.dtype[np.generic], *, largest: bool) -> tuple[str, str]:
    """Return C helpers and C that finds the best of a line of elements of at most 32 bits.

    Elements better than a bound are collected; when there is no more room, the best of these stay,
    and the worst of them is the bound.
    """
    from hagane.native.rules.ordering.keys import KEEP, SORT, key_function  # few models need it

    helper = f"{SORT}{KEEP}{key_function(dtype, falling=largest)}"
    text = f"""
if (K > n || K < 0 || n >> 31) {{ hg_fail(thread, K); return; }}
const int64_t room = hg_min(n, 2 * K + 96) + 32;
uint64_t *keys = (uint64_t *)thread->scratch, *spare = keys + K;
uint32_t *values = (uint32_t *)(spare + K), *places = values + room, *near = places + room;
/* lines that lie side by side are read together */
for (int64_t line = first, wide; line < last && K > 0; line += wide) {{
const int64_t outer = line / inner, column = line % inner;
const T *from = x + outer * n * inner + column;
wide = inner == 1 ? 1 : hg_min({_TOGETHER}, hg_min(last - line, inner - column));
if (inner != 1) for (int64_t i = 0; i < n; i++)
for (int64_t l = 0; l < wide; l++) near[l * n + i] = KERNEL_key({loaded(dtype, "from[i * inner + l]")});
for (int64_t l = 0; l < wide; l++) {{
int64_t count = 0; uint32_t bound = 0; int full = 0;
const int sorts = K <= {_FEW_BEST};
for (int64_t i = 0; i < n; i += 32) {{
const int64_t m = hg_min(32, n - i);
uint32_t own[32];
const uint32_t *next = inner == 1 ? own : near + l * n + i;
if (inner == 1 && m == 32) for (int j = 0; j < 32; j++) own[j] = KERNEL_key({loaded(dtype, "from[i + j]")});
else if (inner == 1) for (int64_t j = 0; j < m; j++) own[j] = KERNEL_key({loaded(dtype, "from[i + j]")});
if (sorts) {{
uint32_t hits = m < 32 ? (1u << m) - 1 : full ? KERNEL_below(next, bound) : 0xffffffff;
for (; hits; hits &= hits - 1) {{
const int j = __builtin_ctz(hits);
const uint32_t v = next[j];
if (full && v >= bound) continue;
int64_t p = count - full;
for (; p > 0 && values[p - 1] > v; p--) values[p] = values[p - 1], places[p] = places[p - 1];
values[p] = v; places[p] = (uint32_t)(i + j);
count += !full; full = count == K; bound = values[K - 1]; }} }}
else if (full && m == 32) {{
for (uint32_t hits = KERNEL_below(next, bound); hits; hits &= hits - 1) {{
const int j = __builtin_ctz(hits);
values[count] = next[j]; places[count++] = (uint32_t)(i + j); }} }}
else for (int64_t j = 0; j < m; j++) {{
values[count] = next[j]; places[count] = (uint32_t)(i + j);
count += !full | (next[j] < bound); }}
if (!sorts && count + 64 > room && count > K) {{ bound = KERNEL_keep(values, places, count, K); count = K; full = 1; }} }}
if (count > K) KERNEL_keep(values, places, count, K);
for (int64_t i = 0; i < K; i++) keys[i] = (uint64_t)values[i] << 32 | places[i];
const uint64_t *sorted = KERNEL_sort(keys, spare, K);
T *v = y + outer * K * inner + column + l; int64_t *at = index + (v - y);
for (int64_t i = 0; i < K; i++) {{
const int64_t place = (int64_t)(sorted[i] & 0xffffffff);
v[i * inner] = from[place * inner + l]; at[i * inner] = place; }} }} }}"""
    return helper, text


def _chosen_by_heap(dtype: np.dtype[np.generic], *, largest: bool) -> tuple[str, str]:
    """Return C helpers and C that finds the best of a line of elements of any type.

    A heap has the best so far, the worst of them on top, and is sorted in the end.
    """
    kind = number_type(dtype)
    more, nan = (">", "a != a && b == b") if largest else ("<", "b != b && a == a")
    better = f"a {more} b" + (f" || ({nan})" if is_real(dtype) else "")
    # (Also where one is not a number.)
    likely = f"!(a {'<' if largest else '>'}= b)" if is_real(dtype) else better
    same = "a == b" + (" || (a != a && b != b)" if is_real(dtype) else "")
    helper = f"""
INLINE int KERNEL_better({kind} a, int64_t i, {kind} b, int64_t j) {{
return ({better}) || (({same}) && i < j); }}
static void KERNEL_sift({c_type(dtype)} *v, int64_t *at, int64_t step, int64_t i, int64_t end) {{
{c_type(dtype)} own = v[i * step]; int64_t index = at[i * step]; {kind} number = {loaded(dtype, "own")};
for (int64_t child; (child = 2 * i + 1) < end; i = child) {{
{kind} w = {loaded(dtype, "v[child * step]")};
if (child + 1 < end) {{
{kind} other = {loaded(dtype, "v[(child + 1) * step]")};
if (KERNEL_better(w, at[child * step], other, at[(child + 1) * step])) {{ child++; w = other; }}
}}
if (KERNEL_better(w, at[child * step], number, index)) break;
v[i * step] = v[child * step]; at[i * step] = at[child * step];
}}
v[i * step] = own; at[i * step] = index; }}"""
    text = f"""
if (K > n || K < 0) {{ hg_fail(thread, K); return; }}
for (int64_t line = first; line < last && K > 0; line++) {{
const T *from = x + line / inner * n * inner + line % inner;
T *v = y + line / inner * K * inner + line % inner;
int64_t *at = index + (v - y);
for (int64_t i = 0; i < K; i++) v[i * inner] = from[i * inner], at[i * inner] = i;
for (int64_t i = K / 2 - 1; i >= 0; i--) KERNEL_sift(v, at, inner, i, K);
{kind} top = {loaded(dtype, "v[0]")};
for (int64_t i = K; i < n; i++) {{
if (inner == 1 && i + 8 <= n) {{
int any = 0;
for (int j = 0; j < 8; j++) {{ const {kind} a = {loaded(dtype, "from[i + j]")}, b = top; any |= {likely}; }}
if (!any) {{ i += 7; continue; }} }}
{kind} a = {loaded(dtype, "from[i * inner]")}, b = top;
if (!({better})) continue;
v[0] = from[i * inner], at[0] = i;
KERNEL_sift(v, at, inner, 0, K);
top = {loaded(dtype, "v[0]")};
}}
for (int64_t end = K - 1; end > 0; end--) {{
T t = v[0]; v[0] = v[end * inner]; v[end * inner] = t;
int64_t j = at[0]; at[0] = at[end * inner]; at[end * inner] = j;
KERNEL_sift(v, at, inner, 0, end);
}} }}"""
    return helper, text


def _find_count(low: Lowering, node: ir.Node, size: Dim, wrong: str) -> None:
    """Find a size in the second input, if it is not known before that is computed."""
    given = node.inputs[1]
    if given is None or given in low.facts.types.values or low.facts.constant(given) is not None:
        return
    number = low.forms.contiguous(given)
    text = f"""
found[0] = (int64_t){loaded(number.dtype, "count[0]")};
if ({wrong} || found[0] < 0 || found[0] > {_MOST}) {{ hg_fail(thread, found[0]); return; }}"""
    found_numbers(low, node, text, [size], reads={"count": number})


def _result(
    low: Lowering, value: ir.Value, dtype: np.dtype[np.generic], shape: tuple[Dim, ...]
) -> Tensor:
    """Return the place of an output, also of one that nobody reads."""
    if value.name and low.facts.uses(value):
        return low.forms.result(value)
    return low.recorder.new(f"{value.name} unread", dtype, shape)


def lower_cumulative(low: Lowering, node: ir.Node) -> None:
    """Lower CumSum and CumProd."""
    attributes = low.facts.attributes(node)
    x = low.forms.contiguous(node.inputs[0])
    dtype, rank = x.dtype, len(x.shape)
    if dtype == np.bool_ or rank == 0:
        raise NotNative("truth values, or no axis")
    y = low.forms.result(node.outputs[0])
    join, start = ("+", 0) if node.op_type == "CumSum" else ("*", 1)
    k = "n - 1 - i" if attributes["reverse"] else "i"
    # (Real numbers as float64: a chain of thousands of float32 would lose digits.)
    types = {"T": c_type(dtype), "N": "double" if is_real(dtype) else number_type(dtype)}

    def walk(lines: str, step: str, apart: str) -> str:
        """Return C of a walk along some lines whose elements are ``step`` and which are ``apart``."""
        add = f"sums[j] = (N)(sums[j] {join} {loaded(dtype, f'from[j * {apart}]')});"
        put = f"to[j * {apart}] = {stored(dtype, 'sums[j]')};"
        return f"""
N sums[{_LINES}];
for (int64_t j = 0; j < {lines}; j++) sums[j] = {start};
for (int64_t i = 0; i < n; i++) {{
const T *from = x + base + ({k}) * {step}; T *to = y + base + ({k}) * {step};
for (int64_t j = 0; j < {lines}; j++) {{ {put + add if attributes["exclusive"] else add + put} }}
}}"""

    # Lines side by side, or one behind the other, some of which are walked along together.
    pieces = f"""
const int64_t every = inner == 1 ? {_BESIDE} : {_LINES}, across = (inner + every - 1) / every;
const int64_t count = inner == 1 ? (outer + every - 1) / every : outer * across;
for (int64_t piece = count * q / parts; piece < count * (q + 1) / parts; piece++) {{
if (inner == 1) {{
const int64_t base = piece * {_BESIDE} * n, w = hg_min({_BESIDE}, outer - piece * {_BESIDE});
if (w == {_BESIDE}) {{ {walk(str(_BESIDE), "1", "n")} }} else {{ {walk("w", "1", "n")} }}
}} else {{
const int64_t j0 = piece % across * {_LINES}, w = hg_min({_LINES}, inner - j0);
const int64_t base = piece / across * n * inner + j0;
{walk("w", "inner", "1")}
}} }}"""
    fixed = low.facts.constant(node.inputs[1])
    parts = minimum(_MOST_PARTS, maximum(1, floordiv(x.size, _PART)))
    reads, sizes = {"x": x}, {"parts": parts}
    if fixed is not None:
        axis = int(fixed.reshape(-1)[0]) % rank
        sizes["outer"], sizes["n"], sizes["inner"] = around(x.shape, axis)
        text = pieces
    else:
        # The axis comes with the data, and with it the number of lines.
        reads["axis"] = low.forms.contiguous(node.inputs[1])
        sizes |= {f"X{i}": dim for i, dim in enumerate(x.shape)}
        text = f"""
int64_t dims[] = {{{", ".join(f"X{i}" for i in range(rank))}}}, along = axis[0], outer = 1, inner = 1;
if (along < -{rank} || along >= {rank}) {{ hg_fail(thread, along); return; }}
if (along < 0) along += {rank};
const int64_t n = dims[along];
for (int64_t i = 0; i < along; i++) outer *= dims[i];
for (int64_t i = along + 1; i < {rank}; i++) inner *= dims[i];
{pieces}"""
    emit_written(
        low.recorder, node, text, reads=reads, writes={"y": y}, sizes=sizes, types=types,
        tasks=parts, work=work_of(x.size, 0.6),
    )  # fmt: skip
    low.forms[node.outputs[0]] = y


def lower_arg(low: Lowering, node: ir.Node) -> None:
    """Lower ArgMax and ArgMin of any type; NaN is better than any number."""
    attributes = low.facts.attributes(node)
    x = low.forms.contiguous(node.inputs[0])
    if not x.shape:
        raise NotNative("a tensor without axes")
    axis = axis_of(low, node, len(x.shape))
    outer, n, inner = around(x.shape, axis)
    y = low.forms.result(node.outputs[0])
    failure = f"axis {axis} is empty, expected one element at least"
    last = bool(attributes["select_last_index"])
    sign = ">" if node.op_type == "ArgMax" else "<"
    if inner == 1:
        text = f"if (n == 0) {{ hg_fail(thread, 0); return; }}{_searched(x.dtype, last, 'y[line] = i;')}"
    else:
        put = "y[outer * inner + j0 + j] = {0};"
        text = f"if (n == 0) {{ hg_fail(thread, n); return; }}{_compared(x.dtype, sign, last, put)}"
    _emit_search(low, node, (x, y), (outer, n, inner), text, sign, failure)
    low.forms[node.outputs[0]] = y


def _emit_search(
    low: Lowering,
    node: ir.Node,
    tensors: tuple[Tensor, Tensor],
    sizes: tuple[Dim, Dim, Dim],
    text: str,
    sign: str,
    failure: str = "",
) -> None:
    """Emit C of ``_searched`` or ``_compared``, as lines are of neighbours or side by side."""
    (x, y), (outer, n, inner) = tensors, sizes
    types = {"T": c_type(x.dtype), "N": number_type(x.dtype)}
    if inner == 1:
        from hagane.native.rules.ordering.reducing import step_of
        from hagane.native.rules.ordering.runs import runs_of  # few models need it

        step = step_of("ReduceMax" if sign == ">" else "ReduceMin", x.dtype)
        emit_written(
            low.recorder, node, text, reads={"x": x}, writes={"y": y}, sizes={"n": n}, types=types,
            items=outer, each=n, cost=0.3, helper=runs_of(step, "top"), failure=failure,
        )  # fmt: skip
        return
    pieces = ceildiv(inner, _LINES)
    emit_written(
        low.recorder, node, text, reads={"x": x}, writes={"y": y},
        sizes={"n": n, "inner": inner, "pieces": pieces}, types=types, tasks=outer * pieces,
        work=work_of(x.size, 0.5), failure=failure,
    )  # fmt: skip


def _searched(dtype: np.dtype[np.generic], last: bool, put: str) -> str:
    """Return C that finds the best of lines of neighbours, and then where it is; ``put`` tells ``i``."""

    def place(same: str, *, backward: bool) -> str:
        steps = "i = n - 64; i >= 0; i -= 64" if backward else "i = 0; i + 64 <= n; i += 64"
        rest = "i += 63; for (; i > 0; i--)" if backward else "for (; i < n - 1; i++)"
        return f"""
for ({steps}) {{
int found = 0;
for (int j = 0; j < 64; j++) {{ const N v = {loaded(dtype, "from[i + j]")}; found |= {same}; }}
if (found) break; }}
{rest} {{ const N v = {loaded(dtype, "from[i]")}; if ({same}) break; }}"""

    nan = f"if (top != top) {{ {place('v != v', backward=last)} }} else" if is_real(dtype) else ""
    return f"""
for (int64_t line = first; line < last; line++) {{
const T *from = x + line * n;
const N top = (N)KERNEL_top_line(from, n);
int64_t i;
{nan} {{ {place("v == top", backward=last)} }}
{put} }}"""


def _compared(dtype: np.dtype[np.generic], sign: str, last: bool, put: str) -> str:
    """Return C that finds where the best of lines is which lie side by side; ``put`` tells it."""
    test = f"v {sign}{'=' if last else ''} top[j]"
    if is_real(dtype) and last:
        test = f"(({test}) & (top[j] == top[j])) | (v != v)"
    elif is_real(dtype):
        test = f"(({test}) | (v != v)) & (top[j] == top[j])"
    index = f"int{8 * max(4, dtype.itemsize)}_t"
    wide = test.replace("top[j]", "most")

    def steps(count: object) -> str:
        return f"""
for (int64_t j = 0; j < {count}; j++) {{ top[j] = {loaded(dtype, "from[j]")}; best[j] = 0; }}
for (int64_t i = 1; i < n; i++) {{
const T *row = from + i * inner;
for (int64_t j = 0; j < {count}; j++) {{
const N v = {loaded(dtype, "row[j]")};
const int take = {test};
top[j] = take ? v : top[j]; best[j] = take ? ({index})i : best[j]; }} }}"""

    return f"""
const int64_t j0 = q % pieces * {_LINES}, w = hg_min({_LINES}, inner - j0), outer = q / pieces;
const T *from = x + outer * n * inner + j0;
if (n >> 31) {{ /* more than such indices have room for */
for (int64_t j = 0; j < w; j++) {{
N most = {loaded(dtype, "from[j]")}; int64_t at = 0;
for (int64_t i = 1; i < n; i++) {{ const N v = {loaded(dtype, "from[i * inner + j]")}; if ({wide}) most = v, at = i; }}
{put.format("at")} }}
return; }}
N top[{_LINES}]; {index} best[{_LINES}];
if (w == {_LINES}) {{ {steps(_LINES)} }} else {{ {steps("w")} }}
for (int64_t j = 0; j < w; j++) {put.format("best[j]")}"""


def lower_hardmax(low: Lowering, node: ir.Node) -> None:
    """Lower Hardmax: one where the largest of a line is, zero elsewhere."""
    x = low.forms.contiguous(node.inputs[0])
    if not x.shape:
        raise NotNative("a tensor without axes")
    outer, n, inner = around(x.shape, axis_of(low, node, len(x.shape)))
    y, one = low.forms.result(node.outputs[0]), stored(x.dtype, "1")
    if inner == 1:
        put = f"for (int64_t j = 0; j < n; j++) y[line * n + j] = 0;\ny[line * n + i] = {one};"
        text = f"if (n == 0) return;{_searched(x.dtype, False, put)}"
    else:
        put = f"y[(outer * n + {{0}}) * inner + j0 + j] = {one};"
        clear = f"""
for (int64_t i = 0; i < n; i++) for (int64_t j = 0; j < hg_min({_LINES}, inner - q % pieces * {_LINES}); j++)
y[(q / pieces * n + i) * inner + q % pieces * {_LINES} + j] = 0;"""
        text = f"if (n == 0) return;{clear}{_compared(x.dtype, '>', False, put)}"
    _emit_search(low, node, (x, y), (outer, n, inner), text, ">")
    low.forms[node.outputs[0]] = y


def lower_one_hot(low: Lowering, node: ir.Node) -> None:
    """Lower OneHot."""
    index, values = low.forms.contiguous(node.inputs[0]), low.forms.contiguous(node.inputs[2])
    shape = low.facts.shape(node.outputs[0])
    axis = axis_of(low, node, len(shape))
    _find_count(low, node, shape[axis], "found[0] < 1")
    outer, n, inner = around(shape, axis)
    y = low.forms.result(node.outputs[0])
    text = f"""
if (n < 1) {{ hg_fail(thread, n); return; }}
for (int64_t o = first; o < last; o++) {{
T *to = y + o * n * inner;
for (int64_t i = 0; i < n * inner; i++) to[i] = values[0];
for (int64_t j = 0; j < inner; j++) {{
int64_t at = (int64_t){loaded(index.dtype, "index[o * inner + j]")};
at += at < 0 ? n : 0;
if (at >= 0 && at < n) to[at * inner + j] = values[1];
}} }}"""
    emit_written(
        low.recorder, node, text,
        reads={"index": index, "values": as_bits(values)}, writes={"y": as_bits(y)},
        sizes={"n": n, "inner": inner}, types={"T": bits_type(y.dtype)}, items=outer,
        each=n * inner, cost=0.2,
    )  # fmt: skip
    low.forms[node.outputs[0]] = y


RULES: dict[tuple[str, str], Rule] = {
    ("", "ArgMax"): lower_arg,
    ("", "ArgMin"): lower_arg,
    ("", "CumProd"): lower_cumulative,
    ("", "CumSum"): lower_cumulative,
    ("", "Hardmax"): lower_hardmax,
    ("", "OneHot"): lower_one_hot,
    ("", "TopK"): lower_top_k,
}
