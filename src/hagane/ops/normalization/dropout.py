"""Dropout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.errors import NotDifferentiable
from hagane.ops.builder import Call, content_of, dtype_of
from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.functions.numbers.elementary import cast, div, mask_like, mul, sub, where
from hagane.ops.precision import widened
from hagane.ops.traits import Trait


@widened
def _dropout(
    x: Array,
    ratio: Array | None = None,
    training_mode: Array | None = None,
    *,
    seed: int | None = None,
    n_outputs: int = 1,
) -> tuple[Array, ...]:
    rate = 0.5 if ratio is None else float(np.asarray(ratio).ravel()[0])
    training = training_mode is not None and bool(np.asarray(training_mode).ravel()[0])
    if not training or rate == 0:
        return (x, np.ones(x.shape, dtype=np.bool_))[:n_outputs]
    from hagane.ops.random.draw import open_seed  # a session without random operators needs none

    # ONNX's own reference draws from this generator, so that seeded results agree.
    drawn = open_seed() if seed is None else seed
    keep = np.random.RandomState(drawn).uniform(size=x.shape) >= rate
    return ((x * keep / (1 - rate)).astype(x.dtype), keep)[:n_outputs]


def _infer_dropout(ctx: InferContext) -> Sequence[Any]:
    return [ctx.shape(0)] * ctx.n_outputs


def _dropout_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    x, ratio, training = (*call.inputs, None, None)[:3]
    rest = [None] * (len(call.inputs) - 1)
    known = False if training is None else content_of(training)
    if known is not None and not np.any(known):
        return [gradients[0], *rest]
    if len(call.outputs) < 2:
        raise NotDifferentiable(
            "Dropout has no gradient without its mask, which cannot be drawn again: ask for both "
            "outputs"
        )
    kept = sub(1, 0.5 if ratio is None else cast(ratio, dtype_of(x)))
    factor = div(mask_like(call.outputs[1], x), cast(kept, dtype_of(x)))
    if known is None:
        factor = where(training, factor, 1)
    return [mul(gradients[0], factor), *rest]


OPERATORS = (OpDef("Dropout", _infer_dropout, _dropout, traits=Trait.RANDOM, vjp=_dropout_vjp),)
