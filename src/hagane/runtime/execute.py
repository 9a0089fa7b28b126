"""Programs executed: slots filled part by part, and results that belong to the caller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hagane.native import is_pooled
from hagane.ops.definition import Array, RuntimeValue
from hagane.runtime.backends.reference import constant_content
from hagane.runtime.port import Observer, ShapeMismatch, Value, Watch
from hagane.runtime.program import ABSENT, Body, Program, Step


def execute(
    program: Program,
    inputs: Sequence[RuntimeValue],
    captured: Mapping[int, RuntimeValue] | None = None,
    observe: Observer | None = None,
) -> list[RuntimeValue]:
    """Run ``program`` and return its outputs.

    Args:
        program: The program to run.
        inputs: One value an input.
        captured: Values of outer graphs, by slot.
        observe: Called after each part with its inputs and outputs; may raise to stop the run.

    Raises:
        KernelError: A kernel failed; the message names its node.
    """
    frame: list[Value] = [None] * program.n_slots
    for number, value in program.constants:
        frame[number] = value
    if captured is not None:
        for number, value in captured.items():
            frame[number] = value
    for number, value in zip(program.inputs, inputs, strict=True):
        frame[number] = value
    with np.errstate(all="ignore"):
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


class BoundBody:
    """A body as a function of its inputs."""

    def __init__(self, body: Body, captured: Mapping[int, RuntimeValue], watch: Watch | None):
        self._body, self._captured = body, captured
        self._observe = None if watch is None else watch.observer

    def __call__(self, *inputs: RuntimeValue) -> list[RuntimeValue]:
        """Return the outputs of the body."""
        return execute(self._body.program, inputs, self._captured, self._observe)

    def nothing(self, index: int) -> Array:
        """Return no tensors of an output, stacked."""
        return self._body.none_of_outputs[index].copy()


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
