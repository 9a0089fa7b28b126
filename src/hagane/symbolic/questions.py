"""Questions about sizes with three answers: proved, refuted with a counterexample, unknown.

Cheap rules come first (normal forms), then sampling, then Z3 under a time limit. Names are sizes:
integers of at least one, unless declared otherwise.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from math import lcm
from random import Random

from hagane.errors import MissingExtra
from hagane.symbolic import logic
from hagane.symbolic.bounds import definitely_different, definitely_equal
from hagane.symbolic.expression import Dim, Expr
from hagane.symbolic.interpret import truth_of
from hagane.symbolic.path import Finding, PathCondition, Verdict
from hagane.symbolic.smt import Solver
from hagane.symbolic.substitute import evaluate, symbols_of
from hagane.symbolic.term import BOOL, FALSE, INT, TRUE, Term, const, variable, variables_of

_SAMPLES = 48
_DRAWN = 4093  # numbers drawn for all questions: a prime, so that their cycle fits no sample
_ROUNDS = 12


@cache
def _drawn() -> Sequence[float]:
    """Return numbers from 0 to 1, the same ones in each process."""
    random = Random(20)
    return [random.random() for _ in range(_DRAWN)]


@dataclass(frozen=True, slots=True)
class Joined:
    """A size that is ``yes`` where ``condition`` holds and ``no`` elsewhere."""

    condition: Term
    yes: Dim
    no: Dim


@dataclass
class Knowledge:
    """The facts of named sizes, and their consequences.

    Attributes:
        lowest: The least value of a name, where it is not 1; None for no bound.
        joined: Names that stand for one of two sizes.
        invented: Names that no input determines: nothing can be refuted about them.
        nameless: Those of them that say nothing to a reader.
        sample: The sizes of an example, where one was given.
        path: The decisions taken so far.
        concolic: Whether branches and claims are decided by the example, and recorded.
        seconds: How long one question may take the solver.
        budget: How long all questions together may take the solver, in seconds.
    """

    lowest: dict[str, int | None] = field(default_factory=dict)
    joined: dict[str, Joined] = field(default_factory=dict)
    invented: set[str] = field(default_factory=set)
    nameless: set[str] = field(default_factory=set)
    _unfolded: dict[str, Term] = field(default_factory=dict)
    sample: dict[str, int] = field(default_factory=dict)
    path: PathCondition = field(default_factory=PathCondition)
    concolic: bool = False
    seconds: float = 1.0
    budget: float = 8.0
    solver_missing: bool = False
    _answers: dict[tuple[Term, Term], Finding] = field(default_factory=dict)
    _searches: dict[tuple[Term, tuple[int | None, ...]], Finding] = field(default_factory=dict)
    _variables: dict[Term, frozenset[str]] = field(default_factory=dict)
    _solver: Solver | None = None

    def close(self) -> None:
        """Let go of the solver, which takes megabytes; a later question makes a new one."""
        self._solver = None

    def forget(self) -> None:
        """Forget answers, after a least value has changed."""
        self._answers.clear()

    def term(self, value: Dim | Fraction) -> Term:
        """Return an integer expression as a term over its names; joined names are unfolded."""
        if not isinstance(value, Expr):
            return const(int(value), INT)
        total = const(0, INT)
        for monomial, coefficient in value.terms.items():
            part = const(int(coefficient), INT)
            for atom, power in monomial:
                factor = self._atom(atom.head, atom.arguments)
                for _ in range(power):
                    part = logic.int_product(part, factor)
            total = logic.int_sum(total, part)
        return total

    def _atom(self, head: str, arguments: Sequence[Dim]) -> Term:
        if not arguments:
            if head not in self.joined:
                return variable(head, INT)
            if head not in self._unfolded:  # joins of joins have parts in common
                found = self.joined[head]
                yes, no = self.term(found.yes), self.term(found.no)
                self._unfolded[head] = logic.choose(found.condition, yes, no)
            return self._unfolded[head]
        if head in ("floor", "mod"):
            scale = lcm(*(denominator(argument) for argument in arguments))
            top, bottom = (self.term(_scaled(argument, scale)) for argument in arguments)
            return (logic.int_floordiv if head == "floor" else logic.int_mod)(top, bottom)
        terms = [self.term(argument) for argument in arguments]
        result = terms[0]
        for other in terms[1:]:
            smaller = logic.less(result, other)
            result = logic.choose(
                smaller if head == "min" else logic.negate(smaller), result, other
            )
        return result

    def equal(self, left: Dim, right: Dim) -> Term:
        """Return the claim that two sizes are equal."""
        if definitely_equal(left, right):
            return TRUE
        difference = left - right
        scaled = _scaled(difference, denominator(difference))
        positive, negative = _sides(scaled)
        return logic.equal(self.term(positive), self.term(negative))

    def less(self, left: Dim, right: Dim, *, strict: bool = True) -> Term:
        """Return the claim that ``left < right`` (or ``left <= right``)."""
        difference = left - right
        scaled = _scaled(difference, denominator(difference))
        positive, negative = _sides(scaled)
        return logic.less(self.term(positive), self.term(negative), strict=strict)

    def same(self, left: Dim, right: Dim) -> Finding:
        """Say whether two sizes are equal wherever the path leads."""
        if definitely_equal(left, right):
            return Finding(Verdict.PROVED)
        if definitely_different(left, right):
            names = symbols_of(left) | symbols_of(right)
            return Finding(Verdict.REFUTED, self.example(names) if names else {})
        return self.ask(self.equal(left, right))

    def ask(self, claim: Term) -> Finding:
        """Say whether ``claim`` holds wherever the path leads."""
        if claim is TRUE:
            return Finding(Verdict.PROVED)
        key = (claim, logic.both(*self._about(claim)))
        found = self._answers.get(key)
        if found is None:
            found = self._answers[key] = self._ask(claim)
        return found

    def is_nonnegative(self, value: Dim) -> bool:
        """Whether a size is proved to be 0 or more: by the least of its parts, or by a search."""
        if not isinstance(value, Expr):
            return value >= 0
        least = self._least(value)
        if least is not None and least >= 0:
            return True
        return self.ask(self.less(0, value, strict=False)).verdict is Verdict.PROVED

    def _least(self, value: Expr) -> Fraction | None:
        """Return a bound below a sum of products of named sizes; None if it has other parts."""
        total = Fraction(0)
        for monomial, coefficient in value.terms.items():
            part = Fraction(coefficient)
            for atom, power in monomial:
                low = self.lowest.get(atom.head, 1)
                if atom.arguments or atom.head in self.joined or low is None or low < 0 or part < 0:
                    return None
                part *= low**power
            total += part
        return total

    def possible(self, condition: Term) -> bool:
        """Whether some sizes on the path may satisfy ``condition``; also if nobody can tell."""
        finding = self._search(logic.negate(condition))
        return finding.verdict is not Verdict.PROVED

    def _ask(self, claim: Term) -> Finding:
        finding = self._search(claim)
        if finding.verdict is Verdict.REFUTED and self.depends_on_invented(claim):
            return Finding(Verdict.UNKNOWN, reason="it depends on sizes that nothing determines")
        return finding

    def sample_takes(self, path: PathCondition) -> bool:
        """Whether the example's sizes decide every condition of ``path``, and take it."""
        return self.decides(path.term) and self.holds_in_sample(path.term)

    def decides(self, condition: Term) -> bool:
        """Whether the example has all sizes that a condition speaks of."""
        return variables_of((condition,)).keys() <= self.sample.keys()

    def holds_in_sample(self, condition: Term) -> bool:
        """Whether a condition that the example decides holds in it."""
        return truth_of(condition)(self.sample)

    def depends_on_invented(self, claim: Term) -> bool:
        """Whether a claim speaks of sizes that nothing determines."""
        return not self.invented.isdisjoint(variables_of((claim,)))

    def _about(self, claim: Term) -> list[Term]:
        """Return the decisions of the path that share names with a claim, or with each other.

        The others hold for some sizes, which no size of the claim changes.
        """
        names = set(self._names(claim))
        rest = [d for d in self.path.decisions if d is not TRUE]
        if FALSE in rest:
            return rest
        kept: set[int] = set()
        grown = True
        while grown:
            grown = False
            for place, decision in enumerate(rest):
                if place not in kept and not names.isdisjoint(self._names(decision)):
                    kept.add(place)
                    names |= self._names(decision)
                    grown = True
        return [rest[place] for place in sorted(kept)]

    def _names(self, term: Term) -> frozenset[str]:
        found = self._variables.get(term)
        if found is None:
            found = self._variables[term] = frozenset(variables_of((term,)))
        return found

    def _search(self, claim: Term) -> Finding:
        goal = logic.both(*self._about(claim), logic.negate(claim))
        unknowns = variables_of((goal,))
        if goal is TRUE:
            return Finding(Verdict.REFUTED, self.example(()))
        if goal is FALSE:
            return Finding(Verdict.PROVED)
        key = goal, tuple(self.lowest.get(name, 1) for name in sorted(unknowns))
        found = self._searches.get(key)
        if found is None:
            found = self._searches[key] = self._sought(goal, unknowns)
        return found

    def _sought(self, goal: Term, unknowns: Mapping[str, Term]) -> Finding:
        run = truth_of(goal)
        for assignment in self._samples(unknowns):
            if run(assignment):
                return Finding(Verdict.REFUTED, assignment)
        return self._solve(goal, unknowns)

    def find(self, goal: Term) -> dict[str, int] | None:
        """Return sizes with which ``goal`` holds, near the example; None if none were found."""
        unknowns = variables_of((goal,))
        run = truth_of(goal)
        for assignment in self._samples(unknowns):
            if run(assignment):
                return assignment
        found = self._solve(goal, unknowns)
        return dict(found.counterexample) if found.verdict is Verdict.REFUTED else None

    def _solve(self, goal: Term, unknowns: Mapping[str, Term]) -> Finding:
        if self._solver is None and not self.solver_missing:
            try:
                self._solver = Solver("check")
            except MissingExtra:
                self.solver_missing = True
        if self._solver is None:
            return Finding(Verdict.UNKNOWN, reason="no sample refutes it, and Z3 is not installed")
        if self.budget <= 0:
            return Finding(Verdict.UNKNOWN, reason="no sample refutes it, and the time is used up")
        bounds = []
        for name, unknown in unknowns.items():
            lowest = self.lowest.get(name, 1)
            if unknown.sort is INT and lowest is not None:
                bounds.append(logic.less(const(lowest, INT), unknown, strict=False))
        start = time.monotonic()
        answer = self._solver.check((goal, *bounds), seconds=min(self.seconds, self.budget))
        self.budget -= time.monotonic() - start
        if answer.status == "unsat":
            return Finding(Verdict.PROVED)
        if answer.status == "sat":
            found = answer.assignment or {}
            return Finding(Verdict.REFUTED, {n: v for n, v in found.items() if n in unknowns})
        return Finding(Verdict.UNKNOWN, reason=answer.reason)

    def _samples(self, unknowns: Mapping[str, Term]) -> Iterator[dict[str, int]]:
        """Yield sizes near the example first, then small ones, then any; always the same ones."""
        base = {
            name: 0 if term.sort is BOOL else self.sample.get(name, self._low(name) + 1 + place)
            for place, (name, term) in enumerate(sorted(unknowns.items()))
        }
        yield dict(base)
        for name, term in sorted(unknowns.items()):
            steps = (1 - base[name],) if term.sort is BOOL else (base[name] + 1, base[name] + 2)
            for value in steps:
                yield {**base, name: value}
        draw = itertools.cycle(_drawn())
        for turn in range(_SAMPLES):
            reach = (4, 16, 64, 512)[turn * 4 // _SAMPLES]
            yield {
                name: int(next(draw) * 2)
                if term.sort is BOOL
                else self._low(name) + int(next(draw) * (reach + 1))
                for name, term in sorted(unknowns.items())
            }

    def _low(self, name: str) -> int:
        lowest = self.lowest.get(name, 1)
        return -8 if lowest is None else lowest

    def example(self, names: Sequence[str] | frozenset[str]) -> dict[str, int]:
        """Return sizes for ``names`` and those the path speaks of, with which it is taken."""
        unknowns = {name: variable(name, INT) for name in self.base_names(names)}
        goal = self.path.term
        unknowns |= variables_of((goal,))
        run = truth_of(goal)
        for assignment in self._samples(unknowns):
            if run(assignment):
                return assignment
        found = self._solve(goal, unknowns)
        return dict(found.counterexample)

    def base_names(self, names: Sequence[str] | frozenset[str]) -> set[str]:
        """Return the names of inputs that ``names`` come from, joins unfolded."""
        result: set[str] = set()
        waiting, met = list(names), set(names)
        while waiting:
            name = waiting.pop()
            if name not in self.joined:
                result.add(name)
                continue
            parts = self.joined[name]
            result |= variables_of((parts.condition,)).keys()
            more = (symbols_of(parts.yes) | symbols_of(parts.no)) - met
            met |= more
            waiting += more
        return result

    def value_of(self, dim: Dim, sample: Mapping[str, int] | None = None) -> int | None:
        """Return the size that ``dim`` has in the example, None if that is not known."""
        return self._value_of(dim, dict(self.sample if sample is None else sample), {})

    def _value_of(
        self, dim: Dim, sizes: Mapping[str, int], values: dict[str, int | None]
    ) -> int | None:
        """Return a size's value; ``values`` has those of joins, parts of many others."""
        if not isinstance(dim, Expr):
            return int(dim)
        names = symbols_of(dim)
        if any(name not in sizes and name not in self.joined for name in names):
            return None
        chosen: dict[str, Dim] = dict(sizes)
        for name in names - sizes.keys():
            if name not in values:
                values[name] = self._joined_value(self.joined[name], sizes, values)
            found = values[name]
            if found is None:
                return None
            chosen[name] = found
        value = evaluate(dim, chosen)
        return None if isinstance(value, Expr) else int(value)

    def _joined_value(
        self, parts: Joined, sizes: Mapping[str, int], values: dict[str, int | None]
    ) -> int | None:
        if not variables_of((parts.condition,)).keys() <= sizes.keys():
            yes, no = (self._value_of(side, sizes, values) for side in (parts.yes, parts.no))
            return yes if yes == no else None
        taken = truth_of(parts.condition)(sizes)
        return self._value_of(parts.yes if taken else parts.no, sizes, values)

    @contextmanager
    def along(self, path: PathCondition) -> Iterator[None]:
        """Ask about another path inside the block."""
        before = self.path
        self.path = path
        try:
            yield
        finally:
            self.path = before


def denominator(value: Dim | Fraction) -> int:
    """Return the least number that makes all coefficients of ``value`` whole."""
    if not isinstance(value, Expr):
        return Fraction(value).denominator
    return lcm(*(Fraction(coefficient).denominator for coefficient in value.terms.values()))


def _scaled(value: Dim, factor: int) -> Dim:
    return value if factor == 1 else value * factor


def _sides(difference: Dim) -> tuple[Dim, Dim]:
    """Return (p, n) with positive coefficients and ``difference = p - n``."""
    if not isinstance(difference, Expr):
        return (difference, 0) if difference >= 0 else (0, -difference)
    positive = {m: c for m, c in difference.terms.items() if c > 0}
    negative = {m: -c for m, c in difference.terms.items() if c < 0}
    return Expr(positive) if positive else 0, Expr(negative) if negative else 0
