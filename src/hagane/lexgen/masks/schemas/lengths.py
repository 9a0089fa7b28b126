"""Sets of texts within bounds of their length: all where that has few states, else fewer."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

from hagane.lexgen.expressions.charset import END
from hagane.lexgen.masks.rules.parts import OneOf, Part, Rep, Ways, seq
from hagane.lexgen.masks.schemas.formats import format_of, shorter
from hagane.lexgen.masks.texts import MOST_STATES, NOTHING, Row, Texts, matching, of_length

# States of texts that are not exact: of the first characters, and of what follows the repetition.
_MOST_BEFORE, _MOST_BEHIND = 4_000, 400
_MOST_REPEATED = 3


@lru_cache(1024)
def within(texts: Texts, low: int, high: int | None, ways: Ways) -> tuple[Part | None, str]:
    """Return the texts of a set of at least ``low`` and at most ``high`` characters, and a notice.

    Where lengths and states are too many together, longer texts are those whose first characters
    lead to a state that repeats characters (as of ``.*``), and go on with those: they are counted,
    not copied. The notice tells of it; it is empty where all texts are there.

    Args:
        texts: The set.
        low: The least number of characters.
        high: The most; None for no bound.
        ways: How characters are written, as ``OneOf`` has it.

    Returns:
        The part, None if there is no text, and the notice.
    """
    first = texts.shortest()
    if first is None:
        return None, ""
    if len(first) >= low:
        low = 0
    longest = _longest(texts)
    if high is not None and longest is not None and longest <= high:
        high = None
    if low == 0 and high is None:
        return OneOf(texts, ways), ""
    if high is None:
        return _whole(texts & of_length(low, None), ways), ""
    layers = _layers(texts, high, MOST_STATES)
    if layers is not None:
        return _whole(_of_layers(texts, layers, low, high), ways), ""
    name = format_of(texts)
    if name in ("email", "idn-email", "hostname"):
        few = texts & matching(shorter(name, high), whole=True)
        return _whole(few if low == 0 else few & of_length(low, None), ways), (
            f"texts have at most {high} characters, and so many in each part that these fit"
        )
    return _repeated(texts, low, high, ways)


def _whole(texts: Texts, ways: Ways) -> Part | None:
    return None if texts.empty else OneOf(texts, ways)


@lru_cache(1024)
def _nexts(texts: Texts) -> tuple[tuple[int, ...], ...]:
    """Return for each state those after one character."""
    return tuple(tuple(sorted({to for _, to in row if to >= 0})) for row in texts.rows)


@lru_cache(1024)
def _rests(texts: Texts) -> tuple[int, ...]:
    """Return for each state the number of characters to the nearest end; a large one for none."""
    before: dict[int, set[int]] = {}
    for state, following in enumerate(_nexts(texts)):
        for to in following:
            before.setdefault(to, set()).add(state)
    found = dict.fromkeys(texts.accepts, 0)
    queue = list(texts.accepts)
    for state in queue:  # grows while it runs
        for each in before.get(state, ()):
            if each not in found:
                found[each] = found[state] + 1
                queue.append(each)
    return tuple(found.get(state, MOST_STATES**2) for state in range(len(texts.rows)))


@lru_cache(1024)
def _longest(texts: Texts) -> int | None:
    """Return the number of characters of a longest text; None if there is none."""
    rests = _rests(texts)
    found: dict[int, int] = {}
    stack = [(0, iter(_following(texts, 0, rests)))]
    open_states = {0}
    while stack:
        state, following = stack[-1]
        to = next((to for to in following if to not in found), None)
        if to is None:
            stack.pop()
            open_states.discard(state)
            found[state] = max((1 + found[to] for to in _following(texts, state, rests)), default=0)
        elif to in open_states:
            return None
        else:
            open_states.add(to)
            stack.append((to, iter(_following(texts, to, rests))))
    return found[0]


def _following(texts: Texts, state: int, rests: tuple[int, ...]) -> list[int]:
    return [to for to in _nexts(texts)[state] if rests[to] < MOST_STATES**2]


def _layers(texts: Texts, high: int, most: int) -> list[list[int]] | None:
    """Return the states after 0, 1, … ``high`` characters that still end in time.

    None: they are more than ``most`` together.
    """
    rests, nexts = _rests(texts), _nexts(texts)
    layer, found, count = [0], [[0]], 1
    for rest in range(high - 1, -1, -1):
        layer = sorted({to for state in layer for to in nexts[state] if rests[to] <= rest})
        count += len(layer)
        if count > most:
            return None
        found.append(layer)
    return found


def _of_layers(texts: Texts, layers: list[list[int]], low: int, high: int) -> Texts:
    """Return the texts of a set that end in a layer from ``low`` on."""
    rows, accepts, _ = _numbered(texts, layers, low, high)
    if not accepts:
        return NOTHING
    return Texts(tuple(rows), frozenset(accepts))


def _numbered(
    texts: Texts, layers: list[list[int]], low: int, high: int
) -> tuple[list[Row], set[int], dict[int, int]]:
    """Return the rows of layers of states, the ends, and the numbers of the last layer's states."""
    rows: list[Row] = []
    accepts: set[int] = set()
    numbers = {0: 0}
    for count, layer in enumerate(layers):
        first = numbers[layer[0]] + len(layer) if layer else 0
        behind = layers[count + 1] if count + 1 < len(layers) else []
        following = {state: first + place for place, state in enumerate(behind)}
        for state in layer:
            row: list[tuple[int, int]] = []
            for start, to in texts.rows[state]:
                number = following.get(to, -1)
                if not row or row[-1][1] != number:
                    row.append((start, number))
            rows.append(tuple(row))
            if state in texts.accepts and low <= count <= high:
                accepts.add(numbers[state])
        if behind:
            numbers = following
    return rows, accepts, numbers


