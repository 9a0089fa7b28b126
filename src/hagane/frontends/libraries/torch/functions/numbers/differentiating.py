"""Derivatives: ``torch.autograd``."""

from __future__ import annotations

from hagane.frontends.libraries.torch.operands import need_tensor, shape_of
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor, Value


@TORCH.function("autograd.grad")
def grad(
    t: Core, outputs: Value, inputs: Value, grad_outputs: Value = None, *_: Value, **__: Value
) -> Value:
    """Return one gradient an input, each of its input's type."""
    sources = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
    if grad_outputs is None:
        for y in sources:
            shape = shape_of(t, need_tensor(t, y, "outputs"))
            if any(t.emit.differ(size, 1) for size in shape):
                t.fail(
                    "shape-mismatch",
                    f"grad can be implicitly created only for one number, got {t.show(y)}",
                    y,
                    remedy="sum it first, or pass grad_outputs",
                )
    weights = [grad_outputs] if isinstance(grad_outputs, Tensor) else grad_outputs or []
    for y, weight in zip(sources, weights, strict=False):
        if isinstance(y, Tensor) and isinstance(weight, Tensor):
            own, other = shape_of(t, y), shape_of(t, weight)
            if len(own) != len(other) or any(map(t.emit.differ, own, other)):
                t.fail(
                    "shape-mismatch",
                    f"expected grad_outputs of the shape of the outputs, {t.show(y)}, got "
                    f"{t.show(weight)}",
                    y,
                    weight,
                )
    given = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
    tensors = [need_tensor(t, x, "inputs") for x in given]
    return tuple(t.emit.typed("Gradient", [x], x.dtype, x.shape) for x in tensors)


@TORCH.method("backward")
def backward(t: Core, self: Value, gradient: Value = None, *_: Value, **__: Value) -> Value:
    """Compute gradients; their origin is one number, or comes with a gradient."""
    if not isinstance(gradient, Tensor):
        for size in shape_of(t, self):
            if t.emit.differ(size, 1):
                t.fail(
                    "shape-mismatch",
                    f"backward() starts from one number, got {t.show(self)}",
                    self,
                    remedy="reduce it first with .mean() or .sum()",
                )
    return None
