"""TopK, CumSum, CumProd, Hardmax, ArgMax and ArgMin of any element type."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.kernel import c_type
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
from hagane.symbolic import Dim, ceildiv

# Neighbouring lines that one task walks along together.
_LINES = 64
# No axis is longer.
_MOST = "(1LL << 40)"


def lower_top_k(low: Lowering, node: ir.Node) -> None:
    """Lower TopK: a heap of the best so far, the worst of them on top, which is then sorted.

    Of equal elements the lower index is better; NaN is larger than any number.
    """
    x = low.forms.contiguous(node.inputs[0])
    shape = low.facts.shape(node.outputs[0])
    axis = axis_of(low, node, len(x.shape))
    outer, n, inner = around(x.shape, axis)
    _find_count(low, node, shape[axis], "0")
    kind, dtype = number_type(x.dtype), x.dtype
    largest = int(low.facts.attributes(node)["largest"])
    values = _result(low, node.outputs[0], dtype, shape)
    indices = _result(low, node.outputs[1], np.dtype(np.int64), shape)
    more, nan = (">", "a != a && b == b") if largest else ("<", "b != b && a == a")
    better = f"a {more} b" + (f" || ({nan})" if is_real(dtype) else "")
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
    emit_written(
        low.recorder, node, text,
        reads={"x": x}, writes={"y": values, "index": indices},
        sizes={"n": n, "K": shape[axis], "inner": inner}, types={"T": c_type(dtype)},
        items=outer * inner, each=n * 2, helper=helper,
    )  # fmt: skip
    low.forms[node.outputs[0]], low.forms[node.outputs[1]] = values, indices


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
    fixed = low.facts.constant(node.inputs[1])
    join, start = ("+", 0) if node.op_type == "CumSum" else ("*", 1)
    k = "n - 1 - i" if attributes["reverse"] else "i"
    add = f"sums[j] = (N)(sums[j] {join} {loaded(dtype, 'from[j]')});"
    put = f"to[j] = {stored(dtype, 'sums[j]')};"
    walk = f"""
N sums[{_LINES}];
for (int64_t j = 0; j < w; j++) sums[j] = {start};
for (int64_t i = 0; i < n; i++) {{
const T *from = x + base + ({k}) * inner; T *to = y + base + ({k}) * inner;
for (int64_t j = 0; j < w; j++) {{ {put + add if attributes["exclusive"] else add + put} }}
}}"""
    types = {"T": c_type(dtype), "N": number_type(dtype)}
    if fixed is not None:
        axis = int(fixed.reshape(-1)[0]) % rank
        outer, n, inner = around(x.shape, axis)
        pieces = ceildiv(inner, _LINES)
        text = f"""
int64_t j0 = q % pieces * {_LINES}, w = hg_min({_LINES}, inner - j0);
int64_t base = q / pieces * n * inner + j0;
{walk}"""
        emit_written(
            low.recorder, node, text,
            reads={"x": x}, writes={"y": y}, sizes={"n": n, "inner": inner, "pieces": pieces},
            types=types, tasks=outer * pieces, cost=200.0,
        )  # fmt: skip
    else:
        # The axis comes with the data, and with it the number of lines: one task walks along all.
        dims = ", ".join(f"X{i}" for i in range(rank))
        text = f"""
int64_t dims[] = {{{dims}}}, along = axis[0], outer = 1, inner = 1;
if (along < -{rank} || along >= {rank}) {{ hg_fail(thread, along); return; }}
if (along < 0) along += {rank};
int64_t n = dims[along];
for (int64_t i = 0; i < along; i++) outer *= dims[i];
for (int64_t i = along + 1; i < {rank}; i++) inner *= dims[i];
for (int64_t o = 0; o < outer; o++)
for (int64_t j0 = 0; j0 < inner; j0 += {_LINES}) {{
int64_t base = o * n * inner + j0, w = hg_min({_LINES}, inner - j0);
{walk}
}}"""
        emit_written(
            low.recorder, node, text,
            reads={"x": x, "axis": low.forms.contiguous(node.inputs[1])}, writes={"y": y},
            sizes={f"X{i}": dim for i, dim in enumerate(x.shape)}, types=types, tasks=1,
            cost=2000.0,
        )  # fmt: skip
    low.forms[node.outputs[0]] = y


def _best(dtype: np.dtype[np.generic], better: str) -> str:
    """Return C text that finds ``best``, where the best number of a line is; NaN ends the search."""
    stop = "if (top != top) break;" if is_real(dtype) else ""
    nan = " || v != v" if is_real(dtype) else ""
    return f"""
int64_t best = 0; N top = {loaded(dtype, "from[0]")};
for (int64_t i = 1; i < n; i++) {{ {stop}
N v = {loaded(dtype, "from[i * inner]")};
if (v {better} top{nan}) top = v, best = i;
}}"""


def lower_arg(low: Lowering, node: ir.Node) -> None:
    """Lower ArgMax and ArgMin of any type."""
    attributes = low.facts.attributes(node)
    x = low.forms.contiguous(node.inputs[0])
    if not x.shape:
        raise NotNative("a tensor without axes")
    axis = axis_of(low, node, len(x.shape))
    outer, n, inner = around(x.shape, axis)
    better = ">" if node.op_type == "ArgMax" else "<"
    better += "=" if attributes["select_last_index"] else ""
    y = low.forms.result(node.outputs[0])
    text = f"""
if (n == 0) {{ hg_fail(thread, 0); return; }}
for (int64_t line = first; line < last; line++) {{
const T *from = x + line / inner * n * inner + line % inner;
{_best(x.dtype, better)}
y[line] = best;
}}"""
    emit_written(
        low.recorder, node, text,
        reads={"x": x}, writes={"y": y}, sizes={"n": n, "inner": inner},
        types={"T": c_type(x.dtype), "N": number_type(x.dtype)}, items=outer * inner, each=n,
    )  # fmt: skip
    low.forms[node.outputs[0]] = y


def lower_hardmax(low: Lowering, node: ir.Node) -> None:
    """Lower Hardmax: one where the largest of a line is, zero elsewhere."""
    x = low.forms.contiguous(node.inputs[0])
    if not x.shape:
        raise NotNative("a tensor without axes")
    outer, n, inner = around(x.shape, axis_of(low, node, len(x.shape)))
    y = low.forms.result(node.outputs[0])
    text = f"""
for (int64_t line = first; line < last && n > 0; line++) {{
int64_t at = line / inner * n * inner + line % inner;
const T *from = x + at;
{_best(x.dtype, ">")}
for (int64_t i = 0; i < n; i++) y[at + i * inner] = {stored(x.dtype, "i == best")};
}}"""
    emit_written(
        low.recorder, node, text,
        reads={"x": x}, writes={"y": y}, sizes={"n": n, "inner": inner},
        types={"T": c_type(x.dtype), "N": number_type(x.dtype)}, items=outer * inner, each=n,
    )  # fmt: skip
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
