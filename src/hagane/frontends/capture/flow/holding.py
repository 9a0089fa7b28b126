"""Values of the program as tensors, and back, by their forms."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.capture.emitting.described import Described, Group, Same, Stack
from hagane.frontends.capture.emitting.emitter import GraphEmitter
from hagane.frontends.capture.flow.slots import (
    DTYPES,
    Contents,
    Fixed,
    Listed,
    Maybe,
    NumberSlot,
    OneOf,
    Parts,
    Rows,
    Slot,
    TensorSlot,
    columns_of,
    fields_like,
    has_objects,
    leaf_type,
    leaves,
    number_kind,
)
from hagane.frontends.capture.flow.stacks import Stacks, Uneven, divided, uneven_axes
from hagane.frontends.capture.flow.tables import known_columns, parts_of
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.deques import list_like
from hagane.frontends.python.values.memory import COMPLEX
from hagane.frontends.python.values.objects import Instance
from hagane.frontends.python.values.values import (
    Choice,
    DictRef,
    Kinds,
    ListRef,
    Many,
    Real,
    Tensor,
    Truth,
    Unknown,
    Value,
)
from hagane.symbolic import Dim, Expr
from hagane.symbolic.term import Term

if TYPE_CHECKING:
    from hagane.frontends.capture.flow.links import Links
    from hagane.frontends.python.enter.interpreter import Interpreter

_ZERO = ir.tensor(np.zeros(1, np.int64))
UNKNOWN_ITEMS = Unknown("items of a list whose length the data decide", told=False)


def ruled(content: Many) -> Many:
    """Return the content of a list; items that follow no rule are none that a graph could have.

    The interpreter of types gives one value for all items of some lists.
    """
    found = (content.at, content.stacked, content.uneven, content.table)
    if isinstance(content.element, Unknown) or any(one is not None for one in found):
        return content
    return Many(UNKNOWN_ITEMS, content.length)


def _refuse_lost(value: Value) -> None:
    """Refuse a value that an iteration would hand on and that only the one written has lost."""
    if isinstance(value, Choice):
        _refuse_lost(value.yes)
        _refuse_lost(value.no)
    elif isinstance(value, Unknown):
        lost = "an iteration loses a value that it would hand on"
        raise CheckError("capture", f"{lost}: {value.reason}" if value.reason else lost)


class Holding:
    """Takes values apart into tensors, and makes values of tensors.

    Args:
        core: The interpreter.
        emit: Makes the nodes.
    """

    def __init__(self, core: Interpreter, emit: GraphEmitter):
        self.core, self.emit = core, emit
        self.stacks = Stacks(core, emit)
        self.links: Links
        # Makes one container of two, as some contents have them.
        self.merged: Callable[[Choice, Contents], Value]

    # Apart.

    def apart(self, slot: Slot, value: Value, contents: Contents) -> list[Tensor]:
        """Return the tensors that hold a value of a form."""
        value = self.core.settle(value)
        if isinstance(slot, Fixed):
            return []
        _refuse_lost(value)
        if isinstance(slot, Maybe):
            present, found = self._present(value, slot.absent)
            flag = self.emit.as_scalar(present, "bool")
            if found is slot.absent:
                return [flag, *map(self._filler, leaves(slot.item))]
            return [flag, *self.apart(slot.item, found, contents)]
        if isinstance(slot, TensorSlot):
            assert isinstance(value, Tensor)
            if value.dtype in COMPLEX:
                value = self.core.tables.complex_parts.joined(self.core, value)
            return [value]
        if isinstance(value, Choice) and isinstance(slot, Parts | Listed):
            value, contents = self._one_of(value, contents)
        if isinstance(slot, Parts | Listed) and contents is self.core.heap.contents:
            self.links.fresh(value, told=False)
        if isinstance(slot, NumberSlot):
            return [self._scalar(value, slot.kind)]
        if isinstance(slot, OneOf):
            return [self._place_of(slot, value)]
        if isinstance(slot, Listed):
            content = contents[value.key] if isinstance(value, ListRef) else value
            return list(self.rows(slot.item, content, contents).columns) if slot.item else []
        found = parts_of(slot, value, contents)
        pairs = zip(slot.items, found, strict=True)
        return [t for part, item in pairs for t in self.apart(part, item, contents)]

    def _one_of(self, value: Choice, contents: Contents) -> tuple[Value, Contents]:
        """Return one container that has the content of one of two, and contents with it."""
        heap = self.core.heap
        mark, present = heap.mark(), contents is heap.contents
        made = self.merged(value, contents)
        if isinstance(made, Choice):
            raise refuse_items(self.core.show(value))
        if present:
            return made, heap.contents
        return made, {**contents, **{k: one for k, one in heap.contents.items() if k > mark}}

    def _scalar(self, value: Value, kind: str) -> Tensor:
        """Return a number, or one of several that the data decide, as a scalar."""
        if isinstance(value, Choice):
            yes, no = self._scalar(value.yes, kind), self._scalar(value.no, kind)
            return self.emit.choose(value.condition, yes, no, ())
        if isinstance(value, Tensor):
            made: Tensor = self.core.op("Cast", value, to=DTYPES[kind])
            return made
        return self.emit.as_scalar(value, kind)

    def _place_of(self, slot: OneOf, value: Value) -> Tensor:
        """Return the place of a text among its possible values."""
        if not isinstance(value, Choice):
            return self.emit.as_scalar(slot.values.index(value), "int")
        yes, no = self._place_of(slot, value.yes), self._place_of(slot, value.no)
        chosen = self.emit.as_scalar(self.core.as_truth(value.condition), "bool")
        made: Tensor = self.core.op("Where", chosen, yes, no)
        return made

    def is_present(self, value: Value) -> bool:
        """Whether a value is known not to be None."""
        return self._present(self.core.settle(value))[0] is True

    def _present(self, value: Value, absent: Value = None) -> tuple[Value, Value]:
        """Return whether a value is not None, or another one, and the value then."""
        if value is absent:
            return False, absent
        if not isinstance(value, Choice):
            return True, value
        yes, a = self._present(value.yes, absent)
        no, b = self._present(value.no, absent)
        flag = self.core.join_parts(value.condition, yes, no) if yes is not no else yes
        if a is absent or b is absent:
            return flag, b if a is absent else a
        return flag, self.core.join(value.condition, a, b)

    def _filler(self, leaf: TensorSlot | NumberSlot) -> Tensor:
        type_ = leaf_type(leaf, self.emit.fresh)
        if isinstance(leaf, TensorSlot) and any(isinstance(dim, Expr) for dim in leaf.shape):
            # Sizes that have names have them in the filler too: those of states stay the same.
            zero = ir.tensor(np.zeros(1, type_.dtype.numpy()))
            sizes = self.emit.constant(list(type_.shape or ()), ir.DataType.INT64)
            made: Tensor = self.core.op("ConstantOfShape", sizes, value=zero)
            return made
        return self.emit.tensor(self.emit.zeros(type_))

    # Together.

    def together(self, slot: Slot, tensors: Iterator[Tensor], present: Term | None = None) -> Value:
        """Return the value that tensors hold; containers are new ones.

        Args:
            slot: Its form.
            tensors: Those of its leaves, in order.
            present: Whether a value that may be None is there, where numbers tell.
        """
        if isinstance(slot, Fixed):
            return slot.value
        if isinstance(slot, Maybe):
            flag = self._number("bool", next(tensors))
            there = self.core.truth(flag) if present is None else self.core.decide(present)
            value = self.together(slot.item, tensors)
            if isinstance(there, bool):
                return value if there else slot.absent
            return Choice(there, value, slot.absent)
        if isinstance(slot, TensorSlot):
            found = next(tensors)
            if slot.dtype in COMPLEX:
                return self.core.tables.complex_parts.divided(self.core, found, slot.kind)
            return replace(found, kind=slot.kind, device=slot.device)
        if isinstance(slot, NumberSlot):
            return self._number(slot.kind, next(tensors), slot.also)
        if isinstance(slot, OneOf):
            return self._text(slot, self._number("int", next(tensors)))
        if isinstance(slot, Listed):
            return self.core.new_list(self.content(slot, tensors))
        items = tuple(self.together(item, tensors) for item in slot.items)
        if isinstance(slot.like, ListRef):
            return list_like(self.core.heap, slot.like, items)
        if isinstance(slot.like, DictRef):
            return self.core.new_dict(dict(zip(slot.names, items, strict=True)), slot.like.kind)
        if isinstance(slot.like, Instance):
            held = dict(zip(slot.names, items, strict=True))
            return Instance(self.core.heap.new(held), slot.like.cls)
        return fields_like(slot.like, items)

    def _text(self, slot: OneOf, place: Value) -> Value:
        """Return the text at a place among a value's possible texts."""
        found: Value = slot.values[-1]
        for number, text in reversed([*enumerate(slot.values[:-1])]):
            here = self.core.truth(self.core.compare(ast.Eq, place, number))
            found = Choice(self.core.as_term(here), text, found)
        return found

    def content(
        self, slot: Slot, tensors: Iterator[Tensor], family: frozenset[int] | None = None
    ) -> Value:
        """Return the content of a list, of a new family if none is given."""
        if isinstance(slot, Parts):
            return tuple(self.together(item, tensors) for item in slot.items)
        assert isinstance(slot, Listed)
        if slot.item is None:
            return ()
        columns = tuple(next(tensors) for _ in leaves(slot))
        if family is None:
            family = self.links.new_family() if has_objects(slot.item) else frozenset()
        return self.rows_of(slot.item, columns, family)

    def _number(self, kind: str, scalar: Tensor, also: Kinds = frozenset()) -> Value:
        if kind == "int":
            return self.emit.of_kinds(self.emit.number(scalar, "state"), also)
        if kind == "bool":
            return Truth(self.emit.truth(scalar, self.emit.new_truth()))
        return Real(None, scalar, also)

    # Lists.

    def stacked(self, content: Value) -> Rows:
        """Return the content of a list with its items stacked."""
        raise NotImplementedError

    def rows_of(
        self,
        form: Slot,
        columns: tuple[Tensor, ...],
        family: frozenset[int] = frozenset(),
        before: Rows | None = None,
        doubled: tuple[Dim, Dim] | None = None,
    ) -> Rows:
        """Return the items that stacked tensors hold.

        Args:
            form: The form of an item.
            columns: The tensors.
            family: Marks items that have containers.
            before: The content of a list before one item was changed or appended.
            doubled: Two places that one container is at.
        """

        def item(k: Dim) -> Value:
            found = self.copied(rows, k)
            if family:
                self.links.taken(found, rows, k)
            return found

        first = columns[0]
        assert first.shape is not None
        whole, uneven, also = None, None, frozenset[Any]()
        if isinstance(form, NumberSlot):
            whole, also = first.seen_as(""), form.also  # no array of the program
        elif isinstance(form, Fixed) and number_kind(form.value):
            leaf = NumberSlot(number_kind(form.value))
            one = self.emit.as_scalar(form.value, leaf.kind)
            (whole,) = self.stacks.same(leaf, one, first.shape[0])
            whole = whole.seen_as("")
        elif isinstance(form, TensorSlot) and not uneven_axes(form):
            whole = first
        elif isinstance(form, TensorSlot) and len(uneven_axes(form)) == 1:
            uneven = Uneven(self.stacks, form, columns)
        rows = Rows(
            UNKNOWN_ITEMS, first.shape[0], item, whole, also, uneven, lambda: self._table(rows),
            form, columns, family, before, self.links.clock, doubled,
        )  # fmt: skip
        return rows

    def _table(self, rows: Rows) -> Tensor | None:
        """Return one tensor of items that are lists and tuples of what one tensor holds."""
        columns = divided(leaves(rows.form), rows.columns)
        kinds = {leaf.kind for leaf in leaves(rows.form) if isinstance(leaf, TensorSlot)}
        promoted = not any(kind.startswith("torch") for kind in kinds)

        def held(form: Slot | None, depth: int) -> Tensor | None:
            if isinstance(form, Listed):
                return held(form.item, depth + 1)
            if isinstance(form, Parts) and not form.names and form.items:
                parts = [held(item, depth) for item in form.items]
                return self._side_by_side(parts, depth, promoted=promoted)
            if not isinstance(form, TensorSlot | NumberSlot):
                return None
            leaf, found = next(columns)
            if isinstance(form, NumberSlot) and form.also - {int, DTYPES["int"]}:
                return None  # the data decide the element type of an array of them
            if len(found) == 1:
                return found[0].seen_as("")
            if not isinstance(leaf, TensorSlot) or depth != 2 or uneven_axes(leaf) != (0,):
                return None
            return Uneven(self.stacks, leaf, found).even().seen_as("")

        return held(rows.form, 1)

    def _side_by_side(
        self, parts: Sequence[Tensor | None], axis: int, *, promoted: bool
    ) -> Tensor | None:
        """Return tensors of one shape stacked along a new axis; None if they differ.

        Numbers of several types have the one that NumPy's array of them has.
        """
        found = [part for part in parts if part is not None]
        if len(found) < len(parts) or len({(part.shape or ())[1:] for part in found}) > 1:
            return None
        dtypes = {part.dtype for part in found}
        if len(dtypes) > 1 and not promoted:
            return None
        dtype = ir.DataType.from_numpy(np.result_type(*(dtype.numpy() for dtype in dtypes)))
        same = [p if p.dtype == dtype else self.core.op("Cast", p, to=dtype) for p in found]
        wide = [self.core.op("Unsqueeze", part, np.array([axis])) for part in same]
        made: Tensor = self.core.op("Concat", *wide, axis=axis)
        return made

    def copied(self, rows: Rows, k: Dim) -> Any:
        """Return the item at a place, its containers as new ones."""
        pairs = divided(leaves(rows.form), rows.columns)
        taken = iter([self.stacks.item(leaf, columns, k) for leaf, columns in pairs])
        return self.together(rows.form, taken)

    def described(self, content: Many) -> Described:
        """Return the parts of the items of a list whose length the data decide, for a result."""
        rows = self.stacked(content)
        if isinstance(rows.form, Fixed) and number_kind(rows.form.value):
            assert rows.stacked is not None
            rows = self.numbers(number_kind(rows.form.value), rows.stacked)
        columns = divided(leaves(rows.form), rows.columns)
        refusal = CheckError(
            "capture",
            "a list is returned whose length the data decide, of "
            f"{self.core.show(rows.item(0))}; return tensors or numbers, or tuples and "
            "lists of such",
        )
        if next(leaves(rows.form), None) is None:
            raise refusal

        def part(form: Slot) -> Described:
            if isinstance(form, Fixed):
                return Same(form.value)
            if isinstance(form, Parts):
                return Group(form.like, form.names, tuple(part(item) for item in form.items))
            inner = form.item if isinstance(form, Listed) else form
            kind = inner.kind if isinstance(inner, NumberSlot) else ""
            leaf, held = next(columns)
            if len(uneven_axes(leaf)) > 1 or not (kind or isinstance(form, TensorSlot)):
                raise refusal
            of = kind if isinstance(form, Listed) else ""
            shown = "numpy.ndarray" if of else "numbers" if kind else ""
            if len(held) == 1:
                return Stack(held[0], kind=shown, inner=of)
            assert isinstance(leaf, TensorSlot)
            whole = Uneven(self.stacks, leaf, held).joined()
            sizes = self.core.op("Squeeze", held[0], np.array([1], np.int64))
            return Stack(whole, sizes, uneven_axes(leaf)[0], shown, of)

        return part(rows.form)

    def numbers(self, kind: str, x: Tensor) -> Rows:
        """Return the elements of an array of one axis as numbers of a type of Python."""
        held = DTYPES[kind]
        column = x if x.dtype == held else self.core.op("Cast", x, to=held)
        return self.rows_of(NumberSlot(kind), (column,))

    def rows(self, form: Slot, content: Value, contents: Contents) -> Rows:
        """Return a list's content with its items stacked, in a form that holds them all."""
        if isinstance(content, Rows):
            if content.form == form:
                return content
            return self.rows_of(form, self._formed(content, form), content.family, content)
        if isinstance(content, Many):
            _refuse_lost(content.element)
        known = known_columns(form, content, contents)
        if known:
            initializer = self.emit.root.nodes.initializer
            tables = tuple(self.emit.tensor(initializer(column, "table")) for column in known)
            return self.rows_of(form, tables, self.links.family_of(content))
        apart = [self.apart(form, item, contents) for item in content]
        parts = [
            self.stacks.of(leaf, [tensors[place] for tensors in apart])
            for place, leaf in enumerate(leaves(form))
        ]
        made = tuple(column for part in parts for column in part)
        made = made or (self.core.op("ConstantOfShape", np.array([len(content)]), value=_ZERO),)
        return self.rows_of(form, made, self.links.family_of(content))

    def _formed(self, rows: Rows, form: Slot) -> tuple[Tensor, ...]:
        """Return the columns of items in another form that holds them, too."""
        columns = iter(rows.columns if next(leaves(rows.form), None) else ())
        found = tuple(self._parts_formed(rows.form, form, columns, rows.length))
        return found or rows.columns

    def _parts_formed(
        self, old: Slot, new: Slot, columns: Iterator[Tensor], count: Dim
    ) -> Iterator[Tensor]:
        if isinstance(old, Parts) and isinstance(new, Parts):
            for before, after in zip(old.items, new.items, strict=True):
                yield from self._parts_formed(before, after, columns, count)
        elif isinstance(old, Parts) and isinstance(new, Listed):
            assert new.item is not None
            inner = [
                tuple(self._parts_formed(item, new.item, columns, count)) for item in old.items
            ]
            yield from self._lists_formed(new, inner, count)
        elif isinstance(old, Listed) and old.item is None and isinstance(new, Listed):
            yield from self._lists_formed(new, [], count)
        elif isinstance(new, Fixed):
            return
        elif isinstance(new, Maybe) and not isinstance(old, Maybe):
            there = not (isinstance(old, Fixed) and old.value is new.absent)
            flag = ir.tensor(np.array([there]))
            yield self.core.op("ConstantOfShape", self.emit.constant([count]), value=flag)
            if there:
                yield from self._parts_formed(old, new.item, columns, count)
                return
            for leaf in leaves(new.item):
                yield from self.stacks.same(leaf, self._filler(leaf), count)
        elif isinstance(old, Fixed):
            apart = self.apart(new, old.value, {})
            for leaf, tensor in zip(leaves(new), apart, strict=True):
                yield from self.stacks.same(leaf, tensor, count)
        else:
            if len([*leaves(old)]) != len([*leaves(new)]):
                raise refuse_items("lists of lists of a fixed length beside such of other lengths")
            for before, after in zip(leaves(old), leaves(new), strict=True):
                held = tuple(next(columns) for _ in columns_of(before))
                yield from self.stacks.widened(before, after, held)

    def _lists_formed(
        self, new: Listed, items: Sequence[tuple[Tensor, ...]], count: Dim
    ) -> Iterator[Tensor]:
        """Yield the columns of lists of one length, as lists whose length the data decide.

        Args:
            new: The form of a list.
            items: For each place in the lists, the columns of the items there.
            count: The number of lists.
        """
        assert new.item is not None
        if any(len(columns_of(leaf)) > 1 for leaf in leaves(new.item)) and items:
            raise refuse_items("lists of tensors whose sizes differ")
        for place, leaf in enumerate(leaves(new)):
            if not items:
                yield from self.stacks.same(leaf, self.stacks.none(leaf), count)
                continue
            one = np.array([1], np.int64)
            parts = [self.core.op("Unsqueeze", columns[place], one) for columns in items]
            held = parts[0] if len(parts) == 1 else self.core.op("Concat", *parts, axis=1)
            assert isinstance(leaf, TensorSlot)
            before = replace(leaf, shape=(len(items), *leaf.shape[1:]))
            yield from self.stacks.widened(before, leaf, (held,))


def refuse_items(shown: str) -> CheckError:
    """Return the error for items that no tensor holds."""
    return CheckError(
        "capture",
        f"a list whose length the data decide would hold {shown}; its items have to be tensors of "
        "one type and shape, numbers, or tuples and lists of such",
    )


__all__ = ["UNKNOWN_ITEMS", "Holding", "refuse_items", "ruled"]
