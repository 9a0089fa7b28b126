r"""A deterministic automaton back to a regular expression for ``re`` whose match is the longest.

``re`` tries alternatives in order and stops at the first that succeeds. From each state of a
deterministic automaton the next character decides the way, so alternatives exclude each other; only
"go on" against "stop here" is a choice, and going on is always tried first. A cycle is written at
its entry ``q`` as ``(?:loop)*rest``: of two matches of which one is a prefix of the other, the
longer visits ``q`` at least as often, and a star tries more rounds first.

A round never has to be given back, so the star is possessive, where ``q`` accepts or where nothing
else on its cycles does.
"""

from __future__ import annotations

from functools import cache

from hagane.lexgen.automata.dfa import Dfa
from hagane.lexgen.expressions import unicode_sets
from hagane.lexgen.expressions.charset import MAX, Ranges, complement, intersect, union

MAX_LENGTH = 60_000
MAX_DEPTH = 300
_ASTRAL = r"[\U00010000-\U0010ffff]"


class _TooLarge(Exception):
    pass


def to_re(dfa: Dfa) -> str | None:
    """Return an expression for ``re`` that finds the automaton's longest match.

    None is returned where it would be too long, or where the automaton looks at the text before
    or after a match.
    """
    if len(set(dfa.starts[0])) > 1 or dfa.starts[0][0] < 0:
        return None
    if any(row[dfa.alphabet.end_class] >= 0 for row in dfa.delta):
        return None
    try:
        return _Translation(dfa).rest(dfa.starts[0][0], frozenset(), 0)
    except _TooLarge:
        return None


def to_re_branches(dfa: Dfa) -> list[tuple[Ranges, str]] | None:
    """Return the expression as alternatives: pairs of the first character's set and the rest.

    The sets exclude each other. None is returned where ``to_re`` returns None.
    """
    if len(set(dfa.starts[0])) > 1 or dfa.starts[0][0] < 0:
        return None
    if any(row[dfa.alphabet.end_class] >= 0 for row in dfa.delta):
        return None
    translation = _Translation(dfa)
    start = dfa.starts[0][0]
    try:
        # No way is blocked: a way back to the start is one through a state like any other.
        return [
            (translation.sets[start][to], translation.rest(to, frozenset(), 1))
            for to in translation.moves[start]
        ]
    except _TooLarge:
        return None


class _Translation:
    def __init__(self, dfa: Dfa):
        self.accepting = [bool(accepts) for accepts in dfa.accepts]
        members = dfa.alphabet.members()
        self.moves: list[dict[int, str]] = []
        self.sets: list[dict[int, Ranges]] = []
        for row in dfa.delta:
            sets: dict[int, list[Ranges]] = {}
            for id, to in enumerate(row):
                if to >= 0:
                    sets.setdefault(to, []).append(members[id])
            joined = {to: union(*parts) for to, parts in sets.items()}
            self.sets.append(joined)
            self.moves.append({to: charset_source(symbols) for to, symbols in joined.items()})
        self.budget = MAX_LENGTH * 4

    def rest(self, state: int, blocked: frozenset[int], depth: int) -> str:
        """Return the expression of the longest way from a state to acceptance."""
        self._check(depth)
        loop = self._loop(state, blocked, depth)
        inner = blocked | {state}
        ways = []
        for to, symbols in self.moves[state].items():
            if to not in inner and self._accepts_beyond(to, inner):
                ways.append(follow(symbols, self.rest(to, inner, depth + 1)))
        tail = _either(ways)
        if self.accepting[state] and ways:
            tail = f"(?:{'|'.join(ways)})?"
        return self._spend(loop + tail)

    def _between(self, state: int, goal: int, blocked: frozenset[int], depth: int) -> str | None:
        """Return the expression of the ways from a state to another that avoid ``blocked``."""
        self._check(depth)
        loop = self._loop(state, blocked, depth)
        ways = []
        for to, symbols in self.moves[state].items():
            if to == goal:
                ways.append(symbols)
            elif to != state and to not in blocked:
                way = self._between(to, goal, blocked | {state}, depth + 1)
                if way is not None:
                    ways.append(symbols + way)
        return self._spend(loop + _either(ways)) if ways else None

    def _loop(self, state: int, blocked: frozenset[int], depth: int) -> str:
        """Return the starred expression of the ways from a state back to itself."""
        own = self.moves[state].get(state)
        basic, astral = split_astral(self.sets[state].get(state, ()))
        cycle = self._cycle(state, blocked)
        ways = []
        if cycle:
            for to, symbols in self.moves[state].items():
                if to != state and to in cycle:
                    way = self._between(to, state, blocked | {state}, depth + 1)
                    if way is not None:
                        ways.append(symbols + way)
        possessive = self.accepting[state] or not any(self.accepting[s] for s in cycle - {state})
        star = "*+" if possessive else "*"
        if own and astral:
            # A look-ahead keeps the slow loop away from texts without such characters.
            runs = [charset_source(basic) + "++"] if basic else []
            loop = f"(?:{'|'.join([*runs, _astral_source(astral), *ways])}){star}"
            if not basic or ways:
                return loop
            return f"{runs[0][:-2]}*+(?:(?={_ASTRAL}){loop})?+"
        # The character after a run of ``own`` cannot be in it, so nothing is given back.
        run = f"{own}*+" if own else ""
        return f"{run}(?:{_either(ways)}{run}){star}" if ways else run

    def _cycle(self, state: int, blocked: frozenset[int]) -> set[int]:
        """Return the states on ways from ``state`` back to it that avoid ``blocked``."""
        ahead: set[int] = set()
        stack = [state]
        before: dict[int, set[int]] = {}
        while stack:
            at = stack.pop()
            for to in self.moves[at]:
                if to in blocked:
                    continue
                before.setdefault(to, set()).add(at)
                if to not in ahead:
                    ahead.add(to)
                    stack.append(to)
        found: set[int] = set()
        stack = [state] if state in ahead else []
        while stack:
            for source in before.get(stack.pop(), ()):
                if source not in found:
                    found.add(source)
                    stack.append(source)
        return found

    def _accepts_beyond(self, state: int, blocked: frozenset[int]) -> bool:
        seen = {state}
        stack = [state]
        while stack:
            at = stack.pop()
            if self.accepting[at]:
                return True
            for to in self.moves[at]:
                if to not in seen and to not in blocked:
                    seen.add(to)
                    stack.append(to)
        return False

    def _check(self, depth: int) -> None:
        self.budget -= 1
        if depth > MAX_DEPTH or self.budget < 0:
            raise _TooLarge

    def _spend(self, text: str) -> str:
        self.budget -= len(text)
        if len(text) > MAX_LENGTH or self.budget < 0:
            raise _TooLarge
        return text


