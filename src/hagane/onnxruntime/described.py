"""Inputs, outputs and models as ONNX Runtime tells of them: changes of theirs reach no session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hagane import runtime
from hagane.runtime import NodeArg as NodeArg

_CONTAINERS = ("seq(", "map(", "optional(seq(", "optional(map(")


def shown(item: NodeArg) -> NodeArg:
    """Return the description of an input or output; sequences and maps have no shape there."""
    shape = [] if item.type.startswith(_CONTAINERS) else list(item.shape)
    return NodeArg(item.name, item.type, shape)


class ModelMetadata:
    """A model's description of itself, whose attributes may be set.

    Args:
        facts: Those that the model has.
    """

    __slots__ = (
        "_properties",
        "description",
        "domain",
        "graph_description",
        "graph_name",
        "producer_name",
        "version",
    )

    def __init__(self, facts: runtime.ModelMetadata | None = None):
        facts = facts or runtime.ModelMetadata()
        self.producer_name = facts.producer_name
        self.graph_name = facts.graph_name
        self.graph_description = facts.graph_description
        self.domain = facts.domain
        self.description = facts.description
        self.version = facts.version
        self._properties = dict(facts.custom_metadata_map)

    @property
    def custom_metadata_map(self) -> dict[str, str]:
        """A copy of the model's properties by name."""
        return dict(self._properties)

    @custom_metadata_map.setter
    def custom_metadata_map(self, properties: Mapping[str, Any]) -> None:
        self._properties = dict(properties)
