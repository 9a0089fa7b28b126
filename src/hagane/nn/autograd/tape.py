"""Operators on variables: computed at once, and recorded with their gradient."""

from __future__ import annotations

import time
import traceback
import weakref
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from hagane.graph.types import Type
from hagane.nn.autograd.application import CURRENT
from hagane.nn.autograd.configuration import modes, read
from hagane.nn.autograd.debugging import check_numbers, mark_retained
from hagane.nn.autograd.deferred import deferred_rows, deferred_weight
from hagane.nn.autograd.function_node import FunctionNode
from hagane.nn.autograd.hooks import get_function_hooks
from hagane.nn.autograd.labels import OPERATORS, names_of
from hagane.nn.autograd.retention import EVERYTHING, Unread, stand_in, unread_of
from hagane.nn.autograd.variable import Variable
from hagane.nn.autograd.way_back import DESCRIBED, described_operator, sign_of_operator
from hagane.nn.eager.dispatch import NATIVE, Prepared
from hagane.ops.builder import Call
from hagane.ops.definition import Array, Unsupported


class Operator(FunctionNode):
    """An operator that was applied to variables."""

    def __init__(self, call: Call, places: Sequence[int]):
        self._op = call.op
        self._attributes = call.attributes
        # Which operand each input is; the operands, with those alone that are no variables.
        self._places: Sequence[int] = places
        self._fixed: tuple[Any, ...] | None = None
        if len(places) != len(call.inputs):
            self._fixed = tuple(
                [None if place in places else x for place, x in enumerate(call.inputs)]
            )
        self.application = CURRENT.get()
        self._prepared: Prepared | None = None

    def __getattr__(self, name: str) -> Any:
        """Return a note of a function of the library; a function of no arguments makes it."""
        notes = self.__dict__.get("notes")
        if notes is None or name not in notes:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return notes[name]()

    @property
    def label(self) -> str:
        """The function of the library that applied the operator, else the operator."""
        return self._names()[0]

    @property
    def _impl_name(self) -> str:
        return self._names()[1]

    def _names(self) -> tuple[str, str]:
        if self.application is not None:
            return self.application.names()
        return names_of(OPERATORS.get(self._op.name, self._op.name))

    def backward(
        self, target_input_indexes: tuple[int, ...], grad_outputs: tuple[Any, ...]
    ) -> Sequence[Any]:
        """Return the gradients by the operator's rule."""
        rule = self._op.vjp
        if isinstance(rule, Unsupported):
            if all(not _continuous(node.dtype) for node in self.inputs) or all(
                g is None or not _continuous(g.dtype) for g in grad_outputs
            ):
                return (None,) * len(target_input_indexes)
            raise NotImplementedError(
                f"{self.label}: the operator {self._op.name} has no gradient: {rule.reason}"
            )
        if read("enable_backprop") or get_function_hooks():  # which see each operator
            return self._by_rule(target_input_indexes, self._variables(), grad_outputs)
        gradients = tuple([None if g is None else g.array for g in grad_outputs])
        name = self._op.name
        if name == "Add":
            handed = _handed_on(self.inputs, target_input_indexes, grad_outputs[0])
            if handed is not None:
                return handed
        if name in _RESHAPING and gradients[0] is not None and 0 in target_input_indexes:
            reshaped = Variable.make(gradients[0].reshape(self.inputs[0].shape))
            return [reshaped if index == 0 else None for index in target_input_indexes]
        call = Call(
            self._op,
            self._operands([_content(node) for node in self.inputs]),
            self._attributes,
            self._retained_output_data,
        )
        if name in _DEFERRED and not read("debug"):
            return self._deferred(target_input_indexes, call, gradients)
        return self._computed(target_input_indexes, call, gradients)

    def _deferred(
        self, indexes: tuple[int, ...], call: Call, gradients: tuple[Any, ...]
    ) -> Sequence[Any]:
        """Return gradients, that of a parameter to be computed with those of other calls."""
        place, defer = _DEFERRED[self._op.name]
        deferred = None
        if place in indexes and self.inputs[place]._creator_node is None:
            deferred = defer(self._op, call.attributes, call.inputs, gradients[0])
        if deferred is None:
            return self._computed(indexes, call, gradients)
        others = tuple([index for index in indexes if index != place])
        found = list(self._computed(others, call, gradients)) if others else []
        found.insert(indexes.index(place), deferred)
        return found

    def _computed(
        self, indexes: tuple[int, ...], call: Call, gradients: tuple[Any, ...]
    ) -> Sequence[Any]:
        """Return gradients that need not be differentiated again."""
        targets = tuple([self._places[index] for index in indexes])
        given = tuple([g is not None for g in gradients])
        prepared = NATIVE.gradient(call, given, targets, self._prepared)
        if prepared is None:
            return self._by_rule(indexes, call, gradients)
        arrays = prepared.run((*call.inputs, *call.outputs, *gradients))
        if arrays is not None:
            return [Variable.own(x) for x in arrays]
        begun = time.perf_counter()
        made = self._by_rule(indexes, call, gradients)
        if prepared.program is not None:
            prepared.program.spend(time.perf_counter() - begun)
        return made

    def _by_rule(
        self, indexes: tuple[int, ...], call: Call, gradients: tuple[Any, ...]
    ) -> Sequence[Any]:
        assert not isinstance(self._op.vjp, Unsupported)
        found = self._op.vjp(call, gradients)
        made: list[Any] = []
        for index in indexes:
            gradient = found[self._places[index]]
            # A function puts off results that are not asked for.
            if callable(gradient):
                gradient = gradient()
            if gradient is None:
                made.append(None)
            elif isinstance(gradient, Variable):
                made.append(gradient)
            else:
                made.append(Variable.make(np.asarray(gradient)))
        return made

    def _operands(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """Return the operands, with None where one is absent."""
        if self._fixed is None:
            return tuple(inputs)
        found = list(self._fixed)
        for place, value in zip(self._places, inputs, strict=True):
            found[place] = value
        return tuple(found)

    def _variables(self) -> Call:
        """Return the call on variables, so that its gradients are recorded."""
        inputs = [
            Variable.make(_content(node), False) if node.data is None else node.get_variable()
            for node in self.inputs
        ]
        operands = self._operands(inputs)
        return Call(self._op, operands, self._attributes, self.get_retained_outputs())


# Operators whose gradient has the elements of that of the output, in its order.
_RESHAPING = frozenset({"Flatten", "Reshape", "Squeeze", "Unsqueeze"})
# Functions of steps, whose results are constants, as Chainer has it: they have no creator.
_STEPS = frozenset({"Ceil", "Floor", "Round", "Sign"})
# Operators whose gradients by a parameter wait for those of other calls: which operand that is.
_DEFERRED = {"Gemm": (1, deferred_weight), "Gather": (0, deferred_rows)}


def _content(node: Any) -> Any:
    """Return a node's array; where none is retained, one of its type and sizes."""
    return stand_in(node.dtype, node.shape) if node.data is None else node.data


def _handed_on(inputs: Any, indexes: Sequence[int], g: Any) -> list[Any] | None:
    """Return the gradient of a sum as those of its terms, None where these have other sizes.

    Leaves get copies: their gradients may be changed in place.
    """
    if g is None or any(inputs[i].shape != g._array.shape for i in indexes):
        return None
    return [
        g if inputs[i]._creator_node is not None else Variable.make(g._array.copy())
        for i in indexes
    ]


def _continuous(dtype: Any) -> bool:
    return dtype is not None and np.dtype(dtype).kind == "f"


class Tape:
    """Variables: operators are computed on their arrays and recorded for gradients."""

    level = 1

    def apply(self, call: Call, n_outputs: int) -> Sequence[Any]:
        """Compute a call, and record it where gradients may be asked for."""
        variables: list[Variable] = []
        arrays: list[Any] = []
        places: list[int] = []
        requires_grad = False
        for place, value in enumerate(call.inputs):
            if isinstance(value, Variable):
                places.append(place)
                variables.append(value)
                arrays.append(value._array)
                if value._requires_grad:
                    requires_grad = True
            else:
                arrays.append(value)
        eager = Call(call.op, tuple(arrays), call.attributes)
        recorded, debug = modes()
        hooked = get_function_hooks()
        if call.op.name in _STEPS:
            recorded = requires_grad = False
            hooked = {}
        elif hooked and (application := CURRENT.get()) is not None:
            application.begin(hooked)
            hooked = {}
        if not recorded and not debug and not hooked:
            return [Variable.make(y, requires_grad) for y in NATIVE.apply(eager, n_outputs)]
        function = Operator(eager, places)
        if hooked:  # an operator of a gradient
            shown = tuple([x.array for x in variables])
            hooks = list(hooked.values())
            for hook in hooks:
                hook.forward_preprocess(function, shown)
        outputs, function._prepared = NATIVE.applied(eager, n_outputs)
        if hooked:
            for hook in hooks:
                hook.forward_postprocess(function, shown)
        if debug:
            function.stack = traceback.extract_stack()
            check_numbers(function.title, [x.array for x in variables], outputs)
        made = [Variable.make(y, requires_grad) for y in outputs]
        if recorded:
            unread = EVERYTHING if debug else unread_of(call.op)
            self._record(function, variables, made, requires_grad, unread)
            if debug and requires_grad:
                mark_retained(function, call.op.name)
        return made

    def _record(
        self,
        function: Operator,
        variables: list[Variable],
        made: list[Variable],
        requires_grad: bool,
        unread: Unread,
    ) -> None:
        """Let variables know the function that made them, and that the arrays it needs."""
        inputs = tuple([x._node for x in variables])
        function.inputs = inputs
        if requires_grad:
            function._depth = max([node._rank for node in inputs])
            left = unread.operands
            for place, x, node in zip(function._places, variables, inputs, strict=True):
                # Constants, sizes and axes among them, are read in any case.
                if place not in left or not x._requires_grad:
                    node.data = x._array
        rank = function._depth + 1
        references = []
        for y in made:
            node = y._node
            node._creator_node = function
            node._rank = rank
            if requires_grad and not unread.results:
                node.data = y._array
            references.append(weakref.ref(node))
        function.outputs = tuple(references)
        if requires_grad:
            function._input_indexes_to_retain = range(len(inputs))
            function._output_indexes_to_retain = range(len(made))
            if unread.results:
                kept = [stand_in(y._array.dtype, y._array.shape) for y in made]
            else:
                kept = [y._array for y in made]
            function._retained_output_data = tuple(kept)
            function._output_count = len(made)

    def constant(self, content: Array) -> Any:
        """Return an array, to which no gradient flows, as it is."""
        return NATIVE.constant(content)

    def type_of(self, value: Any) -> Type | None:
        """Return the type of a variable's array."""
        return NATIVE.type_of(value.array if isinstance(value, Variable) else value)

    def content_of(self, value: Any) -> Array | None:
        """Return a variable's array."""
        return NATIVE.content_of(value.array if isinstance(value, Variable) else value)


NATIVE.steady = partial(read, "deterministic")
DESCRIBED[Operator] = sign_of_operator, described_operator
TAPE = Tape()
Variable.interpreter = TAPE
