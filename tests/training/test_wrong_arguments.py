"""Arguments of the wrong kind are named where an object is made, not where it is used."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hagane
from hagane import links, training
from hagane.errors import InvalidArgument
from hagane.training import extensions, triggers
from hagane.training.extensions import snapshot_writers


def iterator() -> Any:
    return hagane.iterators.SerialIterator([1, 2, 3], 1)


def optimizer() -> Any:
    return hagane.optimizers.SGD().setup(links.Linear(2, 2))


def updater(**options: Any) -> Any:
    return training.StandardUpdater(iterator(), optimizer(), **options)


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "no optimizer": (
        lambda: training.StandardUpdater(iterator(), None),
        "StandardUpdater: optimizer 'main': expected an optimizer such as "
        "hagane.optimizers.SGD().setup(model), got None",
    ),
    "a class of optimizers": (
        lambda: training.StandardUpdater(iterator(), hagane.optimizers.SGD),
        "optimizer 'main': expected an optimizer such as hagane.optimizers.SGD().setup(model), got "
        "the class SGD",
    ),
    "a list of samples": (
        lambda: training.StandardUpdater([1, 2], optimizer()),
        "StandardUpdater: iterator 'main': expected an iterator such as "
        "SerialIterator(dataset, batch_size), got [1, 2]",
    ),
    "no converter": (
        lambda: updater(converter=None),
        "StandardUpdater: converter: expected a function, got None",
    ),
    "a loss that is none": (
        lambda: updater(loss_func=3),
        "StandardUpdater: loss_func: expected a function or None, got 3",
    ),
    "a scale that is a text": (
        lambda: updater(loss_scale="large"),
        "loss_scale must be a positive number. Actual: 'large'",
    ),
    "optimizers without a main one": (
        lambda: training.ParallelUpdater(iterator(), {"a": optimizer()}, devices={"main": -1}),
        "ParallelUpdater: optimizer: expected one named 'main', got ['a']",
    ),
    "a list of devices": (
        lambda: training.ParallelUpdater(iterator(), optimizer(), devices=[-1]),
        "ParallelUpdater: devices: expected devices by name, got [-1]",
    ),
    "samples in place of batches": (
        lambda: extensions.Evaluator([1, 2], links.Linear(2, 2)),
        "Evaluator: iterator 'main': expected an iterator such as SerialIterator(dataset, "
        "batch_size, repeat=False), got [1, 2]",
    ),
    "a rate that is no number": (
        lambda: hagane.optimizers.SGD("0.1"),
        "hyperparameter 'lr': expected a number, got '0.1'",
    ),
    "no updater": (
        lambda: training.Trainer(None),
        "Trainer: updater: expected an updater such as StandardUpdater(iterator, optimizer), got "
        "None",
    ),
    "a number as folder": (
        lambda: training.Trainer(updater(), out=3),  # type: ignore[arg-type]
        "Trainer: out: expected the path of a folder, got 3",
    ),
    "one extension": (
        lambda: training.Trainer(updater(), extensions=extensions.LogReport()),  # type: ignore[arg-type]
        "Trainer: extensions: expected a list of extensions, got a hagane.training.extensions",
    ),
    "a class as trigger": (
        lambda: training.Trainer(updater(), triggers.OnceTrigger),
        "trigger: expected a trigger, got the class OnceTrigger: make one, as in OnceTrigger(...)",
    ),
    "no model to evaluate": (
        lambda: extensions.Evaluator(iterator(), None),
        "Evaluator: target: expected a link, got None",
    ),
    "no iterator to evaluate": (
        lambda: extensions.Evaluator({"main": None}, links.Linear(2)),
        "Evaluator: iterator 'main': expected an iterator such as SerialIterator(dataset, "
        "batch_size, repeat=False), got None",
    ),
    "letters as columns": (
        lambda: extensions.PrintReport("epoch"),
        "PrintReport: entries: expected a list of names, got 'epoch'",
    ),
    "letters as keys": (
        lambda: extensions.LogReport("main/loss"),
        "LogReport: keys: expected a list of names, got 'main/loss'",
    ),
    "numbers to plot": (
        lambda: extensions.PlotReport([1]),  # type: ignore[list-item]
        "PlotReport: y_keys: expected a list of names, got [1]",
    ),
    "a rate that is a text": (
        lambda: extensions.ExponentialShift("lr", "0.1"),  # type: ignore[arg-type]
        "ExponentialShift: rate: expected a number, got '0.1'",
    ),
    "a hyperparameter without a name": (
        lambda: extensions.StepShift(None, 0.1, 2),  # type: ignore[arg-type]
        "StepShift: attr: expected a text, got None",
    ),
    "no steps": (
        lambda: extensions.StepShift("lr", 0.1, 0),
        "StepShift: step: expected a positive number, got 0",
    ),
    "one end of a range": (
        lambda: extensions.LinearShift("lr", 0.1, (1, 2)),  # type: ignore[arg-type]
        "LinearShift: value_range: expected a pair of numbers, got 0.1",
    ),
    "no warmup": (
        lambda: extensions.WarmupShift("lr", 0.1, 0, 1.0),
        "WarmupShift: warmup_iter: expected a positive number, got 0",
    ),
    "a value to watch": (
        lambda: triggers.MaxValueTrigger(3),  # type: ignore[arg-type]
        "MaxValueTrigger: key: expected a text, got 3",
    ),
    "a point in words": (
        lambda: triggers.ManualScheduleTrigger(["soon"], "epoch"),
        "ManualScheduleTrigger: points: expected a number, got 'soon'",
    ),
    "a time in words": (
        lambda: triggers.TimeTrigger("1 h"),  # type: ignore[arg-type]
        "TimeTrigger: period: expected a number, got '1 h'",
    ),
    "an array to save": (
        lambda: extensions.snapshot_object(np.zeros(2), "x"),
        "snapshot: target: expected an object that can be saved, got array([0., 0.])",
    ),
    "a writer that is a class": (
        lambda: extensions.snapshot(condition=True),  # type: ignore[arg-type]
        "snapshot: condition: expected a function or None, got True",
    ),
    "a value to observe": (
        lambda: extensions.observe_value("lr", 0.1),  # type: ignore[arg-type]
        "observe_value: target_func: expected a function, got 0.1",
    ),
    "no links": (
        lambda: extensions.ParameterStatistics(None),
        "ParameterStatistics: links: expected links, got None",
    ),
    "no step to measure": (
        lambda: training.measure(iterator(), None),  # type: ignore[arg-type]
        "measure: step: expected a function, got None",
    ),
    "a rank in words": (
        lambda: training.DistributedSampler([1], "2", 0),  # type: ignore[arg-type]
        "DistributedSampler: num_replicas: expected a positive number, got '2'",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_argument_of_the_wrong_kind_is_named(name: str) -> None:
    make, told = WRONG[name]
    with pytest.raises(InvalidArgument, match=re.escape(told)):
        make()


def test_objects_that_act_like_those_expected_serve() -> None:
    class Batches:
        """An iterator of the program's own."""

        epoch, epoch_detail, is_new_epoch = 0, 0.0, False

        def next(self) -> list[Any]:
            return [np.zeros(2, np.float32)]

        def finalize(self) -> None:
            """Do nothing."""

    made = training.StandardUpdater(Batches(), optimizer(), loss_func=lambda x: x)
    assert training.Trainer(made, (1, "epoch")).updater is made
    extensions.LinearShift("lr", np.array([0.1, 0.2]), (np.int64(1), 2))  # type: ignore[arg-type]
    assert isinstance(extensions.snapshot().writer, snapshot_writers.SimpleWriter)


@pytest.mark.filterwarnings("ignore:The `repeat` property")
def test_an_evaluation_over_batches_without_end_ends() -> None:
    batches = hagane.iterators.SerialIterator([np.zeros(2, np.float32)] * 3, 2)
    evaluator = extensions.Evaluator(batches, links.Linear(2, 2))
    with pytest.raises(InvalidArgument, match="begins a second epoch, .* with repeat=False"):
        evaluator()


def test_a_model_without_parameters_is_told() -> None:
    class Bare(hagane.Chain):
        def __init__(self) -> None:
            super().__init__()
            self.layer = links.Linear(2, 2)  # not within init_scope()

    bare = hagane.optimizers.SGD().setup(Bare())
    with pytest.warns(UserWarning, match="a Bare, has no parameters, and nothing is trained: .*in"):
        training.StandardUpdater(iterator(), bare)


def test_labels_that_come_by_name_are_asked_for() -> None:
    model = links.Classifier(links.Linear(2, 2))
    with pytest.raises(ValueError, match=r"0 inputs, and \['t', 'x'\] by name: give label_key"):
        model(x=np.zeros((1, 2), np.float32), t=np.zeros(1, np.int32))
