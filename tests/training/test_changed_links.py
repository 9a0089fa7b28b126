"""Compiled steps of links that a program changes between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hagane
import hagane.functions as F  # noqa: N812
import hagane.links as L  # noqa: N812
from hagane import optimizers
from hagane.errors import InvalidArgument


class Net(hagane.Chain):
    """Two layers, one that may be added, and what the last call kept."""

    def __init__(self) -> None:
        super().__init__()
        with self.init_scope():
            self.first, self.last = L.Linear(3, 4), L.Linear(4, 2)
        self.more: Any = None
        self.kept: Any = None
        self.kind = "mean"

    def forward(self, x: Any) -> Any:
        y = self.last(F.tanh(self.first(x)))
        if self.more is not None:
            y = self.more(y)
        self.kept = F.mean(y) if self.kind == "mean" else None
        return y


class Held(hagane.Chain):
    """Adds the mean of the rows before."""

    def __init__(self) -> None:
        super().__init__()
        with self.init_scope():
            self.first = L.Linear(3, 2)
        self.rows: Any = None

    def forward(self, x: Any) -> Any:
        before, self.rows = self.rows, x * 1.0
        y = self.first(x)
        return y if before is None else y + F.mean(before)


def loss_of(net: Any, x: Any) -> Any:
    return F.mean(net(x) ** 2)


def courses(
    make: Callable[[], Any], before: Callable[[int, Any, Any], None]
) -> list[list[tuple[Any, ...]]]:
    """Return losses, parameters and counts of steps by ``update``, and of compiled ones."""
    found = []
    for compiled in (False, True):
        np.random.seed(0)
        net = make()
        optimizer = optimizers.MomentumSGD(0.1).setup(net)
        step = hagane.compile(loss_of, optimizer)
        course: list[tuple[Any, ...]] = []
        for number in range(6):
            before(number, net, optimizer)
            x = np.random.randn(5, 3).astype("f")
            loss: Any = None
            if compiled:
                loss = step(net, x)
            else:
                made: list[Any] = []
                optimizer.update(
                    lambda x, net=net, made=made: made.append(loss_of(net, x)) or made[0], x
                )
                loss = made[0]
            rules = [p.update_rule for p in net.params()]
            course.append((
                loss.array.copy(), [p.array.copy() for p in net.params()],
                optimizer.t, [rule.t for rule in rules if rule is not None],
                getattr(net, "kept", None) is None,
            ))  # fmt: skip
        found.append(course)
    return found


def agree(found: list[list[tuple[Any, ...]]]) -> None:
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one[0], other[0], rtol=1e-5)
        for a, b in zip(one[1], other[1], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
        assert one[2:] == other[2:]


def test_layers_that_come_after_setup_stay_as_they_are_until_the_next_one() -> None:
    def before(number: int, net: Any, optimizer: Any) -> None:
        if number == 2:
            net.add_link("further", L.Linear(2, 2))
            net.more = net.further
        if number == 4:
            optimizer.setup(net)

    agree(courses(Net, before))


def test_steps_of_a_link_that_is_frozen_whole_are_counted() -> None:
    def before(number: int, net: Any, optimizer: Any) -> None:
        if number == 2:
            net.disable_update()
        if number == 4:
            net.enable_update()

    agree(courses(Net, before))


def test_what_a_call_no_longer_keeps_is_none() -> None:
    def before(number: int, net: Any, optimizer: Any) -> None:
        net.kind = "none" if number in (2, 3) else "mean"

    found = courses(Net, before)
    agree(found)
    assert [step[-1] for step in found[1]] == [False, False, True, True, False, False]


def test_what_a_link_keeps_may_be_set_to_another_size() -> None:
    def before(number: int, net: Any, optimizer: Any) -> None:
        if number == 3:
            net.rows = hagane.Variable(np.ones((2, 3), "f"))

    agree(courses(Held, before))


def test_a_classifier_tells_no_accuracy_that_it_does_not_compute() -> None:
    model = L.Classifier(L.Linear(3, 4))
    step = hagane.compile(model, optimizers.SGD(0.1).setup(model))
    reporter = hagane.Reporter()
    reporter.add_observer("main", model)
    told = []
    for computed in (True, False, True):
        model.compute_accuracy = computed
        with reporter.scope({}):
            step(np.ones((2, 3), "f"), np.zeros(2, "i"))
            told.append("main/accuracy" in reporter.observation)
        assert (model.accuracy is not None) == computed
    assert told == [True, False, True]


def test_a_parameter_at_two_places_of_a_link_is_refused() -> None:
    net = Net()
    net.last = L.Linear(3, 4)
    net.last.W = net.first.W
    step = hagane.compile(loss_of, optimizers.SGD(0.1).setup(net))
    with pytest.raises(InvalidArgument, match="step: /first/W and /last/W are one parameter"):
        step(net, np.ones((2, 3), "f"))
