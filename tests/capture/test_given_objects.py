"""Objects, lists and dicts that a caller gives: their tensors are inputs, their changes outputs."""

from __future__ import annotations

import copy
import json
import re
import warnings
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch

import hagane
from hagane.errors import CaptureError, InvalidArgument
from hagane.graph import to_proto


@dataclass
class Affine:
    """A scale and an offset."""

    scale: Any
    offset: Any
    name: str = "plain"


class Layer:
    """Keys that grow, with a count."""

    def __init__(self, keys: Any = None):
        self.keys = keys
        self.seen = 0

    def update(self, keys: Any) -> Any:
        self.keys = keys if self.keys is None else torch.cat([self.keys, keys], 1)
        self.seen += keys.shape[1]
        return self.keys


class Cache:
    """Layers, and a class to make more of them."""

    def __init__(self, layers: Any):
        self.layers = layers
        self.more = Layer

    def update(self, place: int, keys: Any) -> Any:
        while len(self.layers) <= place:
            self.layers.append(self.more())
        return self.layers[place].update(keys)


class Slotted:
    """A tensor in a slot."""

    __slots__ = ("part",)

    def __init__(self, part: Any):
        self.part = part


class Table(OrderedDict[str, Any]):
    """A dict whose items are attributes too."""

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, value)
        object.__setattr__(self, key, value)


Pair = namedtuple("Pair", ["left", "right"])


