"""The trainer: programs of Chainer's, snapshots, resumed runs, triggers, extensions, errors."""

from __future__ import annotations

import io
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hagane as chainer
import hagane.functions as F  # noqa: N812
import hagane.links as L  # noqa: N812
from hagane import training
from hagane.errors import InvalidArgument
from hagane.nn.serializers.archive import SnapshotError
from hagane.training import extensions, triggers
from hagane.training.errors import Diverged, NotProvided

PROGRAM = """
import argparse
import numpy as np
import chainer
import chainer.functions as F
import chainer.links as L
from chainer import training
from chainer.training import extensions
import chainer.training.extensions.snapshot_writers
from chainer.training import trigger, util


class MLP(chainer.Chain):
    def __init__(self, n_units, n_out):
        super(MLP, self).__init__()
        with self.init_scope():
            self.l1 = L.Linear(None, n_units)
            self.l2 = L.Linear(None, n_out)

    def forward(self, x):
        return self.l2(F.relu(self.l1(x)))


parser = argparse.ArgumentParser()
parser.add_argument('--epoch', type=int)
parser.add_argument('--resume', default='')
args = parser.parse_args()
np.random.seed(0)
x = np.random.RandomState(0).randn(200, 4).astype('f')
t = (x.sum(axis=1) > 0).astype('i')
train = chainer.datasets.TupleDataset(x, t)
model = L.Classifier(MLP(16, 2))
optimizer = chainer.optimizers.Adam(alpha=0.01)
optimizer.setup(model)
train_iter = chainer.iterators.SerialIterator(train, 20)
test_iter = chainer.iterators.SerialIterator(train, 20, repeat=False, shuffle=False)
updater = training.updaters.StandardUpdater(train_iter, optimizer, device=-1)
trainer = training.Trainer(updater, (args.epoch, 'epoch'), out='result')
trainer.extend(extensions.Evaluator(test_iter, model, device=-1))
trainer.extend(extensions.DumpGraph('main/loss'))
trainer.extend(extensions.snapshot(), trigger=(args.epoch, 'epoch'))
trainer.extend(extensions.LogReport())
trainer.extend(extensions.PlotReport(['main/loss', 'validation/main/loss'], 'epoch'))
trainer.extend(extensions.PrintReport(['epoch', 'main/loss', 'validation/main/accuracy']))
trainer.extend(extensions.ProgressBar(update_interval=10))
if args.resume:
    chainer.serializers.load_npz(args.resume, trainer)
trainer.run()
"""


