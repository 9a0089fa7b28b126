"""Programs executed: slots filled part by part, and results that belong to the caller."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hagane.native import is_pooled
from hagane.ops.definition import Array, RuntimeValue
from hagane.runtime.backends.reference import constant_content
from hagane.runtime.device import Value
from hagane.runtime.port import Observer, Part, ShapeMismatch, Watch
from hagane.runtime.program import ABSENT, REFERENCE, Body, Program, Step


def execute(
    program: Program,
    inputs: Sequence[RuntimeValue],
    observe: Observer | None = None,
) -> list[RuntimeValue]:
    """Run ``program`` and return its outputs.

    Args:
        program: The program to run.
        inputs: One value an input.
        observe: Called after each part with its inputs and outputs; may raise to stop the run.

    Raises:
        KernelError: A kernel failed; the message names its node.
    """
    call = None if observe is not None else _function_of(program, ())
    if call is not None and program.function.quiet:
        return call(*inputs)
    with np.errstate(all="ignore"):
        if call is not None:
            return call(*inputs)
        return _execute(program, _frame_of(program, {}), inputs, observe)


def _function_of(
    program: Program, captured: Sequence[int]
) -> Callable[..., list[RuntimeValue]] | None:
    """Return a program as a function from its second run on: one run is not worth making it."""
    function = program.function
    if function.call is None:
        function.runs += 1
        if function.runs > 1:
            from hagane.runtime.straight import straight  # few sessions need it

            function.call = straight(program, captured, _alone)
            function.quiet = all(map(_is_quiet, program.parts()))
    return function.call


def _alone(step: Step, frame: list[Value]) -> None:
    """Compute a step on reference kernels, unwatched."""
    with np.errstate(all="ignore"):
        _fall_back(step, frame, None)


def _is_quiet(part: Part) -> bool:
    """Whether a part is compiled, or moves values as they are."""
    others = part.nodes if part.backend == REFERENCE.name else ()
    return all(node.domain == "" and node.op_type in _MOVING for node in others)


def _frame_of(program: Program, captured: Mapping[int, RuntimeValue]) -> list[Value]:
    """Return slots of which constants and captured values are filled."""
    frame: list[Value] = [None] * program.n_slots
    for number, value in program.constants:
        frame[number] = value
    for number, value in captured.items():
        frame[number] = value
    return frame


def _execute(
    program: Program,
    frame: list[Value],
    inputs: Sequence[RuntimeValue],
    observe: Observer | None,
) -> list[RuntimeValue]:
    """Run a program on slots, which it fills."""
    for number, value in zip(program.inputs, inputs, strict=True):
        frame[number] = value
    for step in program.steps:
        _run(step, frame, observe)
    return [frame[number] for number in program.outputs]


def _run(step: Step, frame: list[Value], observe: Observer | None) -> None:
    arguments = [None if number == ABSENT else frame[number] for number in step.inputs]
    watch = None if observe is None else Watch(observe)
    try:
        results = step.part.run(arguments, watch)
    except ShapeMismatch:
        _fall_back(step, frame, observe)
        return
    for number, value in zip(step.outputs, results, strict=False):
        if number != ABSENT:
            frame[number] = value
    if watch is not None:
        watch.observer(step.part, arguments, results, watch.records)
    for number in step.release:
        frame[number] = None


def _fall_back(step: Step, frame: list[Value], observe: Observer | None) -> None:
    """Compute a step on reference kernels."""
    device = step.part.device
    for number, constant in step.late:
        frame[number] = constant_content(constant)
    read, written = step.on_cpu
    for number, on_cpu in zip(step.inputs, read, strict=bool(read)):
        if on_cpu != ABSENT:
            frame[on_cpu] = device.get(frame[number])
    for node in step.fallback:
        _run(node, frame, observe)
    for number, on_cpu in zip(step.outputs, written, strict=bool(written)):
        frame[number] = device.put(frame[on_cpu])
    for number in (*step.inner, *step.release, *(number for number, _ in step.late)):
        frame[number] = None


class BoundBody(partial[list[RuntimeValue]]):
    """A body as a function of its inputs, for the time of a run of the node that has it."""

    body: Body

    def nothing(self, index: int) -> Array:
        """Return no tensors of an output, stacked."""
        return self.body.none_of_outputs[index].copy()


def bound_body(body: Body, captured: Sequence[RuntimeValue], watch: Watch | None) -> BoundBody:
    """Return a body as a function of its inputs alone."""
    call = None if watch is not None else _function_of(body.program, body.slots)
    if call is not None:
        bound = BoundBody(call, *captured)
    else:
        frame = _frame_of(body.program, dict(zip(body.slots, captured, strict=True)))
        observe = None if watch is None else watch.observer

        def run(*inputs: RuntimeValue) -> list[RuntimeValue]:
            return _execute(body.program, list(frame), inputs, observe)

        bound = BoundBody(run)
    bound.body = body
    return bound


@dataclass(frozen=True, slots=True)
class Ending:
    """What follows a program's compiled part: nodes that make dicts and texts, which take Python.

    Outputs of the program that are constants, or inputs, are added as well; there may be no nodes.

    Attributes:
        steps: The nodes.
        read: Slots of the part's outputs.
        outputs: Slots of the program's outputs.
        constants: All slots, of which those of constants are filled.
        quiet: Whether the nodes compute no numbers, of which NumPy might warn.
        given: Slots of the program's outputs that are inputs, and which of the given ones they are.
    """

    steps: tuple[Step, ...]
    read: tuple[int, ...]
    outputs: tuple[int, ...]
    constants: tuple[Value, ...]
    quiet: bool = False
    given: tuple[tuple[int, int], ...] = ()

    def __call__(
        self, results: Sequence[RuntimeValue], arguments: Sequence[RuntimeValue] = ()
    ) -> list[Any]:
        """Return the outputs of the program, which the caller owns.

        Args:
            results: The outputs of the part, which nobody else has.
            arguments: The inputs that are outputs.
        """
        frame = list(self.constants)
        for (number, _), argument in zip(self.given, arguments, strict=True):
            frame[number] = argument
        for number, value in zip(self.read, results, strict=True):
            frame[number] = value
        if self.quiet:
            self._finish(frame)
        else:
            with np.errstate(all="ignore"):
                self._finish(frame)
        values: list[Any] = [frame[number] for number in self.outputs]
        return outputs_of(values, [*self.constants, *arguments], results)

    def _finish(self, frame: list[Value]) -> None:
        """Run the nodes on slots."""
        for step in self.steps:
            made = step.part.run([None if i == ABSENT else frame[i] for i in step.inputs])
            for number, value in zip(step.outputs, made, strict=False):
                if number != ABSENT:
                    frame[number] = value

    def after(
        self, call: Callable[..., list[Any] | None], names: Sequence[str], fed: Sequence[str]
    ) -> Any:
        """Return a function like that from a feed to the part's outputs, to the program's outputs.

        Args:
            call: Returns the outputs of the part, or None for a feed that does not fit.
            names: Of the program's outputs.
            fed: Of the inputs that are given.
        """
        read = [fed[place] for _, place in self.given]
        add = self._adding()
        places = {name: place for place, name in enumerate(names)}

        def is_choice(wanted: Sequence[str]) -> bool:
            return all(name in places for name in wanted) and len(set(wanted)) == len(wanted)

        def called(
            feed: Mapping[str, Any], wanted: Sequence[str] | None = None, into: Any = None
        ) -> list[Any] | None:
            if into is not None or (wanted and not is_choice(wanted)):
                return None  # the long way writes into arrays, copies, and names the unknown output
            results = call(feed, None)
            if results is None:
                return None
            arguments = [feed[name] for name in read]
            for value in arguments:
                if not isinstance(value, np.ndarray):
                    return None
            values = self(results, arguments) if add is None else add(results, arguments)
            return [values[places[name]] for name in wanted] if wanted else values

        return called

    def _adding(self) -> Callable[[list[Any], list[Any]], list[Any]] | None:
        """Return a function that does what a call does; None if there are nodes or other values."""
        if self.steps:
            return None
        results = {slot: place for place, slot in enumerate(self.read)}
        arguments = {slot: place for place, (slot, _) in enumerate(self.given)}
        own: list[int] = []  # of the outputs: a result, or -1
        copied: list[tuple[int, Array | None, int, int]] = []  # place, constant, argument or result
        for place, slot in enumerate(self.outputs):
            constant = self.constants[slot]
            result = results.get(slot, -1)
            is_first = result >= 0 and result not in own
            own.append(result if is_first else -1)
            if is_first:
                continue
            if slot in results or slot in arguments:
                copied.append((place, None, arguments.get(slot, -1), result))
            elif isinstance(constant, np.ndarray):
                copied.append((place, constant, -1, -1))
            else:
                return None

        def add(made: list[Any], given: list[Any]) -> list[Any]:
            values = [None if place < 0 else made[place] for place in own]
            for place, constant, argument, result in copied:
                if constant is None:
                    constant = given[argument] if argument >= 0 else made[result]
                values[place] = np.array(constant, order="C", copy=True)
            return values

        return add


@dataclass(frozen=True, slots=True)
class Front:
    """The part that a program begins with, which reads nothing but arguments of the program.

    Attributes:
        part: Computes all but the ending.
        own: Which of the arguments it reads.
        order: Which of its outputs are the program's, or are read by the ending.
        ending: None where the part is the whole program.
    """

    part: Part
    own: tuple[int, ...]
    order: tuple[int, ...]
    ending: Ending | None = None

    @property
    def names(self) -> tuple[str | None, ...]:
        """The names of the outputs, in order."""
        return tuple(self.part.outputs[place].name for place in self.order)


def front_of(program: Program, fed: Sequence[int]) -> Front | None:
    """Return the part that a program begins with, None where other nodes are beside it.

    Args:
        program: Of a model.
        fed: Which of its inputs are given in each run.
    """
    if not program.steps or program.steps[0].part.backend == REFERENCE.name:
        return None
    first, *rest = program.steps
    slots = [program.inputs[i] for i in fed]
    # (Other values need memory that a frame has none of.)
    if not set(first.inputs) <= set(slots):
        return None
    own = tuple(slots.index(slot) for slot in first.inputs)
    if not rest:
        outputs = program.outputs
        if set(outputs) == set(first.outputs) and len(set(outputs)) == len(outputs):
            return Front(first.part, own, tuple(first.outputs.index(slot) for slot in outputs))
    if any(step.part.backend != REFERENCE.name or step.part.bodies for step in rest):
        return None
    order = tuple(i for i, slot in enumerate(first.outputs) if slot != ABSENT)
    known = {ABSENT, *(number for number, _ in program.constants), *first.outputs}
    for step in rest:
        if not set(step.inputs) <= known:
            return None
        known.update(step.outputs)
    given = tuple(dict.fromkeys(slot for slot in program.outputs if slot not in known))
    if not set(given) <= set(slots):
        return None
    constants: list[Value] = [None] * program.n_slots
    for number, value in program.constants:
        constants[number] = value
    read = tuple(first.outputs[i] for i in order)
    quiet = all(node.op_type in _QUIET for step in rest for node in step.part.nodes)
    handed = tuple((slot, slots.index(slot)) for slot in given)
    ending = Ending(tuple(rest), read, program.outputs, tuple(constants), quiet, handed)
    return Front(first.part, own, order, ending)


def whole_of(program: Program, fed: Sequence[int]) -> Front | None:
    """Return the part that is a whole program, if it is one.

    Args:
        program: Of a model.
        fed: Which of its inputs are given in each run.
    """
    found = front_of(program, fed)
    return None if found is None or found.ending is not None else found


# Operators of containers, which hand on what they are given.
_MOVING = frozenset(
    {"ConcatFromSequence", "Identity", "Optional", "OptionalGetElement", "OptionalHasElement",
     "SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert",
     "SequenceLength", "SplitToSequence"}
)  # fmt: skip
# Operators that take texts and make dicts, or other shapes; they compute nothing.
_QUIET = frozenset({"Gather", "Identity", "LabelEncoder", "Reshape", "ZipMap"})


def outputs_of(
    values: Sequence[RuntimeValue], shared: Sequence[Value], fresh: Sequence[RuntimeValue] = ()
) -> list[Any]:
    """Return results that the caller owns: contiguous, writable, of no memory but their own.

    Args:
        values: The results.
        shared: Arrays that others have.
        fresh: Arrays that nobody else has: a result may be another shape of one.
    """
    borrowed = set(map(id, shared))  # arrays that others have, results before among them
    for value in shared:
        if type(value) is list:  # results are no items of a list that the caller gave, either
            borrowed.update(map(id, value))
    if not fresh:
        return [_owned(value, borrowed) for value in values]
    taken = {id(item) for value in values for item in (value if type(value) is list else [value])}
    taken |= borrowed
    free = {id(value): value for value in fresh if id(value) not in taken}
    found: list[Any] = []
    for value in values:
        if isinstance(value, np.ndarray) and _is_whole(value, free.pop(id(value.base), None)):
            found.append(value)
        else:
            found.append(_owned(value, borrowed))
    return found


def _is_whole(array: Array, base: RuntimeValue) -> bool:
    """Whether an array is all of another one, in another shape."""
    return (
        isinstance(base, np.ndarray)
        and array.flags.c_contiguous
        and array.flags.writeable
        and array.nbytes == base.nbytes
        and _is_own(base)
    )


def _owned(value: RuntimeValue, borrowed: set[int]) -> Any:
    if type(value) is np.ndarray and type(value.base) is np.ndarray:
        return value.copy()  # a piece of another
    if isinstance(value, list):
        if value and isinstance(value[0], dict):
            made = [dict(item) for item in value] if id(value) in borrowed else value
            borrowed.add(id(value))
            return made
        return [_owned(item, borrowed) for item in value]
    if not isinstance(value, np.ndarray):
        return value
    if id(value) in borrowed or not _is_own(value):
        return np.array(value, order="C", copy=True)
    borrowed.add(id(value))
    return value


def _is_own(array: Array) -> bool:
    flags = array.flags
    whole = flags.owndata or is_pooled(array)
    return bool(whole and flags.c_contiguous and flags.writeable)
