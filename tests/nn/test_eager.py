"""Eager calls on programs of the engine give the results of NumPy's kernels."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnxruntime
import pytest

import hagane
import hagane.functions as F  # noqa: N812
import hagane.links as L  # noqa: N812
from hagane import (
    FunctionNode,
    Link,
    Parameter,
    Sequential,
    Variable,
    functions,
    grad,
    link_hooks,
    links,
    optimizers,
    using_config,
)
from hagane.errors import InvalidArgument
from hagane.graph import to_proto
from hagane.nn.eager.dispatch import NATIVE
from hagane.nn.eager.order import Operand, Order, operands_of
from hagane.nn.eager.programs import WORKSHOP, Mode, Workshop, mode_of


@pytest.fixture(autouse=True)
def _nothing_is_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test see the programs of another one."""
    monkeypatch.setattr(WORKSHOP, "_programs", {})
    monkeypatch.setattr(NATIVE, "_prepared", {})


_TOLERANCE = {"float16": 4e-3, "float32": 2e-5, "float64": 1e-10}


def _drawn(dtype: str, *shapes: Sequence[int]) -> list[Any]:
    random = np.random.RandomState(0)
    return [np.asarray(random.randn(*shape), dtype) for shape in shapes]


def _results(
    mode: Mode, monkeypatch: pytest.MonkeyPatch, call: Callable[..., Any], arrays: Sequence[Any]
) -> list[Any]:
    """Return the outputs of a function and the gradients of the sum of its squares."""
    monkeypatch.setattr(WORKSHOP, "mode", mode)
    variables = [Variable(x) for x in arrays]
    y = call(*variables)
    y.grad = np.cos(np.arange(y.size)).reshape(y.shape).astype(y.dtype)
    y.backward()
    return [y.array, *(x.grad for x in variables)]


def _agree(monkeypatch: pytest.MonkeyPatch, call: Callable[..., Any], arrays: Sequence[Any]) -> int:
    """Compare both ways, and return how many programs the second one needed."""
    expected = _results("off", monkeypatch, call, arrays)
    before = sum(not each.refused for each in WORKSHOP.programs())
    found = _results("wait", monkeypatch, call, arrays)
    for a, b in zip(expected, found, strict=True):
        if a is None:
            assert b is None
            continue
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        bound = _TOLERANCE[a.dtype.name] * max(1.0, float(np.abs(a).max(initial=0)))
        np.testing.assert_allclose(a.astype("d"), b.astype("d"), rtol=0, atol=bound)
    return sum(not each.refused for each in WORKSHOP.programs()) - before


def test_a_product_of_odd_sizes_is_computed_by_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = _drawn("float32", (3, 7), (5, 7), (5,))
    made = _agree(monkeypatch, lambda x, w, b: functions.relu(functions.linear(x, w, b)), arrays)
    assert made == 4  # a product and a rectifier, each with its gradient


def test_one_program_serves_all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _agree(monkeypatch, lambda x, y: x * y, _drawn("float32", (3, 7), (3, 7))) <= 2
    assert _agree(monkeypatch, lambda x, y: x * y, _drawn("float32", (30, 77), (30, 77))) == 0


def test_arrays_that_are_not_contiguous_give_the_same_results(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x, y = _drawn("float32", (14, 6), (3, 7))
    _agree(monkeypatch, lambda x, y: x * y, [x[::2, ::2].T, y])


def test_empty_arrays_need_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = _drawn("float32", (0, 7), (5, 7), (5,))
    assert _agree(monkeypatch, functions.linear, arrays) == 0


def test_numpy_serves_until_a_program_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WORKSHOP, "mode", "beside")
    asked: list[Any] = []
    monkeypatch.setattr(Workshop, "ask", lambda self, program: asked.append(program))
    x, y = (Variable(x) for x in _drawn("float32", (300, 2, 71), (300, 2, 71)))
    end = time.monotonic() + 30
    while not asked and time.monotonic() < end:
        z = x - y
    assert [each.order.name for each in asked] == ["Sub"]
    np.testing.assert_array_equal(z.array, x.array - y.array)


