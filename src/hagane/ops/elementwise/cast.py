"""Conversions between element types: Cast, CastLike, BitCast."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir

from hagane.graph.types import TensorType, Type
from hagane.ops.builder import Call, dtype_of
from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef, Unsupported
from hagane.ops.functions.numbers.elementary import cast
from hagane.ops.rules import exact
from hagane.ops.traits import Trait
from hagane.ops.values import array_dtype, strings, texts
from hagane.symbolic import Expr, floor

# Float8 formats overflow to their largest finite value when a conversion saturates.
_SATURATING = frozenset(
    {
        ir.DataType.FLOAT8E4M3FN,
        ir.DataType.FLOAT8E4M3FNUZ,
        ir.DataType.FLOAT8E5M2,
        ir.DataType.FLOAT8E5M2FNUZ,
    }
)


# Element types between which NumPy converts as ONNX does.
_PLAIN = frozenset(map(np.dtype, "?bBhHiIlLqQefd"))
# Element types that are written as texts in C.
_IN_C = frozenset(map(np.dtype, (np.int64, np.float32, np.float64)))


def convert(x: Array, to: ir.DataType, *, saturate: bool = True, round_mode: str = "up") -> Array:
    """Return ``x`` with element type ``to``, by the rules of ONNX's Cast."""
    source = array_dtype(x)
    if to == ir.DataType.STRING:
        return _to_strings(x)
    if source == ir.DataType.STRING:
        return _reading(to)(x)
    if to in _SATURATING and saturate:
        return _saturated(x, np.dtype(to.numpy()))
    if to == ir.DataType.FLOAT8E8M0:
        return _to_scale(x, saturate, round_mode)
    target = np.dtype(to.numpy())
    if to == ir.DataType.BOOL:
        return np.asarray(x.astype(np.float32) if x.dtype.kind == "V" else x).astype(np.bool_)
    if source.is_integer() and source.itemsize < 1:
        x = x.astype(np.int8)
    if x.dtype.kind not in "iubfc" and to.is_integer():
        x = x.astype(np.float32)
    if to.is_integer() and to.itemsize < 1:
        return _wrapped(x if x.dtype.kind in "iub" else x.astype(np.int32), to)
    if to == ir.DataType.UINT32 and x.dtype.kind not in "iub":
        return _to_uint32(x.astype(np.float64))
    return x.astype(target)


def _to_uint32(x: Array) -> Array:
    """Return whole numbers, also of numbers beyond: NumPy's depend on the element's place."""
    kept = np.where(np.abs(x) < 2.0**32, x, 0).astype(np.int64)
    return np.where(x >= -(2.0**31), kept, 1 << 31).astype(np.uint32)


def _wrapped(x: Array, to: ir.DataType) -> Array:
    """Keep the low bits of whole numbers, as conversions between integers do."""
    bits = int(to.itemsize * 8)
    low = x.astype(np.int64) & ((1 << bits) - 1)
    if to.name.startswith("INT"):
        low = np.where(low >= 1 << (bits - 1), low - (1 << bits), low)
    return low.astype(np.int8).astype(to.numpy())


def _to_strings(x: Array) -> Array:
    if array_dtype(x) == ir.DataType.STRING:
        return x
    module = texts()
    if module is not None:
        wide = x.astype(np.int64) if x.dtype.kind in "bi" and x.dtype != np.int64 else x
        if wide.dtype in _IN_C:
            made: Array = module.from_numbers(wide, _of_float)
            return made
    if x.dtype.kind == "f" or x.dtype.kind == "V":
        items = [_of_float(v) for v in x.ravel()]
    elif x.dtype == np.bool_:
        items = [str(int(v)) for v in x.ravel()]
    else:
        items = [str(v) for v in x.ravel()]
    return strings(items).reshape(x.shape)


def _of_float(value: Any) -> str:
    if np.isfinite(value):
        return np.format_float_positional(value, trim="-")
    return _special(float(value))


def _special(value: float) -> str:
    return "NaN" if value != value else "INF" if value > 0 else "-INF"


def _reading(to: ir.DataType) -> Callable[[Array], Array]:
    """Return a function from texts to numbers."""
    dtype, whole = np.dtype(to.numpy()), to.is_integer()

    def read(x: Array) -> Array:
        module = texts()
        try:
            if module is not None and x.dtype == object:
                found: Array | None = module.to_numbers(x, whole)
                if found is not None:
                    return found.astype(dtype, copy=False)
            numbers: list[float] = [_whole(s) if whole else float(s) for s in x.ravel()]
        except ValueError as error:
            raise ValueError(f"cannot read a number: {error}") from None
        wide = np.int64 if whole else np.float64
        return np.asarray(numbers, dtype=wide).reshape(x.shape).astype(dtype)

    return read


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return int(float(text))


def _saturated(x: Array, target: np.dtype[np.generic]) -> Array:
    limit = float(ml_dtypes.finfo(target).max)
    wide = x.astype(np.float32)
    clipped = np.where(np.isnan(wide), wide, np.clip(wide, -limit, limit))
    return clipped.astype(target)


