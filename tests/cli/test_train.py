"""``hagane train``: log, snapshots, plots, the page of curves, and going on."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hagane.cli import main
from hagane.training.extensions.curves_page import page_of

PROGRAM = """
import numpy as np
import hagane
import hagane.functions as F
import hagane.links as L
from hagane import training


class Net(hagane.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.hidden = L.Linear(4, 8)
            self.out = L.Linear(8, 2)

    def forward(self, x):
        return self.out(F.relu(self.hidden(x)))


def make():
    np.random.seed(0)
    x = np.random.randn(60, 4).astype("f")
    t = (x.sum(axis=1) > 0).astype("i")
    optimizer = hagane.optimizers.Adam(0.02).setup(L.Classifier(Net()))
    iterator = hagane.iterators.SerialIterator(hagane.datasets.TupleDataset(x, t), 20)
    updater = training.StandardUpdater(iterator, optimizer)
    return training.Trainer(updater, (50, "epoch"))


def number():
    return 3
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the path of a program, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    return "program.py"


def train(*words: str) -> None:
    """Run the command."""
    with pytest.raises(SystemExit) as ended:
        main(["train", *words])
    assert not ended.value.code


def log_of(folder: str) -> list[dict[str, Any]]:
    """Return the entries of a log."""
    found: list[dict[str, Any]] = json.loads(Path(folder, "log").read_text(encoding="utf-8"))
    return found


def last_snapshot(folder: str) -> dict[str, Any]:
    """Return the values of the newest snapshot."""
    names = sorted(Path(folder).glob("snapshot_iter_*"), key=lambda p: int(p.name.split("_")[-1]))
    with np.load(names[-1]) as file:
        return {name: file[name] for name in file.files if "elapsed" not in name}


def test_a_trainer_is_run_and_writes_log_snapshots_and_page(
    program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    train(f"{program}:make", "--epoch", "4", "--out", "seen")
    shown = capsys.readouterr()
    assert "12 iterations; curves: seen/index.html" in shown.out
    assert "waiting for data" in shown.err
    assert "epoch 4/4  iteration 12  100%" in shown.err.replace("\n", " ")
    log = log_of("seen")
    assert [entry["epoch"] for entry in log] == [1, 2, 3, 4]
    assert log[-1]["main/loss"] < log[0]["main/loss"]
    page = Path("seen/index.html").read_text(encoding="utf-8")
    assert "http-equiv" not in page  # training has ended: nothing to load again
    assert page.count("<polyline") == 2
    assert page.count("<circle") == 8
    assert len(list(Path("seen").glob("snapshot_iter_*"))) == 2


def test_a_run_goes_on_to_the_same_end(program: str) -> None:
    train(f"{program}:make", "--epoch", "4", "--out", "whole", "--quiet")
    train(f"{program}:make", "--epoch", "2", "--out", "parts", "--quiet")
    train(f"{program}:make", "--epoch", "4", "--out", "parts", "--quiet", "--resume")
    whole, parts = last_snapshot("whole"), last_snapshot("parts")
    assert whole.keys() == parts.keys()
    model = [name for name in whole if "model:main" in name or "optimizer" in name]
    assert len(model) > 8
    assert all(np.array_equal(whole[name], parts[name]) for name in model)
    assert [e["main/loss"] for e in log_of("whole")] == [e["main/loss"] for e in log_of("parts")]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["program.py"], "expected FILE.py:make, got 'program.py'"),
        (["program.txt:make"], "expected FILE.py:make"),
        (["absent.py:make"], "there is no file 'absent.py'"),
        (["program.py:build"], "has no function 'build'; it has: Net, make, number"),
        (["program.py:number"], "expected a hagane.training.Trainer from program.py:number, got"),
        (["program.py:make", "--epoch", "0"], "--epoch: expected 1 or more, got 0"),
        (["program.py:make", "--epoch", "1", "--iteration", "2"], "--epoch or --iteration, got"),
    ],
)
def test_mistakes_are_named(
    words: list[str], text: str, program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["train", *words])
    assert ended.value.code == 2
    assert text in capsys.readouterr().err


def test_a_page_shows_what_is_finite_and_escapes_names() -> None:
    log = [
        {"epoch": 1, "iteration": 5, "elapsed_time": 1.0, "<a>/loss": float("nan")},
        {"epoch": 2, "iteration": 10, "elapsed_time": 2.0, "<a>/loss": 0.5, "b/loss": 0.25},
    ]
    page = page_of(log, "a & b", running=True)
    assert 'http-equiv="refresh"' in page
    assert "a &amp; b: running" in page
    assert "&lt;a&gt;/loss" in page
    assert page.count("<polyline") == 2
    assert "nan" in page  # in the table
    assert "<p>running: epoch 0" in page_of([], "empty", running=True)
    log = [{"main/loss": 0.5, "W/percentile/0": 0.1, "iteration": 5}]
    page = page_of(log, "reported first", running=False)
    assert page.index("<figcaption>loss") < page.index("<figcaption>0 ")


