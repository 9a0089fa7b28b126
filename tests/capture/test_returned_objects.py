"""Tensors in objects that a program returns become outputs by their paths."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

import hagane
from hagane.errors import CaptureError
from hagane.graph import to_proto

TYPE = "float32[batch, 3]"


class Layer:
    """Keys and values that grow, beside settings that are no tensors."""

    def __init__(self) -> None:
        self.keys: Any = None
        self.filled = False

    def update(self, keys: Any) -> Any:
        self.keys = keys if self.keys is None else torch.cat([self.keys, keys])
        self.filled, self.dtype, self.device = True, keys.dtype, keys.device
        return self.keys


class Cache:
    """Layers in a list, and a class to make more of them."""

    def __init__(self, count: int):
        self.layers = [Layer() for _ in range(count)]
        self.more = Layer
        self.updated: dict[int, bool] = {}


class Slotted:
    """An object whose attributes are listed."""

    __slots__ = ("count", "part", "rows")

    def __init__(self, part: Any):
        self.part = part
        self.rows = part.shape[0]
        self.count = 3


class Out(OrderedDict[str, Any]):
    """A dictionary with an attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.extra: Any = None


def cached(x: Any) -> Any:
    cache = Cache(2)
    for place, layer in enumerate(cache.layers):
        x = layer.update(torch.cat([x, x + place])) * 2
        cache.updated[place] = True
    return {"last": x, "past": cache}


def slotted(x: Any) -> Any:
    return Slotted(x * 2)


def extended(x: Any) -> Any:
    out = Out()
    out["logits"] = x + 1
    out.extra = (x - 1, [x.sum()])
    return out


def holding_itself(x: Any) -> Any:
    cache = Cache(1)
    cache.layers.append(cache)  # type: ignore[arg-type]
    cache.layers[0].update(x)
    return cache


def names(model: Any) -> list[str]:
    return [value.name for value in model.graph.outputs]


def run(model: Any, x: Any) -> list[Any]:
    session = hagane.InferenceSession(to_proto(model).SerializeToString())
    return list(session.run(None, {"x": x.numpy()}))


def test_tensors_of_a_cache_are_outputs_by_their_paths() -> None:
    model = hagane.capture(cached, TYPE)
    assert names(model) == ["last", "past.layers.0.keys", "past.layers.1.keys"]
    for rows in (1, 3, 4):
        x = torch.arange(3.0 * rows).reshape(rows, 3)
        whole = cached(x)
        kept = [layer.keys for layer in whole["past"].layers]
        for ours, theirs in zip(run(model, x), [whole["last"], *kept], strict=True):
            np.testing.assert_allclose(ours, theirs.numpy())


def test_numbers_of_an_object_that_sizes_decide_are_outputs_and_known_ones_are_not() -> None:
    model = hagane.capture(slotted, TYPE)
    assert names(model) == ["part", "rows"]
    assert run(model, torch.ones(5, 3))[1] == 5


def test_a_returned_dictionary_of_a_class_of_its_own_has_items_and_attributes() -> None:
    model = hagane.capture(extended, TYPE)
    assert sorted(names(model)) == ["extra.0", "extra.1.0", "logits"]


def test_a_compiled_call_returns_objects_of_the_same_classes() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    past = hagane.compile(cached, fullgraph=True)(x)["past"]
    assert type(past) is Cache
    assert [type(layer) for layer in past.layers] == [Layer, Layer]
    assert past.updated == {0: True, 1: True}
    assert past.more is Layer
    assert past.layers[0].dtype is torch.float32
    assert past.layers[0].device == torch.device("cpu")
    torch.testing.assert_close(past.layers[1].keys, cached(x)["past"].layers[1].keys)
    found = hagane.compile(slotted, fullgraph=True)(x)
    assert (type(found), found.rows, found.count) == (Slotted, 2, 3)
    out = hagane.compile(extended, fullgraph=True)(x)
    assert type(out) is Out
    torch.testing.assert_close(out["logits"], x + 1)
    torch.testing.assert_close(out.extra[1][0], x.sum())


def test_an_object_that_holds_itself_is_refused() -> None:
    with pytest.raises(hagane.errors.CaptureError, match=r"at 'layers\.1' holds itself"):
        hagane.capture(holding_itself, TYPE)


