"""Whether the keywords of a JSON schema have the types that they must have.

Source: JSON Schema, draft 2020-12, core sections 8 to 11 and validation section 6; RFC 6901 for
pointers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from hagane.errors import InvalidArgument

# What schemas and other objects of JSON are in Python. A dictionary is told at once; asking for
# Mapping takes several times as long, and a schema is asked hundreds of times.
OBJECTS = (dict, Mapping)

_SURROGATE = re.compile(r"[\ud800-\udfff]")
TYPES = ("string", "number", "integer", "boolean", "null", "object", "array")


class TooManyWays(InvalidArgument):
    """A schema combines its parts in more ways than are followed."""


def refuse(where: str, problem: str, error: type[InvalidArgument] = InvalidArgument) -> NoReturn:
    """Raise the error about a place in a schema."""
    raise error(f"JSON schema, {where}: {problem}")


def pointer(where: str, *steps: str | int) -> str:
    """Return the JSON pointer of a member of a place."""
    for step in steps:
        text = str(step)
        if "~" in text or "/" in text:
            text = text.replace("~", "~0").replace("/", "~1")
        where = f"{where}/{text}"
    return where


# What constrained values before draft 4, with what does so since.
_OF_DRAFT_3 = {"disallow": "not", "divisibleBy": "multipleOf", "extends": "allOf"}
_OLDEST = re.compile(r"json-schema\.org/draft-0[0-3]/")


def check_form(schema: Mapping[str, Any], where: str) -> None:
    """Refuse a schema with a keyword of another type than it must have.

    Raises:
        InvalidArgument: The message has the pointer, the expected value and the given one.
    """
    for keyword, value in schema.items():
        if not isinstance(keyword, str):
            refuse(where, f"expected keywords that are strings, got {keyword!r}")
        if keyword in _OF_DRAFT_3:
            since = _OF_DRAFT_3[keyword]
            refuse(pointer(where, keyword), f"a keyword of draft 3 alone; write '{since}'")
        if keyword == "$schema" and isinstance(value, str) and _OLDEST.search(value):
            told = "in which keywords have other meanings; write it in draft 4 or a later one"
            refuse(pointer(where, keyword), f"'{value}' is a draft {told}")
        if keyword not in _FORMS:
            continue
        allowed, expected, remedy = _FORMS[keyword]
        if not allowed(value):
            refuse(
                pointer(where, keyword),
                f"expected {expected}, got {_shown(value)}; {remedy(value)}",
            )


def is_json(value: Any) -> bool:
    """Return whether a value is one of JSON."""
    if isinstance(value, OBJECTS):
        return all(_is_text(key) and is_json(each) for key, each in value.items())
    if isinstance(value, list):
        return all(is_json(each) for each in value)
    if isinstance(value, str):
        return _is_text(value)
    return value is None or isinstance(value, (bool, int)) or _is_number(value)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _is_schema(value: Any) -> bool:
    return isinstance(value, (Mapping, bool))


def _is_schemas(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_schema, value))


def _is_members(value: Any) -> bool:
    return isinstance(value, OBJECTS) and all(
        _is_text(name) and _is_schema(each) for name, each in value.items()
    )


def _is_names(value: Any) -> bool:
    named = isinstance(value, list) and all(map(_is_text, value))
    return named and len(set(value)) == len(value)


def _is_types(value: Any) -> bool:
    if isinstance(value, str):
        return value in TYPES
    return _is_names(value) and bool(value) and set(value) <= set(TYPES)


def _is_items(value: Any) -> bool:
    return _is_schema(value) or _is_schemas(value)


def _is_needs(value: Any) -> bool:
    return isinstance(value, OBJECTS) and all(_is_names(each) for each in value.values())


def _is_dependencies(value: Any) -> bool:
    return isinstance(value, OBJECTS) and all(
        _is_names(each) or _is_schema(each) for each in value.values()
    )


def _is_limit(value: Any) -> bool:
    return isinstance(value, bool) or _is_number(value)


def _is_factor(value: Any) -> bool:
    return _is_number(value) and value > 0


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and float(value).is_integer()


def _is_number(value: Any) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and math.isfinite(value)


def _is_values(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and is_json(value)


def _is_text(value: Any) -> bool:
    """Return whether a value is a text of characters, none of them half of a surrogate pair."""
    return isinstance(value, str) and (value.isascii() or not _SURROGATE.search(value))


def _always(remedy: str) -> Callable[[Any], str]:
    return lambda value: remedy


def _about_required(value: Any) -> str:
    if isinstance(value, bool):
        return "since draft 4 the object lists the names of its required properties"
    if isinstance(value, str):
        return f'write ["{value}"]'
    return 'write each name once, as in ["name"]'


def _about_properties(value: Any) -> str:
    if isinstance(value, list):
        return (
            "write {\"name\": {…}} for each property; names that must be there go into 'required'"
        )
    return 'write {"name": {"type": "string"}}, or {"name": true} for any value'


def _about_items(value: Any) -> str:
    return 'write {"type": "string"}, or true for any value'


def _about_type(value: Any) -> str:
    if value is None:
        return 'write "null" for the type of null'
    return 'write "string", or ["string", "null"] for several'


_Form = tuple[Callable[[Any], bool], str, Callable[[Any], str]]
_COUNT: _Form = (_is_count, "a whole number of at least 0", _always("drop it for no bound"))
_BOUND: _Form = (_is_number, "a finite number", _always("drop it for no bound"))
# Draft 4 had true for the bound beside it.
_LIMIT: _Form = (_is_limit, "a finite number", _always("drop it for no bound"))
_SCHEMA: _Form = (_is_schema, "a schema", _always('write {"type": "string"}, true or false'))
_SCHEMAS: _Form = (
    _is_schemas,
    "a list of schemas, not empty",
    _always('write [{"type": "string"}, …]'),
)
_TEXT: _Form = (_is_text, "a string", _always("write it in quotes"))
_FORMS: dict[str, _Form] = {
    "type": (_is_types, f"a type ({', '.join(TYPES)}) or a list of types", _about_type),
    "enum": (_is_values, "a list of values, not empty", _always('write ["a", 1], or "const"')),
    "const": (
        is_json,
        "a value of JSON",
        _always("use null, true, numbers, texts (no half surrogate pairs), lists, dicts"),
    ),
    "anyOf": _SCHEMAS,
    "oneOf": _SCHEMAS,
    "allOf": _SCHEMAS,
    "$ref": (_is_text, "a pointer as a string", _always('write "#/$defs/name"')),
    "properties": (_is_members, "an object of schemas", _about_properties),
    "required": (_is_names, "a list of different names", _about_required),
    "additionalProperties": (_is_schema, "a schema", _always("write false for no more members")),
    "items": (_is_items, "a schema, or a list of them", _about_items),
    "additionalItems": (_is_schema, "a schema", _about_items),
    "uniqueItems": (_is_flag, "true or false", _always("drop it for any items")),
    "contains": _SCHEMA,
    "unevaluatedItems": _SCHEMA,
    "unevaluatedProperties": _SCHEMA,
    "$dynamicRef": (_is_text, "a pointer as a string", _always('write "#name"')),
    "$recursiveRef": (_is_text, "a pointer as a string", _always('write "#"')),
    "$defs": (_is_members, "an object of schemas", _about_properties),
    "definitions": (_is_members, "an object of schemas", _about_properties),
    "nullable": (_is_flag, "true or false", _always('write ["string", "null"] as the type')),
    "minContains": _COUNT,
    "maxContains": _COUNT,
    "patternProperties": (_is_members, "an object of schemas", _about_properties),
    "propertyNames": (_is_schema, "a schema", _always('write {"pattern": "^[a-z]+$"}')),
    "minProperties": _COUNT,
    "maxProperties": _COUNT,
    "dependentRequired": (
        _is_needs,
        "an object of lists of names",
        _always('write {"a": ["b"]} where "a" needs "b"'),
    ),
    "dependentSchemas": (_is_members, "an object of schemas", _about_properties),
    "dependencies": (
        _is_dependencies,
        "an object of lists of names, or of schemas",
        _always('write {"a": ["b"]} where "a" needs "b"'),
    ),
    "not": _SCHEMA,
    "if": _SCHEMA,
    "then": _SCHEMA,
    "else": _SCHEMA,
    "multipleOf": (_is_factor, "a number above 0", _always("drop it for any number")),
    "prefixItems": _SCHEMAS,
    "minItems": _COUNT,
    "maxItems": _COUNT,
    "minLength": _COUNT,
    "maxLength": _COUNT,
    "pattern": _TEXT,
    "format": _TEXT,
    "minimum": _BOUND,
    "maximum": _BOUND,
    "exclusiveMinimum": _LIMIT,
    "exclusiveMaximum": _LIMIT,
}
