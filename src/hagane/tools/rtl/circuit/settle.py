"""Combinational logic settled: every unknown replaced by its driver, in the order of the data.

Each driven bit vector has a definition: a term over unknowns, its own perhaps. One depth-first walk
rewrites all terms and follows definitions on its way, so that each is settled before its readers.
Where the walk comes back to a vector that it is in the middle of, the vectors on the way are split
into bits, each with the part of the definition that it needs; a chain through the bits of one
vector is thus no loop. A bit that still depends on itself is guessed to keep its value; if the
logic then gives the same term again (a multiplexer whose other side is taken, a latch written as
an assignment), that is its value, else the loop is reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hagane.symbolic import bitvector as bv
from hagane.symbolic.interpret import Substitution, rebuild
from hagane.symbolic.logic import choose
from hagane.symbolic.term import Term, variable

_ROUNDS = 16
_BITWISE = {"bvand": bv.bit_and, "bvor": bv.bit_or, "bvxor": bv.bit_xor}
_ARITHMETIC = {"add": bv.add, "sub": bv.subtract, "mul": bv.multiply}


class Settling:
    """The terms of combinational logic over inputs and state.

    ``definitions`` are by name of unknown. An unknown of ``kept`` stands in them for the value
    before, and is replaced in the end by the unknown beside it. ``final`` are terms that read no
    definition.
    """

    def __init__(
        self,
        definitions: Mapping[str, Term],
        kept: Mapping[Term, Term],
        final: Iterable[Term] = (),
    ):
        self._definitions = definitions
        self._kept = kept
        self._memo: dict[Term, Term] = {term: term for term in final}
        self._split: set[Term] = set()
        self._bits: dict[Term, Term] = {}
        self._guesses: dict[Term, Term] = {}
        self._cycles: dict[Term, list[Term]] = {}
        self._last: Substitution | None = None

    def settle(self, roots: Sequence[Term]) -> list[list[Term]]:
        """Settle ``roots`` and their sources; return the loops, each as the bits on its way."""
        self._walk(roots)
        known = 0
        while known < len(self._guesses):
            fresh = list(self._guesses)[known:]
            known = len(self._guesses)
            self._walk([self._behind(node)[0] for node in fresh])
        return self._resolve()

    def __getitem__(self, term: Term) -> Term:
        """Return a root as it is when all is settled."""
        found = self._memo[term]
        return found if self._last is None else self._last(found)

    def _walk(self, roots: Iterable[Term]) -> None:
        memo = self._memo
        open_: set[Term] = set()
        stack = [(root, False) for root in roots]
        while stack:
            term, ready = stack.pop()
            if term in memo:
                continue
            if ready:
                open_.discard(term)
                memo[term] = self._finish(term)
            elif term in open_:
                self._break(term, stack, open_)
            else:
                behind = self._behind(term)
                if not behind:
                    memo[term] = term
                    continue
                open_.add(term)
                stack.append((term, True))
                stack += [(inner, False) for inner in behind if inner not in memo]

    def _behind(self, term: Term) -> Sequence[Term]:
        """Return the terms that have to be settled before ``term``."""
        if term.op == "var":
            definition = self._definitions.get(term.data)
            if definition is None:
                return ()
            return _bits_of(term, term.width - 1, 0) if term in self._split else (definition,)
        if term.op == "extract" and term.args[0] in self._split:
            high, low = term.data
            if high > low:
                return _bits_of(term.args[0], high, low)
            if term not in self._bits:
                self._bits[term] = cut(self._definitions[term.args[0].data], high, low)
            return (self._bits[term],)
        return term.args

    def _finish(self, term: Term) -> Term:
        settled = [self._memo[inner] for inner in self._behind(term)]
        if term.op == "var" or (term.op == "extract" and term.args[0] in self._split):
            return settled[0] if len(settled) == 1 else bv.concat(settled)
        return rebuild(term, tuple(settled))

    def _break(self, term: Term, stack: list[tuple[Term, bool]], open_: set[Term]) -> None:
        """Go back to ``term``, with the terms on the way from it to itself split, else guessed."""
        start = max(at for at, entry in enumerate(stack) if entry == (term, True))
        path = [node for node, ready in stack[start:] if ready]
        del stack[start:]
        open_.difference_update(path)
        whole = {node for node in path if self._is_whole(node)}
        if whole:
            self._split |= whole
        else:
            bits = [node for node in path if node.width == 1 and self._is_bit(node)]
            self._guesses[bits[0]] = variable(f"?{len(self._guesses)}", bits[0].sort)
            self._memo[bits[0]] = self._guesses[bits[0]]
            self._cycles[bits[0]] = bits
        stack.append((term, False))

    def _is_whole(self, node: Term) -> bool:
        driven = node.op == "var" and node.data in self._definitions
        return driven and node.width > 1 and node not in self._split

    def _is_bit(self, node: Term) -> bool:
        if node.op == "extract":
            return node.args[0] in self._split
        return node.op == "var" and node.data in self._definitions

    def _resolve(self) -> list[list[Term]]:
        """Settle the guessed bits; return the loops of the others."""
        if not self._guesses and not self._kept:
            return []
        behind = {node: self._memo[self._behind(node)[0]] for node in self._guesses}
        # A guessed bit starts from its value before, which its own unknown stands for in the end.
        now = {node: node for node in self._guesses}
        loose = list(now)
        for _ in range(_ROUNDS + min(len(now), 2 * _ROUNDS)):
            guessed = {self._guesses[node]: term for node, term in now.items()}
            self._last = Substitution({**self._kept, **guessed})
            after = {node: self._last(term) for node, term in behind.items()}
            loose = [node for node in now if after[node] is not now[node]]
            if not loose:
                break
            now = after
        return [self._cycles[node] for node in loose]


def _bits_of(unknown: Term, high: int, low: int) -> list[Term]:
    return [bv.extract(unknown, at, at) for at in range(high, low - 1, -1)]


def cut(term: Term, high: int, low: int) -> Term:
    """Return bits ``high`` to ``low`` of a term, over as few bits of its arguments as can be."""
    done: dict[tuple[Term, int, int], Term] = {}
    stack = [(term, high, low)]
    while stack:
        key = stack[-1]
        needed = _parts(*key)
        missing = [part for part in needed if part not in done]
        if missing:
            stack += missing
            continue
        stack.pop()
        done[key] = _joined(*key, [done[part] for part in needed])
    return done[term, high, low]


def _parts(term: Term, high: int, low: int) -> list[tuple[Term, int, int]]:
    """Return the bits of its arguments that some bits of a term are made of, highest first."""
    if term.op in _BITWISE or term.op == "bvnot":
        return [(arg, high, low) for arg in term.args]
    if term.op in _ARITHMETIC:
        # Carries only go up.
        return [(arg, high, 0) for arg in term.args]
    if term.op == "ite":
        return [(arg, high, low) for arg in term.args[1:]]
    if term.op == "extract":
        return [(term.args[0], high + term.data[1], low + term.data[1])]
    if term.op == "concat":
        found = []
        top = term.width
        for arg in term.args:
            base = top - arg.width
            if base <= high and top > low:
                found.append((arg, min(high, top - 1) - base, max(low - base, 0)))
            top = base
        return found
    return []


def _joined(term: Term, high: int, low: int, parts: Sequence[Term]) -> Term:
    if term.op in _BITWISE:
        return _BITWISE[term.op](parts[0], parts[1])
    if term.op in _ARITHMETIC:
        return bv.extract(_ARITHMETIC[term.op](parts[0], parts[1]), high, low)
    if term.op == "bvnot":
        return bv.invert(parts[0])
    if term.op == "extract":
        return parts[0]
    if term.op == "ite":
        return choose(term.args[0], parts[0], parts[1])
    if term.op == "concat":
        return bv.concat(parts)
    return bv.extract(term, high, low)
