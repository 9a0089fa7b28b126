"""Cells of recurrent networks in one function, for the speed of eager steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hagane.nn.autograd.configuration import config
from hagane.nn.autograd.derivatives import grad_of_call
from hagane.nn.autograd.function_node import FunctionNode
from hagane.nn.autograd.variable import Variable
from hagane.nn.functions.fusing import fused
from hagane.ops.functions.chainer import elementwise


def _sigmoid(x: Any) -> Any:
    half = np.tanh(x * 0.5)
    half *= 0.5
    half += 0.5
    return half


class LSTMCell(FunctionNode):
    """The elementwise part of an LSTM: some forty operators less a step, back included.

    Second derivatives are those of the operators.

    Args:
        composed: The same of operators, from cell and gates to the next cell and the output.
    """

    def __init__(self, composed: Callable[[Any, Any], tuple[Any, Any]]):
        self._composed = composed
        self._kept: tuple[Any, ...] = ()

    @property
    def label(self) -> str:
        """The name for messages and drawings."""
        return "lstm"

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the next cell and the output."""
        cell, x = inputs
        self.retain_inputs((0, 1))
        gates = x.reshape(len(x), x.shape[1] // 4, 4, *x.shape[2:])
        a = np.tanh(gates[:, :, 0])
        i, f, o = (_sigmoid(gates[:, :, gate]) for gate in (1, 2, 3))
        new = a * i
        new += f * cell
        t = np.tanh(new)
        self._kept = (a, i, f, o, t)
        return new, o * t

    def operators(self, *inputs: Any) -> Any:
        """Return the next cell and the output, written in operators."""
        return self._composed(*inputs)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        """Return the gradients of cell and gates."""
        g_new, g_h = grad_outputs
        if config.enable_backprop:
            operands = self.get_retained_inputs()
            return grad_of_call(self._composed, operands, target_input_indexes, grad_outputs)
        cell, x = (node.data for node in self.inputs)
        a, i, f, o, t = self._kept
        made = np.empty_like(x)
        gates = made.reshape(len(x), x.shape[1] // 4, 4, *x.shape[2:])
        if g_h is None:
            g_cell = g_new.array
            gates[:, :, 3] = 0
        else:
            g_cell = g_h.array * o
            g_cell *= 1 - t * t
            if g_new is not None:
                g_cell += g_new.array
            gates[:, :, 3] = g_h.array * t * o * (1 - o)
        gates[:, :, 0] = g_cell * i * (1 - a * a)
        gates[:, :, 1] = g_cell * a * i * (1 - i)
        gates[:, :, 2] = g_cell * cell * f * (1 - f)
        return Variable.make(g_cell * f), Variable.make(made)


def lstm_cell(
    cell: Any, x: Any, composed: Callable[[Any, Any], tuple[Any, Any]]
) -> tuple[Any, Any]:
    """Return the next cell and the output: at once where both are variables of one type.

    Args:
        cell: The cells, (batch, units, …).
        x: The gates, (batch, 4 units, …), interleaved.
        composed: The same of operators.
    """
    if (
        isinstance(cell, Variable)
        and isinstance(x, Variable)
        and cell.dtype == x.dtype
        and x.dtype in (np.float32, np.float64)
    ):
        by_numpy = lambda cell, x: LSTMCell(composed).apply((cell, x))  # noqa: E731
        found: tuple[Any, Any] = fused(elementwise.lstm, cell, x, outputs=2, otherwise=by_numpy)
        return found
    return composed(cell, x)


def _extract_gates(x: Any) -> list[Any]:
    """Return the four gates of (batch, 4 units, …), interleaved, each (batch, units, …)."""
    gates = x.reshape((len(x), x.shape[1] // 4, 4, *x.shape[2:]))
    return [gates[:, :, number] for number in range(4)]
