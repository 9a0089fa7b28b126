"""The one place where nodes of a graph are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from hagane.ops.definition import OpDef


def node_of(
    op: OpDef,
    inputs: Sequence[ir.Value | None],
    attributes: Mapping[str, Any],
    outputs: int,
    name: str | None = None,
) -> ir.Node:
    """Return a new node of an operator; it lies in no graph yet.

    Args:
        op: The operator.
        inputs: Its operands, None for an absent one.
        attributes: Plain Python values, graphs or attributes of another node, by name.
        outputs: How many outputs it has.
        name: The name of the node.
    """
    made = [attribute(key, item) for key, item in attributes.items()]
    return ir.Node(op.domain, op.name, inputs, made, num_outputs=outputs, name=name)


def file_node(
    name: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any
) -> onnx.NodeProto:
    """Return a new node of a model that is edited as its file has it, at the file's own opset.

    Args:
        name: The operator, of ONNX's own domain.
        inputs: Names of its operands.
        outputs: Names of its outputs.
        attributes: Plain Python values by name.
    """
    return onnx.helper.make_node(name, inputs, outputs, **attributes)


def library_node(name: str, inputs: Sequence[ir.Value]) -> ir.Node:
    """Return a node for an operation of a library that is not taken apart into operators.

    It lies in the domain ``hagane.library``, which has types and no meaning: no graph that is run
    holds one.
    """
    return ir.Node("hagane.library", name, inputs, num_outputs=1)


def attribute(name: str, item: Any) -> ir.Attr:
    """Return a plain Python value as an attribute of a node."""
    if isinstance(item, np.ndarray):
        item = ir.tensor(item)
    if isinstance(item, bool):
        item = int(item)
    if isinstance(item, tuple) and not item:
        return ir.AttrInt64s(name, ())
    found = ir.convenience.convert_attribute(name, item)
    assert isinstance(found, ir.Attr)
    return found


def copy_node(node: ir.Node, inputs: Sequence[ir.Value | None], name: str) -> ir.Node:
    """Return a node of the same operator and attributes, which is in no graph yet.

    Args:
        node: The node to copy.
        inputs: The inputs of the copy.
        name: Of the copy.
    """
    return ir.Node(
        node.domain,
        node.op_type,
        list(inputs),
        list(node.attributes.values()),
        num_outputs=len(node.outputs),
        name=name,
    )
