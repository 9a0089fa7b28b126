"""Errors that come of others, so that the reader is told of one fault once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.memory import base_of
from hagane.frontends.python.values.values import Place, Tensor
from hagane.symbolic import Dim
from hagane.symbolic.term import FALSE

_MOST_SOURCES = 64
_MOST_ANCESTORS = 1000
_CLASH = re.compile(r"axis \S+ has sizes \S+ and [^,]+")
_IN_PLACE = re.compile(r"\w_\([^()]*\)$")
_UNSTORED = "does not fit in place into"
_NUMBER = re.compile(r"(?<![\w.-])\d+(?![\w.]*\w)")


@dataclass(frozen=True, slots=True)
class _Birth:
    """The expression or the parameter that a size was first seen in.

    Attributes:
        key: The place of the expression, or the parameter of the layer that made it.
        size: The size.
    """

    key: Place | ir.Value
    size: int


@dataclass(frozen=True, slots=True)
class _Told:
    """An error that was told.

    Attributes:
        pair: The two sizes that clash; None if it is not about two.
        numbers: All numbers that its message has.
        births: Where sizes of its tensors came from.
    """

    pair: tuple[int, int] | None
    numbers: frozenset[int]
    births: tuple[_Birth, ...]


@dataclass(slots=True)
class Following:
    """The errors so far, and whether another one comes of them.

    Attributes:
        tensors: What is known of values of the graph.
    """

    tensors: Mapping[ir.Value, Tensor] = field(default_factory=dict)
    _met: set[ir.Value] = field(default_factory=set)  # computed tensors that errors were about
    _clashes: set[str] = field(default_factory=set)  # sizes that did not fit, as messages have them
    _clashed: set[ir.Value] = field(default_factory=set)  # the computed tensors that had them
    # Of each clash its sizes, its place, and the tensors that have them.
    _pairs: list[tuple[str, Place, set[ir.Value]]] = field(default_factory=list)
    _failed: set[Place] = field(default_factory=set)  # expressions that never give a value
    _told: list[_Told] = field(default_factory=list)
    _kept: set[ir.Value] = field(default_factory=set)  # tensors that could not take a result
    _lines: set[tuple[str, int]] = field(default_factory=set)  # of errors so far

    def follows(self, error: CheckError, place: Place) -> bool:
        """Whether an error comes of earlier ones; it is one of them from now on."""
        told = self._described(error)
        found = (
            self._is_met(error)
            or self._clashes_again(error)
            or self._clashes_of_one_pair(error, place)
            or self._is_of_a_failure(error)
            or any(_alike(before, told) for before in self._told)
            or (error.code == "index" and (place.file, place.line) in self._lines)  # of one list
        )
        self._lines.add((place.file, place.line))
        if _UNSTORED in error.message:
            self._kept.update(tensor.value for tensor in error.tensors)
        self._told.append(told)
        if clashes := _CLASH.findall(error.message):
            self._clashes.update(clashes)
            bases = [base_of(tensor.value) for tensor in error.tensors]
            self._clashed.update(base for base in bases if _sources(base))
            if len(bases) == 2:
                self._pairs.append((_sizes(clashes[0]), place, set(bases)))
        self._met.update(_computed(error.tensors))
        if error.claim in (None, FALSE):
            self._failed.add(place)
        return found

    def _is_met(self, error: CheckError) -> bool:
        """Whether an error is about a tensor, or a part of one, that an error was about.

        What was computed of it may have a mistake of its own.
        """
        given = [tensor.value for tensor in error.tensors]
        return any(value in self._met for value in (*given, *map(base_of, given)))

    def _clashes_of_one_pair(self, error: CheckError, place: Place) -> bool:
        """Whether sizes clash that clashed before, between what was computed of the same tensors.

        On the line of the first clash, one of the two tensors is enough.
        """
        clash = _CLASH.search(error.message)
        if clash is None or len(error.tensors) != 2:
            return False
        left, right = (_origins(tensor.value) for tensor in error.tensors)
        for sizes, first, pair in self._pairs:
            if sizes != _sizes(clash[0]):
                continue
            met = left & pair, right & pair
            if all(met) and (met[0] | met[1]) == pair:
                return True
            if any(met) and (first.file, first.line) == (place.file, place.line):
                return True
        return False

    def _clashes_again(self, error: CheckError) -> bool:
        """Whether sizes clash that clashed before, in what was computed of a tensor met there."""
        if not self._clashes.intersection(_CLASH.findall(error.message)):
            return False
        waiting = [tensor.value for tensor in error.tensors]
        for value in waiting:
            if value in self._met or base_of(value) in self._clashed:
                return True
            if len(waiting) < _MOST_SOURCES:
                waiting += _sources(value)
        return False

    def _is_of_a_failure(self, error: CheckError) -> bool:
        """Whether an error is about what an expression gave that failed at another call."""
        waiting = list(error.tensors)
        seen = {tensor.value for tensor in waiting}
        for tensor in waiting:
            if tensor.origin is not None and tensor.origin.place in self._failed:
                return True
            if tensor.value in self._kept:
                return True
            new = [value for value in _sources(tensor.value) if value not in seen]
            if len(seen) < _MOST_ANCESTORS:
                seen.update(new)
                waiting += self._known(new)
        return False

    def _described(self, error: CheckError) -> _Told:
        """Return what later errors are compared with."""
        clash = _CLASH.search(error.message)
        found = [] if clash is None else [int(n) for n in _NUMBER.findall(_sizes(clash[0]))]
        births = dict.fromkeys(birth for tensor in error.tensors for birth in self._births(tensor))
        return _Told(
            (found[0], found[1]) if len(found) == 2 else None,
            frozenset(map(int, _NUMBER.findall(error.message))),
            tuple(births),
        )

    def _births(self, tensor: Tensor) -> Iterator[_Birth]:
        for size in dict.fromkeys(tensor.shape or ()):
            if isinstance(size, int) and size > 1:
                for key in self._born(tensor, size):
                    yield _Birth(key, size)

    def _born(self, tensor: Tensor, size: Dim) -> list[Place | ir.Value]:
        """Return what a size of a tensor came from; nothing for data, which have their own."""
        place: list[Place | ir.Value] = []
        for _ in range(_MOST_SOURCES):
            if tensor.origin is not None:
                place = [tensor.origin.place]
            if tensor.parameter:
                return [base_of(tensor.value)]
            sources = self._known(_sources(tensor.value))
            of_size = [source for source in sources if size in (source.shape or ())]
            if not of_size:
                layer = [base_of(source.value) for source in sources if source.parameter]
                return [*place, *layer[:1]] if sources else []
            tensor = of_size[0]
        return []

    def _known(self, values: Sequence[ir.Value]) -> list[Tensor]:
        return [self.tensors[value] for value in values if value in self.tensors]


def _alike(first: _Told, second: _Told) -> bool:
    """Whether two errors are about one size that was made wrong, or that one call made so.

    Either the same two sizes clash, or sizes that another call of the same code made, and that are
    in the same relation: twice as large as those beside it, or larger by one.
    """
    for one in first.births:
        for other in second.births:
            if one.key != other.key:
                continue
            beside = _beside(first, one.size), _beside(second, other.size)
            if one.size == other.size:
                wrong = {one.size, beside[0] or beside[1]}
                if wrong <= first.numbers & second.numbers:
                    return True
            elif isinstance(one.key, Place) and any(beside):
                left = {beside[0]} if beside[0] is not None else first.numbers
                right = {beside[1]} if beside[1] is not None else second.numbers
                if _in_relation(one.size, left, other.size, right):
                    return True
    return False


def _in_relation(a: int, left: Iterable[int], b: int, right: Iterable[int]) -> bool:
    """Whether two sizes differ in one manner from sizes beside them."""
    return any(a * y == b * x or a - x == b - y for x in left for y in right if x and y)


def _beside(told: _Told, size: int) -> int | None:
    """Return the size that one clashes with in an error."""
    if told.pair is None or size not in told.pair:
        return None
    return told.pair[1] if told.pair[0] == size else told.pair[0]


def _computed(tensors: Sequence[Tensor]) -> Iterator[ir.Value]:
    """Yield the values of tensors that were made of others: each may be the one that is wrong.

    Of a part of the expression that failed, these are its operands; of what was changed in place,
    also what it was before.
    """
    for tensor in tensors:
        if _sources(tensor.value):
            yield tensor.value
        if tensor.origin is None:
            for source in _sources(tensor.value):
                yield from (part for part in (source, *_sources(source)) if _sources(part))
        current: Tensor | None = tensor
        while current is not None and current.origin is not None:
            if _IN_PLACE.search(current.origin.text) is None:
                break
            current = next(iter(current.origin.sources), None)
            if current is not None:
                yield current.value


def _sizes(clash: str) -> str:
    return clash.partition(" has ")[2]


def _origins(value: ir.Value) -> set[ir.Value]:
    """Return a tensor and those that it was computed of, the nearest ones."""
    found = [base_of(value)]
    for one in found:
        if len(found) < _MOST_SOURCES:
            found += [base_of(source) for source in _sources(one)]
    return set(found)


def _sources(value: ir.Value) -> list[ir.Value]:
    producer = value.producer()
    return [] if producer is None else [v for v in producer.inputs if v is not None]
