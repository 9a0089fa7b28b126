"""Derivatives: ``torch.autograd``."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from hagane.frontends.libraries.torch.operands import need_tensor, shape_of
from hagane.frontends.libraries.torch.recording import differentiate
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor, Value
from hagane.ops.builder import interpreting, op
from hagane.ops.functions.numbers.elementary import cast


@TORCH.function("autograd.grad")
def grad(
    t: Core, outputs: Value, inputs: Value, grad_outputs: Value = None,
    retain_graph: Value = None, create_graph: Value = False, only_inputs: Value = True,
    allow_unused: Value = None, is_grads_batched: Value = False, materialize_grads: Value = False,
) -> Value:  # fmt: skip
    """Return one gradient an input, each of its input's type."""
    sources = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
    weights = [grad_outputs] if isinstance(grad_outputs, Tensor) else list(grad_outputs or [])
    weights += [None] * (len(sources) - len(weights))
    for y, weight in zip(sources, weights, strict=False):
        shape = shape_of(t, need_tensor(t, y, "outputs"))
        if weight is None:
            if any(t.emit.differ(size, 1) for size in shape):
                t.fail(
                    "shape-mismatch",
                    f"grad can be implicitly created only for one number, got {t.show(y)}",
                    y,
                    remedy="sum it first, or pass grad_outputs",
                )
        elif isinstance(weight, Tensor):
            other = shape_of(t, weight)
            if len(shape) != len(other) or any(map(t.emit.differ, shape, other)):
                t.fail(
                    "shape-mismatch",
                    f"expected grad_outputs of the shape of the outputs, {t.show(y)}, got "
                    f"{t.show(weight)}",
                    y,
                    weight,
                )
    given = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
    tensors = [need_tensor(t, x, "inputs") for x in given]
    if not t.emit.builds:
        return tuple(t.emit.typed("Gradient", [x], x.dtype, x.shape) for x in tensors)
    if is_grads_batched is not False:
        t.fail("capture", "is_grads_batched is not captured: ask for each gradient")
    if t.emit.without_own:
        t.emit.lacks_own = True
        t.fail("capture", "autograd.grad: gradients of a torch.autograd.Function by its backward")
    with interpreting(t.emit):
        ones = [
            op("ConstantOfShape", op("Shape", y), value=ir.tensor(np.ones(1, y.dtype.numpy())))
            if weight is None
            else cast(weight, y.dtype)
            for y, weight in zip(sources, weights, strict=True)
        ]
    found = t.emit.gradients(sources, ones, tensors)
    made: list[Value] = []
    for number, (x, gradient) in enumerate(zip(tensors, found, strict=True)):
        if gradient is None and materialize_grads:
            with interpreting(t.emit):
                made.append(op("Mul", x, np.zeros((), x.dtype.numpy())))
        elif gradient is None and not allow_unused:
            t.fail("value", f"no output depends on input {number}, {t.show(x)}: pass "
                   "allow_unused=True, which gives None", x)  # fmt: skip
        else:
            # Without a graph of its own it is a number that is not differentiated again.
            apart = None if gradient is None or create_graph is True else t.emit.stopped(gradient)
            made.append(gradient if apart is None else apart)
    return tuple(made)


@TORCH.method("backward")
def backward(
    t: Core, self: Value, gradient: Value = None, retain_graph: Value = None,
    create_graph: Value = False, inputs: Value = None,
) -> Value:  # fmt: skip
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
    keep = retain_graph is not False and (retain_graph is not None or create_graph is not False)
    differentiate(t, self, keep)
    return None
