"""What the code behind iterators reads: Python runs it when an item is asked for, not before."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from hagane.frontends.python.values.values import MISSING, Unknown, Value


class Read(NamedTuple):
    """A container that code has read, or a name of a frame or an object, and what it held."""

    key: int
    name: str | None
    held: tuple[Any, ...]


class LateReads:
    """Notes what code reads that runs later, and whether it has changed by then.

    Args:
        contents: Returns the contents of objects, by their keys.
        dictionaries: The objects that are dictionaries of the program.
    """

    def __init__(self, contents: Callable[[], Mapping[int, Any]], dictionaries: Collection[int]):
        self._contents, self._dictionaries = contents, dictionaries
        self.noted: list[dict[tuple[int, str | None], None]] = []  # of the blocks that run now
        self._reads: dict[int, list[Read]] = {}  # by the iterator

    def note(self, key: int, name: str | None = None) -> None:
        """Note that a container, or a name of a frame or of an object, is read."""
        for noted in self.noted:
            noted[key, name] = None

    @contextmanager
    def reading(self, since: int) -> Iterator[list[Read]]:
        """Collect what the block reads of older objects; the list is full at its end.

        Args:
            since: A key that all older objects lie below.
        """
        found: list[Read] = []
        self.noted.append({})
        try:
            yield found
        finally:
            noted = self.noted.pop()
            for key, name in noted:
                if key < since and (name is not None or not self._has_names(key)):
                    found.append(Read(key, name, self._held(key, name)))

    def read_later(
        self, iterator: int, reads: Iterable[Read], sources: Collection[int] = ()
    ) -> None:
        """Note what the code of an iterator reads.

        Args:
            iterator: Its key.
            reads: What it reads.
            sources: Objects whose items it gives, of which others take care; what the code of
                those that are iterators reads is read by this one, too.
        """
        noted = [read for read in reads if read.key not in sources]
        noted += [read for source in sources for read in self._reads.get(source, ())]
        if noted:
            self._reads[iterator] = [*self._reads.get(iterator, ()), *noted]

    def changed(self, iterator: int) -> bool:
        """Whether something that the code of an iterator reads is no more what it was."""
        contents = self._contents()
        for key, name, before in self._reads.get(iterator, ()):
            after = self._held(key, name) if key in contents else before
            if len(before) != len(after) or not all(map(_is_same, before, after)):
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
        if isinstance(content, dict):
            whole = (*content, *content.values())
            return whole if name is None else (content.get(name, MISSING),)
        return content if isinstance(content, tuple) else (content,)


def _is_same(before: Value, after: Value) -> bool:
    """Whether a value is what it was; one that is lost was told of."""
    return before is after or isinstance(after, Unknown)
