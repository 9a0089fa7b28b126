"""Every operator that hagane defines, found by domain and name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module

import onnx_ir as ir

from hagane.errors import InvalidArgument, UnsupportedModel
from hagane.graph.verify import describe
from hagane.graph.walk import all_nodes
from hagane.ops.definition import OpDef
from hagane.ops.families import FAMILIES
from hagane.ops.schema import Schema, onnx_schema
from hagane.ops.traits import Trait


class Operators(Mapping[tuple[str, str], OpDef]):
    """Operators by domain and name; a family is imported when one of it is asked for."""

    def __init__(self) -> None:
        self._families = {
            (domain, name): family
            for family, domains in FAMILIES.items()
            for domain, names in domains.items()
            for name in names.split()
        }
        self._loaded: dict[tuple[str, str], OpDef] = {}
        self._own: dict[tuple[str, str], OpDef] = {}

    def add(self, op: OpDef) -> None:
        """Take up an operator of a user's, in place of an earlier one of that name.

        Raises:
            InvalidArgument: hagane defines the operator itself.
        """
        if op.key in self._families:
            raise InvalidArgument(
                f"operator '{op.name}' of domain '{op.domain or 'ai.onnx'}' is hagane's own: "
                "register yours in another domain"
            )
        self._own[op.key] = op

    def remove(self, key: tuple[str, str]) -> None:
        """Take out an operator of a user's, if it is there."""
        self._own.pop(key, None)

    @property
    def own(self) -> Mapping[tuple[str, str], OpDef]:
        """The operators of users."""
        return self._own

    def __getitem__(self, key: tuple[str, str]) -> OpDef:
        found = self._own.get(key) or self._loaded.get(key)
        if found is None:
            self._loaded |= {op.key: op for op in definitions(self._families[key])}
            found = self._loaded[key]
        return found

    def __contains__(self, key: object) -> bool:
        return key in self._own or key in self._families

    def __iter__(self) -> Iterator[tuple[str, str]]:
        yield from self._families
        yield from self._own

    def __len__(self) -> int:
        return len(self._families) + len(self._own)


def definitions(family: str) -> tuple[OpDef, ...]:
    """Return the operators of one family."""
    found: tuple[OpDef, ...] = import_module(f"hagane.ops.{family}").OPERATORS
    return found


def schemas() -> Mapping[tuple[str, str], Schema]:
    """Return the schemas of operators that ONNX does not define."""
    from hagane.ops import contrib
    from hagane.ops.control import own_gradient
    from hagane.ops.convolution import gradient, pooled_gradient
    from hagane.ops.elementwise import selected
    from hagane.ops.layout import stopping
    from hagane.ops.normalization import trained, trained_rows
    from hagane.ops.recurrent import steps

    own = (
        contrib, gradient, own_gradient, pooled_gradient, selected, steps, stopping, trained,
        trained_rows,
    )  # fmt: skip
    return {key: found for module in own for key, found in module.SCHEMAS.items()}


# Of the operators of users.
_OWN_SCHEMAS: dict[tuple[str, str], Schema] = {}


def add_operator(op: OpDef, its_schema: Schema) -> None:
    """Let every part of hagane know an operator of a user's.

    Raises:
        InvalidArgument: hagane defines the operator itself.
    """
    operators().add(op)
    _OWN_SCHEMAS[op.key] = its_schema
    schema.cache_clear()


def forget_operator(key: tuple[str, str]) -> None:
    """Take an operator of a user's out again."""
    operators().remove(key)
    _OWN_SCHEMAS.pop(key, None)
    schema.cache_clear()


@cache
def operators() -> Operators:
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
        found = _OWN_SCHEMAS.get((domain, name)) or schemas().get((domain, name))
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
