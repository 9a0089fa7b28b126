"""LabelEncoder of numbers, TfIdfVectorizer of whole numbers: keys that the model lists are found."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.kernel import c_type
from hagane.native.kernels.tensor import Tensor
from hagane.native.kernels.written import emit_written
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering, Rule
from hagane.ops.ml.labels import missing_label


def _list(attributes: dict[str, Any], prefix: str) -> np.ndarray | None:
    """Return the numbers of an attribute that several types have, None where they are text."""
    kinds: tuple[tuple[str, Any], ...] = (("floats", np.float32), ("int64s", np.int64))
    for kind, dtype in kinds:
        found = attributes.get(f"{prefix}_{kind}")
        if found is not None and len(found):
            return np.asarray(found, dtype)
    found = attributes.get(f"{prefix}_tensor")
    array = None if found is None else np.asarray(found).reshape(-1)
    return array if array is not None and array.size and array.dtype.kind in "fiu" else None


def _constant(low: Lowering, node: ir.Node, name: str, array: np.ndarray) -> Tensor:
    return low.recorder.table(node, name, np.ascontiguousarray(array))


def lower_label_encoder(low: Lowering, node: ir.Node) -> None:
    """Lower LabelEncoder: keys are in order, and found by halving."""
    attributes, out = low.facts.attributes(node), node.outputs[0]
    x = low.forms.contiguous(node.inputs[0])
    dtype = low.facts.dtype(out)
    keys, values = _list(attributes, "keys"), _list(attributes, "values")
    if keys is None or values is None or x.dtype.kind not in "fi":
        raise NotNative("element type STRING")
    keys, values = keys.astype(x.dtype), values.astype(dtype)
    kinds = ("floats", "int64s", "tensor")
    kind = next(k for k in kinds if np.size(attributes.get(f"values_{k}", ())))
    missing = missing_label(attributes, kind, dtype)
    # Of equal keys the first one counts; NaN equals itself and comes last.
    order = np.argsort(keys, kind="stable")
    keys, values = keys[order], values[order]
    first = np.append(True, (keys[1:] != keys[:-1]) & ~(np.isnan(keys[:-1]) & np.isnan(keys[1:])))
    keys, values = keys[first], values[first]
    y = low.forms.result(out)
    text = """
for (int64_t i = first; i < last; i++) {
const T v = x[i];
int64_t low = 0, high = count;
while (low < high) { const int64_t mid = (low + high) / 2;
if (v != v ? keys[mid] == keys[mid] : keys[mid] < v) low = mid + 1; else high = mid; }
const int found = low < count && (keys[low] == v || (v != v && keys[low] != keys[low]));
y[i] = found ? values[low] : missing[0];
}"""
    emit_written(
        low.recorder, node, text,
        reads={"x": x, "keys": _constant(low, node, "keys", keys),
               "values": _constant(low, node, "values", values),
               "missing": _constant(low, node, "missing", np.array(missing).astype(dtype).reshape(1))},
        writes={"y": y}, sizes={"count": keys.size}, types={"T": c_type(x.dtype)},
        items=x.size, cost=10.0,
    )  # fmt: skip
    low.forms[out] = y


def lower_tf_idf(low: Lowering, node: ir.Node) -> None:
    """Lower TfIdfVectorizer: sequences of a row, with gaps, are compared with those of the pool."""
    attributes, out = low.facts.attributes(node), node.outputs[0]
    x, y = low.forms.contiguous(node.inputs[0]), low.forms.result(out)
    pool = attributes.get("pool_int64s")
    if not pool or x.dtype.kind not in "iu":
        raise NotNative("element type STRING")
    starts = [*map(int, attributes["ngram_counts"]), len(pool)]
    least, most = int(attributes["min_gram_length"]), int(attributes["max_gram_length"])
    skips, columns = int(attributes["max_skip_count"]), y.shape[-1]
    # Sequences in order, each filled up to the longest, with its length and its column.
    rows: list[list[int]] = []
    number = 0
    longest = min(most, len(starts) - 1)
    for length, (start, end) in enumerate(pairwise(starts), 1):
        for at in range(start, end - length + 1, length):
            column = int(attributes["ngram_indexes"][number])
            number += 1
            if least <= length <= most:
                filled = [*map(int, pool[at : at + length])] + [0] * (longest - length)
                rows.append([length, *filled, column])
    rows.sort()
    weights = attributes.get("weights")
    mode = low.facts.choice(node, "mode", ("TF", "IDF", "TFIDF"))
    reads = {
        "x": x,
        "pool": _constant(low, node, "pool", np.asarray(rows or [[0] * (longest + 2)], np.int64)),
    }
    weight = "1"
    if weights is not None and len(weights) and mode != "TF":
        reads["weights"] = _constant(low, node, "weights", np.asarray(weights, np.float32))
        weight = "weights[c]"
    value = f"to[c] > 0 ? {weight} : 0" if mode == "IDF" else f"to[c] * {weight}"
    width = longest + 2
    text = f"""
for (int64_t row = first; row < last; row++) {{
float *to = y + row * {columns}L;
for (int64_t c = 0; c < {columns}L; c++) to[c] = 0;
for (int64_t gap = 1; gap <= {skips + 1}; gap++)
for (int64_t n = {least}; n <= {longest}; n++) {{
if (n == 1 && gap > 1) continue;
for (int64_t at = 0; at + (n - 1) * gap < length; at++) {{
int64_t low = 0, high = {len(rows)};
while (low < high) {{ const int64_t mid = (low + high) / 2; const int64_t *own = pool + mid * {width};
int less = own[0] < n, more = own[0] > n;
for (int64_t k = 0; k < n && !less && !more; k++) {{
const int64_t v = (int64_t)x[row * length + at + k * gap]; less = own[k + 1] < v; more = own[k + 1] > v; }}
if (less) low = mid + 1; else high = mid; }}
if (low == {len(rows)} || pool[low * {width}] != n) continue;
int same = 1;
for (int64_t k = 0; k < n; k++) same &= pool[low * {width} + k + 1] == (int64_t)x[row * length + at + k * gap];
if (same) to[pool[low * {width} + {width - 1}]] += 1;
}} }}
for (int64_t c = 0; c < {columns}L; c++) to[c] = {value};
}}"""
    across = x.shape[-1]
    emit_written(
        low.recorder, node, text, reads=reads, writes={"y": y}, sizes={"length": across},
        items=x.shape[0] if len(x.shape) > 1 else 1, each=across * (20 * (skips + 1)),
    )  # fmt: skip
    low.forms[out] = y


RULES: dict[tuple[str, str], Rule] = {
    ("", "TfIdfVectorizer"): lower_tf_idf,
    ("ai.onnx.ml", "LabelEncoder"): lower_label_encoder,
}
