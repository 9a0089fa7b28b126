"""Rules that give up after they have claimed nodes leave these to others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import helper

from hagane.native.lowering.epilogue import follow
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering
from hagane.native.plan import apply_rules
from tests.native.models import draw, model, refused, session


def test_followers_of_a_node_are_lowered_when_its_first_rule_gives_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rules_of = apply_rules.rules_of
    claimed: list[int] = []

    def gives_up(low: Lowering, node: ir.Node) -> None:
        claimed.append(len(follow(low, node.outputs[0]).nodes))
        raise NotNative("for no reason")

    def with_another(node: ir.Node) -> Sequence[Callable[[Any, ir.Node], None]]:
        rules = list(rules_of(node))
        return [gives_up, *rules] if node.op_type == "Conv" else rules

    monkeypatch.setattr(apply_rules, "rules_of", with_another)
    x, w = draw((2, 5, 7, 6)), draw((9, 5, 3, 3), 1)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1] * 4),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    found = session(model(nodes, {"x": x}, constants={"w": w}))
    assert refused(found) == {}
    assert claimed[0] == 1
    monkeypatch.undo()
    expected = session(model(nodes, {"x": x}, constants={"w": w})).run(None, {"x": x})[0]
    np.testing.assert_array_equal(found.run(None, {"x": x})[0], expected)
    assert (expected >= 0).all()
