"""Means, deviations and percentiles of variables over time, as pictures."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.errors import InvalidArgument
from hagane.machine.whole_files import written_whole
from hagane.nn.autograd.variable import Variable
from hagane.ops.definition import Array
from hagane.training.extension import Extension
from hagane.training.extensions.plot_report import PlotReport
from hagane.training.triggers import get_trigger

# Shares of a normal distribution below -3 to 3 standard deviations, with the extremes.
_SIGMAS = (0, 0.13, 2.28, 15.87, 50, 84.13, 97.72, 99.87, 100)


class Reservoir:
    """A sample of arrays, each of all that were added with the same probability.

    Args:
        size: The number of arrays that are kept.
        data_shape: Their shape.
        dtype: Their element type.

    Source: algorithm R of Vitter, "Random sampling with a reservoir" (1985).
    """

    def __init__(self, size: int, data_shape: tuple[int, ...], dtype: Any = "f"):
        self._data = np.zeros((size, *data_shape), dtype)
        self._ids = np.full(size, -1, np.int64)
        self._count = 0

    def add(self, x: Any, idx: int | None = None) -> None:
        """Add an array.

        Args:
            x: The array.
            idx: The time that it belongs to, by default the number of arrays before.
        """
        place, count = self._count, self._count
        if count >= len(self._data):
            # Not of NumPy's global generator, which training draws from.
            place = int(np.random.RandomState(count & 0xFFFFFFFF).randint(count + 1))
        if place < len(self._data):
            self._data[place] = x
            self._ids[place] = count if idx is None else idx
        self._count += 1

    def get_data(self) -> tuple[Array, Array]:
        """Return the times ``(count,)`` in order, and the arrays ``(count, …)`` of these."""
        count = min(self._count, len(self._data))
        order = np.argsort(self._ids[:count])
        return self._ids[:count][order], self._data[:count][order]

    def serialize(self, serializer: Any) -> None:
        """Read or write the sample."""
        self._data = np.asarray(serializer("data", self._data))
        self._ids = np.asarray(serializer("ids", self._ids))
        self._count = int(serializer("count", self._count))


class Statistician:
    """Statistics of arrays.

    Args:
        collect_mean: Whether the mean is one of them.
        collect_std: Whether the standard deviation is.
        percentile_sigmas: The percentiles, from 0 to 100.
    """

    def __init__(
        self, collect_mean: bool, collect_std: bool, percentile_sigmas: float | Sequence[float]
    ):
        self.collect_mean = collect_mean
        self.collect_std = collect_std
        self.percentile_sigmas = np.atleast_1d(np.asarray(percentile_sigmas, np.float64))

    def __call__(self, x: Any, axis: Any = 0, dtype: Any = None, xp: Any = None) -> dict[str, Any]:
        """Return ``mean``, ``std`` and ``percentile``, as far as they are asked for.

        Args:
            x: The array.
            axis: The axis to reduce; None for all.
            dtype: The element type of the results, by default that of the array.
            xp: NumPy, the only module of arrays.
        """
        dtype = x.dtype if dtype is None else dtype
        found: dict[str, Any] = {}
        if self.collect_mean:
            found["mean"] = np.mean(x, axis=axis).astype(dtype)
        if self.collect_std:
            found["std"] = np.std(x, axis=axis).astype(dtype)
        if self.percentile_sigmas.size:
            found["percentile"] = np.percentile(x, self.percentile_sigmas, axis=axis).astype(dtype)
        return found


class VariableStatisticsPlot(Extension):
    """Plots statistics of variables over iterations, with matplotlib.

    Data and gradients have a row each; mean with deviation, and percentiles, a panel each. All
    elements of the variables count together. Where there are more iterations than samples, those
    drawn are a random choice of all. Without matplotlib it does nothing but warn.

    Args:
        targets: A variable or several.
        max_sample_size: The most iterations whose statistics are kept.
        report_data: Whether arrays are plotted.
        report_grad: Whether gradients are.
        plot_mean: Whether means are.
        plot_std: Whether deviations are, as bars around the means.
        percentile_sigmas: The percentiles, from 0 to 100; none if empty.
        trigger: When the picture is drawn.
        filename: The picture in the trainer's folder, by default ``statistics.png``.
        figsize: Width and height, in inches.
        marker: Matplotlib's marker of points.
        grid: Whether a grid is drawn.
        file_name: Another name of ``filename``.

    Raises:
        InvalidArgument: There is nothing to plot, or no number of samples.
        TypeError: A target is no variable.
    """

    observes = True

    def __init__(
        self,
        targets: Any,
        max_sample_size: int = 1000,
        report_data: bool = True,
        report_grad: bool = True,
        plot_mean: bool = True,
        plot_std: bool = True,
        percentile_sigmas: float | Sequence[float] = _SIGMAS,
        trigger: Any = (1, "epoch"),
        filename: str | None = None,
        figsize: tuple[float, float] | None = None,
        marker: str | None = None,
        grid: bool = True,
        *,
        file_name: str = "statistics.png",
    ):
        self._targets = list(targets) if isinstance(targets, list | tuple) else [targets]
        for target in self._targets:
            if not isinstance(target, Variable):
                told = f"VariableStatisticsPlot: targets: expected variables, got {type(target)}"
                if hasattr(target, "params"):
                    told += "; of a link these are list(link.params())"
                raise TypeError(told)
        if max_sample_size < 1:
            raise InvalidArgument(
                "VariableStatisticsPlot: max_sample_size: expected a positive number, got "
                f"{max_sample_size!r}"
            )
        self._attributes = ["data"] * report_data + ["grad"] * report_grad
        self._statistician = Statistician(plot_mean, plot_std, percentile_sigmas)
        panels = plot_mean or plot_std, bool(self._statistician.percentile_sigmas.size)
        if not self._attributes or not any(panels):
            raise InvalidArgument(
                "VariableStatisticsPlot: nothing to plot: set report_data or report_grad, and "
                "plot_mean, plot_std or percentile_sigmas"
            )
        self._panels = [name for name, on in zip(("mean", "percentile"), panels, strict=True) if on]
        self._trigger: Any = get_trigger(trigger)
        self._filename = file_name if filename is None else filename
        self._figsize, self._marker, self._grid = figsize, marker, grid
        length = plot_mean + plot_std + self._statistician.percentile_sigmas.size
        self._samples = {name: Reservoir(max_sample_size, (length,)) for name in self._attributes}

    @staticmethod
    def available() -> bool:
        """Return whether matplotlib is installed."""
        return PlotReport.available()

    def initialize(self, trainer: Any) -> None:
        """Warn where matplotlib is not installed."""
        if not self.available():
            warnings.warn(
                "VariableStatisticsPlot draws nothing: matplotlib is not installed (pip install "
                "matplotlib)",
                stacklevel=2,
            )

    def __call__(self, trainer: Any) -> None:
        """Add the statistics of now, and draw at the end of an interval."""
        for name, sample in self._samples.items():
            arrays = [getattr(target, name) for target in self._targets]
            elements = [array.ravel() for array in arrays if array is not None]
            if elements:
                found = self._statistician(np.concatenate(elements), axis=None, dtype=np.float32)
                row = np.concatenate([np.atleast_1d(one) for one in found.values()])
                sample.add(row, trainer.updater.iteration)
        if self._trigger(trainer) and self.available():
            with written_whole(os.path.join(trainer.out, self._filename)) as path:
                self.save_plot_using_module(str(path))

    def save_plot_using_module(self, file_path: str, plt: Any = None) -> None:
        """Write the picture.

        Args:
            file_path: Its path.
            plt: Ignored: no window of a running program is touched.
        """
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=self._figsize)
        FigureCanvasAgg(figure)
        rows, columns = len(self._attributes), len(self._panels)
        panels = figure.subplots(rows, columns, sharex=True, squeeze=False)
        for name, row in zip(self._attributes, panels, strict=True):
            times, values = self._samples[name].get_data()
            for panel, axes in zip(self._panels, row, strict=True):
                axes.set_title(f"{name}: {panel}", fontsize="small")
                axes.grid(self._grid)
                self._draw(axes, panel, times, values)
        for axes in panels[-1]:
            axes.set_xlabel("iteration")
        figure.tight_layout()
        figure.savefig(file_path)

    def _draw(self, axes: Any, panel: str, times: Array, values: Array) -> None:
        moments = self._statistician.collect_mean + self._statistician.collect_std
        if panel == "percentile":
            for number, sigma in enumerate(self._statistician.percentile_sigmas):
                line = values[:, moments + number]
                axes.plot(times, line, marker=self._marker, linewidth=0.8, label=f"{sigma:g} %")
            axes.legend(fontsize="xx-small")
        elif moments == 2:
            axes.errorbar(times, values[:, 0], values[:, 1], marker=self._marker, elinewidth=0.5)
        else:
            axes.plot(times, values[:, 0], marker=self._marker)

    def serialize(self, serializer: Any) -> None:
        """Read or write the samples and the trigger."""
        for name, sample in self._samples.items():
            sample.serialize(serializer[f"_{name}"])
        if hasattr(self._trigger, "serialize"):
            self._trigger.serialize(serializer["_trigger"])


__all__ = ["Reservoir", "Statistician", "VariableStatisticsPlot"]
