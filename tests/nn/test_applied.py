"""Calls of functions of the library, as hooks, ``creator``, ``rank`` and drawings show them."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hagane as chainer
import hagane.functions as F  # noqa: N812
import hagane.links as L  # noqa: N812
from hagane import function_hooks
from tests.nn.labelled import lines

TABLE = Path(__file__).with_name("chainer_labels.txt").read_text().splitlines()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", range(0, len(TABLE), 40))
def test_calls_look_to_programs_as_chainers_do(first: int) -> None:
    rows = TABLE[first : first + 40]
    assert list(lines([row.split("\t")[0] for row in rows], chainer)) == rows


def _model() -> tuple[Any, Any, Any]:
    random = np.random.RandomState(0)
    model = chainer.Sequential(L.Linear(3, 4), F.relu, L.Linear(4, 2))
    x = chainer.Variable(random.randn(5, 3).astype("f"))
    return model, x, np.array([0, 1, 1, 0, 1], "i")


class _Grads(chainer.FunctionHook):
    """The gradients of each function's outputs, and the inputs that it retained."""

    name = "Grads"

    def __init__(self) -> None:
        self.seen: list[tuple[str, list[Any]]] = []

    def backward_postprocess(self, function: Any, in_data: Any, out_grad: Any) -> None:
        self.seen.append((function.label, [None if g is None else g.copy() for g in out_grad]))


def test_a_hook_sees_the_gradients_of_calls_and_leaves_them_as_they_are() -> None:
    model, x, t = _model()
    model.cleargrads()
    F.softmax_cross_entropy(model(x), t).backward()
    plain = [p.grad.copy() for p in model.params()]
    model.cleargrads()
    h = F.relu(model[0](x))
    loss = F.softmax_cross_entropy(model[2](h), t)
    with _Grads() as hook:
        loss.backward(retain_grad=True)
    expected = ["SoftmaxCrossEntropy", "LinearFunction", "ReLU", "LinearFunction"]
    assert [label for label, _ in hook.seen] == expected
    np.testing.assert_allclose(hook.seen[2][1][0], h.grad, rtol=1e-6)
    for before, p in zip(plain, model.params(), strict=True):
        np.testing.assert_allclose(p.grad, before, rtol=1e-5, atol=1e-7)


def test_a_hook_of_one_call_sees_that_alone_though_it_is_many_operators() -> None:
    x = chainer.Variable(np.random.RandomState(0).randn(4, 3).astype("f"))
    y = F.layer_normalization(x * 2, np.ones(3, "f"), np.zeros(3, "f"))
    assert y.creator.label == "LayerNormalization"
    timer = function_hooks.TimerHook()
    y.creator.add_hook(timer)
    F.sum(F.square(y)).backward()
    assert [name for name, _ in timer.call_history] == ["LayerNormalization"]
    assert np.isfinite(x.grad).all()
    (gx,) = chainer.grad([F.sum(F.square(y))], [x])
    np.testing.assert_allclose(gx.array, x.grad, rtol=1e-5, atol=1e-6)


def test_second_derivatives_are_the_same_under_a_hook() -> None:
    x = chainer.Variable(np.random.RandomState(1).randn(4, 3))

    def second() -> Any:
        y = F.sum(F.softmax(F.tanh(x)) ** 3)
        (gx,) = chainer.grad([y], [x], enable_double_backprop=True)
        (gxx,) = chainer.grad([F.sum(gx * gx)], [x])
        return gxx.array

    plain = second()
    with function_hooks.TimerHook() as timer:
        np.testing.assert_allclose(second(), plain, rtol=1e-12, atol=1e-14)
    assert {"Softmax", "Tanh", "PowVarConst", "Sum"} <= set(timer.summary())


def test_creators_lead_back_from_call_to_call() -> None:
    model, x, t = _model()
    loss = F.softmax_cross_entropy(model(x), t)
    names, node = [], loss.node
    while node.creator is not None:
        names.append(node.creator.label)
        node = node.creator.inputs[0]
    assert names == ["SoftmaxCrossEntropy", "LinearFunction", "ReLU", "LinearFunction"]
    assert node is x.node
    assert (loss.creator.rank, loss.rank) == (3, 4)
    assert loss.creator is loss.creator_node is loss.node.creator_node
    assert loss.creator.inputs[1].label == "(5), int32"
    assert loss.creator.outputs[0]() is loss.node


def test_calls_keep_nothing_alive_that_a_program_dropped() -> None:
    x = chainer.Variable(np.ones((4, 3), "f"))
    gc.disable()
    try:
        y = F.group_normalization(x.reshape(2, 6, 1), 2, np.ones(6, "f"), np.zeros(6, "f"))
        held = weakref.ref(y.node._creator_node)
        assert y.creator.label == "GroupNormalization"
        assert y.rank == 2
        del y
        assert held() is None
    finally:
        gc.enable()


def test_times_are_reported_under_the_names_of_chainers_classes(capsys: Any) -> None:
    model, x, t = _model()
    with function_hooks.TimerHook() as timer:
        loss = F.softmax_cross_entropy(model(x), t)
    assert {name: entry["occurrence"] for name, entry in timer.summary().items()} == {
        "LinearFunction": 2,
        "ReLU": 1,
        "SoftmaxCrossEntropy": 1,
    }
    with timer:
        loss.backward()
    timer.print_report()
    assert "SoftmaxCrossEntropy" in capsys.readouterr().out
    assert timer.summary()["ReLU"]["occurrence"] == 2


def test_a_program_that_builds_a_graph_itself_sets_ranks_and_creators() -> None:
    class Maker(chainer.Function):
        pass

    function = Maker()
    function.node.rank = 10
    x, y = chainer.Variable(np.ones(2, "f")), chainer.Variable(np.ones(2, "f"))
    x.set_creator(function)
    y.set_creator_node(function.node)
    assert x.creator is function
    assert y.creator_node is function.node
    assert x.rank == y.rank == 11
