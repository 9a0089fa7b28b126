"""Calls on arrays: on a program of the engine where there is one, else on NumPy's kernels."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from hagane.nn.eager.order import Operand, Order, operands_of
from hagane.nn.eager.programs import WORKSHOP, Program
from hagane.nn.eager.table import SERVED
from hagane.ops.builder import Call
from hagane.ops.builder.eager import Eager
from hagane.ops.definition import OpDef, Unsupported

# Calls of so many shapes are remembered.
_MOST = 4096
_FLOATS = "f"


class Prepared:
    """A call on arrays of certain types and shapes, whose types were checked.

    Attributes:
        program: Computes it, if that is there.
        gradients: Gradients of the call, by the outputs that have one and the operands by which.
    """

    __slots__ = ("closed", "feeds", "gradients", "program")

    def __init__(self, program: Program | None, closed: Order | None = None):
        self.program = program
        # The order of a program for these sizes alone, in case there is none for open ones.
        self.closed = closed
        # The names of inputs and which of the arrays they are, once the program is there.
        self.feeds: tuple[tuple[str, int], ...] | None = None
        self.gradients: dict[object, Prepared] = {}

    def run(self, arrays: Sequence[Any]) -> list[Any] | None:
        """Return the outputs for the arrays of a call, None where the program is not there.

        Args:
            arrays: Operands, and for a gradient the call's outputs and their gradients.
        """
        program = self.program
        if program is None or (program.run is None and (program := self._other()) is None):
            return None
        feeds = self.feeds
        if feeds is None:
            feeds = self.feeds = _feeds(program)
        found: list[Any] = program.run(None, {name: arrays[i] for name, i in feeds})
        return found

    def is_there(self) -> bool:
        """Whether the program is."""
        program = self.program
        return program is not None and (program.run is not None or self._other() is not None)

    def _other(self) -> Program | None:
        """Return the program for these sizes alone, once it is there."""
        if self.program is not None and self.program.refused and self.closed is not None:
            self.program, self.closed = WORKSHOP.program(self.closed), None
        return self.program if self.program is not None and self.program.run is not None else None


def _feeds(program: Program) -> tuple[tuple[str, int], ...]:
    order = program.order
    assert isinstance(order, Order)
    starts = {"x": 0, "y": len(order.operands), "g": len(order.operands) + order.n_outputs}
    if order.kind == "function":
        starts["g"] = starts["y"]
    assert program.names is not None
    return tuple([(name, starts[name[0]] + int(name[1:])) for name in program.names])


class Native(Eager):
    """Arrays, computed at once by the engine or NumPy.

    Attributes:
        steady: Says whether runs are equal to the bit: no program takes over in the middle of one.
    """

    def __init__(self) -> None:
        super().__init__()
        self.steady: Callable[[], bool] = bool
        self._prepared: dict[object, Prepared] = {}

    def apply(self, call: Call, n_outputs: int) -> Sequence[Any]:
        """Check the types of the operands and return the results.

        Raises:
            TypeInferenceError: The operands do not fit the operator.
            KernelError: The kernel failed on their content.
        """
        return self.applied(call, n_outputs)[0]

    def applied(self, call: Call, n_outputs: int) -> tuple[Sequence[Any], Prepared | None]:
        """Return the results, as ``apply`` does, and the start of the call's gradients."""
        inputs = call.inputs
        if call.op.name == "Reshape" and call.attributes.get("allowzero"):
            with suppress(ValueError):  # the type rule says what is wrong
                return [inputs[0].reshape(inputs[1])], None
        served = SERVED.get(call.op.key)
        if served is None or self._is_off():
            return super().apply(call, n_outputs), None
        key = (
            call.op.name,
            n_outputs,
            _signature(inputs, served.constants),
            *call.attributes.items(),
        )
        prepared = self._prepared.get(key)
        if prepared is None:
            self._check(call, n_outputs)
            prepared = self._keep(key, self._orders(call, n_outputs, (), ()))
        found = prepared.run(inputs)
        if found is not None:
            return found, prepared
        begun = time.perf_counter()
        found = list(super().apply(call, n_outputs))
        if prepared.program is not None:
            prepared.program.spend(time.perf_counter() - begun)
        return found, prepared

    def gradient(
        self,
        call: Call,
        given: tuple[bool, ...],
        targets: tuple[int, ...],
        forward: Prepared | None = None,
    ) -> Prepared | None:
        """Return the gradient of a call, None where no program can compute it.

        Args:
            call: With its outputs.
            given: Whether each output has a gradient.
            targets: The operands by which.
            forward: The call as it was prepared, if it was.
        """
        if forward is not None and not self._is_off():
            known = forward.gradients.get((given, targets))
            if known is not None:
                return known
        served = SERVED.get(call.op.key)
        if served is None or self._is_off() or isinstance(call.op.vjp, Unsupported):
            return None
        key = (
            call.op.name,
            given,
            targets,
            _signature(call.inputs, served.constants),
            *call.attributes.items(),
        )
        prepared = self._prepared.get(key)
        if prepared is None:
            orders = self._orders(call, len(call.outputs), given, targets)
            prepared = self._keep(key, orders)
        if forward is not None:
            forward.gradients[given, targets] = prepared
        return prepared

    def _is_off(self) -> bool:
        mode = WORKSHOP.mode
        return mode == "off" or (mode == "beside" and self.steady())

    def _keep(self, key: object, orders: tuple[Order, Order] | None) -> Prepared:
        if len(self._prepared) >= _MOST:
            self._prepared.clear()
        if orders is None:
            prepared = Prepared(None)
        else:
            prepared = Prepared(WORKSHOP.program(orders[0]), orders[1])
        self._prepared[key] = prepared
        return prepared

    def _orders(
        self, call: Call, n_outputs: int, given: tuple[bool, ...], targets: tuple[int, ...]
    ) -> tuple[Order, Order] | None:
        served = SERVED[call.op.key]
        arrays = call.inputs
        if not _can_be_served(call.op, arrays):
            return None
        domain, name = call.op.key
        attributes = tuple(sorted(call.attributes.items()))
        operands = operands_of(arrays, served.constants, served.fixed)
        order = Order("operator", domain, name, attributes, operands, n_outputs, given, targets)
        return order, replace(order, operands=_closed(arrays, served.constants))

    def function(
        self,
        define: Callable[..., Any],
        attributes: tuple[tuple[str, Any], ...],
        arrays: Sequence[Any],
        n_outputs: int,
        given: tuple[bool, ...] = (),
        targets: tuple[int, ...] = (),
    ) -> Prepared | None:
        """Return a function over the builder, or its gradient, for arrays of some shapes.

        Args:
            define: The function, of a module; pure.
            attributes: Its named arguments.
            arrays: Its operands.
            n_outputs: Of the function.
            given: For a gradient: whether each output has one.
            targets: For a gradient: the operands by which.
        """
        if self._is_off():
            return None
        signature = [None if x is None else (x.dtype.char, x.shape) for x in arrays]
        key = (define, given, targets, tuple(signature), attributes)
        prepared = self._prepared.get(key)
        if prepared is None:
            orders = None
            if all(x is None or x.size for x in arrays):
                place, name = define.__module__, define.__qualname__
                operands = operands_of(arrays)
                order = Order(
                    "function", place, name, attributes, operands, n_outputs, given, targets
                )
                orders = order, replace(order, operands=_closed(arrays))
            prepared = self._keep(key, orders)
        return prepared


def _closed(arrays: Sequence[Any], constants: tuple[int, ...] = ()) -> tuple[Operand | None, ...]:
    """Return operands of which the first size alone, that of the batch, is open."""
    fixed = [None if x is None else tuple(range(1, x.ndim)) for x in arrays]
    return operands_of(arrays, constants, fixed)


def _signature(arrays: Sequence[Any], constants: Sequence[int]) -> tuple[Any, ...]:
    """Return the types and shapes of operands, and the content of constants."""
    return tuple(
        [
            None if x is None else (x.dtype.char, x.shape) if i not in constants else x.tobytes()
            for i, x in enumerate(arrays)
        ]
    )


def _can_be_served(op: OpDef, arrays: Sequence[Any]) -> bool:
    """Whether arrays are such as programs are made for: floating-point numbers, none empty."""
    if any(isinstance(x, np.ndarray) and not x.size for x in arrays):
        return False
    first = arrays[1] if op.name == "Where" else arrays[0]
    return isinstance(first, np.ndarray) and first.dtype.kind in _FLOATS


NATIVE = Native()
