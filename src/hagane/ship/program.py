"""The plan of a build: parts over slots, for each range of shapes."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx_ir as ir

from hagane.errors import UnsupportedModel
from hagane.native.ready.context import BY_REFERENCE
from hagane.native.ready.plan_file import (
    Plan,
    PlanArgument,
    PlanConstant,
    PlanPart,
    PlanProgram,
    PlanStep,
)
from hagane.native.run.compiled import Compiled
from hagane.native.run.engine import function_names, kernel_name
from hagane.native.run.memory import ARENA_SLACK, measure
from hagane.native.run.planned import plan_part
from hagane.native.run.tables import part_rows
from hagane.ops.definition import Array
from hagane.runtime.backends import NativePart
from hagane.runtime.pipeline import Built
from hagane.runtime.port import Refusal
from hagane.ship.manifest import TENSOR_TYPES, Argument
from hagane.ship.ranges import InputRange, name_ranges
from hagane.ship.weights import WeightFile

_SCRATCH_SLACK = 4096
# How many nodes that cannot be built are named.
_MOST_TOLD = 5
# Sessions compute such nodes by reference kernels, which builds do not have.
_BEYOND = "its kernel does not compute it for these data, or for these sizes"
# Of reasons for which it helps to know more about the inputs.
_OPEN = ("known rank", "only the data tell", "when it runs", "different shapes")


@dataclass(frozen=True)
class RangeProgram:
    """The parts of a model for a range of its inputs' sizes.

    Attributes:
        built: The program; nothing of it is compiled.
        inputs: The range.
        parts: The data of its parts.
    """

    built: Built
    inputs: tuple[InputRange, ...]
    parts: tuple[Compiled, ...]

    @classmethod
    def of(cls, built: Built, inputs: tuple[InputRange, ...]) -> RangeProgram:
        """Return the program of a pipeline's result.

        Raises:
            UnsupportedModel: Some nodes have no native kernel; all are named.
        """
        refused = built.on_reference()
        if refused:
            raise UnsupportedModel(_refusals(refused))
        parts = []
        for step in built.program.steps:
            assert isinstance(step.part, NativePart)
            parts.append(step.part.draft.data(Path(), Path()))
        return cls(built, inputs, tuple(parts))

    def kernels(self) -> dict[str, str]:
        """Return the C of the kernels by the symbols that parts name them by."""
        return {
            kernel_name(kernel.code): kernel.code
            for step in self.built.program.steps
            if isinstance(step.part, NativePart)
            for kernel in step.part.draft.low.recorder.kernels
            if kernel.code
        }

    def function_names(self) -> dict[str, str]:
        """Return the names of C functions by symbols."""
        return function_names(
            [
                kernel
                for step in self.built.program.steps
                if isinstance(step.part, NativePart)
                for kernel in step.part.draft.low.recorder.kernels
            ]
        )

    def value_bytes(self, threads: int) -> int | None:
        """Return the bytes of values of the largest run; None where only a run tells.

        Raises:
            MemoryError: They are beyond any memory.
        """
        names = {name: axis.most for name, axis in name_ranges(self.inputs).items()}
        total = 0
        for part in self.parts:
            kernels = part.kernels
            if any(kernel.control is not None for kernel in kernels) and _grows(part):
                return None
            try:
                found = measure(kernels, names)
                total += found.values + ARENA_SLACK + threads * (found.scratch + _SCRATCH_SLACK)
            except KeyError:
                return None
        return total


def _refusals(refused: Mapping[ir.Node, Refusal]) -> list[str]:
    """Return the nodes that cannot be built, the reasons and the remedies; of many, the first."""
    told = {_of_the_model(node): refusal for node, refusal in refused.items()}
    texts = [
        f"{node.op_type} '{node.name or node.outputs[0].name}' cannot be built: {refusal.reason}"
        for node, refusal in itertools.islice(told.items(), _MOST_TOLD)
    ]
    more = len(told) - len(texts)
    if more:
        texts.append(f"and {more} more nodes")
    remedies = dict.fromkeys(_remedy(*pair) for pair in told.items())
    return [*texts, f"remedy: {'; or '.join(remedies)}"]


def _of_the_model(node: ir.Node) -> ir.Node:
    """Return the If whose results a Reshape of ``flatten_branches`` forms; else the node itself."""
    if node.op_type != "Reshape":
        return node
    made = {value.producer() for value in node.inputs if value is not None}
    (first, *others) = made
    return first if first is not None and first.op_type == "If" and not others else node


def _remedy(node: ir.Node, refusal: Refusal) -> str:
    if node.op_type == "ZipMap":
        return (
            "export the classifier with its probabilities as a matrix (skl2onnx: "
            "options={'zipmap': False})"
        )
    values = [value for value in (*node.inputs, *node.outputs) if value is not None]
    if "STRING" in refusal.reason or any(value.dtype == ir.DataType.STRING for value in values):
        return "builds compute with numbers: give and take codes in place of texts"
    if any(isinstance(value.type, ir.SequenceType) for value in node.outputs):
        return (
            "builds give tensors: put the items of a sequence together, as ConcatFromSequence does"
        )
    if any(text in refusal.reason for text in _OPEN):
        return (
            "make inputs that decide on branches or sizes constants with --constant INPUT=NUMBER, "
            "and give sizes as numbers with --shape"
        )
    return "compute them outside the model, or run the model with hagane.InferenceSession"


def _grows(part: Compiled) -> bool:
    """Whether sizes in a part differ between iterations."""
    from hagane.native.kernels.control import changing_names, grows

    controls = [kernel.control for kernel in part.kernels]
    return bool(changing_names(controls) or grows(controls))


def build_plan(
    programs: Sequence[RangeProgram],
    inputs: Sequence[Argument],
    outputs: Sequence[Argument],
    weights: WeightFile,
) -> tuple[Plan, dict[str, str]]:
    """Return the plan of a build, and the C of its kernels by the names of functions.

    Args:
        programs: In the order in which they are tried.
        inputs: Of the model.
        outputs: Of the model.
        weights: Is given the weights, and closed.
    """
    names: dict[str, str] = {}
    kernels: dict[str, str] = {}
    for program in programs:
        for symbol, name in program.function_names().items():
            names.setdefault(symbol, name)
        kernels.update(program.kernels())
    calls = [kernel for program in programs for part in program.parts for kernel in part.kernels]
    functions = sorted({names[call.symbol] for call in calls if call.symbol is not None})
    numbers = {name: i for i, name in enumerate(functions)}
    parts: list[PlanPart] = []
    listed = []
    for program in programs:
        first = len(parts)
        for part in program.parts:
            rows = part_rows(part.kernels, part.inputs, part.outputs, part.equal)
            at = weights.add_part(part)
            places = [at[id(buffer)] for buffer in rows.weights]
            made = plan_part(rows, part.kernels, places, lambda symbol: numbers[names[symbol]])
            failures = tuple(_BEYOND if text == BY_REFERENCE else text for text in made.failures)
            parts.append(made._replace(failures=failures))
        listed.append(_program_of(program, first, weights))
    weights.close()
    plan = Plan(
        tuple(map(_argument, inputs)),
        tuple(map(_argument, outputs)),
        tuple(listed),
        tuple(parts),
        tuple(functions),
        weights.bytes,
    )
    return plan, {names[symbol]: code for symbol, code in kernels.items()}


def _argument(given: Argument) -> PlanArgument:
    return PlanArgument(given.name, given.type, tuple(given.least()), tuple(given.most()))


def _program_of(program: RangeProgram, first: int, weights: WeightFile) -> PlanProgram:
    """Return a program whose parts follow each other from the ``first`` one on."""
    found = program.built.program
    graph = program.built.model.graph
    slots: dict[int, int] = {}
    for slot, value in zip(found.inputs, graph.inputs, strict=True):
        if str(value.name) not in graph.initializers:
            slots[slot] = len(slots)

    def place(slot: int) -> int:
        return slots.setdefault(slot, len(slots))

    steps = []
    unnamed = -1
    for k, step in enumerate(found.steps):
        written = []
        for slot in step.outputs:
            if slot < 0:  # an output that nobody reads has a place of its own
                unnamed -= 1
                slot = unnamed
            written.append(place(slot))
        steps.append(PlanStep(first + k, tuple(map(place, step.inputs)), tuple(written)))
    constants = []
    for slot, value in found.constants:
        array = np.asarray(value)
        at = weights.add(array)
        constants.append(PlanConstant(place(slot), _type_of(array), array.shape, at))
    axes = [axis for each in program.inputs for axis in each.axes if axis]
    outputs = tuple(map(place, found.outputs))
    ends = tuple(axis.least for axis in axes), tuple(axis.most for axis in axes)
    return PlanProgram(len(slots), tuple(steps), tuple(constants), outputs, *ends)


def _type_of(array: Array) -> int:
    if array.dtype.name not in TENSOR_TYPES:
        raise UnsupportedModel([f"a constant of {array.dtype}: a build has tensors of numbers"])
    return TENSOR_TYPES[array.dtype.name]
