"""A graph as a list of kernel calls over numbered slots."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

import numpy as np
import onnx_ir as ir

from hagane.errors import HaganeError, KernelError
from hagane.graph.verify import describe
from hagane.native import NativePart, Plan, ShapeMismatch, Spent, is_pooled
from hagane.ops.context import known_attributes
from hagane.ops.definition import Array, OpDef, RuntimeValue
from hagane.ops.registry import find, schema_of
from hagane.ops.values import describe_value, tensor_to_array

ABSENT = -1


@dataclass(frozen=True, slots=True)
class Body:
    """A subgraph of a node: its program, and which outer slots it reads."""

    attribute: str
    program: Program
    captures: tuple[tuple[int, int], ...]  # (outer slot, inner slot)
    nothing: tuple[Array, ...]  # no slices of each output


@dataclass(frozen=True, slots=True)
class Step:
    """One kernel call.

    Attributes:
        node: The node that it stands for.
        op: Its operator.
        attributes: Plain attributes, defaults filled in.
        inputs: Slots to read; ``ABSENT`` for absent inputs.
        outputs: Slots to write; ``ABSENT`` for outputs that nobody reads.
        release: Slots whose content is not needed afterwards.
        bodies: Subgraphs, each passed to the kernel as a function.
    """

    node: ir.Node
    op: OpDef
    attributes: dict[str, Any]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    release: tuple[int, ...]
    bodies: tuple[Body, ...]


@dataclass(frozen=True, slots=True)
class NativeStep:
    """A call of compiled kernels in the place of several nodes.

    Attributes:
        part: The nodes and their kernels.
        inputs: Slots to read.
        outputs: Slots to write.
        release: Slots whose content is not needed afterwards.
        fallback: The same nodes on their reference kernels, for arrays whose shapes are not
            those that the kernels were compiled for.
        inner: Slots that only the fallback writes and reads.
        late: Constants that only the fallback reads, and their slots.
    """

    part: NativePart
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    release: tuple[int, ...]
    fallback: tuple[Step, ...]
    inner: tuple[int, ...]
    bodies: tuple[Body, ...] = ()
    late: tuple[tuple[int, ir.Value], ...] = ()


AnyStep: TypeAlias = "Step | NativeStep"


@dataclass(frozen=True, slots=True)
class Program:
    """Steps in order, over slots that hold inputs, constants and results."""

    n_slots: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    constants: tuple[tuple[int, RuntimeValue], ...]
    steps: tuple[AnyStep, ...]

    def native_parts(self) -> Iterator[NativePart]:
        """Yield the compiled parts, those of subgraphs included."""
        for step in self.steps:
            if isinstance(step, NativeStep):
                yield step.part
            for body in step.bodies:
                yield from body.program.native_parts()


class Observer(Protocol):
    """Who is told of each step of a run, and may end it."""

    @property
    def stop(self) -> Array | None:
        """One number that becomes 1 when loops shall make no other turn, if anything may do so."""

    def __call__(
        self,
        step: AnyStep,
        inputs: Sequence[RuntimeValue],
        outputs: Sequence[RuntimeValue],
        times: Sequence[Spent],
    ) -> None:
        """Take note of a step that ended, and of what each of its kernels took; may raise."""


# Returns the parts of a graph, the native ones compiled, given the constants it can see.
Planner = Callable[[ir.Graph, Mapping[ir.Value, Array]], Plan]


def compile_graph(graph: ir.Graph, planner: Planner | None = None) -> Program:
    """Return the program of a legalised, type-checked graph.

    Args:
        graph: What to run.
        planner: Compiles parts of it; every node runs on its reference kernel if None.
    """
    program, captures = _compile(graph, planner, None)
    assert not captures, "a main graph captures nothing"
    return program


def _compile(
    graph: ir.Graph, planner: Planner | None, outer: Mapping[ir.Value, Array] | None
) -> tuple[Program, dict[ir.Value, int]]:
    slots: dict[ir.Value, int] = {}
    captures: dict[ir.Value, int] = {}
    own = set(graph.inputs) | set(graph.initializers.values())
    for node in graph:
        own.update(node.outputs)

    def slot(value: ir.Value) -> int:
        if value not in slots:
            slots[value] = len(slots)
            if value not in own:
                captures[value] = slots[value]
        return slots[value]

    inputs = tuple(slot(value) for value in graph.inputs)
    arrays = {
        value: tensor_to_array(value.const_value)
        for value in graph.initializers.values()
        if value.const_value is not None
    }
    known = {**(outer or {}), **arrays}
    parts: Sequence[NativePart | ir.Node] = list(graph)
    if planner is not None:
        plan = planner(graph, known)
        parts = plan.parts
        arrays.update(plan.folded)
        known.update(plan.folded)
    constants: list[tuple[int, RuntimeValue]] = []
    steps: list[AnyStep] = []
    for part in parts:
        if isinstance(part, NativePart):
            steps.append(_native_step(part, slot, varies=outer is not None))
        elif part.op_type == "Constant" and part.domain == "":
            (array,) = find(part)([], _plain_attributes(part), 1)
            constants.append((slot(part.outputs[0]), array))
        else:
            steps.append(_step(part, slot, planner, known))
    outputs = tuple(slot(value) for value in graph.outputs)
    read = {*outputs, *inputs, *(number for step in steps for number in _reads(step))}
    constants += [(slot(v), _own(array)) for v, array in arrays.items() if slot(v) in read]
    steps = [_with_late(step, arrays, slot, read) for step in steps]
    keep = {*outputs, *(number for number, _ in constants), *captures.values()}
    program = Program(
        len(slots), inputs, outputs, tuple(constants), tuple(_with_releases(steps, keep))
    )
    return program, captures


def _step(
    node: ir.Node,
    slot: Callable[[ir.Value], int],
    planner: Planner | None,
    known: Mapping[ir.Value, Array],
) -> Step:
    return Step(
        node,
        find(node),
        _plain_attributes(node),
        tuple(ABSENT if value is None else slot(value) for value in node.inputs),
        tuple(slot(value) if value.name else ABSENT for value in node.outputs),
        (),
        tuple(_bodies(node, slot, planner, known)),
    )


def _native_step(part: NativePart, slot: Callable[[ir.Value], int], *, varies: bool) -> NativeStep:
    """Return a call of compiled kernels; ``varies`` if shapes may change from run to run."""
    inputs = tuple(slot(value) for value in part.inputs)
    outputs = tuple(slot(value) for value in part.outputs)
    if not (varies or part.segment.may_mismatch):
        return NativeStep(part, inputs, outputs, (), (), ())
    fallback = tuple(_step(node, slot, None, {}) for node in part.nodes)
    written = {number for step in fallback for number in step.outputs}
    inner = tuple(sorted(written - {ABSENT} - set(outputs)))
    return NativeStep(part, inputs, outputs, (), fallback, inner)


def _own(array: Array) -> Array:
    """Return an array that looks into no file."""
    return array if array.flags.owndata or array.dtype == object else np.array(array)


def _with_late(
    step: AnyStep,
    arrays: Mapping[ir.Value, Array],
    slot: Callable[[ir.Value], int],
    read: Container[int],
) -> AnyStep:
    """Name the constants that a step reads only when its kernels do not serve."""
    if not isinstance(step, NativeStep) or not step.fallback:
        return step
    wanted = set(_fallback_reads(step))
    late = tuple((slot(v), v) for v in arrays if slot(v) in wanted and slot(v) not in read)
    return replace(step, late=late)


def _reads(step: AnyStep) -> Iterator[int]:
    yield from step.inputs
    yield from (outer for body in step.bodies for outer, _ in body.captures)


def _fallback_reads(step: NativeStep) -> Iterator[int]:
    for node in step.fallback:
        yield from (number for number in _reads(node) if number not in step.inner)


def _bodies(
    node: ir.Node,
    slot: Callable[[ir.Value], int],
    planner: Planner | None,
    known: Mapping[ir.Value, Array],
) -> Iterator[Body]:
    for name, attribute in node.attributes.items():
        if attribute.type != ir.AttributeType.GRAPH:
            continue
        program, captured = _compile(attribute.as_graph(), planner, known)
        captures = tuple((slot(value), inner) for value, inner in captured.items())
        nothing = tuple(map(_nothing, attribute.as_graph().outputs))
        yield Body(name, program, captures, nothing)


def _nothing(value: ir.Value) -> Array:
    """Return no tensors of a value's type, stacked: what a loop without turns leaves behind."""
    dims = () if value.shape is None else value.shape.dims
    shape = [dim if isinstance(dim, int) else 0 for dim in dims]
    dtype: Any = np.float32
    if isinstance(value.type, ir.TensorType) and value.type.dtype != ir.DataType.UNDEFINED:
        dtype = value.type.dtype.numpy()
    return np.zeros((0, *shape), dtype)


