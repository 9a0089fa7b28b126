"""Functions of several operators as one program, forward and back."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hagane.nn.autograd.application import CURRENT, begin_current
from hagane.nn.autograd.configuration import modes, read
from hagane.nn.autograd.derivatives import grad_of_call
from hagane.nn.autograd.function_node import FunctionNode
from hagane.nn.autograd.variable import Variable
from hagane.nn.autograd.way_back import DESCRIBED
from hagane.nn.eager.dispatch import NATIVE, Prepared
from hagane.ops.gradient import pull_back

Attributes = tuple[tuple[str, Any], ...]


def fused(
    define: Callable[..., Any],
    *values: Any,
    outputs: int = 1,
    given: tuple[bool, ...] | None = None,
    otherwise: Callable[..., Any] | None = None,
    **attributes: Any,
) -> Any:
    """Return a function's result, by programs of the engine where these are there.

    Second derivatives, and all other cases, are those of the function's operators.

    Args:
        define: A function of a module, over the builder, without effects: it is made a graph of.
        values: Its operands: variables, arrays or None; values of other interpreters.
        outputs: How many results it has.
        given: Which of them gradients come from; all by default.
        otherwise: Computes the same where there are no programs, by default ``define``.
        attributes: Its named arguments, plain values.
    """
    composed = define if otherwise is None else otherwise
    recorded, debug = modes()
    if debug:
        return composed(*values, **attributes)
    arrays: list[Any] = []
    for x in values:
        if isinstance(x, Variable):
            arrays.append(x._array)
        elif x is None or isinstance(x, np.ndarray):
            arrays.append(x)
        else:
            return composed(*values, **attributes)
    named = tuple(attributes.items())
    forward = NATIVE.function(define, named, arrays, outputs)
    if forward is None or forward.program is None:
        return composed(*values, **attributes)
    targets = tuple(
        [
            i
            for i, x in enumerate(values)
            if isinstance(x, Variable) and x._requires_grad and x.dtype.kind == "f"
        ]
    )
    back = None
    if targets and recorded:
        back = NATIVE.function(define, named, arrays, outputs, given or (True,) * outputs, targets)
    if forward.is_there() and (back is None or back.is_there()):
        found = forward.run(arrays)
        if found is not None:
            function = Fused(define, named, values, found, forward)
            made = function.applied([x for x in values if x is not None])
            return made[0] if outputs == 1 else made
    begun = time.perf_counter()
    result = composed(*values, **attributes)
    spent = time.perf_counter() - begun
    for each in (forward, back):
        if each is not None and each.program is not None:
            each.program.spend(spent)
    return result


class Fused(FunctionNode):
    """A function that was computed by a program.

    Args:
        define: The function.
        attributes: Its named arguments.
        values: Its operands, the inputs and None for absent ones.
        found: Its results.
        prepared: The program's call.
    """

    def __init__(
        self,
        define: Callable[..., Any],
        attributes: Attributes,
        values: Sequence[Any],
        found: Sequence[Any],
        prepared: Prepared,
    ):
        self._define = define
        self._attributes = attributes
        self._present = [x is not None for x in values]
        self._found = tuple(found)
        self._prepared = prepared

    def __getattr__(self, name: str) -> Any:
        """Return a note of a function of the library; a function of no arguments makes it."""
        notes = self.__dict__.get("notes")
        if notes is None or name not in notes:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return notes[name]()

    @property
    def label(self) -> str:
        """The function of the library."""
        if self.application is None:
            return self._define.__name__
        return self.application.names()[0]

    def applied(self, inputs: Sequence[Any]) -> Any:
        """Return the results as variables."""
        self.application = CURRENT.get()
        begin_current()
        self.retain_inputs(range(len(inputs)))
        found, self._found = self._found, ()
        variables = [x if isinstance(x, Variable) else Variable.make(x, False) for x in inputs]
        return self._record(variables, found)

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the results."""
        self.retain_inputs(range(len(inputs)))
        found, self._found = self._found, ()
        return found

    def operators(self, *inputs: Any) -> Sequence[Any]:
        """Return the results, written in operators."""
        return self._call(*self._operands(inputs))

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        """Return the gradients of the operands."""
        if read("enable_backprop"):
            return self._again(target_input_indexes, grad_outputs)
        arrays = self._operands([node.data for node in self.inputs])
        targets = self._targets(target_input_indexes)
        gradients = [None if g is None else g.array for g in grad_outputs]
        given = tuple([g is not None for g in gradients])
        back = NATIVE.function(self._define, self._attributes, arrays, len(given), given, targets)
        found = None if back is None else back.run((*arrays, *gradients))
        if found is not None:
            return [Variable.own(g) for g in found]
        begun = time.perf_counter()
        found = self._composed(arrays, gradients, targets)
        if back is not None and back.program is not None:
            back.program.spend(time.perf_counter() - begun)
        return [None if g is None else Variable.make(np.asarray(g)) for g in found]

    def _operands(self, inputs: Sequence[Any]) -> list[Any]:
        """Return the operands, with None where one is absent."""
        present = iter(inputs)
        return [next(present) if there else None for there in self._present]

    def _targets(self, indexes: Sequence[int]) -> tuple[int, ...]:
        """Return which operands some inputs are."""
        places = [i for i, there in enumerate(self._present) if there]
        return tuple([places[i] for i in indexes])

    def _call(self, *values: Any) -> Sequence[Any]:
        made = self._define(*values, **dict(self._attributes))
        return made if isinstance(made, tuple) else (made,)

    def _composed(
        self, arrays: Sequence[Any], gradients: Sequence[Any], targets: Sequence[int]
    ) -> list[Any]:
        _, pull = pull_back(self._call, *arrays)
        found = pull(gradients)
        return [found[i] for i in targets]

    def _again(self, targets: Sequence[int], grad_outputs: Sequence[Any]) -> Any:
        """Return gradients that can be differentiated again."""
        operands = self._operands(self.get_retained_inputs())
        return grad_of_call(self._call, operands, self._targets(targets), grad_outputs)


def _described(function: Fused) -> tuple[Any, ...]:
    """Return the description of a function, for a way back as one program."""
    define, present = function._define, function._present
    places = [i for i, there in enumerate(present) if there]
    fixed = None if len(places) == len(present) else [None] * len(present)
    return define.__module__, define.__qualname__, "function", function._attributes, places, fixed


def _sign(function: Fused) -> object:
    present = function._present
    return function._prepared if all(present) else (function._prepared, *present)


DESCRIBED[Fused] = _sign, _described
