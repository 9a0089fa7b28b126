"""Models from recorded calls, and from PyTorch's own exporter."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import nn

import hagane
import hagane.functions as F  # noqa: N812
import hagane.links as L  # noqa: N812
from hagane.graph import to_proto
from hagane.ops.builder import op


class Perceptron(hagane.Chain):
    def __init__(self) -> None:
        super().__init__()
        with self.init_scope():
            self.l1 = L.Linear(3, 4)
            self.l2 = L.Linear(4, 2)

    def forward(self, x: Any) -> Any:
        h = self.l1(x)
        return {"y": self.l2(F.relu(h)), "p": (F.softmax(h), None)}


def test_a_recorded_call_is_a_model_with_the_names_of_its_parameters() -> None:
    link = Perceptron()
    x = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
    model = hagane.trace(link, x)
    assert [v.name for v in model.graph.inputs] == ["x0"]
    assert [v.name for v in model.graph.outputs] == ["y", "p.0"]
    assert {"l1.W", "l1.b", "l2.W", "l2.b"} <= model.graph.initializers.keys()
    proto = to_proto(model)
    onnx.checker.check_model(proto, full_check=True)
    found = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x0": x + 1})
    expected = link(x + 1)
    np.testing.assert_allclose(found[0], expected["y"].array, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found[1], expected["p"][0].array, rtol=1e-5, atol=1e-6)


def arranged(x: Any) -> Any:
    rows = F.stack([row * 2 for row in x])
    return {
        "parts": (x[:, 1], x[::-2], x[..., None, 0], x[-1], x[1:1]),
        "chosen": (x[[2, 0, 0]], x[np.array([[1, 2], [0, 1]]), 1], x[np.array([1, 0, 1], bool)]),
        "rows": rows[:, ::-1],
        "added": F.scatter_add(x, (slice(None), 1), x[:, 0]),
    }


def computed(x: Any) -> Any:
    y = x[::-1] * 0.5
    return {
        "extremes": (F.max(x, axis=1), F.min(x), F.maximum(x, y), F.minimum(x, y)),
        "places": (F.argmax(x, axis=1), F.argmin(x)),
        "products": (F.prod(x, axis=0), F.cumprod(x, axis=1), F.cumprod(x)),
        "numbers": (F.log1p(F.absolute(x)), F.expm1(x), F.erfc(x), F.ndtr(x), F.arctan2(x, y)),
        "waves": F.fft((x, y)),
        "maxout": F.maxout(x, 2),
    }


class Recurrent(hagane.Chain):
    def __init__(self) -> None:
        super().__init__()
        with self.init_scope():
            self.first, self.second = L.LSTM(4, 3), L.StatefulGRU(3, 2)

    def forward(self, x: Any) -> Any:
        self.first.reset_state()
        self.second.reset_state()
        return F.vstack([self.second(self.first(x + step)) for step in range(3)])


class Tripled(hagane.FunctionNode):
    """A function of the program's own, with its operators."""

    def forward(self, inputs: Any) -> Any:
        return (inputs[0] * 3,)

    def operators(self, *inputs: Any) -> Any:
        return [op("Mul", inputs[0], np.float32(3))]


@pytest.mark.parametrize(
    "function", [arranged, computed, Recurrent(), lambda x: Tripled().apply((F.exp(x),))[0]]
)
def test_what_functions_compute_on_arrays_is_written_in_operators(function: Any) -> None:
    x = np.random.standard_normal((3, 4)).astype(np.float32)
    proto = to_proto(hagane.trace(function, x))
    onnx.checker.check_model(proto, full_check=True)
    found = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x0": -x})
    result = function(hagane.Variable(-x))
    parts = result.values() if isinstance(result, dict) else [result]
    expected = [y for part in parts for y in (part if isinstance(part, tuple) else (part,))]
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        np.testing.assert_allclose(ours, theirs.array, rtol=1e-5, atol=1e-5)


def past(x: Any) -> Any:
    return x * float(x.array.sum())


def branching(x: Any) -> Any:
    return F.relu(x) if x.array.sum() > 3 else F.tanh(x)


def drawn(x: Any) -> Any:
    return x + np.random.default_rng().standard_normal(3).astype(np.float32)


def worded(x: Any) -> Any:
    return {"x": x + 1, "text": "a"}


class Doubled(hagane.FunctionNode):
    def forward(self, inputs: Any) -> Any:
        return (inputs[0] * 2,)


def custom(x: Any) -> Any:
    return Doubled().apply((x,))[0]


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (past, r"shape \[\] .* computed from an input by NumPy \(x.array\)"),
        (branching, r"operators depend on the numbers.*hagane.capture"),
        (drawn, r"shape \[3\] .* is random"),
        (worded, r"the result 'text' is a str"),
        (custom, r"the function Doubled computes on arrays.* or define its 'operators'"),
        (F.lgamma, r"the function lgamma computes on arrays, which is not recorded"),
    ],
)
def test_calls_that_a_recording_does_not_tell_are_refused(function: Any, text: str) -> None:
    with pytest.raises(hagane.errors.CaptureError, match=text):
        hagane.trace(function, np.full(3, 2, np.float32))


def test_examples_are_needed() -> None:
    with pytest.raises(hagane.errors.InvalidArgument, match="expected an example"):
        hagane.trace(past)
    with pytest.raises(hagane.errors.InvalidArgument, match="expected an array as example 0"):
        hagane.trace(past, "x")


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_pytorchs_exporter_makes_a_model() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU()).eval()
    model = hagane.from_torch(net, torch.randn(2, 3), dynamic_shapes=({0: "batch"},))
    x = torch.randn(4, 3)
    found = hagane.InferenceSession(model).run(None, {str(model.graph.inputs[0].name): x.numpy()})
    np.testing.assert_allclose(found[0], net(x).detach().numpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(hagane.errors.InvalidArgument, match="expected a module of PyTorch"):
        hagane.from_torch(branching, x)


class Undecided(nn.Module):
    def forward(self, x: Any) -> Any:
        return x + 1 if x.sum() > 0 else x


@pytest.mark.filterwarnings("ignore")
def test_what_pytorchs_exporter_refuses_is_quoted() -> None:
    with pytest.raises(hagane.errors.CaptureError, match=r"torch\.onnx\.export: "):
        hagane.from_torch(Undecided(), torch.randn(2, 3))
