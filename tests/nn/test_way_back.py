"""The way back of a step that comes again is one program: its gradients are those of functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hagane import (
    FunctionNode,
    Parameter,
    Sequential,
    Variable,
    function_hooks,
    functions,
    grad,
    links,
    optimizers,
    using_config,
)
from hagane.nn.autograd.way_back import WAYS, Known
from hagane.nn.eager.dispatch import NATIVE
from hagane.nn.eager.programs import WORKSHOP, Workshop
from hagane.nn.eager.way import Way


@pytest.fixture(autouse=True)
def _nothing_is_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WORKSHOP, "_programs", {})
    monkeypatch.setattr(WORKSHOP, "mode", "wait")
    monkeypatch.setattr(NATIVE, "_prepared", {})
    monkeypatch.setattr(WAYS, "_known", {})


def _drawn(*shapes: tuple[int, ...], dtype: str = "float32") -> list[Any]:
    random = np.random.RandomState(0)
    return [random.randn(*shape).astype(dtype) for shape in shapes]


def _known() -> list[Known]:
    return [each for each in WAYS._known.values() if each.program is not None]


def _is_one_program() -> bool:
    return any(each.program is not None and each.program.run is not None for each in _known())


def _steps(
    monkeypatch: pytest.MonkeyPatch, loss: Callable[..., Any], arrays: list[Any], n: int = 4
) -> list[list[Any]]:
    """Return the gradients of each of some steps, after those of NumPy alone."""
    found = []
    for mode in ("off", *["wait"] * n):
        monkeypatch.setattr(WORKSHOP, "mode", mode)
        xs = [Variable(x) for x in arrays]
        y = loss(*xs)
        y.grad = np.cos(np.arange(y.size)).reshape(y.shape).astype(y.dtype)
        y.backward()
        found.append([x.grad for x in xs])
    return found


def _agree(monkeypatch: pytest.MonkeyPatch, loss: Callable[..., Any], arrays: list[Any]) -> None:
    expected, *found = _steps(monkeypatch, loss, arrays)
    for row in found:
        for a, b in zip(expected, row, strict=True):
            if a is None:
                assert b is None
                continue
            assert a.dtype == b.dtype
            assert a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol=0, atol=2e-5 * max(1.0, np.abs(a).max()))


def _mixed(x: Any, w: Any, b: Any) -> Any:
    """Operands that are shared, shapes and axes, a mask, a result that nobody reads."""
    h = functions.linear(x, w, b)
    mask = (np.arange(h.size).reshape(h.shape) % 3 > 0).astype("f")
    h = functions.relu(h) * mask + h * h * 0.5
    first, _ = functions.split_axis(h, 2, axis=1)
    h = functions.transpose(functions.reshape(first, (3, 2, 2)), (0, 2, 1))
    h = functions.softmax(h, axis=2) + functions.sum(b)
    h = functions.maximum(h, functions.reshape(functions.min(x, axis=1), (3, 1, 1)))
    return functions.average(h, axis=0) - functions.max(x)


@pytest.mark.long
def test_a_step_that_comes_again_goes_back_by_one_program(monkeypatch: pytest.MonkeyPatch) -> None:
    _agree(monkeypatch, _mixed, _drawn((3, 5), (8, 5), (8,)))
    assert _is_one_program()


def test_terms_of_a_sum_have_gradients_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def loss(x: Any, y: Any) -> Any:
        return functions.sum(functions.reshape(x + y, (15,)))

    *_, (a, b) = _steps(monkeypatch, loss, _drawn((3, 5), (3, 5)))
    assert _is_one_program()
    a += 1
    np.testing.assert_array_equal(b, np.ones((3, 5), "f"))


@pytest.mark.parametrize(
    "key", [0, -1, slice(None, None, -2), (..., 1), (slice(1, 3), None, -1), (slice(5, 0, -3), ...)]
)
def test_elements_by_numbers_and_slices_are_part_of_a_way(
    monkeypatch: pytest.MonkeyPatch, key: Any
) -> None:
    _agree(monkeypatch, lambda x: functions.tanh(x[key]) * x[key], _drawn((4, 3)))
    assert _is_one_program()


def test_elements_by_arrays_go_the_long_way(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = np.array([0, 2, 2])
    _agree(monkeypatch, lambda x: functions.tanh(x[chosen]), _drawn((4, 3)))
    assert not _known()


def _loss(w: Any, x: Any) -> Any:
    return functions.sum(functions.tanh(functions.matmul(x, w)))


def _x(rows: int = 2) -> Any:
    return _drawn((rows, 4))[0] / 4


def _gone(w: Any, x: Any, times: int = 3) -> None:
    for _ in range(times):
        w.cleargrad()
        _loss(w, x).backward()


def test_gradients_are_added_to_those_that_are_there() -> None:
    w, x = Parameter(_drawn((4, 3))[0]), _x()
    _gone(w, x)
    once = w.grad.copy()
    _loss(w, x).backward()
    assert _is_one_program()
    np.testing.assert_allclose(w.grad, 2 * once, rtol=1e-6)


def test_a_scale_of_the_loss_is_noted() -> None:
    w, x = Parameter(_drawn((4, 3))[0]), _x()
    _gone(w, x)
    once = w.grad.copy()
    w.cleargrad()
    _loss(w, x).backward(loss_scale=8.0)
    np.testing.assert_allclose(w.grad, 8 * once, rtol=1e-6)
    assert w._loss_scale == 8.0


def test_other_sizes_go_the_long_way() -> None:
    w = Parameter(_drawn((4, 3))[0])
    _gone(w, _x())
    x = _x(7)
    _gone(w, x, 1)
    expected = x.T @ (1 - np.tanh(x @ w.array) ** 2)
    np.testing.assert_allclose(w.grad, expected, atol=2e-6)
    assert len(_known()) == 1


def test_gradients_between_are_kept_on_request() -> None:
    w, x = Parameter(_drawn((4, 3))[0]), _x()
    _gone(w, x)
    h = functions.matmul(x, w)
    functions.sum(functions.tanh(h)).backward(retain_grad=True)
    np.testing.assert_allclose(h.grad, 1 - np.tanh(h.array) ** 2, atol=2e-6)


def test_hooks_see_each_function_of_a_way_that_has_a_program() -> None:
    w, x = Parameter(_drawn((4, 3))[0]), _x()
    _gone(w, x)
    with function_hooks.TimerHook() as timer:
        _gone(w, x, 1)
    names = [name for name, _ in timer.call_history]
    assert names[:3] == ["MatMul", "Tanh", "Sum"]
    assert {"MatMul", "Tanh", "Sum"} <= set(names[3:])
    y = _loss(w, x)
    timer = function_hooks.TimerHook()
    y.creator.add_hook(timer)
    y.backward()
    assert [name for name, _ in timer.call_history] == ["Sum"]


def test_gradients_are_differentiated_again_after_a_way_has_a_program() -> None:
    w, x = Parameter(_drawn((4, 3))[0]), _x()
    _gone(w, x)
    y = _loss(w, x)
    y.backward(enable_double_backprop=True)
    (second,) = grad([functions.sum(w.grad_var)], [w])
    t = np.tanh(x @ w.array)
    np.testing.assert_allclose(
        second.array, x.T @ (x.sum(axis=1, keepdims=True) * -2 * t * (1 - t**2)), atol=2e-6
    )


def test_the_debug_mode_names_the_function_of_a_way_that_has_a_program() -> None:
    w, x = Parameter(_drawn((4, 3))[0]), _x()
    _gone(w, x)
    assert _is_one_program()
    with using_config("debug", True):
        h = functions.matmul(x, w)
        y = functions.sum(functions.tanh(h))
        x[...] = 0
        with pytest.raises(RuntimeError, match="in place"):
            y.backward()


class _Square(FunctionNode):
    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        self.retain_inputs((0,))
        return (inputs[0] ** 2,)

    def backward(self, indexes: Any, gradients: tuple[Any, ...]) -> tuple[Any, ...]:
        return (gradients[0] * 2 * self.get_retained_inputs()[0],)


def test_functions_of_the_programs_own_go_the_long_way() -> None:
    w, x = Parameter(_drawn((4, 3))[0]), _x()
    for _ in range(4):
        w.cleargrad()
        functions.sum(_Square().apply((functions.matmul(x, w),))[0]).backward()
        np.testing.assert_allclose(w.grad, 2 * x.T @ (x @ w.array), atol=2e-6)
    assert not _known()


def test_an_array_that_was_replaced_is_read() -> None:
    w, x = Parameter(_drawn((4, 3))[0]), _x()
    _gone(w, x)
    y = _loss(w, x)
    w.array = np.zeros((4, 3), "f")
    w.cleargrad()
    v = Variable(np.ones((4, 3), "f"))
    y.backward()
    assert v.grad is None
    assert w.grad.shape == (4, 3)


def test_a_cut_in_the_computation_stays_one() -> None:
    w, x = Parameter(_drawn((4, 3))[0]), _x()
    for cut in (False, False, False, True):
        w.cleargrad()
        h = functions.matmul(x, w)
        if cut:
            h.unchain()
        functions.sum(functions.tanh(h)).backward()
        assert (w.grad is None) == cut


@pytest.mark.parametrize("deterministic", [True, False])
def test_a_program_is_asked_for_once_it_pays(
    monkeypatch: pytest.MonkeyPatch, deterministic: bool
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(WORKSHOP, "mode", "beside")
    monkeypatch.setattr(Workshop, "ask", lambda self, program: asked.append(program))
    monkeypatch.setattr("hagane.nn.autograd.way_back._PATIENCE", 1e9)
    w, x = Parameter(_drawn((4, 3))[0]), _x()
    with using_config("deterministic", deterministic):
        _gone(w, x, 5)
        assert not [each for each in asked if isinstance(each.order, Way)]
        monkeypatch.setattr("hagane.nn.autograd.way_back._PATIENCE", 0.0)
        _gone(w, x, 5)
    ways = [each for each in asked if isinstance(each.order, Way)]
    assert len(ways) == (0 if deterministic else 1)


@pytest.mark.long
def test_training_takes_the_same_steps_by_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {}
    x = np.random.RandomState(1).randn(6, 1, 8, 8).astype("f")
    t = (np.arange(6) % 3).astype("i")
    for mode in ("off", "wait"):
        monkeypatch.setattr(WORKSHOP, "mode", mode)
        np.random.seed(0)
        net = links.Classifier(
            Sequential(
                links.Convolution2D(1, 4, 3),
                links.BatchNormalization(4),
                functions.relu,
                lambda h: functions.max_pooling_2d(h, 2),
                links.Linear(36, 3),
            )
        )
        optimizer = optimizers.MomentumSGD(0.05).setup(net)
        losses = []
        for _ in range(5):
            optimizer.update(net, x, t)
            losses.append(float(net.loss.array))
        found[mode] = losses
    assert _is_one_program()
    np.testing.assert_allclose(found["off"], found["wait"], rtol=1e-4)
    assert found["off"][-1] < found["off"][0]
