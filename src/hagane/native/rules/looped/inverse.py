"""Inverse of square matrices, by Gauss and Jordan's elimination with exchanged rows."""

from __future__ import annotations

import onnx_ir as ir

from hagane.native.kernels.kernel import c_type
from hagane.native.kernels.written import emit_written, is_real, loaded, stored
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering, Rule
from hagane.symbolic import product

# In place: a column that has been eliminated makes room for one of the inverse. Sums are of
# double numbers, so that float32 is rounded once.
_INVERT = """
static int KERNEL_invert(double *a, int64_t *swapped, int64_t n) {
for (int64_t k = 0; k < n; k++) {
int64_t best = k;
for (int64_t i = k + 1; i < n; i++) if (fabs(a[i * n + k]) > fabs(a[best * n + k])) best = i;
if (a[best * n + k] == 0) return 0;
swapped[k] = best;
if (best != k) for (int64_t j = 0; j < n; j++) { const double v = a[k * n + j]; a[k * n + j] = a[best * n + j]; a[best * n + j] = v; }
double *restrict own = a + k * n;
const double by = 1 / own[k];
own[k] = 1;
for (int64_t j = 0; j < n; j++) own[j] *= by;
for (int64_t i = 0; i < n; i++) {
if (i == k) continue;
double *restrict row = a + i * n;
const double v = row[k];
row[k] = 0;
for (int64_t j = 0; j < n; j++) row[j] -= v * own[j]; } }
for (int64_t k = n - 1; k >= 0; k--) if (swapped[k] != k)
for (int64_t i = 0; i < n; i++) { double *row = a + i * n, v = row[k]; row[k] = row[swapped[k]]; row[swapped[k]] = v; }
return 1; }
"""


def lower_inverse(low: Lowering, node: ir.Node) -> None:
    """Lower Inverse: each matrix by itself."""
    x, out = low.forms.contiguous(node.inputs[0]), node.outputs[0]
    if not is_real(x.dtype):
        raise NotNative(f"element type {x.dtype}")
    y, n = low.forms.result(out), x.shape[-1]
    emit_written(
        low.recorder, node,
        f"""
double *a = (double *)thread->scratch;
for (int64_t item = first; item < last; item++) {{
for (int64_t i = 0; i < n * n; i++) a[i] = {loaded(x.dtype, "x[item * n * n + i]")};
if (!KERNEL_invert(a, (int64_t *)(a + n * n), n)) {{ hg_fail(thread, item); return; }}
for (int64_t i = 0; i < n * n; i++) y[item * n * n + i] = {stored(x.dtype, "a[i]")}; }}""",
        reads={"x": x}, writes={"y": y}, sizes={"n": n}, types={"T": c_type(x.dtype)},
        items=product(x.shape[:-2]), each=n * n * (n + 1), cost=0.2, scratch=8 * n * (n + 1),
        helper=_INVERT,
    )  # fmt: skip
    low.forms[out] = y


RULES: dict[tuple[str, str], Rule] = {("com.microsoft", "Inverse"): lower_inverse}
