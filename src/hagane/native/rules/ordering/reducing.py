"""Reductions of any type over any axes, those from the data among them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.kernel import c_type
from hagane.native.kernels.tensor import Tensor
from hagane.native.kernels.written import emit_written, is_real, loaded, number_type, stored
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.indexing.axes import number_input, whole_numbers
from hagane.native.rules.shaping.numbers import found_numbers, length_of
from hagane.symbolic import Dim, ceildiv, floordiv, maximum, minimum

if TYPE_CHECKING:
    from hagane.native.rules.ordering.runs import Step

_OPERATORS = (
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
    "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare",
)  # fmt: skip
_EXTREMES = ("ReduceMax", "ReduceMin")
# Last step from a sum `a` of `n` elements, of which the largest is `t`.
_LAST = {
    "ReduceL2": "sqrt((double)a)",
    "ReduceLogSum": "log((double)a)",
    "ReduceLogSumExp": "(t - t == 0 ? log((double)a) + t : t)",
    "ReduceMean": "a / n",
}
# Arguments of a run of elements, and of several, of the functions of ``runs.py``.
RUN, RUNS = "(x + place, m)", "s(x + place, m, apart, count)"
# Results of one task at least; in how many parts few results are made at most, and of how many
# elements a part of a task's results is at least.
_FEW, _PARTS, _PART = 64, 16, 32768


def limits(kind: str) -> tuple[str, str]:
    """Return C text for the least and the greatest number of a C type."""
    if kind in ("float", "double"):
        return "-INFINITY", "INFINITY"
    name = kind.removesuffix("_t").upper()
    return "0" if kind.startswith("u") else f"{name}_MIN", f"{name}_MAX"


def step_of(name: str, dtype: np.dtype[np.generic]) -> Step:
    """Return how a reduction takes elements of a type.

    Real numbers are summed as float32, if they have no more bits, along a short way, and such sums as
    float64; whole numbers in their own type, where results wrap around like it.
    """
    from hagane.native.rules.ordering.runs import Step  # few models need it

    real, number, element = is_real(dtype), number_type(dtype), c_type(dtype)
    load = loaded(dtype, "x[at]")
    if name in _EXTREMES:
        if dtype.kind in "iu":  # as many lie in a vector as they are small
            number, load = element, "x[at]"
        sign = ">" if name == "ReduceMax" else "<"
        least, most = ("0", "1") if dtype.kind == "b" else limits(number)
        start, step = most if name == "ReduceMin" else least, f"v {sign} a ? v : a"
        if not real:
            return Step(element, load, number, start, step, number, step)
        mark = f"uint{8 * np.dtype(_numpy_type(number)).itemsize}_t"
        join = f"(v {sign} a) | (v != v) ? v : a"
        return Step(element, load, number, start, step, number, join, mark=mark)
    if name == "ReduceProd":
        kind = "double" if real else number
        return Step(element, load, kind, "1", "a * v", kind, "a * v")
    if real:
        quick, wide = ("double" if dtype.itemsize == 8 else "float"), "double"
    elif name in ("ReduceL1", "ReduceSum", "ReduceSumSquare"):
        quick = wide = number
    elif name in ("ReduceL2", "ReduceLogSumExp"):
        quick = wide = "double"  # squares leave every whole type
    else:
        quick = wide = "uint64_t" if dtype.kind in "ub" else "int64_t"
    value = {
        "ReduceL1": "v" if dtype.kind in "ub" else "(v < 0 ? -v : v)",
        "ReduceL2": "v * v" if real else "(double)v * (double)v",
        "ReduceLogSumExp": "RUNS_exp(v - top)",
        "ReduceSumSquare": "v * v",
    }.get(name, "v")
    shift = number if name == "ReduceLogSumExp" else ""
    return Step(element, load, quick, "0", f"a + {value}", wide, "a + v", shift)


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
    _emit_results(low, node, node.op_type, x, y, head, sizes, reads)
    low.forms[out] = y


def lower_global_pool(low: Lowering, node: ir.Node) -> None:
    """Lower GlobalAveragePool and GlobalMaxPool of any type: a reduction of all axes behind two."""
    x, out = low.forms.contiguous(node.inputs[0]), node.outputs[0]
    y, rank = low.forms.result(out), len(x.shape)
    marks = " ".join(f"folded[{axis}] = 1;" for axis in range(2, rank))
    dims = ", ".join(f"X{i}" for i in range(rank))
    head = f"const int64_t dims[] = {{{dims}}}; int folded[{rank + 1}] = {{0}};\n{marks}\n"
    sizes: dict[str, Dim] = {f"X{i}": dim for i, dim in enumerate(x.shape)}
    name = "ReduceMean" if node.op_type == "GlobalAveragePool" else "ReduceMax"
    _emit_results(low, node, name, x, y, head, sizes, {"x": x})
    low.forms[out] = y


def _emit_results(
    low: Lowering,
    node: ir.Node,
    name: str,
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
        node: The node.
        name: The reduction.
        x: The operand, row-major.
        y: The result.
        head: C that declares ``dims`` and ``folded``, the axes to reduce.
        sizes: Numbers that ``head`` needs.
        reads: Operands that ``head`` needs, and ``x``.
    """
    from hagane.native.rules.ordering.runs import RESULTS, runs_of

    rank, dtype = len(x.shape), x.dtype
    step, top = step_of(name, dtype), ""
    each = floordiv(x.size, maximum(1, y.size))
    share = maximum(_FEW, floordiv(8192, maximum(1, each)))
    chunks = ceildiv(y.size, share)
    parts: Dim = 1
    helper = runs_of(step, "sum")
    line = _walk("sum = KERNEL_sum_join(sum, KERNEL_sum_line{0});", RUN, RUNS)
    across = _walk("KERNEL_sum_across(x + place, m, stride, w, sums);")
    if step.shift:
        largest = step_of("ReduceMax", dtype)
        helper = runs_of(largest, "top") + helper
        line = f"""
{step.shift} t = {largest.start};
{_walk("t = KERNEL_top_join(t, KERNEL_top_line{0});", RUN, RUNS)}
const {step.shift} shift = t - t == 0 ? t : 0;
{_walk("sum += KERNEL_sum_line{0};", *(f"{each[:-1]}, shift)" for each in (RUN, RUNS)))}"""
        across = f"""
{step.shift} top[{RESULTS}], shift[{RESULTS}];
for (int64_t j = 0; j < w; j++) top[j] = {largest.start};
{_walk("KERNEL_top_across(x + place, m, stride, w, top);")}
for (int64_t j = 0; j < w; j++) shift[j] = top[j] - top[j] == 0 ? top[j] : 0;
{_walk("KERNEL_sum_across(x + place, m, stride, w, sums, shift);")}"""
        top = f"const {step.shift} t = top[j];"
    else:
        parts = minimum(
            maximum(1, floordiv(x.size, _PART * maximum(1, chunks))),
            maximum(1, ceildiv(_PARTS, maximum(1, chunks))),
        )
    real = ("float" if dtype.itemsize < 8 else "double") if is_real(dtype) else "T"
    last = _LAST.get(name, "a")
    if name == "ReduceL2" and dtype.kind in "iu":
        last = f"fmin({last}, {float(np.nextafter(float(np.iinfo(dtype).max) + 1, 0)).hex()})"
    if real == "T" and name == "ReduceMean":
        last = "(n == 0 ? 0 : a / n)"
    made = stored(y.dtype, f"({real})({last})")
    types = {"T": c_type(dtype), "S": step.wide}
    lengths: dict[str, Dim] = {
        **sizes, "share": share, "chunks": chunks, "parts": parts, "results": y.size, "n": each,
    }  # fmt: skip
    writes = {"y": y}
    if parts == 1:
        keep = f"y[item] = {made};"
    else:
        # (Of no use, and of no length, where the run finds that there is one part.)
        room = y.size * parts * minimum(parts - 1, 1)
        label, kind = f"{node.outputs[0].name} parts", _numpy_type(step.wide)
        writes["partial"] = low.recorder.new(label, kind, (maximum(1, room),))
        keep = f"if (parts > 1) partial[part * results + item] = a; else y[item] = {made};"
    text = f"""
{head}
const int64_t part = q % parts, f0 = n * part / parts, f1 = n * (part + 1) / parts;
const int64_t first = q / parts * share, last = hg_min(results, first + share);
int64_t size[{rank + 1}], steps[{rank + 1}], at[{rank + 1}], axes_left = 0, inner = -1, reduced = 0;
int kind[{rank + 1}];
for (int64_t i = 0; i < {rank}; i++) {{
if (dims[i] == 1) continue;
if (axes_left && kind[axes_left - 1] == folded[i]) {{ size[axes_left - 1] *= dims[i]; continue; }}
kind[axes_left] = folded[i]; size[axes_left++] = dims[i]; }}
{{ int64_t step = 1; for (int64_t i = axes_left - 1; i >= 0; i--) {{
steps[i] = step; step *= size[i]; reduced += kind[i];
if (kind[i] && inner < 0) inner = i; }} }}
const int along = axes_left > 0 && inner == axes_left - 1;
const int64_t length = inner < 0 ? 1 : size[inner], stride = inner < 0 ? 0 : steps[inner];
int64_t left = first, base = 0;
for (int64_t i = axes_left - 1; i >= 0; i--) if (!kind[i]) {{ at[i] = left % size[i]; left /= size[i]; base += at[i] * steps[i]; }}
if (along) for (int64_t item = first; item < last; item++) {{
S sum = {step.start};
{line}
const S a = sum;
{keep}
{_next("1")}
}} else for (int64_t first_item = first, w; first_item < last; first_item += w) {{
w = hg_min(axes_left ? size[axes_left - 1] - at[axes_left - 1] : 1, last - first_item);
w = w >= {RESULTS} ? {RESULTS} : w > {RESULTS // 2} ? {RESULTS // 2} : w;
S sums[{RESULTS}];
for (int64_t j = 0; j < w; j++) sums[j] = {step.start};
{across}
for (int64_t j = 0; j < w; j++) {{ const int64_t item = first_item + j; const S a = sums[j]; {top} {keep} }}
{_next("w")}
}}"""
    emit_written(
        low.recorder, node, text, reads=reads, writes=writes, sizes=lengths, types=types,
        tasks=chunks * parts, cost=_FEW * 16.0, helper=helper,
    )  # fmt: skip
    if parts != 1:
        text = f"""
const int64_t first = q * share, last = hg_min(results, first + share);
for (int64_t j = first; j < last; j++) {{
S sum = partial[j];
for (int64_t part = 1; part < parts; part++) {{ const S a = sum, v = partial[part * results + j]; sum = {step.join}; }}
const S a = sum;
y[j] = {made};
}}"""
        names = ("share", "parts", "results", "n")
        emit_written(
            low.recorder, node, text, reads={"partial": writes["partial"]}, writes={"y": y},
            sizes={name: lengths[name] for name in names}, types=types,
            tasks=chunks * minimum(parts - 1, 1), cost=_FEW * 4.0,
        )  # fmt: skip


