"""JSON schemas that fail: the cases of values of which one of their keywords does not hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hagane.lexgen.masks.cases import FALSE, TRUE, Arrays, Case, Objects, Strings, is_possible
from hagane.lexgen.masks.formats import FORMATS
from hagane.lexgen.masks.json_keywords import (
    ANYWHERE,
    OF_TYPE,
    PLAIN,
    each_of,
    fraction_of,
    other_than,
    pattern_texts,
    target_of,
    types_of,
)
from hagane.lexgen.masks.json_schema_form import pointer
from hagane.lexgen.masks.numbers import Numbers
from hagane.lexgen.masks.texts import ANYTHING, matching

if TYPE_CHECKING:
    from hagane.lexgen.masks.json_schema import Schemas


def failing(schemas: Schemas, schema: Mapping[str, Any], where: str) -> list[Case]:
    """Return the cases of values of which a schema does not hold."""
    schemas.check_keywords(schema, where)
    kinds, integer = types_of(schema)
    found: list[Case] = [case for kind, case in PLAIN.items() if kind not in kinds]
    if integer:
        found.append(Numbers(fractional=True))
    for keyword, value in schema.items():
        kind = OF_TYPE.get(keyword)
        if kind is None or kind in kinds:
            found += _contrary(schemas, keyword, value, schema, where)
    return [case for case in found if is_possible(case, schemas.possible)]


def _contrary(
    schemas: Schemas, keyword: str, value: Any, schema: Mapping[str, Any], where: str
) -> list[Case]:
    """Return the cases of values of which one keyword fails."""
    place = f"{where}/{keyword}"
    match keyword:
        case "enum" | "const":
            return other_than(value if keyword == "enum" else [value], place)
        case "allOf":
            return schemas.any_of(each_of(schema, keyword, where), holds=False)
        case "anyOf":
            return schemas.every(each_of(schema, keyword, where), holds=False)
        case "not":
            return schemas.cases(schemas.conjunction(value, place))
        case "$ref":
            return schemas.cases(
                schemas.conjunction(*target_of(schemas.root, value, where), holds=False)
            )
        case "minLength":
            return [Strings(high=int(value) - 1)]
        case "maxLength":
            return [Strings(low=int(value) + 1)]
        case "pattern":
            return [Strings(ANYTHING - pattern_texts(value, place))]
        case "minimum":
            open_ = schema.get("exclusiveMinimum") is True
            return [Numbers(high=fraction_of(value), high_open=not open_)]
        case "maximum":
            open_ = schema.get("exclusiveMaximum") is True
            return [Numbers(low=fraction_of(value), low_open=not open_)]
        case "exclusiveMinimum" if not isinstance(value, bool):
            return [Numbers(high=fraction_of(value))]
        case "exclusiveMaximum" if not isinstance(value, bool):
            return [Numbers(low=fraction_of(value))]
        case "minItems":
            return [Arrays(high=int(value) - 1)]
        case "maxItems":
            return [Arrays(low=int(value) + 1)]
        case "minProperties":
            return [Objects(high=int(value) - 1)]
        case "maxProperties":
            return [Objects(low=int(value) + 1)]
        case "required":
            return [Objects(((name, FALSE),), named=True) for name in value]
        case "properties":
            return [
                Objects(
                    ((name, schemas.conjunction(each, pointer(place, name), holds=False)),),
                    frozenset({name}),
                    named=True,
                )
                for name, each in value.items()
            ]
        case "prefixItems":
            return [
                Arrays((*(TRUE,) * at, schemas.conjunction(each, place, holds=False)), low=at + 1)
                for at, each in enumerate(value)
            ]
        case "type" | "nullable" | "exclusiveMinimum" | "exclusiveMaximum":
            return []
        case "format" if value in FORMATS:
            return [Strings(ANYTHING - matching(FORMATS[value], whole=True))]
        case "contains" if not {"minContains", "maxContains"} & set(schema):
            return [Arrays(rest=schemas.conjunction(value, place, holds=False))]
        case "then" | "else" | "minContains" | "maxContains":
            return []
        case _ if keyword in OF_TYPE or keyword in ANYWHERE:
            schemas.note(where, keyword, "texts that fail by it alone are left out")
    return []
