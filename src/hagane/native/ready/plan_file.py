"""A plan: a compiled program as bytes, the same in the cache of sessions and in the libraries of builds.

A plan has the tables of all parts (``native/c/tables.h``), the order in which they run, constants,
inputs and outputs. Beside it lie the machine code of its kernels, which it names, and one file of
packed weights, in which it gives places. ``ship/c/plan.c`` reads the same in C.

Numbers are little-endian; positions count bytes from the start of the plan and are multiples of 8, but
for texts, which are UTF-8 and end with a zero byte. Records consist of 64-bit numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from hagane.native.ready.rows import ARRAYS, COUNTS, TYPES

# "HGPLAN" and two zero bytes.
MAGIC = int.from_bytes(b"HGPLAN\0\0", "little")
# Changes whenever the numbers, or those of the engine's tables, mean something else.
FORMAT = 7
NOTHING = -1  # the function of a loop or branch; the place of a weight that lies elsewhere
LARGEST = (1 << 63) - 1  # a size that only a run tells

_NAMES = {number: name for name, number in TYPES.items()}

# The words of each kind of record, in order.
_HEADER = (
    *("magic", "format", "bytes", "weight_bytes"),
    *("n_inputs", "inputs", "n_outputs", "outputs", "n_programs", "programs"),
    *("n_parts", "parts", "n_functions", "functions"),
)
_PROGRAM = (
    *("n_slots", "n_steps", "steps", "n_constants", "constants", "n_outputs", "outputs"),
    *("n_bounds", "least", "most"),
)
_SPANS = (*ARRAYS, "functions", "labels", "failures", "weights")
_WIDE = frozenset(("constants", "labels", "failures", "weights"))  # arrays of 64-bit numbers


class PlanArgument(NamedTuple):
    """An input or output of a plan.

    Attributes:
        name: Its name.
        type: The element type, as ONNX numbers them.
        least: The smallest size of each axis.
        most: The largest one; ``LARGEST`` where nothing limits it.
    """

    name: str
    type: int
    least: tuple[int, ...]
    most: tuple[int, ...]


class PlanConstant(NamedTuple):
    """A tensor that lies among the weights: its slot, element type, shape and place in bytes."""

    slot: int
    type: int
    shape: tuple[int, ...]
    at: int


class PlanStep(NamedTuple):
    """A part and the slots that it reads and writes."""

    part: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


class PlanProgram(NamedTuple):
    """Parts in order, over slots, for a range of shapes.

    Attributes:
        slots: How many there are; the first ones are the inputs.
        steps: The parts that run.
        constants: Slots that have a value from the start.
        outputs: The slots of the outputs.
        least: The smallest size of each axis of each input, in order.
        most: The largest one.
    """

    slots: int
    steps: tuple[PlanStep, ...]
    constants: tuple[PlanConstant, ...]
    outputs: tuple[int, ...]
    least: tuple[int, ...]
    most: tuple[int, ...]


class PlanPart(NamedTuple):
    """The tables of a part.

    Attributes:
        counts: The counts of hgt_part, by name.
        arrays: Its tables, by name.
        functions: Of each kernel, which of the plan's functions it is, or ``NOTHING``.
        labels: The name of each kernel.
        failures: What its failure says.
        weights: The place of each packed weight in bytes, or ``NOTHING``.
    """

    counts: Mapping[str, int]
    arrays: Mapping[str, np.ndarray]
    functions: np.ndarray
    labels: tuple[str, ...]
    failures: tuple[str, ...]
    weights: np.ndarray


class Plan(NamedTuple):
    """A compiled program.

    Attributes:
        inputs: Of the model.
        outputs: Of the model.
        programs: Each for a range of shapes, in the order in which they are tried.
        parts: What programs consist of.
        functions: The names of the kernels' functions.
        weight_bytes: The size of the file of weights.
    """

    inputs: tuple[PlanArgument, ...]
    outputs: tuple[PlanArgument, ...]
    programs: tuple[PlanProgram, ...]
    parts: tuple[PlanPart, ...]
    functions: tuple[str, ...]
    weight_bytes: int


def type_name(number: int) -> str:
    """Return the name of an element type by ONNX's number.

    Raises:
        ValueError: There is none.
    """
    if number not in _NAMES:
        raise ValueError(f"element type {number}")
    return _NAMES[number]


def plan_bytes(plan: Plan) -> bytes:
    """Return a plan as bytes."""
    return _Writer().plan(plan)


def read_plan(content: np.ndarray) -> Plan:
    """Return the plan of some bytes; its arrays look into them.

    Args:
        content: Array of uint8 that begins at a multiple of 8.

    Raises:
        ValueError: They are no plan of this version, or positions lie beyond their end.
    """
    return _Reader(content).plan()


class _Writer:
    def __init__(self) -> None:
        self._content = bytearray(8 * len(_HEADER))
        self._texts: dict[str, int] = {}

    def plan(self, plan: Plan) -> bytes:
        names = self._wide([self._text(name) for name in plan.functions])
        parts = [self._part(part) for part in plan.parts]
        programs = self._records([self._program(program) for program in plan.programs])
        inputs = self._records([self._argument(each) for each in plan.inputs])
        outputs = self._records([self._argument(each) for each in plan.outputs])
        words = {
            "magic": MAGIC,
            "format": FORMAT,
            "weight_bytes": plan.weight_bytes,
            "n_inputs": len(plan.inputs),
            "inputs": inputs,
            "n_outputs": len(plan.outputs),
            "outputs": outputs,
            "n_programs": len(plan.programs),
            "programs": programs,
            "n_parts": len(parts),
            "parts": self._wide(parts),
            "n_functions": len(plan.functions),
            "functions": names,
        }
        self._pad()
        words["bytes"] = len(self._content)
        header = np.array([words[name] for name in _HEADER], "<i8").tobytes()
        self._content[: len(header)] = header
        return bytes(self._content)

    def _pad(self) -> None:
        self._content += bytes(-len(self._content) % 8)

    def _put(self, array: np.ndarray) -> int:
        self._pad()
        at = len(self._content)
        self._content += array.tobytes()
        return at

    def _wide(self, numbers: Iterable[int]) -> int:
        # (Arrays of no number have a place too.)
        return self._put(np.array([*numbers, 0], "<i8"))

    def _narrow(self, numbers: Iterable[int]) -> int:
        return self._put(np.array([*numbers, 0], "<i4"))

    def _records(self, records: Sequence[Sequence[int]]) -> int:
        return self._wide(number for record in records for number in record)

    def _text(self, text: str) -> int:
        if text not in self._texts:
            self._texts[text] = len(self._content)
            self._content += text.encode("utf-8", "surrogatepass") + b"\0"
        return self._texts[text]

    def _argument(self, given: PlanArgument) -> tuple[int, ...]:
        ends = self._wide(given.least), self._wide(given.most)
        return (self._text(given.name), given.type, len(given.least), *ends)

    def _program(self, program: PlanProgram) -> tuple[int, ...]:
        steps = [
            (s.part, len(s.inputs), self._narrow(s.inputs), len(s.outputs), self._narrow(s.outputs))
            for s in program.steps
        ]
        constants = [
            (each.slot, each.type, len(each.shape), each.at, self._wide(each.shape))
            for each in program.constants
        ]
        return (
            *(program.slots, len(steps), self._records(steps)),
            *(len(constants), self._records(constants)),
            *(len(program.outputs), self._narrow(program.outputs)),
            *(len(program.least), self._wide(program.least), self._wide(program.most)),
        )

    def _part(self, part: PlanPart) -> int:
        found = {
            **part.arrays,
            "functions": part.functions,
            "labels": np.array([*map(self._text, part.labels), 0], "<i8"),
            "failures": np.array([*map(self._text, part.failures), 0], "<i8"),
            "weights": part.weights,
        }
        spans = []
        for name in _SPANS:
            array = found[name].astype("<i8" if name in _WIDE else "<i4", copy=False)
            spans += [self._put(array), array.size]
        return self._wide([*(part.counts[name] for name in COUNTS), *spans])


class _Reader:
    def __init__(self, content: np.ndarray):
        self._content = content
        self._bytes = content.tobytes()
        self._known: dict[int, str] = {}

    def plan(self) -> Plan:
        header = dict(zip(_HEADER, self._numbers(0, len(_HEADER)), strict=True))
        if header["magic"] != MAGIC or header["format"] != FORMAT:
            raise ValueError("no plan of this version")
        if header["bytes"] != self._content.size:
            raise ValueError(f"a plan of {header['bytes']} bytes has {self._content.size}")
        functions = self._numbers(header["functions"], header["n_functions"])
        parts = self._numbers(header["parts"], header["n_parts"])
        return Plan(
            self._each(header["inputs"], header["n_inputs"], 5, self._argument),
            self._each(header["outputs"], header["n_outputs"], 5, self._argument),
            self._each(header["programs"], header["n_programs"], len(_PROGRAM), self._program),
            tuple(map(self._part, parts)),
            tuple(map(self._text, functions)),
            header["weight_bytes"],
        )

    def _array(self, at: int, count: int, dtype: str) -> np.ndarray:
        size = count * (4 if dtype == "<i4" else 8)
        if not 0 <= at <= at + size <= self._content.size or count < 0 or at % 8:
            raise ValueError(f"{count} numbers at {at} of a plan of {self._content.size} bytes")
        found: np.ndarray = self._content[at : at + size].view(dtype)
        return found

    def _numbers(self, at: int, count: int, dtype: str = "<i8") -> tuple[int, ...]:
        return tuple(self._array(at, count, dtype).tolist())

    def _each(
        self, at: int, count: int, words: int, read: Callable[[Sequence[int]], Any]
    ) -> tuple[Any, ...]:
        numbers = self._numbers(at, count * words)
        return tuple(read(numbers[i : i + words]) for i in range(0, len(numbers), words))

    def _text(self, at: int) -> str:
        if at not in self._known:
            end = self._bytes.find(b"\0", at) if at >= 0 else -1
            if end < 0:
                raise ValueError(f"a text at {at} of a plan of {self._content.size} bytes")
            self._known[at] = self._bytes[at:end].decode("utf-8", "surrogatepass")
        return self._known[at]

    def _argument(self, words: Sequence[int]) -> PlanArgument:
        name, type_, rank, least, most = words
        ends = self._numbers(least, rank), self._numbers(most, rank)
        return PlanArgument(self._text(name), type_, *ends)

    def _program(self, words: Sequence[int]) -> PlanProgram:
        found = dict(zip(_PROGRAM, words, strict=True))
        return PlanProgram(
            found["n_slots"],
            self._each(found["steps"], found["n_steps"], 5, self._step),
            self._each(found["constants"], found["n_constants"], 5, self._constant),
            self._numbers(found["outputs"], found["n_outputs"], "<i4"),
            self._numbers(found["least"], found["n_bounds"]),
            self._numbers(found["most"], found["n_bounds"]),
        )

    def _step(self, words: Sequence[int]) -> PlanStep:
        part, n_inputs, inputs, n_outputs, outputs = words
        slots = self._numbers(inputs, n_inputs, "<i4"), self._numbers(outputs, n_outputs, "<i4")
        return PlanStep(part, *slots)

    def _constant(self, words: Sequence[int]) -> PlanConstant:
        slot, type_, rank, at, shape = words
        return PlanConstant(slot, type_, self._numbers(shape, rank), at)

    def _part(self, at: int) -> PlanPart:
        words = self._numbers(at, len(COUNTS) + 2 * len(_SPANS))
        counts = dict(zip(COUNTS, words[: len(COUNTS)], strict=True))
        spans = zip(words[len(COUNTS) :: 2], words[len(COUNTS) + 1 :: 2], strict=True)
        found = {
            name: self._array(place, count, "<i8" if name in _WIDE else "<i4")
            for name, (place, count) in zip(_SPANS, spans, strict=True)
        }
        kernels = counts["kernels"]
        labels, failures = (
            tuple(map(self._text, found.pop(name)[:kernels].tolist()))
            for name in ("labels", "failures")
        )
        functions, weights = found.pop("functions"), found.pop("weights")
        return PlanPart(counts, found, functions, labels, failures, weights)
