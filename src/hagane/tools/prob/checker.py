"""Verdicts: which claims of a program hold.

The main expression is one unit, checked as a whole; a function is a unit for each argument that
its types admit (or, where they set no bounds, for each that the program passes).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from hagane.tools.prob.engines import Choice, run_unit
from hagane.tools.prob.formula import domain_of
from hagane.tools.prob.judge import Judgement, Measured, judge
from hagane.tools.prob.ledger import DEFAULT_LIMITS, Ledger, Limits, Unit, function_unit, main_unit
from hagane.tools.prob.parser import parse
from hagane.tools.prob.program import Function, Program, Site, shown, walk
from hagane.tools.prob.resolve import resolve
from hagane.tools.prob.run import show_value
from hagane.tools.prob.source import ImpossibleCondition, ProgramTypeError, Source
from hagane.tools.prob.syntax import Notice, Observe, Value

# Above this many combinations, a function is checked for the arguments that it gets.
_MOST_ARGUMENTS = 4_096


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came out for one claim.

    Attributes:
        line: Where the claim stands, from 1.
        column: The same, in the line.
        type: The type as written.
        subject: What it is about: an expression, a function, an argument.
        role: annotation, result or argument.
        holds: Whether it is true.
        probabilities: Each Prob and E of the claim with its true value, in the circumstances
            that come nearest to the bound or fail.
        circumstances: Those circumstances: parameters and fixed variables, by name.
        cases: How many arguments and fixed values were checked.
        exhaustive: Whether these are all that the types admit.
        engine: The engine used.
        reason: Why this engine.
        outcome: For a failure, the outcome that contributes most, in words.
    """

    line: int
    column: int
    type: str
    subject: str
    role: str
    holds: bool
    probabilities: tuple[Measured, ...]
    circumstances: Mapping[str, Value]
    cases: int
    exhaustive: bool
    engine: str
    reason: str
    outcome: str | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """All verdicts of a program, in the order of its text."""

    program: Program
    verdicts: tuple[Verdict, ...]
    notices: tuple[Notice, ...] = field(default=())

    @property
    def holds(self) -> bool:
        """Tell whether every claim holds."""
        return all(verdict.holds for verdict in self.verdicts)


def load_program(text: str, name: str = "<program>") -> Program:
    """Return the program that a text says.

    Raises:
        ProgramSyntaxError: It does not parse.
        ProgramTypeError: Names, kinds or arities don't fit.
    """
    source = Source(text, name)
    return resolve(source, parse(source))


def check(program: Program, engine: str = "auto", limits: Limits = DEFAULT_LIMITS) -> Report:
    """Decide every claim of a program.

    Args:
        program: The program.
        engine: ``auto``, or one of ``engines.ENGINES``.
        limits: What the engine may use.

    Raises:
        PathError: Some possible run goes wrong.
        TooLarge: The engine would need more than its limits.
    """
    findings = _Findings(program)
    pending = [(main_unit(program), True)]
    done: set[tuple[Function, tuple[Value, ...]]] = set()
    calls: dict[Function, set[tuple[Value, ...]]] = {}
    while pending:
        while pending:
            unit, exhaustive = pending.pop()
            choice = run_unit(program, unit, engine, limits)
            findings.add(unit, choice, exhaustive)
            for function, inputs in choice.ledger.calls.items():
                calls.setdefault(function, set()).update(inputs)
        for function in program.functions:
            exhaustive, wanted = _inputs(function, calls.get(function, set()))
            for given in wanted:
                unit = function_unit(function, given)
                if (function, given) not in done and unit.sites:
                    done.add((function, given))
                    pending.append((unit, exhaustive))
    return Report(program, tuple(findings.verdicts()), program.notices)


def _inputs(
    function: Function, passed: set[tuple[Value, ...]]
) -> tuple[bool, list[tuple[Value, ...]]]:
    """Return the inputs to check a function for, and whether these are all that it admits."""
    count = len(function.parameters)
    admitted = _admitted(function)
    if admitted is None:
        return False, sorted(passed, key=repr)
    captured = {inputs[count:] for inputs in passed} if function.captured else {()}
    return not function.captured, [(*own, *rest) for own in admitted for rest in captured]


