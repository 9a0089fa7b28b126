"""What must hold of any pass, checked on small models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import onnx
import onnx_ir as ir
from onnx import helper

from hagane.graph import load, verify
from hagane.graph.names import separate_names
from hagane.graph.types import TensorType, Type
from hagane.graph.walk import all_graphs
from hagane.ops import GraphTypes, infer_types
from hagane.passes import PASSES, Pass, optimize
from hagane.passes.legalise import legalise
from hagane.symbolic import symbols_of
from tests.native.models import model, session

Feed = dict[str, np.ndarray]


def applied(
    proto: onnx.ModelProto, feed: Feed, *, tolerance: float = 1e-5
) -> tuple[dict[str, int], list[str]]:
    """Apply each pass alone, then all; check both, and return counts and the operators left.

    Outputs must be what they were on the reference engine, their types too; the graph must be well
    formed after each pass; and a second time nothing may change.
    """
    want = session(proto, engine="reference").run(None, feed)
    for one in PASSES:
        made = _ready(proto)
        if _alone(one, made):
            _check(made, proto, feed, want, tolerance)
    made = _ready(proto)
    changes = optimize(made.graph, infer_types(made), lacking=())
    if any(change.count for change in changes if change.shows):  # as sessions do
        changes += optimize(made.graph, infer_types(made), lacking=())
    _check(made, proto, feed, want, tolerance)
    again = optimize(made.graph, infer_types(made), lacking=())
    assert {change.name: change.nodes for change in again if change.nodes} == {}
    counts = Counter[str]()
    for change in changes:
        counts += Counter({change.name: change.count})
    return counts, [node.op_type for node in made.graph]


def counted(nodes: Sequence[onnx.NodeProto], constants: Feed, **inputs: np.ndarray) -> set[str]:
    """Return which passes change a model of these nodes that computes ``y``."""
    return set(applied(model(nodes, inputs, constants=constants), inputs)[0])


def node(op_type: str, inputs: str, output: str, **attributes: object) -> onnx.NodeProto:
    """Return a node; ``inputs`` are names with spaces between them."""
    return helper.make_node(op_type, inputs.split(), [output], **attributes)


def _ready(proto: onnx.ModelProto) -> ir.Model:
    made = load(proto)
    legalise(made)
    return made


def _alone(one: Pass, made: ir.Model) -> list[str]:
    changed = _run(one, made)
    verify(made)
    assert _run(one, made) == [], one.name
    return changed


def _run(one: Pass, made: ir.Model) -> list[str]:
    types = infer_types(made)
    return [name for graph in list(all_graphs(made.graph)) for name in one.run(graph, types)]


def _known(before: Type, after: Type, types: GraphTypes) -> Type:
    """Return the type after, with what nothing told before as it was."""
    if not isinstance(before, TensorType) or not isinstance(after, TensorType):
        return after
    if before.shape is None:
        return TensorType(after.dtype, None)
    if after.shape is None:
        return after
    dims = (
        old if symbols_of(old) & types.invented else new
        for old, new in zip(before.shape, after.shape, strict=True)
    )
    return TensorType(after.dtype, tuple(dims))


def _check(
    made: ir.Model, proto: onnx.ModelProto, feed: Feed, want: Sequence[np.ndarray], tolerance: float
) -> None:
    verify(made)
    before = _ready(proto)
    old, new = infer_types(before), infer_types(made)
    for left, right in zip(made.graph.outputs, before.graph.outputs, strict=True):
        assert left.name == right.name
        assert _known(old.types[right], new.types[left], old) == old.types[right]
    separate_names(made.graph)
    got = session(ir.to_proto(made), engine="reference").run(None, feed)
    for result, expected in zip(got, want, strict=True):
        assert result.dtype == expected.dtype
        if result.dtype == object:  # text
            assert result.tolist() == expected.tolist()
            continue
        np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)
