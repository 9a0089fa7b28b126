"""The rules of a grammar whose texts are the JSON texts of a schema.

Members come in the order of the schema, then others. Source of the texts: RFC 8259.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from typing import Any

from hagane.errors import InvalidArgument
from hagane.lexgen.automata.utf8 import utf8_sequences
from hagane.lexgen.expressions import charset
from hagane.lexgen.masks.rules.parts import (
    NO_TEXT,
    Alt,
    Bytes,
    Call,
    Net,
    OneOf,
    Part,
    Rep,
    Seq,
    alt,
    seq,
)
from hagane.lexgen.masks.rules.rules import Module, Rules
from hagane.lexgen.masks.schemas.cases import (
    OTHERS,
    TRUE,
    Arrays,
    Booleans,
    Case,
    Conjunction,
    Null,
    Objects,
    Strings,
)
from hagane.lexgen.masks.schemas.different import different
from hagane.lexgen.masks.schemas.form import TooManyWays, refuse
from hagane.lexgen.masks.schemas.lengths import within
from hagane.lexgen.masks.schemas.numbers import Numbers, written
from hagane.lexgen.masks.schemas.schemas import Schemas
from hagane.lexgen.masks.texts import (
    ANYTHING,
    Texts,
    literals,
    matching,
    of_length,
)

# Control characters without a short form are written with it, as nothing else can be.
_ESCAPES = (
    {code: f"\\u{code:04x}".encode() for code in range(32)}
    | {ord(char): json.dumps(char).strip('"').encode() for char in "\n\t\r\b\f\\"}
    | {ord('"'): b'\\"'}
)
_SOLIDUS = (ord("/"), b"\\/")  # beside the character itself
_PLAIN = charset.complement(charset.union(((0, 31),), charset.of('"\\'), ((0xD800, 0xDFFF),)))
# Of white space: one at most.
USUAL_SPACE = " ?"
# Counts of members that are told apart.
_MOST_COUNTED = 512


def schema_rules(schema: Any, space: str = USUAL_SPACE) -> Rules:
    """Return rules whose first one matches the JSON texts of a schema.

    Args:
        schema: The schema: a mapping, true or false.
        space: The expression of the white space after ``:`` and ``,`` and inside of brackets.

    Raises:
        InvalidArgument: The schema is malformed, or asks for a feature that is not covered; the
            message has the JSON pointer.
    """
    try:
        return _written(Schemas(schema), space)
    except TooManyWays:
        return _written(Schemas(schema, lean=True), space)


def _written(schemas: Schemas, space: str) -> Rules:
    made = _Writer(schemas, space)
    first = made.rules.reserve()
    try:
        made.rules.define(first, made.value(schemas.conjunction(schemas.root, "#")))
        made.write()
    except RecursionError:
        refuse("#", "its schemas lie in each other too deeply; take parts of it as schemas alone")
    return made.rules


@lru_cache(8)
def _any_value(space: str) -> Module:
    """Return the rules of any value, and of any number, text, array and object."""
    made = _Writer(Schemas(True), space, apart=False)
    for _ in range(1 + len(_ANY)):
        made.rules.reserve()
    made.known[TRUE] = Call(0)
    kinds = [Call(1 + rule) for rule in range(len(_ANY))]
    words = alt(Bytes(word) for word in (b"null", b"true", b"false"))
    made.rules.define(0, Alt((words, *kinds)))
    for call, case in zip(kinds, _ANY, strict=True):
        made.rules.define(call.rule, made.case(case, "#"))
    made.write()
    return Module(made.rules, len(made.rules.bodies))


_ANY: tuple[Case, ...] = (Numbers(), Strings(), Arrays(), Objects())


def _any_of(case: Case) -> int:
    """Return the place among the above if a case is any value of its type; else -1."""
    for place, each in enumerate(_ANY):
        if type(case) is type(each):
            return place if case == each else -1
    return -1


@lru_cache(8)
def _space(space: str) -> Part:
    if space == USUAL_SPACE:  # in fewer states
        return Alt((NO_TEXT, Bytes(b" ")))
    texts = matching(space, whole=True)
    other = (texts - matching(r"\s*", whole=True)).shortest()
    if other is not None:
        raise InvalidArgument(
            f"TokenMask: expected 'space' to match white space alone, got {space!r}, which matches "
            f"{other!r}; write r'[ \\n]*' for any number of spaces and new lines"
        )
    texts = texts & matching(r"[ \t\n\r]*", whole=True)  # JSON has no other
    if texts.empty:
        raise InvalidArgument(
            f"TokenMask: expected a 'space' that JSON has (spaces, tabs, \\n, \\r), got {space!r}"
        )
    return OneOf(texts)


@lru_cache(4096)
def in_string(low: int, high: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Return the sequences of byte ranges that write an interval of characters in a JSON string."""
    found: list[tuple[tuple[int, int], ...]] = []
    for least, most in charset.intersect(((low, high),), _PLAIN):
        found += utf8_sequences(least, most)
    for code, escape in (*_ESCAPES.items(), _SOLIDUS):
        if low <= code <= high:
            found.append(tuple((byte, byte) for byte in escape))
    return tuple(found)


