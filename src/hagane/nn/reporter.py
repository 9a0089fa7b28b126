"""Values that models report, and their statistics."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from hagane.nn.autograd.configuration import config
from hagane.nn.autograd.variable import Variable
from hagane.nn.serializers.serializer import Deserializer

_LOCAL = threading.local()


def _active() -> list[Reporter]:
    try:
        return _LOCAL.reporters
    except AttributeError:
        _LOCAL.reporters = []
        return _LOCAL.reporters


class Reporter:
    """Where reported values go, under the names of their reporters.

    Attributes:
        observation: The values by name.
    """

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self.observation: dict[str, Any] = {}

    def __enter__(self) -> Reporter:
        _active().append(self)
        return self

    def __exit__(self, *details: Any) -> None:
        _active().pop()

    @contextmanager
    def scope(self, observation: dict[str, Any]) -> Iterator[None]:
        """Use this reporter in a ``with`` block, with another place for values."""
        with self:
            before, self.observation = self.observation, observation
            try:
                yield
            finally:
                self.observation = before

    def add_observer(self, name: str, observer: Any) -> None:
        """Name a reporting object."""
        self._names[id(observer)] = name

    def add_observers(self, prefix: str, observers: Any) -> None:
        """Name many: pairs of name and observer."""
        for name, observer in observers:
            self._names[id(observer)] = prefix + name

    def report(self, values: Mapping[str, Any], observer: Any = None) -> None:
        """Take values.

        Args:
            values: By name.
            observer: The reporter; its name is put before.

        Raises:
            KeyError: The observer has no name here.
        """
        if not config.keep_graph_on_report:
            values = {key: _without_graph(item) for key, item in values.items()}
        if observer is None:
            self.observation.update(values)
            return
        if id(observer) not in self._names:
            kind = type(observer).__name__
            raise KeyError(
                f"Given observer is not registered to the reporter: {kind}; "
                "is it part of the model that the updater or the evaluator was given?"
            )
        name = self._names[id(observer)]
        for key, item in values.items():
            self.observation[f"{name}/{key}"] = item


def _without_graph(item: Any) -> Any:
    if isinstance(item, Variable):
        item = copy.copy(item)
        item.unchain()
    return item


def get_current_reporter() -> Reporter:
    """Return the reporter of the innermost ``with`` block."""
    return _active()[-1]


def report(values: Mapping[str, Any], observer: Any = None) -> None:
    """Report values to the current reporter, if there is one."""
    if _active():
        _active()[-1].report(values, observer)


@contextmanager
def report_scope(observation: dict[str, Any]) -> Iterator[None]:
    """Let the current reporter use another place for values in a ``with`` block."""
    current = _active()[-1]
    before, current.observation = current.observation, observation
    try:
        yield
    finally:
        current.observation = before


def _array(value: Any) -> Any:
    return value.array if isinstance(value, Variable) else value


def _wide(value: Any) -> Any:
    # A sum of a float32 and a number of Python is a float32 from NumPy 2 on, in which the mean
    # over many batches would lose its digits.
    return np.float64(value) if getattr(getattr(value, "dtype", None), "kind", "") == "f" else value


class Summary:
    """Mean and deviation of numbers that come one by one, with weights."""

    def __init__(self) -> None:
        self._x: Any = 0.0
        self._x2: Any = 0.0
        self._n: Any = 0

    def add(self, value: Any, weight: Any = 1) -> None:
        """Add a number."""
        value = _wide(_array(value))
        self._x += weight * value
        self._x2 += weight * value * value
        self._n += weight

    def compute_mean(self) -> Any:
        """Return the mean."""
        return self._x / self._n

    def make_statistics(self) -> tuple[Any, Any]:
        """Return mean and standard deviation."""
        mean = self._x / self._n
        return mean, np.sqrt(self._x2 / self._n - mean * mean)

    def serialize(self, serializer: Any) -> None:
        """Read or write the sums."""
        try:
            self._x = serializer("_x", self._x)
            self._x2 = serializer("_x2", self._x2)
            self._n = serializer("_n", self._n)
        except KeyError:
            import warnings

            warnings.warn("The previous statistics are not saved.", stacklevel=2)


class DictSummary:
    """Mean and deviation of numbers by name."""

    def __init__(self) -> None:
        self._summaries: dict[str, Summary] = {}

    def add(self, d: Mapping[str, Any]) -> None:
        """Add numbers, or pairs of number and weight, by name; other values are left out."""
        for key, item in d.items():
            weight: Any = 1
            if isinstance(item, tuple):
                item, weight = item
                weight = _array(weight)
                if np.ndim(weight) != 0:
                    raise ValueError(f"Given weight to {key} was not scalar.")
            item = _array(item)
            number = np.isscalar(item) or getattr(item, "ndim", -1) == 0
            if number and not isinstance(item, str):
                self._summaries.setdefault(key, Summary()).add(item, weight=weight)

    def compute_mean(self) -> dict[str, Any]:
        """Return the means by name."""
        return {key: one.compute_mean() for key, one in self._summaries.items()}

    def make_statistics(self) -> dict[str, Any]:
        """Return means, and deviations under the name followed by ``.std``."""
        found: dict[str, Any] = {}
        for key, one in self._summaries.items():
            found[key], found[f"{key}.std"] = one.make_statistics()
        return found

    def serialize(self, serializer: Any) -> None:
        """Read or write the sums, and their names."""
        import json
        import warnings

        names = list(self._summaries)
        if isinstance(serializer, Deserializer):  # read values replace present ones
            self._summaries.clear()
        try:
            written = serializer("_names", json.dumps(names))
        except KeyError:
            warnings.warn("The names of statistics are not saved.", stacklevel=2)
            return
        for index, name in enumerate(json.loads(str(written))):
            self._summaries.setdefault(name, Summary()).serialize(
                serializer["_summaries"][str(index)]
            )
