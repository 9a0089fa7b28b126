r"""Regular expressions in the syntax of RE2, which ONNX names, as those of Python's ``re``.

Source: the syntax page of RE2. Classes such as ``\w`` and borders of words are of ASCII there,
``\p{...}`` names categories of Unicode, ``\z`` is the end, and brackets know POSIX's classes.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import cache

_ESCAPED = {"d": "0-9", "s": r"\t\n\f\r ", "w": "0-9A-Za-z_"}
_POSIX = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": r"\x00-\x7f", "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f", "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~",
    "punct": r"!-/:-@\[-`{-~", "space": r"\t\n\v\f\r ", "upper": "A-Z", "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_TOKEN = re.compile(
    r"\\Q(?P<literal>.*?)(?:\\E|$)"
    r"|\\(?P<not>[pP])(?:\{(?P<caret>\^?)(?P<name>\w+)\}|(?P<letter>\w))"
    r"|\\x\{(?P<code>[0-9A-Fa-f]+)\}|\\(?P<escape>.)|\[:(?P<no>\^?)(?P<posix>\w+):\]|(?P<other>.)",
    re.DOTALL,
)


def from_re2(pattern: str) -> str:
    """Return a pattern for ``re`` that matches as RE2 does.

    Raises:
        ValueError: It names a script of Unicode, or what no engine knows.
    """
    made: list[str] = []
    inside = False  # brackets
    for token in _TOKEN.finditer(pattern):
        escape, other = token["escape"], token["other"]
        if token["literal"] is not None:
            made.append(re.escape(token["literal"]))
        elif token["not"]:
            text = _of_category(token["name"] or token["letter"])
            made.append(_class(text, (token["not"] == "P") != bool(token["caret"]), inside))
        elif token["code"]:
            made.append(f"\\U{int(token['code'], 16):08x}")
        elif escape is not None and escape.lower() in _ESCAPED:
            made.append(_class(_ESCAPED[escape.lower()], escape.isupper(), inside))
        elif escape is not None:
            plain = {"z": r"\Z", "b": r"(?a:\b)", "B": r"(?a:\B)"}
            made.append(plain.get(escape, f"\\{escape}") if not inside else f"\\{escape}")
        elif token["posix"] is not None and inside:
            if token["posix"] not in _POSIX:
                raise ValueError(f"pattern {pattern!r}: unknown class [:{token['posix']}:]")
            made.append(_class(_POSIX[token["posix"]], bool(token["no"]), inside))
        elif other is None:  # [:name:] without brackets around it is a class of letters
            made.append(token[0])
        else:
            start = token.start()
            if other == "[" and not inside:
                inside, first = True, start + 1 + (pattern[start + 1 : start + 2] == "^")
            elif other == "]" and inside and start != first:
                inside = False
            made.append("\\[" if other == "[" and inside and made and start + 1 > first else other)
    return "".join(made)


def _class(ranges: str, negated: bool, inside: bool) -> str:
    """Return a class, or its ranges where brackets are around it."""
    if not inside:
        return f"[^{ranges}]" if negated else f"[{ranges}]"
    return _others(ranges) if negated else ranges


@cache
def _others(ranges: str) -> str:
    """Return the ranges of all characters that are not in some ranges."""
    match = re.compile(f"[{ranges}]").match
    return _ranges([code for code in range(sys.maxunicode + 1) if not match(chr(code))])


@cache
def _of_category(name: str) -> str:
    """Return the ranges of a category of Unicode."""
    if name == "Any":
        return r"\x00-\U0010ffff"
    category = unicodedata.category
    found = [c for c in range(sys.maxunicode + 1) if category(chr(c)).startswith(name)]
    if not found:
        raise ValueError(
            f"class \\p{{{name}}}: expected a category of Unicode, such as L or Lu; scripts are "
            "not known"
        )
    return _ranges(found)


def _ranges(codes: list[int]) -> str:
    """Return numbers in order as ranges of a class."""
    made: list[str] = []
    start = last = codes[0]
    for code in [*codes[1:], -1]:
        if code != last + 1:
            made.append(f"\\U{start:08x}-\\U{last:08x}")
            start = code
        last = code
    return "".join(made)
