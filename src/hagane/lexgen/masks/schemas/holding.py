"""JSON schemas that hold: the cases of values of which all of their keywords do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hagane.lexgen.masks.schemas.cases import (
    FALSE,
    OTHERS,
    SAID,
    Arrays,
    Booleans,
    Case,
    Null,
    Objects,
    Strings,
    distinct,
    is_possible,
    unevaluated,
)
from hagane.lexgen.masks.schemas.containers import arrays, containing, objects
from hagane.lexgen.masks.schemas.keywords import (
    OF_TYPE,
    PLAIN,
    TYPES,
    also_spoken,
    each_of,
    fraction_of,
    kept,
    numbers_of,
    strings_of,
    types_of,
)
from hagane.lexgen.masks.schemas.numbers import Numbers
from hagane.lexgen.masks.texts import ANYTHING, literals

if TYPE_CHECKING:
    from hagane.lexgen.masks.schemas.schemas import Schemas

# Keywords with schemas that hold of the same value.
_OF_PARTS = frozenset(
    {"$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "not", "if",
     "dependentRequired", "dependentSchemas", "dependencies"}
)  # fmt: skip


def holding(schemas: Schemas, schema: Mapping[str, Any], where: str) -> list[Case]:
    """Return the cases of values of which a schema holds."""
    schemas.check_keywords(schema, where)
    kinds, integer = types_of(schema)
    hinted = {OF_TYPE[keyword] for keyword in schema if keyword in OF_TYPE}
    touched = hinted | {"number"} if integer else hinted
    speaks = hinted | also_spoken(schema)
    found: list[Case] = []
    for kind in TYPES:
        if kind not in kinds:
            continue
        case = PLAIN[kind]  # any value of the type
        if kind in touched:
            case = _base(schemas, kind, schema, where, integer)
        if "type" in schema or kind in speaks:
            case = replace(case, said=SAID)
        elif speaks:
            case = replace(case, said=OTHERS)
        if kind not in touched or is_possible(case, schemas.possible):
            found.append(case)
    for values in (schema.get("enum"), [schema["const"]] if "const" in schema else None):
        if values is not None:
            found = schemas.meet(found, of_values(schemas, values), where)
    if "contains" in schema and "array" in kinds and not schemas.is_wide:
        found = schemas.meet(found, containing(schemas, schema, where), where)
    if not _OF_PARTS.isdisjoint(schema):
        for part in _parts(schemas, schema, where):
            found = schemas.meet(found, part, where)
    for keyword, of in (("unevaluatedItems", Arrays), ("unevaluatedProperties", Objects)):
        if keyword in schema and not schemas.is_wide:
            held = schemas.conjunction(schema[keyword], f"{where}/{keyword}")
            found = [unevaluated(case, of, held) for case in found]
            found = [case for case in found if is_possible(case, schemas.possible)]
    return found


def _parts(schemas: Schemas, schema: Mapping[str, Any], where: str) -> Iterable[list[Case]]:
    """Yield the cases of each schema that holds of the same value."""
    for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
        if keyword in schema:
            yield schemas.cases(schemas.conjunction(*schemas.places.target(schema, keyword, where)))
    if "allOf" in schema:
        yield schemas.every(each_of(schema, "allOf", where))
    if "anyOf" in schema:
        yield schemas.any_of(each_of(schema, "anyOf", where))
    if "oneOf" in schema:
        parts = each_of(schema, "oneOf", where)
        yield schemas.any_of(parts) if schemas.is_wide else _exactly_one(schemas, parts)
    if "not" in schema:
        yield schemas.cases(schemas.conjunction(schema["not"], f"{where}/not", holds=False))
    if "if" in schema and ("then" in schema or "else" in schema or schemas.places.evaluates):
        yield _branches(schemas, schema, where)
    for name, needed in _dependencies(schema):
        absent = {"not": {"type": "object", "required": [name]}}
        ways = [(absent, where), ({"required": [name], "allOf": [needed]}, where)]
        yield schemas.any_of(ways)


def _branches(schemas: Schemas, schema: Mapping[str, Any], where: str) -> list[Case]:
    found: list[Case] = []
    for holds, branch in ((True, "then"), (False, "else")):
        condition = schemas.conjunction(schema["if"], f"{where}/if", holds)
        chosen = schemas.conjunction(schema.get(branch, True), f"{where}/{branch}")
        found += schemas.cases(condition | chosen)
    return distinct(found)


def _dependencies(schema: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    for keyword in ("dependentRequired", "dependentSchemas", "dependencies"):
        for name, needed in schema.get(keyword, {}).items():
            yield name, ({"required": needed} if isinstance(needed, list) else needed)


def _exactly_one(schemas: Schemas, parts: list[tuple[Any, str]]) -> list[Case]:
    """Return the cases of which one schema holds and the others fail."""
    found: list[Case] = []
    for one in parts:
        whole = schemas.conjunction(*one)
        for other in parts:
            if other is not one and not schemas.are_disjoint(one, other):
                whole |= schemas.conjunction(*other, holds=False)
        found += schemas.cases(whole)
    return distinct(found)


def _base(
    schemas: Schemas, kind: str, schema: Mapping[str, Any], where: str, integer: bool
) -> Case:
    match kind:
        case "null":
            return Null()
        case "boolean":
            return Booleans()
        case "number":
            return numbers_of(schema, integer)
        case "string":
            return strings_of(schema, where)
        case "array":
            return arrays(schemas, schema, where)
        case _:
            return objects(schemas, schema, where)


def of_values(schemas: Schemas, values: Iterable[Any]) -> list[Case]:
    """Return the cases of some values."""
    texts = [value for value in values if isinstance(value, str)]
    found: list[Case] = [Strings(literals(texts))] if texts else []
    truths = frozenset(value for value in values if isinstance(value, bool))
    found += [Booleans(truths)] if truths else []
    for value in values:
        match value:
            case None:
                found.append(Null())
            case bool() | str():
                pass
            case int() | float():
                found.append(Numbers(fraction_of(value), False, fraction_of(value)))
            case list():
                items = tuple(schemas.conjunction(kept(each), "#") for each in value)
                found.append(Arrays(items, FALSE, len(items), len(items)))
            case _:
                members = tuple(
                    (name, schemas.conjunction(kept(each), "#")) for name, each in value.items()
                )
                names = frozenset(value)
                others = ((ANYTHING, FALSE, False),)
                found.append(Objects(members, names, others, True, True, unheard=names))
    return [replace(case, said=SAID) for case in found]
