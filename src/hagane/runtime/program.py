"""A graph as a list of parts over numbered slots."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.definition import Array, RuntimeValue
from hagane.ops.folding import fold_nodes
from hagane.ops.inference import GraphTypes
from hagane.ops.values import tensor_to_array
from hagane.runtime.backends.reference import ReferenceBackend, constant_output
from hagane.runtime.device import CPU, Device, Value
from hagane.runtime.partition import Placement, place_nodes
from hagane.runtime.port import Backend, Bound, Part, Refusal, Region, SizesUnknown, Watch

ABSENT = -1
REFERENCE: Backend = ReferenceBackend()
Slot = Callable[[ir.Value, Device], int]


@dataclass(frozen=True, slots=True)
class Step:
    """A part and the slots that it reads and writes.

    Attributes:
        part: Computes some nodes.
        inputs: Slots to read; ``ABSENT`` for absent inputs.
        outputs: Slots to write; ``ABSENT`` for outputs without a name.
        release: Slots whose content is not needed afterwards.
        fallback: The same nodes on their reference kernels, for values of shapes that the part was
            not made for.
        inner: Slots that only the fallback writes and reads.
        late: Constants that only the fallback reads, and their slots.
        on_cpu: For inputs, then outputs of a part on another device, the slots that the fallback
            reads and writes in their place.
    """

    part: Part
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    release: tuple[int, ...] = ()
    fallback: tuple[Step, ...] = ()
    inner: tuple[int, ...] = ()
    late: tuple[tuple[int, ir.Value], ...] = ()
    on_cpu: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())


@dataclass(slots=True)
class Function:
    """A program as a function of captured values and inputs, from its second run on.

    ``straight.py`` makes it.

    Attributes:
        runs: How many runs there were without it, the first ones.
        call: From values to outputs.
        quiet: Whether it calls nothing of which NumPy might warn.
    """

    runs: int = 0
    call: Callable[..., list[RuntimeValue]] | None = None
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class Program:
    """Steps in order, over slots that hold inputs, constants and results.

    Inputs and outputs lie on the CPU.
    """

    n_slots: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    constants: tuple[tuple[int, Value], ...]
    steps: tuple[Step, ...]
    function: Function = field(default_factory=Function, init=False, compare=False, repr=False)

    def parts(self, backend: str | None = None) -> Iterator[Part]:
        """Yield the parts, those of bodies included, those of fallbacks left out.

        Args:
            backend: Yield the parts of this one alone.
        """
        for step in self.steps:
            if backend in (None, step.part.backend):
                yield step.part
            for body in step.part.bodies:
                assert isinstance(body, Body)
                yield from body.program.parts(backend)

    def open(self, settle: Callable[[], None]) -> None:
        """Make all parts ready to run.

        Raises:
            NoCompiler: A part cannot be compiled on this machine.
        """
        for part in self.parts():
            part.open(settle)


@dataclass(frozen=True, slots=True)
class Body:
    """A body of a node as a program of its own."""

    program: Program
    captured: tuple[ir.Value, ...]
    slots: tuple[int, ...]  # of captured values
    none_of_outputs: tuple[Array, ...]  # no slices of each output

    def bind(self, captured: Sequence[RuntimeValue], watch: Watch | None) -> Bound:
        """Return the body as a function of its inputs alone."""
        from hagane.runtime.execute import bound_body

        return bound_body(self, captured, watch)


@dataclass(frozen=True, slots=True)
class Planner:
    """All settings that decide about the parts of a graph and of its bodies.

    Attributes:
        backends: In order of preference; every node runs on its reference kernel if there are
            none.
        types: Types and shapes of all values.
        wait_for_sizes: Plan nothing if some node could be taken once sizes are known.
        refused: Is given the nodes that a backend claimed and did not take.
    """

    backends: tuple[Backend, ...]
    types: GraphTypes
    wait_for_sizes: bool = False
    refused: dict[ir.Node, Refusal] = field(default_factory=dict)

    def program(self, graph: ir.Graph) -> Program:
        """Return the program of a legalised, type-checked graph; nothing is compiled yet.

        Raises:
            SizesUnknown: ``wait_for_sizes``, and there is such a node.
        """
        program, captures = self._compile(graph, None)
        assert not captures, "a main graph captures nothing"
        return program

    def _compile(
        self, graph: ir.Graph, outer: Mapping[ir.Value, Array] | None
    ) -> tuple[Program, dict[ir.Value, int]]:
        slots = _Slots(graph)
        inputs = tuple(slots(value, CPU) for value in graph.inputs)
        arrays = {
            value: tensor_to_array(value.const_value)
            for value in graph.initializers.values()
            if value.const_value is not None
        }
        known = {**(outer or {}), **arrays}
        nodes = list(graph)
        if self.backends:
            folded = fold_nodes(nodes, known, self.types.types)
            nodes = [node for node in nodes if not all(v in folded for v in node.outputs)]
        else:
            constant = [node for node in nodes if (node.domain, node.op_type) == ("", "Constant")]
            folded = {node.outputs[0]: constant_output(node) for node in constant}
            nodes = [node for node in nodes if node.outputs[0] not in folded]
        arrays.update(folded)
        known.update(folded)
        steps: list[Step] = []
        for part in self._place(graph, nodes, known).parts:
            steps += slots.moves(part, arrays)
            steps.append(self._step(part, slots, varies=outer is not None))
        steps += slots.moves_to_cpu(graph.outputs, arrays)
        outputs = tuple(slots(value, CPU) for value in graph.outputs)
        read = {*outputs, *inputs, *(number for step in steps for number in step.inputs)}
        constants: list[tuple[int, Value]] = [
            (slots(v, CPU), _kept(array)) for v, array in arrays.items() if slots(v, CPU) in read
        ]
        constants += slots.moved_constants
        steps = [_with_late(step, arrays, slots, read) for step in steps]
        keep = {*outputs, *(number for number, _ in constants), *slots.captures.values()}
        program = Program(
            len(slots), inputs, outputs, tuple(constants), tuple(_with_releases(steps, keep))
        )
        return program, slots.captures

    def _place(
        self, graph: ir.Graph, nodes: Sequence[ir.Node], known: Mapping[ir.Value, Array]
    ) -> Placement:
        found = place_nodes(
            graph,
            nodes,
            self.types,
            known,
            (*self.backends, REFERENCE),
            lambda body: self._function(body, known),
        )
        if self.wait_for_sizes and any(item.needs_sizes for item in found.refused.values()):
            raise SizesUnknown
        self.refused.update(found.refused)
        return found

    def _function(self, graph: ir.Graph, known: Mapping[ir.Value, Array]) -> Body:
        program, captures = self._compile(graph, known)
        nothing = tuple(map(_nothing, graph.outputs))
        return Body(program, tuple(captures), tuple(captures.values()), nothing)

    def _step(self, part: Part, slot: Slot, *, varies: bool) -> Step:
        """Return the step of a part; ``varies`` if shapes may change from run to run."""
        made = _bare_step(part, slot)
        if part.backend == REFERENCE.name or not (varies or part.varies):
            return made
        plain = Planner((), self.types)
        region = Region(
            # Constants are late: those of the fallback are read only if it runs.
            part.nodes[0].graph,  # type: ignore[arg-type]
            part.nodes,
            frozenset(part.outputs),
            self.types,
            {},
            lambda body: plain._function(body, {}),
        )
        fallback = tuple(_bare_step(one, slot) for one in REFERENCE.plan(region).parts)
        written = {number for step in fallback for number in step.outputs}
        on_cpu: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
        if part.device is not CPU:
            on_cpu = (
                tuple(ABSENT if v is None else slot(v, CPU) for v in part.inputs),
                tuple(slot(value, CPU) for value in part.outputs),
            )
        inner = tuple(sorted(written - {ABSENT} - set(made.outputs)))
        return replace(made, fallback=fallback, inner=inner, on_cpu=on_cpu)


class _Transfer(Part):
    """A value brought from one device to another."""

    backend = "transfer"
    nodes = ()

    def __init__(self, value: ir.Value, source: Device, target: Device):
        self.inputs = self.outputs = (value,)
        self.source, self.device = source, target

    def run(self, values: Sequence[Value], watch: Watch | None = None) -> list[Value]:
        return [self.device.put(self.source.get(value)) for value in values]


class _Slots:
    """Numbers of values on devices, as a program comes about."""

    def __init__(self, graph: ir.Graph):
        self._own = set(graph.inputs) | set(graph.initializers.values())
        for node in graph:
            self._own.update(node.outputs)
        self._numbers: dict[tuple[ir.Value, str], int] = {}
        self._homes: dict[ir.Value, Device] = {}  # of values that another device computes
        self._moved: set[tuple[ir.Value, str]] = set()
        self.captures: dict[ir.Value, int] = {}
        self.moved_constants: list[tuple[int, Value]] = []

    def __len__(self) -> int:
        return len(self._numbers)

    def __call__(self, value: ir.Value, device: Device) -> int:
        key = value, device.name
        if key not in self._numbers:
            self._numbers[key] = len(self._numbers)
            if value not in self._own and device is CPU:
                self.captures[value] = self._numbers[key]
        return self._numbers[key]

    def moves(self, part: Part, arrays: Mapping[ir.Value, Array]) -> list[Step]:
        """Return the steps that bring the inputs of a part to its device."""
        wanted = [value for value in part.inputs if value is not None]
        steps = self._move(wanted, part.device, arrays)
        if part.device is not CPU:
            self._homes.update(dict.fromkeys(part.outputs, part.device))
        return steps

    def moves_to_cpu(
        self, values: Sequence[ir.Value], arrays: Mapping[ir.Value, Array]
    ) -> list[Step]:
        """Return the steps that bring values to the CPU."""
        return self._move(values, CPU, arrays)

    def _move(
        self, values: Sequence[ir.Value], device: Device, arrays: Mapping[ir.Value, Array]
    ) -> list[Step]:
        steps: list[Step] = []
        for value in values:
            home = self._homes.get(value, CPU)
            key = value, device.name
            if home is device or key in self._moved:
                continue
            self._moved.add(key)
            if value in arrays:
                self.moved_constants.append((self(value, device), device.put(arrays[value])))
                continue
            part = _Transfer(value, home, device)
            steps.append(Step(part, (self(value, home),), (self(value, device),)))
        return steps


def _bare_step(part: Part, slot: Slot) -> Step:
    device = part.device
    return Step(
        part,
        tuple(ABSENT if value is None else slot(value, device) for value in part.inputs),
        tuple(slot(value, device) if value.name else ABSENT for value in part.outputs),
    )


def _kept(array: Array) -> Array:
    """Return an array that looks into no file, and that no run and no caller can write into."""
    own = array if array.flags.owndata or array.dtype == object else np.array(array)
    view = own.view()
    view.flags.writeable = False
    return view


def _with_late(
    step: Step, arrays: Mapping[ir.Value, Array], slot: Slot, read: Container[int]
) -> Step:
    """Name the constants that a step reads only when its part does not serve."""
    if not step.fallback:
        return step
    wanted = set(_fallback_reads(step))
    late = ((slot(v, CPU), v) for v in arrays if slot(v, CPU) in wanted)
    return replace(step, late=tuple(item for item in late if item[0] not in read))


def _fallback_reads(step: Step) -> Iterator[int]:
    for node in step.fallback:
        yield from (number for number in node.inputs if number not in step.inner)


def _nothing(value: ir.Value) -> Array:
    """Return no tensors of a value's type, stacked: the result of a loop without turns."""
    dims = () if value.shape is None else value.shape.dims
    shape = [dim if isinstance(dim, int) else 0 for dim in dims]
    dtype: Any = np.float32
    if isinstance(value.type, ir.TensorType) and value.type.dtype != ir.DataType.UNDEFINED:
        dtype = value.type.dtype.numpy()
    return np.zeros((0, *shape), dtype)


def _with_releases(steps: Sequence[Step], keep: set[int]) -> Iterator[Step]:
    last_use: dict[int, int] = {}
    for index, step in enumerate(steps):
        for number in (*step.outputs, *step.inputs, *_fallback_reads(step)):
            last_use[number] = index
    by_step: dict[int, list[int]] = {}
    for number, index in last_use.items():
        if number != ABSENT and number not in keep:
            by_step.setdefault(index, []).append(number)
    for index, step in enumerate(steps):
        yield replace(step, release=tuple(by_step.get(index, ())))
