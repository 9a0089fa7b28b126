"""Linear models and the transforms of features: Scaler, Normalizer, Binarizer, Imputer."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.kernel import c_type
from hagane.native.kernels.tensor import Tensor
from hagane.native.kernels.written import emit_written
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.classical.scores import (
    features,
    labels,
    number_of_features,
    one_score,
    table,
    transform,
)
from hagane.ops.ml.classes import of_regression
from hagane.ops.ml.linear import weights_of
from hagane.symbolic import product


def _scores(
    low: Lowering, node: ir.Node, x: Tensor, scores: int
) -> tuple[int, dict[str, Tensor], str]:
    """Return how many scores a row has, their parameters, and C that computes them into ``s``."""
    attributes = low.facts.attributes(node)
    if not isinstance(x.shape[1], int):
        raise NotNative("a number of features known only at run time")
    try:
        weights = weights_of(attributes["coefficients"], x.shape[1], scores)
    except ValueError as error:
        raise NotNative(str(error)) from error
    count = len(weights)
    intercepts = np.zeros(count)
    if attributes.get("intercepts"):
        intercepts = np.broadcast_to(np.asarray(attributes["intercepts"], np.float64), (count,))
    if number_of_features(x) == "float":
        weights = weights.astype(np.float32).astype(np.float64)
        intercepts = intercepts.astype(np.float32).astype(np.float64)
    reads = {"w": table(low, node, "w", weights), "b": table(low, node, "b", intercepts)}
    text = f"""
const X *from = x + row * columns;
for (int64_t j = 0; j < {count}; j++) {{ double sum = 0;
for (int64_t i = 0; i < columns; i++) sum += (double)from[i] * w[j * columns + i];
s[j] = sum + b[j]; }}"""
    return count, reads, text


def lower_regressor(low: Lowering, node: ir.Node) -> None:
    """Lower LinearRegressor."""
    x, y = features(low, node.inputs[0]), low.forms.result(node.outputs[0])
    targets = int(low.facts.attributes(node).get("targets", 1))
    if len(low.facts.attributes(node).get("intercepts") or ()) not in (0, targets):
        raise NotNative("another number of intercepts than of targets")
    count, reads, text = _scores(low, node, x, targets)
    name = of_regression(count, str(low.facts.attributes(node).get("post_transform", "NONE")))
    emit_written(
        low.recorder, node,
        f"""
for (int64_t row = first; row < last; row++) {{
double s[{count}];
{text}
KERNEL_transform(s, {count});
for (int64_t j = 0; j < {count}; j++) y[row * {count} + j] = (float)s[j]; }}""",
        reads={"x": x, **reads}, writes={"y": y}, sizes={"columns": x.shape[1]},
        types={"X": c_type(x.dtype)}, items=x.shape[0], each=x.shape[1] * count,
        helper=transform(name),
    )  # fmt: skip
    low.forms[node.outputs[0]] = y


def lower_classifier(low: Lowering, node: ir.Node) -> None:
    """Lower LinearClassifier with labels that are numbers."""
    x, attributes = features(low, node.inputs[0]), low.facts.attributes(node)
    count, reads, text = _scores(low, node, x, len(attributes.get("intercepts") or ()))
    name = str(attributes.get("post_transform", "NONE"))
    width = max(count, 2)
    reads["labels"] = labels(low, node, attributes, "classlabels_ints", width)
    chosen, y = (low.forms.result(value) for value in node.outputs)
    if y.shape[1] != width:
        raise NotNative("more scores than classes")
    if count == 1:
        choose = f"double score = s[0]; int64_t best = (float)score > 0; {one_score(name, probability=True)}"
    else:
        choose = f"""
int64_t best = 0;
for (int64_t j = 1; j < {count}; j++) if ((float)s[j] > (float)s[best]) best = j;
KERNEL_transform(s, {count});"""
    emit_written(
        low.recorder, node,
        f"""
