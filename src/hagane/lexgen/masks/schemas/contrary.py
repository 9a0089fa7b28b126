"""JSON schemas that fail: the cases of values of which one of their keywords does not hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, combinations
from typing import TYPE_CHECKING, Any

from hagane.lexgen.masks.schemas.cases import (
    FALSE,
    TRUE,
    Arrays,
    Case,
    Conjunction,
    Objects,
    Strings,
    is_possible,
)
from hagane.lexgen.masks.schemas.form import pointer
from hagane.lexgen.masks.schemas.formats import EXACT_FORMATS, format_texts
from hagane.lexgen.masks.schemas.keywords import (
    ANYWHERE,
    OF_TYPE,
    PLAIN,
    each_of,
    fraction_of,
    kept,
    other_than,
    pattern_texts,
    types_of,
)
from hagane.lexgen.masks.schemas.numbers import Numbers
from hagane.lexgen.masks.texts import ANYTHING, Texts, literals

if TYPE_CHECKING:
    from hagane.lexgen.masks.schemas.schemas import Schemas

# Names that a schema knows, for a member that breaks a keyword which speaks of many.
_MOST_WITNESSES = 3


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
            return _other_than(schemas, value if keyword == "enum" else [value], where)
        case "allOf":
            return schemas.any_of(each_of(schema, keyword, where), holds=False)
        case "anyOf":
            return schemas.every(each_of(schema, keyword, where), holds=False)
        case "oneOf":
            parts = each_of(schema, keyword, where)
            pairs = (schemas.every(pair) for pair in combinations(parts, 2))
            return [*schemas.every(parts, holds=False), *chain.from_iterable(pairs)]
        case "if":
            return _no_branch(schemas, schema, where)
        case "dependentRequired" | "dependentSchemas" | "dependencies":
            return _independent(schemas, value, place)
        case "not":
            return schemas.cases(schemas.conjunction(value, place))
        case "$ref" | "$dynamicRef" | "$recursiveRef":
            target = schemas.places.target(schema, keyword, where)
            return schemas.cases(schemas.conjunction(*target, holds=False))
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
        case "additionalProperties":
            names = ANYTHING - literals(schema.get("properties", ()))
            for source in schema.get("patternProperties", ()):
                names = names - pattern_texts(source, where)
            fails = schemas.conjunction(value, place, holds=False)
            return _some_member(schemas, names, fails, keyword, where)
        case "patternProperties":
            found: list[Case] = []
            for source, each in value.items():
                inside = pointer(place, source)
                fails = schemas.conjunction(each, inside, holds=False)
                names = pattern_texts(source, inside)
                found += _some_member(schemas, names, fails, keyword, where)
            return found
        case "propertyNames":
            names = schemas.names(value, place, holds=False)
            return _some_member(schemas, names, TRUE, keyword, where)
        case "prefixItems":
            return [
                Arrays((*(TRUE,) * at, schemas.conjunction(each, place, holds=False)), low=at + 1)
                for at, each in enumerate(value)
            ]
        case "type" | "nullable" | "exclusiveMinimum" | "exclusiveMaximum":
            return []
        case "format" if value in EXACT_FORMATS:
            return [Strings(ANYTHING - format_texts(value))]
        case "items" if not isinstance(value, list):
            # One that fails may be anywhere; it comes first.
            schemas.note(where, keyword, "the item that fails by it comes first")
            free = (TRUE,) * len(schema.get("prefixItems", ()))
            fails = schemas.conjunction(value, place, holds=False)
            return [Arrays((*free, fails), low=len(free) + 1)]
        case "contains" if not {"minContains", "maxContains"} & set(schema):
            return [Arrays(rest=schemas.conjunction(value, place, holds=False))]
        case "then" | "else" | "minContains" | "maxContains":
            return []
        case _ if keyword in OF_TYPE or keyword in ANYWHERE:
            schemas.note(where, keyword, "texts that fail by it alone are left out")
    return []


def _some_member(
    schemas: Schemas, names: Texts, fails: Conjunction, keyword: str, where: str
) -> list[Case]:
    """Return the objects of which a member of such a name fails: one of few names, one each."""
    if schemas.witnesses is None:
        schemas.note(where, keyword, "texts that fail by it alone are left out")
        return []
    known = [name for name in schemas.witnesses if name in names][:_MOST_WITNESSES]
    short = (names - literals([""])).shortest()
    witnesses = dict.fromkeys(known if short is None else [*known, short])
    if witnesses:
        shown = ", ".join(map(repr, witnesses))
        schemas.note(where, keyword, f"the member that fails by it is one of {shown}")
    return [
        Objects(((name, fails),), frozenset({name}), named=True, open=True) for name in witnesses
    ]


def _other_than(schemas: Schemas, values: Sequence[Any], where: str) -> list[Case]:
    """Return the cases of all values but some."""
    found = other_than([v for v in values if not isinstance(v, (list, Mapping))])
    for value in values:
        if isinstance(value, list):
            found = schemas.meet(found, _other_arrays(schemas, value, where), where)
        elif isinstance(value, Mapping):
            found = schemas.meet(found, _other_objects(schemas, value, where), where)
    return found


def _other_arrays(schemas: Schemas, value: Sequence[Any], where: str) -> list[Case]:
    """Return the values that are not this array: of another length, or with another item."""
    count = len(value)
    found = [case for kind, case in PLAIN.items() if kind != "array"]
    found += [Arrays(low=count + 1), Arrays(high=count - 1)]
    for at, item in enumerate(value):
        fails = schemas.conjunction(kept(item), where, holds=False)
        found.append(Arrays((*(TRUE,) * at, fails), low=count, high=count))
    return found


def _other_objects(schemas: Schemas, value: Mapping[str, Any], where: str) -> list[Case]:
    """Return the values that are not this object: other in a member, or with more of them."""
    found = [case for kind, case in PLAIN.items() if kind != "object"]
    found.append(Objects(low=len(value) + 1))
    for name, item in value.items():
        fails = schemas.conjunction(kept(item), where, holds=False)
        found.append(Objects(((name, FALSE),), named=True))
        found.append(Objects(((name, fails),), frozenset({name}), named=True))
    return found


def _no_branch(schemas: Schemas, schema: Mapping[str, Any], where: str) -> list[Case]:
    """Return the values that ``then`` or ``else`` forbids."""
    found: dict[Case, None] = {}
    for holds, branch in ((True, "then"), (False, "else")):
        if branch in schema:
            condition = schemas.conjunction(schema["if"], f"{where}/if", holds)
            fails = schemas.conjunction(schema[branch], f"{where}/{branch}", holds=False)
            found.update(dict.fromkeys(schemas.cases(condition | fails)))
    return list(found)


def _independent(schemas: Schemas, value: Mapping[str, Any], place: str) -> list[Case]:
    """Return the objects that have a member, and not what depends on it."""
    found: dict[Case, None] = {}
    for name, needed in value.items():
        there: list[Case] = [Objects(((name, TRUE),), frozenset({name}), named=True)]
        if isinstance(needed, list):
            missing: list[Case] = [Objects(((other, FALSE),), named=True) for other in needed]
        else:
            missing = schemas.cases(schemas.conjunction(needed, pointer(place, name), holds=False))
        found.update(dict.fromkeys(schemas.meet(there, missing, place)))
    return list(found)
