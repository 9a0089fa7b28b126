"""Chainer's tables made of others: side by side, one after the other, or transformed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from hagane.training.datasets.examples import Columns, Rows, TabularDataset, as_slice


class Joined(TabularDataset):
    """The columns of several tables of one length.

    Raises:
        ValueError: The tables differ in length, or have a column of one name.
    """

    def __init__(self, *datasets: TabularDataset):
        lengths = [len(dataset) for dataset in datasets]
        if len(set(lengths)) > 1:
            raise ValueError(f"All datasets must have the same length, got {lengths}")
        self._datasets = datasets
        self._keys = tuple(key for dataset in datasets for key in dataset.keys)
        if len(set(self._keys)) < len(self._keys):
            raise ValueError(f"All keys must be unique among all datasets, got {self._keys}")

    def __len__(self) -> int:
        return len(self._datasets[0])

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self._keys

    @property
    def mode(self) -> type | None:
        """The form of the first table whose samples are no values alone."""
        return next((one.mode for one in self._datasets if one.mode is not None), tuple)

    def get_examples(self, indices: Rows, key_indices: Columns) -> tuple[Any, ...]:
        """Return columns; tables of which none is wanted are not read."""
        if key_indices is None:
            parts = [dataset.get_examples(indices, None) for dataset in self._datasets]
            return tuple(column for part in parts for column in part)
        found: dict[int, Any] = {}
        first = 0
        for dataset in self._datasets:
            last = first + len(dataset.keys)
            inside = tuple(dict.fromkeys(k - first for k in key_indices if first <= k < last))
            if inside:
                columns = dataset.get_examples(indices, inside)
                found.update(zip([first + k for k in inside], columns, strict=True))
            first = last
        return tuple(found[number] for number in key_indices)

    def convert(self, data: Any) -> Any:
        """Return columns as the first table converts them."""
        return self._datasets[0].convert(data)


class Concatenated(TabularDataset):
    """The rows of several tables with the same columns.

    Raises:
        ValueError: The tables differ in their columns.
    """

    def __init__(self, *datasets: TabularDataset):
        for dataset in datasets:
            if dataset.keys != datasets[0].keys:
                raise ValueError(
                    f"All datasets must have the same keys, got {datasets[0].keys} and "
                    f"{dataset.keys}"
                )
        self._datasets = datasets

    def __len__(self) -> int:
        return sum(map(len, self._datasets))

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self._datasets[0].keys

    @property
    def mode(self) -> type | None:
        """The form of a sample."""
        return self._datasets[0].mode

    def get_examples(self, indices: Rows, key_indices: Columns) -> tuple[Any, ...]:
        """Return columns; tables of which no row is wanted are not read."""
        count = len(self.keys if key_indices is None else key_indices)
        if indices is None:
            parts = [dataset.get_examples(None, key_indices) for dataset in self._datasets]
        elif isinstance(indices, slice):
            rows = range(*indices.indices(len(self)))
            parts = [
                dataset.get_examples(as_slice(inside), key_indices)
                for dataset, inside in self._inside(rows)
            ]
        else:
            return self._by_numbers(indices, key_indices, count)
        if len(parts) == 1:
            return parts[0]
        return tuple([value for part in parts for value in part[i]] for i in range(count))

    def _inside(self, rows: range) -> Iterator[tuple[TabularDataset, range]]:
        """Return the tables that have some of the rows, in the rows' order, and their rows."""
        found = []
        first = 0
        for dataset in self._datasets:
            last = first + len(dataset)
            # Places of the rows, counted in steps from the first one.
            step, start = rows.step, rows.start
            bounds = (
                (first - start, last - start) if step > 0 else (start - last + 1, start - first + 1)
            )
            begin, end = (max(0, -(-bound // abs(step))) for bound in bounds)
            inside = rows[begin:end]
            if inside:
                stop = min(rows.stop, last) - first if step > 0 else max(rows.stop - first, -1)
                found.append((dataset, range(inside.start - first, stop, step)))
            first = last
        return iter(found if rows.step > 0 else found[::-1])

    def _by_numbers(
        self, indices: Sequence[int], key_indices: Columns, count: int
    ) -> tuple[Any, ...]:
        parts: list[tuple[Any, ...]] = []
        places: dict[int, tuple[int, int]] = {}
        first = 0
        for dataset in self._datasets:
            last = first + len(dataset)
            inside = [place for place, row in enumerate(indices) if first <= row < last]
            if inside:
                places.update((place, (len(parts), i)) for i, place in enumerate(inside))
                rows = [indices[place] - first for place in inside]
                parts.append(dataset.get_examples(rows, key_indices))
            first = last
        if len(parts) == 1:
            return parts[0]
        order = [places[place] for place in range(len(indices))]
        return tuple([parts[part][column][i] for part, i in order] for column in range(count))

    def convert(self, data: Any) -> Any:
        """Return columns as the first table converts them."""
        return self._datasets[0].convert(data)


class Transformed(TabularDataset):
    """The results of a function for each sample of a table.

    Args:
        dataset: The table.
        keys: Names of the columns of the result.
        transform: Called with a sample, by name if the table's mode is ``dict``.
    """

    name = "transform"

    def __init__(
        self,
        dataset: TabularDataset,
        keys: str | tuple[str, ...],
        transform: Callable[..., Any],
    ):
        self._dataset = dataset
        self._keys = keys if isinstance(keys, tuple) else (keys,)
        self._transform = transform
        self._known: list[type | None] = []  # the mode, once there was a result

    def __len__(self) -> int:
        return len(self._dataset)

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self._keys

    @property
    def mode(self) -> type | None:
        """The form of the function's results; asks for the first one if there was none yet."""
        if not self._known:
            self.get_examples([0], None)
        return self._known[0]

    def get_examples(self, indices: Rows, key_indices: Columns) -> tuple[Any, ...]:
        """Return columns."""
        wanted = range(len(self._keys)) if key_indices is None else key_indices
        under = self._dataset.get_examples(indices, None)
        made = [self._called(values) for values in zip(*under, strict=True)]
        return tuple([values[number] for values in made] for number in wanted)

    def _called(self, values: Sequence[Any]) -> Sequence[Any]:
        """Call the function; return its results in the order of the keys."""
        if self._dataset.mode is dict:
            result = self._transform(**dict(zip(self._dataset.keys, values, strict=True)))
        else:
            result = self._transform(*values)
        mode = next((kind for kind in (tuple, dict) if isinstance(result, kind)), None)
        if self._known and self._known[0] is not mode:
            raise ValueError(f"{self.name} must not change its return type")
        self._known = [mode]
        if mode is dict:
            return [result[key] for key in self._keys if key in result]
        return result if mode is tuple else (result,)

    def convert(self, data: Any) -> Any:
        """Return columns as the table converts them."""
        return self._dataset.convert(data)


class TransformedBatch(Transformed):
    """The results of a function for columns of a table."""

    name = "transform_batch"

    def get_examples(self, indices: Rows, key_indices: Columns) -> tuple[Any, ...]:
        """Return columns."""
        if isinstance(indices, slice):
            length = len(range(*indices.indices(len(self))))
        else:
            length = len(self) if indices is None else len(indices)
        wanted = range(len(self._keys)) if key_indices is None else key_indices
        made = self._called(self._dataset.get_examples(indices, None))
        for key, column in zip(self._keys, made, strict=False):
            if len(column) != length:
                raise ValueError(
                    "transform_batch must not change the length of data: expected "
                    f"{length} values of '{key}', got {len(column)}"
                )
        return tuple(made[number] for number in wanted)
