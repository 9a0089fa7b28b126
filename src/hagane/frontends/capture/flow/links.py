"""Containers that may be one object: copies that the graph makes where the program makes none.

A graph has values, no objects. Where the data decide which of two lists a name stands for, which
object an iteration hands to the next one, or which item of a list is meant, a new container has
the content of the one meant. As long as nothing changes either, they cannot be told apart; behind
a change, the other one must not be read any more. An item of a list whose items lie stacked is
written back into the list.
"""

from __future__ import annotations

import ast
import itertools
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from hagane.frontends.capture.flow.containers import (
    containers,
    is_container,
    is_flat,
    keys_of,
    named,
    objects,
    stale,
)
from hagane.frontends.capture.flow.slots import Contents, Rows
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.memory import STALE
from hagane.frontends.python.values.values import Value
from hagane.symbolic import Dim, definitely_equal

if TYPE_CHECKING:
    from hagane.frontends.capture.flow.lists import Lists
    from hagane.frontends.python.enter.interpreter import Interpreter


@dataclass(eq=False)
class View:
    """A container that has the content of an item of a list whose items lie stacked.

    Attributes:
        value: The item, which the container is or is a part of.
        place: Its place in the list.
        seen: The contents of the list in which the item is as the container is.
        owner: The key of the list; None where none holds the items, or they are in several.
        members: All containers that the item may be, of a list of known length.
    """

    value: Value
    place: Dim
    seen: list[Rows]
    owner: int | None = None
    members: tuple[Value, ...] = ()

    def has_seen(self, content: Any) -> bool:
        """Whether the item is in a content of the list as the container is."""
        return any(content is one for one in self.seen)


