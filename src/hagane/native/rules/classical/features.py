"""FeatureVectorizer and OneHotEncoder: columns side by side, categories as columns."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.kernel import c_type
from hagane.native.kernels.written import emit_written
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.classical.scores import features, table
from hagane.symbolic import Dim


def lower_feature_vectorizer(low: Lowering, node: ir.Node) -> None:
    """Lower FeatureVectorizer: each input's columns are cut or filled with zeros to its width."""
    out = node.outputs[0]
    xs = [features(low, value) for value in node.inputs]
    widths = low.facts.attributes(node).get("inputdimensions")
    if widths and len(widths) != len(xs):
        raise NotNative("another number of widths than of inputs")
    y = low.forms.result(out)
    at: Dim = 0
    for number, x in enumerate(xs):
        width: Dim = int(widths[number]) if widths else x.shape[1]
        emit_written(
            low.recorder, node,
            """
if (have != rows) { hg_fail(thread, have); return; }
for (int64_t row = first; row < last; row++)
for (int64_t j = 0; j < width; j++) y[row * total + at + j] = j < columns ? (float)x[row * columns + j] : 0;""",
            reads={"x": x}, writes={"y": y},
            sizes={"rows": y.shape[0], "have": x.shape[0], "columns": x.shape[1],
                   "width": width, "at": at, "total": y.shape[1]},
            items=y.shape[0], each=width, name=f"feature_vectorizer_{number}",
        )  # fmt: skip
        at = at + width
    low.forms[out] = y


def lower_one_hot_encoder(low: Lowering, node: ir.Node) -> None:
    """Lower OneHotEncoder of numbers: categories are in order, and found by halving."""
    attributes, out = low.facts.attributes(node), node.outputs[0]
    x = low.forms.contiguous(node.inputs[0])
    given = attributes.get("cats_int64s")
    if not given or x.dtype.name not in ("float32", "float64", "int32", "int64"):
        raise NotNative("categories that are text")
    # Of equal categories the last one counts.
    places = {int(category): place for place, category in enumerate(given)}
    keys = sorted(places)
    y = low.forms.result(out)
    missing = "" if attributes["zeros"] else "if (c < 0) { hg_fail(thread, v); return; }"
    emit_written(
        low.recorder, node,
        f"""
for (int64_t i = first; i < last; i++) {{
const int64_t v = (int64_t)x[i];
int64_t low = 0, high = {len(keys)};
while (low < high) {{ const int64_t mid = (low + high) / 2; if (keys[mid] < v) low = mid + 1; else high = mid; }}
const int64_t c = low < {len(keys)} && keys[low] == v ? places[low] : -1;
{missing}
for (int64_t j = 0; j < {len(given)}; j++) y[i * {len(given)} + j] = j == c; }}""",
        reads={"x": x, "keys": table(low, node, "keys", np.array(keys, np.int64)),
               "places": table(low, node, "places", np.array([places[k] for k in keys], np.int64))},
        writes={"y": y}, types={"X": c_type(x.dtype)}, items=x.size, each=len(given),
    )  # fmt: skip
    low.forms[out] = y


RULES: dict[tuple[str, str], Rule] = {
    ("ai.onnx.ml", "FeatureVectorizer"): lower_feature_vectorizer,
    ("ai.onnx.ml", "OneHotEncoder"): lower_one_hot_encoder,
}
