"""Methods of iterators and generators."""

from __future__ import annotations

from collections.abc import Sequence

from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.interpret.own_programs import next_or, run_own
from hagane.frontends.python.interpret.reading.streams import ENDED, TAKEN
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.objects import Instance
from hagane.frontends.python.values.values import (
    MISSING,
    Advancing,
    Choice,
    Endless,
    Many,
    Stream,
    Value,
)
from hagane.symbolic import maximum, minimum

OF_GENERATORS = ("send", "throw", "close")


class Generators(Core):
    """Calls methods of iterators and generators."""

    def generator_method(self, stream: Stream, name: str, arguments: Sequence[Value]) -> Value:
        """Call ``send``, ``throw`` or ``close`` of a generator, whose code has run already."""
        if name == "send" and [*arguments] == [None]:
            return self.next_of(stream, ())
        if name != "close":
            what = "a value that is sent" if name == "send" else "an exception that is thrown"
            return self.lost(f"{what} into a generator")
        if stream.key in self.heap.late.owed and self.heap.contents[stream.key] != ():
            return self.lost("a generator that is closed, and that would have changed something")
        self.heap[stream.key] = ()
        return None

    def next_of(self, stream: Value, default: Sequence[Value]) -> Value:
        """Take the next item of an iterator."""
        if isinstance(stream, Instance) and self.method_of(stream, "__next__") is not MISSING:
            if not default:
                return self.call(self.method_of(stream, "__next__"), [], {})
            return run_own(self, next_or, [stream, default[0]], {})
        if stream is None and self.emit.builds:
            raise CheckError("type", "None is not an iterator")
        if not isinstance(stream, Stream):
            return self.lost("next() of what is not an iterator")
        content = self.heap[stream.key]
        if isinstance(content, Choice):
            return self.lost("an iterator of which some paths alone have taken items")
        self.check_stream(stream)
        if isinstance(content, Advancing):
            return self._advanced(content, default)
        if isinstance(content, Many):
            return self._next_of_many(stream, content, default)
        if not content:
            self.heap[stream.key] = ENDED
            if default:
                return default[0]
            raise CheckError("value", "StopIteration: the iterator is used up")
        self.heap[stream.key] = content[1:]
        return content[0]

    def _advanced(self, content: Advancing, default: Sequence[Value]) -> Value:
        items, held = content.items, self.heap[content.taken]
        place = held[TAKEN]
        count = items.length if isinstance(items, Many) else len(items)
        has_items = self.decide(self.knowledge.less(place, count))
        if has_items is False:
            if default:
                return default[0]
            raise CheckError("value", "StopIteration: the iterator is used up")
        if not default or has_items is True:
            used_up = self.negated(has_items)
            self.fail_where(used_up, StopIteration, "the iterator is used up")
            held[TAKEN] = place + 1
            return self.item_at(items, place)
        held[TAKEN] = minimum(place + 1, count)
        return self.fork(
            self.as_term(has_items), lambda: self.item_at(items, place), lambda: default[0],
            "an iterator has items left",
        )  # fmt: skip

    def _next_of_many(self, stream: Stream, content: Many, default: Sequence[Value]) -> Value:
        rule = content.at
        at = None if rule is None else (lambda k: rule(k + 1))
        if isinstance(content, Endless):
            self.heap[stream.key] = Endless(content.element, content.length, at)
            return content.item(0)
        left = content.length - 1
        has_items = self.decide(self.knowledge.less(0, content.length))
        if not default or has_items is True or not self.emit.builds:
            self.heap[stream.key] = Many(content.element, left, at)
            return content.item(0)
        self.heap[stream.key] = Many(content.element, maximum(left, 0), at)
        return self.fork(
            self.as_term(has_items), lambda: content.item(0), lambda: default[0],
            "an iterator has items left",
        )  # fmt: skip