class Links:
    """Knows which containers may be one object, and follows their changes.

    Containers have positive keys. Negative ones are families: the items of a list together.

    Args:
        core: The interpreter.
        lists: Stores items of lists.
    """

    _first = -2  # the first family

    def __init__(self, core: Interpreter, lists: Lists):
        self.core, self.lists = core, lists
        self.keys: set[int] = set()  # of all containers that may be another one
        self._sources: dict[int, frozenset[int]] = {}  # what each may be
        self._parted: dict[int, tuple[int, frozenset[int]]] = {}  # a group, and others of it
        self._views: dict[int, View] = {}
        self._changed: dict[int, int] = {}  # when an item of a family was changed
        self._count = 0  # of families
        self._groups = itertools.count()
        self._doubled: set[int] = set()  # families of which a list may have an item twice
        self.replaced: Counter[int] = Counter()  # how often the content of a container was
        self.behind: set[int] = set()  # made of two of which one must not be read
        self.mixed: list[Rows] = []  # contents that were joined of items that must not be read
        self.clock = 0  # how often items of lists were changed

    # What may be one.

    def stand_for(
        self, made: Value, *others: Value, sides: Sequence[Contents] | None = None
    ) -> None:
        """Note that a new container has the content of one of others, which it may be.

        Each of them is in one of the contents that ``sides`` are; the present ones if None.
        """
        if not is_container(made):
            return
        keys = frozenset(other.key for other in others if is_container(other))
        if keys - {made.key}:
            self._link(made.key, keys)
        contents = self.core.heap.contents
        pairs = zip(keys_of(others), sides or (contents,) * 2, strict=False)
        if not all(self._is_current(key, side) for key, side in pairs):
            contents[STALE] = contents[STALE] | {made.key}
            self.behind.add(made.key)
            self.keys.add(made.key)

    @contextmanager
    def joining(self) -> Iterator[set[int]]:
        """Collect the containers made inside the block that must not be read in what is joined."""
        before, self.behind = self.behind, set()
        try:
            yield self.behind
        finally:
            self.behind = before | self.behind

    def _link(self, key: int, sources: frozenset[int]) -> None:
        self._sources[key] = self._sources.get(key, frozenset()) | (sources - {key})
        self.keys |= {one for one in (key, *sources) if one > 0}

    def hand_on(self, made: Mapping[Any, Value], sources: Mapping[Any, frozenset[int]],
                pairs: Container[frozenset[Any]]) -> None:  # fmt: skip
        """Note what the containers of values that a loop hands on may be.

        Args:
            made: The values by their names.
            sources: The keys of the containers that each has been.
            pairs: The pairs of names whose values may be one container.
        """
        contents, group = self.core.heap.contents, next(self._groups)
        keys = {name: frozenset(objects(value, contents)) for name, value in made.items()}
        for name, own in keys.items():
            near = [other for one, other in keys.items() if frozenset((one, name)) in pairs]
            for key in own:
                self._link(key, sources.get(name, frozenset()))
                self._parted[key] = group, frozenset[int]().union(*near)

    def may_be(self, a: int, b: int) -> bool:
        """Whether two containers may be one; a family, whether the container is of it."""
        waiting, seen = [(a, b)], set[tuple[int, int]]()
        while waiting:
            pair = waiting.pop()
            if pair in seen:
                continue
            seen.add(pair)
            x, y = pair
            if x == y:
                return True
            left, right = self._parted.get(x), self._parted.get(y)
            if left is not None and right is not None and left[0] == right[0]:
                if y in left[1] or x in right[1]:
                    return True
                continue
            waiting += [(one, y) for one in self._sources.get(x, ())]
            waiting += [(x, one) for one in self._sources.get(y, ())]
        return False

    def older(self, key: int, known: Container[int]) -> frozenset[int]:
        """Return what a container may be of those known before."""
        found, waiting, seen = set[int](), [key], set[int]()
        while waiting:
            one = waiting.pop()
            if one in seen:
                continue
            seen.add(one)
            if one in known:
                found.add(one)
            else:
                waiting += self._sources.get(one, ())
        return frozenset(found)

    def forget(self, mark: int) -> None:
        """Forget the containers that an attempt has made, whose keys are above a mark."""
        for known in (self._sources, self._parted, self._views):
            for key in [key for key in known if key > mark]:
                del known[key]
        self.keys = {key for key in self.keys if key <= mark}

    # Items of lists.

    def family_of(self, items: Value) -> frozenset[int]:
        """Return the family of items; none where they have no containers."""
        if isinstance(items, Rows):
            return items.family
        keys = [*containers(items, self.core.heap.contents)]
        if not keys:
            return frozenset()
        family = self.new_family(frozenset(keys))
        linked = [key for key in keys if key in self.keys]
        if len(set(keys)) < len(keys) or any(
            self.may_be(a, b) for a, b in itertools.combinations(linked, 2)
        ):
            self.double(family)
        return family

    def new_family(self, members: frozenset[int] = frozenset()) -> frozenset[int]:
        """Return the family of items that no other list has, and the containers among them."""
        self._count += 1
        family = self._first + 1 - self._count
        if members:
            self._link(family, members)
        return frozenset((family,))

    def so_far(self) -> range:
        """Return the families that there are."""
        return range(self._first + 1 - self._count, self._first + 1)

    def double(self, family: frozenset[int]) -> frozenset[int]:
        """Note that a list may have items of a family several times; return the family."""
        self._doubled |= family
        return family

    def is_doubled(self, family: frozenset[int]) -> bool:
        """Whether a list may have an item several times."""
        waiting, seen = [*family], set[int]()
        while waiting:
            one = waiting.pop()
            if one in self._doubled:
                return True
            if one not in seen:
                seen.add(one)
                waiting += [source for source in self._sources.get(one, ()) if source < 0]
        return False

    def doubling(self, value: Value, rows: Rows, place: Dim) -> tuple[Dim, Dim] | None:
        """Return the two places of one container where an item is set; None where all differ.

        The exchange of two items ends with each at one place.
        """
        old, contents = rows.doubled, self.core.heap.contents
        keys = [*containers(value, contents)]
        if not any(self.may_be(family, key) for family in rows.family for key in keys):
            ends = old is not None and any(definitely_equal(place, other) for other in old)
            return None if ends else old
        view = self._views.get(keys[0])
        if view is None or not view.seen:
            self.double(rows.family)
            return None
        if old is None:
            return view.place, place
        if not (definitely_equal(view.place, old[1]) and definitely_equal(place, old[0])):
            self.double(rows.family)
        return None

    def put(self, value: Value, rows: Rows, place: Dim) -> None:
        """Note that a container was made an item of a list's content."""
        view = View(value, place, [rows])
        for key in containers(value, self.core.heap.contents):
            # (An item that is in lists twice is not written back into one of them.)
            self._views[key] = View(value, place, []) if key in self._views else view
            self.keys.add(key)

    def taken(self, value: Value, rows: Rows, place: Dim, members: tuple[Value, ...] = ()) -> None:
        """Note that the containers of a value are an item of a list's content.

        Args:
            value: The value.
            rows: The content.
            place: The place in it.
            members: The items of a list of known length.
        """
        keys = [*containers(value, self.core.heap.contents)]
        view = View(value, place, [rows], members=members)
        for key in keys:
            self._views[key] = view
            self._link(key, rows.family)

    def _owner(self, view: View) -> int | None:
        """Return the key of the one list that holds the items of a view."""
        if view.owner is None:
            contents = self.core.heap.contents
            found = [key for key, content in contents.items() if view.has_seen(content)]
            view.owner = found[0] if len(found) == 1 else None
        return view.owner

    # Changes.

    def replace(self, key: int) -> None:
        """Note that the content of a container was replaced."""
        self.replaced[key] += 1
        if key in self.keys:
            self.changed(key)

    def changed(self, key: int) -> None:
        """Follow a change of a container's content."""
        view = self._views.get(key)
        owner = None if view is None else self._owner(view)
        own: set[int] = set()
        if view is not None:
            own = self._write_back(view, owner)
        contents = self.core.heap.contents
        families = {n for n in self.so_far() if self.may_be(n, key)}
        self.clock += 1
        self._changed.update(dict.fromkeys(families, self.clock))
        others = {
            other
            for other in self.keys
            if other != key
            and other not in own
            and not (owner is not None and self._is_of(other, owner))
            and self.may_be(key, other)
        }
        others |= {
            other
            for other, content in contents.items()
            if other != owner and isinstance(content, Rows) and content.family & families
        }
        if others:
            contents[STALE] = contents[STALE] | others
            self.keys |= others

    def _is_of(self, key: int, owner: int) -> bool:
        view = self._views.get(key)
        if view is None or view.owner is not None:
            return view is not None and view.owner == owner
        return view.has_seen(self.core.heap.contents.get(owner))

    def _write_back(self, view: View, owner: int | None) -> set[int]:
        """Give the item of the list the content of a view; return containers that are right now."""
        contents = self.core.heap.contents
        if self._is_one_of(view):
            return self._write_one_of(view)
        rows = None if owner is None else contents.get(owner)
        if owner is None or not isinstance(rows, Rows) or not view.has_seen(rows):
            raise CheckError(
                "capture",
                f"{self.core.show(view.value)} is changed in place, and it is an item of a list "
                "whose length or order the data decide; set the item: items[k] = changed",
            )
        if rows.doubled is not None or self.is_doubled(rows.family):
            raise CheckError(
                "capture",
                f"{self.core.show(view.value)} is changed in place, and the list that it is an "
                "item of may have it twice; append a copy: items.append(list(item))",
            )
        contents[owner] = made = self.lists.written(rows, self._front(view), view.value)
        view.seen.append(made)
        if owner in self._views:  # an item of another list itself
            self.changed(owner)
        return set()

    def _is_one_of(self, view: View) -> bool:
        """Whether a view is one of some containers that have no others in them."""
        contents, every = self.core.heap.contents, (view.value, *view.members)
        return bool(view.members) and all(is_flat(value, contents) for value in every)

    def _write_one_of(self, view: View) -> set[int]:
        """Give the content of a view to the container that it stands for."""
        core, heap = self.core, self.core.heap
        written: Any = view.value

        def take(key: int) -> None:
            content = heap.contents[written.key]
            heap.put(key, dict(content) if type(content) is dict else content)

        keys: set[int] = set()
        for number, member in enumerate(view.members):
            key = member.key
            here = core.as_term(core.truth(core.compare(ast.Eq, view.place, number)))
            core.fork(here, partial(take, key), lambda: None)
            keys.add(key)
        return keys

    def _is_current(self, key: int, contents: Contents) -> bool:
        """Whether a container has the content that it has for the program."""
        view = self._views.get(key)
        if key in contents[STALE]:
            return False
        if view is None or view.members or not view.seen:
            return True
        if view.owner in self._views and not self._is_current(view.owner, contents):
            return False
        rows = None if view.owner is None else contents.get(view.owner)
        born = max(one.born for one in view.seen)
        return view.has_seen(rows) or all(
            self._changed.get(one, 0) <= born for one in view.seen[0].family
        )

    def are_current(self, content: Value, contents: Contents) -> bool:
        """Whether the items of a list have the content that they have for the program."""
        keys = () if isinstance(content, Rows) else containers(content, contents)
        return all(self._is_current(key, contents) for key in keys)

    def is_mixed(self, content: Any) -> bool:
        """Whether a content was joined of items that must not be read."""
        return any(content is one for one in self.mixed)

    def fresh(self, value: Value, *, told: bool = True) -> None:
        """Bring the containers of a value up to date.

        Args:
            value: The value.
            told: Whether one that cannot be is an error now, not only where it is read.
        """
        contents = self.core.heap.contents
        for key in [key for key in containers(value, contents) if key in self.keys]:
            if told:
                self.read(key)
            else:
                self._try(key)

    def _try(self, key: int) -> None:
        """Bring a container up to date; one that cannot be is marked as changed."""
        try:
            self.read(key)
        except CheckError:
            contents = self.core.heap.contents
            contents[STALE] = contents[STALE] | {key}

    def refresh(self) -> None:
        """Bring all containers up to date; those that cannot be are marked as changed.

        Loops hand on values that nothing reads before, and joins those of either path. What one
        path or an attempt has seen of a list that others have too must not count for these.
        """
        contents = self.core.heap.contents
        behind = [k for k in self._views if k in contents and not self._is_current(k, contents)]
        held = named(contents) if behind else frozenset()
        for key in [key for key in behind if key in held]:
            self._try(key)

    @contextmanager
    def without(self, mark: int) -> Iterator[None]:
        """Leave out the views that another path has made, whose keys are above a mark."""
        others = {key: view for key, view in self._views.items() if key > mark}
        for key in others:
            del self._views[key]
        try:
            yield
        finally:
            self._views |= others

    def read(self, key: int) -> None:
        """Bring the content of a container up to date.

        Raises:
            CheckError: Another one has changed that may be the same.
        """
        contents = self.core.heap.contents
        view = self._views.get(key)
        if key in contents[STALE]:
            if view is None or not self._is_one_of(view):
                raise stale()
            for member in keys_of(view.members):  # flat ones, which a loop may have replaced
                if member in self.keys:
                    self.read(member)
            members = self.lists.stacked(view.members)
            contents[key] = contents[self.lists.copied(members, view.place).key]
            contents[STALE] = contents[STALE] - {key}
            return
        if view is None or view.members or not view.seen:
            return
        owner = self._owner(view)
        if owner in self._views:
            self.read(owner)
        rows = None if owner is None else contents.get(owner)
        if view.has_seen(rows):
            return
        born = max(one.born for one in view.seen)
        if all(self._changed.get(one, 0) <= born for one in view.seen[0].family):
            return
        before: Rows | None = rows
        while isinstance(before, Rows) and not view.has_seen(before):
            before = before.before
        if not isinstance(before, Rows) or key not in containers(view.value, contents):
            raise stale()
        assert isinstance(rows, Rows)
        self._renew(view.value, self.lists.copied(rows, self._front(view)))
        view.seen.append(rows)

    def _front(self, view: View) -> Dim:
        """Return the place of an item counted from the front, which stays where items are added.

        The place in the view is not replaced: this one may be of a branch alone.
        """
        return self.lists.from_front(view.place, view.seen[0].length)

    def _renew(self, value: Value, now: Value) -> Value:
        """Give containers the content of others of one structure; return the value that it is."""
        contents = self.core.heap.contents
        if isinstance(value, tuple) and isinstance(now, tuple) and len(value) == len(now):
            return tuple(map(self._renew, value, now))
        if not is_container(value) or type(value) is not type(now):
            return now
        old, new = contents[value.key], contents[now.key]
        if isinstance(old, Rows):  # what was taken of it before is another object now
            self.clock += 1
            self._changed.update(dict.fromkeys(old.family, self.clock))
        if type(old) is dict and type(new) is dict and old.keys() == new.keys():
            contents[value.key] = {name: self._renew(old[name], new[name]) for name in new}
        else:
            contents[value.key] = self._renew(old, new)
        return value


__all__ = ["Links"]
