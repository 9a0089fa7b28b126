"""Binarizer, FeatureVectorizer, Imputer, Normalizer, Scaler."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.ml.classes import DOMAIN, as_matrix
from hagane.ops.rules import same_shape
from hagane.ops.vjp import CLASSICAL, flat
from hagane.symbolic import Dim, product


def _binarizer(x: Array, *, threshold: float = 0.0) -> Array:
    return (x > threshold).astype(x.dtype)


def _feature_vectorizer(*xs: Array, inputdimensions: Sequence[int] | None = None) -> Array:
    """Join the columns of all inputs, each cut or filled with zeros to its declared width."""
    parts = []
    for index, x in enumerate(xs):
        matrix = as_matrix(x).astype(np.float32)
        matrix = matrix.reshape(len(matrix), math.prod(matrix.shape[1:]))
        if inputdimensions:
            wanted = inputdimensions[index]
            matrix = np.pad(matrix[:, :wanted], [(0, 0), (0, max(0, wanted - matrix.shape[1]))])
        parts.append(matrix)
    return np.concatenate(parts, axis=1)


def _infer_feature_vectorizer(ctx: InferContext) -> Sequence[Any]:
    widths = ctx.attr("inputdimensions")
    if widths and (len(widths) != ctx.n_inputs or min(widths) < 0):
        ctx.fail(
            f"expected inputdimensions of {ctx.n_inputs} inputs, none below 0, got {list(widths)}"
        )
    shape = ctx.shape(0)
    rows: Dim = shape[0] if len(shape) > 1 else 1
    total: Dim = 0
    for i in range(ctx.n_inputs):
        shape = ctx.shape(i)
        total = total + (widths[i] if widths else product(shape[1:] if len(shape) > 1 else shape))
    return [(rows, total)]


def _imputer(
    x: Array,
    *,
    imputed_value_floats: Sequence[float] | None = None,
    imputed_value_int64s: Sequence[int] | None = None,
    replaced_value_float: float = 0.0,
    replaced_value_int64: int = 0,
) -> Array:
    if x.dtype.kind == "f":
        values, replaced = imputed_value_floats, replaced_value_float
    else:
        values, replaced = imputed_value_int64s, float(replaced_value_int64)
    if not values:
        raise ValueError(f"no imputed values are given for {x.dtype}")
    missing = np.isnan(x) if np.isnan(replaced) else x == replaced
    return np.where(missing, np.asarray(values, dtype=x.dtype), x)


def _normalizer(x: Array, *, norm: str = "MAX") -> Array:
    matrix = as_matrix(x)
    match norm:
        case "MAX":
            divisor = matrix.max(axis=1, keepdims=True)
        case "L1":
            divisor = np.abs(matrix).sum(axis=1, keepdims=True)
        case "L2":
            divisor = np.sqrt(np.square(matrix).sum(axis=1, keepdims=True))
        case _:
            raise ValueError(f"unknown norm '{norm}'")
    safe = np.where(divisor == 0, 1, divisor)
    return (matrix / safe).astype(np.float32).reshape(x.shape)


def _scaler(
    x: Array, *, offset: Sequence[float] | None = None, scale: Sequence[float] | None = None
) -> Array:
    wide = x.astype(np.float64 if x.dtype == np.float64 else np.float32)
    shifted = wide - np.asarray(offset or (0.0,), dtype=wide.dtype)
    return (shifted * np.asarray(scale or (1.0,), dtype=wide.dtype)).astype(np.float32)


OPERATORS = (
    OpDef("Binarizer", same_shape, _binarizer, domain=DOMAIN, vjp=flat),
    OpDef(
        "FeatureVectorizer",
        _infer_feature_vectorizer,
        _feature_vectorizer,
        domain=DOMAIN,
        vjp=CLASSICAL,
    ),
    OpDef("Imputer", same_shape, _imputer, domain=DOMAIN, vjp=CLASSICAL),
    OpDef("Normalizer", same_shape, _normalizer, domain=DOMAIN, vjp=CLASSICAL),
    OpDef("Scaler", same_shape, _scaler, domain=DOMAIN, vjp=CLASSICAL),
)
