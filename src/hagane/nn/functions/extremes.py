"""The largest and the smallest element over axes, and of two arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.nn.autograd.configuration import read
from hagane.nn.autograd.function_node import FunctionNode
from hagane.nn.autograd.variable import Variable
from hagane.nn.autograd.way_back import DESCRIBED
from hagane.nn.eager.dispatch import NATIVE
from hagane.nn.functions.applying import constant_like
from hagane.ops.builder import Call, op
from hagane.ops.registry import operators


def extreme(name: str, x: Any, axes: Sequence[int] | None, keepdims: bool) -> Any:
    """Return ``ReduceMax`` or ``ReduceMin`` over axes, all of them if None.

    Each of several elements that reach the extreme gets its whole gradient, as in Chainer; the
    operators of graphs share it among them.
    """
    if axes is not None and not axes:
        return op("Identity", x)
    given = None if axes is None else np.array(axes, np.int64)
    if not isinstance(x, Variable):
        return op(name, x, given, keepdims=int(keepdims))
    places = tuple(range(x.ndim)) if axes is None else tuple(axes)
    return Extreme(name, places, keepdims).apply((x,))[0]


def reached(x: Any, *, name: str, axes: tuple[int, ...], keepdims: bool) -> Any:
    """Return the sum of the elements that reach an extreme: its gradient is that of each."""
    over = np.array(axes, np.int64)
    there = op("Equal", x, op(name, x, over, keepdims=1))
    kept = op("Where", there, x, constant_like(0, x))
    return op("ReduceSum", kept, over, keepdims=int(keepdims))


class Extreme(FunctionNode):
    """The largest or smallest element over axes.

    Args:
        name: ``ReduceMax`` or ``ReduceMin``.
        axes: Non-negative.
        keepdims: Whether they stay, with one element each.
    """

    def __init__(self, name: str, axes: tuple[int, ...], keepdims: bool):
        self._name, self.axes, self.keepdims = name, axes, keepdims

    @property
    def label(self) -> str:
        """The name for messages and drawings."""
        return self._name.removeprefix("Reduce").lower()

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the extreme."""
        self.retain_inputs((0,))
        self.retain_outputs((0,))
        operands = inputs[0], np.array(self.axes, np.int64)
        call = Call(operators()["", self._name], operands, {"keepdims": int(self.keepdims)})
        return (np.asarray(NATIVE.apply(call, 1)[0]),)

    def operators(self, *inputs: Any) -> Sequence[Any]:
        """Return the extreme, written in operators."""
        return [op(self._name, *inputs, np.array(self.axes, np.int64), keepdims=int(self.keepdims))]

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Sequence[Any]:
        """Return the gradient, whole for each element that reaches the extreme."""
        x, y = self.inputs[0].data, self._retained_output_data[0]
        g = grad_outputs[0]
        if not self.keepdims:
            y = np.expand_dims(y, self.axes)
        there = x == y
        if read("enable_backprop"):
            from hagane.nn.functions.array import broadcast_to, reshape

            return (broadcast_to(reshape(g, y.shape), x.shape) * there.astype(x.dtype),)
        return (Variable.own(np.where(there, g.array.reshape(y.shape), x.dtype.type(0))),)


def extreme_of_two(name: str, a: Any, b: Any) -> Any:
    """Return ``Max`` or ``Min`` of two values, element by element.

    Where they are equal ``a`` gets the whole gradient, as in Chainer; the operators of graphs give
    each a half.
    """
    if not (isinstance(a, Variable) and isinstance(b, Variable)):
        return op(name, a, b)
    return ExtremeOfTwo(name).apply((a, b))[0]


def chosen(a: Any, b: Any, *, name: str) -> Any:
    """Return the first operand where it is the extreme, else the second."""
    return op("Where", op(_FIRST[name], a, b), a, b)


# Whether the first operand is the extreme.
_FIRST = {"Max": "GreaterOrEqual", "Min": "LessOrEqual"}


class ExtremeOfTwo(FunctionNode):
    """The larger or smaller of two arrays, element by element.

    Args:
        name: ``Max`` or ``Min``.
    """

    def __init__(self, name: str):
        self._name = name

    @property
    def label(self) -> str:
        """The name for messages and drawings."""
        return "maximum" if self._name == "Max" else "minimum"

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the extremes."""
        self.retain_inputs((0, 1))
        return (np.asarray(NATIVE.apply(Call(operators()["", self._name], inputs), 1)[0]),)

    def operators(self, *inputs: Any) -> Sequence[Any]:
        """Return the extremes, written in operators."""
        return [op(self._name, *inputs)]

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Sequence[Any]:
        """Return the gradients, that of equal elements for the first operand."""
        from hagane.nn.functions.math import sum_to

        a, b = (node.data for node in self.inputs)
        g = grad_outputs[0]
        first = (a >= b if self._name == "Max" else a <= b).astype(g.dtype)
        return sum_to(g * first, a.shape), sum_to(g * (1 - first), b.shape)


def _sign_of_two(function: ExtremeOfTwo) -> object:
    return function._name, *[(x.dtype, x.shape) for x in function.inputs]


def _described_of_two(function: ExtremeOfTwo) -> tuple[Any, ...]:
    return __name__, "chosen", "function", (("name", function._name),), [0, 1], None


def _sign(function: Extreme) -> object:
    x = function.inputs[0]
    return function._name, function.axes, function.keepdims, x.dtype, x.shape


def _described(function: Extreme) -> tuple[Any, ...]:
    attributes = (
        ("name", function._name),
        ("axes", function.axes),
        ("keepdims", function.keepdims),
    )
    return __name__, "reached", "function", attributes, [0], None


DESCRIBED[Extreme] = _sign, _described
DESCRIBED[ExtremeOfTwo] = _sign_of_two, _described_of_two
