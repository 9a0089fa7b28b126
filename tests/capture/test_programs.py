"""A captured program returns what the program returns, on every path through it."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

import hagane
from hagane.graph import to_proto

from .meanings import flat
from .programs import INPUTS, PROGRAMS, TYPE, Gated

pytestmark = pytest.mark.filterwarnings("ignore")


def compare(function: Any, model: Any, inputs: list[Any]) -> None:
    """Check that graph and function agree, in ONNX Runtime and in hagane."""
    proto = to_proto(model)
    onnx.checker.check_model(proto, full_check=True)
    content = proto.SerializeToString()
    for session in (onnxruntime.InferenceSession(content), hagane.InferenceSession(content)):
        for x in inputs:
            expected = list(flat(function(x.clone())))
            found = session.run(None, {"x": np.array(x.numpy())})
            assert len(found) == len(expected)
            for ours, theirs in zip(found, expected, strict=True):
                assert ours.shape == theirs.shape
                np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_program_and_its_graph_agree_on_all_paths(program: Any) -> None:
    compare(program, hagane.capture(program, TYPE), INPUTS)


def test_a_model_keeps_the_names_of_its_weights() -> None:
    torch.manual_seed(0)
    model = Gated().eval()
    graph = hagane.capture(model, TYPE)
    weights = {"down.weight", "down.bias", "up.1.weight", "up.1.bias"}
    assert weights <= graph.graph.initializers.keys()
    compare(model, graph, INPUTS)


def test_inputs_and_outputs_have_names_and_symbolic_sizes() -> None:
    def named(x: Any, scale: Any) -> Any:
        return {"logits": x * scale, "hidden": [x, (x.sum(), None)]}

    model = hagane.capture(named, x="float32[rows, 3]", scale="float32[]")
    assert [value.name for value in model.graph.inputs] == ["x", "scale"]
    assert str(model.graph.inputs[0].shape) == "[rows,3]"
    names = [value.name for value in model.graph.outputs]
    assert names == ["logits", "hidden.0", "hidden.1.0"]


def test_examples_fix_sizes_that_are_not_said_to_vary() -> None:
    x = torch.zeros(4, 3)
    fixed = hagane.capture(torch_exp, x)
    assert fixed.graph.inputs[0].shape.numpy() == (4, 3)
    varying = hagane.capture(torch_exp, x, dynamic={"x": {0: "rows"}})
    assert str(varying.graph.inputs[0].shape) == "[rows,3]"


def torch_exp(x: Any) -> Any:
    return torch.exp(x)


def test_a_branch_is_an_if_and_a_loop_a_loop() -> None:
    by_name = {program.__name__: program for program in PROGRAMS}
    kinds = {node.op_type for node in hagane.capture(by_name["either"], TYPE).graph}
    assert "If" in kinds
    kinds = {node.op_type for node in hagane.capture(by_name["stacked"], TYPE).graph}
    assert "Loop" in kinds
    kinds = {node.op_type for node in hagane.capture(by_name["functions"], TYPE).graph}
    assert "Loop" not in kinds


def test_nodes_know_their_place_in_the_source() -> None:
    model = hagane.capture(torch_exp, TYPE)
    (place,) = {
        node.metadata_props["hagane.place"] for node in model.graph if node.op_type == "Exp"
    }
    file, line, _ = place.rsplit(":", 2)
    assert file == __file__
    assert int(line) == torch_exp.__code__.co_firstlineno + 1


# Refusals.


def drawn(x: Any) -> Any:
    return x + torch.rand(3)


def stored(x: Any) -> Any:
    x[0] = 1.0
    return x


def in_place(x: Any) -> Any:
    x.exp_()
    return x


def aliased(x: Any) -> Any:
    y = x
    x += 1
    return y


def within(x: Any) -> Any:
    y = torch.exp(x)
    return y, torch.nn.functional.relu(y, inplace=True)


def rectified(x: Any) -> Any:
    return torch.nn.functional.relu(x, inplace=True)


def growing(x: Any) -> Any:
    queue = [x[0], x[1]]
    for row in queue:
        if row.sum() > 0:
            queue.append(row - 1)
    return queue[-1]


def counted(x: Any) -> Any:
    seen = set()
    for row in x:
        seen.add(int(row.sum()))
    return len(seen)


def numbered(x: Any) -> Any:
    names = []
    for _ in x:
        names.append("row")
    return names


@pytest.mark.parametrize("function", [stored, in_place, aliased, rectified])
def test_the_new_content_of_an_argument_is_an_output(function: Any) -> None:
    model = hagane.capture(function, TYPE)
    assert [value.name for value in model.graph.outputs] == ["output", "x.new"]
    for x in INPUTS:
        want = function(x)  # changes it
        for found in hagane.InferenceSession(model).run(None, {"x": np.array(x)}):
            assert found.shape == tuple(want.shape)


@pytest.mark.parametrize(
    ("function", "line", "text"),
    [
        (drawn, 1, r"'torch.rand' cannot be captured: it draws random numbers.* draw them outside"),
        (within, 2, r"follows others in one expression.* give it a statement of its own"),
        (growing, 2, r"a loop runs over a list that it changes; run over a copy, or use while"),
        (counted, 3, r"a set holds values that the data decide; use a list"),
        (numbered, 4, r"a list is returned whose length the data decide, of str\('row'\)"),
    ],
)
def test_what_cannot_become_a_graph_is_named_with_its_place(
    function: Any, line: int, text: str
) -> None:
    with pytest.raises(hagane.errors.CaptureError, match=text) as caught:
        hagane.capture(function, TYPE)
    number = function.__code__.co_firstlineno + line
    assert any(f"{__file__}:{number}: " in problem for problem in caught.value.problems)


def doubled(module: Any, args: Any) -> Any:
    return args[0] * 2


def shifted(module: Any, args: Any, kwargs: Any, output: Any) -> Any:
    return output + args[0] * kwargs.get("scale", 3)


def test_hooks_of_modules_are_part_of_the_graph() -> None:
    model = Gated().eval()
    x = torch.randn(4, 3)
    plain = model(x)
    model.up.register_forward_pre_hook(doubled)
    model.up.register_forward_hook(lambda module, args, output: output - 1, prepend=True)
    model.register_forward_hook(shifted, with_kwargs=True)
    captured = hagane.capture(model, TYPE)
    session = hagane.InferenceSession(captured)
    (found,) = session.run(None, {"x": x.numpy()})
    assert not torch.allclose(model(x), plain)
    np.testing.assert_allclose(found, model(x).detach().numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_weights_by_length_and_direction_are_computed_in_each_call() -> None:
    layer = torch.nn.utils.weight_norm(torch.nn.Linear(3, 3))
    model = torch.nn.Sequential(layer, torch.nn.utils.weight_norm(torch.nn.Linear(3, 2), dim=None))
    with torch.no_grad():
        layer.weight_g.mul_(2.0)  # ``weight`` is what it was before
    captured = hagane.capture(model, TYPE)
    assert [value.name for value in captured.graph.outputs] == ["output"]
    x = torch.randn(4, 3)
    (found,) = hagane.InferenceSession(captured).run(None, {"input": x.numpy()})
    np.testing.assert_allclose(found, model(x).detach().numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_hooks_of_pytorch_that_compute_weights_are_refused() -> None:
    model = torch.nn.Sequential(torch.nn.utils.spectral_norm(torch.nn.Linear(3, 3)))
    with pytest.raises(
        hagane.errors.CaptureError,
        match=r"Linear has a forward hook .*\(SpectralNorm\).* remove it",
    ):
        hagane.capture(model, TYPE)
