"""Verdicts: which claims of a program hold.

The main expression is one unit, checked as a whole; a function is a unit for each argument that
its types admit (or, where they set no bounds, for each that the program passes). A unit sees its
own text, functions with a bare result type, and of all other functions only their types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from hagane.errors import InvalidArgument
from hagane.tools.prob.claims.continuous import check_continuous, solve_continuous
from hagane.tools.prob.claims.formulas import (
    Solution,
    check_parametric,
    parametric_solution,
    refuse_claims,
    refuse_empty,
    solution_of,
)
from hagane.tools.prob.claims.judge import Judgement, judge
from hagane.tools.prob.claims.mixture import decide_mixture, takes_distributions
from hagane.tools.prob.claims.modular import ByTypes, Modular, calls_opaque
from hagane.tools.prob.claims.units import visit_units
from hagane.tools.prob.claims.verdict import Culprit, Report, Verdict, show_circumstances
from hagane.tools.prob.engines.chains.parametric import run_parametric
from hagane.tools.prob.engines.dynamic import likeliest_runs
from hagane.tools.prob.engines.engines import Choice, run_unit
from hagane.tools.prob.engines.enumeration import first_run
from hagane.tools.prob.engines.ledger import (
    DEFAULT_LIMITS,
    Key,
    Ledger,
    Limits,
    Unit,
)
from hagane.tools.prob.engines.run import show_draws, show_fraction
from hagane.tools.prob.language.parser import parse
from hagane.tools.prob.language.program import (
    Function,
    Program,
    Record,
    Site,
    draws_reals,
    rebuilt,
    shown,
    sites_in,
    walk,
)
from hagane.tools.prob.language.recursion import deep_recursion
from hagane.tools.prob.language.resolve import resolve
from hagane.tools.prob.language.source import (
    ImpossibleCondition,
    ProgramError,
    ProgramTypeError,
    Source,
    TooLarge,
    UnboundedRecursion,
)
from hagane.tools.prob.language.syntax import Binary, Expression, Observe

# States of the chain that is searched for a witness or for consequences of types.
_FEW = 200_000


def load_program(
    text: str, name: str = "<program>", at: Mapping[str, Fraction] | None = None
) -> Program:
    """Return the program that a text says.

    Args:
        text: The program.
        name: Its name in messages.
        at: Values of its parameters; those without one stay open.

    Raises:
        InvalidArgument: There is no such parameter, or a value is out of its range.
        ProgramSyntaxError: It does not parse.
        ProgramTypeError: Names, kinds or arities don't fit.
    """
    source = Source(text, name)
    return resolve(source, parse(source), at)


def check(
    program: Program,
    engine: str = "auto",
    limits: Limits = DEFAULT_LIMITS,
    *,
    own: Mapping[str, Callable[[Unit], Choice]] | None = None,
) -> Report:
    """Decide every claim of a program.

    Args:
        program: The program.
        engine: ``auto``, or one of ``engines.ENGINES``.
        limits: The resources of the engine.
        own: Engines of single functions, by name, whose definitions say nothing.

    Raises:
        PathError: Some possible run goes wrong.
        ProgramTypeError: A verdict would be vacuous: nothing reaches the claim.
        TooLarge: The engine would need more than its limits.
    """
    if draws_reals(program):
        return check_continuous(program, engine, limits)
    if program.parameters is not None:
        if engine not in ("auto", "chain"):
            raise InvalidArgument(
                f"--engine {engine}: parameters that stay open need the engine 'chain'; give their "
                "values, as in --at p=1/2"
            )
        return check_parametric(program)
    findings = _Findings(program, limits)

    def visit(unit: Unit, exhaustive: bool) -> Ledger:
        name = "" if unit.function is None else shown(unit.function.name)
        engine_of_it = (own or {}).get(name)
        if engine_of_it is not None:
            choice = engine_of_it(unit)
        else:
            choice = run_unit(program, unit, engine, limits)
        findings.add(unit, choice, exhaustive)
        return choice.ledger

    visit_units(program, visit)
    return Report(program, tuple(findings.verdicts()), program.notices)


def solve(program: Program, engine: str = "auto", limits: Limits = DEFAULT_LIMITS) -> Solution:
    """Return the distribution of a program's value, and its mean; its claims are not decided.

    Args:
        program: The program; with parameters, the answers are functions of them.
        engine: ``auto``, or one of ``engines.ENGINES``.
        limits: The resources of the engine.

    Raises:
        PathError: Some possible run goes wrong.
        TooLarge: The engine would need more than its limits.
    """
    with deep_recursion():
        unit = Unit(_unclaimed(program.main) if sites_in(program.main) else program.main)
    if draws_reals(program):
        return solve_continuous(program, unit, engine, limits)
    if program.parameters is None:
        choice = run_unit(program, unit, engine, limits)
        refuse_empty(program, unit, choice.ledger)
        return solution_of(choice.ledger, "", f"{choice.engine} ({choice.reason})")
    refuse_claims(program)
    found = run_parametric(program, unit, limits)
    refuse_empty(program, unit, found.ledger)
    return parametric_solution(program.parameters, found, "chain")


def _unclaimed(node: Expression) -> Expression:
    """Return an expression without claims."""
    return _unclaimed(node.expression) if isinstance(node, Record) else rebuilt(node, _unclaimed)


@dataclass(frozen=True, slots=True)
class _Case:
    unit: Unit
    choice: Choice
    judgement: Judgement
    exhaustive: bool
    by_types: ByTypes | None
    too_large: bool = False

    @property
    def holds(self) -> bool:
        return self.judgement.holds and (self.by_types is None or self.by_types.holds is not False)


class _Findings:
    """Judgements, gathered by claim."""

    def __init__(self, program: Program, limits: Limits):
        self.program = program
        self.source = program.source
        self.modular = Modular(program, replace(limits, states=min(limits.states, _FEW)))
        self._cases: dict[Site, list[_Case]] = {}
        self._sites: dict[Site, Function | None] = {}
        self._observing = False
        for function in (None, *program.functions):
            expression = program.main if function is None else function.definition
            self._observing |= any(isinstance(node, Observe) for node in walk(expression))
            for site in Unit(expression).sites:
                self._sites[site] = function

    def add(self, unit: Unit, choice: Choice, exhaustive: bool) -> None:
        """Judge the claims of a unit that was run."""
        self._check_mass(unit, choice)
        by_types: dict[tuple[Site, Key], ByTypes] = {}
        too_large = False
        if calls_opaque(unit):
            try:
                by_types = self.modular.decide(unit)
            except TooLarge as error:
                too_large = True
                choice = replace(choice, reason=f"{choice.reason}; {error.message}")
        for site in unit.sites:
            table = choice.ledger.tables.get(site, {})
            if table:
                open_ = choice.ledger.open
                for judgement in judge(self.source, site.claim, table, unit.values, open_):
                    implied = by_types.get((site, judgement.fixed))
                    case = _Case(unit, choice, judgement, exhaustive, implied, too_large)
                    self._cases.setdefault(site, []).append(case)

    def _check_mass(self, unit: Unit, choice: Choice) -> None:
        """Verify that Prob(true) = 1, so that no verdict is vacuous."""
        mass = sum(choice.ledger.result.values(), Fraction(0))
        # Where nothing is observed, anything but 1 is an engine's mistake.
        whole = mass + choice.ledger.unending + choice.ledger.open
        assert 0 <= whole <= 1, f"the distribution sums to {whole}"
        loses = self._observing or choice.ledger.rejects
        assert whole == 1 or loses, f"the distribution sums to {whole}"
        if mass:
            return
        if choice.ledger.rejects:
            raise ImpossibleCondition(
                "the observation has probability zero: no run meets it, so nothing can be said "
                "given it",
                self.source,
                unit.expression.span,
            )
        if choice.ledger.unending:
            raise UnboundedRecursion(
                "no run ends, so nothing can be said of its value: recursion goes on for ever "
                f"with probability {show_fraction(choice.ledger.unending)}; let a call end it",
                self.source,
                unit.expression.span,
            )
        observations = [
            node
            for function in (None, *self.program.functions)
            for node in walk(unit.expression if function is None else function.definition)
            if isinstance(node, Observe)
        ]
        texts = ", ".join(
            dict.fromkeys(f"'{self.source.slice(node.condition.span)}'" for node in observations)
        )
        where = f" with {show_circumstances(unit.values)}" if unit.values else ""
        draws = show_draws(self.source, first_run(self.program, unit))
        witness = f"; a run that is rejected: {draws}" if draws else ""
        raise ImpossibleCondition(
            f"the observation has probability zero{where}: no run meets {texts}, so nothing can "
            f"be said given it{witness}",
            self.source,
            observations[0].condition.span,
        )

    def verdicts(self) -> Iterator[Verdict]:
        """Return a verdict for each claim, in the order of the text."""
        for site, function in sorted(self._sites.items(), key=lambda item: item[0].span.start):
            cases = self._cases.get(site, [])
            if not cases:
                raise self._vacuous(site, function)
            if function is not None and site.role == "result" and takes_distributions(function):
                yield self._mixed(site, function, cases)
            else:
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
        failing = [case for case in cases if not case.holds]
        case = _worst(failing) if failing else _nearest(cases)
        judgement = case.judgement
        note = ""
        if failing and judgement.holds:
            note = (
                "true of the definitions, but it does not follow from the types of the functions "
                "called; strengthen those types, or leave a result type bare to look inside"
            )
        elif case.by_types is not None and case.by_types.holds is None:
            note = "no linear claim: decided by the definitions of the functions called"
        elif case.too_large:
            note = (
                "too large to decide from the types of the functions called: decided by their "
                "definitions"
            )
        ranges = () if case.by_types is None else case.by_types.ranges
        unending = case.choice.ledger.unending
        if unending:
            endless = (
                f"runs go on for ever with probability {show_fraction(unending)}; the verdict is "
                "of those that reach the claim"
            )
            note = f"{note}; {endless}" if note else endless
        base = self._base(site, cases, case)
        culprit = None if judgement.holds else self._culprit(site, case)
        return replace(base, holds=not failing, ranges=ranges, note=note, culprit=culprit)

    def _base(self, site: Site, cases: list[_Case], case: _Case) -> Verdict:
        line, column = self.source.position(site.span.start)
        return Verdict(
            line,
            column,
            site.claim.text,
            site.subject,
            site.role,
            True,
            case.judgement.measured,
            (),
            case.judgement.circumstances,
            len(cases),
            all(each.exhaustive for each in cases),
            case.choice.engine,
            case.choice.reason,
            "",
        )

    def _mixed(self, site: Site, function: Function, cases: list[_Case]) -> Verdict:
        tables = {
            tuple(case.unit.values[name] for name in function.inputs): case.choice.ledger.tables[
                site
            ]
            for case in cases
        }
        found = decide_mixture(function, site, tables)
        if found.holds is None:
            raise ProgramTypeError(
                f"the result type of '{shown(function.name)}' cannot be decided for all "
                "distributions that its arguments' types admit: either they admit none, or the "
                "claim is not linear in probabilities, or it uses a parameter outside Prob and E",
                self.source,
                site.span,
            )
        base = self._base(site, cases, cases[0])
        formula = site.claim.formula
        measured = tuple(
            replace(item, value=_nearer(formula, bounds, item.value))
            for item, bounds in zip(base.probabilities, found.ranges, strict=True)
        )
        return replace(
            base,
            holds=found.holds,
            probabilities=measured,
            ranges=found.ranges,
            circumstances={},
            note="for every distribution of the arguments that their types admit",
        )

    def _culprit(self, site: Site, case: _Case) -> Culprit | None:
        outcome = case.judgement.outcome
        if outcome is None:
            return None
        run = ""
        try:
            runs = likeliest_runs(self.program, case.unit, Limits(states=_FEW))
            found, _ = runs[site][outcome.key]
            run = show_draws(self.source, found.draws())
        except (ProgramError, KeyError):
            run = ""
        return Culprit(outcome.text, outcome.probability, run)


def _worst(cases: list[_Case]) -> _Case:
    """Return the case that is furthest from its bound."""
    return max(cases, key=lambda case: (not case.judgement.holds, case.judgement.margin or 0))


def _nearest(cases: list[_Case]) -> _Case:
    """Return the case that is nearest to its bound."""
    return min(cases, key=lambda case: (case.judgement.margin is None, case.judgement.margin or 0))


def _nearer(formula: object, bounds: tuple[Fraction, Fraction] | None, value: Fraction) -> Fraction:
    """Return the end of a range that comes nearer to breaking a bound."""
    if bounds is None:
        return value
    upper = isinstance(formula, Binary) and formula.operator in ("<", "<=")
    return bounds[1] if upper else bounds[0]
