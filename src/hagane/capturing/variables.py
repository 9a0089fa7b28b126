"""Variables of define-by-run code as arguments and results of a compiled call."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from hagane.nn.autograd.configuration import config, using_config
from hagane.nn.autograd.derivatives import grad
from hagane.nn.autograd.function_node import FunctionNode
from hagane.nn.autograd.hooks import get_function_hooks
from hagane.nn.autograd.variable import Variable
from hagane.nn.model.hooks import get_link_hooks

KIND = "chainer.Variable"


def is_variable(value: Any) -> bool:
    """Whether a value is a variable of hagane, a parameter included."""
    return isinstance(value, Variable)


def variable_of(array: Any) -> Any:
    """Return a variable for an output of a graph, of the library that the program uses."""
    chainer = sys.modules.get("chainer")
    make = Variable if chainer is None else chainer.Variable
    return make(array, requires_grad=False)


def has_hooks() -> bool:
    """Whether hooks of this thread see each function or link, which a graph does not call."""
    return bool(get_function_hooks() or get_link_hooks())


def wants_way_back(variables: Sequence[Any]) -> bool:
    """Whether a call with these variables would be recorded, to go back through it."""
    return bool(config.enable_backprop) and any(v.requires_grad for v in variables)


def with_way_back(
    outputs: Sequence[Any],
    again: Callable[[Sequence[Any]], tuple[Sequence[Any], Sequence[Any]]],
    variables: Sequence[Any],
) -> Sequence[Any]:
    """Return the variables of a compiled call such that gradients can be had.

    Args:
        outputs: The outputs of the graph, as arrays.
        again: Runs the original with other variables; returns its outputs and the variables to
            which gradients go, in the order of ``variables``.
        variables: Where gradients may go.
    """
    found: Sequence[Any] = _Recomputed(outputs, again).apply(variables)
    return found


class _Recomputed(FunctionNode):
    """Has the outputs of a graph; gradients come from the original, run again for them."""

    def __init__(self, outputs: Sequence[Any], again: Callable[..., Any]):
        self._outputs, self._again = outputs, again
        self._training = bool(config.train)

    def forward(self, inputs: Any) -> Any:
        """Return the outputs of the graph."""
        self.retain_inputs(tuple(range(len(inputs))))
        outputs, self._outputs = tuple(self._outputs), ()
        return outputs

    def backward(self, indexes: Any, gradients: Any) -> Any:
        """Return the gradients of some inputs."""
        twice = bool(config.enable_backprop)
        with using_config("train", self._training), using_config("enable_backprop", True):
            outputs, given = self._again(self.get_retained_inputs())
            pairs = [
                (output, gradient)
                for output, gradient in zip(outputs, gradients, strict=True)
                if gradient is not None and output.requires_grad
            ]
            wanted = [given[i] for i in indexes]
            if not pairs:
                return (None,) * len(wanted)
            return tuple(
                grad(
                    [output for output, _ in pairs],
                    wanted,
                    [gradient for _, gradient in pairs],
                    enable_double_backprop=twice,
                )
            )


__all__ = ["KIND", "has_hooks", "is_variable", "variable_of", "wants_way_back", "with_way_back"]
