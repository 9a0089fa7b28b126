r"""Named sets of characters: Unicode categories and properties, POSIX names, case variants.

Everything follows the Unicode tables of the running Python (``unicodedata``), so that ``\w``,
``\d`` and ``\s`` have their meanings of ``re``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain, repeat
from typing import Any

from hagane.lexgen.expressions.charset import ANY, MAX, Ranges, of, ranges, union

ASCII_DIGIT: Ranges = ((48, 57),)
ASCII_SPACE = of(" \t\n\r\f\v")
# ECMA-262 2024, section 12.2 and 12.3: WhiteSpace and LineTerminator.
ECMA_SPACE: Ranges = union(
    of("\t\v\f\ufeff\n\r\u2028\u2029 \u00a0\u1680\u202f\u205f\u3000"), ((0x2000, 0x200A),)
)
ECMA_LINE_END = of("\n\r\u2028\u2029")
ASCII_WORD = union(((48, 57), (65, 90), (97, 122)), of("_"))

POSIX: dict[str, Ranges] = {
    "alnum": ((48, 57), (65, 90), (97, 122)),
    "alpha": ((65, 90), (97, 122)),
    "ascii": ((0, 127),),
    "blank": of(" \t"),
    "cntrl": ((0, 31), (127, 127)),
    "digit": ASCII_DIGIT,
    "graph": ((33, 126),),
    "lower": ((97, 122),),
    "print": ((32, 126),),
    "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "space": ASCII_SPACE,
    "upper": ((65, 90),),
    "word": ASCII_WORD,
    "xdigit": ((48, 57), (65, 70), (97, 102)),
}


# Planes in which Unicode 17 and older assign nothing: all of their characters are alike.
_GAP = range(0x40000, 0xE0000)
if int(unicodedata.unidata_version.partition(".")[0]) > 17:
    _GAP = range(0x40000, 0x40000)


def _of_all(told: Callable[[str], Any]) -> Iterator[Any]:
    """Return what a function tells of each character; loops in C, over some hundred thousand."""
    first = map(told, map(chr, range(_GAP.start)))
    last = map(told, map(chr, range(_GAP.stop, MAX + 1)))
    return chain(first, repeat(told(chr(_GAP.start)), len(_GAP)), last)


@cache
def where(predicate: Callable[[str], bool]) -> Ranges:
    """Return the characters for which a predicate on one-character strings holds."""
    held = bytes(_of_all(predicate))
    return tuple((run.start(), run.end() - 1) for run in re.finditer(b"\1+", held))


@cache
def _categories() -> dict[str, Ranges]:
    runs: dict[str, list[tuple[int, int]]] = {}
    names = "".join(_of_all(unicodedata.category))  # two letters each
    for run in re.finditer(r"(..)\1*", names):
        runs.setdefault(run[1], []).append((run.start() // 2, run.end() // 2 - 1))
    return {name: tuple(pairs) for name, pairs in runs.items()}


# UAX 44, table 12: the long names of general categories.
_LONG_NAMES = {
    "letter": "L", "uppercaseletter": "Lu", "lowercaseletter": "Ll", "titlecaseletter": "Lt",
    "modifierletter": "Lm", "otherletter": "Lo", "mark": "M", "combiningmark": "M",
    "nonspacingmark": "Mn", "spacingmark": "Mc", "enclosingmark": "Me", "number": "N",
    "decimalnumber": "Nd", "digit": "Nd", "letternumber": "Nl", "othernumber": "No",
    "punctuation": "P", "punct": "P", "connectorpunctuation": "Pc", "dashpunctuation": "Pd",
    "openpunctuation": "Ps", "closepunctuation": "Pe", "initialpunctuation": "Pi",
    "finalpunctuation": "Pf", "otherpunctuation": "Po", "symbol": "S", "mathsymbol": "Sm",
    "currencysymbol": "Sc", "modifiersymbol": "Sk", "othersymbol": "So", "separator": "Z",
    "spaceseparator": "Zs", "lineseparator": "Zl", "paragraphseparator": "Zp", "other": "C",
    "control": "Cc", "cntrl": "Cc", "format": "Cf", "surrogate": "Cs", "privateuse": "Co",
    "unassigned": "Cn",
}  # fmt: skip


_PROPERTIES: dict[str, Callable[[], Ranges]] = {
    "any": lambda: ANY,
    "ascii": lambda: ((0, 127),),
    "alphabetic": lambda: where(str.isalpha),
    "whitespace": lambda: where(str.isspace),
    "uppercase": lambda: where(str.isupper),
    "lowercase": lambda: where(str.islower),
    "xidstart": lambda: where(str.isidentifier),
    "xidcontinue": lambda: where(continues_identifier),
}


def continues_identifier(char: str) -> bool:
    """Return whether the character may stand after the first one of an identifier."""
    return ("a" + char).isidentifier()


def category(name: str) -> Ranges | None:
    """Return a general category (``L``, ``Lu``, ``Letter``), a property (``ASCII``), or None."""
    plain = name.replace("_", "").replace(" ", "").lower()
    name = _LONG_NAMES.get(plain, name)
    if name in _categories():
        return _categories()[name]
    members = [pairs for key, pairs in _categories().items() if len(name) == 1 and key[0] == name]
    if members:
        return union(*members)
    made = _PROPERTIES.get(plain)
    return made() if made else None


def digits(ascii_only: bool) -> Ranges:
    r"""Return the characters of ``\d``."""
    return ASCII_DIGIT if ascii_only else where(str.isdecimal)


def spaces(ascii_only: bool) -> Ranges:
    r"""Return the characters of ``\s``."""
    return ASCII_SPACE if ascii_only else where(str.isspace)


def word_characters(ascii_only: bool) -> Ranges:
    r"""Return the characters of ``\w``."""
    return ASCII_WORD if ascii_only else union(where(str.isalnum), of("_"))


@cache
def _variants() -> dict[int, tuple[int, ...]]:
    """Map a cased code point to all that differ from it in case only, as ``re`` has them.

    Those whose lower case has one upper case do: İ and ı are variants of i.
    """
    leaders: dict[str, set[int]] = {}
    for code in range(0x1E944):
        char = chr(code)
        lower = char.lower()[0]
        upper = lower.upper()
        if lower != char or upper != char:
            leaders.setdefault(upper, set()).update((code, ord(lower)))
    return {code: tuple(group) for group in leaders.values() for code in group if len(group) > 1}


def fold(symbols: Ranges, ascii_only: bool) -> Ranges:
    """Return the set with all case variants of its members."""
    pairs = list(symbols)
    if ascii_only or all(high < 128 and not _varies_beyond(low, high) for low, high in symbols):
        for low, high in symbols:
            for first, last, shift in ((65, 90, 32), (97, 122, -32)):
                a, b = max(low, first), min(high, last)
                if a <= b:
                    pairs.append((a + shift, b + shift))
        return ranges(pairs)
    variants = _variants()
    for low, high in symbols:
        if high - low > len(variants):
            members = [code for code in variants if low <= code <= high]
        else:
            members = [code for code in range(low, high + 1) if code in variants]
        pairs.extend((other, other) for code in members for other in variants[code])
    return ranges(pairs)


def _varies_beyond(low: int, high: int) -> bool:
    """Return whether the range holds i, k or s, which have case variants outside ASCII."""
    return any(low <= ord(char) <= high for char in "iksIKS")