def _numpy_type(kind: str) -> np.dtype[np.generic]:
    """Return the element type of a C type of numbers."""
    return np.dtype({"float": "float32", "double": "float64"}.get(kind, kind.removesuffix("_t")))


def _walk(action: str, run: str = "", runs: str = "") -> str:
    """Return C that takes the runs of ``m`` elements or rows at ``place`` of the results at hand.

    Args:
        action: The C for a run, with ``{0}`` for its arguments if those are given.
        run: The arguments of one run.
        runs: The arguments of ``count`` runs, ``apart``.
    """
    together = ""
    if runs:
        together = f"""
if (outer >= 0 && index[inner] == 0 && f1 - f >= 2 * length && length <= 1024) {{
const int64_t count = hg_min(size[outer] - index[outer], (f1 - f) / length), apart = steps[outer], m = length;
{action.format(runs)}
f += count * length; index[outer] += count - 1; place += (count - 1) * apart;
}} else"""
    return f"""
if (reduced <= 1) {{
const int64_t m = f1 - f0, place = base + f0 * stride;
{action.format(run)}
}} else if (f0 < f1) {{
int64_t f = f0, place = base, from = f0, index[sizeof size / sizeof *size], outer = inner - 1;
while (outer >= 0 && !kind[outer]) outer--;
for (int64_t i = inner; i >= 0; i--) if (kind[i]) {{ index[i] = from % size[i]; from /= size[i]; place += index[i] * steps[i]; }}
for (;;) {{
{together} {{
const int64_t m = hg_min(length - index[inner], f1 - f);
{action.format(run)}
f += m; }}
if (f >= f1) break;
place -= index[inner] * steps[inner]; index[inner] = 0;
for (int64_t i = inner - 1; i >= 0; i--) {{
if (!kind[i]) continue;
place += steps[i];
if (++index[i] < size[i]) break;
place -= size[i] * steps[i]; index[i] = 0; }} }} }}"""


def _next(count: str) -> str:
    """Return C that goes on by results along the last axis that is kept."""
    return f"""
int64_t more = {count};
for (int64_t i = axes_left - 1; i >= 0; i--) {{
if (kind[i]) continue;
base += more * steps[i]; at[i] += more;
if (at[i] < size[i]) break;
base -= size[i] * steps[i]; at[i] = 0; more = 1; }}"""


def lower_normalization(low: Lowering, node: ir.Node) -> None:
    """Lower an operator that divides by a reduction."""
    from hagane.native.rules.ordering import normalizing  # few models need it

    normalizing.RULES[node.op_type](low, node)


RULES: dict[tuple[str, str], Rule] = {
    **{("", name): lower_reduce for name in _OPERATORS},
    **{("", name): lower_global_pool for name in ("GlobalAveragePool", "GlobalMaxPool")},
    **{("", name): lower_normalization for name in ("LogSoftmax", "LpNormalization", "Softmax")},
}
