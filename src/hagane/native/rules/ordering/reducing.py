"""Reductions of any type over any axes, those from the data among them; normalisation by norms."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.kernel import c_type
from hagane.native.kernels.tensor import Tensor
from hagane.native.kernels.written import emit_written, is_real, loaded, stored
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.indexing.axes import around, axis_of, number_input, whole_numbers
from hagane.native.rules.shaping.numbers import found_numbers, length_of
from hagane.symbolic import Dim, ceildiv, floordiv, maximum, minimum

# Start, step from `a` and `v`, last step from `a` (n: count); of real numbers, then of whole ones.
_STEPS = {
    "ReduceL1": ("0", "a + (v < 0 ? -v : v)", "a"),
    "ReduceL2": ("0", "a + v * v", "sqrt((double)a)"),
    "ReduceLogSum": ("0", "a + v", "log((double)a)"),
    "ReduceMax": ("least", "(a >= v) | (a != a) ? a : v", "a"),
    "ReduceMean": ("0", "a + v", "a / n"),
    "ReduceMin": ("most", "(a <= v) | (a != a) ? a : v", "a"),
    "ReduceProd": ("1", "a * v", "a"),
    "ReduceSum": ("0", "a + v", "a"),
    "ReduceSumSquare": ("0", "a + v * v", "a"),
}
# The least and the greatest number of a C type in which numbers are summed.
_LIMITS = {
    "double": ("-INFINITY", "INFINITY"),
    "int64_t": ("INT64_MIN", "INT64_MAX"),
    "uint64_t": ("0", "UINT64_MAX"),
}
# Sums side by side along an axis that is reduced, and results side by side along one that is not.
_LANES, _RESULTS = 16, 128
# Results of one task at least; in how many parts few results are made at most, and of how many
# elements a part of a task's results is at least.
_FEW, _PARTS, _PART = 64, 16, 32768


def _wide(dtype: np.dtype[np.generic]) -> str:
    """Return the C type in which numbers are summed."""
    if is_real(dtype):
        return "double"
    return "uint64_t" if dtype.kind in "ub" else "int64_t"


def lower_reduce(low: Lowering, node: ir.Node) -> None:
    """Lower a reduction: an odometer over the reduced axes for each result."""
    attributes = low.facts.attributes(node)
    x, out = low.forms.contiguous(node.inputs[0]), node.outputs[0]
    rank, keeps = len(x.shape), bool(attributes["keepdims"])
    noop = bool(attributes.get("noop_with_empty_axes"))
    axes_input = number_input(low, node, 1)
    reads: dict[str, Tensor] = {"x": x}
    axes: list[int] | None = []
    if axes_input is not None:
        known = low.facts.constant(axes_input)
        axes = None if known is None else [int(axis) % max(rank, 1) for axis in known.reshape(-1)]
    dims = ", ".join(f"X{i}" for i in range(rank)) or "1"
    sizes: dict[str, Dim] = {f"X{i}": dim for i, dim in enumerate(x.shape)}
    if rank == 0:
        axes = []
    if axes is None:
        reads["axes"] = whole_numbers(low, axes_input)
        count = length_of(low, axes_input)
        mark = f"""
for (int64_t i = 0; i < {count}; i++) {{
if (axes[i] < -{rank} || axes[i] >= {rank}) {{ hg_fail(thread, axes[i]); return; }}
folded[axes[i] < 0 ? axes[i] + {rank} : axes[i]] = 1; }}"""
        if count == 0:
            mark = "" if noop else f"for (int64_t i = 0; i < {rank}; i++) folded[i] = 1;"
    if axes is not None:
        if not axes and not noop:
            axes = list(range(rank))
        mark = " ".join(f"folded[{axis}] = 1;" for axis in axes)
    head = f"const int64_t dims[] = {{{dims}}}; int folded[{rank + 1}] = {{0}};\n{mark}\n"
    if axes is None:
        results = low.facts.shape(out)
        finding = f"""
