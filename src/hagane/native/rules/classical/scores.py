"""Scores of classical models: tables of parameters, post-transforms, labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.packing import Packing, as_is
from hagane.native.kernels.tensor import Tensor, row_major
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering
from hagane.ops.definition import Array

# Of one row of scores `s`, `k` numbers.
_TRANSFORMS = {
    "NONE": "",
    "LOGISTIC": "for (int64_t j = 0; j < k; j++) s[j] = s[j] < 0 ? exp(s[j]) / (1 + exp(s[j])) : 1 / (1 + exp(-s[j]));",
    "SOFTMAX": """
double top = -INFINITY, sum = 0;
for (int64_t j = 0; j < k; j++) top = s[j] > top ? s[j] : top;
for (int64_t j = 0; j < k; j++) sum += s[j] = exp(s[j] - top);
for (int64_t j = 0; j < k; j++) s[j] /= sum;""",
    "SOFTMAX_ZERO": """
double top = -INFINITY, sum = 0;
for (int64_t j = 0; j < k; j++) top = s[j] > top ? s[j] : top;
for (int64_t j = 0; j < k; j++) sum += s[j] = fabs(s[j]) <= 1e-7 ? s[j] * exp(-top) : exp(s[j] - top);
for (int64_t j = 0; j < k; j++) s[j] = sum == 0 ? 0.5 : s[j] / sum;""",
    "PROBIT": """
for (int64_t j = 0; j < k; j++) {
double z = 2 * s[j] - 1, l = log((1 - z) * (1 + z)), v = 2 / (M_PI * 0.147) + 0.5 * l;
s[j] = sqrt(2.) * (z > 0 ? 1 : z < 0 ? -1 : 0) * sqrt(sqrt(v * v - l / 0.147) - v); }""",
}


def transform(name: str) -> str:
    """Return a C function ``KERNEL_transform(s, k)`` that applies a post-transform to a row."""
    if name not in _TRANSFORMS:
        raise NotNative(f"post_transform '{name}'")
    return f"static void KERNEL_transform(double *s, int64_t k) {{ (void)s, (void)k; {_TRANSFORMS[name]} }}"


def one_score(name: str, *, probability: bool) -> str:
    """Return C text that makes both scores ``s[0]``, ``s[1]`` of the one in ``score``."""
    if name == "LOGISTIC":
        return "s[0] = -score; s[1] = score; KERNEL_transform(s, 2);"
    pair = f"s[0] = {'1 - score' if probability else '-score'}; s[1] = score;"
    return pair + ("KERNEL_transform(s, 2);" if name == "PROBIT" else "")


def table(low: Lowering, node: ir.Node, name: str, array: Array) -> Tensor:
    """Return parameters as a tensor in the weights' memory."""
    kept = np.ascontiguousarray(array)
    if kept.size == 0:
        kept = np.zeros(1, kept.dtype)
    buffer = low.recorder.weight((node, name), Packing(as_is, (kept,)), kept.nbytes)
    return Tensor(buffer, kept.dtype, kept.shape, row_major(kept.shape))


def labels(
    low: Lowering, node: ir.Node, attributes: Mapping[str, Any], ints: str, count: int
) -> Tensor:
    """Return the labels of classes, which have to be numbers."""
    if attributes.get("classlabels_strings"):
        raise NotNative("labels that are text")
    given = attributes.get(ints) or range(count)
    return table(low, node, "labels", np.array(list(given), np.int64))


def features(low: Lowering, value: ir.Value | None) -> Tensor:
    """Return rows of features; one axis is one row."""
    x = low.forms.contiguous(value)
    if x.dtype.name not in ("float32", "float64", "int64", "int32"):
        raise NotNative(f"features of type {x.dtype}")
    if len(x.shape) == 1:
        x = x.reshaped((1, x.shape[0]))
    if len(x.shape) != 2:
        raise NotNative("features that are no matrix")
    return x


def number_of_features(x: Tensor) -> str:
    """Return the C type in which features are compared and multiplied."""
    return "double" if x.dtype == np.float64 else "float"
