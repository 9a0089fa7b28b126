"""Tensors of many items as few tensors: stacked, or laid end to end where their sizes differ.

Items of one shape lie along a new first axis. Where sizes differ, the axes of these sizes come
first in each item and become one axis of rows; the rows of all items lie in a pool. A tensor of
sizes, a row for each item, says how large they are, and a tensor of starts where they lie: items
can be taken, dropped and put in another order without a look at the pool.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.capture.emitting.emitter import GraphEmitter
from hagane.frontends.capture.flow.slots import DTYPES, NumberSlot, TensorSlot, columns_of
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.memory import own, share
from hagane.frontends.python.values.values import Tensor
from hagane.ops.builder import interpreting
from hagane.ops.functions.tensors import parts
from hagane.symbolic import Dim, Expr, product, symbols_of

if TYPE_CHECKING:
    from hagane.frontends.python.enter.interpreter import Interpreter

Leaf = TensorSlot | NumberSlot
Columns = tuple[Tensor, ...]
_FIRST = np.array([0], np.int64)
_FLAT = np.array([-1], np.int64)


def uneven_axes(leaf: Leaf) -> tuple[int, ...]:
    """Return the axes of a tensor of which the sizes differ from item to item."""
    shape = leaf.shape if isinstance(leaf, TensorSlot) else ()
    return tuple(axis for axis, dim in enumerate(shape) if dim is None)


@dataclass(eq=False)
class Stacks:
    """Makes and reads the tensors of many items.

    Args:
        core: The interpreter.
        emit: Makes the nodes.
    """

    core: Interpreter
    emit: GraphEmitter

    # Together.

    def of(self, leaf: Leaf, items: Sequence[Tensor]) -> Columns:
        """Return the columns of some items."""
        if not items:
            return tuple(self.none(column) for column in columns_of(leaf))
        if not uneven_axes(leaf):
            rows = [self.core.op("Unsqueeze", item, _FIRST) for item in items]
            return (self._behind_each_other(rows, items),)
        packed = [self._packed(leaf, item) for item in items]
        sizes = self._behind_each_other([self.core.op("Unsqueeze", s, _FIRST) for s, _ in packed])
        pool = self._behind_each_other([rows for _, rows in packed], items)
        starts = self.core.op("CumSum", self._counts(sizes), np.array(0, np.int64), exclusive=1)
        return sizes, starts, pool

    def _behind_each_other(self, tensors: Sequence[Tensor], items: Sequence[Tensor] = ()) -> Tensor:
        made: Tensor = self.core.op("Concat", *tensors, axis=0) if tensors[1:] else tensors[0]
        if any(item.kind for item in items):  # tensors of the program, which it may write
            share(made.value, [item.value for item in items])
        return made

    def same(self, leaf: Leaf, item: Tensor, count: Dim) -> Columns:
        """Return the columns of one item several times."""

        def tiled(column: Tensor) -> Tensor:
            repeats = self.emit.constant([count, *[1] * (column.rank - 1)], ir.DataType.INT64)
            made: Tensor = self.core.op("Tile", column, repeats)
            return made

        return self.each(self.of(leaf, [item]), tiled)

    def none(self, column: Leaf) -> Tensor:
        """Return the column of no items."""
        assert isinstance(column, TensorSlot)
        shape = [0 if dim is None else dim for dim in column.shape]
        if all(isinstance(dim, int) for dim in shape):
            content = np.zeros(shape, column.dtype.numpy())  # type: ignore[arg-type]
            return self.emit.tensor(self.emit.root.nodes.initializer(content, "empty"))
        known = (
            self.emit.numbers.keys() | self.emit.sizes.keys() | self.core.knowledge.joined.keys()
        )
        if any(symbols_of(dim) - known for dim in shape if isinstance(dim, Expr)):
            raise CheckError(
                "capture",
                "a list whose length the data decide is empty here, and the sizes of its items are "
                "not known yet; begin with an item, or join them in the loop, as in "
                "whole = torch.cat([whole, x])",
            )
        zero = ir.tensor(np.zeros(1, column.dtype.numpy()))
        sizes = self.emit.constant(shape, ir.DataType.INT64)
        made: Tensor = self.core.op("ConstantOfShape", sizes, value=zero)
        return made

    def _packed(self, leaf: Leaf, item: Tensor) -> tuple[Tensor, Tensor]:
        """Return the sizes of an item that differ from those of others, and its rows."""
        axes = uneven_axes(leaf)
        order = [*axes, *(axis for axis in range(item.rank) if axis not in axes)]
        turned = item if order == sorted(order) else self.core.op("Transpose", item, perm=order)
        shape = list(turned.shape or ())
        sizes = self.core.op("Shape", turned, start=0, end=len(axes))
        if len(axes) == 1:
            return sizes, turned
        target = self.emit.constant([product(shape[: len(axes)]), *shape[len(axes) :]])
        return sizes, self.core.op("Reshape", turned, target, allowzero=1)

    def _counts(self, sizes: Tensor) -> Tensor:
        """Return how many rows each item has."""
        made: Tensor = self.core.op("ReduceProd", sizes, np.array([1], np.int64), keepdims=0)
        return made

    # Apart.

    def item(self, leaf: Leaf, columns: Columns, place: Dim) -> Tensor:
        """Return the tensor of the item at a place."""
        at = self.emit.size(place) if isinstance(place, Expr) else np.array(place, np.int64)
        if len(columns) == 1:
            made: Tensor = self.core.op("Gather", columns[0], at, axis=0)
            return made
        assert isinstance(leaf, TensorSlot)
        sizes, starts, pool = columns
        own_sizes = self.core.op("Gather", sizes, at, axis=0)
        start = self.core.op("Gather", starts, self.core.op("Reshape", at, _FLAT), axis=0)
        axes = uneven_axes(leaf)
        count = own_sizes
        if len(axes) > 1:
            count = self.core.op("ReduceProd", own_sizes, _FIRST, keepdims=1)
        stop = self.core.op("Add", start, count)
        found: Tensor = self.core.op("Slice", pool, start, stop, _FIRST)
        names = [self.emit.fresh("size") for _ in axes]
        known = [dim for dim in leaf.shape if dim is not None]
        if len(axes) > 1:
            rest = [self.emit.constant(known, ir.DataType.INT64)] if known else []
            target = self.core.op("Concat", own_sizes, *rest, axis=0) if rest else own_sizes
            found = self.core.op("Reshape", found, target, allowzero=1)
        self.emit.show_sizes(found, (*names, *known))
        order = [*axes, *(axis for axis in range(len(leaf.shape)) if axis not in axes)]
        if order != sorted(order):
            found = self.core.op("Transpose", found, perm=np.argsort(order).tolist())
        return found

    # Many items.

    def each(self, columns: Columns, change: Callable[[Tensor], Tensor]) -> Columns:
        """Return the columns after items were taken, dropped or put in another order."""
        if len(columns) == 1:
            return (change(columns[0]),)
        sizes, starts, pool = columns
        return change(sizes), change(starts), pool

    def behind(self, first: Columns, then: Columns) -> Columns:
        """Return the columns of items behind others."""
        made = [self.core.op("Concat", a, b, axis=0) for a, b in zip(first, then, strict=True)]
        if len(first) == 3:
            count = self.core.op("Shape", first[2], start=0, end=1)
            later = self.core.op("Add", then[1], count)
            made[1] = self.core.op("Concat", first[1], later, axis=0)
        if first[-1].kind:
            share(made[-1].value, [first[-1].value, then[-1].value])
        return tuple(made)

    def stored(self, leaf: Leaf, columns: Columns, place: Dim, tensor: Tensor) -> Columns:
        """Return the columns after the item at a place became another one."""
        at = self.emit.constant([place])
        if len(columns) == 1:
            return (self.core.op("ScatterND", columns[0], at, tensor),)
        sizes, starts, pool = columns
        own_sizes, rows = self._packed(leaf, tensor)
        one = self.core.op("Unsqueeze", own_sizes, _FIRST)
        # An item of the sizes of the old one takes its rows; any other one gets new rows.
        old = self.core.op("Gather", sizes, at, axis=0)
        differ = self.core.op("Not", self.core.op("Equal", old, one))
        moves = self.core.op(
            "ReduceMax", self.core.op("Cast", differ, to=ir.DataType.INT64), keepdims=0
        )
        count = self.core.op("Shape", rows, start=0, end=1)
        end = self.core.op("Shape", pool, start=0, end=1)
        more = self.core.op("Mul", count, moves)
        start = self.core.op(
            "Add",
            self.core.op(
                "Mul", self.core.op("Sub", end, self.core.op("Gather", starts, at, axis=0)), moves
            ),
            self.core.op("Gather", starts, at, axis=0),
        )
        room = self.core.op("Slice", rows, _FIRST, more, _FIRST)
        whole = self._behind_each_other([pool, room], [pool, tensor])
        numbers = self.core.op("Range", np.array(0), self.core.op("Squeeze", count), np.array(1))
        places = self.core.op("Unsqueeze", self.core.op("Add", numbers, start), np.array([1]))
        at = self.core.op("Unsqueeze", at, _FIRST)
        return (
            self.core.op("ScatterND", sizes, at, one),
            self.core.op("ScatterND", starts, at, start),
            self.core.op("ScatterND", whole, places, rows),
        )

    def widened(self, before: Leaf, after: Leaf, columns: Columns) -> Columns:
        """Return the columns of items in another form that holds them, too."""
        held, wanted = (
            x.dtype if isinstance(x, TensorSlot) else DTYPES[x.kind] for x in (before, after)
        )
        if held != wanted:
            columns = (*columns[:-1], self.core.op("Cast", columns[-1], to=wanted))
        if isinstance(after, NumberSlot):
            return columns
        old, new = uneven_axes(before), uneven_axes(after)
        if old == new:
            return columns
        assert isinstance(before, TensorSlot)
        orders = [
            [*axes, *(a for a in range(len(after.shape)) if a not in axes)] for axes in (old, new)
        ]
        if old and orders[0] != orders[1]:
            raise CheckError(
                "capture",
                "the items of a list whose length the data decide differ in one axis first, and "
                "in an earlier one later; pad them to one size",
            )
        return self._loosened(before, columns, orders[1], len(old), len(new))

    def _loosened(
        self, before: TensorSlot, columns: Columns, order: list[int], old: int, new: int
    ) -> Columns:
        """Return items of one shape in more axes as items that differ in them."""
        if old:
            sizes, starts, pool = columns
        else:
            stack = columns[0]
            turned = [0, *(axis + 1 for axis in order)]
            if turned != sorted(turned):
                stack = self.core.op("Transpose", stack, perm=turned)
            pool = stack
        shape = list(pool.shape or ())
        count = (columns[0].shape or ())[0]
        more = shape[1 : 1 + new - old]
        factor = product(more)
        target = self.emit.constant([shape[0] * factor, *shape[1 + new - old :]])
        rows = self.core.op("Reshape", pool, target, allowzero=1)
        added = self.core.op(
            "Expand",
            self.emit.constant(more, ir.DataType.INT64),
            self.emit.constant([count, len(more)]),
        )
        each = self.emit.size(factor)
        if old:
            sizes = self.core.op("Concat", sizes, added, axis=1)
            return sizes, self.core.op("Mul", starts, each), rows
        numbers = self.core.op("Range", np.array(0), self.emit.size(count), np.array(1))
        return added, self.core.op("Mul", numbers, each), rows


class Uneven:
    """The tensors of a list whose sizes differ in one axis.

    Args:
        stacks: Makes the nodes.
        leaf: The form of an item.
        columns: The tensors of all items.
    """

    def __init__(self, stacks: Stacks, leaf: TensorSlot, columns: Columns):
        self._stacks, self._leaf = stacks, leaf
        self._sizes, self._starts, self._pool = columns
        self._op = stacks.core.op

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes of which the sizes differ."""
        return uneven_axes(self._leaf)

    @property
    def first(self) -> Tensor:
        """An item of the kind."""
        shape = tuple(
            self._stacks.emit.fresh("size") if dim is None else dim for dim in self._leaf.shape
        )
        return self._stacks.emit.new(self._leaf.dtype, shape)

    def joined(self) -> Tensor:
        """Return the items behind each other along the axis in which they differ."""
        return self._turned(self._rows(), 0)

    def _rows(self) -> Tensor:
        """Return the items behind each other, their axis of different sizes first."""
        with interpreting(self._stacks.emit):
            counts = self._stacks._counts(self._sizes)
            owners = parts.places_repeated(counts)
            ends = self._op("CumSum", counts, np.array(0, np.int64), exclusive=1)
            total = self._op("Shape", owners)
            numbers = self._op("Range", np.array(0), self._op("Squeeze", total), np.array(1))
            shift = self._op("Sub", self._starts, ends)
            places = self._op("Add", numbers, self._op("Gather", shift, owners, axis=0))
            rows: Tensor = self._op("Gather", self._pool, places, axis=0)
        return rows

    def padded(self, value: Any) -> Tensor:
        """Return the items along a new first axis, each filled up to the largest."""
        with interpreting(self._stacks.emit):
            counts = self._op("Unsqueeze", self._stacks._counts(self._sizes), np.array([1]))
            longest = self._op("ReduceMax", counts, keepdims=0)
            numbers = self._op("Range", np.array(0), longest, np.array(1))
            there = self._op("Less", numbers, counts)
            starts = self._op("Unsqueeze", self._starts, np.array([1]))
            places = self._op("Where", there, self._op("Add", starts, numbers), np.array(0))
            rows = self._op("Gather", self._with_one(), places, axis=0)
            for _ in range(rows.rank - 2):
                there = self._op("Unsqueeze", there, np.array([-1]))
            filler = np.array(value, self._leaf.dtype.numpy())
            made = self._op("Where", there, rows, filler)
        return self._turned(made, 1)

    def even(self) -> Tensor:
        """Return the items along a new first axis; the run fails where they differ in size."""
        rows = self._rows()  # as many as the largest size times the items, if all have that size
        with interpreting(self._stacks.emit):
            counts = self._stacks._counts(self._sizes)
            count = self._op("Shape", counts)
            most = self._op("ReduceMax", self._op("Concat", counts, np.array([0]), axis=0))
            inner = self._op("Shape", rows, start=1)
            shape = self._op(
                "Concat", count, self._op("Reshape", most, np.array([1])), inner, axis=0
            )
            made = self._op("Reshape", rows, shape, allowzero=1)
            assert self._sizes.shape is not None
            assert made.shape is not None
            assert rows.shape is not None
            known = self._sizes.shape[0], made.shape[1], *rows.shape[1:]
            self._stacks.emit.show_sizes(made, known)
        return self._turned(made, 1)

    def _with_one(self) -> Tensor:
        """Return the rows and one more, so that there is one."""
        shape = [1, *(dim for dim in self._leaf.shape if dim is not None)]
        emit = self._stacks.emit
        zero = ir.tensor(np.zeros(1, self._leaf.dtype.numpy()))
        more = self._op("ConstantOfShape", emit.constant(shape, ir.DataType.INT64), value=zero)
        made: Tensor = self._op("Concat", self._pool, more, axis=0)
        return made

    def _turned(self, x: Tensor, front: int) -> Tensor:
        """Return a tensor whose axis of rows is where it is in an item, behind axes of its own."""
        axis = self.axes[0]
        order = [*range(front + 1, front + 1 + axis), front, *range(front + 1 + axis, x.rank)]
        order = [*range(front), *order]
        made: Tensor = x if order == sorted(order) else self._op("Transpose", x, perm=order)
        own(made.value)
        made.kind = self._leaf.kind
        return made


def divided(leaves: Iterator[Leaf], columns: Columns) -> Iterator[tuple[Leaf, Columns]]:
    """Yield each tensor of an item with the columns of those of all items.

    Items without tensors, as empty lists, have a column of their number.
    """
    start = 0
    for leaf in list(leaves) or [NumberSlot("int")]:
        stop = start + len(columns_of(leaf))
        yield leaf, columns[start:stop]
        start = stop


__all__ = ["Stacks", "Uneven", "divided", "uneven_axes"]
