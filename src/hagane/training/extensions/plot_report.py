"""Observed values as curves."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Callable, Iterable
from typing import Any

from hagane.errors import InvalidArgument
from hagane.machine.whole_files import written_whole
from hagane.nn.reporter import DictSummary
from hagane.nn.serializers.serializer import Serializer
from hagane.training.expected import need_callable, need_text, texts
from hagane.training.extension import Extension
from hagane.training.saved import serialize_interval
from hagane.training.triggers import get_trigger


class PlotReport(Extension):
    """Plots the means of observed values over intervals, with matplotlib.

    Without matplotlib it does nothing but warn.

    Args:
        y_keys: The name of the values, or several.
        x_key: ``iteration``, ``epoch`` or the name of a value.
        trigger: When an interval ends.
        postprocess: Called with figure, axes and summary before the picture is written.
        filename: The picture in the trainer's folder, by default ``plot.png``.
        marker: Matplotlib's marker of points.
        grid: Whether a grid is drawn.
        file_name: Another name of ``filename``.
    """

    observes = True

    def __init__(
        self,
        y_keys: str | Iterable[str],
        x_key: str = "iteration",
        trigger: Any = (1, "epoch"),
        postprocess: Callable[[Any, Any, Any], None] | None = None,
        filename: str | None = None,
        marker: str = "x",
        grid: bool = True,
        *,
        file_name: str = "plot.png",
    ):
        named = [y_keys] if isinstance(y_keys, str) else y_keys
        self._y_keys = texts("PlotReport: y_keys", named)
        need_text("PlotReport: x_key", x_key)
        need_callable("PlotReport: postprocess", postprocess, optional=True)
        self._x_key = x_key
        self._trigger: Any = get_trigger(trigger)
        self._postprocess = postprocess
        self._filename = file_name if filename is None else filename
        self._marker = marker
        self._grid = grid
        self._summary = DictSummary()
        self._data: dict[str, list[tuple[float, float]]] = {key: [] for key in self._y_keys}

    @staticmethod
    def available() -> bool:
        """Return whether matplotlib is installed."""
        return importlib.util.find_spec("matplotlib") is not None

    def initialize(self, trainer: Any) -> None:
        """Warn where matplotlib is not installed."""
        if not self.available():
            import warnings

            warnings.warn(
                "PlotReport draws nothing: matplotlib is not installed (pip install matplotlib)",
                stacklevel=2,
            )

    def __call__(self, trainer: Any) -> None:
        """Add the observed values, and draw at the end of an interval.

        Raises:
            InvalidArgument: The value of the other axis was not observed.
        """
        observation, updater = trainer.observation, trainer.updater
        wanted = {*self._y_keys, self._x_key} & set(observation)
        self._summary.add({key: observation[key] for key in wanted})
        if not (trainer.is_before_training or self._trigger(trainer)):
            return
        means = {key: float(mean) for key, mean in self._summary.compute_mean().items()}
        means |= {"epoch": updater.epoch, "iteration": updater.iteration}
        if self._x_key not in means:
            raise InvalidArgument(
                f"PlotReport: x_key: expected 'iteration', 'epoch' or an observed value, got "
                f"'{self._x_key}'"
            )
        for key in self._y_keys:
            if key in means:
                self._data[key].append((means[self._x_key], means[key]))
        if self.available() and any(self._data.values()):
            self._draw(os.path.join(trainer.out, self._filename))
        self._summary = DictSummary()

    def _draw(self, path: str) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure()
        FigureCanvasAgg(figure)
        axes = figure.add_subplot(111)
        axes.set_xlabel(self._x_key)
        axes.grid(self._grid)
        for key, points in self._data.items():
            if points:
                x, y = zip(*points, strict=True)
                axes.plot(x, y, marker=self._marker, label=key)
        if self._postprocess is not None:
            self._postprocess(figure, axes, self._summary)
        legend = axes.legend(bbox_to_anchor=(1.05, 1), loc=2, borderaxespad=0.0)
        with written_whole(path) as begun:
            figure.savefig(begun, bbox_extra_artists=(legend,), bbox_inches="tight")

    def serialize(self, serializer: Any) -> None:
        """Read or write the points, and the sums and the trigger of the interval."""
        key = f"_plot_{self._filename}"
        if isinstance(serializer, Serializer):
            serializer(key, json.dumps(self._data))
        else:
            self._data = json.loads(serializer(key, "") or json.dumps(self._data))
        serialize_interval(serializer, self._trigger, self._summary)
