"""Arrays and objects of which a JSON schema holds, as cases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hagane.lexgen.masks.schemas.cases import FALSE, TRUE, Arrays, Case, Conjunction, Objects
from hagane.lexgen.masks.schemas.form import pointer
from hagane.lexgen.masks.schemas.keywords import PLAIN, count_of, pattern_texts
from hagane.lexgen.masks.texts import ANYTHING, Texts

if TYPE_CHECKING:
    from hagane.lexgen.masks.schemas.schemas import Schemas


def arrays(schemas: Schemas, schema: Mapping[str, Any], where: str) -> Arrays:
    """Return the arrays of which the keywords of items and of their number hold."""
    items = schema.get("items", True)
    prefix, key = schema.get("prefixItems", []), "prefixItems"
    rest, rest_key = items, "items"
    if isinstance(items, list):
        prefix, key = items, "items"
        rest, rest_key = schema.get("additionalItems", True), "additionalItems"
    named = key in schema and not {rest_key, "unevaluatedItems", "contains"} & set(schema)
    low, high = count_of(schema, "minItems", 0), count_of(schema, "maxItems")
    return Arrays(
        tuple(
            schemas.conjunction(each, pointer(where, key, number))
            for number, each in enumerate(prefix)
        ),
        schemas.conjunction(rest, f"{where}/{rest_key}"),
        low,
        high,
        named,
        None if rest_key in schema else len(prefix),
        schema.get("uniqueItems") is True and not schemas.is_wide,
    )


def containing(schemas: Schemas, schema: Mapping[str, Any], where: str) -> list[Case]:
    """Return arrays that begin with the items that must be somewhere.

    Where the first places have schemas of their own, the items may be behind those too.
    """
    least, most = count_of(schema, "minContains", 1), count_of(schema, "maxContains")
    wanted = schemas.conjunction(schema["contains"], f"{where}/contains")
    other = schemas.conjunction(schema["contains"], f"{where}/contains", holds=False)
    found = [case for kind, case in PLAIN.items() if kind != "array"]
    if most is not None and most < least:
        return found
    schemas.note(where, "contains", "the items that must be somewhere come first")
    rest = TRUE if most is None else other
    first = schema["items"] if isinstance(schema.get("items"), list) else ()
    places = range(len(schema.get("prefixItems", first)) + 1) if least else range(1)
    # Of later drafts the items that it asks for count as evaluated.
    known = 0 if "2019-09" in str(schemas.places.draft) else least
    found += [
        Arrays((rest,) * at + (wanted,) * least, rest, at + least, known=known and at + known)
        for at in places
    ]
    return found


def objects(schemas: Schemas, schema: Mapping[str, Any], where: str) -> Objects:
    """Return the objects of which the keywords of members and of their number hold."""
    properties = schema.get("properties", {})
    others: list[tuple[Texts, Conjunction, bool]] = [(ANYTHING, TRUE, False)]
    for source, value in schema.get("patternProperties", {}).items():
        place = pointer(where, "patternProperties", source)
        names, held = pattern_texts(source, place), schemas.conjunction(value, place)
        others = [
            (common, now | held if inside else now, known or inside)
            for texts, now, known in others
            for inside, common in ((True, texts & names), (False, texts - names))
            if not common.empty
        ]
    rest = schemas.conjunction(
        schema.get("additionalProperties", True), f"{where}/additionalProperties"
    )
    spoken = "additionalProperties" in schema
    classes = [
        (texts, now if known else now | rest, known or spoken) for texts, now, known in others
    ]
    members = []
    for name, value in properties.items():
        held = schemas.conjunction(value, pointer(where, "properties", name))
        for texts, now, known in others:
            if known and name in texts:
                held |= now
        members.append((name, held))
    if "propertyNames" in schema:
        allowed = schemas.names(schema["propertyNames"], f"{where}/propertyNames")
        members = [(name, held if name in allowed else FALSE) for name, held in members]
        split = [
            (common, held if inside else FALSE, known)
            for texts, held, known in classes
            for inside, common in ((True, texts & allowed), (False, texts - allowed))
        ]
        classes = [each for each in split if not each[0].empty]
    return Objects(
        tuple(members),
        frozenset(schema.get("required", [])),
        tuple(classes),
        bool(properties),
        bool({"additionalProperties", "patternProperties", "propertyNames"} & set(schema)),
        count_of(schema, "minProperties", 0),
        count_of(schema, "maxProperties"),
    )
