"""Built-in functions of iterables: lengths, containers, items one by one, sums and extremes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hagane.frontends.python.interpret.arithmetic import apply_plain
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.standard.standard import StandardLibrary
from hagane.frontends.python.values.deques import new_deque
from hagane.frontends.python.values.hashed import Hashed, Step, set_argument
from hagane.frontends.python.values.objects import Class, Instance
from hagane.frontends.python.values.open_tuples import tuple_of
from hagane.frontends.python.values.values import (
    MISSING,
    DictRef,
    Earlier,
    Endless,
    Many,
    Method,
    Outside,
    Range,
    Real,
    SetRef,
    Stream,
    Tensor,
    Truth,
    Unknown,
    Value,
    is_plain,
    is_size,
)
from hagane.symbolic import Dim, Expr, maximum, minimum
from hagane.symbolic.logic import both, either
from hagane.symbolic.term import FALSE, TRUE


class Iterables(StandardLibrary):
    """Calls built-in functions that take or make lists, dictionaries and iterators."""

    def _call_len(self, value: Value) -> Value:
        if isinstance(value, Tensor):
            if value.shape is None:
                return self.emit.fresh("length")
            if not value.shape:
                raise CheckError("type", "len() of a tensor without axes", tensors=(value,))
            return value.shape[0]
        if isinstance(value, Outside):
            return self.emit.fresh("length")
        if isinstance(value, Unknown):
            return value
        if isinstance(value, Instance):
            return self.call(self.attribute(value, "__len__"), [], {})
        if isinstance(value, Stream):
            raise CheckError("type", "an iterator has no len()")
        items = self.sequence(value)
        return items.length if isinstance(items, Many) else sum(map(_count, items))

    def _call_range(self, *bounds: Value) -> Value:
        found = [self._whole(bound) for bound in bounds]
        if all(isinstance(bound, int) for bound in found):
            return apply_plain(range, *found)
        start, stop, step = (0, found[0], 1) if len(found) == 1 else (*found, 1)[:3]
        return Range(start, stop, step)

    def _whole(self, value: Value) -> Dim:
        if isinstance(value, Tensor) and value.shape == () and value.dtype.is_integer():
            value = self.tensor_number(value, whole=True)
        if isinstance(value, Unknown):
            return self.emit.fresh("count")
        if not isinstance(value, int | Expr):
            raise CheckError("type", f"expected an integer, got {self.show(value)}")
        return value

    def _call_enumerate(self, value: Value, start: Value = 0) -> Value:
        items = self.sequence(value)
        if isinstance(items, Many):
            kind = Endless if isinstance(items, Endless) else Many
            return self.new_stream(
                kind((start, items.element), items.length, lambda k: (start + k, items.item(k)))
            )
        return self.new_stream([(start + place, item) for place, item in enumerate(items)])

    def _call_zip(self, *values: Value, strict: Value = False) -> Value:
        if not values:
            return self.new_stream([])
        taken: dict[int, list[Value] | Many] = {}
        for value in values:
            if isinstance(value, Stream) and value.key not in taken:
                taken[value.key] = self.sequence(value)
        lists = [
            taken[value.key] if isinstance(value, Stream) else self.sequence(value)
            for value in values
        ]
        if all(isinstance(items, list) for items in lists):
            lengths = {len(items) for items in lists}  # type: ignore[arg-type]
            if strict is True and len(lengths) > 1:
                raise CheckError("value", f"ValueError: zip() got lengths {sorted(lengths)}")
            shared = {id(items): iter(items) for items in taken.values()}  # type: ignore[arg-type]
            turns = [shared.get(id(items), items) for items in lists]
            rows = list(zip(*turns, strict=False))
            for value in values:
                if isinstance(value, Stream):
                    self.put_back(value, list(shared[id(taken[value.key])]))
            return self.new_stream(rows)
        if len(values) > 1:
            for value in values:  # which of them ends first, only a run knows
                self.put_back(value, None)
        ends = [items for items in lists if not isinstance(items, Endless)]
        lengths = [i.length if isinstance(i, Many) else len(i) for i in ends]  # type: ignore[assignment]

        def at(k: Dim) -> Value:
            return tuple(self.item_at(items, k) for items in lists)

        if not ends:
            return self.new_stream(Endless(at(0), self.emit.fresh("turns"), at))
        return self.new_stream(Many(at(0), minimum(*lengths), at))

    def _call_reversed(self, value: Value) -> Value:
        if isinstance(value, Tensor):
            own = self.find_attribute(value, "__reversed__")
            if own is not MISSING:
                return self.call(own, [], {})
        if isinstance(value, Instance) and isinstance(value.cls, Class):
            own = self.find_in_class(value.cls, "__reversed__")
            if own is not MISSING:
                return self._call_iter(self.call(self.bind(own, value, value.cls), [], {}))
        items = self.sequence(value)
        if isinstance(items, Many):
            last = items.length - 1
            return self.new_stream(
                Many(items.element, items.length, lambda k: items.item(last - k))
            )
        return self.new_stream(items[::-1])

    def _call_sorted(self, value: Value, **keywords: Value) -> Value:
        items = self.sequence(value)
        if isinstance(items, Many):
            return self.new_list(Many(items.element, items.length))
        return self.new_list(self.sorted_items(items, keywords))

    def _call_list(self, value: Value = ()) -> Value:
        return self.new_list(self.sequence(value))

    def _call_tuple(self, value: Value = ()) -> Value:
        items = self.sequence(value)
        return tuple_of(self.heap, items)

    def _call_set(self, value: Value = ()) -> Value:
        content = self.heap[value] if isinstance(value, SetRef | DictRef) else None
        items = self.sequence(value)
        if isinstance(items, list) and all(map(self.is_member, items)):
            if isinstance(content, Hashed):
                return self.new_set(items, step=Step(content, "set"))
            return self.new_set(items, step=Step(None, "set", (set_argument(content, items),)))
        if not self.emit.builds and items:
            if isinstance(items, Many):
                element = items.element
            elif all(map(_is_scalar, items)):
                element = self.as_many(tuple(items))[0]
            elif all(map(is_size, items)):
                element = self.some_of(items)
            else:
                return self.lost("a set of values that are not known")
            return SetRef(self.heap.new(Many(element, self.emit.fresh("different"))))
        return self.lost("a set of values that are not known")

    def _call_frozenset(self, value: Value = ()) -> Value:
        if isinstance(value, frozenset) or (isinstance(value, SetRef) and value.frozen):
            return value
        made = self._call_set(value)
        return SetRef(made.key, frozen=True) if isinstance(made, SetRef) else made

    def _call_KeysView(self, value: Value) -> Value:
        items = self.sequence(self.call(self.attribute(value, "__iter__"), [], {}))
        return self.new_set(items) if isinstance(items, list) else self.new_list(items)

    def _call_ItemsView(self, value: Value) -> Value:
        keys = self.sequence(self._call_KeysView(value))
        if isinstance(keys, Many):
            return self.lost("the items of a mapping of which only the run knows the keys")
        return self.new_list([(key, self.item(value, key)) for key in keys])

    def _call_ValuesView(self, value: Value) -> Value:
        items = self.sequence(self._call_ItemsView(value))
        return self.new_list([v for _, v in items] if isinstance(items, list) else items)

    def _call_dict(self, value: Value = (), **keywords: Value) -> Value:
        content = self.mapping(value)
        found = self._pairs(value) if content is None else content
        return found if isinstance(found, Unknown) else self.new_dict({**found, **keywords})

    def _call_OrderedDict(self, *arguments: Value, **keywords: Value) -> Value:
        made = self._call_dict(*arguments, **keywords)
        if isinstance(made, DictRef) and isinstance(self.heap[made], dict):
            return self.new_dict(self.heap[made], "OrderedDict")
        return made

    def _call_defaultdict(
        self, factory: Value = None, content: Value = None, **items: Value
    ) -> Value:
        made = self.new_dict({}, f"defaultdict:{self.heap.new(factory)}")
        if content is not None:
            self.call(Method(made, "update"), [content], {})
        self.heap[made].update(items)
        return made

    def _call_deque(self, value: Value = (), maxlen: Value = None) -> Value:
        made = new_deque(self.heap, maxlen, self.sequence(value))
        self.bound_list(made)
        return made

    def _call_iter(self, value: Value) -> Value:
        return value if isinstance(value, Stream) else self.advancing(self.sequence(value))

    def _call_next(self, value: Value, *default: Value) -> Value:
        return self.next_of(value, default)

    def _call_map(self, function: Value, *values: Value) -> Value:
        stream = values[0] if len(values) == 1 else self._call_zip(*values)
        items = self.sequence(stream)
        spread = len(values) > 1

        def apply(item: Value) -> Value:
            return self.call(function, list(item) if spread else [item], {})

        if isinstance(items, Many):
            return self.new_stream(Many(apply(items.item(0)), items.length))
        with self.emit.lazily():
            made = [apply(item) for item in items]
        return self.new_stream(made)

    def _call_sum(self, value: Value, start: Value = 0) -> Value:
        items = self.sequence(value)
        if isinstance(items, Many):
            if is_size(items.element) and items.at is None and is_size(start):
                return start + items.element * items.length
            return self.binary(ast.Add, items.element, items.element)
        for item in items:
            is_first = type(start) is int and start == 0  # 0 + True is a number, and 0.0 + 1
            spared = is_first and is_size(item) and not isinstance(item, bool)
            start = item if spared else self.binary(ast.Add, start, item)
        return start

    def _call_any(self, value: Value) -> Value:
        return self._junction(value, any_of=True)

    def _call_all(self, value: Value) -> Value:
        return self._junction(value, any_of=False)

    def _junction(self, value: Value, *, any_of: bool) -> Value:
        items = self.sequence(value)
        if isinstance(items, Many):
            self.put_back(value, None)
            return Truth(self.unknown_truth())
        terms = [self.as_term(self.truth(item)) for item in items]
        self.stop_at(value, items, terms, TRUE if any_of else FALSE)
        return self.as_truth((either if any_of else both)(*terms))

    def _call_min(self, *values: Value, **keywords: Value) -> Value:
        return self._extreme(min, minimum, values, keywords)

    def _call_max(self, *values: Value, **keywords: Value) -> Value:
        return self._extreme(max, maximum, values, keywords)

    def _extreme(
        self,
        plain: Callable[..., Any],
        sizes: Callable[..., Dim],
        values: Sequence[Value],
        keywords: Mapping[str, Value],
    ) -> Value:
        items = list(values)
        if len(values) == 1:
            found = self.sequence(values[0])
            if isinstance(found, Many):
                if isinstance(found.element, Expr | int):
                    return self.emit.fresh("extreme")
                return Real() if isinstance(found.element, float | Real) else found.element
            items = found
            if not items and "default" in keywords:
                return keywords["default"]
        if keywords.get("key") is not None:
            keys = [self.call(keywords["key"], [item], {}) for item in items]
            if all(map(is_plain, keys)):
                return items[apply_plain(lambda: keys.index(plain(keys)))]
            return items[0]
        if all(map(is_plain, items)):
            return apply_plain(plain, items)
        if all(map(is_size, items)):
            return sizes(*items)
        for kind in (Unknown, Tensor):
            for item in items:
                if isinstance(item, kind):
                    return item
        if all(isinstance(item, int | float | Expr | Real | Truth) for item in items):
            return Real()
        return self.lost("the least or greatest of values whose order is not known")


def _is_scalar(item: Value) -> bool:
    """Whether an item is a number of NumPy, which is hashed by its value."""
    return isinstance(item, Tensor) and item.shape == () and item.kind == "numpy.ndarray"


def _count(item: Value) -> Dim:
    """Return how many items of a list one of its values stands for."""
    return item.count if isinstance(item, Earlier) else 1


__all__ = ["Iterables"]
