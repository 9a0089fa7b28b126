"""Keywords of JSON Schema: their types, and the cases that those of one type describe."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from hagane.errors import InvalidArgument
from hagane.lexgen.masks.schemas.cases import Arrays, Booleans, Case, Null, Objects, Strings
from hagane.lexgen.masks.schemas.form import OBJECTS, pointer, refuse
from hagane.lexgen.masks.schemas.formats import FORMATS, format_texts
from hagane.lexgen.masks.schemas.numbers import Numbers
from hagane.lexgen.masks.texts import ANYTHING, Texts, literals, matching, of_length

_log = logging.getLogger("hagane.lexgen")

TYPES = ("null", "boolean", "number", "string", "array", "object")
_KEYWORDS = {
    "string": {"minLength", "maxLength", "pattern", "format"},
    "number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
    "array": {"items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems",
              "contains", "minContains", "maxContains"},
    "object": {
        "properties", "required", "additionalProperties", "patternProperties", "propertyNames",
        "minProperties", "maxProperties",
    },
}  # fmt: skip
OF_TYPE = {keyword: kind for kind, keywords in _KEYWORDS.items() for keyword in keywords}
ANYWHERE = {
    "type", "enum", "const", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "$ref",
    "nullable", "dependentRequired", "dependentSchemas", "dependencies", "unevaluatedProperties",
    "unevaluatedItems", "$dynamicRef", "$recursiveRef",
}  # fmt: skip
# Keywords that speak of one type, and stand beside those of all.
_ALSO = {
    "unevaluatedItems": "array", "unevaluatedProperties": "object", "dependentRequired": "object",
    "dependentSchemas": "object", "dependencies": "object",
}  # fmt: skip
ANNOTATIONS = {
    "title", "description", "default", "examples", "example", "$schema", "$id", "id", "$anchor",
    "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "$defs", "definitions", "$comment",
    "deprecated", "readOnly", "writeOnly", "contentEncoding", "contentMediaType", "contentSchema",
    "discriminator", "externalDocs", "xml", "enumNames",
}  # fmt: skip
# Formats of JSON Schema that no expression here covers.
_HARD_FORMATS = {"idn-hostname"}
# Formats that annotate: of OpenAPI's numbers and texts.
_LOOSE_FORMATS = {"int32", "int64", "float", "double", "password", "byte", "binary"}


# No output has so many characters, items or members.
_MOST_COUNT = 2**31 - 2
_SCALARS = {str, int, float, bool, type(None)}
# All values of each type.
PLAIN: dict[str, Case] = dict(
    zip(TYPES, (Null(), Booleans(), Numbers(), Strings(), Arrays(), Objects()), strict=True)
)


def _listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def content_of(schema: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """Return what a schema says, equal for those that say the same; None if it has others within.

    Schemas of names, numbers and references repeat often, with descriptions of their own.
    """
    found: list[Any] = []
    for keyword, value in schema.items():
        if keyword in ANNOTATIONS:
            continue
        kind = type(value)
        if kind is list and all(type(each) is str for each in value):
            value = tuple(value)
        elif kind not in _SCALARS or keyword == "uniqueItems":  # which is told of each time
            return None
        found += keyword, kind, value
    return tuple(found)


def types_of(schema: Mapping[str, Any]) -> tuple[set[str], bool]:
    """Return the types that a schema names (all without), and whether numbers must be whole."""
    if "type" not in schema:
        return set(TYPES), False
    kinds = set(_listed(schema["type"]))
    if schema.get("nullable") is True:
        kinds.add("null")
    integer = "integer" in kinds and "number" not in kinds
    return kinds - {"integer"} | ({"number"} if "integer" in kinds else set()), integer


def also_spoken(schema: Mapping[str, Any]) -> set[str]:
    """Return the types of which keywords speak that are not among those of one type."""
    return {kind for keyword, kind in _ALSO.items() if keyword in schema}


def count_of(schema: Mapping[str, Any], keyword: str, default: Any = None) -> Any:
    """Return the number of a keyword; of an upper bound beyond all counts none."""
    if keyword not in schema:
        return default
    count = int(schema[keyword])
    return default if keyword.startswith("max") and count > _MOST_COUNT else count


def is_of_values(schema: Any) -> bool:
    """Return whether a schema holds of some values, and says nothing else of them."""
    if not isinstance(schema, OBJECTS):
        return False
    spoken = {key for key in schema if key in OF_TYPE or key in ANYWHERE}
    return len(spoken) == 1 and spoken <= {"enum", "const"}


def values_of(schema: Mapping[str, Any]) -> list[Any]:
    """Return the values of such a schema."""
    return schema["enum"] if "enum" in schema else [schema["const"]]


def each_of(schema: Mapping[str, Any], keyword: str, where: str) -> list[tuple[Any, str]]:
    """Return the schemas of a keyword, with their pointers."""
    return [(each, pointer(where, keyword, at)) for at, each in enumerate(schema[keyword])]


def fraction_of(value: float) -> Fraction:
    """Return a number of JSON, exactly as it is written."""
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)


def numbers_of(schema: Mapping[str, Any], integer: bool) -> Numbers:
    """Return the numbers of a schema."""
    found = Numbers(integer=integer)
    bounds: tuple[tuple[str, str, Callable[[Fraction, bool], Numbers]], ...] = (
        ("minimum", "exclusiveMinimum", lambda value, open_: Numbers(value, open_)),
        ("maximum", "exclusiveMaximum", lambda v, o: Numbers(high=v, high_open=o)),
    )
    for plain, exclusive, made in bounds:
        flag = schema.get(exclusive)
        if plain in schema:
            found &= made(fraction_of(schema[plain]), flag is True)
        if flag is not None and not isinstance(flag, bool):
            found &= made(fraction_of(flag), True)
    if "multipleOf" in schema:
        found &= Numbers(factors=frozenset({fraction_of(schema["multipleOf"])}))
    return found


def strings_of(schema: Mapping[str, Any], where: str) -> Strings:
    """Return the texts of a schema."""
    texts = ANYTHING
    if "pattern" in schema:
        texts = pattern_texts(schema["pattern"], f"{where}/pattern")
    name = schema.get("format")
    if name is not None and name not in _LOOSE_FORMATS:
        if name in FORMATS:
            form = format_texts(name)
            texts = form if texts is ANYTHING else texts & form
        elif name in _HARD_FORMATS:
            known = ", ".join(FORMATS)
            refuse(f"{where}/format", f"expected one of {known}, got '{name}'")
        else:
            known = ", ".join(FORMATS)
            _log.warning("JSON schema, %s/format: '%s' is not one of %s", where, name, known)
    return Strings(texts, count_of(schema, "minLength", 0), count_of(schema, "maxLength"))


def pattern_texts(source: str, where: str) -> Texts:
    """Return the texts in which a pattern matches; it may look ahead at the start of the text."""
    try:
        found: Texts | None = None
        for alternative in _alternatives(source):
            texts = _looking_ahead(alternative)
            found = texts if found is None else found | texts
        return matching(source) if found is None else found
    except InvalidArgument as error:
        refuse(where, str(error))


def _looking_ahead(source: str) -> Texts:
    """Return the texts of ``^(?!a)(?=b)c``: those of ``^c`` that begin with b, and not with a."""
    rest, texts = source, ANYTHING
    while (start := rest[:4]) in ("^(?!", "^(?="):
        inside = list(_outside_classes(rest[1:]))
        end = next((at + 1 for at, char, depth in inside if (char, depth) == (")", 0)), 0)
        if not end:
            break
        begins = matching(f"^(?:{rest[4:end]})")
        texts = (
            texts - begins if start == "^(?!" else begins if texts is ANYTHING else texts & begins
        )
        rest = "^" + rest[end + 1 :]
    found = matching(rest)
    return found if texts is ANYTHING else texts & found


def _alternatives(source: str) -> list[str]:
    """Return the alternatives of an expression, if one of them looks ahead at the text's start."""
    ends = [at for at, char, depth in _outside_classes(source) if (char, depth) == ("|", 0)]
    begins = [0, *(end + 1 for end in ends)]
    found = [source[begin:end] for begin, end in zip(begins, [*ends, len(source)], strict=True)]
    return found if any(each.startswith(("^(?!", "^(?=")) for each in found) else [source]