def _plain_attributes(node: ir.Node) -> dict[str, Any]:
    values = known_attributes(node, schema_of(node).defaults)
    return {name: value for name, value in values.items() if not isinstance(value, ir.Graph)}


def _with_releases(steps: Sequence[AnyStep], keep: set[int]) -> Iterator[AnyStep]:
    last_use: dict[int, int] = {}
    for index, step in enumerate(steps):
        late = _fallback_reads(step) if isinstance(step, NativeStep) else ()
        for number in (*step.outputs, *_reads(step), *late):
            last_use[number] = index
    by_step: dict[int, list[int]] = {}
    for number, index in last_use.items():
        if number != ABSENT and number not in keep:
            by_step.setdefault(index, []).append(number)
    for index, step in enumerate(steps):
        yield replace(step, release=tuple(by_step.get(index, ())))


def execute(
    program: Program,
    inputs: Sequence[RuntimeValue],
    captured: Mapping[int, RuntimeValue] | None = None,
    observe: Observer | None = None,
) -> list[RuntimeValue]:
    """Run ``program`` and return its outputs.

    Args:
        program: What to run.
        inputs: One value an input.
        captured: Values of outer graphs, by slot.
        observe: Called after each step with its inputs and outputs; may raise to stop the run.

    Raises:
        KernelError: A kernel failed; the message names its node.
    """
    frame: list[RuntimeValue] = [None] * program.n_slots
    for number, value in program.constants:
        frame[number] = value
    if captured is not None:
        for number, value in captured.items():
            frame[number] = value
    for number, value in zip(program.inputs, inputs, strict=True):
        frame[number] = value
    with np.errstate(all="ignore"):
        for step in program.steps:
            if isinstance(step, NativeStep):
                _execute_native(step, frame, observe)
            else:
                _execute_step(step, frame, observe)
    return [frame[number] for number in program.outputs]


