"""Claims and results of programs with continuous draws: closed forms, or bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from hagane.errors import InvalidArgument
from hagane.tools.prob.claims.conditions import condition_of
from hagane.tools.prob.claims.formulas import Solution, refuse_claims, show_closed
from hagane.tools.prob.claims.judge import evaluated, term_text, terms_of
from hagane.tools.prob.claims.verdict import Formula, Report, Verdict
from hagane.tools.prob.engines.continuous import (
    Outcome,
    Reached,
    Run,
    Term,
    follow,
    holds_reals,
    program_run,
)
from hagane.tools.prob.engines.ledger import Key, Limits, Unit, main_unit
from hagane.tools.prob.engines.run import show_distance, show_value
from hagane.tools.prob.integrals.closed import Undecided
from hagane.tools.prob.language.operators import ZeroDivisor
from hagane.tools.prob.language.program import VALUE, Claim, Program, Site, shown
from hagane.tools.prob.language.source import (
    DivisionByZero,
    ImpossibleCondition,
    ProgramTypeError,
    TooLarge,
)
from hagane.tools.prob.language.syntax import Expectation, Probability

ENGINE = "integrate"
_DIGITS = 32


def check_continuous(program: Program, engine: str, limits: Limits) -> Report:
    """Decide the claims of a program with continuous draws.

    Raises:
        InvalidArgument: Another engine was asked for.
        ProgramTypeError: A function has a type that claims something.
        TooLarge: Too many runs, or a claim that touches its bound.
    """
    unit = _unit(program, engine)
    return judged_by_integrals(program, unit, program_run(program, unit, limits), limits)


def solve_continuous(program: Program, unit: Unit, engine: str, limits: Limits) -> Solution:
    """Return the distribution of a program with continuous draws, or the mean of such a value."""
    _unit(program, engine)
    run = program_run(program, unit, limits)
    found = follow(run, lambda site, key: (), program.source, unit.expression.span, limits)
    _refuse_empty(program, unit, found)
    values: dict[Any, Any] = {}
    mean: Any = None
    if program.kind != "real":
        ordered = sorted(found.result.items(), key=lambda item: repr(item[0]))
        values = {value: weight / found.mass for value, weight in ordered}
    if program.kind in ("int", "real"):
        mean = found.mean / found.mass
    return Solution(values, mean, "", Fraction(0), f"{ENGINE} ({_runs(found)})")


def _unit(program: Program, engine: str) -> Unit:
    if engine not in ("auto", ENGINE):
        raise InvalidArgument(
            f"--engine {engine}: continuous draws need the engine '{ENGINE}', as auto takes it"
        )
    if program.parameters is not None:
        raise ProgramTypeError(
            "parameters that stay open and continuous draws do not go together; give the values "
            "of the parameters, as in --at p=1/2",
            program.source,
            program.main.span,
        )
    refuse_claims(program, "continuous draws")
    return main_unit(program)


def _runs(found: Outcome) -> str:
    return f"{found.runs:,} run{'' if found.runs == 1 else 's'} by comparisons"


def _refuse_empty(program: Program, unit: Unit, found: Outcome) -> None:
    if not found.mass:
        raise ImpossibleCondition(
            "the observation has probability zero: no run meets it, so nothing can be said given "
            "it; of a continuous value observe a range, as in observe 0 < x",
            program.source,
            unit.expression.span,
        )


def judged_by_integrals(program: Program, unit: Unit, run: Run, limits: Limits) -> Report:
    """Return the verdicts on a unit's claims."""
    source = program.source

    terms = {
        site: [] if site.claim.formula is None else terms_of(site.claim.formula)
        for site in unit.sites
    }
    # Each term by runs of its own: comparisons of one do not cut the regions of another.
    found = []
    for place in range(max([1, *(len(each) for each in terms.values())])):

        def part(site: Site, key: Key, place: int = place) -> Sequence[tuple[bool, Any]]:
            if place >= len(terms[site]):
                return ()
            term, state = terms[site][place], _state(site.claim, key, unit.values)
            subject = term.event if isinstance(term, Probability) else term.term
            counts = term.condition is None or evaluated(source, term.condition, state)
            return [(counts, evaluated(source, subject, state) if counts else False)]

        found.append(follow(run, part, source, unit.expression.span, limits))
    _refuse_empty(program, unit, found[0])
    verdicts = []
    for site in sorted(unit.sites, key=lambda each: each.span.start):
        if site not in found[0].sites:
            raise ProgramTypeError(
                f"no run reaches '{site.subject}', so a verdict on its type would be vacuous; "
                "remove the branch or the annotation",
                source,
                site.span,
            )
        verdicts.append(_verdict(program, unit, site, found))
    return Report(program, tuple(verdicts), program.notices)


