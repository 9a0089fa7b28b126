"""Iterators over items whose number the data decide."""

from __future__ import annotations

import builtins
import itertools
from collections.abc import Callable
from typing import Any

from hagane.frontends.capture.flow import prelude
from hagane.frontends.capture.flow.holding import UNKNOWN_ITEMS
from hagane.frontends.capture.flow.lists import is_data
from hagane.frontends.capture.flow.numeric import NONE, Numbers
from hagane.frontends.capture.flow.slots import Rows
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.objects import Instance
from hagane.frontends.python.values.open_tuples import tuple_of
from hagane.frontends.python.values.values import (
    MISSING,
    Endless,
    Many,
    Stream,
    Tensor,
    Value,
)
from hagane.symbolic import Dim, maximum, product


class Iterators(Numbers):
    """Calls functions that make iterators, and lists of them."""

    def _items(self, value: Value) -> list[Value] | Many:
        """Return the items of a value that may be looked at without being used up."""
        if isinstance(value, Stream):
            content = self.core.left_of(value)
            return list(content) if isinstance(content, tuple) else content
        return self.core.sequence(value)

    def _map(self, function: Value, *values: Value) -> Value:
        if not any(isinstance(self._items(value), Many) for value in values):
            return NONE
        several = len(values) > 1
        source = self.core.call(self.core.lift(zip), values, {}) if several else values[0]
        items = self.core.sequence(source)
        assert isinstance(items, Many)

        def each(k: Dim) -> Value:
            item = items.item(k)
            with self.core.heap.reading() as reads:
                found = self.core.call(function, list(item) if several else [item], {})
            self.core.heap.late.read_later(made.key, reads)
            return found

        kind = Endless if isinstance(items, Endless) else Many
        made: Stream = self.core.new_stream(kind(UNKNOWN_ITEMS, items.length, each))
        return made

    def _reversed(self, value: Value) -> Value:
        given = isinstance(value, Tensor | Instance)
        if given and self.core.find_attribute(value, "__reversed__") is not MISSING:
            return NONE  # which gives what it returns
        items = self._items(value)
        if not isinstance(items, Rows):
            return NONE
        return self.core.new_stream(self.lists.part(self.core.sequence(value), None, None, -1))

    def _list(self, value: Value = ()) -> Value:
        items = self._items(value)
        if not isinstance(items, Many):
            return NONE
        return self.core.new_list(self.lists.settled(self.core.sequence(value)))

    def _tuple(self, value: Value = ()) -> Value:
        items = self._items(value)
        if not isinstance(items, Many):
            return NONE
        return tuple_of(self.core.heap, self.lists.settled(self.core.sequence(value)))

    def _filter(self, function: Value, value: Value) -> Value:
        return self._chosen(prelude.kept, function, value)

    def _takewhile(self, function: Value, value: Value) -> Value:
        made = self._chosen(prelude.leading, function, value)
        if made is not NONE:
            self.core.put_back(value, None)
        return made

    def _dropwhile(self, function: Value, value: Value) -> Value:
        return self._chosen(prelude.trailing, function, value)

    def _filterfalse(self, function: Value, value: Value) -> Value:
        return self._chosen(prelude.refused, function, value)

    def _chosen(self, chosen: Callable[..., Any], function: Value, value: Value) -> Value:
        items = self._items(value)
        if not isinstance(items, Many) and not any(map(is_data, items)):
            return NONE
        return self._run(chosen, function, self.core.new_list(self.core.sequence(value)))

    def _compress(self, data: Value, selectors: Value) -> Value:
        parts = [self._items(value) for value in (data, selectors)]
        by_data = not isinstance(parts[1], Many) and any(map(is_data, parts[1]))
        if not by_data and not any(isinstance(part, Many) for part in parts):
            return NONE
        lists = [self.core.new_list(self.core.sequence(value)) for value in (data, selectors)]
        return self._run(prelude.selected, *lists)

    def _run(self, function: Callable[..., Any], *arguments: Value) -> Value:
        """Return an iterator over the list that a program of the prelude makes."""
        return self.core.new_stream(self.core.heap[self.lists.own(function, *arguments)])

    def _starmap(self, function: Value, value: Value) -> Value:
        items = self._items(value)
        if not isinstance(items, Many):
            return NONE
        self.core.sequence(value)

        def each(k: Dim) -> Value:
            given = self.core.sequence(items.item(k))
            if isinstance(given, Many):
                raise CheckError("capture", "starmap with a number of arguments that data decide")
            return self.core.call(function, given, {})

        return self.core.new_stream(Many(UNKNOWN_ITEMS, items.length, each))

    def _from_iterable(self, value: Value) -> Value:
        items = self._items(value)
        if not isinstance(items, Many):
            return self._chain(*items)
        return self._run(prelude.joined, self.core.new_list(self.core.sequence(value)))

    def _groupby(self, value: Value, key: Value = None) -> Value:
        items = self._items(value)
        if not isinstance(items, Many) and not any(map(is_data, items)):
            return NONE
        ref = self.core.new_list(self.core.sequence(value))
        by = self.core.lift(prelude.itself) if key is None else key
        columns = self.core.sequence(self.lists.own(prelude.grouped, by, ref))
        assert isinstance(columns, list)
        keys, starts, stops = columns
        count = self.core.call(self.core.lift(len), [starts], {})

        def at(k: Dim) -> Value:
            content: Value = self.core.heap[ref]
            start, stop = (self.core.item(column, k) for column in (starts, stops))
            group = self.core.new_stream(self.lists.part(content, start, stop, None))
            return self.core.item(keys, start), group

        return self.core.new_stream(Many(UNKNOWN_ITEMS, count, at))

    def _zip_longest(self, *values: Value, **_: Value) -> Value:
        if not any(isinstance(self._items(value), Many) for value in values):
            return NONE
        raise CheckError(
            "capture", "itertools.zip_longest of a list whose length the data decide; fill up the "
            "shorter list and use zip",
        )  # fmt: skip

    def _accumulate(self, value: Value, func: Value = None, *, initial: Value = None) -> Value:
        if not isinstance(self._items(value), Many):
            return NONE
        by = self.core.lift(prelude.added) if func is None else func
        content: Value = self.core.sequence(value)
        if initial is not None:
            content = self.lists.chained((initial,), content)
        return self._run(prelude.accumulated, by, self.core.new_list(content))

    def _chain(self, *values: Value) -> Value:
        found = [self._items(value) for value in values]
        if not any(isinstance(items, Many) for items in found):
            return NONE
        content: Value = ()
        for value in values:
            items = self.core.sequence(value)
            content = self.lists.chained(content, tuple(items) if type(items) is list else items)
        return self.core.new_stream(content)

    def _pairwise(self, value: Value) -> Value:
        items = self._items(value)
        if not isinstance(items, Many):
            return NONE
        pair = lambda k: (items.item(k), items.item(k + 1))  # noqa: E731
        return self.core.new_stream(Many(UNKNOWN_ITEMS, maximum(items.length - 1, 0), pair))

    def _product(self, *values: Value, repeat: Value = 1) -> Value:
        found = [self._items(value) for value in values]
        if not any(isinstance(items, Many) for items in found) or not isinstance(repeat, int):
            return NONE
        refs = [self.core.new_list(self.core.sequence(value)) for value in values] * repeat
        counts = [self.core.call(self.core.lift(len), [ref], {}) for ref in refs]
        inner = [product(counts[place + 1 :]) for place in range(len(counts))]

        def at(k: Dim) -> Value:
            parts = zip(refs, inner, counts, strict=True)
            return tuple(self.core.item(ref, k // step % count) for ref, step, count in parts)

        return self.core.new_stream(Many(UNKNOWN_ITEMS, product(counts), at))

    def _combinations(self, iterable: Value, r: Value) -> Value:
        return self._arranged(iterable, r, prelude.rising)

    def _combinations_with_replacement(self, iterable: Value, r: Value) -> Value:
        return self._arranged(iterable, r, prelude.not_falling)

    def _permutations(self, iterable: Value, r: Value = None) -> Value:
        return self._arranged(iterable, r, prelude.different)

    def _arranged(self, value: Value, count: Value, kept: Callable[..., Any]) -> Value:
        """Return the choices of items of which data decide the number, as ``itertools`` has them.

        All places are told from all numbers of choices, and those that are none left out.
        """
        items = self._items(value)
        if not isinstance(items, Many) or not isinstance(count, int) or count < 1:
            return NONE
        ref = self.core.new_list(self.core.sequence(value))
        made = self.lists.own(
            prelude.places,
            self.core.call(self.core.lift(len), [ref], {}),
            count,
            self.core.lift(kept),
        )
        columns = self.core.sequence(made)
        assert isinstance(columns, list)

        def at(k: Dim) -> Value:
            return tuple(self.core.item(ref, self.core.item(column, k)) for column in columns)

        return self.core.new_stream(Many(UNKNOWN_ITEMS, columns[0].shape[0], at))


ITERATORS: dict[Any, Callable[..., Value]] = {
    builtins.map: Iterators._map, builtins.filter: Iterators._filter,
    builtins.reversed: Iterators._reversed, builtins.list: Iterators._list,
    builtins.tuple: Iterators._tuple,
    itertools.accumulate: Iterators._accumulate, itertools.chain: Iterators._chain,
    itertools.chain.from_iterable: Iterators._from_iterable,
    itertools.combinations: Iterators._combinations,
    itertools.combinations_with_replacement: Iterators._combinations_with_replacement,
    itertools.compress: Iterators._compress, itertools.dropwhile: Iterators._dropwhile,
    itertools.filterfalse: Iterators._filterfalse, itertools.groupby: Iterators._groupby,
    itertools.pairwise: Iterators._pairwise, itertools.permutations: Iterators._permutations,
    itertools.product: Iterators._product, itertools.starmap: Iterators._starmap,
    itertools.takewhile: Iterators._takewhile, itertools.zip_longest: Iterators._zip_longest,
}  # fmt: skip
__all__ = ["ITERATORS", "Iterators"]
