"""Claims and results of programs with parameters: formulas, and where they hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Any

from hagane.tools.prob.claims.conditions import Condition, both, condition_of
from hagane.tools.prob.claims.judge import parts_of, term_text, terms_of
from hagane.tools.prob.claims.regions import Answer, Region
from hagane.tools.prob.claims.verdict import Formula, Report, Verdict
from hagane.tools.prob.engines.chains.parametric import Formulas, run_parametric
from hagane.tools.prob.engines.ledger import Key, Ledger, Unit, main_unit
from hagane.tools.prob.engines.run import show_decimal, show_distance, show_measured, show_value
from hagane.tools.prob.integrals.closed import Closed
from hagane.tools.prob.language.operators import ZeroDivisor
from hagane.tools.prob.language.program import VALUE, Program, Site, shown
from hagane.tools.prob.language.ratios import Number, ParameterDecides, Parameters, Ratio
from hagane.tools.prob.language.source import (
    DivisionByZero,
    ImpossibleCondition,
    ProgramTypeError,
    TooLarge,
    UnboundedRecursion,
)
from hagane.tools.prob.language.syntax import Expectation, Value

# Digits of closed forms that are computed, and parts of 1 to which bounds are shown.
_DIGITS = 32
_SHOWN = 10**6


@dataclass(frozen=True, slots=True)
class Solution:
    """The distribution of a program's value.

    Attributes:
        distribution: The probability of each value; empty where values are too many and only their
            mean is known.
        mean: The mean of integers; None of other values.
        where: The values of the parameters for which these formulas hold; empty without parameters.
        unending: The probability of runs that never end; all others are given that a run ends.
        engine: The engine used, and how much of its measure.
    """

    distribution: Mapping[Value, Number]
    mean: Number | None
    where: str
    unending: Number
    engine: str

    def __str__(self) -> str:
        lines = []
        for value, weight in self.distribution.items():
            lines.append(f"Prob(value = {show_value(value)}) = {show_number(weight)}")
        if self.mean is not None:
            lines.append(f"E[value] = {show_number(self.mean)}")
        if self.where:
            lines.append(f"for {self.where}")
        if self.unending:
            lines.append(f"runs go on for ever with probability {show_number(self.unending)}")
        return "\n".join([*lines, f"engine: {self.engine}"])


def show_number(number: Number | Closed) -> str:
    """Return a number as a fraction and a decimal, a function as it is."""
    if isinstance(number, Closed):
        return show_closed(number)
    if isinstance(number, Ratio):
        constant = number.number
        if constant is None:
            return str(number)
        number = constant
    return show_measured(Fraction(number))


def show_closed(number: Closed) -> str:
    """Return a number as its closed form and ten digits, or as its bounds."""
    exact = number.number
    if exact is not None:
        return show_measured(exact)
    low, high = number.enclosure(_DIGITS)
    if number.is_bounded_only:
        # Outwards, to digits that the least significant bits of a library do not change.
        ends = Fraction(floor(low * _SHOWN), _SHOWN), Fraction(ceil(high * _SHOWN), _SHOWN)
        return f"{show_decimal(ends[0])} to {show_decimal(ends[1])} (certified bounds)"
    text = show_decimal((low + high) / 2)
    formula = number.text
    return f"{formula} = {text}" if formula else f"{text} (in closed form)"


def solution_of(ledger: Ledger, where: str, engine: str) -> Solution:
    """Return the distribution of a ledger as people ask for it."""
    mass = sum(ledger.result.values(), Fraction(0))
    weights: dict[Value, Any] = {value: w / mass for value, w in ledger.result.items()}
    mean: Any = None
    if weights and all(_is_number(value) for value in weights):
        mean = sum((w * value for value, w in weights.items()), Fraction(0))
    if ledger.holds_means:
        weights = {}
    ordered = dict(sorted(weights.items(), key=lambda item: _order(item[0])))
    return Solution(ordered, mean, where, ledger.unending, engine)


def parametric_solution(parameters: Parameters, found: Formulas, engine: str) -> Solution:
    """Return distributions that are formulas, with the values for which they hold."""
    where = Region(parameters, found.shares, found.nonzero).text
    size = found.ledger.size
    return solution_of(found.ledger, where, f"{engine} ({size} state{'' if size == 1 else 's'})")


def _is_number(value: object) -> bool:
    return not isinstance(value, bool | tuple)


def _order(value: Any) -> Any:
    return tuple(map(_order, value)) if isinstance(value, tuple) else (value,)


def check_parametric(program: Program) -> Report:
    """Decide the claims of a program with parameters, for all of their values.

    Raises:
        ProgramTypeError: A function has a type that claims something.
    """
    refuse_claims(program)
    unit = main_unit(program)
    found = run_parametric(program, unit)
    engine = f"{found.ledger.size} state{'' if found.ledger.size == 1 else 's'}"
    return judged(program, unit, found, "chain", engine)


def refuse_claims(program: Program, has: str = "parameters") -> None:
    """Refuse functions with claims of their own, in a program that has something."""
    for function in program.functions:
        if function.result.formula is not None or any(
            claim.formula is not None for claim in function.requires
        ):
            raise ProgramTypeError(
                f"'{shown(function.name)}' has a type that claims something, and the program has "
                f"{has}; leave bare types (int, bool), and claim it of the result",
                program.source,
                function.span,
            )


def judged(program: Program, unit: Unit, found: Formulas, engine: str, reason: str) -> Report:
    """Return the verdicts on a unit's claims, given its distributions."""
    parameters = program.parameters
    assert parameters is not None
    refuse_empty(program, unit, found.ledger)
    names = ", ".join(parameters.names)
    plural = "s" * (len(parameters.names) > 1)
    verdicts = []
    for site in sorted(unit.sites, key=lambda each: each.span.start):
        table = found.ledger.tables.get(site, {})
        if not table:
            raise ProgramTypeError(
                f"no run reaches '{site.subject}', so a verdict on its type would be vacuous; "
                "remove the branch or the annotation",
                program.source,
                site.span,
            )
        verdict = _Claimed(program, site, found, parameters).verdict(table, unit.values)
        line, column = program.source.position(site.span.start)
        note = _note(verdict.answer, found.ledger)
        verdicts.append(
            Verdict(
                line,
                column,
                site.claim.text,
                site.subject,
                site.role,
                bool(verdict.answer.holds),
                (),
                (),
                {},
                1,
                True,
                engine,
                f"parameter{plural} {names}; {reason}",
                note,
                formulas=verdict.formulas,
                where=verdict.where,
            )
        )
    return Report(program, tuple(verdicts), program.notices)


