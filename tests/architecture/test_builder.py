"""Nodes of a graph are made by the builder alone."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import hagane

from .names import full_name, imported_names

SOURCE = Path(hagane.__file__).parent


def test_every_node_comes_from_the_builder() -> None:
    """An operator applied elsewhere would pass by type rules, and by every other interpreter."""
    found = [
        f"{path.relative_to(SOURCE).as_posix()}:{line}"
        for path in sorted(SOURCE.rglob("*.py"))
        for text in [path.read_text(encoding="utf-8")]
        if "onnx_ir" in text  # others cannot name its nodes
        for line in calls_that_make_nodes(text)
    ]
    assert {place.rpartition(":")[0] for place in found} == {"ops/builder/node.py"}, found


@pytest.mark.parametrize(
    "text",
    [
        "ir.Node('', 'Relu', [x])",
        "onnx_ir.node('Relu', [x])",
        "Node('', 'Relu', [x])",
    ],
)
def test_each_way_of_making_a_node_is_seen(text: str) -> None:
    imports = "import onnx_ir\nimport onnx_ir as ir\nfrom onnx_ir import Node\n"
    assert calls_that_make_nodes(f"{imports}y = {text}\n") == [4]


def calls_that_make_nodes(text: str) -> list[int]:
    """Return the lines on which a module makes nodes of a graph."""
    tree = ast.parse(text)
    names = imported_names(tree)
    makers = {"onnx_ir.Node", "onnx_ir.node"}
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and full_name(node.func, names) in makers
    ]