def _admitted(function: Function) -> list[tuple[Value, ...]] | None:
    found: list[dict[str, Value]] = [{}]
    for name, claim in zip(function.parameters, function.requires, strict=True):
        extended: list[dict[str, Value]] = []
        for values in found:
            domain = domain_of(claim, values, _MOST_ARGUMENTS)
            if domain is None or len(extended) + len(domain) > _MOST_ARGUMENTS:
                return None
            extended += [{**values, name: value} for value in domain]
        found = extended
    return [tuple(values.values()) for values in found]


@dataclass(frozen=True, slots=True)
class _Case:
    unit: Unit
    choice: Choice
    judgement: Judgement
    exhaustive: bool


class _Findings:
    """Judgements, gathered by claim."""

    def __init__(self, program: Program):
        self.program = program
        self.source = program.source
        self._cases: dict[Site, list[_Case]] = {}
        self._sites: dict[Site, Function | None] = {}
        for function in (None, *program.functions):
            expression = program.main if function is None else function.definition
            for site in Unit(expression).sites:
                self._sites[site] = function

    def add(self, unit: Unit, choice: Choice, exhaustive: bool) -> None:
        """Judge the claims of a unit that was run."""
        self._check_mass(unit, choice.ledger)
        for site in unit.sites:
            table = choice.ledger.tables.get(site, {})
            if table:
                for judgement in judge(self.source, site.claim, table, unit.values):
                    case = _Case(unit, choice, judgement, exhaustive)
                    self._cases.setdefault(site, []).append(case)

    def _check_mass(self, unit: Unit, ledger: Ledger) -> None:
        mass = sum(ledger.result.values(), Fraction(0))
        observed = [node for node in walk(unit.expression) if isinstance(node, Observe)]
        # Where nothing is observed, Prob(true) = 1, or the engine has lost something.
        observing = observed or any(
            isinstance(node, Observe)
            for function in self.program.functions
            for node in walk(function.definition)
        )
        assert mass == 1 or observing, f"the distribution sums to {mass}"
        if mass == 0 and observed:
            conditions = ", ".join(f"'{self.source.slice(o.condition.span)}'" for o in observed)
            raise ImpossibleCondition(
                f"the observations ({conditions}) hold together on no run, so nothing can be said "
                f"given them{self._rejected(unit, observed[-1])}",
                self.source,
                observed[-1].condition.span,
            )

    def _rejected(self, unit: Unit, node: Observe) -> str:
        return ""

    def verdicts(self) -> Iterator[Verdict]:
        """Return a verdict for each claim, in the order of the text."""
        for site, function in sorted(self._sites.items(), key=lambda item: item[0].span.start):
            cases = self._cases.get(site, [])
            if not cases:
                raise self._vacuous(site, function)
            yield self._verdict(site, cases)

    def _vacuous(self, site: Site, function: Function | None) -> ProgramTypeError:
        if function is None:
            message = (
                f"no run reaches '{site.subject}', so a verdict on its type would be vacuous; "
                "remove the branch or the annotation"
            )
        else:
            message = (
                f"'{shown(function.name)}' is given no argument that reaches this type, and its "
                "parameters have no bounds to check it within; call it, or bound them, as in "
                "{n:int | 0 <= n /\\ n <= 10}"
            )
        return ProgramTypeError(message, self.source, site.span)

    def _verdict(self, site: Site, cases: list[_Case]) -> Verdict:
        failing = [case for case in cases if not case.judgement.holds]
        shown_case = min(
            failing or cases,
            key=lambda case: (
                (case.judgement.margin is None, case.judgement.margin or 0)
                if not failing
                else (False, -(case.judgement.margin or 0))
            ),
        )
        judgement = shown_case.judgement
        line, column = self.source.position(site.span.start)
        outcome = None
        if judgement.outcome is not None:
            best = judgement.outcome
            outcome = f"{best.text} (probability {best.probability})"
        return Verdict(
            line,
            column,
            site.claim.text,
            site.subject,
            site.role,
            not failing,
            judgement.measured,
            judgement.circumstances,
            len(cases),
            all(case.exhaustive for case in cases),
            shown_case.choice.engine,
            shown_case.choice.reason,
            outcome,
        )


def show_circumstances(circumstances: Mapping[str, Value]) -> str:
    """Return ``n = 3, k = true``."""
    return ", ".join(f"{shown(name)} = {show_value(v)}" for name, v in circumstances.items())
