"""Compiled links: variables in and out, weights that change, gradients, settings, hooks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hagane
import hagane.functions as F  # noqa: N812
import hagane.links as L  # noqa: N812

pytestmark = pytest.mark.filterwarnings("ignore::hagane.CompileNotice")
RATE = np.float64(0.5)


class Net(hagane.Chain):
    def __init__(self, width: int = 4) -> None:
        super().__init__()
        with self.init_scope():
            self.lin = L.Linear(3, width, initialW=0.5)
            self.norm = L.BatchNormalization(width)

    def forward(self, x: Any) -> Any:
        return F.tanh(self.norm(self.lin(x)))


@pytest.fixture(autouse=True)
def _in_use() -> Any:
    with hagane.using_config("train", False):
        yield


def rows(count: int = 2) -> Any:
    return np.linspace(-1, 1, 3 * count, dtype="f").reshape(count, 3)


@pytest.mark.parametrize("width", [2, 3000])
def test_weights_are_those_of_the_moment(width: int) -> None:
    net = Net(width)
    compiled, x = hagane.compile(net), rows()

    def agree() -> None:
        found = compiled(x)
        assert type(found) is hagane.Variable
        np.testing.assert_allclose(found.array, net(x).array, rtol=1e-5, atol=1e-6)

    agree()
    net.lin.W.array[...] = 2
    agree()
    net.lin.b.array = np.ones(width, "f")
    net.norm.avg_mean[...] = 0.25
    agree()
    net.lin.W = hagane.Parameter(np.full((width, 3), 0.3, "f"))
    agree()
    net.lin.W.array = np.ones((width, 3))
    assert compiled(x).dtype == net(x).dtype


def test_variables_go_in_and_gradients_come_back() -> None:
    net = Net()
    compiled = hagane.compile(net, fullgraph=True)
    found = []
    for model in (net, compiled):
        net.cleargrads()
        x = hagane.Variable(rows() + np.float32(0.5))
        F.sum(model(x) ** 2).backward()
        found.append([x.grad, net.lin.W.grad, net.lin.b.grad, net.norm.gamma.grad])
    for expected, gradient in zip(*found, strict=True):
        assert np.abs(expected).max() > 0
        np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-6)
    with hagane.no_backprop_mode():
        assert not compiled(hagane.Variable(rows())).requires_grad


def test_another_setting_is_another_graph() -> None:
    net = Net()
    compiled, x = hagane.compile(net), rows(4)
    with hagane.no_backprop_mode():
        for train in (False, True, False):
            with hagane.using_config("train", train):
                np.testing.assert_allclose(
                    compiled(x).array, net(x).array, rtol=1e-4, atol=1e-5, err_msg=str(train)
                )


class Doubled(hagane.LinkHook):
    name = "Doubled"

    def forward_postprocess(self, args: Any) -> None:
        args.out.array[...] *= 2


def test_hooks_of_links_run_in_python() -> None:
    net = Net()
    compiled, x = hagane.compile(net), rows()
    before = compiled(x).array
    net.lin.add_hook(Doubled())
    with pytest.warns(hagane.CompileNotice, match=r"the Linear has a hook \(Doubled\)"):
        found = compiled(x).array
    np.testing.assert_array_equal(found, net(x).array)
    assert np.abs(found - before).max() > 0.01
    net.lin.delete_hook("Doubled")
    with Doubled():
        np.testing.assert_array_equal(compiled(x).array, net(x).array)
    np.testing.assert_allclose(compiled(x).array, before, rtol=1e-6)


def test_links_that_are_added_are_seen() -> None:
    class Many(hagane.Chain):
        def forward(self, x: Any) -> Any:
            for _ in self.children():
                x = x + 1
            return x

    net = Many(first=L.Linear(2, 2))
    compiled, x = hagane.compile(net), rows()
    np.testing.assert_array_equal(compiled(x), x + 1)
    net.add_link("second", L.Linear(2, 2))
    np.testing.assert_array_equal(compiled(x), x + 2)


def scaled(x: Any) -> Any:
    return x * RATE


def test_a_global_float64_is_a_number_of_numpy() -> None:
    found = hagane.compile(scaled, fullgraph=True)(np.ones(3, "f"))
    assert found.dtype == scaled(np.ones(3, "f")).dtype == np.float64


def test_arrays_without_axes_stay_arrays_and_scalars_scalars() -> None:
    def program(x: Any) -> Any:
        return x.reshape(()), x.sum(), np.where(x.sum() > 0, 1.0, 2.0)

    x = np.ones(1, "f")
    found = hagane.compile(program, fullgraph=True)(x)
    assert [type(value) for value in found] == [type(value) for value in program(x)]


def test_another_order_of_bytes_runs_in_python() -> None:
    x = np.ones(3, ">f4")
    with pytest.warns(hagane.CompileNotice, match="another order of bytes"):
        found = hagane.compile(lambda x: x)(x)
    assert found.dtype == x.dtype
