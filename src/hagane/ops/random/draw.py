"""RandomNormal, RandomUniform, their Like forms, Bernoulli, Multinomial.

With the attribute ``seed`` a node draws the same numbers in every run; without, the numbers come
from the operating system's entropy, or from the generator of ``seed_open``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.graph.types import TensorType
from hagane.machine import Lock
from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.traits import Trait
from hagane.ops.values import array_dtype
from hagane.ops.vjp import CONSTANT, DISCRETE, DRAWN, flat

_lock = Lock()
_open: list[np.random.Generator] = []  # that of the process, if it was seeded


def seed_open(seed: int) -> None:
    """Let nodes without a seed draw from one generator of the process, begun at ``seed``."""
    with _lock:
        _open[:] = [np.random.default_rng(seed % 2**64)]


def open_seed() -> int | None:
    """Return the seed of a draw whose node has none; None for the system's entropy."""
    with _lock:
        return int(_open[0].integers(2**32)) if _open else None


def _generator(seed: float | None) -> np.random.Generator:
    # Seeds are floats in ONNX; their bit pattern makes any of them an integer.
    given = open_seed() if seed is None else int(np.float64(seed).view(np.uint64))
    return np.random.default_rng(given)


def _normal(
    *,
    shape: Sequence[int],
    dtype: int = 1,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
) -> Array:
    values = _generator(seed).normal(mean, scale, tuple(shape))
    return np.asarray(values).astype(ir.DataType(dtype).numpy())


def _uniform(
    *,
    shape: Sequence[int],
    dtype: int = 1,
    high: float = 1.0,
    low: float = 0.0,
    seed: float | None = None,
) -> Array:
    values = _generator(seed).uniform(low, high, tuple(shape))
    return np.asarray(values).astype(ir.DataType(dtype).numpy())


def _normal_like(
    x: Array,
    *,
    dtype: int | None = None,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
) -> Array:
    return _normal(shape=x.shape, dtype=dtype or array_dtype(x), mean=mean, scale=scale, seed=seed)


def _uniform_like(
    x: Array,
    *,
    dtype: int | None = None,
    high: float = 1.0,
    low: float = 0.0,
    seed: float | None = None,
) -> Array:
    return _uniform(shape=x.shape, dtype=dtype or array_dtype(x), high=high, low=low, seed=seed)


def _bernoulli(x: Array, *, dtype: int | None = None, seed: float | None = None) -> Array:
    drawn = _generator(seed).uniform(size=x.shape) < x.astype(np.float64)
    return drawn.astype(x.dtype if dtype is None else ir.DataType(dtype).numpy())


def _multinomial(
    x: Array, *, dtype: int = 6, sample_size: int = 1, seed: float | None = None
) -> Array:
    """Draw class indices from unnormalised log-probabilities, by the Gumbel-max trick."""
    noise = _generator(seed).gumbel(size=(x.shape[0], sample_size, x.shape[1]))
    drawn = (x.astype(np.float64)[:, None] + noise).argmax(axis=2)
    return drawn.astype(ir.DataType(dtype).numpy())


def _infer_shaped(ctx: InferContext) -> Sequence[Any]:
    return [TensorType(ir.DataType(ctx.attr("dtype")), tuple(ctx.attr("shape")))]


def _infer_like(ctx: InferContext) -> Sequence[Any]:
    given = ctx.attr("dtype")
    dtype = ir.DataType(given) if given else ctx.dtype(0)
    return [TensorType(dtype, ctx.tensor(0).shape)]


def _infer_multinomial(ctx: InferContext) -> Sequence[Any]:
    batch, _ = ctx.shape(0, rank=2)
    return [TensorType(ir.DataType(ctx.attr("dtype")), (batch, ctx.attr("sample_size")))]


OPERATORS = (
    OpDef("Bernoulli", _infer_like, _bernoulli, traits=Trait.RANDOM, vjp=DRAWN),
    OpDef("Multinomial", _infer_multinomial, _multinomial, traits=Trait.RANDOM, vjp=DISCRETE),
    OpDef("RandomNormal", _infer_shaped, _normal, traits=Trait.RANDOM, vjp=CONSTANT),
    OpDef("RandomNormalLike", _infer_like, _normal_like, traits=Trait.RANDOM, vjp=flat),
    OpDef("RandomUniform", _infer_shaped, _uniform, traits=Trait.RANDOM, vjp=CONSTANT),
    OpDef("RandomUniformLike", _infer_like, _uniform_like, traits=Trait.RANDOM, vjp=flat),
)