def _outside_classes(source: str) -> Iterator[tuple[int, str, int]]:
    """Yield the characters outside classes and escapes, with the number of groups around each."""
    depth, at, inside = 0, 0, False
    while at < len(source):
        char = source[at]
        if char == "\\":
            at += 2
            continue
        if inside:
            inside = char != "]"
        elif char == "[":
            inside = True
        else:
            depth -= char == ")"
            yield at, char, depth
            depth += char == "("
        at += 1


def case_texts(case: Strings) -> Texts:
    """Return the texts of a case, their lengths included."""
    if case.low == 0 and case.high is None:
        return case.texts
    return case.texts & of_length(case.low, case.high)


_KEPT: dict[str, Any] = {}


def kept(value: Any) -> Any:
    """Return the schema of one value, the same object for equal values."""
    return _KEPT.setdefault(repr(value), {"const": value})


def member_names(root: Any) -> tuple[str, ...]:
    """Return the names of members in all of a schema, in its order."""
    found: dict[str, None] = {}
    queue = [root]
    for part in queue:
        if isinstance(part, OBJECTS):
            properties = part.get("properties")
            found.update(dict.fromkeys(properties if isinstance(properties, Mapping) else ()))
            queue += part.values()
        elif isinstance(part, list):
            queue += part
    return tuple(found)


def other_than(values: Sequence[Any]) -> list[Case]:
    """Return the cases of all values but some texts, numbers and constants."""
    numbers = [v for v in values if isinstance(v, (int, float)) and not isinstance(v, bool)]
    truths = frozenset({False, True}) - {value for value in values if isinstance(value, bool)}
    texts = [value for value in values if isinstance(value, str)]
    return [
        *([] if None in values else [Null()]),
        Booleans(truths),
        Numbers(without=frozenset(map(fraction_of, numbers))),
        Strings(ANYTHING - literals(texts)) if texts else Strings(),
        Arrays(),
        Objects(),
    ]
