"""Programs as Python functions: one line a step, in place of a loop over steps.

A program of many parts, or a body that a loop runs again and again, spends much of its time between
the parts: arguments out of slots, results into slots, methods of parts. The function has a local
variable for each slot and calls kernels directly. Runs that are watched, and first runs, go the
other way (``execute.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hagane.ops.control.branch import truth
from hagane.ops.definition import RuntimeValue
from hagane.runtime.backends.reference import ReferencePart
from hagane.runtime.device import Value
from hagane.runtime.port import ShapeMismatch
from hagane.runtime.program import ABSENT, Program, Step

# From captured values, then inputs, to outputs.
Straight = Callable[..., list[RuntimeValue]]
# Computes a step on reference kernels: from a frame, which it fills.
FallBack = Callable[[Step, list[Value]], None]


def straight(program: Program, captured: Sequence[int], fall_back: FallBack) -> Straight:
    """Return a program as a function, once its parts are open.

    Args:
        program: All steps are run in order.
        captured: Slots of the first arguments; those of the program's inputs follow.
        fall_back: Computes a step for whose values its part was not made.
    """
    text = _Text(program, captured, fall_back)
    for step in program.steps:
        text.add(step)
    return text.function()


@dataclass
class _Text:
    """A function under construction.

    Attributes:
        program: The program.
        captured: Slots of captured values.
        fall_back: See ``straight``.
        lines: Of its body.
        steps: The step of each line, None of a line that computes nothing.
        names: What its lines call, by name.
    """

    program: Program
    captured: Sequence[int]
    fall_back: FallBack
    lines: list[str] = field(default_factory=list)
    steps: list[Step | None] = field(default_factory=list)
    names: dict[str, Any] = field(default_factory=dict)

    def add(self, step: Step) -> None:
        """Append the lines of a step."""
        read = ", ".join("None" if slot == ABSENT else f"s{slot}" for slot in step.inputs)
        part, number = step.part, len(self.names)
        kernel, direct = getattr(part, "kernel", None), part.direct()
        if kernel is not None:
            self.names[f"k{number}"] = kernel
            self._results(step, f"k{number}({read})")
        elif type(part) is ReferencePart and part.bodies:  # others have a run of their own
            self._control(step, part, number)
        elif direct is not None:
            self.names |= {f"k{number}": direct, f"w{number}": self._slow(step)}
            self._line(step, f"r = k{number}([{read}])")
            self._line(step, f"if r is None: r = w{number}(locals())")
            self._take(step, "r", known=True)
        else:
            self.names[f"w{number}"] = self._slow(step)
            self._line(step, f"r = w{number}(locals())")
            self._take(step, "r", known=False)
        if step.release:
            self._line(None, " = ".join(f"s{slot}" for slot in step.release) + " = None")

    def _control(self, step: Step, part: ReferencePart, number: int) -> None:
        """Append the call of a kernel that is given bodies; an If has one of them bound."""
        read = ["None" if slot == ABSENT else f"s{slot}" for slot in step.inputs]
        at = len(part.node.inputs)
        own, bound = ", ".join(read[:at]), {}
        for name, body in part.named_bodies:
            end = at + len(body.captured)
            self.names[f"{name}{number}"] = body.bind
            bound[name] = f"{name}{number}([{', '.join(read[at:end])}], None)"
            at = end
        if bound.keys() == {"then_branch", "else_branch"}:
            taken = f"{bound['then_branch']} if truth({own}) else {bound['else_branch']}"
            self._line(step, f"r = ({taken})()")
        else:
            self.names[f"k{number}"] = part.op.bound(part.attributes, len(part.outputs))
            bodies = ", ".join(f"{name}={text}" for name, text in bound.items())
            self._line(step, f"r = several(k{number}({own}, {bodies}))")
        self._take(step, "r", known=False)

    def _line(self, step: Step | None, text: str) -> None:
        self.lines.append(text)
        self.steps.append(step)

    def _results(self, step: Step, call: str) -> None:
        """Append a call of a kernel, of which all that is known is in ``OpDef.reference``."""
        if len(step.outputs) == 1 and step.outputs[0] != ABSENT:
            name = f"s{step.outputs[0]}"
            self._line(step, f"{name} = {call}")
            self._line(step, f"if type({name}) is not ndarray: {name} = single({name})")
            return
        self._line(step, f"r = several({call})")
        self._take(step, "r", known=False)

    def _take(self, step: Step, results: str, *, known: bool) -> None:
        """Append lines that bring results into slots; ``known`` if there is one for each."""
        slots = [f"s{slot}" if slot != ABSENT else "_" for slot in step.outputs]
        if not slots:
            return
        made = results if known else f"padded({results}, {len(slots)})"
        self._line(step, f"{', '.join(slots)}, = {made}")

    def _slow(self, step: Step) -> Callable[[Mapping[str, Value]], Sequence[Value]]:
        """Return a function from local variables to results of a step, however it gets them."""
        program, fall_back = self.program, self.fall_back

        def compute(found: Mapping[str, Value]) -> Sequence[Value]:
            try:
                return step.part.run([_local(found, slot) for slot in step.inputs])
            except ShapeMismatch:
                frame = [found.get(f"s{slot}") for slot in range(program.n_slots)]
                for slot, value in program.constants:
                    frame[slot] = value
                fall_back(step, frame)
                return [None if slot == ABSENT else frame[slot] for slot in step.outputs]

        return compute

    def function(self) -> Straight:
        """Return the function."""
        given = [*self.captured, *self.program.inputs]
        constants = {f"s{s}": value for s, value in self.program.constants if s not in given}
        head = ", ".join(f"s{slot}" for slot in given)
        defaults = ", ".join(f"{name}=constants[{name!r}]" for name in constants)
        last = "".join(f"s{slot}, " for slot in self.program.outputs)
        body = [*self.lines, f"return [{last}]"]
        lines = [
            f"def run({', '.join(part for part in (head, defaults) if part)}):",
            "  try:",
            *(f"    {line}" for line in body),
            "  except Exception as error:",
            "    fail(error, locals())",
            "    raise",
        ]
        steps = (None, None, *self.steps, None)

        def fail(error: Exception, found: Mapping[str, Value]) -> None:
            """Raise the error of the kernel in whose line an error was raised."""
            assert error.__traceback__ is not None
            step = steps[error.__traceback__.tb_lineno - 1]
            if step is not None and isinstance(step.part, ReferencePart):
                step.part.explain(error, [_local(found, slot) for slot in step.inputs])

        scope = self.names | {"constants": constants, "fail": fail, "ndarray": np.ndarray}
        scope |= {"single": _single, "several": _several, "padded": _padded, "truth": truth}
        exec(compile("\n".join(lines), "<a program of hagane>", "exec"), scope)
        made: Straight = scope["run"]
        return made


def _local(found: Mapping[str, Value], slot: int) -> Value:
    return None if slot == ABSENT else found.get(f"s{slot}")


def _single(result: Any) -> Value:
    """Return the one output of a kernel that returned no array."""
    if isinstance(result, tuple):
        (result,) = result[:1]
    return np.asarray(result) if isinstance(result, np.generic) else result


def _several(result: Any) -> Sequence[Value]:
    """Return the outputs of a kernel."""
    values = result if isinstance(result, tuple) else (result,)
    return [np.asarray(value) if isinstance(value, np.generic) else value for value in values]


def _padded(results: Sequence[Value], count: int) -> Sequence[Value]:
    """Return so many results; those that a kernel does not give are absent."""
    if len(results) == count:
        return results
    return [*results[:count], *[None] * (count - len(results))]
