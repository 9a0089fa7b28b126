"""Values of the program as tensors, and back, by their forms."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

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
    fields_like,
    leaf_type,
    leaves,
)
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.values import (
    Choice,
    DictRef,
    Instance,
    Kinds,
    ListRef,
    Real,
    Tensor,
    Truth,
    Unknown,
    Value,
)
from hagane.symbolic import Dim, Expr, symbols_of
from hagane.symbolic.term import Term

if TYPE_CHECKING:
    from hagane.frontends.python.enter.interpreter import Interpreter

UNKNOWN_ITEMS = Unknown("items of a list whose length the data decide", told=False)
_FIRST = np.array([0], np.int64)


class Holding:
    """Takes values apart into tensors, and makes values of tensors.

    Args:
        core: The interpreter.
        emit: Makes the nodes.
    """

    def __init__(self, core: Interpreter, emit: GraphEmitter):
        self.core, self.emit = core, emit

    # Apart.

    def apart(self, slot: Slot, value: Value, contents: Contents) -> list[Tensor]:
        """Return the tensors that hold a value of a form."""
        value = self.core.settle(value)
        if isinstance(slot, Fixed):
            return []
        if isinstance(slot, Maybe):
            present, found = self._present(value)
            flag = self.emit.as_scalar(present, "bool")
            if found is None:
                return [flag, *map(self._filler, leaves(slot.item))]
            return [flag, *self.apart(slot.item, found, contents)]
        if isinstance(slot, TensorSlot):
            assert isinstance(value, Tensor)
            return [value]
        if isinstance(slot, NumberSlot):
            return [self._scalar(value, slot.kind)]
        if isinstance(slot, OneOf):
            return [self._place_of(slot, value)]
        if isinstance(slot, Listed):
            content = contents[value.key] if isinstance(value, ListRef) else value
            return list(self.rows(slot.item, content, contents).columns) if slot.item else []
        found = self._items(slot, value, contents)
        pairs = zip(slot.items, found, strict=True)
        return [t for part, item in pairs for t in self.apart(part, item, contents)]

    def _scalar(self, value: Value, kind: str) -> Tensor:
        """Return a number, or one of several that the data decide, as a scalar."""
        if isinstance(value, Choice):
            yes, no = self._scalar(value.yes, kind), self._scalar(value.no, kind)
            return self.emit.choose(value.condition, yes, no, ())
        if isinstance(value, Tensor):
            made: Tensor = self.core.op("Cast", value, to=DTYPES[kind])
            return made
        return self.emit.as_scalar(value, kind)

    @staticmethod
    def _items(slot: Parts, value: Value, contents: Contents) -> list[Value]:
        if isinstance(value, tuple):
            return list(value)
        held = contents[value.key]
        return [held[name] for name in slot.names] if slot.names else list(held)

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

    def _present(self, value: Value) -> tuple[Value, Value]:
        """Return whether a value is not None, and the value then."""
        if value is None:
            return False, None
        if not isinstance(value, Choice):
            return True, value
        yes, a = self._present(value.yes)
        no, b = self._present(value.no)
        flag = self.core.join_parts(value.condition, yes, no) if yes is not no else yes
        if a is None or b is None:
            return flag, b if a is None else a
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
                return value if there else None
            return Choice(there, value, None)
        if isinstance(slot, TensorSlot):
            found = next(tensors)
            return replace(found, kind=slot.kind, device=slot.device)
        if isinstance(slot, NumberSlot):
            return self._number(slot.kind, next(tensors), slot.also)
        if isinstance(slot, OneOf):
            return self._text(slot, self._number("int", next(tensors)))
        if isinstance(slot, Listed):
            return self.core.new_list(self.content(slot, tensors))
        items = tuple(self.together(item, tensors) for item in slot.items)
        if isinstance(slot.like, ListRef):
            return self.core.new_list(items)
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

    def content(self, slot: Slot, tensors: Iterator[Tensor]) -> Value:
        """Return the content of a list."""
        if isinstance(slot, Parts):
            return tuple(self.together(item, tensors) for item in slot.items)
        assert isinstance(slot, Listed)
        if slot.item is None:
            return ()
        return self.rows_of(slot.item, tuple(next(tensors) for _ in leaves(slot.item)))

    def _number(self, kind: str, scalar: Tensor, also: Kinds = frozenset()) -> Value:
        if kind == "int":
            return self.emit.of_kinds(self.emit.number(scalar, "state"), also)
        if kind == "bool":
            return Truth(self.emit.truth(scalar, self.emit.new_truth()))
        return Real(None, scalar, also)

    # Lists.

    def rows_of(self, form: Slot, columns: tuple[Tensor, ...]) -> Rows:
        """Return the items that stacked tensors hold."""

        def item(k: Dim) -> Value:
            place = self.emit.size(k) if isinstance(k, Expr) else np.array(k, np.int64)
            taken = iter([self.core.op("Gather", column, place, axis=0) for column in columns])
            return self.together(form, taken)

        first = columns[0]
        assert first.shape is not None
        whole = first if isinstance(form, TensorSlot) else None
        if isinstance(form, NumberSlot):
            whole = first.seen_as("")  # no array of the program
        also = form.also if isinstance(form, NumberSlot) else frozenset[Any]()
        return Rows(UNKNOWN_ITEMS, first.shape[0], item, whole, also, form, columns)

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
            kinds = zip(leaves(content.form), leaves(form), content.columns, strict=True)
            return self.rows_of(form, tuple(self._widened(a, b, c) for a, b, c in kinds))
        assert isinstance(content, tuple)
        apart = [self.apart(form, item, contents) for item in content]
        if not apart:
            return self.rows_of(form, tuple(self._none(leaf) for leaf in leaves(form)))
        columns = []
        for tensors in zip(*apart, strict=True):
            parts = [self.core.op("Unsqueeze", tensor, _FIRST) for tensor in tensors]
            columns.append(self.core.op("Concat", *parts, axis=0) if parts[1:] else parts[0])
        return self.rows_of(form, tuple(columns))

    def _widened(
        self, before: TensorSlot | NumberSlot, after: TensorSlot | NumberSlot, column: Tensor
    ) -> Tensor:
        held = before.dtype if isinstance(before, TensorSlot) else DTYPES[before.kind]
        if isinstance(after, NumberSlot) and held != DTYPES[after.kind]:
            made: Tensor = self.core.op("Cast", column, to=DTYPES[after.kind])
            return made
        return column

    def _none(self, leaf: TensorSlot | NumberSlot) -> Tensor:
        """Return the stack of no tensors."""
        dtype = DTYPES[leaf.kind] if isinstance(leaf, NumberSlot) else leaf.dtype
        shape = [0, *(() if isinstance(leaf, NumberSlot) else leaf.shape)]
        if all(isinstance(dim, int) for dim in shape):
            value = self.emit.root.nodes.initializer(np.zeros(shape, dtype.numpy()), "empty")  # type: ignore[arg-type]
            return self.emit.tensor(value)
        known = (
            self.emit.numbers.keys() | self.emit.sizes.keys() | self.core.knowledge.joined.keys()
        )
        if any(symbols_of(dim) - known for dim in shape if isinstance(dim, Expr)):
            raise CheckError(
                "capture",
                "a list whose length the data decide would hold tensors whose sizes differ; pad "
                "them to one size, or join them in the loop, as in whole = torch.cat([whole, x])",
            )
        zero = ir.tensor(np.zeros(1, dtype.numpy()))
        sizes = self.emit.constant(shape, ir.DataType.INT64)
        made: Tensor = self.core.op("ConstantOfShape", sizes, value=zero)
        return made


def refuse_items(shown: str) -> CheckError:
    """Return the error for items that no tensor holds."""
    return CheckError(
        "capture",
        f"a list whose length the data decide would hold {shown}; its items have to be tensors of "
        "one type and shape, numbers, or tuples and lists of such",
    )


__all__ = ["UNKNOWN_ITEMS", "Holding", "refuse_items"]