def _note(answer: Answer, ledger: Ledger) -> str:
    told = []
    if answer.holds is False:
        told.append(f"not for {answer.witness}")
        if answer.where:
            told[0] = f"it holds for {answer.where}, {told[0]}"
    if ledger.unending:
        told.append(
            f"runs go on for ever with probability {ledger.unending}; the verdict is of those that "
            "reach the claim"
        )
    return "; ".join(told)


def refuse_empty(program: Program, unit: Unit, ledger: Ledger) -> None:
    """Refuse a unit of which no run comes to its end."""
    if any(ledger.result.values()):
        return
    span = unit.expression.span
    if ledger.unending:
        raise UnboundedRecursion(
            "no run ends, so nothing can be said of its value", program.source, span
        )
    raise ImpossibleCondition(
        "the observation has probability zero: no run meets it, so nothing can be said given it",
        program.source,
        span,
    )


@dataclass(frozen=True, slots=True)
class _Decided:
    answer: Answer
    formulas: tuple[Formula, ...]
    where: str


class _Claimed:
    """One claim, and the formulas that decide it."""

    def __init__(self, program: Program, site: Site, found: Formulas, parameters: Parameters):
        self.source = program.source
        self.claim = site.claim
        self.found = found
        self.parameters = parameters

    def verdict(self, table: Mapping[Key, Any], given: Mapping[str, Value]) -> _Decided:
        claim = self.claim
        nonzero: list[Any] = list(self.found.nonzero)
        groups: dict[Key, dict[Key, Any]] = {}
        for key, weight in table.items():
            groups.setdefault(key[: len(claim.fixed)], {})[key] = weight
        formulas: dict[Formula, None] = {}
        whole: Condition = True
        for fixed, weights in groups.items():
            total = sum(weights.values(), Fraction(0))
            nonzero.append(total)
            group = {key: weight / total for key, weight in weights.items()}
            own = {**given, **dict(zip(claim.fixed, fixed, strict=True))}
            names = (*claim.variables, VALUE)
            states = [(key, {**own, **dict(zip(names, key, strict=True))}) for key in group]
            if claim.formula is None:
                continue
            terms = {}
            for term in terms_of(claim.formula):
                amount, weight = parts_of(self.source, term, states, group)
                nonzero.append(weight)
                terms[term] = amount / weight
                text = term_text(self.source, term)
                name = text if isinstance(term, Expectation) else f"Prob({text})"
                at = ", ".join(f"{shown(key)} = {show_value(v)}" for key, v in own.items())
                formulas[Formula(f"{name} at {at}" if at else name, show_number(terms[term]))] = (
                    None
                )
            for _, state in states if claim.speaks_of_value else states[:1]:
                whole = both(whole, self._condition(terms, state))
        varying = [n for n in nonzero if isinstance(n, Ratio) and n.number is None]
        region = Region(self.parameters, self.found.shares, varying)
        answer = region.decide(whole)
        if answer.holds is None:
            raise TooLarge(
                "neither proved nor refuted: the values of the parameters were divided "
                f"until {show_distance(answer.open)} of them was left open; leave a "
                "distance to the bound, or narrow their ranges, as in param p from 1/10 to 9/10;",
                self.source,
                claim.span,
            )
        return _Decided(answer, tuple(formulas), region.text)

    def _condition(self, terms: Any, state: Mapping[str, Any]) -> Condition:
        claim = self.claim
        assert claim.formula is not None
        try:
            return condition_of(claim.formula, terms, state)
        except (ZeroDivisor, ZeroDivisionError):
            raise DivisionByZero("the claim divides by zero", self.source, claim.span) from None
        except ParameterDecides as error:
            raise ProgramTypeError(str(error), self.source, claim.span) from None