def run_elsewhere(model: Any, feeds: dict[str, Any]) -> dict[str, Any]:
    """Return the outputs of ONNX Runtime and of hagane, which agree."""
    theirs = onnxruntime.InferenceSession(to_proto(model).SerializeToString())
    ours = hagane.InferenceSession(model)
    names = [output.name for output in theirs.get_outputs()]
    found = theirs.run(None, feeds)
    for a, b in zip(found, ours.run(None, feeds), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    return dict(zip(names, found, strict=True))


def names(values: Any) -> list[str]:
    return [value.name for value in values]


def step(cache: Any, x: Any) -> Any:
    y = x
    for place in range(2):
        y = y + cache.update(place, x[:, None]).sum(1)
    return y


def grown(rows: int, past: int) -> Cache:
    return Cache([Layer(torch.randn(rows, past, 3)) for _ in range(2)])


def test_a_cache_is_inputs_and_outputs_of_any_length() -> None:
    model = hagane.capture(
        step, grown(2, 4), torch.ones(2, 3),
        dynamic={"cache": {0: "batch", 1: "past"}, "x": {0: "batch"}},
    )  # fmt: skip
    assert names(model.graph.inputs) == [
        "cache.layers.0.keys", "cache.layers.0.seen", "cache.layers.1.keys", "cache.layers.1.seen",
        "x",
    ]  # fmt: skip
    assert names(model.graph.outputs) == [
        "output", "cache.layers.0.keys.new", "cache.layers.0.seen.new", "cache.layers.1.keys.new",
        "cache.layers.1.seen.new",
    ]  # fmt: skip
    assert str(model.graph.outputs[1].shape) == "[batch,past + 1,3]"
    for rows, past in ((2, 4), (3, 1), (1, 7)):
        cache, x = grown(rows, past), torch.randn(rows, 3)
        feeds = {f"cache.layers.{i}.keys": one.keys.numpy() for i, one in enumerate(cache.layers)}
        feeds |= {f"cache.layers.{i}.seen": np.array(past) for i in range(2)}
        found = run_elsewhere(model, {**feeds, "x": x.numpy()})
        expected = step(cache, x)
        np.testing.assert_allclose(found["output"], expected, rtol=1e-5)
        for i, layer in enumerate(cache.layers):
            np.testing.assert_allclose(found[f"cache.layers.{i}.keys.new"], layer.keys)
            assert found[f"cache.layers.{i}.seen.new"] == past + 1


def test_a_compiled_call_changes_the_callers_cache() -> None:
    compiled = hagane.compile(step, fullgraph=True)
    ours, theirs = Cache([]), Cache([])
    held = ours.layers
    for _ in range(5):
        x = torch.randn(2, 3)
        expected = step(theirs, x)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", hagane.CompileNotice)
            torch.testing.assert_close(compiled(ours, x), expected)
        assert ours.layers is held
        for a, b in zip(ours.layers, theirs.layers, strict=True):
            assert type(a) is Layer
            assert a.seen == b.seen
            torch.testing.assert_close(a.keys, b.keys)
    assert len(compiled.captures) < 5  # one graph serves all later lengths


def scaled(parts: Any, x: Any) -> Any:
    for part in parts:
        x = x * part.scale + part.offset
    return x


def test_dataclasses_in_a_list_are_inputs_by_their_paths() -> None:
    parts = [Affine(torch.randn(3), torch.randn(3)) for _ in range(2)]
    model = hagane.capture(scaled, parts, "float32[batch, 3]")
    paths = ["parts.0.scale", "parts.0.offset", "parts.1.scale", "parts.1.offset"]
    assert names(model.graph.inputs) == [*paths, "x"]
    others = [Affine(torch.randn(3), torch.randn(3)) for _ in range(2)]
    values = [others[0].scale, others[0].offset, others[1].scale, others[1].offset]
    feeds = {path: value.numpy() for path, value in zip(paths, values, strict=True)}
    x = torch.randn(5, 3)
    found = run_elsewhere(model, {**feeds, "x": x.numpy()})
    np.testing.assert_allclose(found["output"], scaled(others, x), rtol=1e-5, atol=1e-6)


def test_a_changed_structure_is_captured_anew() -> None:
    def named(parts: Any, x: Any) -> Any:
        return x + 1 if parts[-1].name == "odd" else scaled(parts, x)

    compiled = hagane.compile(named, fullgraph=True)
    x = torch.randn(2, 3)
    plain = Affine(torch.randn(3), torch.randn(3))
    odd = Affine(torch.randn(3), torch.randn(3), "odd")
    for parts in ([plain], [plain, plain], [plain, odd], [odd, plain], [copy.deepcopy(plain)]):
        torch.testing.assert_close(compiled(parts, x), named(parts, x))
    assert len(compiled.captures) == 4


def test_an_object_that_two_arguments_share_stays_one_object() -> None:
    def both(a: Any, b: Any, x: Any) -> Any:
        a.keys = a.keys + x
        return b.keys * 2 if a is b else b.keys

    compiled = hagane.compile(both, fullgraph=True)
    for shared in (True, False):
        a = Layer(torch.randn(3))
        b = a if shared else Layer(torch.randn(3))
        mine = copy.deepcopy((a, b))
        x = torch.randn(3)
        torch.testing.assert_close(compiled(a, b, x), both(*mine, x))
        torch.testing.assert_close(a.keys, mine[0].keys)
    layer = Layer(torch.randn(3))
    model = hagane.capture(both, layer, layer, "float32[3]")
    assert names(model.graph.inputs) == ["a.keys", "x"]
    assert names(model.graph.outputs) == ["output", "a.keys.new"]


def test_other_objects_that_hold_tensors_are_inputs_too() -> None:
    def read(table: Any, pair: Any, slotted: Any, parts: Any) -> Any:
        return table.rows + table["rows"] + pair.left - slotted.part + parts["a"][0] + parts["b"]

    table = Table()
    table["rows"] = np.ones(3, np.float32)
    x = np.arange(3, dtype=np.float32)
    given = (table, Pair(x, None), Slotted(x + 1), {"a": (x,), "b": "float32[3]"})
    model = hagane.capture(read, *given)
    assert names(model.graph.inputs) == [
        "table.rows", "pair.left", "slotted.part", "parts.a.0", "parts.b",
    ]  # fmt: skip
    values = [np.random.default_rng(i).random(3, np.float32) for i in range(5)]
    feeds = dict(zip(names(model.graph.inputs), values, strict=True))
    a, b, c, d, e = values
    np.testing.assert_allclose(run_elsewhere(model, feeds)["output"], a + a + b - c + d + e, 1e-5)
    compiled = hagane.compile(read, fullgraph=True)
    given[3]["b"] = x
    np.testing.assert_allclose(compiled(*given), read(*given))


def test_memory_of_a_part_that_is_written_is_an_output() -> None:
    def put(cache: Any, x: Any) -> Any:
        cache.keys[:, 1] = x
        return cache.keys.sum(1)

    model = hagane.capture(put, Layer(torch.zeros(2, 4, 3)), "float32[2, 3]")
    assert names(model.graph.outputs) == ["output", "cache.keys.new"]
    layer, x = Layer(torch.randn(2, 4, 3)), torch.randn(2, 3)
    found = run_elsewhere(model, {"cache.keys": layer.keys.numpy().copy(), "x": x.numpy()})
    np.testing.assert_allclose(found["output"], put(layer, x), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found["cache.keys.new"], layer.keys)

    ours, theirs = Layer(torch.randn(2, 4, 3)), Layer()
    theirs.keys, held = ours.keys.clone(), ours.keys
    torch.testing.assert_close(hagane.compile(put, fullgraph=True)(ours, x), put(theirs, x))
    assert ours.keys is held
    torch.testing.assert_close(held, theirs.keys)

    def twice(a: Any, b: Any, x: Any) -> Any:
        a.keys[:, 0] = x
        return b.keys.sum(1)

    ours = Layer(torch.randn(2, 4, 3))
    view = Layer(ours.keys[:, :2])
    with pytest.warns(hagane.CompileNotice, match=r"'a\.keys', which the call writes in place"):
        found = hagane.compile(twice)(ours, view, x)
    torch.testing.assert_close(found, ours.keys[:, :2].sum(1))

    def of_both(a: Any, b: Any, x: Any) -> Any:
        a.keys[:, 0] = x
        return np.sum(b.keys, 1)

    array = np.random.default_rng(0).normal(size=(2, 4, 3)).astype(np.float32)
    seen = Layer(torch.from_numpy(array))
    with pytest.warns(hagane.CompileNotice, match=r"'a\.keys', which the call writes in place"):
        found = hagane.compile(of_both)(seen, Layer(array[:, :2]), x)
    np.testing.assert_allclose(found, array[:, :2].sum(1), rtol=1e-6)


def test_lists_and_dicts_of_the_caller_are_changed() -> None:
    def noted(items: Any, table: Any, y: Any) -> Any:
        items.append(y * 2)
        table["parts"]["y"] = y
        del table["old"]
        return items[0] + y

    compiled = hagane.compile(noted, fullgraph=True)
    y = np.ones(2, np.float32)
    items, table = [y], {"old": 1, "parts": {}}
    np.testing.assert_array_equal(compiled(items, table, y), [2, 2])
    np.testing.assert_array_equal(items, [[1, 1], [2, 2]])
    assert items[0] is y
    assert [*table] == ["parts"]
    np.testing.assert_array_equal(table["parts"]["y"], y)


def test_what_capture_cannot_see_into_is_refused() -> None:
    def first(x: Any, other: Any) -> Any:
        return x + 1

    x = torch.ones(3)
    with pytest.raises(CaptureError, match=r"'other\.queue' is a SimpleQueue, whose content"):
        hagane.capture(first, x, {"queue": SimpleQueue()})
    with pytest.raises(CaptureError, match="'other' is a generator, whose content no graph sees"):
        hagane.capture(first, x, (x for _ in range(2)))
    with pytest.raises(CaptureError, match=r"two parts of the arguments are called 'other\.1'"):
        hagane.capture(first, x, {1: x, "1": x + 1})
    with pytest.raises(CaptureError, match=r"Normal, of which capture knows no source, and holds"):
        hagane.capture(first, x, torch.distributions.Normal(x, x))


def test_sizes_that_are_not_there_are_named() -> None:
    def first(x: Any) -> Any:
        return x + 1

    with pytest.raises(InvalidArgument, match="dynamic names the sizes of 'y', which is no exam"):
        hagane.capture(first, torch.ones(3), dynamic={"y": {0: "batch"}})
    with pytest.raises(InvalidArgument, match="dynamic names axis 1 of 'x', which has 1 axes"):
        hagane.capture(first, torch.ones(3), dynamic={"x": {1: "batch"}})
    with pytest.raises(InvalidArgument, match="expected dynamic as names by argument and axis"):
        hagane.capture(first, torch.ones(3), dynamic=True)


def test_inputs_are_in_the_order_of_the_signature() -> None:
    def attend(x: Any, past: Any, mask: Any) -> Any:
        keys = torch.cat([past["k"], x], 1)
        return {"y": (x @ keys.transpose(1, 2)) * mask, "past": {"k": keys}}

    past = {"k": "float32[b, p, 8]"}
    for call in (
        lambda: hagane.capture(attend, "float32[b, t, 8]", past, "float32[b, t, 1]"),
        lambda: hagane.capture(attend, mask="float32[b, t, 1]", past=past, x="float32[b, t, 8]"),
    ):
        model = call()
        assert [value.name for value in model.graph.inputs] == ["x", "past.k", "mask"]
        assert [value.name for value in model.graph.outputs] == ["y", "past.k.new"]


def test_dicts_and_lists_that_functions_of_python_make_are_the_program_s_own() -> None:
    def counted(x: Any) -> Any:
        kept = dict.fromkeys(range(2))
        shared = OrderedDict.fromkeys("ab", [x])
        kept[0] = x * 2
        shared["a"].append(x + 1)
        total = x * 0
        for _ in range(2):
            words = re.findall("[a-z]", "a b")
            words.append("c")
            again = {}.fromkeys(words, 0)
            again["a"] += len(words)
            total = total + again["a"]
        read = json.loads('{"sizes": [1, 2]}')
        read["sizes"][0] += 4
        return kept[0] + shared["b"][1] + total + sum(read["sizes"])

    model = hagane.capture(counted, x="float32[n]")
    session = onnxruntime.InferenceSession(to_proto(model).SerializeToString())
    x = torch.arange(3.0)
    np.testing.assert_array_equal(session.run(None, {"x": x.numpy()})[0], counted(x).numpy())


def test_slices_are_arguments() -> None:
    compiled = hagane.compile(lambda x, place: x[place] * 2, fullgraph=True)
    x = np.arange(20.0).reshape(4, 5)
    for place in (
        slice(1, 3), slice(None, None, -1), (slice(2), slice(1, None)), (..., slice(0, 1)),
        slice(1, 3),
    ):  # fmt: skip
        np.testing.assert_array_equal(compiled(x, place), x[place] * 2)