def test_operands_share_names_of_equal_sizes_and_keep_those_of_one() -> None:
    x, y = np.zeros((2, 3, 1)), np.zeros((3, 4))
    assert operands_of([x, None, y]) == (
        Operand("float64", ("n0", "n1", 1)),
        None,
        Operand("float64", ("n1", "n2")),
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_of_functions_keep_64_bits_beside_arrays_of_64(
    monkeypatch: pytest.MonkeyPatch, dtype: str
) -> None:
    """Attributes of a model have 32, so that NumPy computes."""
    x = np.array([[-1, 2], [3, -4]], dtype)
    made = _agree(monkeypatch, lambda x: functions.leaky_relu(x, 0.1), [x])
    assert bool(made) == (dtype == "float32")
    monkeypatch.setattr(WORKSHOP, "mode", "wait")
    ones = np.ones(2, dtype)
    y = functions.layer_normalization(np.array([[0, 1e-3]], dtype), ones, ones * 0)
    expected = 5e-4 / np.sqrt(25e-8 + 1e-5)
    assert y.array[0, 1] == pytest.approx(expected, rel=1e-6 if dtype == "float32" else 1e-13)


def test_an_unknown_mode_is_an_error() -> None:
    with pytest.raises(InvalidArgument, match="HAGANE_EAGER: expected 'off', 'wait' or nothing"):
        mode_of({"HAGANE_EAGER": "on"})


def _cross_entropy(x: Any) -> Any:
    labels = np.arange(len(x.array)) % x.shape[1]
    labels[1] = -1
    return functions.softmax_cross_entropy(x, labels.astype("i"))


CASES: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "linear": (functions.linear, ((3, 7), (5, 7), (5,))),
    "cross entropy": (_cross_entropy, ((9, 5),)),
    "broadcast": (lambda x, y: x + functions.broadcast_to(y, x.shape) * 2, ((3, 1, 5), (5,))),
    "scaled": (lambda x: functions.sigmoid(x * 0.5) - 1, ((4, 3, 2),)),
    "convolution": (
        lambda x, w, b: functions.convolution_2d(x, w, b, stride=2, pad=1),
        ((3, 5, 9, 7), (6, 5, 3, 3), (6,)),
    ),
    "pooling": (lambda x: functions.max_pooling_2d(x, 3, 2), ((2, 3, 8, 7),)),
    "normalization": (functions.layer_normalization, ((4, 9), (9,), (9,))),
    "batch": (functions.batch_normalization, ((4, 3, 5, 2), (3,), (3,))),
    "softmax": (lambda x: functions.softmax(x, axis=1), ((2, 5, 3),)),
    "lstm": (lambda c, x: functions.add(*functions.lstm(c, x)), ((3, 5), (3, 20))),
    "stacked": (lambda a, b: functions.matmul(a, b, transb=True), ((2, 3, 4, 5), (2, 3, 6, 5))),
    "mean": (lambda x: functions.average(x, axis=(2, 3)), ((2, 3, 4, 5),)),
}


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("case", CASES)
def test_programs_agree_with_numpy(monkeypatch: pytest.MonkeyPatch, case: str, dtype: str) -> None:
    call, shapes = CASES[case]
    arrays = _drawn(dtype, *shapes)
    if case == "normalization" and dtype == "float16":
        arrays = [x / 4 for x in arrays]
    _agree(monkeypatch, call, arrays)


@pytest.mark.long
def test_training_takes_the_same_steps_with_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {}
    x = np.random.RandomState(1).randn(13, 1, 12, 12).astype("f")
    t = (np.arange(13) % 3).astype("i")
    for mode in ("off", "wait"):
        monkeypatch.setattr(WORKSHOP, "mode", mode)
        np.random.seed(0)
        net = links.Classifier(
            Sequential(
                links.Convolution2D(1, 4, 3),
                functions.relu,
                links.BatchNormalization(4),
                links.Linear(400, 3),
            )
        )
        optimizer = optimizers.MomentumSGD(0.05).setup(net)
        losses = []
        for _ in range(5):
            optimizer.update(net, x, t)
            losses.append(float(net.loss.array))
        found[mode] = losses
    np.testing.assert_allclose(found["off"], found["wait"], rtol=1e-4)
    assert found["off"][-1] < found["off"][0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["SGD", "MomentumSGD", "Adam", "AdamW"])
