"""What differs from call to call: sizes of tensors, of which some are equal, and numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from math import prod

Shape = tuple[int, ...]
Axis = tuple[int, int]  # the place of a tensor, and the number of an axis of it


class Sizes:
    """The common part of the shapes of calls so far.

    The first axis of all tensors is open if it has one size in all of them, the batch. Another one
    is fixed until it differs from its first size. Axes that were always equal share a name, first
    axes and others apart unless they are joined: a batch lies along the second axis of sequences
    whose first one is time, and along both of a matrix of its pairs.
    """

    def __init__(self, shapes: Sequence[Shape]):
        self._first = [tuple(shape) for shape in shapes]
        rows = {shape[0] for shape in self._first if shape}
        self._batch = len(rows) == 1
        self._open: set[tuple[int, int]] = set()
        self._not_one: set[str] = set()
        self._plainly: list[list[str]] = []
        self._last: tuple[list[Shape], list[list[list[str]]]] | None = None
        # The axes by those that they were always equal to.
        self._class = {
            (place, axis): size
            for place, shape in enumerate(self._first)
            for axis, size in enumerate(shape)
        }
        if self._batch:
            self._open.update(axis for axis in self._class if axis[1] == 0)
        self._multiples: dict[Axis, dict[tuple[Axis, ...], int]] = {}

    def describe(self, shapes: Sequence[Shape]) -> list[list[list[str]]]:
        """Return the sizes of a call as text: names for open ones, numbers for the others.

        Args:
            shapes: Of as many tensors, with as many axes, as the first ones.

        Returns:
            Four forms: first axes and others apart; joined; apart, and sizes that were always a
            multiple of others as such (rows of a text that is flattened); numbers alone.
        """
        now = [tuple(shape) for shape in shapes]
        if self._last is not None and now == self._last[0]:
            return self._last[1]
        for place, shape in enumerate(shapes):
            for axis, size in enumerate(shape):
                if size != self._first[place][axis]:
                    self._open.add((place, axis))
        numbers: dict[object, int] = {}
        for key, found in self._class.items():
            parted = (found, shapes[key[0]][key[1]])
            self._class[key] = numbers.setdefault(parted, len(numbers))
        self._follow_multiples(now)
        plainly = [[str(size) for size in shape] for shape in shapes]
        self._plainly = plainly
        apart, joined = (self._named(plainly, joined=joined) for joined in (False, True))
        made = [apart, joined, self._as_multiples(apart, joined), plainly]
        self._last = now, made
        return made

    def _follow_multiples(self, shapes: Sequence[Shape]) -> None:
        """Note of which open axes, or pairs of axes of one tensor, others are multiples so far."""
        axes = sorted(self._open)
        pairs = [(a, b) for a in axes for b in axes if a[0] == b[0] and a[1] < b[1]]
        parts = [*((axis,) for axis in axes), *pairs]

        def times(axis: Axis, part: Sequence[Axis], sizes: Sequence[Shape]) -> int:
            whole = prod(sizes[n][k] for n, k in part)
            many, rest = divmod(sizes[axis[0]][axis[1]], max(1, whole))
            return many if whole and not rest else 0

        before = self._multiples
        self._multiples = {axis: {} for axis in axes}
        for axis in axes:
            for part in parts:
                if axis not in part:
                    many = times(axis, part, shapes)
                    held = before.get(axis, {}).get(part)
                    wanted = times(axis, part, self._first) if held is None else held
                    self._multiples[axis][part] = many if many == wanted else 0

    def _as_multiples(self, apart: list[list[str]], joined: list[list[str]]) -> list[list[str]]:
        """Return sizes of which some are multiples of others; those of ``joined`` if none is."""
        described, named, used = [list(shape) for shape in apart], set[Axis](), set[Axis]()
        for (place, axis), held in self._multiples.items():
            name = apart[place][axis]
            for part, many in sorted(held.items(), key=lambda item: item[1]):
                names = [apart[n][k] for n, k in part]
                is_equal = many == 1 and len(part) == 1
                is_named = (place, axis) in used or not named.isdisjoint(part)
                known = any(text.isdigit() for text in (name, *names))
                if many and not (is_equal or is_named or known or name in names):
                    described[place][axis] = "*".join([str(many), *names] if many > 1 else names)
                    named.add((place, axis))
                    used.update(part)
                    break
        return described if named else joined

    def set_apart(self, names: Set[str], described: Sequence[Sequence[str]]) -> bool:
        """Let sizes be numbers where they are 1; return whether one of the last call is.

        Args:
            names: Of the sizes for which a program takes that they are not 1.
            described: The sizes of the last call, as the program has them.
        """
        self._not_one |= names
        self._last = None
        return any(
            size == "1" and name in names
            for shape, given in zip(self._plainly, described, strict=True)
            for size, name in zip(shape, given, strict=True)
        )

    def _named(self, plainly: list[list[str]], *, joined: bool) -> list[list[str]]:
        """Return sizes as text with names for open ones.

        Args:
            plainly: The sizes.
            joined: Whether a first axis and another one may have one name.
        """
        names: dict[object, str] = {}
        batch = None
        if self._batch:
            batch = self._class[next(key for key in self._class if key[1] == 0)]
            names[not joined, batch] = "batch"
        described = [list(shape) for shape in plainly]
        for (place, axis), found in self._class.items():
            name = names.setdefault((axis == 0 and not joined, found), f"size_{place}_{axis}")
            is_open = (place, axis) in self._open or (joined and found == batch)
            if is_open and (name not in self._not_one or described[place][axis] != "1"):
                described[place][axis] = name
        return described


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
