"""JSON schemas as regular expressions: the subset that finite automata can hold.

Objects have their properties in the order of the schema. Nesting without end (references to
themselves, values of any type) is cut at a depth.

Source: JSON Schema, draft 2020-12; RFC 8259 for the texts of values.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from hagane.errors import InvalidArgument
from hagane.lexgen.expressions import charset
from hagane.lexgen.expressions.characters import Flags
from hagane.lexgen.expressions.charset import of
from hagane.lexgen.expressions.parse import parse
from hagane.lexgen.expressions.syntax import (
    EMPTY,
    Alternate,
    Assertion,
    Branch,
    Chars,
    Concat,
    Look,
    Node,
    Pattern,
    Repeat,
    alternate,
    concat,
    literal,
)
from hagane.lexgen.masks.json_schema_form import check_form, pointer, refuse

_PLAIN = charset.complement(charset.union(((0, 31),), of('"\\'), ((0xD800, 0xDFFF),)))
_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\n": "\\n",
    "\t": "\\t",
    "\r": "\\r",
    "\b": "\\b",
    "\f": "\\f",
}
_FORMATS = {
    "date": r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])",
    "time": r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})",
    "date-time": (
        r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])T"
        r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})"
    ),
    "uuid": r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
    "email": r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}",
    "ipv4": r"(?:(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])\.){3}(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])",
}
_INTEGER = r"-?(?:0|[1-9][0-9]*)"
_NUMBER = _INTEGER + r"(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_ANNOTATIONS = {
    "title", "description", "default", "examples", "$schema", "$id", "$defs", "definitions",
    "$comment", "type", "deprecated", "readOnly", "writeOnly",
}  # fmt: skip
_KEYWORDS = {
    "string": {"minLength", "maxLength", "pattern", "format"},
    "number": set(),
    "integer": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
    "boolean": set(),
    "null": set(),
    "object": {"properties", "required", "additionalProperties"},
    "array": {"items", "minItems", "maxItems", "prefixItems"},
}  # fmt: skip


def schema_pattern(schema: Mapping[str, Any], depth: int = 3, space: str = " ?") -> Pattern:
    """Return the expression that matches the JSON texts of a schema.

    Args:
        schema: The schema.
        depth: How deep values of any type and references to themselves may nest.
        space: The expression of what may stand after ``:`` and ``,`` and inside of brackets.

    Raises:
        InvalidArgument: The schema is malformed, or uses a keyword that is not covered; the message
            says where.
    """
    node = _Builder(schema, depth, parse(space).branches[0].body).value(schema, "#", depth)
    return Pattern(f"JSON schema {json.dumps(schema)[:60]}", (Branch(node),))


class _Builder:
    def __init__(self, root: Mapping[str, Any], depth: int, space: Node):
        self.root = root
        self.depth = depth
        self.space = space

    def value(self, schema: Any, where: str, depth: int) -> Node:
        if schema is True or schema == {}:
            return self.anything(depth)
        if schema is False:
            return Chars(charset.EMPTY)
        if not isinstance(schema, Mapping):
            refuse(where, f"expected a schema (an object, true or false), got {schema!r}")
        check_form(schema, where)
        for keyword in ("$ref", "const", "enum", "anyOf", "oneOf", "allOf"):
            if keyword in schema:
                _check_alone(schema, keyword, where)
                break
        if "$ref" in schema:
            return self.reference(schema["$ref"], where, depth)
        if "const" in schema:
            return self.constant(schema["const"])
        if "enum" in schema:
            return alternate(*(self.constant(each) for each in schema["enum"]))
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                return alternate(
                    *(
                        self.value(each, pointer(where, keyword, number), depth)
                        for number, each in enumerate(schema[keyword])
                    )
                )
        if "allOf" in schema:
            return self.value(schema["allOf"][0], f"{where}/allOf/0", depth)
        kinds = schema.get("type", _guess(schema))
        if kinds is None:
            _check_keywords(schema, set(), where)
            return self.anything(depth)
        kinds = [kinds] if isinstance(kinds, str) else list(kinds)
        known: set[str] = set()
        for kind in kinds:
            known |= _KEYWORDS[kind]
        _check_keywords(schema, known, where)
        return alternate(*(getattr(self, f"_{kind}")(schema, where, depth) for kind in kinds))

    def reference(self, target: str, where: str, depth: int) -> Node:
        if depth <= 0:
            return Chars(charset.EMPTY)
        at: Any = self.root
        place = pointer(where, "$ref")
        if not target.startswith("#") or target[1:2] not in ("", "/"):
            refuse(
                place,
                f"expected a pointer within the schema, got '{target}'; write '#/$defs/name' "
                "and copy what is in other files into '$defs'",
            )
        for step in unquote(target[1:]).split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(at, list) and name.isdecimal() and int(name) < len(at):
                at = at[int(name)]
            elif isinstance(at, Mapping) and name in at:
                at = at[name]
            else:
                there = f"; there are: {', '.join(at)}" if isinstance(at, Mapping) and at else ""
                refuse(place, f"there is nothing at '{target}', no '{name}'{there}")
        return self.value(at, target, depth - 1)

    def constant(self, value: Any) -> Node:
        if isinstance(value, str):
            return literal(json.dumps(value, ensure_ascii=False))
        if isinstance(value, list):
            return self.listed("[", [self.constant(each) for each in value], "]")
        if isinstance(value, Mapping):
            members = [self.member(key, self.constant(each)) for key, each in value.items()]
            return self.listed("{", members, "}")
        return literal(json.dumps(value))

    def anything(self, depth: int) -> Node:
        kinds = ["string", "number", "boolean", "null"]
        nodes = [getattr(self, f"_{kind}")({}, "#", depth) for kind in kinds]
        if depth > 0:
            inner = self.anything(depth - 1)
            nodes.append(self.repeated("[", inner, 0, None, "]"))
            nodes.append(self.repeated("{", self.member(None, inner), 0, None, "}"))
        return alternate(*nodes)

    def member(self, key: str | None, value: Node) -> Node:
        name = (
            self._string({}, "#", 0)
            if key is None
            else literal(json.dumps(key, ensure_ascii=False))
        )
        return concat(name, literal(":"), self.space, value)

    def listed(self, opening: str, items: Sequence[Node], closing: str) -> Node:
        comma = concat(literal(","), self.space)
        parts: list[Node] = []
        for number, item in enumerate(items):
            parts += [item] if number == 0 else [comma, item]
        return concat(
            literal(opening), self.space, *parts, *([self.space] if items else []), literal(closing)
        )

    def repeated(self, opening: str, item: Node, low: int, high: int | None, closing: str) -> Node:
        comma = concat(literal(","), self.space)
        more = None if high is None else max(high - 1, 0)
        rest = Repeat(concat(comma, item), max(low - 1, 0), more)
        filled = concat(item, rest, self.space)
        inner = filled if low > 0 else Repeat(filled, 0, 1)
        if high == 0:
            inner = EMPTY
        return concat(literal(opening), self.space, inner, literal(closing))

    def _string(self, schema: Mapping[str, Any], where: str, depth: int) -> Node:
        quote = literal('"')
        for keyword, source in (("pattern", schema.get("pattern")), ("format", None)):
            name = schema.get("format") if keyword == "format" else None
            if name is not None:
                if name not in _FORMATS:
                    refuse(
                        f"{where}/format", f"expected one of {', '.join(_FORMATS)}, got '{name}'"
                    )
                source = f"^{_FORMATS[name]}$"
            if source is not None:
                if "minLength" in schema or "maxLength" in schema:
                    refuse(where, f"'{keyword}' together with a length is not covered")
                return concat(quote, _in_string(source, f"{where}/{keyword}"), quote)
        low = schema.get("minLength", 0)
        high = schema.get("maxLength")
        return concat(quote, Repeat(_character(charset.ANY), low, high), quote)

    def _number(self, schema: Mapping[str, Any], where: str, depth: int) -> Node:
        return parse(_NUMBER).branches[0].body

    def _integer(self, schema: Mapping[str, Any], where: str, depth: int) -> Node:
        lows, highs = (
            [
                bound + step * (number and int(schema[keyword]) == schema[keyword])
                for number, keyword in enumerate((plain, f"exclusive{plain.capitalize()}"))
                if (bound := _bound(schema, keyword, rounded)) is not None
            ]
            for plain, step, rounded in (("minimum", 1, math.ceil), ("maximum", -1, math.floor))
        )
        low, high = max(lows, default=None), min(highs, default=None)
        if low is None and high is None:
            return parse(_INTEGER).branches[0].body
        return parse(integer_range(low, high)).branches[0].body

    def _boolean(self, schema: Mapping[str, Any], where: str, depth: int) -> Node:
        return alternate(literal("true"), literal("false"))

    def _null(self, schema: Mapping[str, Any], where: str, depth: int) -> Node:
        return literal("null")

    def _array(self, schema: Mapping[str, Any], where: str, depth: int) -> Node:
        low = schema.get("minItems", 0)
        high = schema.get("maxItems")
        if "prefixItems" in schema:
            _check_prefix(schema, low, high, where)
            items = [
                self.value(each, f"{where}/prefixItems/{number}", depth)
                for number, each in enumerate(schema["prefixItems"])
            ]
            return self.listed("[", items, "]")
        if "items" not in schema and depth <= 0:
            return self.repeated("[", EMPTY, 0, 0, "]")
        item = self.value(
            schema.get("items", True), f"{where}/items", depth - ("items" not in schema)
        )
        return self.repeated("[", item, low, high, "]")

    def _object(self, schema: Mapping[str, Any], where: str, depth: int) -> Node:
        properties = schema.get("properties", {})
        required = schema.get("required", [])
        if properties and schema.get("additionalProperties", False) is not False:
            refuse(
                f"{where}/additionalProperties",
                "members beside those of 'properties' are not covered, expected false (which is "
                f"what holds without the keyword), got {schema['additionalProperties']!r}",
            )
        for name in required:
            if name not in properties:
                known = ", ".join(properties) or "none"
                refuse(
                    f"{where}/required",
                    f"'{name}' is not among the properties ({known}); add it to 'properties', true "
                    "for any value, or drop it here",
                )
        if not properties:
            if depth <= 0:
                return self.repeated("{", EMPTY, 0, 0, "}")
            extra = schema.get("additionalProperties", True)
            if extra is False:
                return self.repeated("{", EMPTY, 0, 0, "}")
            value = self.value(extra, f"{where}/additionalProperties", depth - 1)
            return self.repeated("{", self.member(None, value), 0, None, "}")
        members = [
            (
                self.member(name, self.value(each, pointer(where, "properties", name), depth)),
                name in required,
            )
            for name, each in properties.items()
        ]
        inner = concat(self._members(members), self.space)
        return concat(literal("{"), self.space, inner, literal("}"))

    def _members(self, members: Sequence[tuple[Node, bool]]) -> Node:
        """Return the members in order, those not required optional, commas between."""
        comma = concat(literal(","), self.space)
        later: Node = EMPTY  # what may come after some member
        whole: Node = EMPTY  # the same where no member has come yet
        for member, needed in reversed(members):
            start = concat(member, later)
            whole = start if needed else alternate(start, whole)
            further = concat(comma, member)
            later = concat(further if needed else Repeat(further, 0, 1), later)
        return whole


def _character(symbols: charset.Ranges) -> Node:
    """Return the ways to write one of some characters in a JSON string."""
    ways: list[Node] = []
    plain = charset.intersect(symbols, _PLAIN)
    if plain:
        ways.append(Chars(plain))
    for char, escape in _ESCAPES.items():
        if charset.contains(symbols, ord(char)):
            ways.append(literal(escape))
    return alternate(*ways) if ways else Chars(charset.EMPTY)


def _in_string(source: str, where: str) -> Node:
    """Return the expression of a 'pattern', which may match anywhere in the string."""
    # JSON Schema takes the classes of ECMA-262: \d is [0-9].
    tree = parse(source, flags=Flags(ascii=True))
    if tree.has_following:
        refuse(where, "look-ahead is not covered in a 'pattern'")
    anything = Repeat(_character(charset.ANY), 0, None)
    branches = []
    for branch in tree.branches:
        parts = branch.body.parts if isinstance(branch.body, Concat) else (branch.body,)
        starts = parts[:1] == (Assertion(Look.TEXT_START),)
        parts = parts[1:] if starts else parts
        ends = parts[-1:] in ((Assertion(Look.LAST_LINE_END),), (Assertion(Look.TEXT_END),))
        parts = parts[:-1] if ends else parts
        body = concat(*(_escaped(part, where) for part in parts))
        branches.append(
            concat(*([] if starts else [anything]), body, *([] if ends else [anything]))
        )
    return alternate(*branches)


def _escaped(node: Node, where: str) -> Node:  # noqa: RET503
    match node:
        case Chars(symbols):
            return _character(symbols)
        case Concat(parts):
            return Concat(tuple(_escaped(part, where) for part in parts))
        case Alternate(parts):
            return Alternate(tuple(_escaped(part, where) for part in parts))
        case Repeat(body, low, high):
            return Repeat(_escaped(body, where), low, high)
    refuse(where, "^, $ and \\b are covered at the ends of a 'pattern' only")


def integer_range(low: int | None, high: int | None) -> str:
    """Return an expression that matches the integers from ``low`` to ``high`` (None: no bound)."""
    parts = []
    if low is None or low < 0:
        upper = None if low is None else -low
        lower = 1 if high is None or high >= -1 else -high
        if upper is None or upper >= lower:
            parts.append("-(?:" + _natural_range(lower, upper) + ")")
    if high is None or high >= 0:
        lower = max(low or 0, 0)
        if high is None or high >= lower:
            parts.append(_natural_range(lower, high))
    if not parts:
        raise InvalidArgument(f"JSON schema: no integer is at least {low} and at most {high}")
    return "(?:" + "|".join(parts) + ")"


def _natural_range(low: int, high: int | None) -> str:
    if high is None:
        digits = len(str(low))
        longer = f"[1-9][0-9]{{{digits},}}"
        return f"{_natural_range(low, 10**digits - 1)}|{longer}"
    parts = []
    while low <= high:
        # The widest block of numbers that start alike: low = prefix, then ``free`` free digits.
        free = 0
        while low % 10 ** (free + 1) == 0 and low and low + 10 ** (free + 1) - 1 <= high:
            free += 1
        step = 10**free
        first = low // step % 10
        count = min(9 - first, (high - low + 1) // step - 1) if low else min(9, high)
        last = first + count
        prefix = str(low // step)[:-1]
        digit = str(first) if first == last else f"[{first}-{last}]"
        parts.append(prefix + digit + (f"[0-9]{{{free}}}" if free else ""))
        low += step * (count + 1)
    return "|".join(parts)


def _guess(schema: Mapping[str, Any]) -> str | None:
    for kind in ("object", "array", "string", "integer"):
        if _KEYWORDS[kind] & set(schema):
            return kind
    return None


def _bound(schema: Mapping[str, Any], keyword: str, rounded: Callable[[float], int]) -> int | None:
    """Return a bound as the nearest integer within it."""
    return rounded(schema[keyword]) if keyword in schema else None


def _check_prefix(schema: Mapping[str, Any], low: int, high: int | None, where: str) -> None:
    """Refuse what would let an array be of another length than its 'prefixItems'."""
    size = len(schema["prefixItems"])
    if schema.get("items", False) is not False:
        refuse(
            f"{where}/items",
            "items after those of 'prefixItems' are not covered, expected false (which is what "
            f"holds without the keyword), got {schema['items']!r}",
        )
    if low > size or (high is not None and high < size):
        refuse(
            f"{where}/{'minItems' if low > size else 'maxItems'}",
            f"with 'prefixItems' an array has exactly its {size} items, got another bound",
        )


def _check_alone(schema: Mapping[str, Any], keyword: str, where: str) -> None:
    """Refuse keywords beside one that says all; the type may repeat what a value says."""
    if keyword == "allOf" and len(schema["allOf"]) != 1:
        refuse(f"{where}/allOf", f"expected one schema, got {len(schema['allOf'])}")
    others = sorted(set(schema) - _ANNOTATIONS - {keyword})
    if others:
        refuse(where, f"the keyword '{others[0]}' beside '{keyword}' is not covered")
    if "type" in schema and keyword not in ("const", "enum"):
        refuse(where, f"the keyword 'type' beside '{keyword}' is not covered")
    if "type" in schema:
        kinds = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
        for value in schema["enum"] if keyword == "enum" else [schema["const"]]:
            if not any(_is_of(value, kind) for kind in kinds):
                refuse(where, f"the value {value!r} of '{keyword}' is not of the type {kinds}")


def _is_of(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if isinstance(value, (int, float)):
        return kind == "number" or (kind == "integer" and float(value).is_integer())
    classes: dict[str, type] = {"string": str, "null": type(None), "object": Mapping, "array": list}
    return kind in classes and isinstance(value, classes[kind])


def _check_keywords(schema: Mapping[str, Any], known: set[str], where: str) -> None:
    unknown = sorted(set(schema) - known - _ANNOTATIONS)
    if unknown:
        refuse(
            where,
            f"the keyword '{unknown[0]}' is not covered; covered here are: "
            f"{', '.join(sorted(known)) or 'type, enum, const, anyOf, oneOf, $ref'}",
        )
