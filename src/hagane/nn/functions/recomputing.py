"""Functions whose intermediate results are computed again instead of kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hagane.nn.autograd.backprop import backward
from hagane.nn.autograd.configuration import (
    config,
    force_backprop_mode,
    no_backprop_mode,
    using_config,
)
from hagane.nn.autograd.function_node import FunctionNode
from hagane.nn.autograd.variable import Variable


def _called(function: Callable[..., Any], xs: Sequence[Variable]) -> tuple[Variable, ...]:
    found = function(*xs)
    if isinstance(found, Variable):
        return (found,)
    if not isinstance(found, tuple):
        raise RuntimeError(
            f"A tuple of Variables or a Variable are expected, but {type(found)} is returned."
        )
    for number, one in enumerate(found, start=1):
        if not isinstance(one, Variable):
            ending = {1: "st", 2: "nd", 3: "rd"}.get(number if number < 20 else number % 10, "th")
            raise RuntimeError(
                f"{number}{ending} element of a returned tuple is not Variable, but is {type(one)}"
            )
    return found


class Forget(FunctionNode):
    """A function that is called again on the way back."""

    def __init__(self, func: Callable[..., Any]):
        if not callable(func):
            raise TypeError(f"func must be callable, got {type(func)}")
        self.func = func

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the results, of which nothing is recorded."""
        self.retain_inputs(tuple(range(len(inputs))))
        with no_backprop_mode(), using_config("_will_recompute", True):
            return tuple(y.array for y in _called(self.func, [Variable(x) for x in inputs]))

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Sequence[Any]:
        """Return gradients of a second call; parameters that it uses get theirs in passing.

        Raises:
            RuntimeError: The gradient is to be differentiated again.
        """
        if config.enable_backprop:
            raise RuntimeError("double backpropagation in functions.forget is not allowed.")
        xs = [Variable(x.array) for x in self.get_retained_inputs()]
        with force_backprop_mode(), using_config("in_recomputing", True):
            ys = _called(self.func, xs)
        given = [(y, g) for y, g in zip(ys, grad_outputs, strict=True) if g is not None]
        backward([y for y, _ in given], [g for _, g in given])
        return tuple(xs[index].grad_var for index in target_input_indexes)


def forget(func: Callable[..., Any], *xs: Any) -> Any:
    """Return a function's result; it keeps nothing in between and is called again going back.

    Args:
        func: From variables to a variable or a tuple of them; the same for the same inputs.
        *xs: Variables or arrays.
    """
    ys = Forget(func).apply([x if isinstance(x, Variable) else Variable(x) for x in xs])
    return ys[0] if len(ys) == 1 else ys