def test_a_program_of_chainers_trains_and_resumes_under_the_command(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)

    def run(*arguments: str) -> str:
        command = [sys.executable, "-m", "hagane", "chainer", "train.py", *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    out = run("--epoch", "3")
    assert out.splitlines()[0].split() == ["epoch", "main/loss", "validation/main/accuracy"]
    run("--epoch", "10", "--resume", "result/snapshot_iter_30")
    log = json.loads((tmp_path / "result" / "log").read_text())
    assert [entry["epoch"] for entry in log] == list(range(1, 11))
    assert [entry["iteration"] for entry in log] == list(range(10, 101, 10))
    assert log[-1]["validation/main/accuracy"] > 0.9 > log[0]["main/accuracy"]
    assert (tmp_path / "result" / "cg.dot").read_text().startswith("digraph")
    assert (tmp_path / "result" / "plot.png").read_bytes()[1:4] == b"PNG"


class Net(chainer.Chain):
    def __init__(self) -> None:
        super().__init__()
        with self.init_scope():
            self.l1 = L.Linear(None, 8)
            self.l2 = L.Linear(None, 2)

    def forward(self, x: Any) -> Any:
        return self.l2(F.dropout(F.relu(self.l1(x)), 0.3))


def updater(**options: Any) -> training.StandardUpdater:
    np.random.seed(0)
    x = np.random.randn(53, 4).astype("f")
    data = chainer.datasets.TupleDataset(x, (x.sum(axis=1) > 0).astype("i"))
    model = L.Classifier(Net())
    optimizer = chainer.optimizers.MomentumSGD(lr=0.1).setup(model)
    return training.StandardUpdater(chainer.iterators.SerialIterator(data, 8), optimizer, **options)


def trainer(out: Path, length: Any, **options: Any) -> training.Trainer:
    made = training.Trainer(updater(), length, out=str(out))
    made.extend(extensions.snapshot(**options), trigger=(4, "iteration"))
    made.extend(extensions.ExponentialShift("lr", 0.5), trigger=(1, "epoch"))
    made.extend(extensions.LogReport(trigger=(3, "iteration")))
    return made


def parameters(made: training.Trainer) -> dict[str, np.ndarray]:
    model = made.updater.get_optimizer("main").target
    return {name: parameter.array for name, parameter in model.namedparams()}


def log(made: training.Trainer) -> list[dict[str, Any]]:
    entries = made.get_extension("LogReport").log
    return [{k: v for k, v in entry.items() if k != "elapsed_time"} for entry in entries]


@pytest.mark.parametrize("how", ["run", "autoload"])
def test_a_resumed_run_equals_one_without_a_break(tmp_path: Path, how: str) -> None:
    whole = trainer(tmp_path / "whole", (30, "iteration"))
    whole.run()
    trainer(tmp_path / "parts", (18, "iteration"), n_retains=2).run()
    kept = sorted(name for name in os.listdir(tmp_path / "parts") if "snapshot" in name)
    assert kept == ["snapshot_iter_12", "snapshot_iter_16"]
    again = trainer(tmp_path / "parts", (30, "iteration"), autoload=how == "autoload")
    starts: list[int] = []
    update = again.updater.update
    again.updater.update = lambda: (starts.append(again.updater.iteration), update())
    if how == "autoload":
        again.run()
    else:
        again.run(resume="auto")
    assert starts[0] == 16
    for name, wanted in parameters(whole).items():
        np.testing.assert_array_equal(parameters(again)[name], wanted, err_msg=name)
    assert log(again) == log(whole)
    assert again.updater.get_optimizer("main").lr == whole.updater.get_optimizer("main").lr


def test_a_resumed_run_goes_on_with_the_draws_of_its_dataset(tmp_path: Path) -> None:
    class Drawing(chainer.dataset.DatasetMixin):
        def __len__(self) -> int:
            return 5

        def get_example(self, i: int) -> float:
            return random.random() + random.gauss(0, 1) + float(np.random.rand())

    def run(stop: int, start: str | None = None) -> list[float]:
        random.seed(1)
        np.random.seed(1)
        seen: list[float] = []

        class Updater(training.StandardUpdater):
            def update_core(self) -> None:
                seen.extend(self.get_iterator("main").next())

        optimizer = chainer.optimizers.SGD().setup(L.Linear(1, 1))
        made = training.Trainer(
            Updater(chainer.iterators.SerialIterator(Drawing(), 3), optimizer),
            (stop, "iteration"),
            out=tmp_path,
        )
        made.extend(extensions.snapshot(filename="kept"), trigger=(4, "iteration"))
        if start is not None:
            chainer.serializers.load_npz(tmp_path / start, made)
        made.run()
        return seen

    whole = run(6)
    assert run(6, "kept") == whole[12:]


def test_triggers_of_snapshots_have_the_names_of_chainers_files(tmp_path: Path) -> None:
    made = trainer(tmp_path, (5, "iteration"))
    made.extend(extensions.snapshot(filename="whole"), trigger=(3, "iteration"))
    made.run()
    with np.load(tmp_path / "whole") as kept:
        assert kept["extension_triggers/_Snapshot_1/previous_iteration"] == 3
        assert not [name for name in kept.files if "/Snapshot" in name]


def test_a_damaged_snapshot_is_passed_over_and_another_models_is_refused(tmp_path: Path) -> None:
    trainer(tmp_path, (9, "iteration")).run()
    newest = tmp_path / "snapshot_iter_8"
    newest.write_bytes(newest.read_bytes()[:-40])
    again = trainer(tmp_path, (4, "iteration"))
    with pytest.warns(UserWarning, match="snapshot_iter_8 is damaged; an older snapshot"):
        again.run(resume="auto")
    assert again.updater.iteration == 4
    other = training.Trainer(updater(), (9, "iteration"), out=str(tmp_path))
    other.extend(extensions.snapshot())
    other.extend(extensions.InverseShift("lr", 0.1, 1))
    newest.unlink()
    with pytest.raises(SnapshotError, match="missing in the snapshot: extensions/InverseShift/_t"):
        other.run(resume="auto")
    bare = training.Trainer(updater(), (9, "iteration"), out=str(tmp_path))
    with pytest.raises(InvalidArgument, match="needs the extension that takes snapshots"):
        bare.run(resume="auto")


def test_a_snapshot_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("old")

    def fails(path: str, values: Any) -> None:
        Path(path).write_text("half")
        raise OSError("No space left on device")

    for kind in ("SimpleWriter", "ThreadWriter", "ThreadQueueWriter"):
        writer = getattr(extensions.snapshot_writers, kind)(savefun=fails)

        def write(writer: Any = writer) -> None:
            writer("one", str(tmp_path), {"a": np.zeros(3)})
            writer.finalize()

        with pytest.raises(OSError, match="No space left") as raised:
            write()
        assert f"'{tmp_path / 'one'}' was not written; those before" in raised.value.__notes__[0]
        assert os.listdir(tmp_path) == ["one"], kind
        assert (tmp_path / "one").read_text() == "old"


@pytest.mark.parametrize("kind", ["ThreadWriter", "ThreadQueueWriter", "ProcessWriter"])
def test_writers_beside_training_write_the_values_of_their_time(tmp_path: Path, kind: str) -> None:
    writer = getattr(extensions.snapshot_writers, kind)()
    values = {"a/b": np.arange(3)}
    writer("one", str(tmp_path), values)
    values["a/b"][:] = 9
    writer.finalize()
    with np.load(tmp_path / "one") as saved:
        np.testing.assert_array_equal(saved["a/b"], [0, 1, 2])


class Clock:
    """Stands for a trainer that is at some iteration."""

    def __init__(self, per_epoch: int = 4) -> None:
        self.iteration, self.per_epoch = 0, per_epoch
        self.updater = self
        self.observation: dict[str, Any] = {}
        self.previous_epoch_detail = 0.0
        self.lr = 1.0

    epoch_detail = property(lambda self: self.iteration / self.per_epoch)
    epoch = property(lambda self: self.iteration // self.per_epoch)
    elapsed_time = property(lambda self: float(self.iteration))

    def get_optimizer(self, name: str) -> Any:
        return self

    def step(self, **observed: Any) -> Clock:
        self.previous_epoch_detail = self.epoch_detail
        self.iteration += 1
        self.observation = observed
        return self


@pytest.mark.parametrize(
    ("trigger", "fired"),
    [
        (triggers.IntervalTrigger(3, "iteration"), [3, 6, 9, 12]),
        (triggers.IntervalTrigger(1.5, "epoch"), [6, 12]),
        (triggers.ManualScheduleTrigger([2, 7], "iteration"), [2, 7]),
        (triggers.ManualScheduleTrigger(1.75, "epoch"), [7]),
        (triggers.OnceTrigger(), [1]),
        (triggers.TimeTrigger(5), [6, 11]),
        (triggers.get_trigger(None), []),
    ],
)
def test_triggers_fire_at_their_times(trigger: Any, fired: list[int]) -> None:
    clock = Clock()
    assert [i for i in range(1, 13) if trigger(clock.step())] == fired


@pytest.mark.parametrize(
    ("trigger", "fired"),
    [
        (triggers.MaxValueTrigger("v", (1, "iteration")), [1, 2, 5]),
        (triggers.MinValueTrigger("v", (1, "iteration")), [1, 3]),
        (triggers.BestValueTrigger("v", lambda best, new: new > best, (2, "iteration")), [2, 6]),
        (triggers.EarlyStoppingTrigger((1, "iteration"), "v", 2, "max"), [4]),
        (
            triggers.EarlyStoppingTrigger((1, "iteration"), "v", 9, max_trigger=(5, "iteration")),
            [5],
        ),
    ],
)
def test_triggers_of_values_compare_means(trigger: Any, fired: list[int]) -> None:
    clock = Clock()
    values = [2, 4, 1, 3, 5, 4.5]
    found = [i + 1 for i, v in enumerate(values) if trigger(clock.step(v=v))]
    assert found == fired


@pytest.mark.parametrize(
    ("shift", "wanted"),
    [
        (extensions.ExponentialShift("lr", 0.5, target=0.2), [1, 0.5, 0.25, 0.2, 0.2]),
        (extensions.InverseShift("lr", 1, 1, init=2), [2, 1, 2 / 3, 0.5, 0.4]),
        (extensions.PolynomialShift("lr", 2, 4), [1, 0.5625, 0.25, 0.0625, 0]),
        (extensions.StepShift("lr", 0.1, 2), [1, 1, 0.1, 0.1, 0.01]),
        (extensions.MultistepShift("lr", 0.1, [1, 3], 1), [1, 0.1, 0.1, 0.01, 0.01]),
        (extensions.LinearShift("lr", (4, 0), (1, 3)), [4, 4, 2, 0, 0]),
        (extensions.WarmupShift("lr", 0.2, 2, 1), [0.2, 0.6, 1, 1, 1]),
        (extensions.CosineShift("lr", 4), [1, 0.8535534, 0.5, 0.1464466, 0]),
    ],
)
def test_shifts_follow_their_formulas_and_resume(shift: Any, wanted: list[float]) -> None:
    clock = Clock()
    shift.initialize(clock)
    found = [clock.lr]
    for _ in range(4):
        shift(clock)
        found.append(clock.lr)
    np.testing.assert_allclose(found, wanted, atol=1e-12, rtol=1e-6)
    file = io.BytesIO()
    chainer.serializers.save_npz(file, shift)
    file.seek(0)
    chainer.serializers.load_npz(file, shift)
    clock.lr = 77.0
    shift.initialize(clock)
    assert clock.lr == pytest.approx(wanted[-1])


def test_an_extension_that_raises_is_named_and_the_state_saved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = training.Trainer(updater(), (9, "iteration"), out=str(tmp_path))
    made.extend(extensions.snapshot(snapshot_on_error=True, filename="last"))

    def breaks(trainer: Any) -> None:
        if trainer.updater.iteration == 5:
            raise KeyError("gone")

    made.extend(breaks)
    with pytest.raises(KeyError, match="gone"):
        made.run()
    assert "in extension 'breaks' at iteration 5" in capsys.readouterr().err
    again = training.Trainer(updater(), (9, "iteration"), out=str(tmp_path))
    again.extend(extensions.snapshot(filename="last"))
    again.run(resume="auto")
    assert again.updater.iteration == 9


def test_statistics_values_and_parallel_updates_are_observed(tmp_path: Path) -> None:
    single = updater()
    model = single.get_optimizer("main").target
    made = training.Trainer(single, (7, "iteration"), out=str(tmp_path))
    made.extend(extensions.ParameterStatistics(model, prefix="p", trigger=(7, "iteration")))
    made.extend(extensions.observe_lr(), trigger=(1, "iteration"))
    made.run()
    grads = made.observation["p/None/predictor/l2/b/grad/mean"]
    assert np.isfinite(grads)
    assert made.observation["lr"] == 0.1
    W = model.predictor.l1.W.array
    assert W.min() <= made.observation["p/None/predictor/l1/W/data/percentile/3"] <= W.max()


def test_parallel_updates_sum_the_gradients_of_the_parts(tmp_path: Path) -> None:
    np.random.seed(1)
    link = L.Linear(4, 2)
    first = link.W.array.copy()
    x, t = np.random.randn(6, 4).astype("f"), np.array([0, 1, 1, 0, 1, 0], "i")
    data = chainer.datasets.TupleDataset(x, t)
    model = L.Classifier(link)
    made = training.ParallelUpdater(
        chainer.iterators.SerialIterator(data, 6, shuffle=False),
        chainer.optimizers.SGD(0.1).setup(model),
        devices={"main": -1, "second": -1},
    )
    training.Trainer(made, (1, "iteration"), str(tmp_path)).run()
    other = L.Linear(4, 2)
    other.W.array[...] = first
    other.cleargrads()
    for part in (slice(0, None, 2), slice(1, None, 2)):
        F.softmax_cross_entropy(other(x[part]), t[part]).backward()
    np.testing.assert_allclose(link.W.array, first - 0.1 * other.W.grad, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("old", [True, False])
def test_functions_as_converters_get_the_number_of_the_device(tmp_path: Path, old: bool) -> None:
    seen: list[Any] = []

    def convert(batch: Any, device: Any) -> Any:
        seen.append(device)
        return chainer.dataset.concat_examples(batch, device)

    converter = convert if old else chainer.dataset.converter()(convert)
    single = updater(converter=converter, device=-1)
    single.update()
    data = [(np.zeros(4, "f"), np.int32(0))]
    iterator = chainer.iterators.SerialIterator(data, 1, repeat=False)
    target = single.get_optimizer("main").target
    extensions.Evaluator(iterator, target, converter, device="@numpy")()
    assert seen == ([-1] * 2 if old else [chainer.get_device(-1)] * 2)


@pytest.mark.parametrize("kind", ["ThreadQueueWriter", "ProcessQueueWriter"])
def test_a_queue_of_snapshots_is_written_in_order_though_one_fails(
    tmp_path: Path, kind: str
) -> None:
    writer = getattr(extensions.snapshot_writers, kind)()
    writer("sub/one", str(tmp_path / "absent"), {"a": np.zeros(1)})
    for number in range(3):
        writer("two", str(tmp_path), {"a": np.full(2, number)})
    with pytest.raises(OSError, match=r"could not be written|absent"):
        writer.finalize()
    with np.load(tmp_path / "two") as saved:
        np.testing.assert_array_equal(saved["a"], [2, 2])


def test_mistakes_are_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="expected 'epoch' or 'iteration', got 'day'"):
        triggers.IntervalTrigger(1, "day")
    with pytest.raises(InvalidArgument, match="period: expected a positive number, got 0"):
        triggers.get_trigger((0, "epoch"))
    with pytest.raises(InvalidArgument, match=r"expected a callable, None or a pair .* got 5"):
        triggers.get_trigger(5)
    with pytest.raises(InvalidArgument, match="period: expected a positive number, got '1'"):
        triggers.get_trigger(("1", "epoch"))
    with pytest.raises(InvalidArgument, match="has no target: call setup"):
        training.StandardUpdater(None, chainer.optimizers.SGD())
    made = training.Trainer(updater(), (1, "epoch"), out=str(tmp_path))
    with pytest.raises(InvalidArgument, match='"training" is prohibited'):
        made.extend(lambda t: None, name="training")
    with pytest.raises(InvalidArgument, match="extension nope not found: there are none"):
        made.get_extension("nope")
    with pytest.raises(TypeError, match=r"got the class LogReport: make one, as in LogReport\(\)"):
        made.extend(extensions.LogReport)
    with pytest.raises(TypeError, match="expected an extension or a function, got 3"):
        made.extend(3)
    with pytest.raises(InvalidArgument, match="expected 'auto', a path or None, got True"):
        made.run(resume=True)  # type: ignore[arg-type]
    made.extend(extensions.ExponentialShift("alpha", 0.5))
    with pytest.raises(
        InvalidArgument, match="MomentumSGD has no hyperparameter 'alpha' that.*lr, momentum"
    ):
        made.run()
    with pytest.raises(NotProvided, match="ParallelUpdater splits batches on the CPU"):
        training.updaters.MultiprocessParallelUpdater(None, None)
    with pytest.raises(InvalidArgument, match="invoke_before_training has been removed"):
        training.make_extension(invoke_before_training=True)
    with pytest.raises(InvalidArgument, match="InverseShift: gamma: expected at least 0, got -1"):
        extensions.InverseShift("lr", -1, 1)
    with pytest.warns(UserWarning, match="`repeat` property of the iterator main"):
        extensions.Evaluator(chainer.iterators.SerialIterator([1], 1), L.Linear(1))
    diverged = training.Trainer(updater(), (1, "epoch"), out=str(tmp_path))
    diverged.extend(extensions.FailOnNonNumber())
    diverged.updater.get_optimizer("main").lr = np.inf
    with (
        pytest.raises(Diverged, match=r"in optimizer 'main' diverge: /predictor/\w+/\w holds"),
        np.errstate(all="ignore"),
    ):
        diverged.run(show_loop_exception_msg=False)


def test_an_iterator_that_ends_before_training_is_told(tmp_path: Path) -> None:
    optimizer = chainer.optimizers.SGD().setup(L.Classifier(L.Linear(2, 2)))
    data = chainer.datasets.TupleDataset(np.zeros((4, 2), "f"), np.zeros(4, "i"))
    once = chainer.iterators.SerialIterator(data, 2, repeat=False)
    made = training.Trainer(training.StandardUpdater(once, optimizer), (3, "epoch"), str(tmp_path))
    with pytest.raises(StopIteration) as ended:
        made.run(show_loop_exception_msg=False)
    assert "ended after 2 iterations, before training: make it" in ended.value.__notes__[0]


def test_a_run_without_an_update_is_told_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = training.Trainer(updater(), lambda trainer: True, out=str(tmp_path))
    made.extend(extensions.LogReport())
    made.run()
    assert [r.message for r in caplog.records] == [
        "no update was done: the stop trigger fired at once"
    ]


def test_an_extension_whose_trigger_never_fires_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = training.Trainer(updater(), (3, "iteration"), out=str(tmp_path))
    made.extend(lambda _: None, name="late", trigger=(100, "epoch"))
    made.extend(lambda _: None, name="each", trigger=(1, "iteration"))
    made.extend(lambda _: None, name="off", trigger=None)
    made.extend(lambda _: None, name="first", trigger=(9, "iteration"), call_before_training=True)
    made.run()
    told = [record.message for record in caplog.records if record.name == "hagane.training"]
    assert told == [
        "extension 'late' was not called: the run ended after 3 iterations, before its trigger "
        "(100, 'epoch') fired; give extend a shorter one"
    ]