def test_the_display_is_drawn_over_on_a_terminal(
    program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rich.console import Console

    from hagane.cli.train import load
    from hagane.training.extensions import LiveDisplay

    written = io.StringIO()
    trainer = load("program.py:make")()
    trainer.stop_trigger = lambda t: t.updater.iteration >= 9
    trainer.extend(LiveDisplay(Console(file=written, force_terminal=True, width=200)))
    trainer.run()
    text = written.getvalue()
    assert "iteration 9" in text
    assert "iterations/s" in text
    assert "main/loss" in text


BROKEN = """

def broken():
    trainer = make()

    def fail(trainer):
        if trainer.updater.iteration == 7:
            raise ValueError("no such thing")

    trainer.extend(fail, trigger=(1, "iteration"))
    return trainer


def interrupted():
    trainer = make()

    def stop(trainer):
        if trainer.updater.iteration == 7:
            raise KeyboardInterrupt

    trainer.extend(stop, trigger=(1, "iteration"))
    return trainer


def diverged():
    trainer = make()
    trainer.extend(training.extensions.FailOnNonNumber())

    def spoil(trainer):
        if trainer.updater.iteration == 7:
            trainer.updater.get_optimizer("main").target.predictor.out.W.array[:] = np.nan

    trainer.extend(spoil, trigger=(1, "iteration"), priority=300)
    return trainer


def full():
    trainer = make()

    def fail(trainer):
        if trainer.updater.iteration == 7:
            raise OSError(28, "No space left on device")

    trainer.extend(fail, trigger=(1, "iteration"))
    return trainer


def sized(count):
    return make()
"""


@pytest.mark.parametrize(
    ("name", "status", "told", "newest"),
    [
        ("broken", 1, "ValueError: no such thing\nin extension 'fail' at iteration 7\n", 7),
        ("interrupted", 130, "hagane train: interrupted after 7 iterations", 6),
        ("full", 2, "No space left on device in 'result'\nin extension 'fail' at iteration 7", 7),
        ("diverged", 2, "NaN or an infinity after iteration 7; a smaller", 6),
    ],
)
def test_a_run_that_ends_early_tells_how_it_goes_on(
    name: str, status: int, told: str, newest: int, program: str, capsys: Any
) -> None:
    Path(program).write_text(PROGRAM + BROKEN, encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main(["train", f"{program}:{name}", "--quiet", "--epoch", "4"])
    text = capsys.readouterr().err
    assert ended.value.code == status
    assert told in text
    assert f"; --resume goes on from result/snapshot_iter_{newest}" in text
    assert "site-packages" not in text
    train(f"{program}:make", "--quiet", "--epoch", "4", "--resume")
    assert "12 iterations" in capsys.readouterr().out


def test_a_run_that_is_longer_than_asked_for_ends_at_once(
    program: str, capsys: Any, caplog: pytest.LogCaptureFixture
) -> None:
    train(f"{program}:make", "--quiet", "--epoch", "4")
    train(f"{program}:make", "--quiet", "--epoch", "3", "--resume")
    assert capsys.readouterr().out.count("12 iterations") == 2
    assert "the snapshot is of iteration 12, and training ends after 3 epochs" in caplog.text


def test_a_function_with_arguments_is_refused(program: str, capsys: Any) -> None:
    Path(program).write_text(PROGRAM + BROKEN, encoding="utf-8")
    with pytest.raises(SystemExit):
        main(["train", f"{program}:sized"])
    assert "takes the argument 'count': expected a function" in capsys.readouterr().err


def test_what_a_function_raises_is_told_by_its_line(
    program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    own = "\ndef wrong():\n    training.extensions.VariableStatisticsPlot(Net())\n"
    own += '\n\ndef broken():\n    raise KeyError("rows")\n'
    Path(program).write_text(PROGRAM + own, encoding="utf-8")
    last = len((PROGRAM + own).splitlines())
    for words, told in (
        (("train", "program.py:wrong"), f"hagane train: program.py:{last - 4}: VariableStat"),
        (("inspect", "program.py:wrong", "--training"), "list(link.params())"),
        (("train", "program.py:broken"), f"program.py:{last}: nothing was made"),
    ):
        with pytest.raises(SystemExit):
            main(words)
        shown = capsys.readouterr().err
        assert told in " ".join(shown.split())
        assert "typer" not in shown
        assert ("KeyError: 'rows'" in shown) == (words[-1] == "program.py:broken")
