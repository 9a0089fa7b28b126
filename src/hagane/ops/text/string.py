"""StringConcat, StringNormalizer, StringSplit, RegexFullMatch."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.graph.types import TensorType
from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.rules import broadcast, same_shape
from hagane.ops.text.re2 import from_re2
from hagane.ops.values import strings, texts
from hagane.ops.vjp import TEXT


def _concat(x: Array, y: Array) -> Array:
    module = texts()
    if module is not None:
        if x.shape != y.shape:
            x, y = np.broadcast_arrays(x, y)
        joined: Array = module.concat(x, y)
        return joined
    left, right = np.broadcast_arrays(x, y)
    return strings([a + b for a, b in zip(left.ravel(), right.ravel(), strict=True)]).reshape(
        left.shape
    )


def _normalizing(
    *,
    case_change_action: str = "NONE",
    is_case_sensitive: int = 0,
    locale: str | None = None,
    stopwords: Sequence[str] | None = None,
) -> Callable[[Array], Array]:
    stops = set(stopwords or ())
    if not is_case_sensitive:
        stops = {word.lower() for word in stops}
    changes: dict[str, Callable[[str], str]] = {"LOWER": str.lower, "UPPER": str.upper}
    change = changes.get(case_change_action, str)

    def normalize(x: Array) -> Array:
        if x.ndim not in (1, 2) or (x.ndim == 2 and x.shape[0] != 1):
            raise ValueError(f"expected shape [C] or [1, C], got {list(x.shape)}")
        kept = x.ravel().tolist()
        if stops:
            kept = [s for s in kept if (s if is_case_sensitive else s.lower()) not in stops]
        result = strings(list(map(change, kept)) or [""])
        return result.reshape(1, -1) if x.ndim == 2 else result

    return normalize


def _normalizer(
    x: Array,
    *,
    case_change_action: str = "NONE",
    is_case_sensitive: int = 0,
    locale: str | None = None,
    stopwords: Sequence[str] | None = None,
) -> Array:
    return _normalizing(
        case_change_action=case_change_action,
        is_case_sensitive=is_case_sensitive,
        stopwords=stopwords,
    )(x)


def _infer_normalizer(ctx: InferContext) -> Sequence[Any]:
    shape = ctx.shape(0)
    size = shape[-1] if not ctx.attr("stopwords") and shape[-1] != 0 else ctx.fresh("words")
    return [(*shape[:-1], size)]


def _split(
    x: Array, *, delimiter: str | None = None, maxsplit: int | None = None
) -> tuple[Array, Array]:
    limit = -1 if maxsplit is None else maxsplit
    module = texts()
    if module is not None:
        found: tuple[Array, Array] = module.split(x, delimiter or None, limit)
        return found
    parts = [s.split(delimiter or None, limit) for s in x.ravel()]
    counts = np.array([len(p) for p in parts], dtype=np.int64).reshape(x.shape)
    width = max((len(p) for p in parts), default=0)
    padded = [word for p in parts for word in (*p, *[""] * (width - len(p)))]
    return strings(padded).reshape(*x.shape, width), counts


def _infer_split(ctx: InferContext) -> Sequence[Any]:
    shape = ctx.shape(0)
    return [
        TensorType(ir.DataType.STRING, (*shape, ctx.fresh("words"))),
        TensorType(ir.DataType.INT64, shape),
    ][: ctx.n_outputs]


def _matching(*, pattern: str) -> Callable[[Array], Array]:
    match = re.compile(from_re2(pattern)).fullmatch

    def matched(x: Array) -> Array:
        module = texts()
        if module is not None:
            are: Array = module.matches(x, match)
            return are
        found = [match(s) is not None for s in x.ravel().tolist()]
        return np.array(found, dtype=bool).reshape(x.shape)

    return matched


def _full_match(x: Array, *, pattern: str) -> Array:
    return _matching(pattern=pattern)(x)


OPERATORS = (
    OpDef("RegexFullMatch", same_shape, _full_match, ready=_matching, vjp=TEXT),
    OpDef("StringConcat", broadcast, _concat, vjp=TEXT),
    OpDef("StringNormalizer", _infer_normalizer, _normalizer, ready=_normalizing, vjp=TEXT),
    OpDef("StringSplit", _infer_split, _split, vjp=TEXT),
)