def _execute_native(step: NativeStep, frame: list[RuntimeValue], observe: Observer | None) -> None:
    arguments = [frame[number] for number in step.inputs]
    times: list[Spent] | None = None if observe is None else []
    stop = None if observe is None else observe.stop
    try:
        results = step.part.segment.run(arguments, times, stop)  # type: ignore[arg-type]
    except ShapeMismatch:
        for number, constant in step.late:
            frame[number] = constant_content(constant)
        for node in step.fallback:
            _execute_step(node, frame, observe)
        for number in (*step.inner, *step.release, *(number for number, _ in step.late)):
            frame[number] = None
        return
    for number, value in zip(step.outputs, results, strict=True):
        frame[number] = value
    if observe is not None:
        observe(step, arguments, results, times or ())
    for number in step.release:
        frame[number] = None


def constant_content(value: ir.Value) -> RuntimeValue:
    """Return a constant, computed by its reference kernels if nodes make it of others."""
    if value.const_value is not None:
        return tensor_to_array(value.const_value)
    node = value.producer()
    assert node is not None, value
    arguments = [None if item is None else constant_content(item) for item in node.inputs]
    results = find(node)(arguments, _plain_attributes(node), len(node.outputs))
    return results[list(node.outputs).index(value)]


def _execute_step(step: Step, frame: list[RuntimeValue], observe: Observer | None) -> None:
    arguments = [None if number == ABSENT else frame[number] for number in step.inputs]
    attributes = step.attributes
    if step.bodies:
        attributes = {
            **attributes,
            **{body.attribute: _Function(body, frame, observe) for body in step.bodies},
        }
    try:
        results = step.op(arguments, attributes, len(step.outputs))
    except HaganeError:
        raise
    except Exception as error:
        shown = ", ".join(describe_value(value) for value in arguments)
        raise KernelError(
            f"{describe(step.node)} failed: {type(error).__name__}: {error}; inputs: {shown}"
        ) from error
    for number, value in zip(step.outputs, results, strict=False):
        if number != ABSENT:
            frame[number] = np.asarray(value) if isinstance(value, np.generic) else value
    if observe is not None:
        observe(step, arguments, results, ())
    for number in step.release:
        frame[number] = None


class _Function:
    """A body as a function of its inputs."""

    def __init__(self, body: Body, frame: list[RuntimeValue], observe: Observer | None):
        self._body, self._observe = body, observe
        self._captured = {inner: frame[outer] for outer, inner in body.captures}

    def __call__(self, *inputs: RuntimeValue) -> list[RuntimeValue]:
        return execute(self._body.program, inputs, self._captured, self._observe)

    def nothing(self, index: int) -> Array:
        """Return no tensors of an output, stacked."""
        return self._body.nothing[index].copy()


def outputs_of(values: Sequence[RuntimeValue], shared: Sequence[RuntimeValue]) -> list[Any]:
    """Return results that the caller owns: contiguous, writable, no view of ``shared`` arrays."""
    borrowed = {id(value) for value in shared}
    return [_owned(value, borrowed) for value in values]


def _owned(value: RuntimeValue, borrowed: set[int]) -> Any:
    if isinstance(value, list):
        return [_owned(item, borrowed) for item in value]
    if not isinstance(value, np.ndarray):
        return value
    if id(value) in borrowed or not _is_own(value):
        return np.array(value, order="C", copy=True)
    return value


def _is_own(array: Array) -> bool:
    flags = array.flags
    whole = flags.owndata or is_pooled(array)
    return bool(whole and flags.c_contiguous and flags.writeable)