int64_t count = 0;
for (int64_t i = 0; i < {rank}; i++) {{
if (folded[i] && !{int(keeps)}) continue;
if (count == {len(results)}) {{ hg_fail(thread, count); return; }}
found[count++] = folded[i] ? 1 : dims[i]; }}
if (count != {len(results)}) {{ hg_fail(thread, count); return; }}"""
        found_numbers(
            low, node, head + finding, list(results),
            reads={"axes": reads["axes"]}, sizes=sizes,
        )  # fmt: skip
    y = low.forms.result(out)
    _emit_results(low, node, x, y, head, sizes, reads)
    low.forms[out] = y


def _emit_results(
    low: Lowering,
    node: ir.Node,
    x: Tensor,
    y: Tensor,
    head: str,
    sizes: dict[str, Dim],
    reads: dict[str, Tensor],
) -> None:
    """Write the kernels that reduce: axes of one kind that meet are one axis, and the last is walked.

    Where the last axis is reduced, sums of a run stand side by side; where it is kept, results do.
    Few results of many elements are made in parts, which a kernel of their own puts together.

    Args:
        low: Takes the kernels.
        node: The reduction.
        x: The operand, row-major.
        y: The result.
        head: C that declares ``dims`` and ``folded``, the axes to reduce.
        sizes: Numbers that ``head`` needs.
        reads: Operands that ``head`` needs, and ``x``.
    """
    rank, dtype, wide = len(x.shape), x.dtype, _wide(x.dtype)
    value = f"(S){loaded(dtype, 'x[at]')}"
    each = floordiv(x.size, maximum(1, y.size))
    share = maximum(_FEW, floordiv(8192, maximum(1, each)))
    chunks = ceildiv(y.size, share)
    parts: Dim = 1
    if node.op_type == "ReduceLogSumExp":
        start, join, last = "0", "a + v", "log(a)"
        making = f"""
{_each("top[j] = -INFINITY;", "lanes")}
{_walk(f"const S v = {value}; top[j] = (top[j] >= v) | (top[j] != top[j]) ? top[j] : v;")}
if (along) for (int64_t j = 1; j < lanes; j++) top[0] = (top[0] >= top[j]) | (top[0] != top[0]) ? top[0] : top[j];
if (along) for (int64_t j = 1; j < lanes; j++) top[j] = top[0];
{_walk(f"sums[j] += exp({value} - (top[j] - top[j] == 0 ? top[j] : 0));")}"""
        last = "(top[j] - top[j] == 0 ? log(a) + top[j] : top[j])"
    else:
        start, step, last = _STEPS[node.op_type]
        if not is_real(dtype):
            # (Compilers warn of a whole number compared with itself.)
            step = step.replace(" | (a != a)", "")
        if dtype.kind in "ub":
            step = step.replace("(v < 0 ? -v : v)", "v")
        start = {"least": _LIMITS[wide][0], "most": _LIMITS[wide][1]}.get(start, start)
        join = step if node.op_type in ("ReduceMax", "ReduceMin", "ReduceProd") else "a + v"
        making = _walk(f"const S v = {value}, a = sums[j]; sums[j] = {step};")
        parts = minimum(
            maximum(1, floordiv(x.size, _PART * maximum(1, chunks))),
            maximum(1, ceildiv(_PARTS, maximum(1, chunks))),
        )
    real = ("float" if dtype.itemsize < 8 else "double") if is_real(dtype) else "T"
    if real == "T" and node.op_type == "ReduceMean":
        last = "(n == 0 ? 0 : a / n)"
    made = stored(y.dtype, f"({real})({last})")
    empty = (
        "if (n == 0) { hg_fail(thread, 0); return; }"
        if "Max" in node.op_type or "Min" in node.op_type
        else ""
    )
    types = {"T": c_type(dtype), "S": wide}
    lengths: dict[str, Dim] = {
        **sizes, "share": share, "chunks": chunks, "parts": parts, "results": y.size, "n": each,
    }  # fmt: skip
    writes = {"y": y}
    if parts == 1:
        keep = f"y[item + j] = {made};"
    else:
        # (Of no use, and of no length, where the run finds that there is one part.)
        room = y.size * parts * minimum(parts - 1, 1)
        name, kind = f"{node.outputs[0].name} parts", np.dtype(wide.removesuffix("_t"))
        writes["partial"] = low.recorder.new(name, kind, (maximum(1, room),))
        keep = f"if (parts > 1) partial[part * results + item + j] = a; else y[item + j] = {made};"
    text = f"""
{head}
const int64_t part = q % parts, f0 = n * part / parts, f1 = n * (part + 1) / parts;
const int64_t first = q / parts * share, last = hg_min(results, first + share);
{empty}
int64_t size[{rank + 1}], steps[{rank + 1}], axes_left = 0, inner = -1;
int kind[{rank + 1}];
for (int64_t i = 0; i < {rank}; i++) {{
if (dims[i] == 1) continue;
if (axes_left && kind[axes_left - 1] == folded[i]) {{ size[axes_left - 1] *= dims[i]; continue; }}
kind[axes_left] = folded[i]; size[axes_left++] = dims[i]; }}
{{ int64_t step = 1; for (int64_t i = axes_left - 1; i >= 0; i--) {{ steps[i] = step; step *= size[i]; if (kind[i] && inner < 0) inner = i; }} }}
const int along = axes_left > 0 && inner == axes_left - 1;
const int64_t length = inner < 0 ? 1 : size[inner], stride = inner < 0 ? 0 : steps[inner];
const int64_t row = along || !axes_left ? 1 : size[axes_left - 1];
int64_t w;
for (int64_t item = first; item < last; item += w) {{
int64_t left = item, base = 0;
for (int64_t i = axes_left - 1; i >= 0; i--) if (!kind[i]) {{ base += left % size[i] * steps[i]; left /= size[i]; }}
w = hg_min(hg_min({_RESULTS}, row - item % row), last - item);
const int64_t lanes = along ? hg_max(1, hg_min({_LANES}, length)) : w;
S sums[{_RESULTS}], top[{_RESULTS}]; (void)top;
{_each(f"sums[j] = {start};", "lanes")}
{making}
if (along) for (int64_t j = 1; j < lanes; j++) {{ const S a = sums[0], v = sums[j]; sums[0] = {join}; }}
{_each(f"const S a = sums[j]; {keep}", "w")}
}}"""
    emit_written(
        low.recorder, node, text, reads=reads, writes=writes, sizes=lengths, types=types,
        tasks=chunks * parts, cost=_FEW * 64.0,
    )  # fmt: skip
    if parts != 1:
        text = f"""