@lru_cache(4096)
def _named(name: str) -> Bytes:
    """Return the text of a member's name, and the colon."""
    return Bytes(json.dumps(name, ensure_ascii=False).encode() + b":")


def _in_quotes(texts: Texts) -> Part:
    return seq(Bytes(b'"'), OneOf(texts, in_string), Bytes(b'"'))


@lru_cache(1024)
def _with_tails(part: OneOf) -> Module:
    """Return the rules of texts in quotes, of which some go on with a counted repetition."""
    rules = Rules()
    first = rules.reserve()

    def counted(tail: Part) -> Part:
        match tail:
            case Seq(parts):
                return Seq(tuple(map(counted, parts)))
            case Rep(body, low, high):
                return Rep(rules.add(body), low, high)
        return tail

    tails = tuple((state, counted(tail)) for state, tail in part.tails)
    rules.define(first, seq(Bytes(b'"'), replace(part, tails=tails), Bytes(b'"')))
    return Module(rules, len(rules.bodies))


def _single(case: Case) -> Fraction | None:
    """Return the number of a case of one alone."""
    if isinstance(case, Numbers) and case.low == case.high and case.possible:
        return case.low
    return None


# Of a state. Numbers, names and words have fewer.
_FEW_CHARACTERS = 16


@lru_cache(4096)
def _is_narrow(texts: Texts) -> bool:
    """Return whether each character of a text is one of few: then few tokens are within them.

    What is known of such texts is found quickly, so that they stand in their grammar alone.
    """
    return all(
        sum(high - low + 1 for low, high, _ in texts.edges(state)) <= _FEW_CHARACTERS
        for state in range(len(texts.rows))
    )


