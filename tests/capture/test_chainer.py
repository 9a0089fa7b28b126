"""Chainer's functions, links and chains as graphs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

import hagane
import hagane.functions as F  # noqa: N812
import hagane.links as L  # noqa: N812
from hagane.errors import CaptureError, InvalidArgument
from hagane.frontends.libraries.chainer import CHAINER
from hagane.frontends.libraries.chainer.meant import MEANT
from hagane.frontends.libraries.chainer.uncomputed import UNCOMPUTED
from hagane.graph import to_proto

from .chainer_meanings import EXPRESSIONS, outcomes, shown
from .test_meanings import drawn

pytestmark = pytest.mark.filterwarnings("ignore")
PYTHON = os.environ.get("HAGANE_CHAINER_PYTHON", "")


def test_a_share_of_the_expressions_computes_what_hagane_does_eagerly(tmp_path: Path) -> None:
    told = dict(outcomes(drawn(EXPRESSIONS, 15), tmp_path, trusting=False))
    assert {text: one for text, (one, _) in told.items() if one.startswith("wrong")} == {}
    assert sum(one == "right" for one, _ in told.values()) > 0.8 * len(told)


@pytest.mark.long
def test_the_list_of_names_is_what_chainer_shows(tmp_path: Path) -> None:
    if not PYTHON:
        pytest.skip(
            "HAGANE_CHAINER_PYTHON names no Python with Chainer: tests/outside/chainer_oracle.py "
            "says how to make one"
        )
    found = dict(outcomes(EXPRESSIONS, tmp_path, python=PYTHON))
    assert {text: one for text, (one, _) in found.items() if one.startswith("wrong")} == {}
    names = shown(found.values())
    assert sorted(MEANT - names) == []
    assert sorted(names - MEANT) == []


def test_each_function_and_link_is_computed_or_says_why_not() -> None:
    functions = {name for name in CHAINER.functions if name.startswith("chainer.functions.")}
    links = {f"{name}.forward" for name in CHAINER.layers if name.startswith("chainer.links.")}
    handlers = {CHAINER.functions[n] for n in MEANT if n in CHAINER.functions}
    computed = {n for n in functions if n in MEANT or CHAINER.functions[n] in handlers}
    classes = {CHAINER.layers[n.rpartition(".")[0]] for n in MEANT if n.endswith(".forward")}
    computed |= {n for n in links if CHAINER.layers[n.rpartition(".")[0]] in classes}
    assert sorted((functions | links) - computed - UNCOMPUTED.keys()) == []
    assert sorted(UNCOMPUTED.keys() & computed) == []


def test_a_name_that_is_not_computed_says_why() -> None:
    with pytest.raises(CaptureError, match=r"'chainer.functions.zeta' cannot be captured: no oper"):
        hagane.capture(lambda x: F.zeta(F.identity(x), x), "float32[3]")


class Net(hagane.Chain):
    def __init__(self) -> None:
        super().__init__()
        with self.init_scope():
            self.conv = L.Convolution2D(3, 4, 3, pad=1)
            self.bn = L.BatchNormalization(4)
            self.rows = hagane.ChainList(L.Linear(None, 5), L.Linear(5, 2))

    def forward(self, x: Any) -> Any:
        x = F.max_pooling_2d(F.relu(self.bn(self.conv(x))), 2)
        x = F.dropout(F.mean(x, axis=(2, 3)))
        for row in self.rows:
            x = F.leaky_relu(row(x))
        return x


def run(model: Any, *inputs: Any) -> list[Any]:
    session = onnxruntime.InferenceSession(to_proto(model).SerializeToString())
    names = [value.name for value in session.get_inputs()]
    return list(session.run(None, dict(zip(names, inputs, strict=True))))


def image(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def made() -> Net:
    net = Net()
    net(image(2, 3, 8, 8))
    net.bn.avg_var[...] = np.arange(1, 5)
    net.bn.gamma.array[...] = np.arange(1, 5)
    return net


def test_a_chain_is_a_model_for_any_sizes_with_its_parameters_under_their_paths() -> None:
    net = made()
    with hagane.using_config("train", False):
        model = hagane.capture(net, "float32[batch, 3, height, width]")
        assert {"conv.W", "conv.b", "bn.gamma", "bn.avg_mean", "rows.0.W", "rows.1.b"} <= set(
            model.graph.initializers
        )
        for shape in ((2, 3, 8, 8), (1, 3, 7, 5), (3, 3, 9, 12)):
            x = image(*shape)
            assert np.allclose(run(model, x)[0], net(x).array, rtol=1e-4, atol=1e-5)


def test_in_training_a_batch_is_normalised_by_its_own_moments() -> None:
    link = L.BatchNormalization(4)
    x = image(6, 4)
    with hagane.using_config("train", True):
        found, *moved = run(
            hagane.capture(link, "float32[batch, 4]"), x, link.avg_mean, link.avg_var
        )
        assert np.allclose(found, link(x).array, atol=1e-5)
    for got, want in zip(moved, (link.avg_mean, link.avg_var), strict=True):
        assert np.allclose(got, want, atol=1e-6)
    with hagane.using_config("train", False):
        (other,) = run(hagane.capture(link, "float32[batch, 4]"), x)
    assert not np.allclose(found, other, atol=1e-3)


def test_dropout_in_training_is_refused_with_the_remedy() -> None:
    with hagane.using_config("train", True), pytest.raises(CaptureError) as found:
        hagane.capture(made(), "float32[batch, 3, 8, 8]")
    assert "using_config('train', False)" in str(found.value)


@pytest.mark.parametrize(
    ("root", "text", "shape"),
    [
        (L.Linear(3, 4), "float32[batch, 3]", (5, 3)),
        (L.Convolution2D(3, 4, 3, stride=2), "float32[batch, 3, h, w]", (2, 3, 9, 6)),
        (F.softmax, "float32[batch, 3]", (5, 3)),
        (hagane.Sequential(L.Linear(3, 4), F.relu, L.Linear(4, 2)), "float32[batch, 3]", (5, 3)),
        (hagane.Sequential(L.Linear(3, 4), F.tanh).repeat(1), "float32[batch, 3]", (1, 3)),
    ],
)
def test_links_and_functions_alone_are_models(root: Any, text: str, shape: Any) -> None:
    x = image(*shape)
    (found,) = run(hagane.capture(root, text), x)
    assert np.allclose(found, root(x).array, rtol=1e-4, atol=1e-5)


def test_the_parameters_of_a_link_are_called_by_their_paths() -> None:
    link = hagane.Sequential(L.Linear(3, 4), F.relu, L.Linear(4, 2, nobias=True))
    model = hagane.capture(link, "float32[batch, 3]")
    assert list(model.graph.initializers) == ["0.W", "0.b", "1.W"]


def test_a_class_stands_for_a_new_object() -> None:
    class Small(hagane.Chain):
        def __init__(self) -> None:
            super().__init__()
            with self.init_scope():
                self.row = L.Linear(3, 2)

        def forward(self, x: Any) -> Any:
            return self.row(x)

    assert set(hagane.capture(Small, "float32[n, 3]").graph.initializers) == {"row.W", "row.b"}
    with pytest.raises(InvalidArgument, match=r"Linear\(\) cannot be made: .*give an object"):
        hagane.capture(L.Linear, "float32[n, 3]")


def test_parameters_without_sizes_are_refused_with_the_remedy() -> None:
    with pytest.raises(CaptureError, match="call the link once before it is captured"):
        hagane.capture(L.Linear(4), "float32[batch, 3]")


def test_a_wrong_input_of_a_link_is_refused_by_the_checker() -> None:
    with pytest.raises(CaptureError, match="expected 3 features, got 5"):
        hagane.capture(L.Linear(3, 4), "float32[batch, 5]")


def test_a_state_is_an_input_and_an_output() -> None:
    link = L.LSTM(3, 4)
    link(image(2, 3))
    c, h = link.c.array.copy(), link.h.array.copy()
    model = hagane.capture(link, "float32[2, 3]")
    assert {value.name for value in model.graph.inputs} == {"x", "h", "c"}
    assert {value.name for value in model.graph.outputs} == {"output", "h.new", "c.new"}
    x = image(2, 3) * 2
    session = hagane.InferenceSession(to_proto(model).SerializeToString())
    y, new_c, new_h = session.run(["output", "c.new", "h.new"], {"x": x, "c": c, "h": h})
    assert np.allclose(y, link(x).array, atol=1e-5)
    assert np.allclose(new_c, link.c.array, atol=1e-5)
    assert np.allclose(new_h, link.h.array, atol=1e-5)


def test_sequences_of_any_lengths_are_read_by_one_node_a_layer() -> None:
    link = L.NStepBiLSTM(2, 3, 4, 0.0)

    def call(first: Any, second: Any) -> Any:
        return link(None, None, [first, second])

    model = hagane.capture(call, "float32[m, 3]", "float32[n, 3]")
    assert sum(node.op_type == "LSTM" for node in model.graph) == 2
    for lengths in ((5, 2), (1, 4), (3, 3)):
        xs = [image(length, 3) for length in lengths]
        hy, cy, ys = link(None, None, xs)
        expected = [hy, cy, *ys]
        for ours, theirs in zip(run(model, *xs), expected, strict=True):
            assert np.allclose(ours, theirs.array, rtol=1e-4, atol=1e-5)
