"""Contents of objects, and how two versions of them become one where paths meet."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from operator import is_
from typing import Any, NoReturn, Protocol

from hagane.frontends.python.values.late import LateReads, Noted
from hagane.frontends.python.values.memory import STALE, UNSET, WRITTEN
from hagane.frontends.python.values.originals import Originals
from hagane.frontends.python.values.values import (
    MISSING,
    Choice,
    Many,
    Pairs,
    Ref,
    Stream,
    Value,
)
from hagane.symbolic.logic import choose
from hagane.symbolic.term import FALSE, TRUE, Term

OPEN = "open"  # the code of what the interpreter does not know, which is no mistake of the program
MEMBERS = "members"  # the kind of a dictionary that shows the attributes of an object
Join = Callable[[Value, Value], Value]


class Links(Protocol):
    """Follows the changes of objects that may be one."""

    keys: set[int]

    def read(self, key: int) -> None:
        """Bring the content of an object up to date that is read now."""

    def replace(self, key: int) -> None:
        """Note that the content of an object was replaced."""

    def changed(self, key: int) -> None:
        """Note that the content of an object was changed."""


class Heap:
    """Contents by key: a dict is changed in place, every other content is replaced.

    Versions share dicts until one of them reads theirs, and then has a copy of its own: paths part
    and meet often, and each changes few objects of many.
    """

    def __init__(self) -> None:
        self.contents: dict[int, Any] = {WRITTEN: frozenset(), STALE: frozenset(), UNSET: {}}
        self.links: Links | None = None
        self.refuse: Callable[[str, str], NoReturn] = _refused
        self.ruled: Callable[[Many], Many] = _as_it_is
        self._keys = itertools.count(1)
        self._own: set[int] = set()  # the dicts that no other version has
        self._derived: dict[int, list[tuple[int, tuple[Any, ...], int]]] = {}
        self.dictionaries: set[int] = set()  # of the program; their keys are data
        self._views: dict[int, Callable[[], Any]] = {}
        self.late = LateReads(lambda: self.contents, self.dictionaries)
        self.originals = Originals()
        self.owners: dict[int, Value] = {}  # objects of the program that were given attributes
        self.absent: Callable[[Value, int, str], Value] = lambda owner, key, name: MISSING
        self.partly: dict[int, set[str]] = {}  # names that were set on some paths alone
        self.namespaces: set[int] = (
            set()
        )  # objects whose attributes the program has as a dictionary

    def new(self, content: Any) -> int:
        """Return the key of a new object."""
        key = next(self._keys)
        self.contents[key] = content if type(content) is not Many else self.ruled(content)
        self._own.add(key)
        return key

    def mark(self) -> int:
        """Return a number above the keys of all objects so far, and below those of later ones."""
        return next(self._keys)

    def __getitem__(self, ref: Ref | int) -> Any:
        key = ref if isinstance(ref, int) else ref.key
        if key in self._views:
            self.contents[key] = self._views[key]()
        if self.links is not None and key in self.links.keys:
            self.links.read(key)
        if self.late.noted:
            self.late.note(key)
        if self.late.owed:
            self.check_owed(key)
        content = self.contents[key]
        if type(content) is Choice and key in self.dictionaries:
            self.refuse(
                "capture",
                "a dictionary is read here that has other keys on other paths, and the data decide "
                "which was taken; set the same keys on all of them, or use a list",
            )
        if type(content) is Choice and self.links is not None:  # in a graph
            self.refuse(
                "capture",
                "a list or iterator is read here that has other items on other paths, which no "
                "tensors hold, and the data decide which was taken; give it as many items of one "
                "type on each, or make a list of its items before the branch",
            )
        if type(content) is dict and key not in self._own:
            content = self.contents[key] = dict(content)
            self._own.add(key)
        return content

    def __setitem__(self, ref: Ref | int, content: Any) -> None:
        key = ref if isinstance(ref, int) else ref.key
        if self.late.noted:
            self.late.note(key)
        if self.late.owed:
            self.check_owed(key)
        if key in self.namespaces and type(content) is not dict:
            self.refuse(OPEN, "attributes of an object whose names are not known are set")
        self.contents[key] = content if type(content) is not Many else self.ruled(content)
        self._own.discard(key)  # others may have it, too
        self.originals.change(key)
        if self.links is not None:
            self.links.replace(key)

    def derive(self, key: int, sources: Iterable[Ref | Stream], order: int = 0) -> None:
        """Note the objects of which an iterator was made, and that Python reads later.

        Args:
            key: The iterator.
            sources: The objects.
            order: 1 where its items are those of the sources in their order, -1 where they are so
                from behind; 0 for others, of which all are compared.
        """
        noted = self._derived.setdefault(key, [])
        for source in sources:
            for behind, before, way in self._derived.get(source.key, ()):
                noted.append((behind, before, way * order if way and order else 0))
            if isinstance(source, Ref):
                noted.append((source.key, _shown(self.contents.get(source.key)), order))

    def check_owed(self, key: int, name: str | None = None) -> None:
        """Refuse what the code of an iterator changes that has not given all of its items."""
        if self.late.is_owed(key, name):
            what = "something" if name is None else f"'{name}'"
            self.refuse(
                "capture",
                f"{what} is read or changed here that the code of an iterator changes too, when "
                "its items are asked for, and it has items left; make a list of them where the "
                "iterator is made, as in list(map(f, x))",
            )

    def reading(self) -> AbstractContextManager[Noted]:
        """Collect what the code of the block reads and changes of the objects that there are."""
        return self.late.reading(self.mark())

    def view(self, key: int, make: Callable[[], Any]) -> None:
        """Let an object have the content that a function gives, whenever it is read."""
        self._views[key] = make

    def check_unread(self, key: int, read: int) -> None:
        """Compare the sources of an iterator, from an item on, with those that it was made of.

        They are refused where they have changed.
        """
        for source, before, order in self._derived.get(key, ()):
            after = _shown(self.contents.get(source))
            span = {1: slice(read, None), -1: slice(0, len(before) - read)}.get(
                order or 0, slice(0)
            )
            one, other = (before[span], after[span]) if order else (before, after)
            if len(before) != len(after) or not all(map(is_, one, other)):
                self.refuse(
                    "order",
                    "an iterator is read after the container that it was made of has changed; "
                    "make it anew, or of a copy",
                )
        if self.late.changed(key):
            self.refuse_unread()

    def refuse_unread(self) -> NoReturn:
        """Refuse an iterator whose code reads something that the program has changed."""
        self.refuse(
            "capture",
            "an iterator is read after something that its code reads has changed; make a list "
            "of its items first, or read it in a loop with that code in its body",
        )

    def put(self, key: int, content: Any) -> None:
        """Set the content of an object that changes no more than it did for the program."""
        self.contents[key] = content
        self._own.discard(key)

    def changed(self, ref: Ref) -> None:
        """Note that the program has changed a dict in place."""
        self.originals.change(ref.key)
        if self.links is not None and ref.key in self.links.keys:
            self.links.changed(ref.key)

    def complete(self, yes: dict[int, Any], no: dict[int, Any]) -> None:
        """Give objects what an attribute is to them on the one of two paths that did not set it."""
        for key, one in list(yes.items()):
            other = no.get(key)
            if one is other or type(one) is not dict or type(other) is not dict:
                continue
            if key in self.dictionaries:
                continue
            for contents, held, more in ((yes, one, other), (no, other, one)):
                names = [n for n, v in more.items() if v is not MISSING]
                lacking = [n for n in names if held.get(n, MISSING) is MISSING]
                if lacking:
                    self.partly.setdefault(key, set()).update(lacking)
                if lacking and key in self.owners:
                    absent = {n: self.absent(self.owners[key], key, n) for n in lacking}
                    contents[key] = {**held, **absent}

    def drop(self, key: int) -> None:
        """Forget the content of an object that nothing refers to any more."""
        self.contents.pop(key, None)

    def snapshot(self) -> dict[int, Any]:
        """Return all contents as they are now; later changes do not reach the copy."""
        self._own.clear()
        return dict(self.contents)

    def restore(self, snapshot: dict[int, Any]) -> None:
        """Go back to a snapshot, which must not be used again; younger objects stay.

        Those of the running Python are what they were.
        """
        self.originals.fill(snapshot, self.contents)
        for key in sorted(self.contents.keys() - snapshot.keys()):
            snapshot[key] = self.contents[key]
        self._own.clear()
        self.contents = snapshot


def _as_it_is(content: Many) -> Many:
    return content


def _refused(code: str, message: str) -> NoReturn:
    raise RuntimeError(f"{code}: {message}")


def _shown(content: Any) -> tuple[Any, ...]:
    """Return the parts of a content, to be compared with those that it has later."""
    if isinstance(content, dict):
        return tuple(content)
    return content if isinstance(content, tuple) else (content,)


def is_same_number(yes: Value, no: Value) -> bool:
    """Tell whether numbers of two paths are one number: 0.0 is not -0.0."""
    if type(yes) is not type(no) or yes != no:
        return False
    floats = isinstance(yes, float) and isinstance(no, float)
    return not floats or math.copysign(1, yes) == math.copysign(1, no)


def join_contents(
    yes: dict[int, Any],
    no: dict[int, Any],
    join: Join,
    condition: Term,
    join_lists: Join | None = None,
) -> dict[int, Any]:
    """Return the contents after two paths: ``yes`` was taken where ``condition`` holds.

    ``join_lists`` joins the contents of lists of different lengths; one value stands for all of
    their items without it.
    """
    result = dict(no)
    for key, content in yes.items():
        other = result.get(key, MISSING)
        if other is MISSING or other is content:
            result[key] = content
        elif key in (WRITTEN, STALE):
            result[key] = content | other
        elif key == UNSET:
            continue  # see `join_unset`
        elif type(content) is dict and type(other) is dict:
            result[key] = _join_names(content, other, join, condition)
        else:
            result[key] = _join_items(content, other, join, condition, join_lists)
    return result


def join_unset(
    yes: dict[int, Any], no: dict[int, Any], joined: dict[int, Any], frame: int, condition: Term
) -> None:
    """Note the variables of a frame that one of two paths alone has set, and when they are not.

    Args:
        yes: The contents after the path that was taken where ``condition`` holds.
        no: Those after the other one.
        joined: The contents after both.
        frame: The key of the frame.
        condition: The condition.
    """
    one, other = yes[UNSET], no[UNSET]
    names, more = yes.get(frame, {}), no.get(frame, {})
    found = {}
    if names is not more:
        lacking = (names.keys() ^ more.keys()) | {
            n
            for n in names.keys() & more.keys()
            if (names[n] is MISSING) is not (more[n] is MISSING)
        }
        found = dict.fromkeys((frame, name) for name in lacking)
    if not found and one is other:
        return
    for key in {**found, **one, **other}:
        value = joined.get(key[0], {}).get(key[1], MISSING)
        if value is MISSING:
            continue
        terms = [
            TRUE
            if contents.get(key[0], {}).get(key[1], MISSING) is MISSING
            else unset_of(contents, key)
            for contents in (yes, no)
        ]
        term = choose(condition, *terms)
        if term is not FALSE:
            found[key] = term, value
    joined[UNSET] = {key: told for key, told in found.items() if told is not None}


def unset_of(contents: dict[int, Any], key: tuple[int, str]) -> Term:
    """Return when the value that a frame has for a variable is that of a path that set none."""
    term, value = contents[UNSET].get(key, (FALSE, None))
    held = contents.get(key[0], {}).get(key[1], MISSING)
    return term if held is value else FALSE  # it was set anew


def _join_names(
    yes: dict[Any, Value], no: dict[Any, Value], join: Join, condition: Term
) -> dict[Any, Value]:
    if yes.keys() == no.keys() and all(map(is_, yes.values(), no.values())):
        return yes  # copies of one content have one order, too
    result = {}
    for name in [*yes, *(name for name in no if name not in yes)]:
        a, b = yes.get(name, MISSING), no.get(name, MISSING)
        result[name] = a if a is b else join(a, b)
    return result


def _join_items(yes: Any, no: Any, join: Join, condition: Term, join_lists: Join | None) -> Any:
    if isinstance(yes, Pairs | dict) and isinstance(no, Pairs | dict):
        return _join_pairs(yes, no, join)
    if isinstance(yes, tuple) and isinstance(no, tuple) and len(yes) == len(no):
        return tuple(a if a is b else join(a, b) for a, b in zip(yes, no, strict=True))
    if isinstance(yes, tuple | Many) and isinstance(no, tuple | Many):
        if join_lists is not None:
            return join_lists(yes, no)
        element, length = as_many(yes, join)
        other, other_length = as_many(no, join)
        if element is MISSING or other is MISSING:
            element = other if element is MISSING else element
        elif element is not other:
            element = join(element, other)
        return Many(element, join(length, other_length))
    return Choice(condition, yes, no)


def _join_pairs(yes: Any, no: Any, join: Join) -> Pairs:
    """Return the content of a dictionary that has items at open keys on a path."""
    keys, values, lengths = [], [], []
    for content in (yes, no):
        one = isinstance(content, Pairs)
        keys += [content.key] if one else list(content)
        values += [content.element] if one else list(content.values())
        lengths.append(content.length if one else len(content))
    element, _ = as_many(tuple(values), join)
    key, _ = as_many(tuple(keys), join)
    return Pairs(element, join(*lengths), key=key)


def as_many(content: tuple[Value, ...] | Many, join: Join) -> tuple[Value, Any]:
    """Return one value that stands for all, and how many there are."""
    if isinstance(content, Many):
        return content.element, content.length
    element: Value = MISSING
    for item in content:
        element = item if element is MISSING or element is item else join(element, item)
    return element, len(content)
