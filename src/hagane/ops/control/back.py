"""Walk back over the iterations of a loop: the gradient of Loop and Scan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hagane.errors import NotDifferentiable
from hagane.graph.types import SequenceType, TensorType
from hagane.ops.builder import Call, is_continuous, loop, op, rank_of, type_of
from hagane.ops.functions.numbers.elementary import add, sub, transpose
from hagane.ops.functions.tensors.shapes import zeros_like

# The least end that a slice may name.
_BEFORE_ALL = -(2**62)


@dataclass(frozen=True, slots=True)
class Iterations:
    """The record of the iterations of a loop.

    Attributes:
        body: Takes the number of an iteration, its states and its slices; returns new states and
            items.
        count: How many iterations there were, an int64 scalar.
        states: Each state at the beginning of all iterations, stacked; in a sequence if its sizes
            change.
        slices: For each value that was walked along its slices in the order of iterations, stacked.
        captured: Values of outside whose gradients are wanted.
        some: Whether there is an iteration in every run.
    """

    body: Callable[[Any, Sequence[Any], Sequence[Any]], tuple[Sequence[Any], Sequence[Any]]]
    count: Any
    states: Sequence[Any]
    slices: Sequence[Any]
    captured: Sequence[Any]
    some: bool = False


def walk_back(
    iterations: Iterations,
    of_states: Sequence[Any],
    of_items: Sequence[Any],
    comes: Any = True,
) -> tuple[list[Any], list[Any], list[Any]]:
    """Return the gradients of first states, of slices (stacked in order), of captured values.

    Args:
        iterations: The record of the iterations.
        of_states: The gradients of the last states; None for states without one.
        of_items: The gradients of the items of each iteration, stacked; None where there is none.
        comes: Whether one of the loop's gradients comes.
    """
    from hagane.ops.gradient import accumulate, recording
    from hagane.ops.gradient.reach import as_value, both, either, watched

    reach, sure = watched(), [iterations.some] * len(iterations.captured)

    carried = [i for i, state in enumerate(iterations.states) if is_continuous(state)]
    walked = [i for i, part in enumerate(iterations.slices) if is_continuous(part)]
    inside = len(carried) + len(walked)  # the gradients of one iteration's own values
    outside = slice(len(carried), len(carried) + len(iterations.captured))

    def back(k: Any, going: Any, *totals: Any) -> Sequence[Any]:
        t = sub(sub(iterations.count, 1), k)
        states = [_at(record, t) for record in iterations.states]
        slices = [op("Gather", stack, t, axis=0) for stack in iterations.slices]
        with recording() as recorder:
            new, items = iterations.body(t, states, slices)
        seeds: list[Any] = [None] * len(new)
        for place, total in zip(carried, totals, strict=False):
            seeds[place] = total
        seeds += [None if g is None else op("Gather", g, t, axis=0) for g in of_items]
        sources = [
            *(states[i] for i in carried),
            *(slices[i] for i in walked),
            *iterations.captured,
        ]
        found = accumulate(recorder.calls, [*new, *items], seeds, sources)
        full = [zeros_like(x) if g is None else g for g, x in zip(found, sources, strict=True)]
        of_outside = [
            add(total, g) for total, g in zip(totals[outside], full[inside:], strict=True)
        ]
        if reach is not None:
            come = [reach.comes(g) for g in found[inside:]]
            sure[:] = [known and one is True for known, one in zip(sure, come, strict=True)]
            earlier = totals[outside.stop :]
            of_outside += [as_value(either(*pair)) for pair in zip(earlier, come, strict=True)]
        return [going, *full[: len(carried)], *of_outside, *full[len(carried) : inside]]

    starts = [
        *(of_states[i] for i in carried),
        *(zeros_like(value) for value in iterations.captured),
        *(np.array(False) for _ in iterations.captured if reach is not None),
    ]
    results = list(loop(iterations.count, None, starts, back, stacked=len(walked)))
    gradients: list[Any] = [None] * len(iterations.states)
    for place in carried:
        gradients[place] = results.pop(0)
    of_captured = [results.pop(0) for _ in iterations.captured]
    if reach is not None:
        for known, g in zip(sure, of_captured, strict=True):
            one = results.pop(0)
            reach.note(g, comes if known else both(comes, one))
    of_slices: list[Any] = [None] * len(iterations.slices)
    for place in walked:
        of_slices[place] = op("Slice", results.pop(0), [-1], [_BEFORE_ALL], [0], [-1])
    return gradients, of_slices, of_captured


def _at(record: Any, t: Any) -> Any:
    """Return what an iteration had, of a stack or a sequence."""
    if isinstance(type_of(record), SequenceType):
        return op("SequenceAt", record, t)
    return op("Gather", record, t, axis=0)


def changing(call: Call, states: Sequence[Any], first: Sequence[Any]) -> list[int]:
    """Return which states of a loop may have another size in each iteration.

    Args:
        call: The loop.
        states: Each state at the beginning of all iterations, stacked.
        first: Each before the first one.

    Raises:
        NotDifferentiable: A state is no tensor, or its rank is not known.
    """
    found = []
    for index, (state, start) in enumerate(zip(states, first, strict=True)):
        types = type_of(state), type_of(start)
        shapes = [x.shape for x in types if isinstance(x, TensorType) and x.shape is not None]
        if len(shapes) < 2 or len(shapes[0]) != len(shapes[1]) + 1:
            raise NotDifferentiable(
                f"{call.op.name} has no gradient: its state {index} ({types[1]}) changes its rank "
                "from iteration to iteration, or is no tensor"
            )
        if tuple(shapes[0][1:]) != tuple(shapes[1]):
            found.append(index)
    return found


def from_front(x: Any, axis: int, *, reverse: bool) -> Any:
    """Return a value with an axis in front, in the order in which a walk along it goes."""
    rank = rank_of(x)
    axis %= rank
    x = transpose(x, [axis, *(i for i in range(rank) if i != axis)])
    return op("Slice", x, [-1], [_BEFORE_ALL], [0], [-1]) if reverse else x


def to_place(x: Any, axis: int, *, reverse: bool) -> Any:
    """Undo ``from_front``."""
    rank = rank_of(x)
    axis %= rank
    x = op("Slice", x, [-1], [_BEFORE_ALL], [0], [-1]) if reverse else x
    return transpose(x, [*range(1, axis + 1), 0, *range(axis + 1, rank)])
