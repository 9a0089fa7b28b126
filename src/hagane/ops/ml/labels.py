"""CategoryMapper, LabelEncoder, OneHotEncoder."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.graph.types import TensorType
from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.ml.classes import DOMAIN
from hagane.ops.values import array_dtype, strings, texts
from hagane.ops.vjp import DISCRETE


def _look_up(
    table: Mapping[Hashable, Any], default: Any, dtype: Any, nan: Any = None
) -> Callable[[Array], Array]:
    """Return a function that looks up elements; ``nan`` is the value of what equals nothing."""
    dtype, get = np.dtype(dtype), table.get
    # Values by their numbers, the last one for elements that the table lacks.
    whole = all(type(key) is int for key in table)
    plain = strings([*table.values(), default]) if dtype.kind == "O" else None
    values_of = np.array([*table.values(), default], dtype) if plain is None else plain
    numbers = {key: i for i, key in enumerate(table)}

    def look(x: Array) -> Array:
        if x.dtype == object or (x.dtype == np.int64 and whole):
            module = texts()
            if module is not None:
                found: Array = values_of.take(module.places(x, numbers, len(numbers)))
                return found
        items = x.ravel().tolist()
        values = [get(item, default) for item in items]
        if nan is not None and x.dtype.kind == "f":
            values = [
                nan if item != item else value for item, value in zip(items, values, strict=True)
            ]
        result = strings(values) if dtype.kind == "O" else np.asarray(values, dtype=dtype)
        return result.reshape(x.shape)

    return look


_KINDS = ("floats", "int64s", "strings", "tensor")


def _chosen(attributes: Mapping[str, Any], prefix: str) -> tuple[str, Any]:
    for kind in _KINDS:
        found = attributes.get(f"{prefix}_{kind}")
        if found is not None and len(found):
            return kind, found
    raise ValueError(f"no {prefix} are given")


def _labels(*, attributes: dict[str, Any]) -> Callable[[Array], Array]:
    _, keys = _chosen(attributes, "keys")
    kind, values = _chosen(attributes, "values")
    if kind == "tensor":
        dtype = np.asarray(values).dtype
    else:
        dtype = np.dtype({"floats": np.float32, "int64s": np.int64, "strings": object}[kind])
    missing = missing_label(attributes, kind, dtype)
    plain, names = _items(values), _items(keys)
    # Of equal keys the first one counts, as for ONNX Runtime.
    found = dict(zip(reversed(names), reversed(plain), strict=True))
    nan = next((value for name, value in found.items() if name != name), None)
    look = _look_up(found, missing, dtype, nan)
    if not any(isinstance(name, float) for name in names):
        return look
    rounded: dict[Hashable, Any] = {float(np.float32(name)): value for name, value in found.items()}
    look_rounded = _look_up(rounded, missing, dtype, nan)
    return lambda x: look_rounded(x) if x.dtype == np.float32 else look(x)


def _items(given: Any) -> list[Any]:
    """Return the elements of a list or tensor; texts keep the zeros at their end."""
    return list(given) if isinstance(given, list | tuple) else list(np.asarray(given).tolist())


def _label_encoder(x: Array, *, attributes: dict[str, Any]) -> Array:
    return _labels(attributes=attributes)(x)


def missing_label(attributes: Mapping[str, Any], kind: str, dtype: np.dtype[Any]) -> Any:
    """Return the value of elements that the keys lack.

    ``default_tensor``, where it is given, counts for values of any attribute.
    """
    given = attributes.get("default_tensor")
    if given is not None:
        return np.asarray(given).ravel()[0]
    if kind == "tensor":
        return {"O": "_Unused", "f": -0.0}.get(dtype.kind, -1)
    return attributes[f"default_{kind.removesuffix('s')}"]


def _infer_label_encoder(ctx: InferContext) -> Sequence[Any]:
    try:
        kind, values = _chosen(ctx.attributes, "values")
    except ValueError as error:
        ctx.fail(str(error))
    dtype = {
        "floats": ir.DataType.FLOAT,
        "int64s": ir.DataType.INT64,
        "strings": ir.DataType.STRING,
    }.get(kind) or array_dtype(values)
    given = ctx.attributes.get("default_tensor")
    if given is not None and (np.size(given) != 1 or array_dtype(given) != dtype):
        ctx.fail(
            f"expected one {dtype} as default_tensor, which stands for keys that are missing, "
            f"got {array_dtype(given)}{list(np.shape(given))}"
        )
    return [TensorType(dtype, ctx.tensor(0).shape)]


def _categories(
    *,
    cats_int64s: Sequence[int] | None = None,
    cats_strings: Sequence[str] | None = None,
    default_int64: int = -1,
    default_string: str = "_Unused",
) -> Callable[[Array], Array]:
    pairs = list(zip(cats_int64s or (), cats_strings or (), strict=True))
    numbers = _look_up({s: i for i, s in pairs}, default_int64, np.int64)
    texts = _look_up(dict(pairs), default_string, object)
    return lambda x: numbers(x) if x.dtype == object else texts(x)


def _category_mapper(
    x: Array,
    *,
    cats_int64s: Sequence[int] | None = None,
    cats_strings: Sequence[str] | None = None,
    default_int64: int = -1,
    default_string: str = "_Unused",
) -> Array:
    return _categories(
        cats_int64s=cats_int64s,
        cats_strings=cats_strings,
        default_int64=default_int64,
        default_string=default_string,
    )(x)


def _infer_category_mapper(ctx: InferContext) -> Sequence[Any]:
    to_text = ctx.dtype(0) == ir.DataType.INT64
    dtype = ir.DataType.STRING if to_text else ir.DataType.INT64
    return [TensorType(dtype, ctx.tensor(0).shape)]


def _one_hot(
    *,
    cats_int64s: Sequence[int] | None = None,
    cats_strings: Sequence[str] | None = None,
    zeros: int = 1,
) -> Callable[[Array], Array]:
    categories: Sequence[Any] = cats_int64s or cats_strings or ()
    numbers: dict[Hashable, int] = {category: i for i, category in enumerate(categories)}
    look = _look_up(numbers, -1, np.int64)

    def encode(x: Array) -> Array:
        plain, module = x if x.dtype == object else x.astype(np.int64), texts()
        index = look(plain) if module is None else module.places(plain, numbers, -1)
        if not zeros and np.any(index < 0):
            raise ValueError(f"value {plain[index < 0].ravel()[0]!r} is none of the categories")
        width = len(categories)
        if module is not None:
            rows: Array = module.marked(index, width)
            return rows
        flat = index.ravel()
        found = np.zeros(flat.size * width, np.float32)
        known = flat >= 0
        found[(np.arange(flat.size) * width + flat)[known]] = 1
        return found.reshape(*index.shape, width)

    return encode


def _one_hot_encoder(
    x: Array,
    *,
    cats_int64s: Sequence[int] | None = None,
    cats_strings: Sequence[str] | None = None,
    zeros: int = 1,
) -> Array:
    return _one_hot(cats_int64s=cats_int64s, cats_strings=cats_strings, zeros=zeros)(x)


def _infer_one_hot(ctx: InferContext) -> Sequence[Any]:
    categories = ctx.attr("cats_int64s") or ctx.attr("cats_strings") or ()
    return [(*ctx.shape(0), len(categories))]


OPERATORS = (
    OpDef(
        "CategoryMapper", _infer_category_mapper, _category_mapper,
        domain=DOMAIN, ready=_categories, vjp=DISCRETE,
    ),
    OpDef(
        "LabelEncoder", _infer_label_encoder, _label_encoder,
        domain=DOMAIN, ready=_labels, vjp=DISCRETE,
    ),
    OpDef(
        "OneHotEncoder", _infer_one_hot, _one_hot_encoder,
        domain=DOMAIN, ready=_one_hot, vjp=DISCRETE,
    ),
)  # fmt: skip
