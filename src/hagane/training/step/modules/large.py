"""Updates of parameters behind a step's graph, in place.

A graph writes results beside its inputs. The new values of a parameter and of its states would take
several times its memory, and be copied once more; so the graph hands out its gradient. The
optimizer's rule follows as one loop over each parameter (``fused.py``), or, where that cannot be,
as a graph on pieces that stay in the cache.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.graph import CURRENT_OPSETS
from hagane.graph.types import TensorType
from hagane.machine import usable_cores
from hagane.ops.builder import Nodes
from hagane.ops.definition import Array
from hagane.ops.inference import GraphTypes
from hagane.runtime import InferenceSession, SessionOptions
from hagane.symbolic import symbol
from hagane.training.step.fused import Body, FusedUpdates, NoCompiler, body_of
from hagane.training.step.program import IR_VERSION, StepProgram, add_update
from hagane.training.step.rules import Group, Rule

# Elements of a parameter from which on it is updated apart from the graph.
LARGE = 1
# Elements of a piece: its values, old and new, stay in the last cache.
_PIECE = 1 << 17


class LargeUpdates:
    """The updates of the parameters that a step's graph leaves to them.

    Args:
        made: The step's program.
        groups: The optimizer's settings.
        rule: The optimizer's rule.
        options: Of the session that runs the step.
    """

    def __init__(
        self,
        made: StepProgram,
        groups: Sequence[Group],
        rule: Rule,
        options: SessionOptions | None,
    ):
        self._items = [item for item in made.updated if item.apart]
        inputs = {str(value.name): value for value in made.model.graph.inputs}
        types = {item.name: _type(inputs[item.name]) for item in self._items}
        self._kinds = {item.name: (item.group, types[item.name]) for item in self._items}
        self._models = {
            key: _model(rule, key[0], groups[key[0]], key[1])
            for key in dict.fromkeys(self._kinds.values())
        }
        self._options = options or SessionOptions()
        self._sessions: dict[tuple[int, ir.DataType], InferenceSession] = {}

    @cached_property
    def _fused(self) -> tuple[dict[tuple[int, ir.DataType], int], FusedUpdates | None]:
        """The numbers of the kinds that are loops in C, and these."""
        numbers: dict[tuple[int, ir.DataType], int] = {}
        bodies: list[Body] = []
        for item in self._items:
            key = self._kinds[item.name]
            names = ["p", *(f"p.{state}" for state in item.states)]
            if key not in numbers and (body := body_of(self._models[key].graph, names, "g")):
                numbers[key] = len(bodies)
                bodies.append(body)
        if not bodies:
            return {}, None
        threads = self._options.intra_op_num_threads or usable_cores()
        try:
            return numbers, FusedUpdates(bodies, threads)
        except (NoCompiler, OSError):
            return {}, None

    def update(
        self,
        gradients: Mapping[str, Array],
        arrays: Mapping[str, Array],
        scalars: Mapping[str, Mapping[str, Array]],
    ) -> None:
        """Update parameters and states in place.

        Args:
            gradients: Those of the parameters, by the names of these; the others stay.
            arrays: Parameters and states by name.
            scalars: The numbers of this step of each parameter, by the names of the rule's inputs.
        """
        numbers, fused = self._fused
        for item in self._items:
            if item.name not in gradients:
                continue
            key = self._kinds[item.name]
            own = [arrays[name] for name in item.names]
            gradient = gradients[item.name]
            step = scalars[item.name]
            known = fused is not None and key in numbers
            if known and fused is not None and fused.add(numbers[key], [*own, gradient], step):
                continue
            if fused is not None:
                fused.run()  # of parameters in front of it, whose memory this one may share
            names = ("p", *(f"p.{state}" for state in item.states))
            self._follow(key, dict(zip(names, own, strict=True)), gradient, step)
        if fused is not None:
            fused.run()

    def _follow(
        self,
        key: tuple[int, ir.DataType],
        given: Mapping[str, Array],
        gradient: Array,
        scalars: Mapping[str, Array],
    ) -> None:
        """Update one parameter by the graph of the rule."""
        if key not in self._sessions:
            self._sessions[key] = InferenceSession(self._models[key], self._options)
        session = self._sessions[key]
        known = {value.name for value in session.get_inputs()}
        numbers = {name: value for name, value in scalars.items() if name in known}
        _follow(session, given, gradient, numbers, known)


def _follow(
    session: InferenceSession,
    given: Mapping[str, Array],
    gradient: Array,
    numbers: Mapping[str, Array],
    known: set[str],
) -> None:
    size = gradient.size
    names = [f"{name}.new" for name in given]
    if not all(array.flags.c_contiguous for array in given.values()):
        feed = {**{name: np.ravel(array) for name, array in given.items()}, "g": gradient.ravel()}
        feed = {name: array for name, array in feed.items() if name in known}
        found = session.run(names, {**feed, **numbers})
        for (_, array), result in zip(given.items(), found, strict=True):
            array[...] = result.reshape(array.shape)
        return
    flat = {name: array.reshape(-1) for name, array in given.items()}
    g = gradient.reshape(-1)
    for start in range(0, size, _PIECE):
        part = slice(start, start + _PIECE)
        feed = {name: array[part] for name, array in flat.items() if name in known}
        found = session.run(names, {**feed, "g": g[part], **numbers})
        for array, result in zip(flat.values(), found, strict=True):
            array[part] = result


def _type(value: ir.Value) -> ir.DataType:
    assert value.dtype is not None
    return value.dtype


def _model(rule: Rule, number: int, group: Group, dtype: ir.DataType) -> ir.Model:
    """Return the update of one parameter of any number of elements, ``p`` by ``g``."""
    graph = ir.Graph([], [], nodes=[], name="update", opset_imports={"": CURRENT_OPSETS[""]})
    types = GraphTypes()
    count = symbol("n")

    def given(name: str, dtype: ir.DataType, *shape: Any) -> ir.Value:
        texts = ir.Shape([str(dim) for dim in shape])
        value = ir.Value(name=name, type=ir.TensorType(dtype), shape=texts)
        graph.inputs.append(value)
        types.types[value] = TensorType(dtype, tuple(shape))
        return value

    p, g = given("p", dtype, count), given("g", dtype, count)
    scalars = {
        name: given(f"group.{number}.{name}", ir.DataType.DOUBLE)
        for name in rule.scalars(group, 1, dict(rule.kept or {}))
    }
    add_update(Nodes(graph, types, name="update"), "p", number, p, g, rule, group, scalars)
    return ir.Model(graph, ir_version=IR_VERSION, producer_name="hagane", functions=[])
