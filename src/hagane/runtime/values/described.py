"""An input, an output and a model, as a session tells of them."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class NodeArg:
    """An input or output of a model.

    Attributes:
        name: Its name.
        type: Its type as ONNX writes it, such as ``tensor(float)``.
        shape: Its sizes; a name or formula for varying ones, None for those without.
    """

    name: str
    type: str
    shape: list[int | str | None]

    def __hash__(self) -> int:
        return hash((self.name, self.type))


@dataclass(frozen=True, slots=True)
class ModelMetadata:
    """A model's description of itself."""

    producer_name: str = ""
    graph_name: str = ""
    graph_description: str = ""
    domain: str = ""
    description: str = ""
    version: int = 0
    custom_metadata_map: dict[str, str] = field(default_factory=dict)
