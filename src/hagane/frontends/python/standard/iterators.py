"""``filter``, and functions of ``itertools`` that pick, repeat, group and pair items."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable
from typing import Any

from hagane.frontends.python.interpret.arithmetic import apply_plain
from hagane.frontends.python.interpret.own_programs import run_own
from hagane.frontends.python.standard.containers import Containers
from hagane.frontends.python.values.objects import names_of_tuple
from hagane.frontends.python.values.values import (
    Choice,
    Endless,
    Many,
    Stream,
    Tensor,
    Value,
    is_plain,
    is_size,
)
from hagane.symbolic import Dim, ceildiv, maximum, minimum

# So many items of an iterator without an end are listed one by one.
_LISTED = 64


class Iterators(Containers):
    """Calls ``filter`` and functions of ``itertools``."""

    def _call_islice(self, value: Value, *bounds: Value) -> Value:
        part = slice(*bounds)
        start = 0 if part.start is None else part.start
        step = 1 if part.step is None else part.step
        stream = value if isinstance(value, Stream) else self.new_stream(self.sequence(value))
        content = self.left_of(stream)
        if isinstance(content, tuple):
            if not is_plain((start, part.stop, step)):
                return self.lost("itertools.islice with bounds that are not known")
            taken = apply_plain(lambda: list(itertools.islice(content, start, part.stop, step)))
            end = len(content) if part.stop is None else max(start, part.stop)
            self.heap[stream.key] = content[end:]
            return self.new_stream(taken)
        ends = part.stop if part.stop is None or is_size(part.stop) else self.emit.fresh("stop")
        if not isinstance(content, Many) or not (is_size(start) and is_size(step)):
            return self.lost("itertools.islice with bounds that are not known")
        return self._part_of(stream, content, start, ends, step)

    def _part_of(
        self, stream: Stream, content: Many, start: Dim, stop: Dim | None, step: Dim
    ) -> Value:
        """Take items of an iterator of which the number depends on sizes; it keeps the rest."""

        def at(k: Dim) -> Value:
            return content.item(start + step * k)

        endless = isinstance(content, Endless)
        kind = Endless if endless else Many
        if stop is None:
            self.heap[stream.key] = ()
            left = maximum(content.length - start, 0)
            count = content.length if endless else ceildiv(left, step)
            return self.new_stream(kind(content.element, count, at))
        rest = content.length if endless else maximum(content.length - stop, 0)
        last = stop if endless else minimum(content.length, stop)
        count = ceildiv(maximum(last - start, 0), step)
        self.heap[stream.key] = kind(content.element, rest, lambda k: content.item(stop + k))
        if endless and isinstance(count, int) and count <= _LISTED:
            return self.new_stream([at(k) for k in range(count)])
        return self.new_stream(Many(at(0), count, at))

    def _call_repeat(self, value: Value, times: Value = None) -> Value:
        if times is None:
            return self.new_stream(Endless(value, self.emit.fresh("turns")))
        if isinstance(times, int):
            return self.new_stream([value] * times)
        return self.new_stream(Many(value, times if is_size(times) else self.emit.fresh("turns")))

    def _call_accumulate(self, value: Value, func: Value = None, *, initial: Value = None) -> Value:
        items = self.sequence(value)
        if isinstance(items, Many):
            if self.emit.builds:
                return self.lost("itertools.accumulate of a number of items that is not known")
            more = 0 if initial is None else 1
            return self.new_stream(Many(items.element, items.length + more))
        result: list[Value] = [] if initial is None else [initial]
        for item in items:
            if not result:
                result.append(item)
            elif func is None:
                result.append(self.binary(ast.Add, result[-1], item))
            else:
                result.append(self.call(func, [result[-1], item], {}))
        return self.new_stream(result)

    def _call_zip_longest(self, *values: Value, fillvalue: Value = None) -> Value:
        lists = [self.sequence(value) for value in values]
        known = [items for items in lists if isinstance(items, list)]
        if len(known) < len(lists):
            return self.lost("itertools.zip_longest of lists whose lengths depend on sizes")
        return self.new_stream(list(itertools.zip_longest(*known, fillvalue=fillvalue)))

    def _call_starmap(self, function: Value, value: Value) -> Value:
        items = self.sequence(value)

        def apply(item: Value) -> Value:
            arguments = self.sequence(item)
            if isinstance(arguments, Many):
                return self.lost("itertools.starmap with a number of arguments that is not known")
            return self.call(function, arguments, {})

        if isinstance(items, Many):
            return self.new_stream(Many(apply(items.item(0)), items.length))
        return self.new_stream([apply(item) for item in items])

    def _call_tee(self, value: Value, n: Value = 2) -> Value:
        items = self.sequence(value)
        if not isinstance(n, int):
            return self.lost("itertools.tee of how many iterators is not known")
        return tuple(self.new_stream(items) for _ in range(n))

    def _call_takewhile(self, function: Value, value: Value) -> Value:
        def leading(keeps: list[bool]) -> list[bool]:
            self.put_back(value, source[sum(_leading(keeps)) + 1 :])
            return _leading(keeps)

        items = self.left_of(value) if isinstance(value, Stream) else ()
        source = items if isinstance(items, tuple) else ()
        return self._picked(function, value, leading)

    def _call_dropwhile(self, function: Value, value: Value) -> Value:
        return self._picked(function, value, lambda keeps: [not one for one in _leading(keeps)])

    def _call_filter(self, function: Value, value: Value) -> Value:
        return self._picked(function, value, lambda keeps: keeps)

    def _call_filterfalse(self, function: Value, value: Value) -> Value:
        return self._picked(function, value, lambda keeps: [not one for one in keeps])

    def _picked(
        self, function: Value, value: Value, pick: Callable[[list[bool]], list[bool]]
    ) -> Value:
        """Return the items that are picked by the answers of a function for each of them."""
        items = self.sequence(value)
        if isinstance(items, Many):
            return self.new_stream(Many(items.element, self.emit.fresh("kept")))
        answers = []
        for item in items:
            found = item if function is None else self.call(function, [item], {})
            answers.append(self.decide(self.truth(found)))
        return self._kept_items(items, answers, pick)

    def _call_compress(self, data: Value, selectors: Value) -> Value:
        items, chosen = self.sequence(data), self.sequence(selectors)
        if isinstance(items, Many) or isinstance(chosen, Many):
            element = self.as_many(items)[0] if not isinstance(items, Many) else items.element
            return self.new_stream(Many(element, self.emit.fresh("kept")))
        answers = [self.decide(self.truth(one)) for one in chosen[: len(items)]]
        return self._kept_items(items[: len(answers)], answers, lambda keeps: keeps)

    def _kept_items(
        self, items: list[Value], answers: list[Value], pick: Callable[[list[bool]], list[bool]]
    ) -> Value:
        if not all(isinstance(answer, bool) for answer in answers):
            return self.new_stream(Many(self.as_many(tuple(items))[0], self.emit.fresh("kept")))
        return self.new_stream(list(itertools.compress(items, pick(answers))))

    def _call_groupby(self, value: Value, key: Value = None) -> Value:
        items = self.sequence(value)
        if isinstance(items, Many):
            found = items.element if key is None else self.call(key, [items.element], {})
            group = self.new_list(Many(items.element, self.emit.fresh("group")))
            return self.new_stream(Many((found, group), self.emit.fresh("groups")))
        keys = [item if key is None else self.call(key, [item], {}) for item in items]
        if not all(map(is_plain, keys)):
            if self.emit.builds:
                return self.lost("itertools.groupby of keys that are not known")
            found, item = self.as_many(tuple(keys))[0], self.as_many(tuple(items))[0]
            group = self.new_list(Many(item, self.emit.fresh("group")))
            return self.new_stream(Many((found, group), self.emit.fresh("groups")))
        groups = itertools.groupby(range(len(items)), key=keys.__getitem__)
        return self.new_stream(
            [(found, self.new_stream([items[place] for place in of])) for found, of in groups]
        )

    def columns_of(self, items: Many) -> list[Value] | None:
        """Return the columns that ``zip(*rows)`` gives; None if their number is not known."""
        rows = items.element if items.stacked is None else items.stacked
        if isinstance(rows, Tensor):
            axes = (rows.shape or ())[items.stacked is not None :]
            if not axes or not isinstance(axes[0], int):
                return None
            at = (slice(None),) * (items.stacked is not None)
            found = [self.tables.tensor_item(self, rows, (*at, k)) for k in range(axes[0])]
            if at:
                return [self.new_list(self.sequence(column)) for column in found]
            return [self.new_list(Many(part, items.length)) for part in found]
        if self.emit.builds and items.at is not None:
            with self.emit.types_only():
                parts = self._parts_of(items.item(0))
            kept = self.new_list(items)
            return [run_own(self, _column, [kept, k], {}) for k in range(len(parts or ()))] or None
        parts = self._parts_of(items.element)
        if parts is None or items.stacked:
            return None
        return [self.new_list(Many(part, items.length)) for part in parts]

    def _parts_of(self, item: Value) -> list[Value] | None:
        """Return the parts of a tuple, those of a choice joined; None for other values."""
        item = self.settle(item)
        if isinstance(item, Choice):
            yes, no = self._parts_of(item.yes), self._parts_of(item.no)
            if yes is None or no is None or len(yes) != len(no):
                return None
            return [self.join(item.condition, a, b) for a, b in zip(yes, no, strict=True)]
        if isinstance(item, tuple):
            return list(item)
        names = names_of_tuple(item)
        return None if names is None else [self.heap[item][name] for name in names]


def _column(rows: Any, place: int) -> list[Any]:
    return [row[place] for row in rows]


def _leading(keeps: list[bool]) -> list[bool]:
    """Return the answers up to the first that is false, and false from there on."""
    return list(itertools.accumulate(keeps, lambda before, one: before and one))


__all__ = ["Iterators"]
