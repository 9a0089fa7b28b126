"""The scale of a loss whose gradients pass through float16, and whether they fit there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.errors import InvalidArgument
from hagane.ops.builder import dtype_of, op
from hagane.ops.definition import Array
from hagane.ops.functions.numbers.elementary import cast, mul

# Names of an input and an output of a step's graph.
SCALE = "scaling.loss"
FINITE = "gradients.finite"
_MOST = float(np.finfo(np.float32).max)


@dataclass(frozen=True, slots=True)
class Scale:
    """The factor of a loss, and its course: that of PyTorch's ``GradScaler``, with its defaults.

    Attributes:
        factor: By which the loss is multiplied before gradients, which are divided by it.
        grown: Updates since it changed last.
        growth: Its change after ``interval`` updates in a row without an overflow.
        backoff: Its change after an overflow.
        interval: See ``growth``.
        skipped: Updates that were left out because of an overflow.
    """

    factor: float = 65536.0
    grown: int = 0
    growth: float = 2.0
    backoff: float = 0.5
    interval: int = 2000
    skipped: int = 0

    def after(self, *, finite: bool) -> Scale:
        """Return the scale of the next update.

        Args:
            finite: Whether all gradients were.
        """
        if not finite:
            factor = self.factor * self.backoff
            return replace(self, factor=factor, grown=0, skipped=self.skipped + 1)
        if self.grown + 1 < self.interval:
            return replace(self, grown=self.grown + 1)
        # (A factor beyond float32 would make every gradient infinite.)
        factor = self.factor * self.growth
        return replace(self, factor=factor if factor <= _MOST else self.factor, grown=0)

    def as_dict(self) -> dict[str, float | int]:
        """Return the numbers by name."""
        return {name: getattr(self, name) for name in Scale.__slots__}

    @staticmethod
    def of(numbers: Mapping[str, Any]) -> Scale:
        """Return a scale of its numbers by name.

        Raises:
            InvalidArgument: A number is unknown, lacks or is not positive.
        """
        known = set(Scale.__slots__)
        if set(numbers) != known:
            raise InvalidArgument(
                f"loss scale: expected {', '.join(sorted(known))}, got {', '.join(sorted(numbers))}"
            )
        if not all(0 <= float(numbers[name]) < float("inf") for name in known) or not all(
            numbers[name] for name in ("factor", "growth", "backoff", "interval")
        ):
            raise InvalidArgument(f"loss scale: expected positive numbers, got {dict(numbers)}")
        return Scale(**numbers)


def unscaled(gradients: Mapping[str, Any], scale: Any) -> dict[str, Any]:
    """Return gradients divided by the scale of the loss, over the builder."""
    shares = op("Reciprocal", scale)
    return {name: mul(g, cast(shares, dtype_of(g))) for name, g in gradients.items()}


def all_finite(gradients: Sequence[Any]) -> Any:
    """Return whether all elements are finite, one truth value, over the builder.

    A sum of products with zero is zero only if no factor is infinite or no number.
    """
    zeros = [
        cast(
            op("ReduceSum", mul(g, np.array(0, dtype_of(g).numpy())), keepdims=0),
            ir.DataType.FLOAT,
        )
        for g in gradients
    ]
    return op("Equal", op("Sum", *zeros), np.array(0, np.float32))


class LossScaling:
    """The scale of a step's loss through its calls.

    Args:
        used: Whether the step scales its loss at all.
    """

    def __init__(self, *, used: bool):
        self._scale = Scale() if used else None

    @property
    def now(self) -> Scale | None:
        """The scale of the next call; None if the step has none."""
        return self._scale

    def feed(self) -> dict[str, Array]:
        """Return the input of a call by name."""
        return {} if self._scale is None else {SCALE: np.array(self._scale.factor, np.float32)}

    def advance(self, results: dict[str, Array]) -> bool:
        """Take the outcome of a call out of its outputs, and return whether to update.

        Args:
            results: By name; the call of a sum of gradients that does not end it has no outcome.
        """
        outcome = results.pop(FINITE, None)
        if self._scale is None or outcome is None:
            return True
        finite = bool(outcome)
        self._scale = self._scale.after(finite=finite)
        return finite

    def set(self, numbers: Mapping[str, Any]) -> None:
        """Go on from a scale by its numbers.

        Raises:
            InvalidArgument: The step has no scale, or they are no numbers of one.
        """
        if self._scale is None:
            raise InvalidArgument("loss scale: the step has none: its precision is not 'fp16'")
        self._scale = Scale.of(numbers)


__all__ = ["FINITE", "SCALE", "LossScaling", "Scale", "all_finite", "unscaled"]
