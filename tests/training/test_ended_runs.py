"""Runs that end early or go wrong: what is told, what is saved, what a resumed run goes on from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hagane as chainer
import hagane.links as L  # noqa: N812
from hagane import training
from hagane.errors import InvalidArgument
from hagane.training import extensions, triggers
from hagane.training.alone import alone


def made(folder: Path, length: Any = (9, "iteration"), optimizer: Any = None) -> Any:
    """Return a trainer of nine samples in batches of three."""
    np.random.seed(0)
    x = np.random.randn(9, 4).astype("f")
    data = chainer.datasets.TupleDataset(x, (x.sum(axis=1) > 0).astype("i"))
    optimizer = chainer.optimizers.Adam() if optimizer is None else optimizer
    optimizer.setup(L.Classifier(L.Linear(4, 2)))
    iterator = chainer.iterators.SerialIterator(data, 3)
    updater = training.StandardUpdater(iterator, optimizer)
    return training.Trainer(updater, length, out=str(folder))


class Watch(training.Extension):
    """Raises where it is told to, and notes that it was finalized."""

    def __init__(self, where: str = ""):
        self.where, self.ended = where, False

    def _come(self, where: str) -> None:
        if where == self.where:
            raise ValueError("no server")

    def initialize(self, trainer: Any) -> None:
        self._come("initialize")

    def __call__(self, trainer: Any) -> None:
        self._come(f"call {trainer.updater.iteration}")

    def finalize(self) -> None:
        self.ended = True
        self._come("finalize")


@pytest.mark.parametrize("cause", ["extension", "trigger"])
def test_the_state_is_saved_when_an_extension_or_its_trigger_raises(
    cause: str, tmp_path: Path
) -> None:
    trainer = made(tmp_path)
    trainer.extend(extensions.snapshot(), trigger=(2, "iteration"))
    if cause == "extension":
        trainer.extend(Watch("call 5"), name="watch", trigger=(1, "iteration"))
        note = "in extension 'watch' at iteration 5"
    else:
        best = triggers.MaxValueTrigger("validation/main/accuracy", (5, "iteration"))
        trainer.extend(Watch(), name="watch", trigger=best)
        note = "in extension 'watch', its trigger, at iteration 5"
    with pytest.raises((ValueError, KeyError)) as raised:
        trainer.run(show_loop_exception_msg=False)
    assert note in raised.value.__notes__
    assert sorted(path.name for path in tmp_path.iterdir())[-1] == "snapshot_iter_5"


def test_errors_before_and_after_training_name_the_extension(tmp_path: Path) -> None:
    trainer = made(tmp_path)
    trainer.extend(Watch("initialize"), name="watch")
    with pytest.raises(ValueError, match="no server") as raised:
        trainer.run()
    assert raised.value.__notes__ == ["in initialize of extension 'watch'"]
    trainer = made(tmp_path)
    trainer.extend(Watch("finalize"), name="first")
    trainer.extend(Watch(), name="second")
    with pytest.raises(ValueError, match="no server") as raised:
        trainer.run()
    assert raised.value.__notes__ == ["in finalize of extension 'first'"]
    assert trainer.get_extension("second").ended


def test_a_state_that_cannot_be_saved_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def full(path: str, values: Any) -> None:
        raise OSError(28, "No space left on device")

    trainer = made(tmp_path)
    trainer.extend(extensions.snapshot(full), trigger=(100, "iteration"))
    trainer.extend(Watch("call 2"), name="watch", trigger=(1, "iteration"))
    with pytest.raises(ValueError, match="no server"):
        trainer.run(show_loop_exception_msg=False)
    assert "the state at the error was not saved: [Errno 28] No space left" in caplog.text


def test_a_pair_that_stops_training_becomes_a_trigger(tmp_path: Path) -> None:
    trainer = made(tmp_path)
    trainer.stop_trigger = (2, "iteration")
    trainer.run()
    assert trainer.updater.iteration == 2
    with pytest.raises(InvalidArgument, match="IntervalTrigger: period: expected a positive"):
        trainer.stop_trigger = (0, "epoch")
    (tmp_path / "file").touch()
    with pytest.raises(InvalidArgument, match="out: expected the path of a folder, got '.*file'"):
        made(tmp_path / "file").run()


def test_plots_and_means_of_intervals_go_on_where_a_run_was_resumed(tmp_path: Path) -> None:
    def run(folder: Path, length: int) -> Any:
        trainer = made(folder, (length, "iteration"))
        trainer.extend(extensions.snapshot(), trigger=(1, "iteration"))
        plot = extensions.PlotReport(["main/loss"], trigger=(4, "iteration"), filename="p.png")
        plot._draw = lambda path: None
        link = trainer.updater.get_optimizer("main").target.predictor
        trainer.extend(extensions.ParameterStatistics(link, trigger=(4, "iteration")))
        trainer.extend(extensions.LogReport(trigger=(4, "iteration")))
        trainer.extend(plot)
        trainer.run(resume="auto")
        log = trainer.get_extension("LogReport").log
        return plot._data, [{k: v for k, v in e.items() if k != "elapsed_time"} for e in log]

    whole = run(tmp_path / "whole", 8)
    run(tmp_path / "parts", 6)
    assert [x for x, _ in whole[0]["main/loss"]] == [4, 8]
    points, log = run(tmp_path / "parts", 8)
    assert {k: [tuple(p) for p in v] for k, v in points.items()} == whole[0]
    assert log == whole[1]


def test_losses_that_are_no_numbers_are_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trainer = made(tmp_path)
    trainer.updater.get_optimizer("main").target.predictor.W.array[:] = np.nan
    trainer.extend(extensions.LogReport(trigger=(1, "iteration")))
    trainer.run()
    told = [record.message for record in caplog.records if "FailOnNonNumber" in record.message]
    assert len(told) == 1
    assert told[0].startswith("main/loss is nan up to iteration 1: hagane.config.debug = True")


def test_a_snapshot_of_another_optimizer_is_told(tmp_path: Path) -> None:
    trainer = made(tmp_path)
    trainer.extend(extensions.snapshot(), trigger=(3, "iteration"))
    trainer.run()
    other = made(tmp_path, (12, "iteration"), chainer.optimizers.SGD())
    other.extend(extensions.snapshot(), trigger=(3, "iteration"))
    with pytest.warns(UserWarning, match="snapshot_iter_9 is of another model or opt") as told:
        other.run(resume="auto")
    text = str(told[0].message)
    assert "\n  not in the object: updater/optimizer:main/predictor/W/m\n" in text
    assert text.endswith("the rest of it was loaded")
    assert other.updater.iteration == 12
    more = made(tmp_path, (15, "iteration"), chainer.optimizers.SGD())
    more.extend(extensions.snapshot(), trigger=(3, "iteration"))
    more.extend(extensions.InverseShift("lr", 0.1, 1))
    with pytest.raises(KeyError, match="extensions/InverseShift/_t") as missed:
        more.run(resume="auto")
    (note,) = missed.value.__notes__
    assert "snapshot_iter_12 was to be gone on from: take out of the program what it l" in note


def test_extensions_that_only_observe_may_come_between_two_runs(tmp_path: Path) -> None:
    first = made(tmp_path)
    first.extend(extensions.snapshot(), trigger=(3, "iteration"))
    first.run()
    other = made(tmp_path, (12, "iteration"))
    other.extend(extensions.snapshot(), trigger=(3, "iteration"))
    other.extend(extensions.LogReport(trigger=(1, "iteration")))
    other.extend(extensions.MicroAverage("main/a", "main/b", "main/c"), trigger=(2, "iteration"))
    other.extend(lambda trainer: None, "nothing", trigger=(1, "epoch"))
    other.run(resume="auto")
    assert [entry["iteration"] for entry in other.get_extension("LogReport").log] == [10, 11, 12]


def test_parameters_that_the_first_loss_does_not_reach_are_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    link = chainer.Chain(used=L.Linear(2, 2), spare=L.Linear(2, 2))
    optimizer = chainer.optimizers.SGD().setup(link)
    for _ in range(2):
        optimizer.update(lambda x: chainer.functions.sum(link.used(x)), np.ones((3, 2), "f"))
    assert [record.message for record in caplog.records] == [
        "SGD.update: the loss does not depend on /spare/W, /spare/b: their gradients are zeros"
    ]


def test_a_run_draws_its_graph_and_forgets_computations(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trainer = made(tmp_path, (2, "iteration"))
    trainer.extend(extensions.dump_graph("main/loss", filename="graph.dot"))
    trainer.extend(extensions.unchain_variables())
    chainer.print_runtime_info()
    with chainer.using_config("keep_graph_on_report", True):
        trainer.run()
    assert "LinearFunction" in (tmp_path / "graph.dot").read_text()
    assert trainer.observation["main/loss"].creator is None
    assert "NumPy" in capsys.readouterr().out


def test_a_run_is_saved_when_the_triggers_of_other_snapshots_have_decided(tmp_path: Path) -> None:
    def run(length: int) -> set[str]:
        trainer = made(tmp_path, (length, "iteration"))
        trainer.extend(extensions.snapshot(filename="run_{.updater.iteration}", autoload=True))
        link = trainer.updater.get_optimizer("main").target
        best = triggers.MinValueTrigger("validation/main/loss")
        trainer.extend(extensions.snapshot_object(link, "best_{.updater.iteration}"), trigger=best)
        iterator = trainer.updater.get_iterator("main")
        data = chainer.iterators.SerialIterator(iterator.dataset, 3, repeat=False, shuffle=False)
        trainer.extend(extensions.Evaluator(data, link))
        trainer.run()
        return {path.name for path in tmp_path.iterdir()}

    assert run(3) == {"run_3", "best_3"}
    # The value of iteration 3 has been counted, so that none is asked for at iteration 4.
    assert run(4) == {"run_3", "best_3"}
    assert run(6) == {"run_3", "best_3", "run_6", "best_6"}


def test_points_of_a_schedule_behind_the_end_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trainer = made(tmp_path, (2, "epoch"))
    late, early = (triggers.ManualScheduleTrigger(points, "epoch") for points in ([5, 9], [1, 9]))
    trainer.extend(lambda trainer: None, name="late", trigger=late)
    trainer.extend(lambda trainer: None, name="early", trigger=early)
    trainer.run()
    assert [record.message for record in caplog.records] == [
        "extension 'late' was not called: the run ended after 6 iterations, before its trigger of "
        "the points [5, 9] in epochs fired; give extend earlier points"
    ]


def test_a_second_run_in_one_folder_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made(tmp_path).run()
    made(tmp_path).run()  # one after the other
    assert not caplog.text
    with alone(tmp_path) as first:
        assert first
        made(tmp_path).run()
    assert f"another run writes into '{tmp_path}' now: its log and snapshots and" in caplog.text


def test_a_clock_that_is_set_while_a_run_goes_on_changes_no_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = made(tmp_path, (3, "iteration"))
    monkeypatch.setattr("time.time", iter(range(0, 10**9, 3600)).__next__)
    trainer.run()
    assert 0 < trainer.elapsed_time < 600


FILES = {
    "log": lambda: extensions.LogReport(trigger=(1, "iteration")),
    "graph.dot": lambda: extensions.dump_graph("main/loss", filename="graph.dot"),
    "loss.png": lambda: extensions.PlotReport(
        ["main/loss"], trigger=(1, "iteration"), filename="loss.png"
    ),
    "last": lambda: extensions.snapshot(filename="last"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_folder_in_the_place_of_a_file_is_told(name: str, tmp_path: Path) -> None:
    if name.endswith("png"):
        pytest.importorskip("matplotlib")
    (tmp_path / name).mkdir()
    trainer = made(tmp_path)
    trainer.extend(FILES[name](), trigger=(1, "iteration"))
    with pytest.raises(InvalidArgument, match=rf"{name}' is a folder, and a file is to have that"):
        trainer.run(show_loop_exception_msg=False)


def test_files_lie_in_folders_of_the_output_too(tmp_path: Path) -> None:
    (tmp_path / "some").mkdir()
    trainer = made(tmp_path)
    trainer.extend(extensions.LogReport(trigger=(3, "iteration"), filename="some/log"))
    trainer.run()
    assert [path.name for path in (tmp_path / "some").iterdir()] == ["log"]
