"""Where the schemas within a schema lie, and the references between them.

Source: JSON Schema, draft 2020-12 (core, sections 8 and 9); RFC 6901 for pointers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any
from urllib.parse import unquote

from hagane.lexgen.masks.schemas.form import OBJECTS, pointer, refuse

_SCHEMA = (
    "additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items",
    "not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
)  # fmt: skip
_SCHEMAS = ("allOf", "anyOf", "items", "oneOf", "prefixItems")
_MEMBERS = (
    "$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties",
)  # fmt: skip
_DYNAMIC = ("$dynamicRef", "$recursiveRef")


class Places:
    """The schemas within a schema."""

    def __init__(self, root: Any):
        self._root = root

    @property
    def draft(self) -> Any:
        """The draft that the schema names."""
        return self._root.get("$schema") if isinstance(self._root, Mapping) else None

    @cached_property
    def evaluates(self) -> bool:
        """Whether a keyword asks which items or members others evaluate."""
        return any("unevaluatedItems" in s or "unevaluatedProperties" in s for s in self._all)

    @cached_property
    def _all(self) -> list[Mapping[str, Any]]:
        """All schemas within the schema, and itself."""
        return list(_within(self._root))

    @cached_property
    def _documents(self) -> dict[int, Any]:
        """The schemas with an address of their own that lie around others, by the others' identity.

        References begin there. It is empty where there is one document alone.
        """
        found: dict[int, Any] = {}
        for schema in self._all:  # those around others come first
            if schema is not self._root and _has_address(schema):
                found.update((id(each), schema) for each in _within(schema))
        return found

    def target(self, schema: Mapping[str, Any], keyword: str, where: str) -> tuple[Any, str]:
        """Return the schema that a reference names, and its pointer.

        Raises:
            InvalidArgument: There is none; it is in another document; it depends on the way to it.
        """
        place, target = pointer(where, keyword), schema[keyword]
        if keyword in _DYNAMIC and self._documents:
            refuse(place, "a reference that depends on the way to it is not covered")
        document = self._documents.get(id(schema), self._root)
        if target[:1] == "#" and target[1:2] in ("", "/"):
            return _at(document, target, place), target
        for each in _within(document) if target[:1] == "#" else self._all:
            names = [each.get("$id"), each.get("id")]
            names += [f"#{each[key]}" for key in ("$anchor", "$dynamicAnchor") if key in each]
            if target in names:
                return each, target
        return refuse(
            place,
            f"expected a pointer within the schema, got '{target}'; write '#/$defs/name' "
            "and copy what is in other files into '$defs'",
        )


def _has_address(schema: Mapping[str, Any]) -> bool:
    return any(isinstance(a := schema.get(key), str) and a[:1] != "#" for key in ("$id", "id"))


def _within(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Yield a schema and all those within it, which keywords say are schemas."""
    stack = [schema]
    while stack:
        at = stack.pop()
        if not isinstance(at, OBJECTS):
            continue
        yield at
        for key, value in at.items():
            if key in _SCHEMA:
                stack.append(value)
            if key in _SCHEMAS and isinstance(value, list):
                stack += value
            if key in _MEMBERS and isinstance(value, OBJECTS):
                stack += value.values()
            if key == "components" and isinstance(value, OBJECTS):  # OpenAPI
                named = value.get("schemas")
                stack += named.values() if isinstance(named, OBJECTS) else ()


def _at(root: Any, target: str, place: str) -> Any:
    """Return what is at a pointer."""
    at = root
    for step in unquote(target[1:]).split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(at, list) and name.isdecimal() and int(name) < len(at):
            at = at[int(name)]
        elif isinstance(at, Mapping) and name in at:
            at = at[name]
        else:
            there = f"; there are: {', '.join(at)}" if isinstance(at, Mapping) and at else ""
            refuse(place, f"there is nothing at '{target}', no '{name}'{there}")
    return at
