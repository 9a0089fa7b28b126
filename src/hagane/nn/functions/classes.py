"""Function nodes under the class names of Chainer's, for programs that apply or derive these."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from hagane.nn import functions as F
from hagane.nn.autograd.configuration import config, force_backprop_mode, no_backprop_mode
from hagane.nn.autograd.derivatives import grad_of_call
from hagane.nn.autograd.function_node import FunctionNode
from hagane.nn.autograd.variable import Variable, as_variable


class LibraryFunction(FunctionNode):
    """A function of the library as a node; its gradient is that of the function.

    Attributes:
        sign: The name for messages and drawings.
    """

    sign = ""

    def compute(self, *inputs: Any) -> Any:
        """Return the function's result, a variable or several."""
        raise NotImplementedError(f"{type(self).__name__} defines no function")

    @property
    def label(self) -> str:
        """The name for messages and drawings."""
        return self.sign

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arrays of the results."""
        self.retain_inputs(range(len(inputs)))
        with no_backprop_mode():
            found = self.compute(*inputs)
        row = found if isinstance(found, tuple) else (found,)
        return tuple(y.array if isinstance(y, Variable) else y for y in row)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        """Return the gradients, by computing the function anew."""
        further = config.enable_backprop
        xs = [x if further else Variable(x.array) for x in self.get_retained_inputs()]

        def row(*inputs: Any) -> Any:
            found = self.compute(*inputs)
            return found if isinstance(found, tuple) else (found,)

        with force_backprop_mode():
            return grad_of_call(row, xs, target_input_indexes, grad_outputs)


class Dropout(LibraryFunction):
    """``dropout`` with a mask that stays, so that it can be applied again.

    Args:
        dropout_ratio: The share that is dropped.
        mask: The factors of the elements; drawn at the first application if None.
        return_mask: Kept for programs that say it: ``mask`` has it in any case.
    """

    sign = "dropout"

    def __init__(self, dropout_ratio: float, mask: Any = None, return_mask: bool = False):
        if not 0.0 <= dropout_ratio < 1.0:
            raise ValueError(f"dropout: expected ratio in [0, 1), got {dropout_ratio}")
        self.dropout_ratio = dropout_ratio
        self.mask = mask
        self.return_mask = return_mask

    def compute(self, *inputs: Any) -> Any:
        """Return the input times the mask."""
        (x,) = inputs
        if self.mask is None:
            kept = np.random.rand(*x.shape) >= self.dropout_ratio
            self.mask = (kept / (1 - self.dropout_ratio)).astype(x.dtype)
        return F.dropout(x, self.dropout_ratio, mask=self.mask)


def _of(name: str, function: Callable[..., Any], sign: str) -> Any:
    def compute(self: Any, *inputs: Any) -> Any:
        return function(*inputs)

    content = {"compute": compute, "sign": sign, "__module__": __name__}
    return type(name, (LibraryFunction,), content)


Identity = _of("Identity", F.identity, "identity")
ReLU = _of("ReLU", F.relu, "ReLU")
Sigmoid = _of("Sigmoid", F.sigmoid, "Sigmoid")
Tanh = _of("Tanh", F.tanh, "Tanh")
Exp = _of("Exp", F.exp, "exp")
Sin = _of("Sin", F.sin, "sin")
Cos = _of("Cos", F.cos, "cos")
Tan = _of("Tan", F.tan, "tan")
Neg = _of("Neg", operator.neg, "__neg__")
Absolute = _of("Absolute", F.absolute, "|_|")
Add = _of("Add", F.add, "_ + _")
Sub = _of("Sub", lambda a, b: as_variable(a) - b, "_ - _")
Mul = _of("Mul", lambda a, b: as_variable(a) * b, "_ * _")
Div = _of("Div", lambda a, b: as_variable(a) / b, "_ / _")
PowVarVar = _of("PowVarVar", lambda a, b: as_variable(a) ** b, "_ ** _")
