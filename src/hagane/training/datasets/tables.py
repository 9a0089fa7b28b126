"""Tables made of others: side by side, one after the other, or transformed."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hagane.training.datasets.tabular import Mode, TabularDataset
from hagane.training.errors import DatasetError


class _ByExamples(TabularDataset):
    """A table that is read by several columns at a time."""

    def get_column(self, key: str, rows: Sequence[int]) -> Any:
        return self.get_examples(rows, [self.keys.index(key)])[0]


class Joined(_ByExamples):
    """The columns of several tables of one length.

    Raises:
        DatasetError: The tables differ in length, or have a column of one name.
    """

    def __init__(self, *datasets: TabularDataset):
        lengths = [len(dataset) for dataset in datasets]
        if len(set(lengths)) != 1:
            raise DatasetError(f"join: expected tables of one length, got {lengths}")
        self._datasets = datasets
        self._keys = tuple(key for dataset in datasets for key in dataset.keys)
        twice = sorted({key for key in self._keys if self._keys.count(key) > 1})
        if twice:
            raise DatasetError(
                f"join: expected columns of different names, got more than one '{twice[0]}'; "
                "leave it out of one table by slice[:, names]"
            )
        modes = [dataset.mode for dataset in datasets if dataset.mode is not None]
        self.mode = modes[0] if modes else "tuple"

    def __len__(self) -> int:
        return len(self._datasets[0])

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self._keys

    def get_examples(
        self, rows: Sequence[int] | None, columns: Sequence[int] | None
    ) -> tuple[Any, ...]:
        """Return some columns, by number, at some rows; None is all of them."""
        wanted = range(len(self._keys)) if columns is None else columns
        found: dict[int, Any] = {}
        first = 0
        for dataset in self._datasets:
            last = first + len(dataset.keys)
            inside = sorted({number for number in wanted if first <= number < last})
            if inside:
                values = dataset.get_examples(rows, [number - first for number in inside])
                found.update(zip(inside, values, strict=True))
            first = last
        return tuple(found[number] for number in wanted)


class Concatenated(_ByExamples):
    """The rows of several tables with the same columns.

    Raises:
        DatasetError: The tables differ in their columns.
    """

    def __init__(self, *datasets: TabularDataset):
        for dataset in datasets:
            if dataset.keys != datasets[0].keys:
                raise DatasetError(
                    f"concat: expected tables of the columns {', '.join(datasets[0].keys)}, "
                    f"got {', '.join(dataset.keys)}"
                )
        self._datasets = datasets
        self._ends = list(itertools.accumulate(len(dataset) for dataset in datasets))
        self.mode = datasets[0].mode

    def __len__(self) -> int:
        return self._ends[-1]

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self._datasets[0].keys

    def get_examples(
        self, rows: Sequence[int] | None, columns: Sequence[int] | None
    ) -> tuple[Any, ...]:
        """Return some columns, by number, at some rows; None is all of them."""
        wanted = range(len(self)) if rows is None else rows
        places: dict[int, list[int]] = {}
        for place, row in enumerate(wanted):
            places.setdefault(bisect.bisect_right(self._ends, row), []).append(place)
        count = len(self.keys) if columns is None else len(columns)
        made: tuple[list[Any], ...] = tuple([None] * len(wanted) for _ in range(count))
        for number, here in places.items():
            begin = self._ends[number] - len(self._datasets[number])
            under = [wanted[place] - begin for place in here]
            for out, values in zip(
                made, self._datasets[number].get_examples(under, columns), strict=True
            ):
                for place, value in zip(here, values, strict=True):
                    out[place] = value
        return made


class Transformed(_ByExamples):
    """A table of the results of a function for samples, or for whole columns of them.

    ``mode`` follows from the result of the function: a tuple, a dict or a value alone.

    Args:
        dataset: The source; the function is called with its columns, by name if its
            mode is ``"dict"``.
        keys: Names of the columns of the result.
        function: Called with a sample or, if ``batch``, with columns.
        batch: Whether the function takes columns.
    """

    def __init__(
        self,
        dataset: TabularDataset,
        keys: str | tuple[str, ...],
        function: Callable[..., Any],
        batch: bool,
    ):
        self._dataset = dataset
        self._keys = (keys,) if isinstance(keys, str) else tuple(keys)
        self._function = function
        self._batch = batch
        self._name = "transform_batch" if batch else "transform"
        self._known: tuple[Mode] | None = None  # the mode, once there was a sample

    def __len__(self) -> int:
        return len(self._dataset)

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self._keys

    @property
    def mode(self) -> Mode:  # type: ignore[override]  # settled by the function, not by setting it
        """The form of a sample; asks for the first one if there was none yet."""
        if self._known is None and len(self):
            self.get_examples([0], [0])
        return "tuple" if self._known is None else self._known[0]

    def get_examples(
        self, rows: Sequence[int] | None, columns: Sequence[int] | None
    ) -> tuple[Any, ...]:
        """Return some columns, by number, at some rows; None is all of them."""
        wanted = range(len(self._keys)) if columns is None else columns
        under = self._dataset.get_examples(rows, None)
        if not self._batch:
            made = [self._call(values) for values in zip(*under, strict=True)]
            return tuple([values[number] for values in made] for number in wanted)
        count = len(self) if rows is None else len(rows)
        out = self._call(under)
        for key, column in zip(self._keys, out, strict=True):
            if len(column) != count:
                raise DatasetError(
                    f"transform_batch: expected {count} values of '{key}', as many as went in, "
                    f"got {len(column)}"
                )
        return tuple(out[number] for number in wanted)

    def _call(self, values: Iterable[Any]) -> tuple[Any, ...]:
        """Call the function; return its results in the order of the keys."""
        if self._dataset.mode == "dict":
            result = self._function(**dict(zip(self._dataset.keys, values, strict=True)))
        else:
            result = self._function(*values)
        mode: Mode = None
        if isinstance(result, tuple | dict):
            mode = "tuple" if isinstance(result, tuple) else "dict"
        if self._known not in (None, (mode,)):
            raise DatasetError(
                f"{self._name}: expected results of one kind, got {type(result).__name__} after "
                "another; always return a tuple, a dict or a value alone"
            )
        missing = isinstance(result, dict) and [key for key in self._keys if key not in result]
        given = len(result) if isinstance(result, tuple | dict) else 1
        if missing or given != len(self._keys):
            raise DatasetError(
                f"{self._name}: expected a result for each of {', '.join(self._keys)}, got "
                + (", ".join(map(str, result)) if isinstance(result, dict) else f"{given} of them")
            )
        self._known = (mode,)
        if isinstance(result, dict):
            return tuple(result[key] for key in self._keys)
        return result if isinstance(result, tuple) else (result,)
