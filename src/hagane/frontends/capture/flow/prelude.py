"""Functions of Python's own over items whose number the data decide, as programs themselves.

They are interpreted like their callers; their loops become loops of the graph.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def listed(items: Any) -> Any:
    """Return the items as a list."""
    made = []
    for item in items:
        made.append(item)
    return made


def mapped(function: Any, items: Any) -> Any:
    """Return the function's result for each item."""
    made = []
    for item in items:
        made.append(function(item))
    return made


def kept(function: Any, items: Any) -> Any:
    """Return the items for which a function says yes; the true items without one."""
    made = []
    for item in items:
        if item if function is None else function(item):
            made.append(item)
    return made


def refused(function: Any, items: Any) -> Any:
    """Return the items for which a function says no; those that count as false without one."""
    made = []
    for item in items:
        if not (item if function is None else function(item)):
            made.append(item)
    return made


def leading(function: Any, items: Any) -> Any:
    """Return the items before the first for which a function says no."""
    made = []
    for item in items:
        if not function(item):
            break
        made.append(item)
    return made


def trailing(function: Any, items: Any) -> Any:
    """Return the items from the first for which a function says no."""
    made = []
    begun = False
    for item in items:
        if begun or not function(item):
            begun = True
            made.append(item)
    return made


def selected(items: Any, selectors: Any) -> Any:
    """Return the items whose selectors count as true."""
    made = []
    for item, selector in zip(items, selectors):  # noqa: B905
        if selector:
            made.append(item)
    return made


def joined(items: Any) -> Any:
    """Return the items of some lists behind each other."""
    made = []
    for part in items:
        made.extend(part)
    return made


def any_of(items: Any) -> Any:
    """Return whether an item counts as true."""
    for item in items:  # noqa: SIM110
        if item:
            return True
    return False


def all_of(items: Any) -> Any:
    """Return whether all items count as true."""
    for item in items:  # noqa: SIM110
        if not item:
            return False
    return True


def total(items: Any, start: Any) -> Any:
    """Return the sum of the items and ``start``."""
    for item in items:
        start = start + item
    return start


def multiplied(items: Any, start: Any) -> Any:
    """Return the product of the items and ``start``."""
    for item in items:
        start = start * item
    return start


def folded(function: Any, items: Any) -> Any:
    """Return the items combined from the first to the last."""
    found = items[0]
    for item in items[1:]:
        found = function(found, item)
    return found


def accumulated(function: Any, items: Any) -> Any:
    """Return the combination of the items up to each."""
    found = items[0]
    made = [found]
    for item in items[1:]:
        found = function(found, item)
        made.append(found)
    return made


def added(a: Any, b: Any) -> Any:
    """Return the sum of two values."""
    return a + b


def greatest(items: Any, key: Any) -> Any:
    """Return the first item whose key is greatest."""
    best = items[0]
    most = key(best)
    for item in items[1:]:
        found = key(item)
        if found > most:
            best, most = item, found
    return best


def least(items: Any, key: Any) -> Any:
    """Return the first item whose key is least."""
    best = items[0]
    most = key(best)
    for item in items[1:]:
        found = key(item)
        if found < most:
            best, most = item, found
    return best


def itself(item: Any) -> Any:
    """Return the item."""
    return item


def contains(items: Any, wanted: Any) -> Any:
    """Return whether an item is equal to ``wanted``."""
    for item in items:  # noqa: SIM110
        if item == wanted:
            return True
    return False


def index(items: Any, wanted: Any) -> Any:
    """Return the place of the first item that is equal to ``wanted``; no place if none is."""
    for place in range(len(items)):
        if items[place] == wanted:
            return place
    return len(items)


def count(items: Any, wanted: Any) -> Any:
    """Return how many items are equal to ``wanted``."""
    found = 0
    for item in items:
        if item == wanted:
            found += 1
    return found


def grouped(key: Any, items: Any) -> Any:
    """Return the keys of all items, and where runs of equal keys begin and end."""
    keys = [key(item) for item in items]
    count = len(keys)
    starts = [k for k in range(count) if k == 0 or keys[k] != keys[k - 1]]
    stops = [k + 1 for k in range(count) if k == count - 1 or keys[k] != keys[k + 1]]
    return keys, starts, stops


def places(length: Any, count: Any, kept: Any) -> Any:
    """Return choices of ``count`` places below a length, in order: an array for each of them."""
    numbers = np.arange(length**count)
    found = [numbers // length ** (count - 1 - place) % length for place in range(count)]
    chosen = np.ones(length**count, dtype=bool)
    for place in range(1, count):
        for before in range(place):
            chosen = chosen & kept(found[before], found[place])
    return [column[chosen] for column in found]


def rising(before: Any, after: Any) -> Any:
    """Return whether places are those of a combination."""
    return before < after


def not_falling(before: Any, after: Any) -> Any:
    """Return whether places are those of a combination with repeats."""
    return before <= after


def different(before: Any, after: Any) -> Any:
    """Return whether places are those of a permutation."""
    return before != after