class _Writer:
    def __init__(self, schemas: Schemas, space: str, apart: bool = True):
        self.rules = Rules()
        self.schemas = schemas
        self.space = _space(space)
        self.comma = seq(Bytes(b","), self.space)
        self.known: dict[Conjunction, Call] = {}
        self.waiting: list[tuple[Call, list[Case], str]] = []  # rules that are called already
        self.narrow: dict[tuple[Texts, Callable[[Texts], Part]], Call] = {}
        # The rules that most schemas have somewhere; they themselves are written without.
        self.any = _any_value(space) if apart else None

    def value(self, conjunction: Conjunction) -> Call:
        """Return a call of the rule of the values of which some schemas hold."""
        call = self.known.get(conjunction)
        if call is None:
            call = self.known[conjunction] = self._value(conjunction)
        return call

    def _value(self, conjunction: Conjunction) -> Call:
        if conjunction == TRUE and self.any is not None:
            return self.rules.include(self.any, 0)
        cases = self.schemas.cases(conjunction)
        cases = [case for case in cases if case.said != OTHERS] or cases
        if len(cases) == 1 and self.any is not None and (kind := _any_of(cases[0])) >= 0:
            return self.rules.include(self.any, 1 + kind)
        call = Call(self.rules.reserve())
        self.waiting.append((call, cases, self.schemas.where(conjunction)))
        return call

    def write(self) -> None:
        """Write the rules that are called, and those that they call in turn."""
        for call, cases, where in self.waiting:  # grows while it runs
            numbers = [number for case in cases if (number := _single(case)) is not None]
            ways = [self.case(case, where) for case in cases if _single(case) is None]
            if numbers:
                texts = literals(written(number, where) for number in numbers)
                ways.append(self._rule(texts, OneOf))
            self.rules.define(call.rule, Alt(tuple(ways)))
        self.waiting.clear()

    def case(self, case: Case, where: str) -> Part:
        """Return the texts of the values of a case."""
        if self.any is not None and (kind := _any_of(case)) >= 0:
            return self.rules.include(self.any, 1 + kind)
        match case:
            case Null():
                return Bytes(b"null")
            case Booleans(values):
                return alt(Bytes(json.dumps(value).encode()) for value in sorted(values))
            case Numbers():
                return self._rule(case.texts(where), OneOf)
            case Strings():
                return self._string(case, where)
            case Arrays():
                return self._array(case, where)
            case Objects():
                return self._object(case, where)

    def _string(self, case: Strings, where: str) -> Part:
        low, high = case.low, case.high
        if low == 0 and high is None:
            return self._quoted(case.texts)
        if case.texts is ANYTHING:
            character = self.rules.shared(OneOf(of_length(1, 1), in_string))
            return seq(Bytes(b'"'), Rep(character, low, high), Bytes(b'"'))
        part, notice = within(case.texts, low, high, in_string)
        if part is None:
            refuse(where, "no text of its pattern or format has a length within its bounds")
        if notice:
            self.schemas.note(where, "maxLength", notice)
        if isinstance(part, OneOf):
            return (
                self.rules.include(_with_tails(part), 0) if part.tails else self._quoted(part.texts)
            )
        return seq(Bytes(b'"'), part, Bytes(b'"'))

    def _quoted(self, texts: Texts) -> Call:
        return self._rule(texts, _in_quotes)

    def _rule(self, texts: Texts, body: Callable[[Texts], Part]) -> Call:
        """Return a call of the rule of some texts."""
        if not _is_narrow(texts):
            return self.rules.shared(body(texts))
        key = texts, body
        if key not in self.narrow:
            self.narrow[key] = self.rules.add(body(texts))
        return self.narrow[key]

    def _array(self, case: Arrays, where: str) -> Part:
        if case.differ and (case.high is None or case.high > 1):
            items = different(self.schemas, case, where, self.comma, self.space)
            if items is not None:
                return seq(Bytes(b"["), self.space, items, Bytes(b"]"))
            if case.low > 1:
                refuse(
                    f"{where}/uniqueItems",
                    "that items differ is not covered for more than one item of many values; write "
                    "false and check it afterwards",
                )
            self.schemas.note(where, "uniqueItems", "arrays get at most one item")
            case = replace(case, high=1)
        low, high, size = case.low, case.high, len(case.prefix)
        if case.named and low <= size:
            high = size if high is None else min(high, size)
        edges: list[tuple[int, Part, int]] = []
        last = size if high is None else min(high, size)
        end = last + 1
        for place in range(last + 1):
            if place >= low:
                edges.append((place, NO_TEXT if place == 0 else self.space, end))
            if place < last:
                item: Part = self.value(case.prefix[place])
                edges.append((place, seq(self.comma, item) if place else item, place + 1))
        if last == size and (high is None or high > size):
            item = self.value(case.rest)
            least = max(low - size, 1)
            most = None if high is None else high - size
            if size:
                more: Part = Rep(seq(self.comma, item), least, most)
            else:
                rest = None if most is None else most - 1
                more = seq(item, Rep(seq(self.comma, item), least - 1, rest))
            edges.append((last, seq(more, self.space), end))
        return seq(Bytes(b"["), self.space, Net(tuple(edges), 0, end), Bytes(b"]"))

    def _object(self, case: Objects, where: str) -> Part:
        members = [(name, held, name in case.required) for name, held in case.members]
        known = {name for name, _ in case.members}
        members += [
            (name, case.member(name), True) for name in sorted(case.required) if name not in known
        ]
        low, high = case.low, case.high
        counted = max(low, -1 if high is None else high + 1, 1)
        if counted > _MOST_COUNTED:
            refuse(where, f"more than {_MOST_COUNTED - 1} members are not counted; drop the bound")
        extra = self._others(case, {name for name, _, _ in members})
        if extra is not None and low > 1:
            repeated = "members of names that the schema leaves free count, also repeated names"
            self.schemas.note(where, "minProperties", repeated)
        parts: list[tuple[Part, bool]] = [
            (seq(_named(name), self.space, self.value(held)), needed)
            for name, held, needed in members
        ]
        if counted == 1 and high is None:
            net = self._uncounted(parts, extra, low)
        else:
            net = self._counted(parts, extra, low, high, counted)
        return seq(Bytes(b"{"), self.space, net, Bytes(b"}"))

    def _uncounted(self, parts: Sequence[tuple[Part, bool]], extra: Call | None, low: int) -> Net:
        """Return members in order, then others, of which at least ``low`` (0 or 1) are written."""
        # Before member k: 3k if none was written, 3k + 1 after one, 3k + 2 if it follows now.
        edges: list[tuple[int, Part, int]] = []
        last, end = 3 * len(parts), 3 * len(parts) + 3
        for number, (part, needed) in enumerate(parts):
            none, some, now = 3 * number, 3 * number + 1, 3 * number + 2
            if not needed:
                edges += (none, NO_TEXT, none + 3), (some, NO_TEXT, some + 3)
            edges += (none, NO_TEXT, now), (some, self.comma, now), (now, part, some + 3)
        if extra is not None:
            edges += (last, NO_TEXT, last + 2), (last + 1, self.comma, last + 2)
            edges.append((last + 2, extra, last + 1))
        if low == 0:
            edges.append((last, NO_TEXT, end))
        edges.append((last + 1, self.space, end))
        return Net(tuple(edges), 0, end)

    def _counted(
        self,
        parts: Sequence[tuple[Part, bool]],
        extra: Call | None,
        low: int,
        high: int | None,
        counted: int,
    ) -> Net:
        """Return members in order, then others, and count those written, up to a number."""
        edges: list[tuple[int, Part, int]] = []
        width = counted + 1
        last, end = len(parts) * width, (len(parts) + 1) * width
        for number, (part, needed) in enumerate(parts):
            for count in range(min(number, counted) + 1):
                at = number * width + count
                if not needed:
                    edges.append((at, NO_TEXT, at + width))
                if high is None or count < high:
                    following = (number + 1) * width + min(count + 1, counted)
                    edges.append((at, seq(self.comma, part) if count else part, following))
        for count in range(width):
            at = last + count
            if count >= low:
                edges.append((at, self.space if count else NO_TEXT, end))
            if extra is not None and (high is None or count < high):
                part = seq(self.comma, extra) if count else extra
                edges.append((at, part, last + min(count + 1, counted)))
        return Net(tuple(edges), 0, end)

    def _others(self, case: Objects, known: set[str]) -> Call | None:
        """Return the rule of members that the schema does not name, if they are written."""
        if case.named and not case.open:
            there = (name for name in known if self.schemas.possible(case.member(name)))
            if sum(1 for _ in islice(there, case.low)) == case.low:
                return None
        ways: list[Part] = []
        for texts, held, _ in case.others:
            if not self.schemas.possible(held):
                continue
            inside = [name for name in known if name in texts]
            names = texts - literals(inside) if inside else texts
            if not names.empty:
                name = self._quoted(names)
                ways.append(seq(name, Bytes(b":"), self.space, self.value(held)))
        return self.rules.add(alt(ways)) if ways else None
