"""Items drawn without replacement of which a run learns as much as the program looks at.

Of a hand of five cards whose ranks are counted, the suits are never drawn. A drawn item stands for
all those that it may be; a question to it (a comparison, its hash, a truth value) is a draw among
the answers, weighted by the ways in which items can lie, and leaves the items of that answer. Parts
of it (``card[0]``, ``card.rank``, ``card // 4``) are such items too.

Where the order of a hand makes no difference (see ``unordered.py``), the answers of its items to
their first question come in ascending order, so that each set of answers is one run.
"""

from __future__ import annotations

import enum
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from types import BuiltinFunctionType, FunctionType
from typing import Any

from hagane.tools.prob.draws import deciding

_MOST_SEEN = 7  # items of one draw between which the ways are counted
_PLAIN = frozenset((bool, int, float, complex, str, bytes, Fraction))
_OF_ITEMS = frozenset((tuple, list, str))
_VALUES = _PLAIN - {bool} | {tuple, list, dict}  # no program asks whether they are the same object
_BY_IDENTITY = (bool, type(None), enum.Enum, type, FunctionType, BuiltinFunctionType)


class Unfit(BaseException):
    """A run looks at too many items, or at them in a way that is not followed."""


@lru_cache(100_000)
def _ways(masks: tuple[int, ...]) -> int:
    """Return in how many ways different items can be taken, one of each set."""
    if len(masks) < 2:
        return masks[0].bit_count() if masks else 1
    first, *rest = masks
    found = first.bit_count() * _ways(tuple(rest))
    for place, mask in enumerate(rest):
        if mask & first:
            found -= _ways(tuple(sorted((*rest[:place], mask & first, *rest[place + 1 :]))))
    return found


@lru_cache(10_000)
def _places(mask: int) -> tuple[int, ...]:
    return tuple(place for place in range(mask.bit_length()) if mask >> place & 1)


class Pool:
    """The items of one draw.

    Attributes:
        items: All of them.
        slots: Those drawn, in order.
        all: All places, as bits.
        unordered: Items whose order makes no difference.
    """

    def __init__(self, items: Sequence[Any], count: int):
        self.items = tuple(items)
        self.all = (1 << len(self.items)) - 1
        self.unordered: list[tuple[Slot, ...]] = []
        self.slots = [Slot(self) for _ in range(count)]

    def views(self) -> list[Unseen]:
        """Return the drawn items."""
        return [Unseen(slot, self.items) for slot in self.slots]

    def share(self, slot: Slot, masks: Sequence[int]) -> list[Fraction]:
        """Return the probabilities that an item is one of each of some parts of its set."""
        others = [each.mask for each in self.slots if each.seen and each is not slot]
        if len(others) >= _MOST_SEEN:
            raise Unfit
        ways = [_ways(tuple(sorted((*others, mask)))) for mask in masks]
        return [Fraction(each, sum(ways)) for each in ways]

    def dissolve(self) -> None:
        """Let items be alike no more: another one is looked at."""
        for group in {id(s.group): s.group for s in self.slots if s.group is not None}.values():
            group.settle()
        for slot in self.slots:
            slot.seen = slot.seen or slot.mask != self.all
            slot.group = None

    def alike(self, slots: Sequence[Slot]) -> None:
        """Take the order of some items for one that makes no difference."""
        if slots and not any(slot.seen or slot.group is not None for slot in self.slots):
            Group(slots)
            self.unordered.append(tuple(slots))

    def completed(self, shuffle: Callable[[list[Any]], None]) -> list[Any]:
        """Return items that the drawn ones may be, by chance, as far as they are not known."""
        known = [slot for slot in self.slots if slot.mask != self.all]
        slots = sorted(known, key=lambda slot: slot.mask.bit_count())
        taken: dict[Slot, int] = {}

        def fill(at: int) -> bool:
            if at == len(slots):
                return True
            places = list(slots[at].places())
            shuffle(places)
            for place in places:
                if place not in used:
                    used.add(place)
                    taken[slots[at]] = place
                    if fill(at + 1):
                        return True
                    used.discard(place)
            return False

        used: set[int] = set()
        if not fill(0):
            raise AssertionError
        rest = [place for place in range(len(self.items)) if place not in used]
        shuffle(rest)
        taken.update(zip((s for s in self.slots if s.mask == self.all), rest, strict=False))
        for group in self.unordered:
            places = [taken[slot] for slot in group]
            shuffle(places)
            taken.update(zip(group, places, strict=True))
        return [self.items[taken[slot]] for slot in self.slots]