def test_a_computed_weight_is_no_state_that_the_call_changes() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(weight_norm(nn.Linear(3, 2))).eval()
    graph = hagane.capture(model, TYPE)
    assert names(graph) == ["output"]
    x = torch.randn(4, 3)
    np.testing.assert_allclose(run_first(graph, x), model(x).detach().numpy(), rtol=1e-5)


def run_first(model: Any, x: Any) -> Any:
    session = hagane.InferenceSession(to_proto(model).SerializeToString())
    return session.run(None, {session.get_inputs()[0].name: x.numpy()})[0]


def test_a_slice_up_to_a_named_size_needs_no_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any) -> Any:
        raise hagane.errors.MissingExtra("Z3", "check")

    monkeypatch.setattr("hagane.symbolic.questions.Solver", missing)
    model = hagane.capture(sliced, TYPE)
    x = torch.arange(12.0).reshape(4, 3)
    np.testing.assert_allclose(run(model, x)[0], sliced(x).numpy())


def sliced(x: Any) -> Any:
    rows = x.shape[0]
    return torch.cat([x, x])[:rows] + x[rows - 1 :]


class Watching(nn.Module):
    """A module that looks through itself when it is called."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList([nn.Linear(3, 3), nn.Tanh()])
        self.register_buffer("scale", torch.tensor(2.0))
        self.plain = torch.ones(3)

    def forward(self, x: Any) -> Any:
        names = [name for name, _ in self.named_modules(prefix="top")]
        for part in self.parts.children():
            x = part(x)
        count = len([*self.parameters()]) + 10 * len([*self.parameters(recurse=False)])
        count += 100 * len([*self.named_buffers()]) + 1000 * len(names)
        first = next(iter(self.parameters()))
        nothing = object()
        return x.to(first.dtype) * count if nothing is not None else x


def test_a_module_may_look_through_its_own_parts() -> None:
    torch.manual_seed(0)
    model = Watching().eval()
    x = torch.randn(4, 3)
    found = run_first(hagane.capture(model, TYPE), x)
    np.testing.assert_allclose(found, model(x).detach().numpy(), rtol=1e-4)


class Moved(torch.nn.Module):
    """Takes the type of what it is given, as code for several precisions does."""

    def __init__(self, dtype: torch.dtype | None = None) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(3, 4)
        self.dtype = dtype

    def forward(self, x: Any) -> Any:
        self.inner = self.inner.to(self.dtype or x.dtype)
        return torch.nn.Sequential(self.inner, torch.nn.ReLU()).to(x)(x)


def test_modules_that_are_moved_to_where_they_are() -> None:
    model = Moved().eval()
    graph = hagane.capture(model, x="float32[n, 3]")
    x = torch.randn(2, 3)
    found = hagane.InferenceSession(graph).run(None, {"x": x.numpy()})[0]
    np.testing.assert_allclose(found, model(x).detach(), atol=1e-6)
    with pytest.raises(CaptureError, match="parameters change from float32 in the call, which la"):
        hagane.capture(Moved(torch.float64).eval(), x="float32[n, 3]")


class Named(torch.nn.Module):
    """Returns results under the names of its parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.rand(3))

    def forward(self, x: Any) -> Any:
        return {"scale": x * self.scale, "shifted": x + 1}


def test_results_have_the_names_of_parameters() -> None:
    model, x = Named(), torch.rand(2, 3)
    graph = hagane.capture(model, x="float32[n, 3]")
    assert [value.name for value in graph.graph.outputs] == ["scale", "shifted"]
    with torch.no_grad():
        found = hagane.compile(model, fullgraph=True)(x)
        torch.testing.assert_close(found, model(x))


@pytest.mark.parametrize("trained", [True, False])
def test_a_parameter_that_a_call_makes_is_one_in_the_result(*, trained: bool) -> None:
    def made(x: Any) -> Any:
        return torch.nn.Parameter(x * 2, requires_grad=trained)

    told = "sets requires_grad" if trained else r"is a torch\.nn\.Parameter that the call itself"
    with torch.no_grad(), pytest.warns(hagane.CompileNotice, match=told):
        found = hagane.compile(made)(torch.rand(2))
    assert isinstance(found, torch.nn.Parameter)
    assert found.requires_grad == trained
