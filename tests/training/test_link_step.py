"""Compiled steps of links do what optimizers of links do, with the same random numbers."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import hagane
import hagane.functions as F  # noqa: N812
import hagane.links as L  # noqa: N812
from hagane import optimizer_hooks as hooks
from hagane import optimizers, zoo
from hagane.errors import CaptureError, InvalidArgument
from hagane.training.step import LinkStep


class Rows(hagane.Chain):
    def __init__(self, features: int | None = 4) -> None:
        super().__init__()
        with self.init_scope():
            self.first = L.Linear(features, 8, nobias=True)  # the norm would leave noise of it
            self.norm = L.BatchNormalization(8)
            self.second = L.Linear(8, 3)

    def forward(self, x: Any) -> Any:
        return self.second(F.dropout(F.relu(self.norm(self.first(x))), 0.3))


def loss_of(model: Any, x: Any, t: Any) -> Any:
    return F.softmax_cross_entropy(model(x), t)


def loss_of_words(model: Any, x: Any, t: Any) -> Any:
    y = model(x)
    return F.softmax_cross_entropy(F.reshape(y, (-1, y.shape[-1])), F.reshape(t, (-1,)))


def rows(sizes: Sequence[int] = (6, 6, 5, 7, 3)) -> list[tuple[Any, Any]]:
    drawn = np.random.RandomState(1)
    return [(drawn.randn(n, 4).astype("f"), drawn.randint(0, 3, n).astype("i")) for n in sizes]


def trained(
    optimizer: Any, compiled: bool, make: Any = Rows, loss: Any = loss_of, batches: Any = None,
    hook: Any = None,
) -> tuple[list[float], Any, Any]:  # fmt: skip
    np.random.seed(3)
    model = make()
    optimizer.setup(model)
    if hook is not None:
        optimizer.add_hook(hook)
    step = LinkStep(loss, optimizer)
    losses = []
    for batch in batches or rows():
        found: list[Any] = []

        def noted(*args: Any, found: list[Any] = found) -> Any:
            found.append(loss(*args))
            return found[0]

        if compiled:
            found.append(step(model, *batch))
        else:
            optimizer.update(noted, model, *batch)
        losses.append(float(found[0].array))
    return losses, model, step


@pytest.mark.parametrize(
    "name",
    ["SGD", "MomentumSGD", "CorrectedMomentumSGD", "NesterovAG", "AdaGrad", "AdaDelta", "RMSprop",
     "RMSpropGraves", "SMORMS3", "Adam", "AdamW", "AMSGrad", "AdaBound", "AMSBound", "MSVAG"],
)  # fmt: skip
def test_each_optimizer_gives_the_curve_of_eager_training(name: str) -> None:
    kind = getattr(optimizers, name)
    expected, before, _ = trained(kind(), compiled=False)
    losses, model, step = trained(kind(), compiled=True)
    np.testing.assert_allclose(losses, expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(model.norm.avg_mean, before.norm.avg_mean, rtol=1e-3, atol=1e-5)
    assert len(step._programs) == 1  # one for all sizes of batches
    assert model.second.W.update_rule.t == 5


@pytest.mark.parametrize(
    "hook",
    [hooks.WeightDecay(0.1), hooks.Lasso(0.1), hooks.GradientClipping(0.3),
     hooks.GradientHardClipping(-0.1, 0.1), hooks.GradientLARS()],
    ids=lambda hook: type(hook).__name__,
)  # fmt: skip
def test_hooks_on_gradients_are_part_of_the_step(hook: Any) -> None:
    expected, _, _ = trained(optimizers.MomentumSGD(), compiled=False, hook=hook)
    losses, _, _ = trained(optimizers.MomentumSGD(), compiled=True, hook=hook)
    np.testing.assert_allclose(losses, expected, rtol=1e-4)


def test_hooks_under_their_earlier_names_are_part_of_the_step() -> None:
    for name in ("GradientClipping", "WeightDecay"):
        with pytest.warns(DeprecationWarning, match=f"Use optimizer_hooks.{name} instead"):
            hook = getattr(hagane.optimizer, name)(0.3)
        expected, _, _ = trained(optimizers.MomentumSGD(), compiled=False, hook=hook)
        losses, _, _ = trained(optimizers.MomentumSGD(), compiled=True, hook=hook)
        np.testing.assert_allclose(losses, expected, rtol=1e-4)


def test_parameters_without_arrays_get_them_in_the_first_step() -> None:
    expected, _, _ = trained(optimizers.Adam(), compiled=False, make=lambda: Rows(None))
    losses, _, _ = trained(optimizers.Adam(), compiled=True, make=lambda: Rows(None))
    np.testing.assert_allclose(losses, expected, rtol=1e-5)


def images(n: int) -> tuple[Any, Any]:
    drawn = np.random.RandomState(n)
    return drawn.randn(n, 1, 28, 28).astype("f"), drawn.randint(0, 10, n).astype("i")


def words(n: int) -> tuple[Any, Any]:
    drawn = np.random.RandomState(n)
    return drawn.randint(0, 20, (n, 7)).astype("i"), drawn.randint(0, 20, (n, 7)).astype("i")


@pytest.mark.parametrize(
    ("make", "loss", "data"),
    [
        (zoo.LeNet, loss_of, images),
        (lambda: zoo.LSTMLanguageModel(20, 16, 2, 0.0), loss_of_words, words),
        (lambda: zoo.GPT(20, 16, 8, 1, 2), loss_of_words, words),
    ],
    ids=["lenet", "lstm", "gpt"],
)
def test_models_of_the_zoo_learn_the_same(make: Any, loss: Any, data: Any) -> None:
    batches = [data(n) for n in (4, 4, 3)]
    expected, _, _ = trained(optimizers.MomentumSGD(), False, make, loss, batches)
    losses, _, _ = trained(optimizers.MomentumSGD(), True, make, loss, batches)
    np.testing.assert_allclose(losses, expected, rtol=1e-4)


class Held(Rows):
    def forward(self, x: Any) -> Any:
        y = F.relu(self.norm(self.first(x)))
        return self.second(F.zoneout(F.tanh(y), y, 0.3))


def test_zoneout_holds_the_same_elements() -> None:
    expected, _, _ = trained(optimizers.MomentumSGD(), False, Held)
    losses, _, _ = trained(optimizers.MomentumSGD(), True, Held)
    np.testing.assert_allclose(losses, expected, rtol=1e-4)


def test_a_variational_autoencoder_learns_from_the_same_samples() -> None:
    batches = [(np.random.RandomState(n).rand(n, 6).astype("f"),) for n in (4, 4, 3)]
    make = lambda: zoo.VAE(6, 2, 8)  # noqa: E731
    loss = lambda model, x: model(x)  # noqa: E731
    expected, _, _ = trained(optimizers.Adam(), False, make, loss, batches)
    losses, _, _ = trained(optimizers.Adam(), True, make, loss, batches)
    np.testing.assert_allclose(losses, expected, rtol=1e-4)


class Words(hagane.Chain):
    def __init__(self) -> None:
        super().__init__()
        with self.init_scope():
            self.embed = L.EmbedID(20, 8)
            self.block = L.TransformerBlock(8, 2, dropout=0.2, rotary=True)
            self.out = L.Linear(8, 20)

    def forward(self, tokens: Any) -> Any:
        return self.out(self.block(self.embed(tokens), is_causal=True), n_batch_axes=2)


def test_a_transformer_learns_the_same_with_the_same_dropout() -> None:
    batches = [words(n) for n in (4, 4, 3)]
    expected, _, _ = trained(optimizers.Adam(), False, Words, loss_of_words, batches)
    losses, _, _ = trained(optimizers.Adam(), True, Words, loss_of_words, batches)
    np.testing.assert_allclose(losses, expected, rtol=1e-4)


def pictures(n: int, dtype: str, size: int = 32) -> tuple[Any, Any]:
    drawn = np.random.RandomState(n)
    return drawn.randn(n, 3, size, size).astype(dtype), drawn.randint(0, 10, n).astype("i")


class Residual(zoo.ResNet18):
    blocks = (1, 1)  # a stem, overlapping windows, strides and shortcuts, in less time


def gradients_of(make: Any, batch: Any, compiled: bool) -> dict[str, Any]:
    """Return what a step of plain descent at rate 1 subtracts from each parameter."""
    np.random.seed(3)
    model = make()
    before = {name: param.array.copy() for name, param in model.namedparams()}
    optimizer = optimizers.SGD(1.0).setup(model)
    if compiled:
        LinkStep(loss_of, optimizer)(model, *batch)
    else:
        optimizer.update(loss_of, model, *batch)
    return {name: before[name] - param.array for name, param in model.namedparams()}


@pytest.mark.parametrize(
    "kind", [Residual, pytest.param(zoo.ResNet18, marks=pytest.mark.long)]
)  # fmt: skip
def test_gradients_of_a_residual_network_agree_in_double_precision(kind: Any) -> None:
    # Nothing is left to rounding: the norms of three images of one pixel magnify it in float32.
    with hagane.using_config("dtype", np.float64):
        batch = pictures(3, "d")
        make = lambda: kind(10, width=4)  # noqa: E731
        expected, found = (gradients_of(make, batch, compiled) for compiled in (False, True))
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        size = np.abs(gradient).max()
        np.testing.assert_allclose(found[name], gradient, atol=1e-9 * size, rtol=0, err_msg=name)


def test_a_residual_network_follows_eager_training_over_changing_batches() -> None:
    with hagane.using_config("dtype", np.float64):
        batches = [pictures(n, "d") for n in (4, 4, 3, 5)]
        make = lambda: Residual(10, width=4)  # noqa: E731
        expected, _, _ = trained(optimizers.MomentumSGD(), False, make, loss_of, batches)
        losses, _, _ = trained(optimizers.MomentumSGD(), True, make, loss_of, batches)
    np.testing.assert_allclose(losses, expected, rtol=1e-6)


@pytest.mark.long
def test_a_residual_network_follows_eager_training_for_twenty_steps() -> None:
    batches = [pictures(n, "f", 16) for n in (32, 31, 30, 32) * 5]
    make = lambda: zoo.ResNet18(10, small=True, width=8)  # noqa: E731
    expected, _, _ = trained(optimizers.MomentumSGD(0.0003), False, make, loss_of, batches)
    losses, _, _ = trained(optimizers.MomentumSGD(0.0003), True, make, loss_of, batches)
    np.testing.assert_allclose(losses, expected, rtol=1e-3)


def test_a_model_of_lists_of_sequences_compiles_once_for_all_batches() -> None:
    batches = [words(n) for n in (4, 3, 5)]
    make = lambda: zoo.LSTMLanguageModel(20, 16, 2, 0.5)  # noqa: E731
    _, _, step = trained(optimizers.SGD(), True, make, loss_of_words, batches)
    assert len(step._programs) == 1


def test_dropout_between_recurrent_layers_follows_from_the_seed() -> None:
    batches = [words(4), words(4)]
    curves = [
        trained(
            optimizers.SGD(), True, lambda: zoo.LSTMLanguageModel(20, 16, 2, 0.5), loss_of_words,
            batches,
        )[0]
        for _ in range(2)
    ]  # fmt: skip
    assert curves[0] == curves[1]


class Sentences(hagane.Chain):
    """A cell that begins each batch anew, and keeps the state of the one before until then."""

    def __init__(self) -> None:
        super().__init__()
        with self.init_scope():
            self.words, self.cell, self.out = L.EmbedID(9, 4), L.LSTM(4, 4), L.Linear(4, 9)

    def forward(self, ids: Any) -> Any:
        self.cell.reset_state()
        found = [self.out(self.cell(self.words(ids[:, t]))) for t in range(ids.shape[1])]
        return F.mean(F.square(F.stack(found, axis=1)))


@pytest.mark.long
def test_the_sizes_of_a_state_are_those_of_the_batch_before() -> None:
    nets = Sentences(), Sentences()
    nets[1].copyparams(nets[0])
    for net in nets:
        net(np.zeros((4, 2), np.int32))
    plain, made = (optimizers.Adam().setup(net) for net in nets)
    step = hagane.compile(lambda link, ids: link(ids), made)
    for shape in ((2, 5), (3, 1), (2, 5)):
        ids = np.random.randint(0, 9, shape)
        loss = nets[0](ids)
        nets[0].cleargrads()
        loss.backward()
        plain.update()
        np.testing.assert_allclose(step(nets[1], ids).array, loss.array, rtol=1e-4)
        assert nets[1].cell.h.shape == (shape[0], 4)


def test_a_learning_rate_may_change_without_compiling() -> None:
    model = Rows()
    optimizer = optimizers.SGD(0.1).setup(model)
    step = LinkStep(loss_of, optimizer)
    step(model, *rows()[0])
    before = model.second.b.array.copy()
    optimizer.lr = 0.0
    step(model, *rows()[0])
    np.testing.assert_array_equal(model.second.b.array, before)
    assert len(step._programs) == 1


def test_frozen_parameters_stay_and_count_for_the_norm_of_gradients() -> None:
    found = []
    for compiled in (False, True):
        np.random.seed(0)
        model = Rows()
        optimizer = optimizers.SGD(1.0).setup(model)
        optimizer.add_hook(hooks.GradientClipping(0.1))
        model.first.disable_update()
        frozen = model.first.W.array.copy()
        if compiled:
            LinkStep(loss_of, optimizer)(model, *rows()[0])
        else:
            optimizer.update(loss_of, model, *rows()[0])
        np.testing.assert_array_equal(model.first.W.array, frozen)
        found.append(model.second.W.array)
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)


def test_a_classifier_reports_and_trains_in_an_updater() -> None:
    from hagane import iterators, training

    x, t = rows([24])[0]
    curves = []
    for compiled in (False, True):
        np.random.seed(0)
        model = L.Classifier(Rows())
        optimizer = optimizers.Adam(0.01).setup(model)
        step = hagane.compile(model, optimizer) if compiled else None
        iterator = iterators.SerialIterator(hagane.datasets.TupleDataset(x, t), 7)
        updater = training.StandardUpdater(iterator, optimizer, loss_func=step)
        reporter = hagane.Reporter()
        reporter.add_observer("main", model)
        curve = []
        for _ in range(8):
            seen: dict[str, Any] = {}
            with reporter.scope(seen):
                updater.update()
            curve.append((float(seen["main/loss"].array), float(seen["main/accuracy"].array)))
        curves.append(curve)
        assert optimizer.epoch == 2
    np.testing.assert_allclose(curves[0], curves[1], rtol=1e-3)


def test_jit_makes_a_step_of_a_loss() -> None:
    model = Rows()
    optimizer = optimizers.SGD().setup(model)

    @hagane.jit(optimizer=optimizer)
    def step(model: Any, x: Any, t: Any) -> Any:
        return F.softmax_cross_entropy(model(x), t)

    assert isinstance(step, LinkStep)
    assert step(model, *rows()[0]).shape == ()


@pytest.mark.long
def test_a_budget_computes_again_and_changes_no_bit() -> None:
    def make() -> Any:
        np.random.seed(0)
        model = hagane.ChainList(*(L.Linear(32, 32) for _ in range(8)))
        return model, optimizers.SGD().setup(model)

    def loss(model: Any, x: Any) -> Any:
        for layer in model.children():
            x = F.tanh(layer(x))
        return F.sum(x * x)

    x = np.random.RandomState(0).randn(512, 32).astype("f")
    model, optimizer = make()
    free = LinkStep(loss, optimizer)
    expected = free(model, x)
    whole = free.memory()["predicted"]
    other, optimizer = make()
    step = LinkStep(loss, optimizer, memory_budget=0.8 * whole)
    assert step(other, x).array == expected.array
    plan = step.memory()
    assert plan["predicted"] <= 0.8 * whole
    assert plan["again"]
    for ours, theirs in zip(other.params(), model.params(), strict=True):
        np.testing.assert_array_equal(ours.array, theirs.array)


def test_a_parameter_that_no_gradient_reaches_is_named_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model = hagane.Chain(used=L.Linear(4, 2), beside=L.Linear(4, 2))
    optimizer = optimizers.SGD().setup(model)

    def loss(model: Any, x: Any) -> Any:
        return F.sum(model.used(x)) + 0 * F.sum(model.beside.b.array)

    step = LinkStep(loss, optimizer)
    with caplog.at_level(logging.WARNING, "hagane.training"):
        step(model, rows()[0][0])
        step(model, rows()[0][0])
    told = [r.message for r in caplog.records if "does not depend on" in r.message]
    assert len(told) <= 1


def test_a_loss_that_is_no_scalar_is_refused() -> None:
    model = L.Linear(4, 2)

    def loss(model: Any, x: Any) -> Any:
        return model(x)

    step = LinkStep(loss, optimizers.SGD().setup(model))
    with pytest.raises(InvalidArgument, match="expected a loss of one floating-point number"):
        step(model, rows()[0][0])


def test_an_optimizer_without_a_target_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"Adam has no target: call setup\(link\) first"):
        hagane.compile(loss_of, optimizers.Adam())


def test_hooks_and_rules_of_ones_own_are_refused_by_name() -> None:
    optimizer = optimizers.SGD().setup(Rows())
    optimizer.add_hook(lambda opt: None, name="mine")
    with pytest.raises(InvalidArgument, match="hook 'mine' .* cannot be part of a compiled step"):
        hagane.compile(loss_of, optimizer)

    class Odd(optimizers.SGD):
        def create_update_rule(self) -> Any:
            rule = super().create_update_rule()
            kind = type("Other", (type(rule),), {"step": lambda self, param, grad: None})
            return kind(self.hyperparam)

    with pytest.raises(InvalidArgument, match="with its own rule for all parameters .* got .*Odd"):
        hagane.compile(loss_of, Odd().setup(Rows()))


def test_a_scaled_loss_is_refused() -> None:
    optimizer = optimizers.SGD().setup(Rows())
    optimizer.loss_scaling(scale=8.0)
    with pytest.raises(InvalidArgument, match="the optimizer scales its loss"):
        hagane.compile(loss_of, optimizer)


def test_something_else_than_a_link_is_refused() -> None:
    step = LinkStep(loss_of, optimizers.SGD().setup(Rows()))
    with pytest.raises(InvalidArgument, match="expected a link as first argument, got ndarray"):
        step(*rows()[0])


def test_what_cannot_become_a_graph_is_named_with_its_line() -> None:
    def loss(model: Any, x: Any) -> Any:
        return F.sum(model(x)) * float(open("/dev/null").read() or 1)

    model = L.Linear(4, 2)
    step = LinkStep(loss, optimizers.SGD().setup(model))
    with pytest.raises(CaptureError, match="test_link_step.py:"):
        step(model, rows()[0][0])


WEIGHT = 1.0


class Scaled(hagane.Chain):
    def __init__(self) -> None:
        super().__init__()
        self.scale = 1.0
        with self.init_scope():
            self.layer = L.Linear(4, 3, initialW=np.full((3, 4), 0.1, "f"))

    def forward(self, x: Any) -> Any:
        return self.layer(x) * self.scale


def weighted(model: Any, x: Any) -> Any:
    return F.sum(model(x) ** 2) * WEIGHT


def test_attributes_and_globals_that_change_between_steps_change_the_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours, theirs = Scaled(), Scaled()
    one, other = (optimizers.SGD(0.01).setup(model) for model in (ours, theirs))
    step = hagane.compile(weighted, one)
    for number in range(4):
        monkeypatch.setitem(globals(), "WEIGHT", (1.0, 2.0, 2.0, 2.0)[number])
        ours.scale = theirs.scale = (1.0, 1.0, 1.0, 3.0)[number]
        x = np.random.RandomState(number).randn(3, 4).astype("f")
        step(ours, x)
        other.update(weighted, theirs, x)
        np.testing.assert_allclose(ours.layer.W.array, theirs.layer.W.array, rtol=1e-5)


class Normalised(hagane.Chain):
    def __init__(self) -> None:
        super().__init__()
        with self.init_scope():
            self.layer, self.norm = L.Linear(4, 3), L.BatchNormalization(3)

    def forward(self, x: Any) -> Any:
        return self.norm(self.layer(x))


def test_running_averages_that_a_step_moves_do_not_compile_it_anew(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model = Normalised()
    step = hagane.compile(lambda m, x: F.mean(m(x) ** 2), optimizers.SGD(0.01).setup(model))
    for number in range(3):
        step(model, np.random.RandomState(number).randn(5, 4).astype("f"))
    assert len(step._programs) == 1
    assert "anew" not in caplog.text


OTHER = Normalised()


def beside(model: Any, x: Any) -> Any:
    return F.mean(OTHER(F.pad(model(x), ((0, 0), (0, 1)), "constant")) ** 2 * OTHER.layer.b)


def test_links_that_only_the_loss_names_are_read_anew_and_their_averages_move() -> None:
    found = []
    for compiled in (True, False):
        np.random.seed(0)
        OTHER.norm.avg_mean[...] = 0
        OTHER.layer.W.array[...] = np.random.RandomState(5).randn(3, 4)
        OTHER.layer.b.array[...] = 0
        model = L.Linear(4, 3)
        optimizer = optimizers.MomentumSGD(0.1).setup(model)
        step = hagane.compile(beside, optimizer) if compiled else None
        for number in range(4):
            x = np.random.RandomState(number).randn(5, 4).astype("f")
            if number == 2:
                OTHER.layer.W.array[...] *= 2
                OTHER.layer.b.array[...] = [1, 2, 3]
            if step is None:
                optimizer.update(beside, model, x)
            else:
                step(model, x)
        found.append((np.array(model.W.array), np.array(OTHER.norm.avg_mean)))
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


def test_weights_without_gradients_decay_as_in_an_update() -> None:
    found = []
    for compiled in (True, False):
        model = hagane.Chain(used=L.Linear(4, 3), idle=L.Linear(4, 3))
        model.idle.W.array[...] = 1
        optimizer = optimizers.MomentumSGD(0.1).setup(model)
        optimizer.add_hook(hagane.optimizer_hooks.WeightDecay(0.5))
        step = hagane.compile(lambda m, x: F.sum(m.used(x)), optimizer) if compiled else None
        for _ in range(3):
            x = np.ones((2, 4), "f")
            if step is None:
                optimizer.update(lambda m, x: F.sum(m.used(x)), model, x)
            else:
                step(model, x)
        found.append(np.array(model.idle.W.array))
    assert found[1].max() < 0.9
    np.testing.assert_allclose(*found, rtol=1e-6)
