"""Operators on variables: computed at once, and recorded with their gradient."""

from __future__ import annotations

import time
import traceback
import weakref
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from hagane.graph.types import Type
from hagane.nn.autograd.configuration import config
from hagane.nn.autograd.debugging import check_numbers, mark_retained
from hagane.nn.autograd.function_node import FunctionNode
from hagane.nn.autograd.hooks import get_function_hooks, hooks_of
from hagane.nn.autograd.variable import Variable
from hagane.nn.eager.dispatch import NATIVE, Prepared
from hagane.ops.builder import Call
from hagane.ops.definition import Array, Unsupported

# The name of the function of the library that is being applied, for labels.
CURRENT: ContextVar[str | None] = ContextVar("hagane.nn.function", default=None)


class Operator(FunctionNode):
    """An operator that was applied to variables."""

    def __init__(self, call: Call):
        self.call = call
        self._label = CURRENT.get() or call.op.name

    def __getattr__(self, name: str) -> Any:
        """Return what a function of the library noted; a function of no arguments makes it."""
        notes = self.__dict__.get("notes")
        if notes is None or name not in notes:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return notes[name]()

    @property
    def label(self) -> str:
        """The function of the library that applied the operator, else the operator."""
        return self._label

    @property
    def _impl_name(self) -> str:
        return self._label

    def backward(
        self, target_input_indexes: tuple[int, ...], grad_outputs: tuple[Any, ...]
    ) -> Sequence[Any]:
        """Return the gradients by the operator's rule."""
        rule = self.call.op.vjp
        if isinstance(rule, Unsupported):
            if all(not _continuous(node.dtype) for node in self.inputs) or all(
                g is None or not _continuous(g.dtype) for g in grad_outputs
            ):
                return (None,) * len(target_input_indexes)
            raise NotImplementedError(
                f"{self.label}: the operator {self.call.op.name} has no gradient: {rule.reason}"
            )
        recorded = config.enable_backprop
        places = self._places()
        values = self._values(recorded)
        gradients = _gradients(grad_outputs, recorded)
        prepared: Prepared | None = None
        if not recorded:
            targets = tuple([places[index] for index in target_input_indexes])
            given = tuple([g is not None for g in gradients])
            prepared = NATIVE.gradient(values, given, targets)
            if prepared is not None:
                arrays = prepared.run((*values.inputs, *values.outputs, *gradients))
                if arrays is not None:
                    return [Variable.make(x) for x in arrays]
        begun = time.perf_counter()
        found = rule(values, gradients)
        made: list[Any] = []
        for index in target_input_indexes:
            gradient = found[places[index]]
            # A function puts off results that are not asked for.
            if callable(gradient):
                gradient = gradient()
            if gradient is None:
                made.append(None)
            elif isinstance(gradient, Variable):
                made.append(gradient)
            else:
                made.append(Variable.make(np.asarray(gradient)))
        if prepared is not None and prepared.program is not None:
            prepared.program.spend(time.perf_counter() - begun)
        return made

    def _places(self) -> list[int]:
        """Return the place in the call of each input."""
        return [i for i, value in enumerate(self.call.inputs) if value is not None]

    def _values(self, recorded: bool) -> Call:
        """Return the call with its inputs and outputs: variables, or arrays."""
        outputs: tuple[Any, ...]
        if recorded:
            present = iter(self.get_retained_inputs())
            outputs = self.get_retained_outputs()
        else:
            present = iter([node.data for node in self.inputs])
            outputs = self._retained_output_data
        inputs = tuple([None if value is None else next(present) for value in self.call.inputs])
        return Call(self.call.op, inputs, self.call.attributes, outputs)


def _continuous(dtype: Any) -> bool:
    return dtype is not None and np.dtype(dtype).kind == "f"


def _gradients(gradients: Sequence[Any], recorded: bool) -> tuple[Any, ...]:
    return tuple([None if g is None else g if recorded else g.array for g in gradients])


class Tape:
    """Variables: operators are computed on their arrays and recorded for gradients."""

    level = 1

    def apply(self, call: Call, n_outputs: int) -> Sequence[Any]:
        """Compute a call, and record it where gradients may be asked for."""
        variables = [
            value if isinstance(value, Variable) else Variable.make(np.asarray(value), False)
            for value in call.inputs
            if value is not None
        ]
        arrays = tuple(
            [value.array if isinstance(value, Variable) else value for value in call.inputs]
        )
        eager = Call(call.op, arrays, call.attributes)
        if not config.enable_backprop and not config.debug and not get_function_hooks():
            return [
                Variable.make(y, any(x._requires_grad for x in variables))
                for y in NATIVE.apply(eager, n_outputs)
            ]
        return self._recorded(call, eager, variables, n_outputs)

    def _recorded(
        self, call: Call, eager: Call, variables: list[Variable], n_outputs: int
    ) -> Sequence[Any]:
        # The call holds marks of presence: the arrays are retained by the nodes.
        marks = tuple([None if value is None else True for value in call.inputs])
        function = Operator(Call(call.op, marks, call.attributes))
        hooks = hooks_of(function)
        if hooks:
            shown = tuple([x.array for x in variables])
            for hook in hooks:
                hook.forward_preprocess(function, shown)
        outputs = NATIVE.apply(eager, n_outputs)
        for hook in hooks:
            hook.forward_postprocess(function, shown)
        if config.debug:
            function.stack = traceback.extract_stack()
            check_numbers(function.label, [x.array for x in variables], outputs)
        requires_grad = any(x._requires_grad for x in variables)
        made = [Variable.make(y, requires_grad) for y in outputs]
        if not requires_grad or not config.enable_backprop:
            if config.enable_backprop:
                for y in made:
                    y._node.creator_node = function
                function.inputs = tuple([x._node for x in variables])
                function.outputs = tuple([weakref.ref(y._node) for y in made])
            return made
        function.rank = max([x._node._rank for x in variables])
        for y in made:
            y._node.creator_node = function
            y._node.data = y._array
        for x in variables:
            x._node.data = x._array
        function.inputs = tuple([x._node for x in variables])
        function.outputs = tuple([weakref.ref(y._node) for y in made])
        function._input_indexes_to_retain = range(len(variables))
        function._output_indexes_to_retain = range(len(made))
        function._retained_output_data = tuple(outputs)
        function._output_count = len(made)
        if config.debug:
            mark_retained(function, call.op.name)
        return made

    def constant(self, content: Array) -> Any:
        """Return an array, to which no gradient flows, as it is."""
        return NATIVE.constant(content)

    def type_of(self, value: Any) -> Type | None:
        """Return the type of a variable's array."""
        return NATIVE.type_of(value.array if isinstance(value, Variable) else value)

    def content_of(self, value: Any) -> Array | None:
        """Return a variable's array."""
        return NATIVE.content_of(value.array if isinstance(value, Variable) else value)


TAPE = Tape()
