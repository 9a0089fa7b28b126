"""Iterators: what they still have, who reads them, and whether that is as they were made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from hagane.frontends.python.interpret.parts import Parts
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.heap import Heap
from hagane.frontends.python.values.values import (
    Advancing,
    DictRef,
    Endless,
    ListRef,
    Many,
    SetRef,
    Stream,
    Tensor,
    Unknown,
    Value,
)
from hagane.symbolic import Dim

if TYPE_CHECKING:
    from hagane.frontends.python.interpret.emitting.emit import Emitter


TAKEN = "items taken"
LEFT = Unknown("items that an iterator has left", told=False)


class Ended(tuple[Value, ...]):
    """The content of an iterator that has told that it has no more items, and never will."""


ENDED = Ended()


class Streams(Parts):
    """Makes iterators, and gives the items of loops one by one."""

    heap: Heap
    emit: Emitter
    dead: bool

    def __init__(self) -> None:
        self.lengths: dict[int, int] = {}  # how many items an iterator had, by its key
        self.lent: dict[int, int] = {}  # the iterator that reads an iterator, by both keys

    def new_stream(self, items: Sequence[Value] | Many) -> Stream:
        """Return a new iterator."""
        made = Stream(self.heap.new(items if isinstance(items, Many) else tuple(items)))
        if not isinstance(items, Many) and self.emit.literal:
            self.lengths[made.key] = len(items)
        return made

    def advancing(self, items: Sequence[Value] | Many) -> Stream:
        """Return a new iterator that may be advanced where the data decide."""
        made = self.new_stream(items)
        content = self.heap[made.key]
        if self.emit.literal and not isinstance(content, Endless):
            self.heap[made.key] = Advancing(content, self.heap.new({TAKEN: 0}))
        return made

    def left_of(self, stream: Stream) -> tuple[Value, ...] | Many:
        """Return the items that an iterator has left, which it is of from now on."""
        content = self.heap[stream.key]
        if isinstance(content, Advancing):
            items, taken = content.items, self.heap[content.taken][TAKEN]
            if isinstance(items, tuple) and isinstance(taken, int):
                left: tuple[Value, ...] | Many = items[taken:]
            elif taken == 0:
                left = items
            else:
                count = items.length if isinstance(items, Many) else len(items)
                at = lambda k: self.item_at(items, taken + k)  # noqa: E731
                left = Many(LEFT, count - taken, at)
            self.heap[stream.key] = content = left
        found: tuple[Value, ...] | Many = content
        return found

    def item_at(self, items: Sequence[Value] | Many, place: Dim) -> Value:
        """Return the item at a place that the data may decide."""
        if isinstance(items, Many):
            return items.item(place)
        if isinstance(place, int) and place < len(items):
            return items[place]
        if self.emit.builds:
            return self.item(self.new_list(items), place)
        return self.as_many(tuple(items))[0]

    def check_stream(self, stream: Stream) -> None:
        """Compare the sources of what is left of an iterator with those that it was made of."""
        if stream.key in self.heap.late.left:
            raise CheckError(
                "capture",
                "an iterator is read after a loop over it that a break may have left: the data "
                "decide what it still has; run over a list, and keep the place in a number",
            )
        reader = self.lent.get(stream.key)
        if reader is not None and (
            reader in self.heap.late.left or self.heap.contents.get(reader, ())
        ):
            raise CheckError(
                "capture",
                "an iterator is read beside another one that reads it and has items left; read "
                "that one alone, or run over a list",
            )
        content = self.heap.contents.get(stream.key, ())
        whole = self.lengths.get(stream.key)
        if isinstance(content, Many):
            self.heap.check_unread(stream.key, 0)
        elif isinstance(content, tuple) and not isinstance(content, Ended) and whole is not None:
            self.heap.check_unread(stream.key, whole - len(content))

    def check_growing(self, container: Value, arguments: Sequence[Value]) -> None:
        """Refuse iterators whose code reads the container that grows by their items."""
        streams = [value.key for value in arguments if isinstance(value, Stream)]
        if any(self.heap.late.reads(key, container.key) for key in streams):
            raise CheckError(
                "capture",
                "a container grows by the items of an iterator whose code reads it, one by one; "
                "add them in a loop, as in for f in fs: y.append(f(y[-1]))",
            )

    def lend(self, sources: Iterable[Value], reader: Stream) -> None:
        """Note the iterators that another one reads, as far as Python asks that one."""
        if self.emit.literal:
            keys = (source.key for source in sources if isinstance(source, Stream))
            self.lent.update((key, reader.key) for key in keys if key != reader.key)

    def put_back(self, source: Value, items: Sequence[Value] | None) -> None:
        """Give an iterator the items that a function has not taken; None if the data decide."""
        if isinstance(source, Stream) and self.emit.literal:
            if items is None:
                self.heap.late.left.add(source.key)
            else:
                self.heap[source.key] = tuple(items)

    def in_turn(self, items: Sequence[Value], over: Value = None) -> Iterator[Value]:
        """Yield items one by one; an iteration's writes into later ones are in them.

        Args:
            items: The items.
            over: The object that has them, of which an iteration may change later ones.
        """
        if not self.emit.builds or not any(isinstance(item, Tensor | tuple) for item in items):
            for place, item in enumerate(items):
                yield self._item_now(over, items, place) if place else item
            self._check_end(over, items)
            return
        key = self.heap.new(dict(enumerate(items)))
        for place, item in enumerate(items):
            held = self.heap.contents.get(key, {}).get(place, item)
            now = self._item_now(over, items, place) if place else item
            yield held if now is item else now
        self._check_end(over, items)
        self.heap.contents.pop(key, None)

    def _check_end(self, over: Value, items: Sequence[Value]) -> None:
        """Compare the object of a loop with its items where the loop asks for one more."""
        if items and self.emit.literal and not self.dead and not isinstance(over, Stream):
            self._item_now(over, items, len(items))

    def _item_now(self, over: Value, items: Sequence[Value], place: int) -> Value:
        """Return an item of a loop's object as it is when its turn comes."""
        if not self.emit.literal:
            return items[place]
        if isinstance(over, Stream):
            read = self.lengths.get(over.key, len(items)) - len(items)
            self.heap.check_unread(over.key, read + place)
        elif isinstance(over, ListRef | SetRef | DictRef):
            content = self.heap[over]
            changed = isinstance(content, tuple | dict) and len(content) != len(items)
            if changed and not isinstance(over, ListRef):
                kind = "dictionary" if isinstance(over, DictRef) else "set"
                raise CheckError("value", f"RuntimeError: {kind} changed size during iteration")
            if changed:
                raise CheckError(
                    "order",
                    "a loop runs over a list that it changes; run over a copy, or use while",
                )
            if isinstance(over, ListRef) and isinstance(content, tuple):
                return content[place] if place < len(items) else None
        return items[place] if place < len(items) else None
