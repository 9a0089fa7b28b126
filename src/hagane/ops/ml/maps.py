"""Operators on dictionaries: CastMap, DictVectorizer, ZipMap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, cast

import numpy as np
import onnx_ir as ir

from hagane.graph.types import MapType, SequenceType, TensorType
from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.ml.classes import DOMAIN
from hagane.ops.values import strings
from hagane.ops.vjp import CLASSICAL


def _zip_map(
    x: Array,
    *,
    classlabels_int64s: Sequence[int] | None = None,
    classlabels_strings: Sequence[str] | None = None,
) -> list[dict[Any, float]]:
    count, to_dicts = _rows_to_dicts(
        tuple(classlabels_strings or ()), tuple(classlabels_int64s or ())
    )
    rows = x.reshape(1, -1) if x.ndim == 1 else x
    if rows.shape[1] != count:
        raise ValueError(f"expected {count} columns, one a label, got {rows.shape[1]}")
    return to_dicts(rows.tolist())


_ToDicts = Callable[[list[list[float]]], list[dict[Any, float]]]


@lru_cache(256)
def _rows_to_dicts(texts: tuple[Any, ...], numbers: tuple[Any, ...]) -> tuple[int, _ToDicts]:
    """Return how many labels there are, and a function from rows to dicts with these keys.

    Keys are texts, or numbers if there are none, in their order as ONNX Runtime has it.

    A display of a dict with its keys written down takes a fifth of the time of ``dict(zip(...))``.
    """
    labels: list[Any] = [str(label) for label in texts] or [int(label) for label in numbers]
    keys = sorted(enumerate(labels), key=lambda item: _in_bytes(item[1]))
    if not 0 < len(labels) <= _MOST_WRITTEN:
        return len(labels), lambda rows: [{label: row[i] for i, label in keys} for row in rows]
    pairs = ", ".join(f"{label!r}: v{i}" for i, label in keys)
    values = ", ".join(f"v{i}" for i in range(len(labels)))
    made = eval(f"lambda rows: [{{{pairs}}} for {values}, in rows]")
    return len(labels), cast("_ToDicts", made)


def _in_bytes(label: int | str) -> int | bytes:
    return label.encode("utf-8", "surrogateescape") if isinstance(label, str) else label


# Of longer displays the compiler makes slow code.
_MOST_WRITTEN = 200


def _infer_zip_map(ctx: InferContext) -> Sequence[Any]:
    key = ir.DataType.STRING if ctx.attr("classlabels_strings") else ir.DataType.INT64
    return [SequenceType(MapType(key, TensorType(ir.DataType.FLOAT, ())))]


def _dict_vectorizer(
    x: dict[Any, Any],
    *,
    int64_vocabulary: Sequence[int] | None = None,
    string_vocabulary: Sequence[str] | None = None,
) -> Array:
    words: Sequence[Any] = string_vocabulary or int64_vocabulary or ()
    sample = next(iter(x.values()), 0.0)
    if isinstance(sample, str):
        return strings([x.get(word, "") for word in words]).reshape(1, -1)
    dtype = np.asarray(sample).dtype
    if dtype == np.float64 and not isinstance(sample, np.float64):  # of Python: nobody declared it
        dtype = np.dtype(np.float32)
    return np.array([[x.get(word, 0) for word in words]], dtype=dtype)


def _infer_dict_vectorizer(ctx: InferContext) -> Sequence[Any]:
    words = ctx.attr("string_vocabulary") or ctx.attr("int64_vocabulary") or ()
    source = ctx.type(0)
    if not isinstance(source, MapType) or not isinstance(source.value, TensorType):
        ctx.fail(f"expected a map, got {source}")
    return [TensorType(source.value.dtype, (1, len(words)))]


_CASTS = {
    "TO_FLOAT": ir.DataType.FLOAT,
    "TO_INT64": ir.DataType.INT64,
    "TO_STRING": ir.DataType.STRING,
}


def _cast_map(
    x: dict[int, Any], *, cast_to: str = "TO_FLOAT", map_form: str = "DENSE", max_map: int = 1
) -> Array:
    if map_form == "SPARSE":
        values = [x.get(i, 0) for i in range(max_map)]
    else:
        values = [x[key] for key in sorted(x)]
    if cast_to == "TO_STRING":
        texts = [f"{value:f}" if isinstance(value, float) else str(value) for value in values]
        return strings(texts).reshape(1, -1)
    wide = np.asarray([float(value) for value in values])
    return wide.astype(_CASTS[cast_to].numpy()).reshape(1, -1)


def _infer_cast_map(ctx: InferContext) -> Sequence[Any]:
    sparse = ctx.attr("map_form") == "SPARSE"
    size: Any = ctx.attr("max_map") if sparse else ctx.fresh("entries")
    return [TensorType(_CASTS[ctx.attr("cast_to")], (1, size))]


OPERATORS = (
    OpDef("CastMap", _infer_cast_map, _cast_map, domain=DOMAIN, vjp=CLASSICAL),
    OpDef("DictVectorizer", _infer_dict_vectorizer, _dict_vectorizer, domain=DOMAIN, vjp=CLASSICAL),
    OpDef("ZipMap", _infer_zip_map, _zip_map, domain=DOMAIN, vjp=CLASSICAL),
)