const int64_t first = q * share, last = hg_min(results, first + share);
for (int64_t j = first; j < last; j++) {{
S sum = partial[j];
for (int64_t part = 1; part < parts; part++) {{ const S a = sum, v = partial[part * results + j]; sum = {join}; }}
const S a = sum;
y[j] = {made};
}}"""
        names = ("share", "parts", "results", "n")
        emit_written(
            low.recorder, node, text, reads={"partial": writes["partial"]}, writes={"y": y},
            sizes={name: lengths[name] for name in names}, types=types,
            tasks=chunks * minimum(parts - 1, 1), cost=_FEW * 4.0,
        )  # fmt: skip


def _each(action: str, count: str | int) -> str:
    """Return C that does an action for each ``j`` up to a count."""
    return f"for (int64_t j = 0; j < {count}; j++) {{ {action} }}"


def _walk(action: str) -> str:
    """Return C that does an action with each element ``at`` of ``w`` results, for its sum ``j``."""
    single = "const int64_t at = place + k * stride + j;"
    return f"""
if (f0 < f1) {{
int64_t f = f0, place = base, from = f0, index[sizeof size / sizeof *size] = {{0}};
for (int64_t i = inner; i >= 0; i--) if (kind[i]) {{ index[i] = from % size[i]; from /= size[i]; place += index[i] * steps[i]; }}
for (;;) {{
const int64_t m = hg_min(length - (inner < 0 ? 0 : index[inner]), f1 - f);
if (along && m >= {_LANES}) {{
int64_t k = 0;
S own[{_LANES}];
{_each("own[j] = sums[j];", _LANES)}
for (; k + {_LANES} <= m; k += {_LANES}) for (int64_t j = 0; j < {_LANES}; j++) {{ const int64_t at = place + k + j; {action.replace("sums[j]", "own[j]")} }}
{_each("sums[j] = own[j];", _LANES)}
for (int64_t j = 0; j < m - k; j++) {{ const int64_t at = place + k + j; {action} }}
}} else if (along) {{
for (int64_t j = 0; j < m; j++) {{ const int64_t at = place + j; {action} }}
}} else if (w == {_RESULTS}) {{
for (int64_t k = 0; k < m; k++) for (int64_t j = 0; j < {_RESULTS}; j++) {{ {single} {action} }}
}} else if (w < 8) {{
for (int64_t j = 0; j < w; j++) for (int64_t k = 0; k < m; k++) {{ {single} {action} }}
}} else {{
for (int64_t k = 0; k < m; k++) for (int64_t j = 0; j < w; j++) {{ {single} {action} }}
}}
f += m;
if (f >= f1) break;
place -= index[inner] * steps[inner]; index[inner] = 0;
for (int64_t i = inner - 1; i >= 0; i--) {{
if (!kind[i]) continue;
place += steps[i];
if (++index[i] < size[i]) break;
place -= size[i] * steps[i]; index[i] = 0; }} }} }}"""


def lower_lp_normalization(low: Lowering, node: ir.Node) -> None:
    """Lower LpNormalization: each line divided by its norm."""
    attributes = low.facts.attributes(node)
    x = low.forms.contiguous(node.inputs[0])
    outer, n, inner = around(x.shape, axis_of(low, node, len(x.shape)))
    p = int(attributes["p"])
    y = low.forms.result(node.outputs[0])
    value = f"(double){loaded(x.dtype, 'from[i * inner]')}"
    text = f"""
