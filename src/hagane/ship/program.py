"""Programs as C: parts over slots, for each range of shapes."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx_ir as ir

from hagane.errors import UnsupportedModel
from hagane.native.run.compiled import Compiled
from hagane.native.run.engine import function_names, kernel_name
from hagane.native.run.memory import ARENA_SLACK, measure
from hagane.native.run.tables import TYPES
from hagane.ops.definition import Array
from hagane.runtime.backends import NativePart
from hagane.runtime.pipeline import Built
from hagane.runtime.port import Refusal
from hagane.ship.library import Sources
from hagane.ship.manifest import Argument
from hagane.ship.ranges import InputRange, name_ranges
from hagane.ship.tables import array_of, c_string, declarations, part_table
from hagane.ship.weights import WeightFile

_SCRATCH_SLACK = 4096
# How many nodes that cannot be built are named.
_MOST_TOLD = 5
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
    texts = [
        f"{node.op_type} '{node.name or node.outputs[0].name}' cannot be built: {refusal.reason}"
        for node, refusal in itertools.islice(refused.items(), _MOST_TOLD)
    ]
    more = len(refused) - len(texts)
    if more:
        texts.append(f"and {more} more nodes")
    remedies = dict.fromkeys(_remedy(*pair) for pair in refused.items())
    return [*texts, f"remedy: {'; or '.join(remedies)}"]


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


def program_sources(
    programs: Sequence[RangeProgram],
    inputs: Sequence[Argument],
    outputs: Sequence[Argument],
    weights: WeightFile,
) -> Sources:
    """Return the C of a build, but for the table that stands for all of it.

    Args:
        programs: In the order in which they are tried.
        inputs: Of the model.
        outputs: Of the model.
        weights: Is given the weights.
    """
    functions: dict[str, str] = {}
    kernels: dict[str, str] = {}
    for program in programs:
        for symbol, name in program.function_names().items():
            functions.setdefault(symbol, name)
        kernels.update(program.kernels())
    by_name = {functions[symbol]: code for symbol, code in kernels.items()}
    calls = [kernel for program in programs for part in program.parts for kernel in part.kernels]
    text = [declarations(calls, functions.__getitem__)]
    rows = []
    for i, program in enumerate(programs):
        made, row = _program_text(f"p{i}", program, functions, weights)
        text.append(made)
        rows.append(row)
    text.append(array_of("hgb_program", "programs", rows))
    for name, arguments in (("inputs", inputs), ("outputs", outputs)):
        lines = []
        for i, each in enumerate(arguments):
            text.append(array_of("int64_t", f"{name}_least_{i}", _numbers(each.least())))
            text.append(array_of("int64_t", f"{name}_most_{i}", _numbers(each.most())))
            ends = f"{name}_least_{i}, {name}_most_{i}"
            lines.append(f"{{{c_string(each.name)}, {each.type}, {len(each.axes)}, {ends}}}")
        text.append(array_of("hgb_argument", name, lines))
    return Sources(by_name, "".join(text))


def _numbers(numbers: Sequence[int]) -> list[str]:
    return [f"{number}L" for number in numbers]


def _program_text(
    name: str, program: RangeProgram, functions: Mapping[str, str], weights: WeightFile
) -> tuple[str, str]:
    found = program.built.program
    graph = program.built.model.graph
    slots: dict[int, int] = {}
    for slot, value in zip(found.inputs, graph.inputs, strict=True):
        if str(value.name) not in graph.initializers:
            slots[slot] = len(slots)

    def place(slot: int) -> int:
        return slots.setdefault(slot, len(slots))

    text = []
    steps = []
    unnamed = -1
    for k, (step, part) in enumerate(zip(found.steps, program.parts, strict=True)):
        table = part_table(f"{name}_{k}", part, weights.add_part(part), functions.__getitem__)
        text.append(table.text)
        written = []
        for slot in step.outputs:
            if slot < 0:  # an output that nobody reads has a place of its own
                unnamed -= 1
                slot = unnamed
            written.append(place(slot))
        text.append(array_of("int32_t", f"{name}_{k}_reads", map(place, step.inputs)))
        text.append(array_of("int32_t", f"{name}_{k}_writes", written))
        steps.append(f"{{&{name}_{k}, {name}_{k}_reads, {name}_{k}_writes}}")
    constants = []
    for i, (slot, value) in enumerate(found.constants):
        array = np.asarray(value)
        text.append(array_of("int64_t", f"{name}_shape_{i}", _numbers(array.shape)))
        numbers = (place(slot), _type_of(array), array.ndim, f"{weights.add(array)}L")
        constants.append(f"{{{', '.join(map(str, numbers))}, {name}_shape_{i}}}")
    axes = [axis for each in program.inputs for axis in each.axes]
    text += [
        array_of("hgb_step", f"{name}_steps", steps),
        array_of("hgb_constant", f"{name}_constants", constants),
        array_of("int32_t", f"{name}_outputs", map(place, found.outputs)),
        array_of("int64_t", f"{name}_least", (f"{axis.least}L" for axis in axes if axis)),
        array_of("int64_t", f"{name}_most", (f"{axis.most}L" for axis in axes if axis)),
    ]
    row = (
        f"{{{len(slots)}, {len(steps)}, {len(constants)}, {name}_steps, {name}_constants, "
        f"{name}_outputs, {name}_least, {name}_most}}"
    )
    return "".join(text), row


def _type_of(array: Array) -> int:
    if array.dtype.name not in TYPES:
        raise UnsupportedModel([f"a constant of {array.dtype}: a build has tensors of numbers"])
    return TYPES[array.dtype.name]


def model_text(
    build: str, inputs: int, outputs: int, programs: int, weight_bytes: int, *, embedded: bool
) -> str:
    """Return the table that stands for a whole build, and that others find by its name."""
    content = "hgb_weights" if embedded else "0"
    return (
        f'extern const char hgb_weights[] __attribute__((visibility("hidden")));\n'
        # (The name is that of another archive's tables where a program has several.)
        "static const hgb_model own_tables = {\n"
        f"  HGB_FORMAT, {c_string(build)}, {inputs}, {outputs}, {programs}, inputs, outputs, "
        f"programs, {content}, {weight_bytes}L, 0}};\n"
        'extern const hgb_model hagane_built __attribute__((visibility("default"), '
        'alias("own_tables")));\n'
        "static hgb_archive own_archive = {&own_tables, 0};\n"
        "__attribute__((constructor)) static void register_own(void) {\n"
        "  hgb_register(&own_archive);\n}\n"
    )
