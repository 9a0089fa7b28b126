"""Gradients scaled to a norm, over the builder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hagane.errors import InvalidArgument
from hagane.ops.builder import dtype_of, op
from hagane.ops.functions.numbers.elementary import add, cast, div, mul, sqrt

# PyTorch adds so much to the norm before it divides by it.
_EPSILON = 1e-6


def clip_by_norm(most: float) -> Callable[[Mapping[str, tuple[Any, Any]]], dict[str, Any]]:
    """Return a function of parameters and gradients by name that scales the gradients.

    Args:
        most: The Euclidean norm of all gradients together that they keep to.

    Raises:
        InvalidArgument: It is no positive number.
    """
    if isinstance(most, bool) or not isinstance(most, int | float) or not 0 < most < float("inf"):
        raise InvalidArgument(f"max_norm: expected a positive number, got {most!r}")

    def clip(pairs: Mapping[str, tuple[Any, Any]]) -> dict[str, Any]:
        parts = [op("ReduceSumSquare", g, keepdims=0) for _, g in pairs.values()]
        kind = dtype_of(parts[0])
        norm = sqrt(add(*(cast(part, kind) for part in parts)))
        low, one = (np.array(number, kind.numpy()) for number in (_EPSILON, 1))
        rate = op("Min", div(np.array(most, kind.numpy()), add(norm, low)), one)
        return {name: mul(g, cast(rate, dtype_of(g))) for name, (_, g) in pairs.items()}

    return clip
