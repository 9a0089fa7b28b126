"""JSON schemas as cases by type: every combination of schemas is worked out exactly, or refused.

Source: JSON Schema, draft 2020-12 (core, validation); the forms of earlier drafts and OpenAPI in
other words is read too.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain, combinations
from typing import Any

from hagane.errors import InvalidArgument
from hagane.lexgen.masks.schemas.cases import (
    FALSE,
    OTHERS,
    TRUE,
    Case,
    Conjunction,
    Strings,
    both,
    distinct,
    forgotten,
    is_possible,
)
from hagane.lexgen.masks.schemas.contrary import failing
from hagane.lexgen.masks.schemas.form import OBJECTS, TooManyWays, check_form, refuse
from hagane.lexgen.masks.schemas.holding import holding
from hagane.lexgen.masks.schemas.keywords import (
    ANNOTATIONS,
    ANYWHERE,
    OF_TYPE,
    PLAIN,
    case_texts,
    content_of,
    is_of_values,
    member_names,
    values_of,
)
from hagane.lexgen.masks.schemas.places import Places
from hagane.lexgen.masks.texts import NOTHING, Texts

_log = logging.getLogger("hagane.lexgen")
# Schemas of which one holds that are followed in all ways, where it tells what is evaluated.
_MOST_TOGETHER = 4
_MOST_CASES = 2_000
# Of one schema, in all: some tens of seconds of work.
_MOST_PAIRS = 400_000


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
        self.is_wide = wide
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
        if not isinstance(schema, OBJECTS):
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
                return holding(self, schema, where)
            found = failing(self, schema, where)
            if self.places.evaluates:
                found = [forgotten(case) for case in found]
            return list(PLAIN.values()) if self.is_wide and self._narrowed else found
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

    def are_disjoint(self, *schemas: tuple[Any, str]) -> bool:
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

    def names(self, schema: Any, where: str, holds: bool = True) -> Texts:
        """Return the names, as texts, of which a schema holds, or does not."""
        found = NOTHING
        for case in self.cases(self.conjunction(schema, where, holds)):
            if isinstance(case, Strings):
                found = found | case_texts(case)
        return found

    def note(self, where: str, keyword: str, narrower: str) -> None:
        """Say that fewer texts are allowed than the schema would."""
        self._narrowed = True
        if not self.is_wide and (where, keyword) not in self._noticed:
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
