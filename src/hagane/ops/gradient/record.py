"""Note the calls that a piece of Python makes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from hagane.graph.types import Type
from hagane.ops.builder import Call, Interpreter, Nodes, interpreter_of, interpreting, op
from hagane.ops.builder.interpreter import active_interpreter
from hagane.ops.control.unrolled import unrolled
from hagane.ops.definition import Array
from hagane.ops.gradient.accumulate import accumulate
from hagane.ops.gradient.replay import call_of


class Recorder:
    """Hands calls on to the interpreter below it, and keeps them.

    Attributes:
        calls: The calls so far, with their outputs.
    """

    level = 1000

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._outer = active_interpreter()

    def apply(self, call: Call, n_outputs: int) -> Sequence[Any]:
        """Make a call, note it, and return its outputs."""
        has_bodies = any(callable(item) for item in call.attributes.values())
        with interpreting(self._outer):
            inner = interpreter_of(call.inputs)
            inputs = tuple(_lifted(value, inner) for value in call.inputs)
            if not has_bodies or isinstance(inner, Nodes):
                made = inner.apply(replace(call, inputs=inputs), n_outputs)
                outputs = [_apart(value, inputs) for value in made]
                node = outputs[0].producer() if has_bodies else None
                done = replace(call, inputs=inputs, outputs=tuple(outputs))
                self.calls.append(done if node is None else call_of(node))
                return outputs
        # Values computed at once need the calls of their iterations alone.
        return unrolled(replace(call, inputs=inputs), n_outputs)

    def constant(self, content: Array) -> Any:
        """Return fixed content as a value of the interpreter around."""
        with interpreting(self._outer):
            return interpreter_of(()).constant(content)

    def type_of(self, value: Any) -> Type | None:
        """Return the value's type by its own interpreter."""
        with interpreting(self._outer):
            return interpreter_of((value,)).type_of(value)

    def content_of(self, value: Any) -> Array | None:
        """Return the value's content by its own interpreter."""
        with interpreting(self._outer):
            return interpreter_of((value,)).content_of(value)


def _apart(output: Any, inputs: Sequence[Any]) -> Any:
    """Return an output as an object of its own: arrays may be handed through."""
    through = isinstance(output, np.ndarray) and any(output is value for value in inputs)
    return output.view() if through else output


def _lifted(value: Any, inner: Interpreter) -> Any:
    return inner.constant(value) if isinstance(value, np.ndarray) else value


def _distinct(inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Return the same values as one object each: a value given twice has two gradients."""
    seen: set[int] = set()
    made: list[Any] = []
    for x in inputs:
        # (A scalar of NumPy's would become another object when it is lifted.)
        x = np.asarray(x) if isinstance(x, np.generic) else x
        if id(x) in seen and x is not None:
            same = op("Identity", x)
            x = x.view() if same is x else same
        seen.add(id(x))
        made.append(x)
    return tuple(made)


@contextmanager
def recording() -> Iterator[Recorder]:
    """Note all calls that the builder makes inside, however they are interpreted."""
    with interpreting(recorder := Recorder()):
        yield recorder


def pull_back(
    function: Callable[..., Sequence[Any]], *inputs: Any
) -> tuple[tuple[Any, ...], Callable[[Sequence[Any]], list[Any]]]:
    """Return the results of a function, and the map from their gradients to those of its inputs.

    Args:
        function: Written over the builder; takes ``inputs``, some of which may be None.
        inputs: Values.
    """
    inputs = _distinct(inputs)
    with recording() as recorder:
        results = tuple(function(*inputs))

    def pull(gradients: Sequence[Any]) -> list[Any]:
        return accumulate(recorder.calls, results, gradients, inputs)

    return results, pull
