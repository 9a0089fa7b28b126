"""AffineGrid, and determinants."""

from __future__ import annotations

import onnx_ir as ir

from hagane.native.kernels.kernel import c_type
from hagane.native.kernels.written import (
    coordinates,
    emit_written,
    is_real,
    loaded,
    number_type,
    stored,
)
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.indexing.axes import whole_numbers
from hagane.native.rules.shaping.numbers import found_numbers, length_of
from hagane.symbolic import product


def lower_affine_grid(low: Lowering, node: ir.Node) -> None:
    """Lower AffineGrid: the place of each pixel times a matrix."""
    theta, out = low.forms.contiguous(node.inputs[0]), node.outputs[0]
    shape = low.facts.shape(out)
    if not is_real(theta.dtype):
        raise NotNative(f"element type {theta.dtype}")
    rank = length_of(low, node.inputs[1]) - 2
    text = f"""
double total = 1;
for (int64_t i = 0; i < {rank}; i++) {{
if (size[i + 2] < 0 || (total *= (double)size[i + 2]) > 0x1p46) {{ hg_fail(thread, size[i + 2]); return; }}
found[i] = size[i + 2]; }}"""
    reads = {"size": whole_numbers(low, node.inputs[1])}
    found_numbers(low, node, text, list(shape[1:-1]), reads=reads)
    y = low.forms.result(out)
    number = number_type(theta.dtype)
    aligned = f"({number})((double)c0 * (2.0 / (double)(Y0 - 1)) - 1)"
    place = f"Y0 > 1 ? {aligned} : 0"
    if not low.facts.attributes(node)["align_corners"]:
        place = f"({number})((2.0 * (double)c0 + 1) / (double)Y0 - 1)"
    new_line = "\n"
    names = [f"c{i}" for i in range(rank)]
    places = [
        f"const {number} p{rank - 1 - i} = {place.replace('c0', f'c{i}').replace('Y0', f'Y{i}')};"
        for i in range(rank)
    ]
    terms = [f"{loaded(theta.dtype, f'of[{j}]')} * p{j}" for j in range(rank)]
    terms.append(loaded(theta.dtype, f"of[{rank}]"))
    text = f"""
for (int64_t row = first; row < last; row++) {{
int64_t left = row;
{coordinates(["image", *names[:-1]], ["0", *(f"Y{i}" for i in range(rank - 1))])}
{new_line.join(places[:-1])}
T *to = y + row * Y{rank - 1} * {rank};
for (int64_t k = 0; k < {rank}; k++) {{
const T *of = theta + (image * {rank} + k) * {rank + 1};
for (int64_t {names[-1]} = 0; {names[-1]} < Y{rank - 1}; {names[-1]}++) {{
{places[-1]}
to[{names[-1]} * {rank} + k] = {stored(theta.dtype, " + ".join(terms))}; }} }} }}"""
    emit_written(
        low.recorder, node, text, reads={"theta": theta}, writes={"y": y},
        sizes={f"Y{i}": dim for i, dim in enumerate(shape[1:-1])},
        types={"T": c_type(theta.dtype)}, items=product(shape[:-2]), each=shape[-2] * rank,
    )  # fmt: skip
    low.forms[out] = y


def lower_det(low: Lowering, node: ir.Node) -> None:
    """Lower Det: Gaussian elimination with the largest number of a column as pivot."""
    x, out = low.forms.contiguous(node.inputs[0]), node.outputs[0]
    if not is_real(x.dtype):
        raise NotNative(f"element type {x.dtype}")
    n = x.shape[-1]
    y = low.forms.result(out)
    text = f"""
double *m = (double *)thread->scratch;
for (int64_t item = first; item < last; item++) {{
for (int64_t i = 0; i < n * n; i++) m[i] = (double){loaded(x.dtype, "x[item * n * n + i]")};
double det = 1;
for (int64_t c = 0; c < n; c++) {{
int64_t best = c;
for (int64_t r = c + 1; r < n; r++) if (fabs(m[r * n + c]) > fabs(m[best * n + c])) best = r;
if (best != c) {{ det = -det;
for (int64_t k = c; k < n; k++) {{
const double t = m[c * n + k]; m[c * n + k] = m[best * n + k]; m[best * n + k] = t; }} }}
const double pivot = m[c * n + c];
det *= pivot;
if (pivot == 0) break;
for (int64_t r = c + 1; r < n; r++) {{ const double by = m[r * n + c] / pivot;
for (int64_t k = c + 1; k < n; k++) m[r * n + k] -= by * m[c * n + k]; }} }}
y[item] = {stored(x.dtype, f"({number_type(x.dtype)})det")};
}}"""
    emit_written(
        low.recorder, node, text, reads={"x": x}, writes={"y": y}, sizes={"n": n},
        items=product(x.shape[:-2]), each=n * n * n, scratch=n * n * 8 + 64,
    )  # fmt: skip
    low.forms[out] = y


RULES: dict[tuple[str, str], Rule] = {
    ("", "AffineGrid"): lower_affine_grid,
    ("", "Det"): lower_det,
}
