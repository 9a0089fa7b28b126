"""Every operator that hagane defines, found by domain and name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import onnx_ir as ir

from hagane.errors import UnsupportedModel
from hagane.graph.verify import describe
from hagane.graph.walk import all_nodes
from hagane.ops.definition import OpDef
from hagane.ops.families import Operators, schemas
from hagane.ops.schema import Schema, onnx_schema
from hagane.ops.traits import Trait


@cache
def operators() -> Mapping[tuple[str, str], OpDef]:
    """Return all operators by domain and name."""
    return Operators()


def find(node: ir.Node) -> OpDef:
    """Return the definition of a node's operator."""
    try:
        return operators()[node.domain, node.op_type]
    except KeyError:
        raise UnsupportedModel([_missing(node)]) from None


def has_trait(node: ir.Node | None, traits: Trait) -> bool:
    """Whether a node's operator has one of some traits."""
    return node is not None and bool(find(node).traits & traits)


def schema_of(node: ir.Node) -> Schema:
    """Return the schema of a node's operator."""
    return schema(node.domain, node.op_type)


@cache
def schema(domain: str, name: str) -> Schema:
    """Return the schema of an operator: ONNX's, or ours for domains that ONNX does not define."""
    found = onnx_schema(domain, name)
    if found is None:
        found = schemas().get((domain, name))
    if found is None:
        raise UnsupportedModel([f"operator {domain}::{name} has no schema"])
    return found


def unsupported_nodes(graph: ir.Graph) -> list[str]:
    """Return one line for each node whose operator has no definition, subgraphs included."""
    return [_missing(node) for node in all_nodes(graph) if not _is_known(node)]


def _is_known(node: ir.Node) -> bool:
    return (node.domain, node.op_type) in operators()


def _missing(node: ir.Node) -> str:
    return f"{describe(node)}: operator '{node.op_type}' of domain '{node.domain or 'ai.onnx'}'"
