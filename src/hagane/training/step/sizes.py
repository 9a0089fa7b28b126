"""Sizes of tensors that differ from call to call: which are fixed, and which are equal."""

from __future__ import annotations

from collections.abc import Sequence

Shape = tuple[int, ...]


class Sizes:
    """The common part of the shapes of calls so far.

    The first axis of all tensors is open if it has one size in all of them, the batch. Another one
    is fixed until it differs from its first size. Axes that were always equal share a name.
    """

    def __init__(self, shapes: Sequence[Shape]):
        self._first = [tuple(shape) for shape in shapes]
        rows = {shape[0] for shape in self._first if shape}
        self._batch = len(rows) == 1
        self._open: set[tuple[int, int]] = set()
        self._class = {
            (place, axis): (axis == 0, size)
            for place, shape in enumerate(self._first)
            for axis, size in enumerate(shape)
        }
        if self._batch:
            self._open.update(axis for axis in self._class if axis[1] == 0)

    def describe(self, shapes: Sequence[Shape]) -> list[list[str]]:
        """Return the sizes of a call as text: names for open ones, numbers for the others.

        Args:
            shapes: Of as many tensors, with as many axes, as the first ones.
        """
        for place, shape in enumerate(shapes):
            for axis, size in enumerate(shape):
                if size != self._first[place][axis]:
                    self._open.add((place, axis))
        numbers: dict[object, int] = {}
        for key, found in self._class.items():
            parted = (found, shapes[key[0]][key[1]])
            numbers.setdefault(parted, len(numbers))
            self._class[key] = (key[1] == 0, numbers[parted])
        return [
            [self._name(place, axis, size) for axis, size in enumerate(shape)]
            for place, shape in enumerate(shapes)
        ]

    def _name(self, place: int, axis: int, size: int) -> str:
        if (place, axis) not in self._open:
            return str(size)
        if self._batch and axis == 0 and self._class[place, 0] == self._class[self._rows()]:
            return "batch"
        same = [key for key in self._class if self._class[key] == self._class[place, axis]]
        return f"size_{same[0][0]}_{same[0][1]}"

    def _rows(self) -> tuple[int, int]:
        """Return the first tensor's first axis."""
        return next(key for key in self._class if key[1] == 0)
