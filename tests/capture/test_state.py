"""Attributes that a call changes: inputs and outputs of its graph, attributes when compiled."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import nn

import hagane
from hagane.graph import to_proto

pytestmark = pytest.mark.filterwarnings("ignore::hagane.CompileNotice")


class Cell(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(7, 4)
        self.register_buffer("h", torch.zeros(2, 4))
        self.steps = 0
        self.mean = 0.5

    def forward(self, x: Any) -> Any:
        self.h = torch.tanh(self.inner(torch.cat([x, self.h], 1)))
        self.steps += 1
        self.mean = self.mean * 0.5 + float(x.sum())
        return self.h


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = Cell()
        self.out = nn.Linear(4, 1)
        self.last = None
        self.total = torch.zeros(())

    def forward(self, x: Any) -> Any:
        y = self.out(self.cell(x))
        self.last = y
        self.total += y.sum()
        if y.sum() > 0:
            self.cell.h = self.cell.h * 2
        return y


class Cache(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.k = torch.zeros(1, 0, 3)

    def forward(self, x: Any) -> Any:
        self.k = torch.cat([self.k, x], 1)
        return self.k.sum(1)


class First(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.h = None

    def forward(self, x: Any) -> Any:
        self.h = x if self.h is None else self.h + x
        return self.h


def names(values: Any) -> list[str]:
    return [str(value.name) for value in values]


def test_state_follows_the_arguments_and_its_new_value_the_results() -> None:
    torch.manual_seed(0)
    net = Net().eval()
    model = hagane.capture(net, "float32[2, 3]")
    state = ["cell.h", "cell.steps", "cell.mean", "total"]
    assert sorted(names(model.graph.inputs)[1:]) == sorted(state)
    assert names(model.graph.inputs)[0] == "x"
    assert names(model.graph.outputs)[0] == "output"
    assert {*names(model.graph.outputs)[1:]} == {"last.new", *(f"{name}.new" for name in state)}
    proto = to_proto(model)
    onnx.checker.check_model(proto, full_check=True)
    for session in (
        onnxruntime.InferenceSession(proto.SerializeToString()),
        hagane.InferenceSession(proto),
    ):
        mine = copy.deepcopy(net)
        held = {
            "cell.h": mine.cell.h.numpy(), "cell.steps": np.array(0), "cell.mean": np.array(0.5),
            "total": mine.total.numpy(),
        }  # fmt: skip
        with torch.no_grad():
            for _ in range(5):
                x = torch.randn(2, 3)
                found = dict(
                    zip(
                        names(model.graph.outputs),
                        session.run(None, {"x": x.numpy(), **held}),
                        strict=True,
                    )
                )
                np.testing.assert_allclose(found["output"], mine(x), rtol=1e-4, atol=1e-5)
                held = {name: found[f"{name}.new"] for name in held}
                np.testing.assert_allclose(held["cell.h"], mine.cell.h, rtol=1e-4, atol=1e-5)
                np.testing.assert_allclose(held["total"], mine.total, rtol=1e-4, atol=1e-5)
                assert held["cell.steps"] == mine.cell.steps
                assert held["cell.mean"] == pytest.approx(mine.cell.mean, rel=1e-5)


def test_types_of_state_are_given_by_path() -> None:
    types: dict[str, Any] = {"x": "float32[batch, 3]", "cell.h": "float32[batch, 4]"}
    model = hagane.capture(Net().eval(), **types)
    shapes = {str(v.name): str(v.shape) for v in model.graph.inputs}
    assert shapes["cell.h"] == "[batch,4]"
    with pytest.raises(hagane.errors.CaptureError, match="does not change the attribute 'out.b'"):
        hagane.capture(Net().eval(), **{"x": "float32[2, 3]", "out.b": "float32[1]"})


def test_sizes_that_grow_are_left_open() -> None:
    model = hagane.capture(Cache(), "float32[1, 1, 3]")
    assert str(model.graph.inputs[1].shape) == "[1,k_1,3]"


@pytest.mark.parametrize(("kind", "shape"), [(Net, (2, 3)), (Cache, (1, 1, 3)), (First, (4,))])
def test_a_compiled_model_keeps_its_state_in_its_attributes(kind: Any, shape: Any) -> None:
    torch.manual_seed(0)
    ours = kind().eval()
    theirs = copy.deepcopy(ours)
    compiled = hagane.compile(ours, fullgraph=True)
    with torch.no_grad():
        for _ in range(5):
            x = torch.randn(shape)
            torch.testing.assert_close(compiled(x), theirs(x), rtol=1e-4, atol=1e-5)
    assert len(compiled.captures) <= 2
    for a, b in zip(ours.modules(), theirs.modules(), strict=True):
        for name, value in {**vars(b), **b._buffers}.items():
            if isinstance(value, torch.Tensor):
                torch.testing.assert_close(getattr(a, name), value, rtol=1e-4, atol=1e-5)
            elif isinstance(value, int | float):
                assert type(getattr(a, name)) is type(value)
                assert getattr(a, name) == pytest.approx(value, rel=1e-4)


class Logged(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.log: list[Any] = []
        self.h: Any = 1

    def forward(self, x: Any) -> Any:
        self.log.append(x)
        return x + 1


class Retyped(Logged):
    def forward(self, x: Any) -> Any:
        y = x * self.h
        self.h = x
        return y


class Unset(nn.Module):
    def forward(self, x: Any) -> Any:
        if x.sum() > 0:
            self.seen = x
        return x


COUNT = 0


def counting(x: Any) -> Any:
    global COUNT
    COUNT = COUNT + 1
    return x * COUNT


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (Logged(), "changes a list that it did not make"),
        (First(), "'h' is None before the first call, and read; .* set it to its first value"),
        (Retyped(), r"'h' is int\(1\) before the call and .*float32.* state keeps its type"),
        (Unset(), "'seen' is nothing before the call"),
        (counting, "sets the global 'COUNT'"),
    ],
    ids=lambda v: type(v).__name__,
)
def test_changes_that_no_graph_tells_are_refused(found: Any, text: str) -> None:
    with pytest.raises(hagane.errors.CaptureError, match=text):
        hagane.capture(found, "float32[n]")


class Remembered:
    """An attribute and an argument have one name."""

    def __init__(self) -> None:
        self.x: Any = None

    def __call__(self, x: Any) -> Any:
        if self.x is None:
            self.x = x * 2
        return self.x + x


def test_an_attribute_of_an_arguments_name_is_told_apart_by_self() -> None:
    with pytest.raises(hagane.errors.CaptureError, match=r"say {'self\.x': None} for a graph of"):
        hagane.capture(Remembered(), np.ones(3, np.float32))
    graph = hagane.capture(Remembered(), np.ones(3, np.float32), **{"self.x": None})
    found = hagane.InferenceSession(graph).run(None, {"x": np.ones(3, np.float32)})
    np.testing.assert_array_equal(found, [np.full(3, 3.0), np.full(3, 2.0)])


class Noted(nn.Module):
    """Keeps what it saw last, of which no call reads anything that an earlier one left."""

    def __init__(self) -> None:
        super().__init__()
        self.dtype: Any = None
        self.parts: list[Any] = []

    def forward(self, x: Any) -> Any:
        if self.dtype is None:
            self.dtype = x.dtype
        self.device = x.device
        self.parts = [x, x * 2]
        return self.parts[1].double().to(self.dtype)


def test_what_a_call_notes_and_no_later_one_reads_is_left_out_or_an_output() -> None:
    graph = hagane.capture(Noted(), "float32[b, 4]")
    assert [value.name for value in graph.graph.inputs] == ["x"]
    assert [value.name for value in graph.graph.outputs] == ["output", "parts.0.new", "parts.1.new"]
    x = np.random.default_rng(0).random((3, 4), np.float32)
    found, _, twice = hagane.InferenceSession(graph).run(None, {"x": x})
    np.testing.assert_array_equal(found, x * 2)
    np.testing.assert_array_equal(twice, x * 2)
