"""Dropout of PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hagane.frontends.libraries.computing import computed
from hagane.frontends.libraries.torch.operands import (
    need_tensor,
    shape_of,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor, Value
from hagane.ops.functions.layers import drawing
from hagane.ops.functions.numbers.elementary import mul


def _check_probability(t: Core, p: Value) -> None:
    """Refuse a probability of dropout that is none."""
    if isinstance(p, int | float) and not 0 <= p <= 1:
        t.fail("value", f"expected a dropout probability between 0 and 1, got {p}")


def dropout_of_weights(t: Core, p: Value) -> Callable[[Tensor], Tensor] | None:
    """Return dropout as a function over the builder; None where nothing computes it."""
    _check_probability(t, p)
    if t.emit.training is None or not t.emit.builds or not isinstance(p, float | int):
        return None
    seed, number = t.emit.draw()
    return lambda weights: drawing.dropped(weights, float(p), seed, number)


def _dropout(
    names: Sequence[str], *, channels: bool = False, lone: int = 0, alpha: bool = False
) -> None:
    """Register a function that drops elements, or channels as a whole.

    Args:
        names: Its names.
        channels: Whether the elements of a channel are dropped together.
        lone: The rank of an input without a batch, whose channels lie in the first axis.
        alpha: Whether it keeps mean and variance, as ``alpha_dropout`` does.
    """

    def function(
        t: Core, input: Value, p: Value = 0.5, training: Value = not alpha,
        inplace: Value = False, *,
        train: Value = None,
    ) -> Tensor:  # fmt: skip
        x = need_tensor(t, input, "input")
        _check_probability(t, p)
        if not (training if train is None else train) or p == 0:
            return x  # the input itself, whose memory later operations in place write
        if p == 1:  # all of them, infinite ones become NaN
            return computed(t, (x.dtype, x.shape), lambda x: mul(x, 0), x)
        typed = t.emit.typed("Dropout", [x], x.dtype, x.shape)
        if t.emit.training is None or not t.emit.builds or not isinstance(p, float | int):
            return typed
        seed, number = t.emit.draw()
        rank = len(shape_of(t, x))
        axes = (1 if rank == lone else min(2, rank)) if channels else None
        dropped = drawing.alpha_dropped if alpha else drawing.dropped
        return computed(t, typed, lambda: dropped(x, float(p), seed, number, axes))

    TORCH.function(*names)(function)


_dropout(("dropout", "nn.functional.dropout"))
_dropout(("feature_dropout", "nn.functional.dropout2d"), channels=True)
_dropout(("nn.functional.dropout1d",), channels=True, lone=2)
_dropout(("nn.functional.dropout3d",), channels=True, lone=4)
_dropout(("alpha_dropout", "nn.functional.alpha_dropout"), alpha=True)
_dropout(
    ("feature_alpha_dropout", "nn.functional.feature_alpha_dropout"), channels=True, alpha=True
)