def test_updates_in_one_pass_equal_those_of_numpy_to_the_bit(
    monkeypatch: pytest.MonkeyPatch, name: str, dtype: str
) -> None:
    found = {}
    options = {"weight_decay_rate": 0.1} if name == "AdamW" else {}
    for mode in ("off", "wait"):
        monkeypatch.setattr(WORKSHOP, "mode", mode)
        link = Link()
        with link.init_scope():
            link.w = Parameter(_drawn(dtype, (77, 13))[0])
        optimizer = getattr(optimizers, name)(**options).setup(link)
        memory = link.w.array
        for step in range(3):
            link.w.grad = np.sin(memory * (step + 1))
            optimizer.update()
        assert link.w.array is memory
        found[mode] = memory
    np.testing.assert_array_equal(found["off"], found["wait"])


def test_a_deterministic_run_is_numpys_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(WORKSHOP, "mode", "beside")
    monkeypatch.setattr(WORKSHOP, "ask", asked.append)
    monkeypatch.setattr("hagane.nn.eager.programs._PATIENCE", 0.0)
    x = Variable(_drawn("float32", (13, 17))[0])
    for deterministic in (True, False):
        with using_config("deterministic", deterministic):
            functions.sum(functions.tanh(x) * x).backward()
        assert bool(asked) is not deterministic


def _link(*arrays: Any) -> Link:
    link = Link()
    with link.init_scope():
        for i, array in enumerate(arrays):
            setattr(link, f"p{i}", Parameter(array))
    return link


def test_parameters_that_one_call_updates_get_what_each_would_get_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = {}
    shapes = ((3, 5), (1,), (300, 700), ())
    for mode in ("off", "wait"):
        monkeypatch.setattr(WORKSHOP, "mode", mode)
        link = _link(*_drawn("float32", *shapes), *_drawn("float64", (7,)))
        optimizer = optimizers.Adam().setup(link)
        link.p1.update_rule.hyperparam.alpha = 0.1
        link.p2.update_rule.add_hook(lambda rule, param: None, name="nothing")
        for _ in range(2):
            for param in link.params():
                param.grad = np.asarray(np.cos(param.array))
            link.p0.grad = np.cos(link.p0.array.T).T  # columns lie together
            optimizer.update()
        found[mode] = [param.array for param in link.params()]
        assert [param.update_rule.t for param in link.params()] == [2] * 5
    for a, b in zip(found["off"], found["wait"], strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_parameter_that_is_there_twice_is_updated_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WORKSHOP, "mode", "wait")
    twin = _link(np.zeros((300, 700), "f"))
    optimizer = optimizers.SGD(1.0).setup(Sequential(twin, twin))
    twin.p0.grad = np.ones((300, 700), "f")
    optimizer.update()
    np.testing.assert_array_equal(twin.p0.array, np.full((300, 700), -2, "f"))


def test_a_rule_of_the_programs_own_is_asked_for_each_parameter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(WORKSHOP, "mode", "wait")

    class Rule(type(optimizers.SGD().create_update_rule())):  # type: ignore[misc]
        def step(self, param: Any, grad: Any) -> None:
            param.array[...] = 5

    link = _link(np.zeros(3, "f"))
    optimizer = optimizers.SGD().setup(link)
    link.p0.update_rule = Rule()
    link.p0.grad = np.ones(3, "f")
    optimizer.update()
    np.testing.assert_array_equal(link.p0.array, [5, 5, 5])