for (int64_t row = first; row < last; row++) {{
double s[{width}];
{text}
{choose}
label[row] = labels[best];
for (int64_t j = 0; j < {width}; j++) y[row * {width} + j] = (float)s[j]; }}""",
        reads={"x": x, **reads}, writes={"label": chosen, "y": y},
        sizes={"columns": x.shape[1]}, types={"X": c_type(x.dtype)},
        items=x.shape[0], each=x.shape[1] * count, helper=transform(name),
    )  # fmt: skip
    low.forms[node.outputs[0]], low.forms[node.outputs[1]] = chosen, y


def _per_column(low: Lowering, node: ir.Node, text: str, parameters: dict[str, np.ndarray]) -> None:
    """Write the kernel of a result for each feature ``v`` of column ``j``."""
    x, y = low.forms.contiguous(node.inputs[0]), low.forms.result(node.outputs[0])
    columns = x.shape[-1] if x.shape else 1
    for array in parameters.values():
        if array.size not in (1, columns):
            raise NotNative("parameters of another number than there are features")
    reads = {name: table(low, node, name, array) for name, array in parameters.items()}
    counts = {f"{name}_n": array.size for name, array in parameters.items()}
    emit_written(
        low.recorder, node,
        f"for (int64_t i = first; i < last; i++) {{ const int64_t j = i % columns; (void)j;\n"
        f"const X v = x[i]; {text} }}",
        reads={"x": x, **reads}, writes={"y": y}, sizes={"columns": columns, **counts},
        types={"X": c_type(x.dtype)}, items=product(x.shape),
    )  # fmt: skip
    low.forms[node.outputs[0]] = y


def lower_scaler(low: Lowering, node: ir.Node) -> None:
    """Lower Scaler."""
    attributes = low.facts.attributes(node)
    dtype = low.facts.dtype(node.inputs[0])
    wide = np.dtype(np.float64 if dtype == np.float64 else np.float32)
    given = {
        name: attributes.get(name) or default
        for name, default in (("offset", [0.0]), ("scale", [1.0]))
    }
    text = "y[i] = (float)((({0})v - offset[offset_n == 1 ? 0 : j]) * scale[scale_n == 1 ? 0 : j]);"
    arrays = {name: np.asarray(value, wide) for name, value in given.items()}
    _per_column(low, node, text.replace("{0}", c_type(wide)), arrays)


def lower_binarizer(low: Lowering, node: ir.Node) -> None:
    """Lower Binarizer."""
    threshold = np.asarray([low.facts.attributes(node)["threshold"]], np.float32)
    _per_column(low, node, "y[i] = v > threshold[0];", {"threshold": threshold})


def lower_imputer(low: Lowering, node: ir.Node) -> None:
    """Lower Imputer."""
    attributes, dtype = low.facts.attributes(node), low.facts.dtype(node.inputs[0])
    real = dtype.kind == "f"
    values = attributes.get("imputed_value_floats" if real else "imputed_value_int64s")
    if not values:
        raise NotNative("no imputed values")
    replaced = float(attributes["replaced_value_float" if real else "replaced_value_int64"])
    arrays = {"values": np.asarray(values, dtype)}
    test = "v != v" if np.isnan(replaced) else "v == gone[0]"
    if not np.isnan(replaced):
        arrays["gone"] = np.asarray([replaced], dtype)
    _per_column(low, node, f"y[i] = {test} ? values[values_n == 1 ? 0 : j] : v;", arrays)


def lower_normalizer(low: Lowering, node: ir.Node) -> None:
    """Lower Normalizer: rows divided by their largest number or norm."""
    x = low.forms.contiguous(node.inputs[0])
    rows = features(low, node.inputs[0])
    y = low.forms.result(node.outputs[0])
    norm = str(low.facts.attributes(node)["norm"])
    if norm not in ("MAX", "L1", "L2"):
        raise NotNative(f"norm '{norm}'")
    start = "-INFINITY" if norm == "MAX" else "0"
    step = {"MAX": "d = v > d || v != v ? v : d;", "L1": "d += fabs(v);", "L2": "d += v * v;"}[norm]
    kind = number_of_features(x)
    emit_written(
        low.recorder, node,
        f"""
for (int64_t row = first; row < last; row++) {{
const X *from = x + row * n; double d = {start};
if (n == 0) {{ hg_fail(thread, 0); return; }}
for (int64_t i = 0; i < n; i++) {{ const double v = ({kind})from[i]; {step} }}
{"d = sqrt(d);" if norm == "L2" else ""}
for (int64_t i = 0; i < n; i++) y[row * n + i] = (float)(d == 0 ? ({kind})from[i] : ({kind})from[i] / d); }}""",
        reads={"x": rows}, writes={"y": y}, sizes={"n": rows.shape[1]},
        types={"X": c_type(x.dtype)}, items=rows.shape[0], each=rows.shape[1] * 2,
    )  # fmt: skip
    low.forms[node.outputs[0]] = y


RULES: dict[tuple[str, str], Rule] = {
    ("ai.onnx.ml", name): rule
    for name, rule in (
        ("Binarizer", lower_binarizer),
        ("Imputer", lower_imputer),
        ("LinearClassifier", lower_classifier),
        ("LinearRegressor", lower_regressor),
        ("Normalizer", lower_normalizer),
        ("Scaler", lower_scaler),
    )
}
