"""What the code behind iterators reads and changes.

Python runs it when an item is asked for, not before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from hagane.frontends.python.values.values import (
    MISSING,
    Unknown,
    Value,
)


class Read(NamedTuple):
    """A container that code has read, or a name of a frame or an object, and what it held."""

    key: int
    name: str | None
    held: tuple[Any, ...]


class Noted(NamedTuple):
    """What code has read of older objects, and what it has changed in them."""

    reads: list[Read]
    writes: list[Read]


class LateReads:
    """Notes what code reads and changes that runs later, and whether it has changed by then.

    Args:
        contents: Returns the contents of objects, by their keys.
        dictionaries: The objects that are dictionaries of the program.
    """

    def __init__(self, contents: Callable[[], Mapping[int, Any]], dictionaries: Collection[int]):
        self._contents, self._dictionaries = contents, dictionaries
        self.noted: list[dict[tuple[int, str | None], Any]] = []  # of the blocks that run now
        self._reads: dict[int, list[Read]] = {}  # by the iterator
        self.owed: dict[int, set[tuple[int, str | None]]] = {}  # what it changes, by the iterator
        self.looped: set[int] = set()  # iterators that loops run over now
        self.left: set[int] = set()  # those of which the data decide how many items are left

    def note(self, key: int, name: str | None = None) -> None:
        """Note that a container, or a name of a frame or of an object, is read or will be set."""
        content = self._contents().get(key) if name is None else None
        if isinstance(content, dict):
            content = dict(content)
        for noted in self.noted:
            noted.setdefault((key, name), content)

    @contextmanager
    def reading(self, since: int) -> Iterator[Noted]:
        """Collect what the block reads and changes; the lists are full at its end.

        Args:
            since: A key that all older objects lie below.
        """
        found = Noted([], [])
        self.noted.append({})
        try:
            yield found
        finally:
            noted = self.noted.pop()
            for (key, name), before in noted.items():
                if key >= since:
                    continue
                named = self._has_names(key)
                if name is not None or not named:
                    found.reads.append(Read(key, name, self._held(key, name)))
                if name is None and key in self._contents():
                    found.writes.extend(self._written(key, before, named))

    def _written(self, key: int, before: Any, named: bool) -> Iterator[Read]:
        """Yield what is no more what it was of a container, a frame or an object."""
        after = self._contents()[key]
        if not named:
            if after is not before and not _are_same(_parts(before), _parts(after)):
                yield Read(key, None, _parts(after))
            return
        for name, value in after.items():
            if value is not before.get(name, MISSING):
                yield Read(key, name, (value,))

    def read_later(
        self, iterator: int, noted: Noted, sources: Collection[int] = (), own: int | None = None
    ) -> None:
        """Note what the code of an iterator reads and changes.

        Args:
            iterator: Its key.
            noted: What it reads and changes.
            sources: Objects whose items it gives, of which others take care; what the code of
                those that are iterators does is done by this one, too.
            own: The frame of its code.
        """
        reads = [read for read in noted.reads if read.key not in sources]
        reads += [read for source in sources for read in self._reads.get(source, ())]
        if reads:
            self._reads[iterator] = [*self._reads.get(iterator, ()), *reads]
        owed = {(key, name) for key, name, _ in noted.writes if key not in (*sources, own)}
        owed.update(*(self.owed.get(source, ()) for source in sources))
        if owed:
            self.owed.setdefault(iterator, set()).update(owed)

    def is_owed(self, key: int, name: str | None = None) -> bool:
        """Whether the code of an iterator that has items left changes an object or a name."""
        contents = self._contents()
        for iterator in list(self.owed):
            if iterator in self.looped or iterator in self.left or contents.get(iterator, ()) != ():
                if (key, name) in self.owed[iterator]:
                    return True
            elif not self.noted:  # another iterator may be made of it in the block that runs
                del self.owed[iterator]
        return False

    def changed(self, iterator: int) -> bool:
        """Whether something that the code of an iterator reads is no more what it was."""
        return self.have_changed(self._reads.get(iterator, ()))

    def have_changed(self, reads: Iterable[Read]) -> bool:
        """Whether something that was read is no more what it was."""
        contents = self._contents()
        for key, name, before in reads:
            after = self._held(key, name) if key in contents else before
            if not _are_same(before, after):
                return True
        return False

    def reads(self, iterator: int, key: int) -> bool:
        """Whether the code of an iterator reads a container."""
        return any(read.key == key for read in self._reads.get(iterator, ()))

    def _has_names(self, key: int) -> bool:
        """Whether an object is a frame or has attributes, each of which is noted by its name."""
        return key not in self._dictionaries and isinstance(self._contents().get(key), dict)

    def _held(self, key: int, name: str | None) -> tuple[Any, ...]:
        content = self._contents().get(key)
        if name is not None and isinstance(content, dict):
            return (content.get(name, MISSING),)
        return _parts(content)


def _parts(content: Any) -> tuple[Any, ...]:
    """Return what a container holds, keys included."""
    if isinstance(content, dict):
        return (*content, *content.values())
    return content if isinstance(content, tuple) else (content,)


def _are_same(before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
    return len(before) == len(after) and all(map(_is_same, before, after))


def _is_same(before: Value, after: Value) -> bool:
    """Whether a value is what it was; one that is lost was told of."""
    return before is after or isinstance(after, Unknown)