class Slot:
    """What is known of a drawn item: the places of those that it may be, as bits."""

    def __init__(self, pool: Pool):
        self.pool = pool
        self.mask = pool.all
        self.seen = False
        self.group: Group | None = None

    def places(self) -> Sequence[int]:
        """Return the places of the items that it may be."""
        return _places(self.mask)

    def take(self, masks: Sequence[int]) -> int:
        """Draw one of the parts of the set and return its place."""
        if self.group is not None:
            self.group.ask(self, masks)
            left = [place for place, mask in enumerate(masks) if mask & self.mask]
            if len(left) == 1:
                return left[0]
            if self.group is not None:
                return self.take(masks)
        elif not self.seen:
            self.pool.dissolve()
            self.seen = True
        masks = [mask & self.mask for mask in masks]
        chosen = _pick(self.pool.share(self, masks))
        self.mask = masks[chosen]
        return chosen


class Group:
    """Items that may be the same ones, of which the order makes no difference.

    Args:
        slots: The items, of which all have one set.
    """

    def __init__(self, slots: Sequence[Slot]):
        self.slots = list(slots)
        self.mask = slots[0].mask
        self.parts: tuple[int, ...] = ()  # the answers to the first question
        self.counts: list[int] = []  # how many items have given each
        self.asked: list[Slot] = []
        for slot in slots:
            slot.group = self

    def ask(self, slot: Slot, masks: Sequence[int]) -> None:
        """Let an item answer the first question; a second one is of a group of its own."""
        if not self.parts:
            self.parts = tuple(mask & self.mask for mask in masks if mask & self.mask)
            self.counts = [0] * len(self.parts)
        if slot in self.asked:
            self.settle()
            return
        self._answer(slot)

    def settle(self) -> None:
        """Let all items answer the first question, and those that answered alike be groups."""
        if self.parts:
            for slot in self.slots:
                if slot not in self.asked:
                    self._answer(slot)
            for part in self.parts:
                alike = [slot for slot in self.slots if slot.mask == part]
                if alike:
                    Group(alike)

    def _answer(self, slot: Slot) -> None:
        least = max((place for place, count in enumerate(self.counts) if count), default=0)
        ways = [0] * least
        for place in range(least, len(self.parts)):
            self.counts[place] += 1
            ways.append(self._ways(place))
            self.counts[place] -= 1
        chosen = _pick([Fraction(each, sum(ways)) for each in ways])
        self.counts[chosen] += 1
        self.asked.append(slot)
        slot.mask = self.parts[chosen]

    def _ways(self, last: int) -> int:
        """Return how many hands have these counts, of the last part that or more."""
        sizes = [part.bit_count() for part in self.parts]
        before = math.prod(math.comb(sizes[k], self.counts[k]) for k in range(last))
        open_ = len(self.slots) - sum(self.counts[:last])
        rest = sum(sizes[last + 1 :])
        return before * sum(
            math.comb(sizes[last], count) * math.comb(rest, open_ - count)
            for count in range(self.counts[last], min(sizes[last], open_) + 1)
        )


def _pick(shares: Sequence[Fraction]) -> int:
    possible = [place for place, share in enumerate(shares) if share]
    if len(possible) == 1:
        return possible[0]
    decider: Any = deciding.get()
    return int(decider.look(shares))


def _key(value: Any) -> Any:
    """Return a key that is equal for values that no question tells apart."""
    kind = type(value)
    if kind is tuple:
        return kind, tuple(map(_key, value))
    return (kind, value) if kind in _PLAIN else (kind, id(value))


def shown(value: Any) -> Any:
    """Return a value, drawn as a whole if it was not looked at."""
    return Unseen._whole(value) if type(value) is Unseen else value


def contains(item: Any, items: Any) -> bool:
    """Return whether something is in a container; of a drawn item no more is asked."""
    if type(item) is Unseen and type(items) in (set, frozenset, dict, range):
        return bool(item._ask(lambda value: value in items))
    return item in items


