r"""Subset construction: a nondeterministic automaton to a deterministic one over classes.

Conditions on places (``^``, ``$``, ``\b``) are settled here. Their demand on the character before
is known when a state is entered; their demand on the character after becomes a guard that the item
carries through the next one or two moves. A guarded item that has reached the end of its rule waits
for its guard and then accepts with those characters given back.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from hagane.lexgen.automata.alphabet import partition
from hagane.lexgen.automata.dfa import Dfa
from hagane.lexgen.automata.nfa import Accept, Nfa
from hagane.lexgen.errors import SpecificationError
from hagane.lexgen.expressions.charset import AT_END, NEWLINE, Ranges, complement, union
from hagane.lexgen.expressions.syntax import Look
from hagane.lexgen.expressions.unicode_sets import word_characters

MAX_STATES = 200_000


class Before(IntEnum):
    """The kind of character before the place where a match starts."""

    TEXT_START = 0
    NEWLINE = 1
    OTHER = 2
    WORD = 3  # not of ASCII, where ASCII_WORD is told apart
    ASCII_WORD = 4


class _Guard(IntEnum):
    END = 1  # the input ends here
    LINE_END = 2  # a newline or the end
    LAST_LINE_END = 4  # the end, or a newline and then the end
    WORD = 8
    NO_WORD = 16
    ASCII_WORD = 32
    NO_ASCII_WORD = 64


def contexts_of(nfa: Nfa) -> tuple[Before, ...]:
    """Return the kinds of places that matches must be told apart by."""
    used = {look for looks in nfa.looks for look, _ in looks}
    if used & {Look.ASCII_BOUNDARY, Look.NO_ASCII_BOUNDARY}:
        return tuple(Before)
    if used & {Look.WORD_BOUNDARY, Look.NO_WORD_BOUNDARY}:
        return tuple(Before)[: Before.ASCII_WORD]
    if used & {Look.LINE_START, Look.TEXT_START}:
        return (Before.TEXT_START, Before.NEWLINE, Before.OTHER)
    return (Before.TEXT_START,)


def determinise(nfa: Nfa) -> Dfa:
    """Return the automaton whose states are sets of the states of ``nfa``.

    It has a start state for each start of ``nfa`` and each kind of place before it. States from
    which nothing is accepted are left out; ``accepts`` lists every rule that a state accepts, best
    first. Not minimal.
    """
    return _Construction(nfa).run()


class _Construction:
    def __init__(self, nfa: Nfa):
        self.nfa = nfa
        self.contexts = contexts_of(nfa)
        self.has_looks = any(nfa.looks)
        sets = {symbols for edges in nfa.chars for symbols, _ in edges}
        if self.has_looks:
            sets |= {NEWLINE, AT_END}
        self.words = word_characters(False) if Before.WORD in self.contexts else ()
        self.ascii_words = word_characters(True) if Before.ASCII_WORD in self.contexts else ()
        sets |= {words for words in (self.words, self.ascii_words) if words}
        self.alphabet = partition(sets)
        self.moves = self._moves()
        self.accepts = dict(nfa.accepts)
        self.accept_states = {accept: state for state, accept in nfa.accepts.items()}
        self.base = nfa.n_states + 3 * len(nfa.accepts) + 1
        self.extra = nfa.n_states
        self.closures: dict[tuple[int, Before], frozenset[int]] = {}
        if self.has_looks:
            self._guards()

    def _moves(self) -> list[list[tuple[frozenset[int], int]]]:
        classes: dict[object, frozenset[int]] = {}
        moves = []
        for edges in self.nfa.chars:
            row = []
            for symbols, target in edges:
                if symbols not in classes:
                    classes[symbols] = self.alphabet.classes_in(symbols)
                row.append((classes[symbols], target))
            moves.append(row)
        return moves

    def _guards(self) -> None:
        inside = self.alphabet.classes_in
        end, newline = inside(AT_END), inside(NEWLINE)
        self.word_classes, no_words = self._inside_and_outside(self.words)
        self.ascii_word_classes, no_ascii_words = self._inside_and_outside(self.ascii_words)
        self.newline_classes = newline
        self.steps: dict[_Guard, dict[int, int]] = {
            _Guard.END: dict.fromkeys(end, 0),
            _Guard.LINE_END: dict.fromkeys(end | newline, 0),
            _Guard.LAST_LINE_END: dict.fromkeys(end, 0) | dict.fromkeys(newline, int(_Guard.END)),
            _Guard.WORD: dict.fromkeys(self.word_classes, 0),
            _Guard.NO_WORD: dict.fromkeys(no_words, 0),
            _Guard.ASCII_WORD: dict.fromkeys(self.ascii_word_classes, 0),
            _Guard.NO_ASCII_WORD: dict.fromkeys(no_ascii_words, 0),
        }

    def _inside_and_outside(self, words: Ranges) -> tuple[frozenset[int], frozenset[int]]:
        """Return the classes of the characters of words, and the others with the end."""
        if not words:
            return frozenset(), frozenset()
        inside = self.alphabet.classes_in
        return inside(words), inside(union(complement(words), AT_END))

    def _guard_step(self, guards: int, id: int) -> int | None:
        """Return the guards that are left after a symbol of a class, or None if one refuses it."""
        left = 0
        for guard, allowed in self.steps.items():
            if guards & guard:
                if id not in allowed:
                    return None
                left |= allowed[id]
        return left

    def run(self) -> Dfa:
        numbers: dict[frozenset[int], int] = {}
        order: list[frozenset[int]] = []

        def number_of(items: frozenset[int]) -> int:
            if items not in numbers:
                if len(order) >= MAX_STATES:
                    raise SpecificationError(
                        f"the deterministic automaton would have more than {MAX_STATES} states: "
                        "lower the counts in repetitions, or split the pattern"
                    )
                numbers[items] = len(order)
                order.append(items)
            return numbers[items]

        starts = [
            [number_of(self._closure([start], before)) for before in self.contexts]
            for start in self.nfa.starts
        ]
        delta: list[list[int]] = []
        for items in order:  # grows while it runs
            row = [-1] * self.alphabet.n_classes
            for id, targets in self._successors(items).items():
                closed = self._closure(targets, self._before(id))
                if closed:
                    row[id] = number_of(closed)
            delta.append(row)
        accepts = [self._accepted(items) for items in order]
        return Dfa(self.alphabet, delta, accepts, starts, self.contexts).trimmed()

    def _before(self, id: int) -> Before:
        if not self.has_looks:
            return Before.TEXT_START
        if id in self.newline_classes:
            return Before.NEWLINE
        if id in self.ascii_word_classes:
            return Before.ASCII_WORD
        return Before.WORD if id in self.word_classes else Before.OTHER

    def _successors(self, items: Iterable[int]) -> dict[int, set[int]]:
        found: dict[int, set[int]] = {}
        base = self.base
        for item in items:
            guards, state = divmod(item, base)
            if not guards:
                if state < len(self.moves):
                    for classes, target in self.moves[state]:
                        for id in classes:
                            if id in found:
                                found[id].add(target)
                            else:
                                found[id] = {target}
                continue
            if state in self.accepts:
                accept = self.accepts[state]
                back = None if accept.back is None else accept.back + 1
                waiting = self._accept_state(accept._replace(back=back))
                for id in range(self.alphabet.n_classes):
                    left = self._guard_step(guards, id)
                    if left is not None:
                        found.setdefault(id, set()).add(left * base + waiting)
                continue
            for classes, target in self.moves[state]:
                for id in classes:
                    left = self._guard_step(guards, id)
                    if left is not None:
                        found.setdefault(id, set()).add(left * base + target)
        return found

    def _accept_state(self, accept: Accept) -> int:
        if accept not in self.accept_states:
            self.accept_states[accept] = self.extra
            self.accepts[self.extra] = accept
            self.extra += 1
        return self.accept_states[accept]

    def _closure(self, items: Iterable[int], before: Before) -> frozenset[int]:
        """Follow empty moves; keep the states that matter: with moves, or accepting."""
        whole: set[int] = set()
        for item in items:
            key = (item, before)
            if key not in self.closures:
                self.closures[key] = self._closure_of(item, before)
            whole |= self.closures[key]
        return frozenset(whole)

    def _closure_of(self, item: int, before: Before) -> frozenset[int]:
        nfa, base = self.nfa, self.base
        seen = {item}
        stack = [item]
        kept = []
        while stack:
            current = stack.pop()
            guards, state = divmod(current, base)
            if state >= nfa.n_states:
                kept.append(current)
                continue
            if nfa.chars[state] or state in nfa.accepts:
                kept.append(current)
            following = [guards * base + target for target in nfa.empty[state]]
            for look, target in nfa.looks[state]:
                guard = _guard_for(look, before)
                if guard is not None:
                    following.append((guards | guard) * base + target)
            for each in following:
                if each not in seen:
                    seen.add(each)
                    stack.append(each)
        return frozenset(kept)

    def _accepted(self, items: Iterable[int]) -> tuple[Accept, ...]:
        found = {self.accepts[item] for item in items if item < self.base and item in self.accepts}
        return tuple(sorted(found, key=_preference))


def _preference(accept: Accept) -> tuple[int, int, int]:
    """Order accepts: the first rule, then the longest token."""
    longest = 1 << 30
    return (
        accept.rule,
        longest if accept.back is None else accept.back,
        -1 if accept.head is None else -accept.head,
    )


def _guard_for(look: Look, before: Before) -> int | None:
    """Return the demand of a condition on the next character; None where it fails already."""
    line_start = before in (Before.TEXT_START, Before.NEWLINE)
    word = before in (Before.WORD, Before.ASCII_WORD)
    ascii_word = before is Before.ASCII_WORD
    match look:
        case Look.LINE_START:
            return 0 if line_start else None
        case Look.TEXT_START:
            return 0 if before is Before.TEXT_START else None
        case Look.LINE_END:
            return _Guard.LINE_END
        case Look.TEXT_END:
            return _Guard.END
        case Look.LAST_LINE_END:
            return _Guard.LAST_LINE_END
        case Look.WORD_BOUNDARY:
            return _Guard.NO_WORD if word else _Guard.WORD
        case Look.NO_WORD_BOUNDARY:
            return _Guard.WORD if word else _Guard.NO_WORD
        case Look.ASCII_BOUNDARY:
            return _Guard.NO_ASCII_WORD if ascii_word else _Guard.ASCII_WORD
        case Look.NO_ASCII_BOUNDARY:
            return _Guard.ASCII_WORD if ascii_word else _Guard.NO_ASCII_WORD
