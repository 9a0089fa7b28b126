"""A backend of a caller's own: a counter around NumPy, on a device of its own."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

import hagane
from hagane.errors import InvalidArgument, KernelError
from hagane.graph.types import TensorType
from hagane.onnx_backend import HaganeBackend
from hagane.ops import GraphTypes
from hagane.runtime.port import Part, Planned, Refusal, Region, ShapeMismatch, Watch
from tests.conformance.cases import arrays, exclusion, node_cases

_NUMPY = {"Add": np.add, "Mul": np.multiply, "MatMul": np.matmul}
_TYPES = ("float32", "float64", "int32", "int64", "uint32", "uint64")


@dataclass(frozen=True)
class Held:
    """A tensor of the toy device; nothing but the device can compute with it."""

    array: np.ndarray


class ToyDevice:
    """Memory that arrays are copied to and from."""

    name = "toy"

    def __init__(self) -> None:
        self.copies: Counter[str] = Counter()

    def put(self, value: Any) -> Held:
        self.copies["put"] += 1
        assert isinstance(value, np.ndarray)
        return Held(value.copy())

    def get(self, value: Held) -> np.ndarray:
        self.copies["get"] += 1
        assert isinstance(value, Held)
        return value.array.copy()


class ToyPart(Part):
    """Nodes one after the other."""

    backend = "toy"

    def __init__(self, region: Region, toy: Toy):
        self.nodes, self.device, self._toy = region.nodes, toy.device, toy
        made = {value for node in region.nodes for value in node.outputs}
        read = [value for node in region.nodes for value in node.inputs]
        self.inputs = tuple(dict.fromkeys(value for value in read if value not in made))
        self.outputs = tuple(value for value in made if value in region.outputs)
        self.varies = toy.most_elements is not None
        self.opened = 0

    def open(self, settle: Any) -> None:
        self.opened += 1

    def run(self, values: Sequence[Any], watch: Watch | None = None) -> list[Any]:
        assert self.opened == 1
        most = self._toy.most_elements
        if most is not None and any(value.array.size > most for value in values):
            raise ShapeMismatch
        known = dict(zip(self.inputs, values, strict=True))
        for node in self.nodes:
            left, right = (known[value].array for value in node.inputs)
            self._toy.counts[node.op_type] += 1
            with np.errstate(all="ignore"):
                result = _NUMPY[node.op_type](left, right)
            known[node.outputs[0]] = Held(np.asarray(result))
        return [known[value] for value in self.outputs]


@dataclass
class Toy:
    """Takes Add, Mul and MatMul of numbers.

    Attributes:
        refuses: Operators that it claims and refuses on closer look.
        most_elements: Tensors of more elements do not fit its parts.
    """

    refuses: frozenset[str] = frozenset()
    most_elements: int | None = None
    device: Any = field(default_factory=ToyDevice)
    counts: Counter[str] = field(default_factory=Counter)
    name = "toy"
    provider = "ToyExecutionProvider"

    def adapt(self, graph: ir.Graph, types: GraphTypes) -> Toy:
        return self

    def claims(self, node: ir.Node, types: GraphTypes) -> bool:
        found = types.types.get(node.outputs[0])
        known = isinstance(found, TensorType) and found.dtype.numpy().name in _TYPES
        return known and (node.domain, node.op_type in _NUMPY) == ("", True)

    def late(self, node: ir.Node, types: GraphTypes) -> Sequence[ir.Value]:
        return ()

    def plan(self, region: Region) -> Planned:
        bad = [node for node in region.nodes if node.op_type in self.refuses]
        if bad:
            return Planned((), {node: Refusal("the toy has none") for node in bad})
        return Planned((ToyPart(region, self),))


def session(proto: onnx.ModelProto, *backends: Toy, engine: str = "reference") -> Any:
    options = hagane.SessionOptions(backends=backends)
    options.add_session_config_entry("hagane.engine", engine)
    return hagane.InferenceSession(proto, options)


def chain(*operators: str, bodies: bool = False) -> onnx.ModelProto:
    """Return a model of nodes that read the one before and ``b`` where they take two inputs."""
    nodes, last = [], "x"
    for index, name in enumerate(operators):
        inputs = [last, "b"] if name in _NUMPY else [last]
        last = "y" if index == len(operators) - 1 else f"v{index}"
        nodes.append(helper.make_node(name, inputs, [last], name=f"n{index}"))
    sides = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 3]) for name in ("x", "y")
    ]
    b = onnx.numpy_helper.from_array(np.arange(9, dtype=np.float32).reshape(3, 3), "b")
    graph = helper.make_graph(nodes, "g", sides[:1], sides[1:], [b])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


X = np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3)


def _takes(case: Any) -> bool:
    """Whether the toy has a node to take; it leaves 16-bit floats alone."""
    some = any(node.op_type in _NUMPY for node in case.model.graph.node)
    return some and not any(name in case.name for name in ("bf16", "fp16", "bfloat16"))


_CASES = [case for case in node_cases() if exclusion(case.name) is None and _takes(case)]


@pytest.mark.long
def test_conformance_cases_are_run_by_the_toy_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAGANE_ENGINE", "reference")  # nothing to compile
    toy = Toy()
    assert len(_CASES) >= 150
    for case in _CASES:
        prepared = HaganeBackend.prepare(case.model, backends=[toy])
        for inputs, outputs in case.data_sets:
            for got, want in zip(prepared.run(arrays(inputs)), arrays(outputs), strict=True):
                assert got.dtype == want.dtype, case.name
                np.testing.assert_allclose(
                    got, want, rtol=case.rtol, atol=case.atol, err_msg=case.name
                )
    assert all(toy.counts[name] >= 8 for name in _NUMPY), toy.counts


@pytest.mark.parametrize("engine", ["reference", "native"])
def test_backends_share_a_graph_in_order_of_preference(engine: str) -> None:
    proto, toy = chain("Add", "Tanh", "MatMul", "Mul", "Exp"), Toy()
    made = session(proto, toy, engine=engine)
    (got,) = made.run(None, {"x": X})
    (want,) = session(proto).run(None, {"x": X})
    np.testing.assert_allclose(got, want, rtol=1e-5)
    assert toy.counts == {"Add": 1, "MatMul": 1, "Mul": 1}
    parts = [
        (step.part.backend, [node.op_type for node in step.part.nodes])
        for step in made._programs.general.steps
        if step.part.backend != "transfer"
    ]
    assert parts == [
        ("toy", ["Add"]), (engine, ["Tanh"]), ("toy", ["MatMul", "Mul"]), (engine, ["Exp"]),
    ]  # fmt: skip
    assert made.get_providers() == ["ToyExecutionProvider", "CPUExecutionProvider"]


def test_values_move_between_devices_only_where_they_must() -> None:
    toy = Toy()
    made = session(chain("Add", "Mul", "Tanh", "MatMul"), toy)
    toy.device.copies.clear()
    made.run(None, {"x": X})
    # x, the result of Tanh; the result of Mul, y. The constant was moved when the session was made.
    assert toy.device.copies == {"put": 2, "get": 2}


def test_refused_nodes_go_to_the_next_backend() -> None:
    first, second = Toy(refuses=frozenset({"Mul"})), Toy()
    made = session(chain("Add", "Mul", "MatMul"), first, second)
    (got,) = made.run(None, {"x": X})
    np.testing.assert_allclose(got, session(chain("Add", "Mul", "MatMul")).run(None, {"x": X})[0])
    assert first.counts == {"Add": 1, "MatMul": 1}
    assert second.counts == {"Mul": 1}
    assert set(made._programs.refused.values()) == {"the toy has none"}


def test_reference_kernels_step_in_for_values_that_do_not_fit() -> None:
    toy = Toy(most_elements=9)
    made = session(chain("Tanh", "Add", "Mul", "Exp"), toy)
    plain = session(chain("Tanh", "Add", "Mul", "Exp"))
    for rows in (3, 1, 3):
        x = np.tile(X[:1], (rows, 1))
        np.testing.assert_allclose(made.run(None, {"x": x})[0], plain.run(None, {"x": x})[0])
    assert toy.counts == {"Add": 3, "Mul": 3}
    toy.most_elements = 8
    np.testing.assert_allclose(made.run(None, {"x": X})[0], plain.run(None, {"x": X})[0])
    assert toy.counts == {"Add": 3, "Mul": 3}


def test_bodies_of_loops_are_shared_between_backends_too() -> None:
    body = helper.make_graph(
        [
            helper.make_node("Mul", ["s", "factor"], ["m"]),
            helper.make_node("Tanh", ["m"], ["next"]),
            helper.make_node("Identity", ["going"], ["on"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("going", TensorProto.BOOL, []),
            helper.make_tensor_value_info("s", TensorProto.FLOAT, [3, 3]),
        ],
        [
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", TensorProto.FLOAT, [3, 3]),
        ],
    )
    nodes = [
        helper.make_node("Add", ["x", "x"], ["factor"]),
        helper.make_node("Loop", ["count", "", "x"], ["y"], body=body),
    ]
    sides = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3, 3]) for name in ("x", "y")]
    count = onnx.numpy_helper.from_array(np.array(5, np.int64), "count")
    graph = helper.make_graph(nodes, "g", sides[:1], sides[1:], [count])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    toy = Toy()
    (got,) = session(proto, toy).run(None, {"x": X})
    want = X
    for _ in range(5):
        want = np.tanh(want * (X + X))
    np.testing.assert_allclose(got, want, rtol=1e-6)
    assert toy.counts == {"Add": 1, "Mul": 5}


def test_profiles_name_the_backend_of_each_part() -> None:
    report = session(chain("Add", "Mul", "Tanh"), Toy()).profile({"x": X}, runs=2)
    assert [(kernel.name, kernel.engine) for kernel in report.kernels] == [
        ("transfer ''", "transfer"), ("Add+Mul 'n0'", "toy"),
        ("transfer ''", "transfer"), ("Tanh 'n2'", "reference"),
    ]  # fmt: skip


def test_held_values_tell_their_device() -> None:
    device = ToyDevice()
    value = hagane.OrtValue.ortvalue_from_numpy(X, device)
    assert value.device_name() == "toy"
    assert value.shape() == [3, 3]
    np.testing.assert_array_equal(value.numpy(), X)
    value.update_inplace(X + 1)
    np.testing.assert_array_equal(value.numpy(), X + 1)
    made = session(chain("Add"), Toy(device=device))
    binding = made.io_binding()
    binding.bind_ortvalue_input("x", value)
    binding.bind_output("y", device)
    made.run_with_iobinding(binding)
    (y,) = binding.get_outputs()
    assert y.device_name() == "toy"
    np.testing.assert_allclose(y.numpy(), X + 1 + np.arange(9).reshape(3, 3))
    with pytest.raises(
        InvalidArgument, match=r"device 'cpu' or the device of a backend, .*'abacus'"
    ):
        hagane.OrtValue.ortvalue_from_numpy(X, "abacus")


def test_errors_of_a_backend_reach_the_caller() -> None:
    class Broken(ToyPart):
        def run(self, values: Sequence[Any], watch: Watch | None = None) -> list[Any]:
            raise KernelError("Add 'n0' failed: the toy is broken")

    class BrokenToy(Toy):
        def plan(self, region: Region) -> Planned:
            return Planned((Broken(region, self),))

    with pytest.raises(KernelError, match="Add 'n0' failed: the toy is broken"):
        session(chain("Add"), BrokenToy()).run(None, {"x": X})


def test_the_example_of_the_document_prints_as_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HAGANE_ENGINE", "reference")
    text = (Path(__file__).parents[2] / "docs" / "backends.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (shown,) = re.findall(r"```\n(\[.*?)```", text, re.DOTALL)
    exec(compile(code, "backends.md", "exec"), {})
    assert capsys.readouterr().out == shown
