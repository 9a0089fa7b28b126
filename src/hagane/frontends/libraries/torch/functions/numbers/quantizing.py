"""Numbers rounded to those that few bits have, with gradients that pass over the rounding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hagane.frontends.libraries.computing import computed
from hagane.frontends.libraries.torch.operands import (
    cast,
    need_float,
    need_tensor,
    own_axis,
    reshape,
    shape_of,
    to_tensor,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor, Value
from hagane.ops.builder import interpreting, op
from hagane.ops.control.own_gradient import own_gradient
from hagane.ops.functions.numbers.activations import number_like
from hagane.ops.functions.numbers.elementary import add, div, mul, sub, where


@TORCH.function("fake_quantize_per_tensor_affine")
def fake_quantize_per_tensor_affine(
    t: Core, input: Value, scale: Value, zero_point: Value, quant_min: Value, quant_max: Value
) -> Tensor:
    """Return the numbers that steps of one size from one zero have nearest to those of a tensor."""
    x = need_tensor(t, input, "input")
    need_float(t, x, "input")
    step, zero = (
        _number(t, cast(t, to_tensor(t, value), x.dtype), name)
        for value, name in ((scale, "scale"), (zero_point, "zero_point"))
    )
    return _quantized(t, x, step, zero, quant_min, quant_max)


@TORCH.function("fake_quantize_per_channel_affine")
def fake_quantize_per_channel_affine(
    t: Core, input: Value, scale: Value, zero_point: Value, axis: Value, quant_min: Value,
    quant_max: Value,
) -> Tensor:  # fmt: skip
    """Return the same where each index of an axis has a step and a zero of its own."""
    x = need_tensor(t, input, "input")
    need_float(t, x, "input")
    shape = shape_of(t, x)
    place = own_axis(t, axis, x)
    parts = []
    for value, name in ((scale, "scale"), (zero_point, "zero_point")):
        part = need_tensor(t, value, name)
        (size,) = shape_of(t, part, 1, name)
        if t.emit.differ(size, shape[place]):
            t.fail("shape-mismatch", f"expected a {name} for each index of axis {place} of "
                   f"{t.show(x)}, got {t.show(part)}", x, part)  # fmt: skip
        dims = [1] * len(shape)
        parts.append(reshape(t, cast(t, part, x.dtype), [*dims[:place], -1, *dims[place + 1 :]]))
    return _quantized(t, x, parts[0], parts[1], quant_min, quant_max)


def _number(t: Core, x: Tensor, name: str) -> Tensor:
    """Return a tensor of one element without axes."""
    shape: Sequence[Any] = shape_of(t, x)
    if any(size != 1 for size in shape):
        t.fail("shape-mismatch", f"expected '{name}' to be one number, got {t.show(x)}", x)
    return reshape(t, x, []) if shape else x


def _quantized(t: Core, x: Tensor, step: Tensor, zero: Tensor, low: Value, high: Value) -> Tensor:
    made = computed(t, x, _rounded, x, step, zero, low, high)
    if t.emit.still or not t.emit.builds:
        return made
    if t.emit.training is None and not t.emit.own_backward:
        t.emit.without_own = True
        return made

    def backward(gradient: Tensor) -> list[Tensor]:
        return [computed(t, x, _passed, gradient, x, step, zero, low, high)]

    with interpreting(t.emit):
        (result,) = own_gradient([made], [x], backward)
    return result.seen_as(x.kind)


def _places(x: Any, step: Any, zero: Any) -> Any:
    """Return how many steps numbers are from the least that there is, as rounded."""
    return add(op("Round", mul(x, div(number_like(1, x), step))), zero)


def _rounded(x: Any, step: Any, zero: Any, low: Any, high: Any) -> Any:
    kept = op("Clip", _places(x, step, zero), number_like(low, x), number_like(high, x))
    return mul(sub(kept, zero), step)


def _passed(g: Any, x: Any, step: Any, zero: Any, low: Any, high: Any) -> Any:
    """Return the gradient of numbers within the range; of those beyond it there is none."""
    places = _places(x, step, zero)
    above = op("GreaterOrEqual", places, number_like(low, x))
    below = op("LessOrEqual", places, number_like(high, x))
    return where(op("And", above, below), g, number_like(0, g))