def _to_scale(x: Array, saturate: bool, round_mode: str) -> Array:
    """Return powers of two (E8M0, OCP Microscaling 1.0): eight exponent bits, no sign."""
    mantissa, exponent = np.frexp(x.astype(np.float32))
    power = exponent - 1  # x = (2 * mantissa) * 2**power with 1 <= 2 * mantissa < 2
    fraction = 2 * mantissa - 1
    if round_mode == "up":
        power = power + (fraction > 0)
    elif round_mode == "nearest":
        power = power + (fraction >= 0.5)
    biased = power + 127
    too_large, too_small = biased > 254, biased < 0
    biased = np.clip(biased, 0, 254)
    if not saturate:
        biased = np.where(too_large | too_small, 255, biased)
    biased = np.where(np.isinf(x), 254 if saturate else 255, biased)
    biased = np.where(x == 0, 0, biased)
    biased = np.where(np.isnan(x), 255, biased)
    return biased.astype(np.uint8).view(ml_dtypes.float8_e8m0fnu)


def _cast(x: Array, *, to: int, saturate: int = 1, round_mode: str = "up") -> Array:
    return convert(x, ir.DataType(to), saturate=bool(saturate), round_mode=round_mode)


@cache
def _casting(*, to: int, saturate: int = 1, round_mode: str = "up") -> Callable[[Array], Array]:
    target, saturates = ir.DataType(to), bool(saturate)
    if target == ir.DataType.STRING:
        return _to_strings
    read, dtype = _reading(target), np.dtype(target.numpy())
    plain = _PLAIN if dtype in _PLAIN and target != ir.DataType.UINT32 else frozenset()

    def kernel(x: Array) -> Array:
        if x.dtype in plain:
            return x.astype(dtype)
        if x.dtype == object:
            return read(x)
        return convert(x, target, saturate=saturates, round_mode=round_mode)

    return kernel


def _cast_like(x: Array, like: Array, *, saturate: int = 1, round_mode: str = "up") -> Array:
    return convert(x, array_dtype(like), saturate=bool(saturate), round_mode=round_mode)


def _target(ctx: InferContext) -> ir.DataType:
    number = ctx.attr("to")
    if number not in {each.value for each in ir.DataType} - {ir.DataType.UNDEFINED.value}:
        ctx.fail(f"to={number} is no element type of ONNX")
    return ir.DataType(number)


def _shape(ctx: InferContext) -> tuple[object, ...] | None:
    return ctx.tensor(0).shape if ctx.has(0) else None


def _infer_cast(ctx: InferContext) -> Sequence[Type]:
    return [TensorType(_target(ctx), _shape(ctx))]  # type: ignore[arg-type]


def _infer_cast_like(ctx: InferContext) -> Sequence[Type]:
    return [TensorType(ctx.dtype(1), _shape(ctx))]  # type: ignore[arg-type]


def _data(ctx: InferContext) -> Sequence[Array | None]:
    value = ctx.data(0)
    if value is None:
        return [None]
    to = _target(ctx) if ctx.op.name == "Cast" else ctx.dtype(1)
    if to.is_floating_point():
        return [exact(value)]
    if not to.is_integer():
        return [None]
    result = np.empty(value.shape, dtype=object)
    # Casting to an integer drops the fraction; sizes are not negative, so that is a floor.
    result.ravel()[:] = [
        floor(item) if isinstance(item, Expr) else int(item) for item in exact(value).ravel()
    ]
    if to not in (ir.DataType.INT32, ir.DataType.INT64):
        # Numbers out of range are wrapped, which a formula of sizes does not say.
        low, high = (int(to.min), int(to.max))
        if not all(isinstance(item, int) and low <= item <= high for item in result.ravel()):
            return [None]
    return [result]


def _bit_cast(x: Array, *, to: int) -> Array:
    dtype = ir.DataType(to)
    if dtype.itemsize < 1:
        return x.view(np.uint8).view(dtype.numpy())
    return np.ascontiguousarray(x).view(dtype.numpy()).reshape(x.shape)


def _infer_bit_cast(ctx: InferContext) -> Sequence[Type]:
    source, target = ctx.dtype(0), _target(ctx)
    if source.itemsize != target.itemsize:
        ctx.fail(
            f"expected element types of one width, got {ctx.inputs_text()} "
            f"({source.itemsize * 8:g} bits) to {target.itemsize * 8:g} bits"
        )
    return [TensorType(target, _shape(ctx))]  # type: ignore[arg-type]


def _cast_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    x, *rest = call.inputs
    # Integers and truth values have no gradient.
    own = (lambda: cast(gradients[0], dtype_of(x))) if dtype_of(x).is_floating_point() else None
    return [own, *(None for _ in rest)]


OPERATORS = (
    OpDef(
        "BitCast",
        _infer_bit_cast,
        _bit_cast,
        vjp=Unsupported("it reads bits as another type, which is not continuous"),
    ),
    OpDef(
        "Cast",
        _infer_cast,
        _cast,
        data=_data,
        ready=_casting,
        vjp=_cast_vjp,
        traits=Trait.ELEMENTWISE | Trait.FREE,
    ),
    OpDef(
        "CastLike",
        _infer_cast_like,
        _cast_like,
        data=_data,
        vjp=_cast_vjp,
        traits=Trait.ELEMENTWISE | Trait.FREE,
    ),
)
