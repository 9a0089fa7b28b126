"""The state that a loop hands from one iteration to the next, as attempts show it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import onnx_ir as ir

from hagane.frontends.capture.emitting.growth import Began, Handed, steady
from hagane.frontends.capture.flow.containers import objects
from hagane.frontends.capture.flow.holding import Holding
from hagane.frontends.capture.flow.slots import (
    Contents,
    Fixed,
    Listed,
    Maybe,
    NumberSlot,
    Rows,
    Slot,
    TensorSlot,
    at,
    content_slot,
    has_objects,
    is_stackable,
    leaf_type,
    leaves,
    loosened,
    opened,
    slot_of,
    unified,
)
from hagane.frontends.capture.flow.twins import Twins
from hagane.frontends.python.interpret.loops import changes
from hagane.frontends.python.values.memory import STALE, memory_of, share
from hagane.frontends.python.values.objects import Instance
from hagane.frontends.python.values.values import (
    MISSING,
    Choice,
    DictRef,
    Doubtful,
    ListRef,
    Ref,
    Stream,
    Tensor,
    Unknown,
    Value,
)
from hagane.graph.types import TensorType
from hagane.symbolic import Dim, Expr
from hagane.symbolic.term import Term

Odd = tuple[Any, Value, Value]  # a name, its value before and after


class Carried:
    """The state that the iterations of a loop hand on, as far as attempts have shown it.

    Args:
        start: The contents before the loop.
        holding: Takes values apart.
        mixing: Whether a number may be Python's or a scalar of NumPy, as the data decide.
    """

    def __init__(self, start: dict[int, Any], holding: Holding, *, mixing: bool = False):
        self.start = start
        self.mixing = mixing
        self.holding = holding
        self.emit = holding.emit
        self.dicts = {
            value.key
            for content in start.values()
            for value in (content.values() if type(content) is dict else _items(content))
            if isinstance(value, DictRef)
        }
        self.slots: dict[tuple[int, Any], Slot] = {}  # by object, and name or None
        self.twins = Twins(holding.core, start)
        self.loose: set[int] = set()  # changed lists whose items are not stacked before the loop
        self.doubtful: dict[tuple[int, Any], Odd] = {}  # names of which no slot holds the value
        self.seldom: set[tuple[int, Any]] = set()  # names that an iteration may leave None
        self._families = frozenset(holding.links.so_far())
        self._family: dict[tuple[int, Any], frozenset[int]] = {}  # that of the items of lists
        self.stale: frozenset[int] = frozenset()  # objects changed under another name
        self._outdated: set[tuple[int, Any]] = set()  # names of such
        self._doubled: set[tuple[int, Any]] = set()  # lists that may have an item twice
        self._objects: dict[tuple[int, Any], frozenset[int]] = {}  # what their objects have been
        self._near: set[frozenset[tuple[int, Any]]] = set()  # names that may have one object
        self._memory: dict[tuple[int, Any], set[ir.Value]] = {}  # before a turn, and after it
        self._before: set[ir.Value] = set()  # that of the values before the loop
        self._bounds: dict[tuple[int, Any], tuple[int, Began]] = {}
        self._count = holding.emit.made_so_far()
        joined = holding.core.knowledge.joined
        self._names = frozenset([*self.emit.numbers, *self.emit.sizes, *joined])  # of sizes

    def learn(self, after: dict[int, Any]) -> tuple[Odd | None, bool]:
        """Note the changes of an iteration.

        Returns:
            Values that no slot holds: name, value before and after; and whether anything was new.
        """
        self.holding.core.heap.originals.fill(self.start, after)
        more = False
        held: set[int] = set()
        for key, part, before, value in changes(self.start, after):
            known = self.slots.get((key, part))
            slot = self._slot(key, part, before, value, after, known)
            odd = (part, before, value)
            if self._is_shared(value, before, held):
                return odd, False
            if slot is None and part is not None and _is_rebound(before, value):
                slot = Fixed(Doubtful(f"'{part}' has another type before the loop", told=False))
                self.doubtful[key, part] = odd
            if slot is None:
                return odd, False
            if not isinstance(slot, Fixed):
                more |= known != slot
                self.slots[key, part] = slot
            elif isinstance(slot.value, Unknown):
                more |= known is None
                self.slots[key, part] = slot
        added = self._added_key(after)
        more |= self.twins.learn(self.slots, after)
        more |= self._learn_presence(after)
        more |= self._learn_memory(after)
        more |= self._learn_objects(after)
        return (added, False) if added is not None else (None, more)

    def is_late(self, name: tuple[int, Any]) -> bool:
        """Whether a value is None before the first iteration, and never behind one."""
        found = isinstance(self.slots.get(name), Maybe) and name not in self.seldom
        return found and at(self.start, *name) is None

    def _learn_presence(self, after: dict[int, Any]) -> bool:
        """Note the values that may be None behind an iteration; return whether there are more."""
        left = {
            name
            for name in self.slots
            if self.is_late(name) and not self.holding.is_present(at(after, *name))
        }
        self.seldom |= left
        return bool(left)

    def _learn_memory(self, after: dict[int, Any]) -> bool:
        """Note the possible memory of values handed on; return whether more is known now."""
        before = self._together()
        known = {key: self._older(found) for key, found in self._memory.items()}
        for key, part in self.slots:
            found = self._memory.setdefault((key, part), set())
            first = _memory(at(self.start, key, part), self.start)
            self._before |= first
            found |= first
            if key in after:
                found |= _memory(at(after, key, part), after)
        older = {key: self._older(found) for key, found in self._memory.items()}
        return older != known or self._together() != before

    def _learn_objects(self, after: dict[int, Any]) -> bool:
        """Note which objects values handed on may be; return whether more is known now."""
        links, start = self.holding.links, self.start
        old = {*start, *self._families, *(n for f in self._family.values() for n in f)}
        known = self._findings()
        ends: list[dict[tuple[int, Any], set[int]]] = [{}, {}]
        for name in self.slots:
            for contents, found in zip((start, after), ends, strict=True):
                value = at(contents, *name) if name[0] in contents else None
                keys = [*objects(value, contents)]
                found[name] = set(keys)
                if isinstance(value, Rows) and (value.doubled or links.is_doubled(value.family)):
                    self._doubled.add(name)
                if len(found[name]) < len(keys):
                    self._doubled.add(name)
            older = [links.older(key, old) for found in ends for key in found[name]]
            self._objects[name] = self._objects.get(name, frozenset()).union(*older)
            if ends[1][name] & after[STALE]:
                self._outdated.add(name)
        for found in ends:
            for one, other in itertools.combinations(found, 2):
                pair = frozenset((one, other))
                if pair not in self._near and any(
                    links.may_be(a, b) for a in found[one] for b in found[other]
                ):
                    self._near.add(pair)
        self.stale |= frozenset(key for key in after[STALE] if key in start)
        return known != self._findings()

    def _findings(self) -> tuple[Any, ...]:
        counts = len(self._near), len(self._outdated), len(self._doubled)
        return dict(self._objects), self.stale, counts

    def hand_on(self, values: Mapping[tuple[int, Any], Value]) -> None:
        """Note what the objects among values of an iteration, or behind the last one, may be."""
        contents = self.holding.core.heap.contents
        self.holding.links.hand_on(values, self._objects, self._near)
        for name in self._doubled & values.keys():
            families = {key for key in objects(values[name], contents) if key < 0}
            self.holding.links.double(frozenset(families))
        made = [values[name] for name in self._outdated if name in values]
        old = {key for value in made for key in objects(value, contents) if key > 0}
        if old - contents[STALE] or self.stale - contents[STALE]:
            contents[STALE] = contents[STALE] | self.stale | old
            self.holding.links.keys |= contents[STALE]

    def learn_bounds(self, entered: Mapping[tuple[int, Any], Value], after: dict[int, Any]) -> None:
        """Note how far numbers handed on may get, given an iteration's first and last ones."""
        numbers: dict[tuple[int, Any], Handed] = {}
        for name, value in entered.items():
            first, last = at(self.start, *name), at(after, *name)
            if isinstance(value, Expr) and all(isinstance(x, int | Expr) for x in (first, last)):
                numbers[name] = Handed(first, str(value), last)
        self._bounds = steady(self.emit, numbers)

    def bound(self, values: Mapping[tuple[int, Any], Value]) -> None:
        """Note it of the values of an iteration, or behind the last one."""
        for name, (most, began) in self._bounds.items():
            value = values.get(name)
            if isinstance(value, Expr):
                self.emit.most[str(value)], self.emit.began[str(value)] = most, began

    def _older(self, memory: set[ir.Value]) -> set[ir.Value]:
        # A value that nothing computes, as one of a doubtful name, has no place among the others.
        born = self.emit.born
        return {v for v in memory if v in self._before or 0 <= born(v) < self._count}

    def _together(self) -> list[set[tuple[int, Any]]]:
        """Return groups of values that may share memory."""
        groups: list[tuple[set[tuple[int, Any]], set[ir.Value]]] = []
        for name, memory in self._memory.items():
            near = [group for group in groups if group[1] & memory]
            groups = [group for group in groups if not group[1] & memory]
            groups.append(
                ({name}.union(*(g[0] for g in near)), memory.union(*(g[1] for g in near)))
            )
        return [names for names, _ in groups]

    def share(self, values: Mapping[tuple[int, Any], Sequence[ir.Value]]) -> None:
        """Note the memory of an iteration's inputs, or of values after the last one."""
        for names in self._together():
            all_of = [v for name in names for v in values.get(name, ())]
            memory = {m for name in names for m in self._memory[name]}
            for value in all_of:
                share(value, [*all_of, *memory])

    def _slot(
        self, key: int, part: Any, before: Value, value: Value, after: Contents, known: Slot | None
    ) -> Slot | None:
        if isinstance(known, Fixed):  # a name that is of another type before the loop
            return known
        also = self.emit.also
        if part is None:
            like = ListRef(0)
            if not isinstance(before, Rows) and before != ():
                self.loose.add(key)
            first = content_slot(before, self.start, like, also)
            last = content_slot(value, after, like, also)
        else:
            first, last = slot_of(before, self.start, also), slot_of(value, after, also)
        found = unified(first, last, mixing=self.mixing)
        if isinstance(found, Maybe) and before is None and (key, part) not in self.seldom:
            item = last.item if isinstance(last, Maybe) else last or found.item
            found = Maybe(opened(item, self._names))  # no filler is ever read
            if isinstance(known, Maybe):
                inner = unified(known.item, found.item)
                found = None if inner is None else Maybe(inner)
        elif known is not None:
            found = unified(known, found, mixing=self.mixing)
        for one in _lists(found):
            if one.item is not None and not is_stackable(one.item):
                return None
        return None if found is None else loosened(found, self._names)

    @staticmethod
    def _is_shared(value: Value, before: Value, held: set[int]) -> bool:
        """Whether a new container is bound to two names, of which changes would be seen."""
        if not isinstance(value, ListRef | DictRef | Instance) or value is before:
            return False
        if isinstance(before, Ref) and before.key == value.key:
            return False
        if value.key in held:
            return True
        held.add(value.key)
        return False

    def _added_key(self, after: dict[int, Any]) -> Odd | None:
        """Return a key or attribute that an iteration adds to an object, which others may find."""
        owners = self.holding.core.heap.owners
        for key, before in self.start.items():
            content = after.get(key)
            if key not in self.dicts and key not in owners:
                continue
            if type(before) is dict and type(content) is dict:
                for name, value in content.items():
                    if name not in before:
                        return name, MISSING, value
        return None

    def settle_lengths(
        self, times: Dim, made: Mapping[tuple[int, Any], Value], after: dict[int, Any]
    ) -> None:
        """Note how long lists are behind all iterations, where each adds the same number of items.

        Args:
            times: The number of iterations, all of which are run.
            made: The contents at the start of an iteration.
            after: Those at its end.
        """
        for name, slot in self.slots.items():
            first = at(self.start, *name)
            before, last = made.get(name), at(after, *name)
            if name[1] is not None or not isinstance(slot, Listed) or slot.length is not None:
                continue
            if not isinstance(before, Rows) or not isinstance(last, Rows):
                continue
            added = last.length - before.length
            length = first.length if isinstance(first, Rows) else len(first)
            if isinstance(added, int):
                self.slots[name] = replace(slot, length=length + added * times)

    def leaf_types(self) -> list[TensorType]:
        """Return the types of the tensors that hold all of it."""
        fresh = self.emit.fresh
        return [leaf_type(leaf, fresh) for name in self.slots for leaf in self._leaves(name)]

    def _leaves(self, name: tuple[int, Any]) -> list[TensorSlot | NumberSlot]:
        """Return the tensors that hold a value; none if it is made of another one's."""
        return [] if name in self.twins.leaders else [*leaves(self.slots[name])]

    def tensors(self, contents: dict[int, Any]) -> list[ir.Value]:
        """Return the graph values that hold it, given contents of the program."""
        return [
            self.emit.value_of(tensor)
            for (key, part), slot in self.slots.items()
            if (key, part) not in self.twins.leaders
            for tensor in self.holding.apart(slot, at(contents, key, part), contents)
        ]

    def divided(self, values: Sequence[ir.Value]) -> dict[tuple[int, Any], list[ir.Value]]:
        """Return the values that hold each part."""
        left = iter(values)
        return {name: [next(left) for _ in self._leaves(name)] for name in self.slots}

    def made(
        self,
        name: tuple[int, Any],
        slot: Slot,
        inputs: Iterator[ir.Value],
        present: Term | None = None,
        before: Mapping[tuple[int, Any], Value] | None = None,
    ) -> Value:
        """Return the value, or the content, that graph values hold.

        Args:
            name: The object and the name of the value; no name for its content.
            slot: Its form.
            inputs: The values.
            present: Whether a value that may be None is there, where numbers tell.
            before: The values that were made first, of which it may be a view.
        """
        leader = self.twins.leaders.get(name)
        if leader is not None and before is not None:
            return self.twins.made(name, before[leader])
        tensors = (self.emit.tensor(value) for value in inputs)
        if name[1] is not None:
            return self.holding.together(slot, tensors, present)
        family = self._family.get(name)
        if family is None and isinstance(slot, Listed) and has_objects(slot.item):
            family = self._family[name] = self.holding.links.new_family()
        return self.holding.content(slot, tensors, family)


def _items(content: Any) -> tuple[Value, ...]:
    return content if isinstance(content, tuple) else ()


def _memory(value: Value, contents: Contents) -> set[ir.Value]:
    """Return the keys of the memory of all tensors in a value or a content."""
    found: set[ir.Value] = set()
    waiting, seen = [value], set[int]()
    while waiting:
        one = waiting.pop()
        if isinstance(one, Tensor):
            found |= memory_of(one.value)
        elif isinstance(one, Rows):
            waiting += one.columns
        elif isinstance(one, Choice):
            waiting += [one.yes, one.no]
        elif isinstance(one, tuple):
            waiting += one
        elif isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, Ref) and one.key not in seen and one.key in contents:
            seen.add(one.key)
            waiting.append(contents[one.key])
    return found


def _lists(slot: Slot | None) -> Iterator[Listed]:
    if isinstance(slot, Listed):
        yield slot
    for inner in getattr(slot, "items", None) or [getattr(slot, "item", None)]:
        if inner is not None:
            yield from _lists(inner)


def _is_rebound(before: Value, after: Value) -> bool:
    if isinstance(before, Stream) and isinstance(after, Stream):
        return before.key != after.key
    return before is not None and after is not None and type(before) is not type(after)
