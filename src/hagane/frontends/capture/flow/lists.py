"""Lists whose length or order the data decide: their items lie stacked in tensors."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx_ir import DataType

from hagane.frontends.capture.emitting.emitter import GraphEmitter
from hagane.frontends.capture.flow import prelude
from hagane.frontends.capture.flow.holding import UNKNOWN_ITEMS, Holding, refuse_items
from hagane.frontends.capture.flow.links import Links
from hagane.frontends.capture.flow.slots import (
    Contents,
    Fixed,
    Listed,
    NumberSlot,
    Rows,
    Slot,
    TensorSlot,
    compacted,
    content_slot,
    is_stackable,
    leaves,
    number_kind,
    slot_of,
    unified,
    varying,
)
from hagane.frontends.capture.flow.stacks import divided
from hagane.frontends.python.interpret.own_programs import run_own
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.values import (
    Endless,
    ListRef,
    Many,
    Tensor,
    Value,
    is_plain,
    is_size,
)
from hagane.symbolic import Dim, Expr, maximum
from hagane.symbolic.term import Term

if TYPE_CHECKING:
    from hagane.frontends.python.enter.interpreter import Interpreter

_FIRST = np.array([0], np.int64)
_ALL = slice(None)


class Lists(Holding):
    """Operations on lists whose length the data decide, and on others at places that these do."""

    def __init__(self, core: Interpreter, emit: GraphEmitter):
        super().__init__(core, emit)
        self.links = Links(core, self)
        self.searched: set[int] = set()  # lists of known items read or set where data decide

    def own(self, function: Callable[..., Any], *arguments: Value) -> Value:
        """Call a program of the prelude, whose lines are no lines of the user's."""
        return run_own(self.core, function, arguments, {})

    # Contents.

    def stacked(self, content: Value) -> Rows:
        """Return the content of a list with its items stacked.

        Raises:
            CheckError: No tensors hold them.
        """
        if isinstance(content, Rows):
            return content
        if isinstance(content, Many):
            return self._gathered(content)
        form = self.form_of(content)
        if form is None or not is_stackable(form):
            shown = [self.core.show(item) for item in content]
            raise refuse_items(" and ".join(dict.fromkeys(shown)) or "nothing of a known type")
        return self.rows(form, content, self.core.heap.contents)

    def form_of(self, content: Value) -> Slot | None:
        """Return the form of all items of a content; None if there is none."""
        if isinstance(content, Rows):
            return content.form
        slot = content_slot(content, self.core.heap.contents, ListRef(0), self.emit.also)
        found = unified(slot, Listed(None))
        return compacted(found.item) if isinstance(found, Listed) else None

    def settled(self, content: Value) -> Value:
        """Return a content whose items follow no rule any more, if tensors can hold them."""
        if not isinstance(content, Many) or isinstance(content, Rows | Endless):
            return content
        if content.at is None or content.stacked is not None:
            return content
        try:
            return self.stacked(content)
        except CheckError:
            if content.element is UNKNOWN_ITEMS:
                raise
            return content

    def _gathered(self, content: Many) -> Rows:
        if content.stacked is not None and content.stacked.shape:
            x = content.stacked
            form = TensorSlot(x.dtype, tuple(x.shape or ())[1:], x.kind, x.device)
            return self.rows_of(form, (x,))
        if content.at is None and content.element is not UNKNOWN_ITEMS:
            return self.repeated((content.element,), content.length)
        made = self.own(prelude.listed, self.core.new_list(content))
        found = self.core.heap[made]
        return found if isinstance(found, Rows) else self.stacked(found)

    def repeated(self, content: Value, times: Dim) -> Rows:
        """Return a content several times behind itself; never less often than not at all.

        What it is stays known of a single number (``[0] * n``).
        """
        known = type(content) is tuple and len(content) == 1 and is_plain(content[0])
        if known and number_kind(content[0]):
            rows = self.rows(Fixed(content[0]), content, self.core.heap.contents)
        else:
            rows = self.stacked(content)
        if isinstance(times, Expr) and not self.core.knowledge.is_nonnegative(times):
            # (A formula would take it for a size.)
            least = self.core.op("Max", self.emit.size(times), np.array(0, np.int64))
            times = self.emit.number(least, "times")
        elif isinstance(times, int):
            times = max(0, times)
        count = times

        def tiled(column: Tensor) -> Tensor:
            repeats = self.emit.constant([count, *[1] * (column.rank - 1)])
            made: Tensor = self.core.op("Tile", column, repeats)
            return made

        family = self.links.new_family(rows.family) if rows.family else rows.family
        return self._each(rows, tiled, self.links.double(family))

    def _each(
        self, rows: Rows, change: Callable[[Tensor], Tensor], family: frozenset[int] | None = None
    ) -> Rows:
        """Return a content after items were taken, dropped or put in another order."""
        pairs = divided(leaves(rows.form), rows.columns)
        columns = [c for _, held in pairs for c in self.stacks.each(held, change)]
        if rows.doubled is not None:
            self.links.double(rows.family)
        return self.rows_of(rows.form, tuple(columns), rows.family if family is None else family)

    def joined(
        self,
        condition: Term,
        yes: Value,
        no: Value,
        sides: tuple[Contents, Contents] | None = None,
    ) -> Value:
        """Return the content that is ``yes`` where a condition holds, else ``no``; None if none.

        Args:
            condition: The condition.
            yes: A content.
            no: The other one.
            sides: The contents of objects in which each of them is; the present ones if None.
        """
        also, held = self.emit.also, sides or (self.core.heap.contents,) * 2
        pair = list(zip((yes, no), held, strict=True))
        slots = [content_slot(content, contents, ListRef(0), also) for content, contents in pair]
        both = unified(unified(slots[0], Listed(None)), unified(slots[1], Listed(None)))
        if not isinstance(both, Listed) or both.item is None or not is_stackable(both.item):
            return None
        branch = self.emit.scope.branches.get(condition)
        found = []
        scopes = (branch.yes, branch.no) if branch else (None, None)
        for (content, contents), scope in zip(pair, scopes, strict=True):
            if scope is None:
                found.append(self.rows(both.item, content, contents).columns)
            else:
                with self.emit.at(scope):
                    found.append(self.rows(both.item, content, contents).columns)
        columns = []
        for a, b in zip(*found, strict=True):
            assert a.shape is not None
            shape = (self.emit.fresh("length"), *a.shape[1:])
            columns.append(self.emit.choose(condition, a, b, shape))
        family = frozenset(n for side in (yes, no) for n in self.links.family_of(side))
        if any(isinstance(side, Rows) and side.doubled is not None for side in (yes, no)):
            self.links.double(family)
        made = self.rows_of(both.item, tuple(columns), family)
        if not all(self.links.are_current(*one) for one in pair):
            self.links.mixed.append(made)
        return made

    def chained(self, left: Value, right: Value) -> Value:
        """Return the contents of two lists behind each other."""
        if left == () or right == ():
            return right if left == () else left
        if isinstance(left, tuple) and isinstance(right, tuple):
            return (*left, *right)
        a, b = (c if isinstance(c, tuple) else self.stacked(c) for c in (left, right))
        for content in (a, b):
            if isinstance(content, tuple):
                self.links.fresh(content)
        form = self._common(self.form_of(a), self.form_of(b), left, right)
        contents = self.core.heap.contents
        first, then = self.rows(form, a, contents), self.rows(form, b, contents)
        pairs = zip(
            divided(leaves(form), first.columns), divided(leaves(form), then.columns), strict=True
        )
        columns = [c for (_, x), (_, y) in pairs for c in self.stacks.behind(x, y)]
        rows = self.rows_of(form, tuple(columns), first.family | then.family, first)
        if rows.family and self._shares(first, then):
            self.links.double(rows.family)
        for content, start in ((a, 0), (b, first.length)):
            if isinstance(content, tuple) and rows.family:
                for place, item in enumerate(content):
                    self.links.put(item, rows, start + place)
        return rows

    def _shares(self, first: Rows, then: Rows) -> bool:
        """Whether items of two contents may be one, or one has an item twice."""
        pairs = ((a, b) for a in first.family for b in then.family)
        doubled = first.doubled is not None or then.doubled is not None
        return doubled or any(self.links.may_be(a, b) for a, b in pairs)

    def _common(self, a: Slot | None, b: Slot | None, *shown: Value) -> Slot:
        form = varying(unified(a, b, mixing=True))
        if form is None or not is_stackable(form):
            told = [self._shown(content) for content in shown]
            raise refuse_items(f"the items of {' and '.join(told)}")
        return form

    def _shown(self, content: Value) -> str:
        if isinstance(content, Many) and content.at is not None:
            return f"[{self.core.show(content.item(0))}, ...]"
        return str(self.core.show(self.core.new_list(content)))

    # Items.

    def item(self, content: Value, index: Value) -> Value:
        """Return the item at a place, or those of a slice as a new list."""
        rows = self.stacked(content)
        if isinstance(index, slice):
            core = self.core

            def taken(column: Tensor) -> Tensor:
                # (A list has slices with steps backward, which tensors of PyTorch lack.)
                items = column.seen_as("numpy.ndarray")
                made: Tensor = core.tables.tensor_item(core, items, index)
                return made.seen_as(column.kind)

            return core.new_list(self._each(rows, taken))
        place = self._place(index)
        if not isinstance(content, tuple) or not rows.family:
            return rows.item(place)
        # (A place beyond the list is an error in the run; one that counts from the back is not.)
        numbers = np.arange(len(content), dtype=np.int64)
        place = self.emit.number(
            self.core.op("Gather", numbers, self.emit.size(place), axis=0), "place"
        )
        value = self.copied(rows, place)
        self.links.taken(value, rows, place, content)
        return value

    def from_front(self, place: Dim, count: Dim) -> Dim:
        """Return a place, which may count from the back, as one that counts from the front."""
        if self.core.knowledge.is_nonnegative(place):
            return place
        self._check(place, count)
        sizes = self.emit.size(place), self.emit.size(count)
        return self.emit.number(self.core.op("Mod", *sizes), "place")

    def check_place(self, content: Value, index: Value) -> None:
        """Let a handler take the error of a list without an item at a place; else a node fails."""
        if self.core.is_awaited(IndexError):
            self._check(self._place(index), self._count(content))

    def _check(self, place: Dim, count: Dim) -> None:
        for beyond, bound in ((ast.GtE, count), (ast.Lt, -count)):
            bad = self.core.compare(beyond, place, bound)
            self.core.fail_where(bad, IndexError, "list index out of range")

    def _place(self, index: Value) -> Dim:
        if isinstance(index, Tensor):
            index = self.core.tensor_number(index, whole=True)
        if not is_size(index):
            raise CheckError("type", f"expected an integer as index, got {self.core.show(index)}")
        return index  # type: ignore[no-any-return]

    def store(self, content: Value, index: Value, value: Value) -> Rows:
        """Return a content after an item was set."""
        if isinstance(index, slice):
            raise CheckError(
                "capture", "a part of a list whose length the data decide is set; set single items"
            )
        self.links.fresh(value)
        rows, place = self.stacked(content), self._place(index)
        made = self._set(rows, place, value)
        doubled = self.links.doubling(value, rows, place) if rows.family else None
        family = rows.family | self.links.family_of((value,))
        rows = self.rows_of(made.form, made.columns, family, doubled=doubled)
        if family:
            self.links.put(value, rows, place)
        return rows

    def written(self, rows: Rows, place: Dim, value: Value) -> Rows:
        """Return a content after an item was changed in place."""
        made = self._set(rows, place, value)
        return self.rows_of(made.form, made.columns, rows.family, rows)

    def _set(self, rows: Rows, at: Dim, value: Value) -> Rows:
        contents = self.core.heap.contents
        slot = slot_of(value, contents, self.emit.also)
        form = self._common(rows.form, slot, rows, (value,))
        if next(leaves(form), None) is None:
            return rows
        items = iter(self.apart(form, value, contents))
        columns = [
            column
            for leaf, held in divided(leaves(form), self.rows(form, rows, contents).columns)
            for column in self.stacks.stored(leaf, held, at, next(items))
        ]
        return self.rows_of(form, tuple(columns))

    # Methods.

    def method(
        self, ref: ListRef, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Call a method of a list."""
        core = self.core
        content = core.heap[ref]
        match name:
            case "append":
                core.heap[ref] = self.chained(content, (arguments[0],))
            case "appendleft":
                core.heap[ref] = self.chained((arguments[0],), content)
            case "popleft":
                return self._pop(ref, 0)
            case "rotate":
                by = arguments[0] if arguments else 1
                start = -by % maximum(self._count(content), 1)
                after, before = self.part(content, start, None), self.part(content, None, start)
                core.heap[ref] = self.chained(after, before)
            case "extend":
                found = core.sequence(arguments[0])
                core.heap[ref] = self.chained(
                    content, tuple(found) if isinstance(found, list) else found
                )
            case "pop":
                return self._pop(ref, arguments[0] if arguments else -1)
            case "insert":
                at, count = self._place(arguments[0]), self._count(content)
                before = self.part(content, None, at) if at != 0 else ()
                after = self.part(content, at, None) if at != count else ()
                core.heap[ref] = self.chained(self.chained(before, (arguments[1],)), after)
            case "reverse":
                core.heap[ref] = self.part(content, None, None, -1)
            case "sort":
                core.heap[ref] = core.heap[self.sorted(content, keywords)]
            case "copy":
                return core.new_list(content)
            case "clear":
                core.heap[ref] = ()
            case "remove":
                core.heap[ref] = self._without(content, self._found("index", ref, arguments))
            case "index" | "count":
                return self._found(name, ref, arguments)
            case "__len__":
                return self._count(content)
            case _:
                raise CheckError(
                    "capture", f"'{name}' of a list whose length the data decide is not captured"
                )
        return None

    @staticmethod
    def _count(content: Value) -> Dim:
        return content.length if isinstance(content, Many) else len(content)

    def _found(self, name: str, ref: ListRef, arguments: Sequence[Value]) -> Value:
        function = prelude.index if name == "index" else prelude.count
        found = self.own(function, ref, arguments[0])
        if name == "index":
            none = self.core.compare(ast.Eq, found, self._count(self.core.heap[ref]))
            self.core.fail_where(none, ValueError, "the value is not in the list")
        return found

    def part(self, content: Value, start: Value, stop: Value, step: Value = None) -> Value:
        """Return a slice of a content."""
        return self.core.heap[self.item(content, slice(start, stop, step))]

    def _pop(self, ref: ListRef, index: Value) -> Value:
        rows = self.stacked(self.core.heap[ref])
        place = self._place(index)
        value = self.copied(rows, place)
        if place == -1:
            self.core.heap[ref] = self.part(rows, None, -1)
        elif place == 0:
            self.core.heap[ref] = self.part(rows, 1, None)
        else:
            self.core.heap[ref] = self._without(rows, place)
        return value

    def _without(self, content: Value, place: Dim) -> Value:
        """Return a content without the item at a place, which may count from the back."""
        rows = self.stacked(content)
        count = self.emit.size(rows.length)
        at = self.core.op("Mod", self.emit.size(place), count)
        numbers = self.core.op("Range", np.array(0), count, np.array(1))
        kept = self.core.op("Not", self.core.op("Equal", numbers, at))
        return self._each(rows, lambda column: self.core.op("Compress", column, kept, axis=0))

    # Order.

    def sorted(self, content: Value, keywords: Mapping[str, Value]) -> ListRef:
        """Return a new list of the items in the order of their keys."""
        core = self.core
        reverse = keywords.get("reverse", False)
        if not isinstance(reverse, bool):
            raise CheckError("capture", "the direction of a sort has to be known: reverse=True")
        ref = core.new_list(content)
        key = keywords.get("key")
        keys = self.own(prelude.mapped, key, ref) if key is not None else ref
        rows, order = self.stacked(content), None
        by = self.stacked(core.heap[keys])
        for _, (column, *more) in reversed([*divided(leaves(by.form), by.columns)]):
            if more or column.rank != 1:
                raise CheckError("capture", "a list is sorted by tensors of more than one element")
            turned = column if order is None else core.op("Gather", column, order, axis=0)
            found = self._order(turned, largest=reverse)
            order = found if order is None else core.op("Gather", order, found, axis=0)
        made = self._each(rows, lambda column: core.op("Gather", column, order, axis=0))
        if isinstance(content, tuple):
            return core.new_list([made.item(k) for k in range(len(content))])
        return core.new_list(made)

    def _order(self, column: Tensor, *, largest: bool) -> Tensor:
        """Return the places of numbers in order; equal ones keep theirs, as TopK promises."""
        if column.dtype == DataType.BOOL:
            column = self.core.op("Cast", column, to=DataType.INT64)
        count = self.core.op("Shape", column)
        _, order = self.core.op(
            "TopK", column, count, axis=0, largest=int(largest), sorted=1, outputs=2
        )
        return order  # type: ignore[no-any-return]

    def reduced(self, name: str, content: Value) -> Value:
        """Return the sum, least or greatest of numbers; None where they are no single numbers."""
        if not isinstance(content, Many):
            return None
        rows = self.stacked(content)
        form = rows.form
        if isinstance(form, NumberSlot) and form.kind in ("int", "float"):
            made = self.core.op(name, rows.columns[0], keepdims=0)
            return self._number(form.kind, made, form.also)
        if name != "ReduceSum" or len(rows.columns) != 1:
            return None
        items = rows.columns[0]
        if items.dtype == DataType.BOOL:  # as numbers, they count
            items = self.core.op("Cast", items, to=DataType.INT64)
        if isinstance(form, NumberSlot) and form.kind == "bool":
            return self._number("int", self.core.op(name, items, keepdims=0), frozenset())
        if rows.stacked is not None:
            return self.core.op(name, items, _FIRST, keepdims=0)
        return None


def is_data(value: Value) -> bool:
    """Whether a value, or a part of it, is a number or tensor that is not known."""
    if isinstance(value, tuple):
        return any(map(is_data, value))
    if isinstance(value, slice):
        return any(isinstance(v, Expr | Tensor) for v in (value.start, value.stop, value.step))
    return not is_plain(value)


__all__ = ["Lists", "is_data"]