class Unseen:
    """A drawn item, or a part of one.

    Args:
        slot: What is known of the item.
        values: The value of each item of the pool; those of others than its own are of no account.
    """

    __slots__ = ("_slot", "_values")

    def __init__(self, slot: Slot, values: Sequence[Any]):
        object.__setattr__(self, "_slot", slot)
        object.__setattr__(self, "_values", values)

    def _ask(self, question: Callable[[Any], Any]) -> Any:
        """Return the answer of an item, or raise what it raises, by a draw where they differ."""
        mask = self._slot.mask
        if not mask & (mask - 1):
            return question(self._values[mask.bit_length() - 1])
        answers: dict[Any, tuple[bool, Any]] = {}
        masks: dict[Any, int] = {}
        for place in self._slot.places():
            try:
                answer = question(self._values[place])
                found = (True, answer)
                key: Any = (True, _key(answer))
            except Exception as error:
                found, key = (False, error), (False, type(error), str(error))
            if key in masks:
                masks[key] |= 1 << place
            else:
                answers[key], masks[key] = found, 1 << place
        keys = list(masks)
        chosen = 0 if len(keys) == 1 else self._slot.take(list(masks.values()))
        fine, answer = answers[keys[chosen]]
        if not fine:
            raise answer
        return answer

    def _whole(self) -> Any:
        return self._ask(lambda value: value)

    def _part(self, part: Callable[[Any], Any]) -> Any:
        """Return a part of the item, not looked at where it need not be."""
        values: list[Any] = [None] * len(self._values)
        for place in self._slot.places():
            try:
                values[place] = found = part(self._values[place])
            except Exception:
                return self._ask(part)
            if type(found) not in _VALUES and (isinstance(found, _BY_IDENTITY) or callable(found)):
                return self._ask(part)
        return Unseen(self._slot, values)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return self._ask(type)

    def __getattr__(self, name: str) -> Any:
        return self._part(lambda value: getattr(value, name))

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._whole(), name, value)

    def __getitem__(self, key: Any) -> Any:
        key = shown(key)
        return self._part(lambda value: value[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        self._whole()[shown(key)] = value

    def __len__(self) -> int:
        return int(self._ask(len))

    def __iter__(self) -> Iterator[Any]:
        values = [self._values[place] for place in self._slot.places()]
        if not _OF_ITEMS.issuperset(map(type, values)):
            return iter(self._whole())
        size = len(values[0]) if len(set(map(len, values))) == 1 else len(self)
        return iter([self._part(operator.itemgetter(k)) for k in range(size)])

    def __contains__(self, item: Any) -> bool:
        item = shown(item)
        return bool(self._ask(lambda value: item in value))

    def __hash__(self) -> int:
        return hash(self._whole())

    def __bool__(self) -> bool:
        return bool(self._ask(bool))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._whole().__reduce_ex__(protocol)


def _compared(function: Callable[[Any, Any], Any]) -> Any:
    def compare(self: Unseen, other: Any) -> Any:
        if type(other) is Unseen:
            return function(self._whole(), other._whole())
        return self._ask(lambda value: function(value, other))

    return compare


def _calculated(function: Callable[[Any, Any], Any], turned: bool = False) -> Any:
    def calculate(self: Unseen, other: Any) -> Any:
        other = shown(other)
        if turned:
            return self._part(lambda value: function(other, value))
        return self._part(lambda value: function(value, other))

    return calculate


def _asked(function: Callable[..., Any]) -> Any:
    return lambda self, *arguments: function(self._whole(), *arguments)


def _changed(function: Callable[[Any], Any]) -> Any:
    return lambda self: self._part(function)


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Unseen, f"__{_name}__", _compared(getattr(operator, _name)))
for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor"):
    _function = getattr(operator, f"__{_name}__")
    setattr(Unseen, f"__{_name}__", _calculated(_function))
    setattr(Unseen, f"__r{_name}__", _calculated(_function, turned=True))
setattr(Unseen, f"__{divmod.__name__}__", _calculated(divmod))
for _name, _function in (
    ("index", operator.index), ("int", int), ("float", float), ("complex", complex),
    ("str", str), ("repr", repr), ("format", format), ("round", round), ("trunc", math.trunc),
    ("floor", math.floor), ("ceil", math.ceil), ("reversed", reversed),
):  # fmt: skip
    setattr(Unseen, f"__{_name}__", _asked(_function))
for _name in ("neg", "pos", "abs", "invert"):
    setattr(Unseen, f"__{_name}__", _changed(getattr(operator, _name)))