for (int64_t line = first; line < last; line++) {{
const int64_t at = line / inner * n * inner + line % inner;
const T *from = x + at;
double sum = 0;
for (int64_t i = 0; i < n; i++) {{ double v = {value}; sum += {"fabs(v)" if p == 1 else "v * v"}; }}
const double norm = {"sum" if p == 1 else "sqrt(sum)"};
for (int64_t i = 0; i < n; i++) y[at + i * inner] = {stored(x.dtype, f"(norm == 0 ? 0 : {value} / norm)")};
}}"""
    emit_written(
        low.recorder, node, text,
        reads={"x": x}, writes={"y": y}, sizes={"n": n, "inner": inner},
        types={"T": c_type(x.dtype)}, items=outer * inner, each=n * 2,
    )  # fmt: skip
    low.forms[node.outputs[0]] = y


def lower_softmax(low: Lowering, node: ir.Node) -> None:
    """Lower Softmax and LogSoftmax of float64."""
    x = low.forms.contiguous(node.inputs[0])
    if not is_real(x.dtype) or not x.shape:
        raise NotNative(f"element type {x.dtype}")
    outer, n, inner = around(x.shape, axis_of(low, node, len(x.shape)))
    y = low.forms.result(node.outputs[0])
    value = f"(double){loaded(x.dtype, 'from[i * inner]')}"
    result = "exp(v - top) / sum" if node.op_type == "Softmax" else "(v - top) - log(sum)"
    text = f"""
for (int64_t line = first; line < last; line++) {{
const int64_t at = line / inner * n * inner + line % inner;
const T *from = x + at;
double top = -INFINITY, sum = 0;
for (int64_t i = 0; i < n; i++) {{ double v = {value}; top = v > top || v != v ? v : top; }}
for (int64_t i = 0; i < n; i++) sum += exp({value} - top);
for (int64_t i = 0; i < n; i++) {{ double v = {value}; y[at + i * inner] = {stored(x.dtype, result)}; }}
}}"""
    emit_written(
        low.recorder, node, text,
        reads={"x": x}, writes={"y": y}, sizes={"n": n, "inner": inner},
        types={"T": c_type(x.dtype)}, items=outer * inner, each=n * 16,
    )  # fmt: skip
    low.forms[node.outputs[0]] = y


RULES: dict[tuple[str, str], Rule] = {
    **{("", name): lower_reduce for name in (*_STEPS, "ReduceLogSumExp")},
    ("", "LogSoftmax"): lower_softmax,
    ("", "LpNormalization"): lower_lp_normalization,
    ("", "Softmax"): lower_softmax,
}
