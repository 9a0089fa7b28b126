"""Drawings of graphs, and the page of their blocks."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import onnx_ir as ir
from onnx import TensorProto, helper, numpy_helper

from hagane.graph import load
from hagane.graph.blocks import blocks_of
from hagane.graph.draw import to_svg
from hagane.graph.page import to_html


def chain(count: int, names: str = "", skips: bool = False) -> ir.Model:
    """Return convolutions with activations one after another."""
    nodes, x = [], "x"
    for i in range(count):
        scope = f"/net/stage{i // 8}/" if names else ""
        nodes.append(helper.make_node("Conv", [x, "w"], [f"c{i}"], f"{scope}conv{i}"))
        nodes.append(helper.make_node("Relu", [f"c{i}"], [f"r{i}"], f"{scope}relu{i}"))
        before, x = x, f"r{i}"
        if skips:
            nodes.append(helper.make_node("Add", [x, before], [f"a{i}"], f"add{i}"))
            x = f"a{i}"
    shape = [1, 4, 8, 8]
    weight = numpy_helper.from_array(np.ones((4, 4, 1, 1), np.float32), "w")
    graph = helper.make_graph(
        nodes,
        "chain",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, shape)],
        [weight],
    )
    return load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]))


def boxes(svg: str) -> list[tuple[float, ...]]:
    found = re.findall(r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="(\d+)"', svg)
    return [tuple(map(float, one)) for one in found]


def test_a_deep_graph_is_about_as_high_as_wide_and_boxes_are_apart() -> None:
    svg = to_svg(chain(75))
    width, height = map(float, re.search(r'width="(\d+)" height="(\d+)"', svg).groups())  # type: ignore[union-attr]
    assert 0.4 < height / width < 1.6
    found = sorted(boxes(svg))
    assert len(found) == 152
    for (x1, y1, w1, h1), (x2, y2, _, _) in pairwise(found):
        assert x2 >= x1 + w1 or abs(y2 - y1) >= h1
    assert all(x + w <= width and y + h <= height for x, y, w, h in found)


def test_a_short_graph_stays_one_column() -> None:
    assert len({x + width / 2 for x, _, width, _ in boxes(to_svg(chain(4)))}) == 1


def test_lines_that_skip_boxes_pass_beside_them() -> None:
    svg = to_svg(chain(3, skips=True))
    found = boxes(svg)
    right = max(x + w for x, _, w, _ in found)
    passing = re.findall(r" ([\d.]+),[\d.]+ V([\d.]+) C", svg)
    assert len(passing) == 3
    assert all(float(x) > right for x, _ in passing)
    width = float(re.search(r'width="(\d+)"', svg).group(1))  # type: ignore[union-attr]
    assert all(float(x) < width for x, _ in passing)


def test_weights_are_left_out() -> None:
    svg = to_svg(chain(3))
    assert ">w<" not in svg
    assert svg.count("<path") == 7


def test_blocks_are_the_scopes_of_the_names() -> None:
    found = blocks_of(chain(32, names="scoped").graph)
    assert [(one.name, len(one.nodes)) for one in found] == [(f"stage{i}", 16) for i in range(4)]


def test_blocks_without_scopes_part_where_one_value_passes() -> None:
    graph = chain(6, skips=True).graph
    found = blocks_of(graph)
    assert [[node.op_type for node in one.nodes] for one in found] == [["Conv", "Relu", "Add"]] * 6
    assert [node for one in found for node in one.nodes] == list(graph)


def test_the_page_opens_to_the_drawing_of_each_block() -> None:
    page = to_html(chain(32, names="scoped"))
    assert page.count("<details>") == page.count("<svg") == 4
    assert "<b>stage2</b> Conv ×8, Relu ×8" in page
    assert "16 parameters" in page
    assert "<script" not in page
