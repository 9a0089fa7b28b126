"""JSON schemas as cases by type: every combination of schemas is worked out exactly, or refused.

Source: JSON Schema, draft 2020-12 (core, validation); the forms of earlier drafts and OpenAPI in
other words is read too.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, combinations
from typing import Any

from hagane.errors import InvalidArgument
from hagane.lexgen.masks.cases import (
    FALSE,
    OTHERS,
    SAID,
    TRUE,
    Arrays,
    Booleans,
    Case,
    Conjunction,
    Null,
    Objects,
    Strings,
    both,
    distinct,
    forgotten,
    is_possible,
    unevaluated,
)
from hagane.lexgen.masks.json_contrary import failing
from hagane.lexgen.masks.json_keywords import (
    ANNOTATIONS,
    ANYWHERE,
    OF_TYPE,
    PLAIN,
    TYPES,
    also_spoken,
    case_texts,
    content_of,
    count_of,
    each_of,
    fraction_of,
    is_of_values,
    kept,
    member_names,
    numbers_of,
    pattern_texts,
    strings_of,
    types_of,
    values_of,
)
from hagane.lexgen.masks.json_places import Places
from hagane.lexgen.masks.json_schema_form import TooManyWays, check_form, pointer, refuse
from hagane.lexgen.masks.numbers import Numbers
from hagane.lexgen.masks.texts import ANYTHING, NOTHING, Texts, literals

_log = logging.getLogger("hagane.lexgen")
# Schemas of which one holds that are followed in all ways, where it tells what is evaluated.
_MOST_TOGETHER = 4
_MOST_CASES = 2_000
# Of one schema, in all: some tens of seconds of work.
_MOST_PAIRS = 400_000


# Keywords with schemas that hold of the same value.
_OF_PARTS = frozenset(
    {"$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "not", "if",
     "dependentRequired", "dependentSchemas", "dependencies"}
)  # fmt: skip


class _Circular(InvalidArgument):
    """Whether a schema holds depends on itself."""


class Schemas:
    """A schema and those within it, as cases.

    Args:
        root: The schema.
        wide: The cases have all values of their schemas, perhaps more; else perhaps fewer.
        lean: Contraries leave out members that fail as one of many.

    Raises:
        InvalidArgument: From any method: a schema is malformed, or uses a keyword in a way that is
            not covered; the message has its JSON pointer.
    """

    def __init__(self, root: Any, wide: bool = False, lean: bool = False):
        self.root = root
        self.places = Places(root)
        self._is_lean = lean
        self._is_wide = wide
        self._wide: Schemas | None = None  # the same schemas, for proofs that there is no value
        self._known: list[tuple[Any, str]] = []
        # Contraries and schemas, by identity, which is that of schemas that are held, and content.
        self._numbered: dict[int, tuple[Conjunction, Conjunction]] = {}
        self._held: list[Any] = []
        self._alike: dict[Any, tuple[Conjunction, Conjunction]] = {}
        self._cases: dict[Conjunction, list[Case]] = {}
        self._possible: dict[Conjunction, bool] = {}
        self._enums: dict[tuple[int, ...], Mapping[str, Any]] = {}  # values of several schemas
        self._open: list[tuple[int, bool]] = []  # schemas whose cases are being worked out
        self._noticed: set[tuple[str, str]] = set()
        self._pairs = 0  # cases that were compared
        self._narrowed = False  # some cases have fewer values than their schemas (where wide)

    @cached_property
    def witnesses(self) -> tuple[str, ...] | None:
        """Names of members that may fail as one of many, in the order of the schema."""
        return None if self._is_lean else member_names(self.root)

    def conjunction(self, schema: Any, where: str, holds: bool = True) -> Conjunction:
        """Return a schema, or its contrary, as a conjunction of one."""
        found = self._numbered.get(id(schema))
        if found is None:
            found = self._numbered[id(schema)] = self._number(schema, where)
            self._held.append(schema)
        return found[holds]

    def _number(self, schema: Any, where: str) -> tuple[Conjunction, Conjunction]:
        """Return the contrary of a schema and the schema, each as a conjunction of one."""
        if schema is True or schema == {}:
            return FALSE, TRUE
        if schema is False:
            return TRUE, FALSE
        if not isinstance(schema, Mapping):
            refuse(where, f"expected a schema (an object, true or false), got {schema!r}")
        content = content_of(schema)
        found = None if content is None else self._alike.get(content)
        if found is None:
            check_form(schema, where)
            number = len(self._known)
            self._known.append((schema, where))
            found = frozenset({(number, False)}), frozenset({(number, True)})
            if content is not None:
                self._alike[content] = found
        return found

    def cases(self, conjunction: Conjunction) -> list[Case]:
        """Return the cases of values of which some schemas hold."""
        known = self._cases.get(conjunction)
        if known is None:
            found: list[Case] | None = None
            for number, holds in sorted(conjunction):
                if number < 0:
                    found = []
                    break
                each = self._of_one(number, holds)
                if found is None:  # all values, of which those of the first schema are a part
                    found = each if holds else distinct(each)
                else:
                    found = self.meet(found, each, self._known[number][1])
            known = self._cases[conjunction] = list(PLAIN.values()) if found is None else found
        return known

    def possible(self, conjunction: Conjunction) -> bool:
        """Return whether there may be a value of which some schemas hold."""
        known = self._possible.get(conjunction)
        if known is None:
            self._possible[conjunction] = True  # where it depends on itself
            try:
                known = self._possible[conjunction] = bool(self.cases(conjunction))
            except _Circular:
                del self._possible[conjunction]
                return True
        return known

    def where(self, conjunction: Conjunction) -> str:
        """Return the pointer of a schema of a conjunction."""
        return next((self._known[n][1] for n, _ in sorted(conjunction) if n >= 0), "#")

    def _of_one(self, number: int, holds: bool) -> list[Case]:
        schema, where = self._known[number]
        if (number, holds) in self._open:
            raise _Circular(
                f"JSON schema, {where}: the schema refers to itself without a value in between"
            )
        self._open.append((number, holds))
        before, self._narrowed = self._narrowed, False
        try:
            if holds:
                return self._holding(schema, where)
            found = failing(self, schema, where)
            if self.places.evaluates:
                found = [forgotten(case) for case in found]
            return list(PLAIN.values()) if self._is_wide and self._narrowed else found
        finally:
            self._open.pop()
            self._narrowed = before

    def meet(self, some: Iterable[Case], others: Sequence[Case], where: str) -> list[Case]:
        """Return the cases of values that are in one of ``some`` and in one of ``others``."""
        met: dict[Case, Case] = {}
        by_type: dict[type[Case], list[Case]] = {}
        for other in others:
            by_type.setdefault(type(other), []).append(other)
        for a in some:
            same = by_type.get(type(a), ())
            self._pairs += len(same)
            if self._pairs > _MOST_PAIRS:
                many = f"the schema combines its parts in more than {_MOST_PAIRS:,} ways"
                refuse(where, many, TooManyWays)
            for b in same:
                case = both(a, b)
                before = met.get(case)
                if before is not None:
                    if before.said == OTHERS != case.said:
                        met[case] = case
                elif is_possible(case, self.possible):
                    met[case] = case
            if len(met) > _MOST_CASES:
                refuse(where, f"its combinations are more than {_MOST_CASES}", TooManyWays)
        return list(met.values())

    def any_of(self, schemas: Iterable[tuple[Any, str]], holds: bool = True) -> list[Case]:
        """Return the cases of which one of some schemas holds (or fails)."""
        ways = [
            self.conjunction(schema, where, holds)
            for schema, where in (self._joined(schemas) if holds else schemas)
        ]
        if holds and self.places.evaluates and len(ways) > 1:
            # Of those that hold together all count.
            if len(ways) > _MOST_TOGETHER:
                self.note(self.where(ways[0]), "..", "those that hold together count one by one")
            else:
                counts = range(2, len(ways) + 1)
                many = chain.from_iterable(combinations(ways, count) for count in counts)
                ways += [frozenset().union(*each) for each in many]
        return distinct(case for way in ways for case in self.cases(way))

    def every(self, schemas: Iterable[tuple[Any, str]], holds: bool = True) -> list[Case]:
        """Return the cases of which all of some schemas hold (or fail)."""
        whole = TRUE
        for schema, where in schemas if holds else self._joined(schemas):
            whole |= self.conjunction(schema, where, holds)
        return self.cases(whole)

    def _joined(self, schemas: Iterable[tuple[Any, str]]) -> list[tuple[Any, str]]:
        """Return schemas of which one holds if one of some does: those of values alone as one."""
        schemas = list(schemas)
        lists = [each for each in schemas if is_of_values(each[0])]
        if len(lists) < 2:
            return schemas
        for schema, where in lists:
            self.conjunction(schema, where)  # its form
            self.check_keywords(schema, where)
        key = tuple(id(schema) for schema, _ in lists)
        values = [value for schema, _ in lists for value in values_of(schema)]
        whole = self._enums.setdefault(key, {"enum": values})
        return [(whole, lists[0][1]), *(each for each in schemas if each not in lists)]

    # Schemas that hold.

    def _holding(self, schema: Mapping[str, Any], where: str) -> list[Case]:
        self.check_keywords(schema, where)
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
                case = self._base(kind, schema, where, integer)
            if "type" in schema or kind in speaks:
                case = replace(case, said=SAID)
            elif speaks:
                case = replace(case, said=OTHERS)
            if kind not in touched or is_possible(case, self.possible):
                found.append(case)
        for values in (schema.get("enum"), [schema["const"]] if "const" in schema else None):
            if values is not None:
                found = self.meet(found, self._values(values), where)
        if "contains" in schema and "array" in kinds and not self._is_wide:
            found = self.meet(found, self._containing(schema, where), where)
        if not _OF_PARTS.isdisjoint(schema):
            for part in self._parts(schema, where):
                found = self.meet(found, part, where)
        for keyword, of in (("unevaluatedItems", Arrays), ("unevaluatedProperties", Objects)):
            if keyword in schema and not self._is_wide:
                held = self.conjunction(schema[keyword], f"{where}/{keyword}")
                found = [unevaluated(case, of, held) for case in found]
                found = [case for case in found if is_possible(case, self.possible)]
        return found

    def _parts(self, schema: Mapping[str, Any], where: str) -> Iterable[list[Case]]:
        """Yield the cases of each schema that holds of the same value."""
        for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            if keyword in schema:
                yield self.cases(self.conjunction(*self.places.target(schema, keyword, where)))
        if "allOf" in schema:
            yield self.every(each_of(schema, "allOf", where))
        if "anyOf" in schema:
            yield self.any_of(each_of(schema, "anyOf", where))
        if "oneOf" in schema:
            parts = each_of(schema, "oneOf", where)
            yield self.any_of(parts) if self._is_wide else self._exactly_one(parts)
        if "not" in schema:
            yield self.cases(self.conjunction(schema["not"], f"{where}/not", holds=False))
        if "if" in schema and ("then" in schema or "else" in schema or self.places.evaluates):
            yield self._branches(schema, where)
        for name, needed in self._dependencies(schema):
            absent = {"not": {"type": "object", "required": [name]}}
            schemas = [(absent, where), ({"required": [name], "allOf": [needed]}, where)]
            yield self.any_of(schemas)

    def _branches(self, schema: Mapping[str, Any], where: str) -> list[Case]:
        found: list[Case] = []
        for holds, branch in ((True, "then"), (False, "else")):
            condition = self.conjunction(schema["if"], f"{where}/if", holds)
            chosen = self.conjunction(schema.get(branch, True), f"{where}/{branch}")
            found += self.cases(condition | chosen)
        return distinct(found)

    def _dependencies(self, schema: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
        for keyword in ("dependentRequired", "dependentSchemas", "dependencies"):
            for name, needed in schema.get(keyword, {}).items():
                yield name, ({"required": needed} if isinstance(needed, list) else needed)

    def _exactly_one(self, schemas: list[tuple[Any, str]]) -> list[Case]:
        """Return the cases of which one schema holds and the others fail."""
        found: list[Case] = []
        for one in schemas:
            whole = self.conjunction(*one)
            for other in schemas:
                if other is not one and not self._are_disjoint(one, other):
                    whole |= self.conjunction(*other, holds=False)
            found += self.cases(whole)
        return distinct(found)

    def _are_disjoint(self, *schemas: tuple[Any, str]) -> bool:
        """Return whether there is provably no value of which all of some schemas hold."""
        if self._wide is None:
            self._wide = Schemas(self.root, wide=True)
            self._wide._noticed = self._noticed
        try:
            return not self._wide.possible(
                frozenset().union(*(self._wide.conjunction(*each) for each in schemas))
            )
        except InvalidArgument:
            return False

    def _base(self, kind: str, schema: Mapping[str, Any], where: str, integer: bool) -> Case:
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
                return self._arrays(schema, where)
            case _:
                return self._objects(schema, where)

    def _arrays(self, schema: Mapping[str, Any], where: str) -> Arrays:
        items = schema.get("items", True)
        prefix, key = schema.get("prefixItems", []), "prefixItems"
        rest, rest_key = items, "items"
        if isinstance(items, list):
            prefix, key = items, "items"
            rest, rest_key = schema.get("additionalItems", True), "additionalItems"
        named = key in schema and not {rest_key, "unevaluatedItems", "contains"} & set(schema)
        low, high = count_of(schema, "minItems", 0), count_of(schema, "maxItems")
        unique = schema.get("uniqueItems") is True and not self._is_wide
        if unique and (high is None or high > 1):
            if low > 1:
                refuse(
                    f"{where}/uniqueItems",
                    "that items differ is not covered for more than one item; write false and "
                    "check it afterwards",
                )
            self.note(where, "uniqueItems", "arrays get at most one item")
            high = 1
        return Arrays(
            tuple(
                self.conjunction(each, pointer(where, key, number))
                for number, each in enumerate(prefix)
            ),
            self.conjunction(rest, f"{where}/{rest_key}"),
            low,
            high,
            named,
            None if rest_key in schema else len(prefix),
        )

    def _containing(self, schema: Mapping[str, Any], where: str) -> list[Case]:
        """Return arrays that begin with the items that must be somewhere.

        Where the first places have schemas of their own, the items may be behind those too.
        """
        least, most = count_of(schema, "minContains", 1), count_of(schema, "maxContains")
        wanted = self.conjunction(schema["contains"], f"{where}/contains")
        other = self.conjunction(schema["contains"], f"{where}/contains", holds=False)
        found = [case for kind, case in PLAIN.items() if kind != "array"]
        if most is not None and most < least:
            return found
        self.note(where, "contains", "the items that must be somewhere come first")
        rest = TRUE if most is None else other
        first = schema["items"] if isinstance(schema.get("items"), list) else ()
        places = range(len(schema.get("prefixItems", first)) + 1) if least else range(1)
        # Of later drafts the items that it asks for count as evaluated.
        known = 0 if "2019-09" in str(self.places.draft) else least
        found += [
            Arrays((rest,) * at + (wanted,) * least, rest, at + least, known=known and at + known)
            for at in places
        ]
        return found

    def _objects(self, schema: Mapping[str, Any], where: str) -> Objects:
        properties = schema.get("properties", {})
        others: list[tuple[Texts, Conjunction, bool]] = [(ANYTHING, TRUE, False)]
        for source, value in schema.get("patternProperties", {}).items():
            place = pointer(where, "patternProperties", source)
            names, held = pattern_texts(source, place), self.conjunction(value, place)
            others = [
                (common, now | held if inside else now, known or inside)
                for texts, now, known in others
                for inside, common in ((True, texts & names), (False, texts - names))
                if not common.empty
            ]
        rest = self.conjunction(
            schema.get("additionalProperties", True), f"{where}/additionalProperties"
        )
        spoken = "additionalProperties" in schema
        classes = [
            (texts, now if known else now | rest, known or spoken) for texts, now, known in others
        ]
        members = []
        for name, value in properties.items():
            held = self.conjunction(value, pointer(where, "properties", name))
            for texts, now, known in others:
                if known and name in texts:
                    held |= now
            members.append((name, held))
        if "propertyNames" in schema:
            allowed = self.names(schema["propertyNames"], f"{where}/propertyNames")
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

    def names(self, schema: Any, where: str, holds: bool = True) -> Texts:
        """Return the names, as texts, of which a schema holds, or does not."""
        found = NOTHING
        for case in self.cases(self.conjunction(schema, where, holds)):
            if isinstance(case, Strings):
                found = found | case_texts(case)
        return found

    def _values(self, values: Iterable[Any]) -> list[Case]:
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
                    items = tuple(self.conjunction(kept(each), "#") for each in value)
                    found.append(Arrays(items, FALSE, len(items), len(items)))
                case _:
                    members = tuple(
                        (name, self.conjunction(kept(each), "#")) for name, each in value.items()
                    )
                    names = frozenset(value)
                    others = ((ANYTHING, FALSE, False),)
                    found.append(Objects(members, names, others, True, True, unheard=names))
        return [replace(case, said=SAID) for case in found]

    def note(self, where: str, keyword: str, narrower: str) -> None:
        """Say that fewer texts are allowed than the schema would."""
        self._narrowed = True
        if not self._is_wide and (where, keyword) not in self._noticed:
            self._noticed.add((where, keyword))
            _log.warning("JSON schema, %s/%s: %s", where, keyword, narrower)

    # References and keywords.

    def check_keywords(self, schema: Mapping[str, Any], where: str) -> None:
        """Say once of each keyword that is none."""
        for keyword in schema:
            known = keyword in OF_TYPE or keyword in ANYWHERE or keyword in ANNOTATIONS
            if not known and ("", keyword) not in self._noticed:
                self._noticed.add(("", keyword))
                _log.warning(
                    "JSON schema, %s: '%s' is no keyword of JSON Schema and constrains nothing",
                    where,
                    keyword,
                )