@pytest.mark.long
def test_a_step_of_an_lstm_is_one_program_each_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two layers, whose gradients are first those of a loss, then those of their squares."""
    found = {}
    for mode in ("off", "wait"):
        monkeypatch.setattr(WORKSHOP, "mode", mode)
        np.random.seed(0)
        first, second = links.LSTM(5, 6), links.LSTM(6, 6)
        first.cleargrads(), second.cleargrads()
        xs = [Variable(x) for x in _drawn("float32", (3, 5), (3, 5), (2, 5))]
        ys = [second(first(x)) for x in xs]  # the batch shrinks
        loss = functions.sum(functions.concat(ys, axis=0) ** 2)
        loss.backward()
        gradients = [p.grad for link in (first, second) for p in link.params()]
        gradients += [x.grad for x in xs]
        (again,) = grad([loss], [first.upward.W], enable_double_backprop=True)
        functions.sum(again * again).backward()
        found[mode] = [loss.array, *gradients, first.lateral.W.grad, xs[0].grad]
    made = [each.order.name for each in WORKSHOP.programs() if not each.refused]
    assert {"step_forward", "step_backward"} <= set(made)
    for one, other in zip(found["off"], found["wait"], strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5)


def test_hooks_of_the_links_of_an_lstm_are_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WORKSHOP, "mode", "wait")
    link = links.LSTM(3, 2)
    timer = link_hooks.TimerHook()
    x = np.ones((1, 3), "f")
    link(x)
    link.lateral.add_hook(timer)
    link(x)
    assert [name for name, _ in timer.call_history] == ["Linear"]


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("kind", [_Terminal, io.StringIO])
def test_a_terminal_shows_how_many_programs_are_compiled(
    monkeypatch: pytest.MonkeyPatch, kind: type[io.StringIO]
) -> None:
    shown = kind()
    monkeypatch.setattr("sys.stderr", shown)
    monkeypatch.setattr(Workshop, "_found", lambda self, order: None)
    workshop = Workshop("beside")
    order = Order("operator", "", "Relu", (), operands_of([np.zeros(2)]), 1)
    one = workshop.program(order)
    workshop.ask(one)
    end = time.monotonic() + 30
    while workshop.left() and time.monotonic() < end:
        threading.Event().wait(0.001)
    assert one.refused
    texts = [each.removeprefix("\r\x1b[2K") for each in shown.getvalue().split("\r") if each]
    wanted = ["hagane: 0 of 1 kernels compiled", ""] if kind is _Terminal else []
    assert [each.removeprefix("\x1b[2K") for each in texts] == wanted


class _Sum(FunctionNode):
    """A sum of the program's own, which hands one gradient to both terms."""

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        return (inputs[0] + inputs[1],)

    def backward(self, indexes: Any, gradients: tuple[Any, ...]) -> tuple[Any, ...]:
        return gradients[0], gradients[0]


def test_sums_of_gradients_change_none_that_another_function_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def call(x: Any) -> Any:
        a, b = functions.sigmoid(x), functions.tanh(x)
        (own,) = _Sum().apply((a, b))
        added = functions.relu(own) + a + b
        return functions.exp(a) * added + functions.sin(b) + functions.reshape(a, a.shape)

    _agree(monkeypatch, call, _drawn("float32", (5, 7)))


def test_a_trace_records_what_programs_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WORKSHOP, "mode", "wait")
    cell, norm, out = L.LSTM(4, 8), L.LayerNormalization(8), L.NStepGRU(1, 8, 3, 0.0)

    def run(x: Any) -> Any:
        cell.reset_state()
        for step in range(2):
            h = cell(x + step)
        return F.logsumexp(norm(h), axis=1), out(None, [F.gelu(h)])[1][0]

    x = np.random.standard_normal((5, 4)).astype(np.float32)
    for _ in range(3):  # until the programs are there
        run(hagane.Variable(x))
    model = hagane.trace(run, x)
    found = onnxruntime.InferenceSession(to_proto(model).SerializeToString()).run(None, {"x0": -x})
    for ours, theirs in zip(found, run(hagane.Variable(-x)), strict=True):
        np.testing.assert_allclose(ours, theirs.array, rtol=1e-4, atol=1e-5)
