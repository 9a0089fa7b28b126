"""Policies rewritten to answer for an observation and all its blends at once."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

from hagane.tools.rl.agents.onnx import OnnxAgent
from hagane.tools.rl.agents.protocol import Watched
from hagane.tools.rl.blends import blended
from hagane.tools.rl.explain.perturbing import Grid, blends_of, blur_matrix, greydanus, masks_of
from hagane.tools.rl.explain.subject import Subject, Target

from . import networks

TARGETS = {"actor": Target("action_logits"), "critic": Target("state_value")}


@pytest.mark.parametrize(
    ("model", "shape", "grid"),
    [
        ({"channels": 3, "last": True}, (23, 30, 3), Grid(6, 2, 2)),
        ({"channels": 4, "state": 2}, (4, 41, 26), Grid(10, 5, 3, "disc", across=True)),
        ({"channels": 9}, (9, 19, 17), Grid(8, 3, 1)),
    ],
    ids=["bytes, channels last", "recurrent, frames blurred into each other", "many channels"],
)
def test_maps_of_one_graph_are_those_of_a_batch(
    model: dict[str, object], shape: tuple[int, ...], grid: Grid
) -> None:
    draw = np.random.default_rng(1)
    bytes_seen = draw.integers(0, 256, shape, np.uint8)
    seen = bytes_seen.astype(np.float32) if "last" in model else bytes_seen / np.float32(255)
    state = (draw.normal(size=(1, 2)).astype(np.float32),) if "state" in model else None
    subject = Subject(Watched(OnnxAgent(networks.looking(**model))), seen, state)
    blends = blends_of(subject, grid)
    assert blends is not None
    outputs, after = blends.forward(seen[None], state)
    count = 1 + len(masks_of(*subject.plane, grid)[0])
    assert {len(value) for value in outputs.values()} == {count}
    assert [len(part) for part in after or ()] == [count] * bool(state)
    fast, slow = greydanus(subject, TARGETS, grid, blends), greydanus(subject, TARGETS, grid)
    for name, found in slow.items():
        assert found.max() > 1e-6
        np.testing.assert_allclose(fast[name], found, atol=2e-4 * found.max())


def test_small_changes_keep_their_digits() -> None:
    seen = np.random.default_rng(0).random((4, 24, 24)).astype(np.float32)
    model = onnx.load_from_string(networks.looking())
    logits = next(t for t in model.graph.initializer if t.name == "logits_bias")
    logits.CopyFrom(onnx.numpy_helper.from_array(np.float32([3e4, -2e4, 1e4]), "logits_bias"))
    plain = OnnxAgent(networks.looking())
    lifted = OnnxAgent(model.SerializeToString())
    grid = Grid(6, 3, 2)
    found = []
    for agent in (plain, lifted):
        subject = Subject(Watched(agent), seen)
        outputs, _ = blends_of(subject, grid).forward(seen[None], None)
        found.append(outputs["action_logits"] - outputs["action_logits"][0])
    np.testing.assert_allclose(found[1], found[0], atol=4e-3)  # float32 at 3e4


def refused(model: bytes, last: bool = False) -> bool:
    masks = masks_of(24, 24, Grid(8))[0]
    blurs = [blur_matrix(24, 3.0)] * 2
    if last:
        return blended(model, masks, blurs, (1, 24, 24, 4), (1, 2)) is None
    return blended(model, masks, blurs, (1, 4, 24, 24), (2, 3)) is None


def test_graphs_that_do_not_begin_with_a_convolution_are_left_alone() -> None:
    assert not refused(networks.looking())
    assert refused(networks.values((4, 24, 24)))
    assert refused(networks.looking(24), last=True)
    assert not refused(networks.looking(old=12))
    for change in (
        lambda graph: graph.input[0].type.tensor_type.shape.dim[0].CopyFrom(_size(1)),
        lambda graph: _padded_alike(graph.node[0]),
        lambda graph: _computed(graph, 1),
        lambda graph: graph.node.insert(0, helper.make_node("Exp", ["observation"], ["y"])),
        lambda graph: graph.output[0].CopyFrom(graph.input[0]),
    ):
        model = onnx.load_from_string(networks.looking())
        change(model.graph)
        assert refused(model.SerializeToString())


def _padded_alike(node: onnx.NodeProto) -> None:
    kept = [a for a in node.attribute if a.name == "strides"]
    del node.attribute[:]
    node.attribute.extend([*kept, helper.make_attribute("auto_pad", "SAME_UPPER")])


def _computed(graph: onnx.GraphProto, index: int) -> None:
    graph.node.insert(0, helper.make_node("Neg", [graph.node[0].input[index]], ["computed"]))
    graph.node[1].input[index] = "computed"


def _size(size: int) -> onnx.TensorShapeProto.Dimension:
    return onnx.TensorShapeProto.Dimension(dim_value=size)


def test_agents_without_a_graph_are_asked_about_a_batch() -> None:
    class Sums:
        def act(self, observation):
            return 0

        def forward(self, batch, state=None):
            return {"action_values": batch.sum((1, 2, 3), keepdims=True)[:, 0, 0]}, None

    assert blends_of(Subject(Watched(Sums()), np.ones((1, 9, 9), np.float32)), Grid(3)) is None
    flat = OnnxAgent(networks.values((2, 12, 12)))
    assert blends_of(Subject(Watched(flat), np.ones((2, 12, 12), np.float32)), Grid(3)) is None
