"""Statistics of variables over time: samples, numbers, pictures."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import hagane as chainer
from hagane.errors import InvalidArgument
from hagane.training import extensions
from hagane.training.extensions.variable_statistics import Reservoir, Statistician


def test_a_reservoir_keeps_arrays_with_their_times_early_and_late_ones() -> None:
    sample = Reservoir(10, (2,), "f")
    for time in range(40):
        sample.add([time, -time], time)
    times, values = sample.get_data()
    assert list(times) == sorted(set(times))
    assert len(times) == 10
    assert (times < 10).any()
    assert (times >= 20).any()
    np.testing.assert_array_equal(values, np.stack([times, -times], 1).astype("f"))


def test_a_sample_leaves_numpys_generator_alone() -> None:
    np.random.seed(3)
    wanted = np.random.rand()
    np.random.seed(3)
    sample = Reservoir(2, (1,))
    for value in range(9):
        sample.add([value])
    assert np.random.rand() == wanted


def test_statistics_are_those_of_numpy() -> None:
    x = np.random.RandomState(0).rand(3, 4, 5).astype("f")
    found = Statistician(True, True, (0, 50, 100))(x, axis=None)
    assert {one.dtype for one in found.values()} == {x.dtype}
    np.testing.assert_allclose(found["mean"], x.mean(), rtol=1e-6)
    np.testing.assert_allclose(found["std"], x.std(), rtol=1e-6)
    np.testing.assert_allclose(found["percentile"], [x.min(), np.median(x), x.max()], rtol=1e-6)
    assert list(Statistician(False, False, 10)(x)) == ["percentile"]


def at(iteration: int, out: Path) -> Any:
    return SimpleNamespace(updater=SimpleNamespace(iteration=iteration), out=str(out))


def test_a_plot_is_drawn_at_its_trigger_and_goes_on_after_a_restart(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    variable = chainer.Variable(np.arange(6, dtype="f"))
    options: dict[str, Any] = {
        "max_sample_size": 3,
        "trigger": lambda trainer: trainer.updater.iteration == 4,
    }
    plot = extensions.VariableStatisticsPlot([variable], **options)
    for iteration in (1, 2):
        plot(at(iteration, tmp_path))  # without a gradient yet
    assert not list(tmp_path.iterdir())
    file = io.BytesIO()
    chainer.serializers.save_npz(file, plot)
    file.seek(0)
    again = extensions.VariableStatisticsPlot([variable], **options)
    chainer.serializers.load_npz(file, again)
    variable.grad = np.ones(6, "f")
    for iteration in (3, 4):
        again(at(iteration, tmp_path))
    assert (tmp_path / "statistics.png").read_bytes()[1:4] == b"PNG"
    times, values = again._samples["data"].get_data()
    assert len(times) == 3
    np.testing.assert_allclose(values[:, 0], 2.5)
    assert list(again._samples["grad"].get_data()[0]) == [3, 4]


@pytest.mark.parametrize(
    "options",
    [
        {"plot_std": False},
        {"plot_mean": False},
        {"plot_mean": False, "plot_std": False},
        {"percentile_sigmas": ()},
    ],
)
def test_a_plot_shows_the_panels_that_are_asked_for(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    pytest.importorskip("matplotlib")
    plot = extensions.VariableStatisticsPlot(
        chainer.Variable(np.arange(3, dtype="f")), report_grad=False, filename="x.png",
        trigger=lambda trainer: True, **options,
    )  # fmt: skip
    plot(at(1, tmp_path))
    assert (tmp_path / "x.png").exists()


def test_wrong_arguments_of_a_plot_are_named() -> None:
    variable = chainer.Variable(np.zeros(2, "f"))
    with pytest.raises(TypeError, match=r"targets: expected variables, got <class 'int'>"):
        extensions.VariableStatisticsPlot([variable, 3])
    with pytest.raises(InvalidArgument, match="max_sample_size: expected a positive number, got 0"):
        extensions.VariableStatisticsPlot(variable, max_sample_size=0)
    with pytest.raises(InvalidArgument, match="nothing to plot"):
        extensions.VariableStatisticsPlot(variable, report_data=False, report_grad=False)
