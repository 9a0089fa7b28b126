"""Graphs run in ONNX Runtime also where it lacks an operator for their element types."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch

import hagane
from hagane.graph import to_proto


def agree(function: Any, kinds: list[str], given: list[Any], tolerance: float) -> None:
    """Compare a graph in both engines with PyTorch."""
    model = hagane.capture(function, *kinds)
    content = to_proto(model).SerializeToString()
    found = function(*map(torch.from_numpy, given))
    wanted = [one.numpy() for one in (found if isinstance(found, tuple) else (found,))]
    for session in (onnxruntime.InferenceSession(content), hagane.InferenceSession(content)):
        feed = dict(zip([value.name for value in session.get_inputs()], given, strict=True))
        for got, want in zip(session.run(None, feed), wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance, strict=True)


@pytest.mark.parametrize(
    "name",
    [
        "tan", "sinh", "cosh", "asinh", "acosh", "atanh", "atan", "asin", "acos", "erf", "erfc",
        "nn.functional.softplus", "nn.functional.softsign", "nn.functional.mish",
        "nn.functional.elu", "nn.functional.gelu", "nonzero",
    ],
)  # fmt: skip
def test_functions_of_float64_are_exact(name: str) -> None:
    function: Any = torch
    for part in name.split("."):
        function = getattr(function, part)
    x = np.concatenate([np.linspace(-0.99, 0.99, 199), [-1e-9, 1e-9, 0.0, 1.0, -1.0]])
    if name in ("asinh", "atan", "erf", "erfc") or "functional" in name:
        x = np.concatenate([x, np.linspace(-12, 12, 99), [300.0, -300.0]])
    if name == "acosh":
        x = np.abs(x) + 1
    if name == "atanh":
        x = x[np.abs(x) < 1]
    agree(lambda x: function(x), ["float64[n]"], [x], 4e-15)


@pytest.mark.parametrize("dtype", ["bool", "int8", "int16", "uint16", "uint32", "uint64"])
def test_a_choice_between_elements_of_any_type(dtype: str) -> None:
    x, y = np.arange(4).astype(dtype), np.array([1, 0, 0, 250]).astype(dtype)
    chosen = np.array([True, False, True, False])
    kinds = ["bool[n]", f"{dtype}[n]", f"{dtype}[n]"]
    agree(torch.where, kinds, [chosen, x, y], 0)


def test_the_nodes_in_an_operators_place_keep_its_place() -> None:
    def either(x: Any) -> Any:
        if x.sum() > 0:
            return torch.where(x > 1, x > 2, x < -1)
        return torch.tan(x.double()) > 0.5

    model = hagane.capture(either, "float32[n]")
    nodes = list(model.graph.all_nodes())
    assert not {"Where", "Tan"} & {node.op_type for node in nodes}
    assert len({node.name for node in nodes}) == len(nodes)
    inner = [node for node in nodes if node.op_type in ("Or", "Sin")]
    assert all("hagane.place" in node.metadata_props for node in inner)
    agree(either, ["float32[n]"], [np.array([3.0, 1.5, -2], np.float32)], 0)
    agree(either, ["float32[n]"], [np.array([-3.0, 0.5, -2], np.float32)], 0)


def test_results_that_the_program_reads_on_are_no_copies() -> None:
    def padded(x: Any) -> Any:
        x = x + 1
        wide = torch.nn.functional.pad(x, (1, 1))
        return x, torch.nn.functional.conv1d(wide, torch.ones(2, 3, 3)), x

    model = hagane.capture(padded, "float32[n, 3, k]")
    made_by = [output.producer() for output in model.graph.outputs]
    assert [node and node.op_type for node in made_by] == ["Add", "Conv", "Identity"]
    agree(padded, ["float32[n, 3, 5]"], [np.ones((2, 3, 5), np.float32)], 1e-6)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.tensor(1000000007) ** x,
        lambda x: x**x,
        lambda x: x**5,
        lambda x: torch.tensor(6) ** x,
        lambda x: (x * torch.tensor([1000000007, 5915587277, 3, 1])).sum(-1) % 30000,
        lambda x: torch.sum(x * 1000000007 ** torch.arange(4)),
    ],
)
def test_integers_are_exact_and_wrap_around(function: Any) -> None:
    for x in ([0, 1, 2, 3], [5, 40, 39, 63], [7, 15, 3, 1 << 20], [64, 65, 1 << 62, 100]):
        agree(function, ["int64[4]"], [np.array(x)], 0)


def test_sums_of_small_integers_stay_sums() -> None:
    model = hagane.capture(lambda x: (x > 1).sum() + (x.long() * 100).sum(), "float32[n]")
    assert sum(node.op_type == "ReduceSum" for node in model.graph) == 2
