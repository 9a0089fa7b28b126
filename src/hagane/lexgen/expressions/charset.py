"""Sets of symbols as sorted, disjoint, inclusive ranges.

A symbol is a Unicode code point, or ``END``, one past the last of them: the end of the input, which
look-ahead (``$``, ``(?!x)``) may ask for as if it were a character. Complements never contain it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import TypeAlias

MAX = 0x10FFFF
END = MAX + 1

Ranges: TypeAlias = tuple[tuple[int, int], ...]

EMPTY: Ranges = ()
ANY: Ranges = ((0, MAX),)
NEWLINE: Ranges = ((10, 10),)
AT_END: Ranges = ((END, END),)


def ranges(pairs: Iterable[tuple[int, int]]) -> Ranges:
    """Return the union of inclusive ranges, sorted, neighbours joined; ``END`` stays apart."""
    joined: list[tuple[int, int]] = []
    for low, high in sorted(pairs):
        if joined and low <= joined[-1][1] + 1 and low != END:
            if high > joined[-1][1]:
                joined[-1] = (joined[-1][0], high)
        else:
            joined.append((low, high))
    return tuple(joined)


def of(text: str) -> Ranges:
    """Return the set of the characters of ``text``."""
    return ranges((ord(char), ord(char)) for char in text)


def union(*sets: Ranges) -> Ranges:
    """Return the symbols that are in any of the sets."""
    return ranges(pair for each in sets for pair in each)


def complement(symbols: Ranges) -> Ranges:
    """Return every code point that is not in the set; never ``END``."""
    gaps = []
    following = 0
    for low, high in symbols:
        if low > MAX:
            break
        if low > following:
            gaps.append((following, low - 1))
        following = high + 1
    if following <= MAX:
        gaps.append((following, MAX))
    return tuple(gaps)


def intersect(a: Ranges, b: Ranges) -> Ranges:
    """Return the symbols that are in both sets."""
    common = []
    i = j = 0
    while i < len(a) and j < len(b):
        low, high = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if low <= high:
            common.append((low, high))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return tuple(common)


def difference(a: Ranges, b: Ranges) -> Ranges:
    """Return the code points of ``a`` that are not in ``b``."""
    return intersect(a, complement(b))


def contains(symbols: Ranges, symbol: int) -> bool:
    """Return whether the symbol is in the set."""
    index = bisect_right(symbols, (symbol, END)) - 1
    return index >= 0 and symbols[index][1] >= symbol


def size(symbols: Ranges) -> int:
    """Return how many symbols the set has."""
    return sum(high - low + 1 for low, high in symbols)
