"""``torch.autograd.Function``: functions whose gradients the program computes."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from hagane.frontends.libraries.table import View
from hagane.frontends.libraries.torch.operands import cast, shape_of
from hagane.frontends.libraries.torch.recording import following_own, leave_open
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.memory import base_of, note_by_function
from hagane.frontends.python.values.objects import (
    Bound,
    Class,
    Instance,
    Wrapped,
)
from hagane.frontends.python.values.objects import Function as ProgramFunction
from hagane.frontends.python.values.values import (
    MISSING,
    Library,
    Tensor,
    Truth,
    Unknown,
    Value,
)
from hagane.ops.builder import interpreting
from hagane.ops.control.own_gradient import own_gradient
from hagane.ops.functions.tensors.shapes import unbroadcast, zeros_like

_CONTEXT = "torch.autograd.function.FunctionCtx"
_APART, _NONE, _DIRTY = "<no gradients>", "<None for zeros>", "<changed>"


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
        t.heap[self.instance()][_APART] = tuple(tensors)
        return None

    @staticmethod
    def set_materialize_grads(t: Core, self: View, value: Value) -> Value:
        """Note whether the backward pass takes None for zeros."""
        t.heap[self.instance()][_NONE] = value is not True
        return None

    @staticmethod
    def mark_dirty(t: Core, self: View, *tensors: Value) -> Value:
        """Note arguments that the forward pass changes."""
        if t.emit.training is not None:
            t.fail("capture", "mark_dirty: an argument that a torch.autograd.Function changes has "
                   "no gradient in a compiled step", remedy="return a new tensor")  # fmt: skip
        t.heap[self.instance()][_DIRTY] = tuple(tensors)
        return None


@TORCH.function("autograd.Function.apply", "autograd.function.Function.apply")
def apply(t: Core, cls: Value, *arguments: Value) -> Value:
    """Return the result of the forward pass; the backward pass is followed for its types."""
    assert isinstance(cls, Class)
    given = [t.wrap(x) for x in arguments]
    needs: tuple[Value, ...] = tuple(isinstance(x, Tensor) and _is_real(x) for x in given)
    asks = not t.emit.builds and _asks_for_needs(t.attribute(cls, "forward"))
    trains = t.emit.training is not None
    own = (trains or t.emit.own_backward) and not t.emit.still
    if t.emit.builds and not own and not trains:
        needs = (False,) * len(given)
    elif asks:  # what is computed from parameters needs one, and what is given none
        needs = tuple(need and Truth(t.unknown_truth()) for need in needs)
    ctx = Instance(t.heap.new({"needs_input_grad": needs, "saved_tensors": ()}), Library(_CONTEXT))
    t.emit.still |= own and trains  # as PyTorch records nothing of it
    try:
        with following_own(t):
            result = _forward(t, cls, ctx, given)
    finally:
        t.emit.still &= not (own and trains)
    leave_open(t, t.settle(result), given)
    has_backward = t.find_in_class(cls, "backward") is not MISSING
    if own and has_backward:
        return _with_backward(t, cls, ctx, given, t.settle(result))
    if t.emit.builds:
        t.emit.without_own |= has_backward and not trains and not t.emit.still
        return _with_own_memory(t, t.settle(result), given, t.heap[ctx].get(_DIRTY, ()))
    if asks:
        told = "asks which gradients are needed: its backward pass is not followed"
        t.collector.notice(t.here(), f"{cls.name}.forward {told}")
    if asks or cls.key in t.emit.backwards:  # one that applies its own function has no end
        return result
    if t.find_in_class(cls, "backward") is not MISSING:
        t.emit.backwards.add(cls.key)
        try:
            with following_own(t):
                _check_backward(t, cls, ctx, given, t.settle(result))
        finally:
            t.emit.backwards.discard(cls.key)
    return result


def _with_own_memory(
    t: Core, result: Value, given: Sequence[Value], dirty: Sequence[Value]
) -> Value:
    """Return results as tensors of their own, arguments that were changed as they are.

    A view of an argument has the argument's memory, and not its gradient.
    """
    if type(result) is tuple:
        return tuple(_with_own_memory(t, one, given, dirty) for one in result)
    if not isinstance(result, Tensor) or any(result is one for one in dirty):
        return result
    if base_of(result.value) is result.value and not any(result is one for one in given):
        return result
    made: Tensor = t.op("Identity", result)
    made = replace(made, kind=result.kind, strides=result.strides)
    note_by_function(made.value)
    return made


def _asks_for_needs(forward: Value) -> bool:
    """Whether a forward pass asks which gradients are needed."""
    function = forward.function if isinstance(forward, Wrapped | Bound) else forward
    node = function.node if isinstance(function, ProgramFunction) else None
    parts = [] if node is None else ast.walk(node)
    return any(isinstance(n, ast.Attribute) and n.attr == "needs_input_grad" for n in parts)


def _forward(t: Core, cls: Class, ctx: Instance, given: Sequence[Value]) -> Value:
    if t.find_in_class(cls, "setup_context") is MISSING:
        return t.call(t.attribute(cls, "forward"), [ctx, *given], {})
    result = t.call(t.attribute(cls, "forward"), given, {})
    t.call(t.attribute(cls, "setup_context"), [ctx, tuple(given), result], {})
    return result


def _with_backward(
    t: Core, cls: Class, ctx: Instance, given: Sequence[Value], result: Value
) -> Value:
    """Return the results of a forward pass with the gradients of the backward pass."""
    outputs = list(result) if type(result) is tuple else [result]
    places = [n for n, y in enumerate(outputs) if isinstance(y, Tensor) and _is_real(y)]
    apart = t.heap[ctx].get(_APART, ())
    places = [n for n in places if not any(outputs[n] is one for one in apart)]
    # Of one that is returned twice the last place counts, as the tensor is one.
    twice = {n: max(m for m in places if outputs[m] is outputs[n]) for n in places}
    places = [n for n in places if twice[n] == n]
    sources = [x for x in given if isinstance(x, Tensor) and _is_real(x)]
    if not places or not sources:
        return result
    if len(outputs) > 1 and t.heap[ctx].get(_NONE, False):
        t.fail("capture", f"{cls.name} has several results and set_materialize_grads(False): which "
               "gradients are None is not known", remedy="let it take zeros")  # fmt: skip
    missing: list[int] = []

    def backward(*gradients: Tensor) -> list[Tensor]:
        known = dict(zip(places, gradients, strict=True))
        passed = [
            known[n] if n in known else zeros_like(y) if isinstance(y, Tensor) else None
            for n, y in enumerate(outputs)
        ]
        found = t.settle(t.call(t.attribute(cls, "backward"), [ctx, *passed], {}))
        made = [*found] if type(found) in (tuple, list) else [found]
        if len(made) < len(given) or any(x is not None for x in made[len(given) :]):
            t.fail("value", f"{cls.name}.backward returns {len(made)} gradients for {len(given)} "
                   "arguments of forward")  # fmt: skip
        gone: list[Tensor] = []
        for x, gradient in zip(given, made, strict=False):
            if not isinstance(x, Tensor) or not _is_real(x):
                continue
            if isinstance(gradient, Unknown):
                t.fail("capture", f"{cls.name}.backward: {gradient.reason}")
            if gradient is None:
                missing.append(len(gone))
            gone.append(
                zeros_like(x)
                if gradient is None
                else fitted(t, f"{cls.name}.backward", gradient, x)
            )
        return gone

    with interpreting(t.emit):
        made = own_gradient([outputs[n] for n in places], sources, backward)
    node = t.emit.value_of(made[0]).producer()
    assert node is not None
    for place in reversed(missing):
        node.replace_input_with(len(places) + place, None)
        del node.attributes["backward"].as_graph().outputs[place]
    for place, y in zip(places, made, strict=True):
        for n, last in twice.items():
            outputs[n] = y if last == place else outputs[n]
    return tuple(outputs) if type(result) is tuple else outputs[0]


def _is_real(x: Tensor) -> bool:
    return bool(x.dtype.is_floating_point())


def fitted(t: Core, title: str, gradient: Value, x: Tensor) -> Tensor:
    """Return a gradient in the type of an argument, summed where that was repeated.

    Args:
        t: The interpreter.
        title: What the program computed it by, for errors.
        gradient: The gradient.
        x: The argument.
    """
    if not isinstance(gradient, Tensor):
        t.fail("type", f"{title}: expected a tensor or None, got {t.show(gradient)}")
    wide, narrow = shape_of(t, gradient), shape_of(t, x)
    pairs = zip(reversed(wide), reversed(narrow), strict=False)
    if len(wide) < len(narrow) or any(n != 1 and t.emit.differ(w, n) for w, n in pairs):
        t.fail("shape-mismatch", f"{title}: expected a gradient of the shape of "
               f"{t.show(x)}, got {t.show(gradient)}", x)  # fmt: skip
    return cast(t, unbroadcast(gradient, x), x.dtype)


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


@TORCH.function("utils.checkpoint.get_device_states")
def get_device_states(t: Core, *_: Value) -> Value:
    """Return the GPUs of some tensors and the states of their generators: of the CPU none."""
    return t.new_list(), t.new_list()


@TORCH.function("utils.checkpoint.set_device_states")
def set_device_states(t: Core, devices: Value, states: Value, **_: Value) -> None:
    """Set the states of generators."""


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
