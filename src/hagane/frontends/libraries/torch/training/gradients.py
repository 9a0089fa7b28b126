"""``torch.autograd.Function``: functions whose gradients the program computes."""

from __future__ import annotations

from collections.abc import Sequence

from hagane.frontends.libraries.table import View
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.values import (
    MISSING,
    Class,
    Instance,
    Library,
    Tensor,
    Unknown,
    Value,
)

_CONTEXT = "torch.autograd.function.FunctionCtx"


@TORCH.layer("autograd.Function", "autograd.function.Function")
class Function:
    """The base class."""

    CLASS_METHODS = ("apply",)


@TORCH.layer("autograd.function.FunctionCtx", "autograd.function.NestedIOFunction")
class Context:
    """Values that a forward pass keeps for the backward pass."""

    @staticmethod
    def save_for_backward(t: Core, self: View, *tensors: Value) -> Value:
        """Keep tensors."""
        t.heap[self.instance()]["saved_tensors"] = tuple(tensors)
        return None

    save_for_forward = save_for_backward

    @staticmethod
    def mark_non_differentiable(t: Core, self: View, *tensors: Value) -> Value:
        """Note results without gradients."""
        return None

    mark_dirty = set_materialize_grads = mark_non_differentiable


@TORCH.function("autograd.Function.apply", "autograd.function.Function.apply")
def apply(t: Core, cls: Value, *arguments: Value) -> Value:
    """Return the result of the forward pass; the backward pass is followed for its types."""
    assert isinstance(cls, Class)
    if t.emit.training is not None:
        t.fail(
            "capture",
            f"{cls.name} (torch.autograd.Function) has a backward of its own, which a compiled "
            "step does not call",
            remedy="compute the result in a function; values may be detached, as in "
            "x + (y - x).detach() for y with the gradient of x",
        )
    given = [t.wrap(x) for x in arguments]
    needs = tuple(isinstance(x, Tensor) for x in given)
    content = {"needs_input_grad": needs, "saved_tensors": ()}
    ctx = Instance(t.heap.new(content), Library(_CONTEXT))
    if t.find_in_class(cls, "setup_context") is MISSING:
        result = t.call(t.attribute(cls, "forward"), [ctx, *given], {})
    else:
        result = t.call(t.attribute(cls, "forward"), given, {})
        t.call(t.attribute(cls, "setup_context"), [ctx, tuple(given), result], {})
    if not t.emit.builds and t.find_in_class(cls, "backward") is not MISSING:
        _check_backward(t, cls, ctx, given, t.settle(result))
    return result


def _check_backward(
    t: Core, cls: Class, ctx: Instance, given: Sequence[Value], result: Value
) -> None:
    """Follow the backward pass: one gradient an argument, each of its argument's shape."""
    outputs = result if type(result) is tuple else (result,)
    if any(isinstance(y, Unknown) for y in outputs):
        return
    gradients = [
        t.emit.new(y.dtype, y.shape, kind=y.kind, device=y.device)
        if isinstance(y, Tensor)
        else None
        for y in outputs
    ]
    found = t.settle(t.call(t.attribute(cls, "backward"), [ctx, *gradients], {}))
    if isinstance(found, Unknown):
        return
    made = found if type(found) is tuple else (found,)
    while len(made) > len(given) and made[-1] is None:
        made = made[:-1]
    if len(made) != len(given):
        t.fail(
            "value",
            f"{cls.name}.backward returns {len(made)} gradients for {len(given)} arguments of "
            "forward",
        )
    for place, (x, gradient) in enumerate(zip(given, made, strict=True)):
        if not isinstance(x, Tensor) or not isinstance(gradient, Tensor):
            continue
        if x.shape is None or gradient.shape is None:
            continue
        if len(x.shape) != len(gradient.shape) or any(map(t.emit.differ, x.shape, gradient.shape)):
            error = CheckError(
                "shape-mismatch",
                f"{cls.name}.backward: gradient {place} has to have the shape of argument {place} "
                f"of forward, got {t.show(gradient)} for {t.show(x)}",
                tensors=(x, gradient),
            )
            error.layer = cls.key  # one mistake, wherever the function is applied
            raise error


@TORCH.function("utils.checkpoint.checkpoint_sequential")
def checkpoint_sequential(
    t: Core, functions: Value, segments: Value, input: Value, use_reentrant: Value = None,
    **_: Value,
) -> Value:  # fmt: skip
    """Return what modules one after the other make of an input; a gradient computes anew."""
    del segments, use_reentrant
    if not isinstance(functions, list | tuple):  # a Sequential
        return t.call(functions, [input], {})
    for function in functions:
        input = t.call(function, [input], {})
    return input


@TORCH.function("autograd.Variable", "autograd.variable.Variable")
def variable(t: Core, data: Value, requires_grad: Value = False, volatile: Value = None) -> Value:
    """Return the tensor itself."""
    return data
