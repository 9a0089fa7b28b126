"""Extensions that add observed values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from hagane.nn.reporter import DictSummary, report
from hagane.training.expected import fail, need, need_callable, need_text
from hagane.training.extension import (
    PRIORITY_EDITOR,
    PRIORITY_WRITER,
    Extension,
    make_extension,
)
from hagane.training.saved import number, serialize_interval
from hagane.training.triggers import get_trigger


def observe_value(observation_key: str, target_func: Callable[[Any], Any]) -> Any:
    """Return an extension that observes a value, by default once an epoch.

    Args:
        observation_key: The name of the value.
        target_func: Called with the trainer; returns the value.
    """
    need_text("observe_value: observation_key", observation_key)
    need_callable("observe_value: target_func", target_func)

    @make_extension(trigger=(1, "epoch"), priority=PRIORITY_WRITER)
    def _observe_value(trainer: Any) -> None:
        trainer.observation[observation_key] = target_func(trainer)

    return _observe_value


def observe_lr(optimizer_name: str = "main", observation_key: str = "lr") -> Any:
    """Return an extension that observes an optimizer's learning rate, by default once an epoch.

    Args:
        optimizer_name: The optimizer's name in the updater.
        observation_key: The name of the value.
    """
    return observe_value(
        observation_key, lambda trainer: trainer.updater.get_optimizer(optimizer_name).lr
    )


class MicroAverage(Extension):
    """Observes the sum of one value over the sum of another.

    Args:
        numerator_key: The name of the one.
        denominator_key: The name of the other.
        result_key: The name of the result.
        trigger: When the sums end.
    """

    observes = True
    priority = PRIORITY_EDITOR

    def __init__(
        self,
        numerator_key: str,
        denominator_key: str,
        result_key: str,
        trigger: Any = (1, "epoch"),
    ):
        self._keys = numerator_key, denominator_key
        self._result_key = result_key
        self._trigger: Any = get_trigger(trigger)
        self._numerator: Any = 0
        self._denominator: Any = 0

    def __call__(self, trainer: Any) -> None:
        """Add the values, and report the result at the end of an interval."""
        above, below = self._keys
        observation = trainer.observation
        if above not in observation or below not in observation:
            return
        self._numerator += observation[above]
        self._denominator += observation[below]
        if self._trigger(trainer):
            report({self._result_key: float(self._numerator) / self._denominator})
            self._numerator = self._denominator = 0

    def serialize(self, serializer: Any) -> None:
        """Read or write the sums."""
        self._numerator = number(serializer("_numerator", np.asarray(self._numerator)))
        self._denominator = number(serializer("_denominator", np.asarray(self._denominator)))
        serialize_interval(serializer, self._trigger)


def _zeros(x: Any) -> Any:
    return np.count_nonzero(x == 0)


def _percentiles(x: Any) -> Any:
    return np.percentile(x, (0.13, 2.28, 15.87, 50, 84.13, 97.72, 99.87))


class ParameterStatistics(Extension):
    """Observes statistics of parameters and their gradients, averaged over intervals.

    The names are ``{prefix}/{link}{path of parameter}/{data or grad}/{statistic}``, followed by an
    index where a statistic is several numbers.

    Args:
        links: A link or several.
        statistics: Functions of a flat array by name, or ``default``: mean, std, min, max, zeros
            and percentiles.
        report_params: Whether parameters are observed.
        report_grads: Whether gradients are.
        prefix: The beginning of names.
        trigger: When an interval ends.
        skip_nan_params: Report NaN for arrays that hold a NaN, without calling the functions.
    """

    observes = True
    default_name = "parameter_statistics"
    priority = PRIORITY_WRITER
    default_statistics: ClassVar[dict[str, Callable[[Any], Any]]] = {
        "mean": np.mean,
        "std": np.std,
        "min": np.min,
        "max": np.max,
        "zeros": _zeros,
        "percentile": _percentiles,
    }

    def __init__(
        self,
        links: Any,
        statistics: Mapping[str, Callable[[Any], Any]] | str | None = "default",
        report_params: bool = True,
        report_grads: bool = True,
        prefix: str | None = None,
        trigger: Any = (1, "epoch"),
        skip_nan_params: bool = False,
    ):
        self._links = list(links) if isinstance(links, list | tuple) else [links]
        for link in self._links:
            need("ParameterStatistics: links", link, "links", "namedparams")
        if not isinstance(statistics, Mapping | str | None):
            raise fail("ParameterStatistics: statistics", "functions by name", statistics)
        chosen = self.default_statistics if isinstance(statistics, str) else statistics
        self._statistics = dict(chosen or {})
        self._attributes = ["data"] * bool(report_params) + ["grad"] * bool(report_grads)
        self._prefix = f"{prefix}/" if prefix else ""
        self._trigger: Any = get_trigger(trigger)
        self._skip_nan = skip_nan_params
        self._summary = DictSummary()

    def __call__(self, trainer: Any) -> None:
        """Add the statistics of now, and report their means at the end of an interval."""
        for link in self._links:
            for path, parameter in link.namedparams():
                for attribute in self._attributes:
                    array = getattr(parameter, attribute)
                    if array is not None:
                        name = f"{self._prefix}{getattr(link, 'name', None)}{path}/{attribute}"
                        self._add(name, array.ravel())
        if self._trigger(trainer):
            report(self._summary.compute_mean())
            self._summary = DictSummary()

    def _add(self, name: str, array: Any) -> None:
        nan = self._skip_nan and bool(np.isnan(array).any())
        for statistic, function in self._statistics.items():
            value = np.nan if nan else function(array)
            key = f"{name}/{statistic}"
            if isinstance(value, np.ndarray) and value.size > 1:
                self._summary.add({f"{key}/{i}": one for i, one in enumerate(value)})
            else:
                self._summary.add({key: value})

    def serialize(self, serializer: Any) -> None:
        """Read or write the sums and the trigger of the interval."""
        serialize_interval(serializer, self._trigger, self._summary)

    def register_statistics(self, name: str, function: Callable[[Any], Any]) -> None:
        """Add a statistic: a function of a flat array to one number or several."""
        self._statistics[name] = function
