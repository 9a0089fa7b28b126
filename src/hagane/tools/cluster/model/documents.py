"""YAML documents that know where each value stands.

Values are plain Python; positions are looked up again only when something is wrong, so that large
files load at the speed of libyaml.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hagane.errors import MissingExtra
from hagane.tools.cluster.errors import InvalidManifest

Step = str | int


@dataclass(frozen=True, slots=True)
class Place:
    """A value in a document: the source, which document of it, and the way down."""

    source: str
    text: str
    document: int
    steps: tuple[Step, ...] = ()

    def __truediv__(self, step: Step) -> Place:
        return Place(self.source, self.text, self.document, (*self.steps, step))

    @property
    def path(self) -> str:
        """The way down as Kubernetes writes it: ``spec.containers[0].image``."""
        out = ""
        for step in self.steps:
            out += f"[{step}]" if isinstance(step, int) else f".{step}" if out else step
        return out or "(document)"

    def position(self) -> str:
        """Return ``file:line:column`` of the value, or of the nearest thing around it."""
        if not self.text:
            return self.source
        yaml = _yaml()
        try:
            nodes = list(yaml.compose_all(self.text, Loader=yaml.SafeLoader))
        except yaml.YAMLError:
            return self.source
        nodes = [node for node in nodes if not _is_null(node)]
        if self.document >= len(nodes):
            return self.source
        node = nodes[self.document]
        mark = node.start_mark
        for step in self.steps:
            found = None
            if isinstance(node, yaml.MappingNode):
                for key, value in node.value:
                    if key.value == str(step):
                        found, mark = value, key.start_mark
            elif isinstance(node, yaml.SequenceNode) and step in range(len(node.value)):
                found = node.value[step]
                mark = found.start_mark
            if found is None:
                break
            node = found
        return f"{self.source}:{mark.line + 1}:{mark.column + 1}"

    def error(self, message: str) -> InvalidManifest:
        """Return an error that names this place."""
        return InvalidManifest(f"{self.position()}: {self.path}: {message}")


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a file."""

    value: Any
    place: Place


def read_documents(path: Path | str) -> list[Document]:
    """Return the documents of a YAML (or JSON) file; empty ones are left out.

    Raises:
        InvalidManifest: if the file is missing or is not YAML.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidManifest(
            f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from None
    return parse_documents(text, str(path))


def parse_documents(text: str, source: str = "<string>", aliases: bool = True) -> list[Document]:
    """Return the documents of a text; empty ones are left out.

    Args:
        text: YAML, or JSON.
        source: Its name in messages.
        aliases: Whether parts may be used again (``*name``), by which a short text from a stranger
            can stand for a huge object.

    Raises:
        InvalidManifest: if the text is not YAML.
    """
    yaml = _yaml()
    try:
        if not aliases:
            for event in yaml.parse(text, Loader=_loader()):
                if isinstance(event, yaml.AliasEvent):
                    raise yaml.YAMLError(f"aliases are not read here, got '*{event.anchor}'")
        values = [v for v in yaml.load_all(text, Loader=_loader()) if v is not None]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{source}:{mark.line + 1}:{mark.column + 1}" if mark else source
        raise InvalidManifest(f"{where}: not YAML: {error.problem}") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise InvalidManifest(f"{source}: not YAML: {error}") from None
    return [Document(v, Place(source, text, i)) for i, v in enumerate(values)]


def _yaml() -> Any:
    try:
        import yaml
    except ImportError:
        raise MissingExtra("reading cluster manifests", "cluster") from None
    return yaml


def _loader() -> Any:
    yaml = _yaml()
    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc]
        """Timestamps stay text: Kubernetes parses them itself, with their zone."""

        yaml_implicit_resolvers = {  # noqa: RUF012
            letter: [(tag, regexp) for tag, regexp in rules if not tag.endswith(":timestamp")]
            for letter, rules in base.yaml_implicit_resolvers.items()
        }

    return Loader


def _is_null(node: Any) -> bool:
    return bool(node.tag == "tag:yaml.org,2002:null")
