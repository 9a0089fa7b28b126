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
from hagane.symbolic import Dim, product

# Start, step from `a` and `v`, last step from `a` (n: count); of real numbers, then of whole ones.
_STEPS = {
    "ReduceL1": ("0", "a + (v < 0 ? -v : v)", "a"),
    "ReduceL2": ("0", "a + v * v", "sqrt((double)a)"),
    "ReduceLogSum": ("0", "a + v", "log((double)a)"),
    "ReduceMax": ("v", "a >= v || a != a ? a : v", "a"),
    "ReduceMean": ("0", "a + v", "a / n"),
    "ReduceMin": ("v", "a <= v || a != a ? a : v", "a"),
    "ReduceProd": ("1", "a * v", "a"),
    "ReduceSum": ("0", "a + v", "a"),
    "ReduceSumSquare": ("0", "a + v * v", "a"),
}


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
    dtype = x.dtype
    value = f"(S){loaded(dtype, 'x[at]')}"
    if node.op_type == "ReduceLogSumExp":
        top = f"S top = -INFINITY; {_walk(rank, f'S v = {value}; top = v > top || v != v ? v : top;')}"
        inner = (
            f"{top}\nif (!(top - top == 0)) {{ a = top; }} else {{\n"
            f"{_walk(rank, f'a += exp({value} - top);')}\na = log(a) + top; }}"
        )
        begin, last = "S a = 0;", "a"
    else:
        start, step, last = _STEPS[node.op_type]
        if dtype == np.bool_:
            step = step.replace("|| a != a ", "")
        begin = f"S a = {'0' if start == 'v' else start}; int any = 0; (void)any;"
        first = (
            f"if (!any) {{ a = v; any = 1; }} else a = {step};" if start == "v" else f"a = {step};"
        )
        if dtype.kind in "ub":
            first = first.replace("(v < 0 ? -v : v)", "v")
        inner = _walk(rank, f"S v = {value}; {first}")
    empty = (
        "if (n == 0) { hg_fail(thread, 0); return; }"
        if "Max" in node.op_type or "Min" in node.op_type
        else ""
    )
    text = f"""
{head}
int64_t steps[{rank + 1}], n = 1, kept = 1;
{{ int64_t step = 1; for (int64_t i = {rank - 1}; i >= 0; i--) {{ steps[i] = step; step *= dims[i]; if (folded[i]) n *= dims[i]; else kept *= dims[i]; }} }}
{empty}
for (int64_t item = first; item < last; item++) {{
int64_t left = item, base = 0;
for (int64_t i = {rank - 1}; i >= 0; i--) if (!folded[i]) {{ base += left % dims[i] * steps[i]; left /= dims[i]; }}
{begin}
{inner}
y[item] = {stored(y.dtype, f"(T)({last})" if not is_real(dtype) else f"({'float' if dtype.itemsize < 8 else 'double'})({last})")};
}}
(void)kept;"""
    emit_written(
        low.recorder, node, text, reads=reads, writes={"y": y}, sizes=sizes,
        types={"T": c_type(dtype), "S": _wide(dtype)}, items=y.size,
        each=x.size if axes is None else product([x.shape[a] for a in axes]), cost=1.5,
    )  # fmt: skip
    low.forms[out] = y


def _walk(rank: int, action: str) -> str:
    """Return C that does an action ``at`` each element that one result is made of."""
    if rank == 0:
        return f"{{ const int64_t at = 0; {action} }}"
    return f"""
if (n > 0) {{
int64_t inner = -1, index[{rank}] = {{0}}, place = base;
for (int64_t i = 0; i < {rank}; i++) if (folded[i]) inner = i;
const int64_t length = inner < 0 ? 1 : dims[inner], stride = inner < 0 ? 0 : steps[inner];
for (;;) {{
for (int64_t k = 0; k < length; k++) {{ const int64_t at = place + k * stride; {action} }}
int64_t i = inner - 1;
for (; i >= 0; i--) {{
if (!folded[i]) continue;
place += steps[i];
if (++index[i] < dims[i]) break;
place -= dims[i] * steps[i]; index[i] = 0; }}
if (i < 0) break; }} }}"""


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