def _state(claim: Claim, key: Key, given: Mapping[str, Any]) -> dict[str, Any]:
    return {**given, **dict(zip((*claim.variables, VALUE), key, strict=True))}


def _verdict(program: Program, unit: Unit, site: Site, found: Sequence[Outcome]) -> Verdict:
    holds = True
    formulas: dict[Formula, None] = {}
    for fixed, reached in found[0].sites[site].items():
        own = dict(zip(site.claim.fixed, fixed, strict=True))
        if holds_reals(fixed):
            raise ProgramTypeError(
                "the claim speaks of a continuous value outside Prob and E, where it would be made "
                "for each of its values; write Prob(…) = 1 around the comparison",
                program.source,
                site.span,
            )
        sums = [
            term for each in found if site in each.sites for term in each.sites[site][fixed].terms
        ]
        true, told = _judged(program, unit, site, reached, sums)
        holds &= true
        at = ", ".join(f"{shown(name)} = {show_value(value)}" for name, value in own.items())
        for name, text in told:
            formulas[Formula(f"{name} at {at}" if at else name, text)] = None
    line, column = program.source.position(site.span.start)
    return Verdict(
        line,
        column,
        site.claim.text,
        site.subject,
        site.role,
        holds,
        (),
        (),
        {},
        1,
        True,
        ENGINE,
        _runs(max(found, key=lambda each: each.runs)),
        "",
        formulas=tuple(formulas),
    )


def _judged(
    program: Program, unit: Unit, site: Site, reached: Reached, terms: Sequence[Term]
) -> tuple[bool, list[tuple[str, str]]]:
    """Return whether a claim holds for given values of its fixed variables, and its terms."""
    source, claim = program.source, site.claim
    formula = claim.formula
    if formula is None:
        return True, []
    values: dict[Any, Any] = {}
    told = []
    for term, sums in zip(terms_of(formula), terms, strict=True):
        if not sums.weight:
            assert term.condition is not None
            raise ImpossibleCondition(
                f"the condition '{source.slice(term.condition.span)}' has probability zero; of a "
                "continuous value ask for a range",
                source,
                term.condition.span,
            )
        values[term] = sums.amount / sums.weight
        text = term_text(source, term)
        name = text if isinstance(term, Expectation) else f"Prob({text})"
        told.append((name, show_closed(values[term])))
    keys: list[Key | None] = [*reached.keys] or [None]
    if claim.speaks_of_value and None in keys:
        raise ProgramTypeError(
            "the claim speaks of a continuous value outside Prob and E, where it would be made for "
            "each of its values; write Prob(…) = 1 around the comparison",
            source,
            site.span,
        )
    for key in keys if claim.speaks_of_value else keys[:1]:
        state = dict(unit.values) if key is None else _state(claim, key, unit.values)
        try:
            if not condition_of(formula, values, state):
                return False, told
        except (ZeroDivisor, ZeroDivisionError):
            raise DivisionByZero("the claim divides by zero", source, claim.span) from None
        except Undecided as error:
            known = ", ".join(f"{name} = {text}" for name, text in told)
            low, high = error.number.enclosure(_DIGITS)
            raise TooLarge(
                f"neither proved nor refuted: {known}, and what the claim compares differs by less "
                f"than {show_distance(max(abs(low), abs(high)))}; leave a distance to the bound",
                source,
                claim.span,
            ) from None
    return True, told
