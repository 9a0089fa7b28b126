"""States of a loop whose sizes change: how, and the facts that follow.

A size that changes from iteration to iteration has a name of its own, and all that follows from it
in the body is written with that name. Sizes that grow by the same number share one: two that begin
as ``p`` and ``p + 1`` stay ``n`` and ``n + 1``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hagane.graph.types import OptionalType, SequenceType, TensorType, Type
from hagane.symbolic import Dim, evaluate, symbols_of

# The beginning of names of sizes that change from iteration to iteration.
CHANGING = "turning"
# A state, and one of its axes.
Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Growth:
    """A size of a state.

    Attributes:
        start: Its value before the first iteration.
        before: Its value before an iteration: a name, perhaps with a number added.
        after: Its value then.
    """

    start: Dim
    before: Dim
    after: Dim

    @property
    def step(self) -> Dim:
        """The amount that an iteration adds to it."""
        return self.after - self.before


def growths(
    starts: Sequence[Type | None], befores: Sequence[Type | None], afters: Sequence[Type | None]
) -> dict[Place, Growth]:
    """Return the sizes that change, by state and axis.

    Args:
        starts: Types of the initial values.
        befores: Types that hold before any iteration.
        afters: Types that hold after it.
    """
    found: dict[Place, Growth] = {}
    for index, types in enumerate(zip(starts, befores, afters, strict=True)):
        shapes = [type_.shape for type_ in types if isinstance(type_, TensorType)]
        if len(shapes) < 3 or None in shapes or len({len(shape or ()) for shape in shapes}) > 1:
            continue
        for axis, (start, before, after) in enumerate(zip(*map(_dims, shapes), strict=True)):
            if start == before:
                continue
            found[index, axis] = Growth(start, before, after)
    return found


def _dims(shape: Sequence[Dim] | None) -> Sequence[Dim]:
    return shape or ()


def shared_names(found: Mapping[Place, Growth]) -> dict[str, Dim]:
    """Return formulas for the names of sizes that keep their distance from another."""
    replaced: dict[str, Dim] = {}
    kept: list[Growth] = []
    # From the least: a distance that is added to a size cannot make it negative.
    for growth in sorted(found.values(), key=lambda growth: _least(growth.start)):
        name = str(growth.before)
        if symbols_of(growth.before) != {name} or name in replaced:
            continue
        for other in kept:
            distance = growth.start - other.start
            if isinstance(distance, int) and distance >= 0 and _go_along(growth, other, distance):
                if growth.before != other.before:
                    replaced[name] = other.before + distance
                break
        else:
            kept.append(growth)
    return replaced


def _go_along(growth: Growth, other: Growth, distance: int) -> bool:
    """Whether a size changes as another does that it has a distance from."""
    if isinstance(growth.step, int):
        return growth.step == other.step
    after = evaluate(growth.after, {str(growth.before): other.before + distance})
    return after == other.after + distance


def _least(start: Dim) -> int:
    """Return the key that orders sizes of one name by the number added to it."""
    return start if isinstance(start, int) else int(start.terms.get((), 0))


def with_sizes(type_: Type | None, sizes: Mapping[str, Dim]) -> Type | None:
    """Return a type with sizes in the place of names; names that are not there stay."""
    match type_:
        case TensorType(dtype, shape) if shape is not None:
            return TensorType(dtype, tuple(evaluate(dim, sizes) for dim in shape))
        case SequenceType(element):
            return SequenceType(with_sizes(element, sizes))
        case OptionalType(element):
            return OptionalType(with_sizes(element, sizes))
    return type_