def follow(symbols: str, rest: str) -> str:
    """Return one character and the rest; ``xx*`` is written ``x+``."""
    if rest.startswith(symbols + "*+"):
        return symbols + "++" + rest[len(symbols) + 2 :]
    return symbols + rest


def _either(ways: list[str]) -> str:
    if not ways:
        return ""
    return ways[0] if len(ways) == 1 else f"(?:{'|'.join(ways)})"


@cache
def _known_sets() -> dict[Ranges, str]:
    named = {
        unicode_sets.word_characters(False): r"\w",
        unicode_sets.digits(False): r"\d",
        unicode_sets.spaces(False): r"\s",
    }
    return named | {complement(symbols): name.upper() for symbols, name in named.items()}


@cache
def charset_source(symbols: Ranges) -> str:
    """Return a set as ``re`` writes it."""
    basic, astral = split_astral(symbols)
    if astral and symbols not in _known_sets():
        wide = _astral_source(astral)
        return f"(?:{charset_source(basic)}|{wide})" if basic else wide
    return _class_source(symbols)


def split_astral(symbols: Ranges) -> tuple[Ranges, Ranges]:
    """Return a set in two if it has many ranges beyond 16 bits, which ``re`` searches in turn."""
    astral = tuple(pair for pair in symbols if pair[1] > 0xFFFF)
    if len(astral) <= 8:
        return symbols, ()
    return intersect(symbols, ((0, 0xFFFF),)), intersect(symbols, ((0x10000, MAX),))


def _astral_source(symbols: Ranges) -> str:
    """Return a class beyond 16 bits; the look-ahead turns all other characters away at once."""
    return f"(?={_ASTRAL}){_class_source(symbols)}"


def _class_source(symbols: Ranges) -> str:
    if len(symbols) == 1 and symbols[0][0] == symbols[0][1]:
        return _char(symbols[0][0])
    if symbols == ((0, MAX),):
        return r"[\s\S]"
    if len(symbols) > 8 and symbols in _known_sets():
        return _known_sets()[symbols]
    negative = symbols[0][0] == 0 and symbols[-1][1] == MAX
    parts = []
    for low, high in complement(symbols) if negative else symbols:
        parts.append(_char(low) if low == high else f"{_char(low)}-{_char(high)}")
    return f"[{'^' if negative else ''}{''.join(parts)}]"


def _char(code: int) -> str:
    char = chr(code)
    if char.isascii() and (char.isalnum() or char in "_ '\"<>,:;=@%!`"):
        return char
    if code < 0x80 and char.isprintable():
        return "\\" + char
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