def _repeated(texts: Texts, low: int, high: int, ways: Ways) -> tuple[Part | None, str]:
    """Return texts of the first layers, and those that repeat characters behind them."""
    rests, nexts = _rests(texts), _nexts(texts)
    layers: list[list[int]] = [[0]]
    count = 1
    while count < _MOST_BEFORE and len(layers) <= high:
        layer = {to for state in layers[-1] for to in nexts[state]}
        layers.append(sorted(to for to in layer if rests[to] <= high - len(layers)))
        count += len(layers[-1])
    before = len(layers) - 1
    rows, accepts, numbers = _numbered(texts, layers, low, before)
    tails: list[tuple[int, Part]] = []
    sizes = {state: size for state in layers[-1] if (size := _size(_loop(texts, state)))}
    for state in sorted(sizes, key=lambda state: -sizes[state])[:_MOST_REPEATED]:
        behind, most = _behind(texts, state, high - before)
        least, room = max(low - before, 0), high - before - most
        if least <= room:
            character = Texts((_loop(texts, state), ((0, -1),)), frozenset({1}))
            repeated = Rep(OneOf(character, ways), least, room)
            tails.append((numbers[state], seq(repeated, OneOf(behind, ways))))
    if tails:
        return OneOf(Texts(tuple(rows), frozenset(accepts)), ways, tuple(tails)), (
            f"texts of more than {before} characters go on with characters of one kind here"
        )
    short = texts & of_length(low, before) if low <= before else NOTHING
    return _whole(short, ways), f"texts have at most {before} characters here"


def _loop(texts: Texts, state: int) -> Row:
    """Return the row of the characters that lead from a state to itself: to 1."""
    row: list[tuple[int, int]] = []
    for low, to in texts.rows[state]:
        number = 1 if to == state else -1
        if not row or row[-1][1] != number:
            row.append((low, number))
    return tuple(row)


def _size(loop: Row) -> int:
    return sum(
        following - low for (low, to), (following, _) in pairwise((*loop, (END, -1))) if to > 0
    )


def _behind(texts: Texts, state: int, most: int) -> tuple[Texts, int]:
    """Return what may follow a state, other than a character that leads to it, and its length."""
    first = tuple((low, -1 if to in (-1, state) else to + 1) for low, to in texts.rows[state])
    others = (tuple((low, to + 1 if to >= 0 else -1) for low, to in row) for row in texts.rows)
    accepts = {to + 1 for to in texts.accepts} | ({0} if state in texts.accepts else set())
    rooted = Texts((first, *others), frozenset(accepts))
    nearest = _rests(rooted)[0]
    for size in (*(1 << power for power in range(6, -1, -1)), 0):
        if nearest <= size <= most:
            layers = _layers(rooted, size, _MOST_BEHIND)
            if layers is not None:
                size = sum(map(bool, layers)) - 1  # shorter where no text is so long
                return _of_layers(rooted, layers[: size + 1], 0, size), size
    return NOTHING, most + 1
