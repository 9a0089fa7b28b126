"""A step of an LSTM, products and cell, as one program each way.

Composed of single functions a step is eight calls forward and back, each on a few rows; here it is
two. Gradients of the weights wait for those of other steps (``autograd/deferred.py``).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from hagane.nn.autograd.configuration import read
from hagane.nn.autograd.deferred import deferred_bias, weight_gradient
from hagane.nn.autograd.derivatives import grad_of_call
from hagane.nn.autograd.function_node import FunctionNode
from hagane.nn.autograd.hooks import get_function_hooks
from hagane.nn.autograd.variable import Variable
from hagane.nn.eager.dispatch import NATIVE
from hagane.ops.builder import op
from hagane.ops.functions.chainer import elementwise
from hagane.ops.gradient import pull_back

_STEP = tuple[Any, Any]


def step_forward(cell: Any, h: Any, x: Any, upward: Any, bias: Any, lateral: Any) -> Any:
    """Return the next cell, the output and the gates; bias may be None."""
    gates = op("Gemm", x, upward, bias, transB=1)
    gates = op("Add", gates, op("Gemm", h, lateral, transB=1))
    return (*elementwise.lstm(cell, gates), gates)


def step_backward(
    cell: Any, gates: Any, g_new: Any, g_y: Any, upward: Any, lateral: Any, *, by_x: bool
) -> Any:
    """Return the gradients of cell, gates, earlier output, and of the input if asked for."""
    _, pull = pull_back(elementwise.lstm, cell, gates)
    g_cell, g_gates = pull((g_new, g_y))
    found = g_cell, g_gates, op("Gemm", g_gates, lateral)
    return (*found, op("Gemm", g_gates, upward)) if by_x else found


def lstm_step(
    cell: Any, h: Any, x: Any, upward: Any, bias: Any, lateral: Any, composed: Callable[[], _STEP]
) -> _STEP:
    """Return the next cell and the output of an LSTM.

    Args:
        cell: (batch, units).
        h: The earlier output, the same.
        x: (batch, features).
        upward: (4 units, features).
        bias: (4 units,) or None.
        lateral: (4 units, units).
        composed: Computes the same by single functions, where there are no programs.
    """
    if isinstance(x, np.ndarray):
        x = Variable.make(x, False)
    operands = (cell, h, x, upward, bias, lateral)
    if not _are_plain(operands):
        return composed()
    arrays = [None if each is None else each._array for each in operands]
    forward = NATIVE.function(step_forward, (), arrays, 3)
    if forward is None or forward.program is None:
        return composed()
    back = None
    if read("enable_backprop") and any(x is not None and x._requires_grad for x in operands):
        by_x = ("by_x", x._requires_grad)
        back = NATIVE.function(step_backward, (by_x,), _shown(arrays), 4)
    if forward.is_there() and (back is None or back.is_there()):
        found = forward.run(arrays)
        if found is not None:
            new, y = _Step([each is not None for each in operands], found).applied(
                [each for each in operands if each is not None]
            )
            return new, y
    begun = time.perf_counter()
    result = composed()
    spent = time.perf_counter() - begun
    for each in (forward, back):
        if each is not None and each.program is not None:
            each.program.spend(spent)
    return result


def _are_plain(operands: tuple[Any, ...]) -> bool:
    """Whether operands are such as programs are made for, and nobody looks at single functions."""
    if read("debug") or get_function_hooks():
        return False
    cell, h, x, upward, bias, lateral = operands
    if not all(isinstance(each, Variable) for each in operands if each is not bias):
        return False
    c, y, rows, into, back = (each._array for each in (cell, h, x, upward, lateral))
    if into is None or into.dtype.char not in "fd" or rows.ndim != 2 or not rows.size:
        return False
    if any(each.dtype != into.dtype for each in (c, y, rows, back)):
        return False
    batch, units = c.shape if c.ndim == 2 else (0, 0)
    if bias is not None and not (isinstance(bias, Variable) and bias.dtype == into.dtype):
        return False
    return bool(
        y.shape == (batch, units)
        and len(rows) == batch
        and into.shape == (4 * units, rows.shape[1])
        and back.shape == (4 * units, units)
        and (bias is None or bias.shape == (4 * units,))
    )


def _shown(arrays: Any) -> list[Any]:
    """Return arrays of the types and sizes that ``step_backward`` will get."""
    cell, _, _, upward, _, lateral = arrays
    gates = np.empty((len(cell), len(lateral)), cell.dtype)
    return [cell, gates, cell, cell, upward, lateral]


class _Step(FunctionNode):
    """A step that was computed by a program.

    Args:
        present: Which of the operands there are.
        found: The next cell, the output and the gates.
    """

    def __init__(self, present: list[bool], found: list[Any]):
        self._present = present
        self._new, self._y, self._gates = found

    @property
    def label(self) -> str:
        """The name for messages and drawings."""
        return "lstm"

    def applied(self, variables: list[Variable]) -> tuple[Variable, ...]:
        """Return the results as variables."""
        self._input_indexes_to_retain = range(len(variables))
        found: tuple[Variable, ...] = self._record(variables, (self._new, self._y))
        del self._new, self._y
        return found

    def operators(self, *inputs: Any) -> Any:
        """Return the next cell and the output, written in operators."""
        present = iter(inputs)
        return step_forward(*[next(present) if there else None for there in self._present])[:2]

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        """Return the gradients of cell, output, input and parameters."""
        if read("enable_backprop"):
            return self._again(target_input_indexes, grad_outputs)
        nodes = iter(self.inputs)
        whole: list[Any] = [next(nodes) if there else None for there in self._present]
        cell, h, x, upward, bias, lateral = whole
        g_new, g_y = (np.zeros_like(cell.data) if g is None else g.array for g in grad_outputs)
        given = [cell.data, self._gates, g_new, g_y, upward.data, lateral.data]
        by_x = x._requires_grad
        prepared = NATIVE.function(step_backward, (("by_x", by_x),), given, 4)
        found = None if prepared is None else prepared.run(given)
        if found is None:
            found = step_backward(*given, by_x=by_x)
        g_cell, g_gates, g_h, *g_x = found
        made = {
            0: lambda: Variable.make(g_cell),
            1: lambda: Variable.make(g_h),
            2: lambda: Variable.make(*g_x),
            3: lambda: weight_gradient(upward, g_gates, x.data),
            4: lambda: deferred_bias(bias, g_gates),
            5: lambda: weight_gradient(lateral, g_gates, h.data),
        }
        places = [i for i, there in enumerate(self._present) if there]
        return [made[places[index]]() for index in target_input_indexes]

    def _again(self, targets: Any, grad_outputs: Any) -> Any:
        """Return gradients that can be differentiated again."""
        present = iter(self.get_retained_inputs())
        operands = [next(present) if there else None for there in self._present]
        places = [i for i, there in enumerate(self._present) if there]
        return grad_of_call(
            lambda *given: step_forward(*given)[:2],
            operands,
            [places[i] for i in targets],
            grad_outputs,
        )
