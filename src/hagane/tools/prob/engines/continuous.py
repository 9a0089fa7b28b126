"""Runs with continuous draws: one for each sequence of discrete draws and outcomes of comparisons.

A continuous draw stays a symbol. Where a run compares sums of such, it is followed both ways, each
with the inequality that holds there; the run's probability is the measure of the region that all of
them leave.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from hagane.tools.prob.engines.enumeration import Replay
from hagane.tools.prob.engines.interpreter import Interpreter, Rejected
from hagane.tools.prob.engines.ledger import Key, Limits, Unit
from hagane.tools.prob.integrals.closed import Closed
from hagane.tools.prob.integrals.measure import Measure, NoBounds
from hagane.tools.prob.integrals.real import NotLinear, Real, Terms, terms_of
from hagane.tools.prob.integrals.regions import Linear, has_inside, supports
from hagane.tools.prob.language.program import Program, Site
from hagane.tools.prob.language.recursion import deep_recursion
from hagane.tools.prob.language.source import ProgramTypeError, Source, Span, TooLarge

_ALWAYS: Terms = {(): Fraction(1)}
_MOST_RUNS = 20_000
_MOST_DRAWS = 12  # of one run


class TooManyDraws(Exception):
    """A run with more continuous draws than regions are taken for."""


class Continuum(Replay):
    """The choices of a run, its continuous draws, and the inequalities that it chose.

    Attributes:
        laws: The law of each continuous draw of the run so far.
        forms: The forms that are positive on this run.
        weight: The chance of its draws that depend on continuous values.
        fault: What the run asked for that there is no answer to.
    """

    def __init__(self) -> None:
        super().__init__()
        self.fault: Exception | None = None
        self.laws: list[str] = []
        self.forms: list[Linear] = []
        self.weight: Terms = _ALWAYS

    def restart(self) -> None:
        """Begin the next run."""
        super().restart()
        self.laws, self.forms, self.weight = [], [], _ALWAYS
        self.fault = None

    def continuous(self, law: str) -> Real:
        """Return a new draw: uniform from 0 to 1, standard normal, or exponential of rate 1."""
        self.laws.append(law)
        if len(self.laws) > _MOST_DRAWS:
            self.fault = TooManyDraws()
            raise self.fault
        return Real(self, {(len(self.laws) - 1,): Fraction(1)})

    def positive(self, form: Linear) -> bool:
        """Return whether a form is positive on this run."""
        opposite = form.scaled(Fraction(-1))
        known = {each.normal for each in self.forms}
        if form.normal in known or opposite.normal in known:
            return form.normal in known
        ways = self.repeated
        if not isinstance(ways, tuple):
            ways = tuple(Fraction(self._possible(each)) for each in (form, opposite))
        chosen = form if self.take(ways) == 0 else opposite
        if all(ways):
            self.forms.append(chosen)
        return chosen is form

    def _possible(self, form: Linear) -> bool:
        laws = dict(enumerate(self.laws))
        tied, forms = {draw for draw, _ in form.terms}, [form]
        waiting = list(self.forms)
        while True:
            near = [each for each in waiting if any(draw in tied for draw, _ in each.terms)]
            if not near:
                break
            forms += near
            waiting = [each for each in waiting if each not in near]
            tied |= {draw for each in near for draw, _ in each.terms}
        return has_inside([*forms, *supports({draw: laws[draw] for draw in tied})])

    def chance(self, share: Real) -> bool:
        """Return the outcome of a flip whose probability is a continuous value."""
        value = self.take((Fraction(1), Fraction(1))) == 1
        factor = share if value else 1 - share
        self.weight = terms_of(Real(self, self.weight) * factor)
        return value


@dataclass(slots=True)
class Term:
    """A Prob or E of a claim: the summand, its condition, and the sums."""

    amount: Closed = field(default_factory=lambda: Closed.of(0))
    weight: Closed = field(default_factory=lambda: Closed.of(0))


@dataclass(slots=True)
class Reached:
    """A claim under given values of its fixed variables.

    Attributes:
        weight: The probability of reaching it.
        terms: Its Prob and E.
        keys: The values of its variables and of its subject that were met.
    """

    weight: Closed
    terms: list[Term]
    keys: dict[Key, None] = field(default_factory=dict)


@dataclass(slots=True)
class Outcome:
    """The results of all runs.

    Attributes:
        result: The probability of each value that is no continuous one.
        mean: The mean of numbers, times their probability.
        mass: The probability that all observations hold.
        sites: The claims, by the values of their fixed variables.
        runs: How many runs there were.
    """

    result: dict[Any, Closed] = field(default_factory=dict)
    mean: Closed = field(default_factory=lambda: Closed.of(0))
    mass: Closed = field(default_factory=lambda: Closed.of(0))
    sites: dict[Site, dict[Key, Reached]] = field(default_factory=dict)
    runs: int = 0


@dataclass(frozen=True, slots=True)
class _Ended:
    """A run: the chance of its choices, its draws, its region, its value and its claims."""

    chance: Fraction
    laws: tuple[str, ...]
    forms: tuple[Linear, ...]
    weight: Terms
    value: Any
    parts: Sequence[tuple[Site, Key, Sequence[tuple[bool, Any]]]]


# The parts of a claim's terms on a run: whether it counts, and the value that is summed.
Evaluate = Callable[[Site, Key], Sequence[tuple[bool, Any]]]
# The value of a run (None: an observation failed) and the claims that it reached.
Run = Callable[[Continuum], tuple[Any, Sequence[tuple[Site, Key]]]]


def program_run(program: Program, unit: Unit, limits: Limits) -> Run:
    """Return the runs of a unit of a program."""
    interpreters: dict[int, Interpreter] = {}

    def run(world: Continuum) -> tuple[Any, Sequence[tuple[Site, Key]]]:
        if id(world) not in interpreters:
            interpreters[id(world)] = Interpreter(program, unit, world, limits)
        interpreter = interpreters[id(world)]
        try:
            value = interpreter.run()
        except Rejected:
            value = None
        return value, list(interpreter.records)

    return run


def follow(run: Run, evaluate: Evaluate, source: Source, span: Span, limits: Limits) -> Outcome:
    """Return the results of all runs.

    Args:
        run: One run.
        evaluate: The parts of a claim's terms.
        source: The program.
        span: The place that errors name.
        limits: The resources.

    Raises:
        PathError: A possible run goes wrong.
        ProgramTypeError: Something else than sums is compared.
        TooLarge: Too many runs, or a mean of which nothing is known.
    """
    world, ended = Continuum(), list[_Ended]()
    most = min(limits.runs, _MOST_RUNS)
    with deep_recursion():
        while True:
            world.restart()
            if len(ended) >= most:
                raise TooLarge(
                    f"more than {most:,} runs, one for each sequence of draws and outcomes of "
                    "comparisons; compare fewer continuous values",
                    source,
                    span,
                )
            try:
                value, records = run(world)
                parts = [(site, key, evaluate(site, key)) for site, key in records]
                ended.append(
                    _Ended(
                        world.probability,
                        tuple(world.laws),
                        tuple(world.forms),
                        world.weight,
                        value,
                        parts,
                    )
                )
            except TooManyDraws:
                raise TooLarge(
                    f"a run with more than {_MOST_DRAWS} continuous draws; bound the recursion or "
                    "the loop that makes them, as in n >= 20 \\/ …",
                    source,
                    span,
                ) from None
            except NotLinear as error:
                raise ProgramTypeError(str(error), source, span) from None
            if not world.advance():
                break
    measure, found = Measure(), Outcome(runs=len(ended))
    try:
        for run_ in ended:
            _add(world, measure, found, run_)
    except NoBounds:
        raise TooLarge(
            "a mean over a region of several draws, some of them normal, has no closed form that "
            "is known here; ask for a probability, of which there are bounds",
            source,
            span,
        ) from None
    return found


def _add(world: Continuum, measure: Measure, found: Outcome, run: _Ended) -> None:
    """Add a run to the results."""
    value = run.value
    known: dict[frozenset[tuple[tuple[int, ...], Fraction]], Closed] = {}

    def mean(terms: Terms) -> Closed:
        key = frozenset(terms.items())
        if key not in known:
            product = terms_of(Real(world, terms) * Real(world, run.weight))
            known[key] = run.chance * measure.mean(run.laws, run.forms, product)
        return known[key]

    whole = mean(_ALWAYS)
    if value is not None:
        found.mass += whole
        if not isinstance(value, bool | tuple):
            found.mean += mean(terms_of(value))
        if not holds_reals(value):
            found.result[value] = found.result.get(value, Closed.of(0)) + whole
    for site, key, terms in run.parts:
        fixed = key[: len(site.claim.fixed)]
        groups = found.sites.setdefault(site, {})
        if fixed not in groups:
            groups[fixed] = Reached(Closed.of(0), [Term() for _ in terms])
        reached = groups[fixed]
        reached.weight += whole
        if not holds_reals(key):
            reached.keys[key] = None
        for term, (counts, amount) in zip(reached.terms, terms, strict=True):
            if counts:
                term.weight += whole
                if not isinstance(amount, bool):
                    term.amount += mean(terms_of(amount))
                elif amount:
                    term.amount += whole


def holds_reals(value: Any) -> bool:
    """Tell whether a value is, or has, a continuous one."""
    if isinstance(value, tuple):
        return any(holds_reals(item) for item in value)
    return isinstance(value, Real)
