"""What differs from call to call: sizes of tensors, of which some are equal, and numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

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


class Numbers:
    """The numbers of Python among the arguments of calls so far.

    One is fixed until it takes a second value; from then on it is an input of the program. In
    deterministic mode it is one from the first call on, as a program for one value may round
    otherwise, and a run that is resumed begins with another value.
    """

    def __init__(self) -> None:
        self._first: dict[str, int | float] = {}
        self._open: set[str] = set()
        self._closed: set[str] = set()

    def describe(self, numbers: Mapping[str, int | float], *, at_once: bool) -> frozenset[str]:
        """Return the paths of the numbers of a call that are inputs.

        Args:
            numbers: By path.
            at_once: Whether they are from the first value on.
        """
        if at_once:
            self._open.update(numbers)
        for path, value in numbers.items():
            if repr(self._first.setdefault(path, value)) != repr(value):  # 0.0 and -0.0 differ
                self._open.add(path)
        small = {p for p, x in numbers.items() if isinstance(x, float) or abs(x) < _LARGEST}
        return frozenset((self._open & small) - self._closed)

    def close(self, paths: Set[str]) -> None:
        """Let numbers be fixed in all calls: no program takes them as inputs."""
        self._closed |= paths


_LARGEST = 2**62  # of integers that are inputs, with room for a sum
