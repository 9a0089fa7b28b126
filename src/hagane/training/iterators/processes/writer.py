"""Writing a batch into its slot while its samples are made."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hagane.training.iterators.processes.layout import (
    Column,
    Layout,
    ObjectColumn,
    RaggedColumn,
    StackedColumn,
    Tree,
    Wrap,
    assemble,
    describe,
    flatten,
)
from hagane.training.iterators.processes.memory import HEADER, Slot
from hagane.training.iterators.processes.tensors import as_tensor, dumps, is_tensor
from hagane.training.iterators.processes.together import array_column, transpose

Collate = Callable[[list[Any]], Any]

_PLAIN = (int, float, str, bool, bytes, complex, type(None))
_NUMBERS = (bool, int, float, complex)
# Bytes below which an array stays in the pickle: a place of its own costs more than two copies.
_WORTH_A_PLACE = 2048


class UnpicklableSample(Exception):
    """A sample that can neither be written nor pickled; ``place`` is its place in the batch."""

    def __init__(self, place: int, error: Exception):
        super().__init__(place, error)
        self.place = place
        self.error = error


class _Column:
    """One leaf of the samples, in the best form that all samples so far allow.

    Rows of a stacked column are written as they come. Those of a ragged one wait, and go into
    the slot together, which takes one call in place of one for each.
    """

    def __init__(self, writer: BatchWriter, ragged: bool):
        self._writer = writer
        self._ragged = ragged  # whether the last batch had several shapes here
        self._form = "none"
        self._rows: Any = None
        self._type: Any = type(None)
        self._dtype: np.dtype[Any] = np.dtype(np.void)
        self._shape: tuple[int, ...] = ()
        self._wrap: Wrap = "array"
        self._base = 0
        self._values: list[Any] = []

    def add(self, place: int, leaf: Any) -> None:
        """Write the next leaf, or keep it."""
        if self._form == "none":
            self._begin(leaf)
        if self._form == "objects":
            self._values.append(leaf)
            return
        fits = type(leaf) is self._type
        if fits and self._wrap == "tensor" and not is_tensor(leaf):
            fits = False
        array: Any = leaf.detach().numpy() if fits and self._wrap == "tensor" else leaf
        fits = fits and array.dtype == self._dtype
        if self._form == "stacked":
            if fits and array.shape == self._shape:
                self._rows[place] = array
                return
            self._values = [self._unwritten(self._rows[row, ...].copy()) for row in range(place)]
            self._rows = None
            self._form = "objects" if self._wrap == "scalar" else "ragged"
        if not fits:
            self._form = "objects"
        self._values.append(leaf)

    def _begin(self, leaf: Any) -> None:
        self._type = type(leaf)
        self._form = "objects"
        array = leaf
        if is_tensor(leaf):
            self._wrap = "tensor"
            array = leaf.detach().numpy()
        elif isinstance(leaf, np.generic):
            self._wrap = "scalar"
        elif self._type is not np.ndarray:
            return
        if array.dtype.hasobject:
            return
        self._dtype, self._shape = array.dtype, array.shape
        if self._ragged and self._wrap != "scalar":
            self._form = "ragged"
            return
        base = self._writer.room(array.nbytes * self._writer.count)
        if base is not None:
            self._form, self._base = "stacked", base
            shape = (self._writer.count, *self._shape)
            self._rows = self._writer.slot.view(base, shape, self._dtype)

    def _unwritten(self, array: Any) -> Any:
        if self._wrap == "scalar":
            return array[()]
        if self._wrap == "tensor":
            return as_tensor(array)
        return array

    def finish(self, stacked: bool) -> Column:
        if self._form == "stacked":
            return StackedColumn(self._base, self._dtype, self._shape, self._wrap)
        written = None
        if self._form == "ragged":
            written = self._written_together()
        elif stacked:
            written = self._as_numbers()
        return ObjectColumn(self._values) if written is None else written

    def _written_together(self) -> Column | None:
        arrays = self._values
        if self._wrap == "tensor":
            arrays = [value.detach().numpy() for value in arrays]
        size = sum([array.size for array in arrays])
        base = self._writer.room(size * self._dtype.itemsize)
        if base is None:
            return None
        out = self._writer.slot.view(base, (size,), self._dtype)
        np.concatenate([array.ravel() for array in arrays], out=out)
        shapes = tuple([array.shape for array in arrays])
        return RaggedColumn(base, self._dtype, shapes, self._wrap)

    def _as_numbers(self) -> Column | None:
        """Python's numbers of one type stack as NumPy's default type for them."""
        kinds = set(map(type, self._values))
        if len(kinds) != 1 or not kinds <= set(_NUMBERS):
            return None
        array = np.asarray(self._values)
        offset = None if array.dtype.hasobject else self._writer.room(array.nbytes)
        if offset is None:
            return None
        self._writer.slot.view(offset, array.shape, array.dtype)[...] = array
        return StackedColumn(offset, array.dtype, (), "array")


def _shareable(kind: type, values: Sequence[Any]) -> bool:
    if kind is np.ndarray:
        return not any(type(value) is kind and value.dtype.hasobject for value in values)
    return kind in _PLAIN or kind in (tuple, list, dict) or issubclass(kind, np.generic)


class BatchWriter:
    """Writes samples into a slot as they come.

    Args:
        slot: Where to write.
        count: Number of samples.
        limit: Bytes of arrays that the slot may hold; None is as many as there is memory for.
        stacked: Whether the batch is given out as one tree of stacked columns.
        ragged: Numbers of the columns whose shapes differed in the last batch.
        together: Keep the samples, and write them all when the batch is finished.
    """

    def __init__(
        self,
        slot: Slot,
        count: int,
        limit: int | None,
        stacked: bool,
        ragged: frozenset[int],
        together: bool = False,
    ):
        self.slot = slot
        self.count = count
        self._limit = limit
        self.stacked = stacked
        self._ragged = ragged
        self._together = together
        self.restart()

    def restart(self) -> Callable[[Any], object]:
        """Forget the written samples; return a function that takes samples one by one."""
        self.slot.used = HEADER
        self._overflow = 0
        self._tree: Tree | None = None
        self._columns: list[_Column] = []
        self._samples: list[Any] | None = None
        self._added = 0
        self._kept: list[Any] = []
        return self._kept.append if self._together else self.add

    def room(self, nbytes: int) -> int | None:
        """Return the offset of new room for arrays, or None where the limit forbids it."""
        if self._limit is not None and self.slot.used + nbytes > self._limit + 64 * 64:
            self._overflow += nbytes
            return None
        return self.slot.reserve(nbytes)

    def add(self, sample: Any) -> None:
        """Write the next sample."""
        leaves: list[Any] = []
        if self._samples is None:
            if self._tree is None:
                self._tree = describe(sample, leaves)
                self._columns = [
                    _Column(self, number in self._ragged) for number in range(len(leaves))
                ]
            elif not flatten(self._tree, sample, leaves):
                self._give_up()
        if self._samples is not None:
            self._samples.append(sample)
            return
        for column, leaf in zip(self._columns, leaves):  # noqa: B905
            column.add(self._added, leaf)
        self._added += 1

    def _give_up(self) -> None:
        """Samples that look different from each other go as they are, pickled."""
        columns = tuple(column.finish(False) for column in self._columns)
        layout = Layout(self._added, self._tree, columns, False)
        self._samples = list(assemble(layout, bytearray(self.slot.map(1)[: self.slot.used])))

    def finish(self) -> Layout:
        """Return the layout of the batch."""
        if self._kept:
            written = self._written_together(self._kept)
            if written is not None:
                return written
            for sample in self._kept:
                self.add(sample)
        if self._samples is not None or self._tree is None:
            columns: tuple[Column, ...] = (ObjectColumn(self._samples or []),)
            return Layout(self.count, None, columns, False, self._notice(columns))
        columns = tuple(column.finish(self.stacked) for column in self._columns)
        return Layout(self.count, self._tree, columns, self.stacked, self._notice(columns))

    def _written_together(self, samples: list[Any]) -> Layout | None:
        tree = describe(samples[0], [])
        leaves: list[list[Any]] = []
        if not transpose(tree, samples, leaves):
            return None
        columns: list[Column] = []
        for values in leaves:
            column = array_column(values, self)
            if column is None:
                one = _Column(self, True)
                for place, value in enumerate(values):
                    one.add(place, value)
                column = one.finish(self.stacked)
            columns.append(column)
        done = tuple(columns)
        return Layout(self.count, tree, done, self.stacked, self._notice(done))

    def whole(self, batch: Any) -> Layout:
        """Return the layout of a batch that was collated already."""
        if type(batch) is list and len(batch) > 1 and type(batch[0]) in (dict, tuple):
            # Samples again: columns take a few calls, pickled arrays a few each.
            self.count = len(batch)
            self.restart()
            layout = self._written_together(batch)
            if layout is not None:
                return layout._replace(notice="")
            self.restart()
        return Layout(self.count, None, (ObjectColumn(batch),), True)

    def _notice(self, columns: tuple[Column, ...]) -> str:
        """Say why samples cannot go through shared memory as arrays."""
        if self._overflow:
            wanted = -(-(self.slot.used + self._overflow) // max(1, self.count))
            return (
                f"samples are larger than shared_mem allows and travel pickled; "
                f"pass shared_mem={wanted} or more, or leave it at None"
            )
        for column in columns:
            if isinstance(column, ObjectColumn):
                for kind in set(map(type, column.values)):
                    if not _shareable(kind, column.values):
                        return (
                            f"samples hold values of type {kind.__module__}.{kind.__qualname__}, "
                            "which travel pickled; arrays, numbers and strings, in tuples, lists "
                            "and dicts, go faster"
                        )
        return ""

    def write_layout(self, layout: Layout) -> tuple[int, int, int]:
        """Write a layout behind its arrays; return its offset, length and number of buffers.

        Behind the pickle, at the next multiple of eight, stand offset and length of each buffer.
        """
        places: list[tuple[int, int]] = []

        def beside(buffer: pickle.PickleBuffer) -> bool:
            raw = buffer.raw()
            if raw.nbytes < _WORTH_A_PLACE:
                return True
            offset = self.room(raw.nbytes)
            if offset is None:
                return True
            self.slot.write(offset, raw)
            places.append((offset, raw.nbytes))
            return False

        try:
            data = dumps(layout, beside)
        except Exception as error:
            raise UnpicklableSample(_culprit(layout), error) from error
        padded = -(-len(data) // 8) * 8
        offset = self.slot.reserve(padded + 16 * len(places))
        self.slot.write(offset, data)
        if places:
            table = np.array(places, dtype=np.int64)
            self.slot.view(offset + padded, table.shape, table.dtype)[...] = table
        return offset, len(data), len(places)


def _culprit(layout: Layout) -> int:
    """Return the place of the first sample that cannot be pickled."""
    places = [0]
    for column in layout.columns:
        if isinstance(column, ObjectColumn):
            for place, value in enumerate(column.values):
                try:
                    pickle.dumps(value, protocol=5)
                except Exception:
                    places.append(place)
                    break
    return max(places)
