"""Whether a claim holds of an exact distribution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from hagane.tools.prob.claims.bounds import decide, within
from hagane.tools.prob.engines.ledger import Key
from hagane.tools.prob.engines.run import show_distance, show_measured, show_value
from hagane.tools.prob.language.formula import Interval, Term, comparisons, transform
from hagane.tools.prob.language.operators import ZeroDivisor, evaluate
from hagane.tools.prob.language.program import VALUE, Claim, walk
from hagane.tools.prob.language.source import DivisionByZero, ImpossibleCondition, Source, TooLarge
from hagane.tools.prob.language.syntax import (
    Expectation,
    Expression,
    Literal,
    Probability,
    Value,
)


@dataclass(frozen=True, slots=True)
class Measured:
    """A ``Prob`` or ``E`` of a claim and its true value, which may be off by ``within``."""

    event: str
    value: Fraction
    is_expectation: bool
    within: Fraction = Fraction(0)

    @property
    def text(self) -> str:
        """Return it as a claim writes it."""
        return self.event if self.is_expectation else f"Prob({self.event})"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A value that decided a claim, its probability, and the key under which it was recorded."""

    text: str
    probability: Fraction
    key: Key


@dataclass(frozen=True, slots=True)
class Judgement:
    """The outcome of one claim under one set of circumstances.

    Attributes:
        holds: Whether the claim is true.
        measured: The value of each Prob and E.
        circumstances: The values of parameters and fixed variables, by name.
        margin: How near the nearest comparison is to its bound.
        outcome: For a claim that fails, the outcome that contributes most.
    """

    holds: bool
    measured: tuple[Measured, ...]
    circumstances: Mapping[str, Value]
    margin: Fraction | None
    outcome: Outcome | None
    fixed: Key = ()


def terms_of(formula: Expression) -> list[Term]:
    """Return the Prob and E of a formula, in the order of the text."""
    return [node for node in walk(formula) if isinstance(node, Probability | Expectation)]


def judge(
    source: Source,
    claim: Claim,
    table: Mapping[Key, Fraction],
    given: Mapping[str, Value],
    unknown: Fraction = Fraction(0),
) -> list[Judgement]:
    """Judge a claim for each value of its fixed variables.

    Args:
        source: The program.
        claim: The claim.
        table: The weight of each key; weights of one group are taken relative to their sum.
        given: The parameters of the function around the claim.
        unknown: The weight of runs that are in none of the keys.

    Raises:
        ImpossibleCondition: A condition of probability zero.
        DivisionByZero: The claim divides by zero.
        TooLarge: The runs that are not known decide.
    """
    groups: dict[Key, dict[Key, Fraction]] = {}
    for key, weight in table.items():
        groups.setdefault(key[: len(claim.fixed)], {})[key] = weight
    return [
        replace(
            _judge_group(
                source,
                claim,
                group,
                {**given, **dict(zip(claim.fixed, fixed, strict=True))},
                unknown,
            ),
            fixed=fixed,
        )
        for fixed, group in sorted(groups.items(), key=lambda item: repr(item[0]))
    ]


def _judge_group(
    source: Source,
    claim: Claim,
    weights: Mapping[Key, Fraction],
    given: Mapping[str, Value],
    unknown: Fraction,
) -> Judgement:
    total = sum(weights.values(), Fraction(0))
    group = {key: weight / total for key, weight in weights.items()}
    # A verdict on a distribution that does not sum to one would say nothing.
    assert sum(group.values()) == 1
    formula = claim.formula
    if formula is None:
        return Judgement(True, (), given, None, None)
    names = (*claim.variables, VALUE)
    states = [(key, {**given, **dict(zip(names, key, strict=True))}) for key in group]
    try:
        parts = {term: parts_of(source, term, states, group) for term in terms_of(formula)}
        values = {term: amount / weight for term, (amount, weight) in parts.items()}
        filled = fill(formula, values)
        bounds = {term: within(term, *part, unknown / total) for term, part in parts.items()}
        holds, failing = True, None
        for _, state in states if claim.speaks_of_value else states[:1]:
            if not evaluate(filled, state):
                holds, failing = False, state
                break
        at = failing or states[0][1]
        if unknown and (
            decide(formula, bounds, at) is not holds or (holds and claim.speaks_of_value)
        ):
            raise _undecided(source, claim, bounds, unknown)
        margin = _margin(filled, states, claim)
    except ZeroDivisor as error:
        raise _divides_by_zero(source, error, given) from None
    measured = tuple(
        Measured(
            term_text(source, term), value, isinstance(term, Expectation), _width(bounds[term])
        )
        for term, value in values.items()
    )
    outcome = None
    if failing is not None:
        outcome = _outcome(claim, formula, values, states, group, failing)
    return Judgement(holds, measured, given, margin, outcome)


def _width(bounds: Interval) -> Fraction:
    low, high = bounds
    return Fraction(0) if low is None or high is None else high - low


_MUCH = Fraction(1, 1000)
_REMEDIES = {
    False: "leave a distance to the bound, or bound what grows",
    True: "let less be remembered between draws, such as how many instead of which "
    "(rand(1, 365) <= seen: a day that was seen before), leave a distance to the bound, or bound "
    "what grows",
}


def _undecided(
    source: Source, claim: Claim, bounds: Mapping[Term, Interval], unknown: Fraction
) -> TooLarge:
    """Return the error of a claim that the runs which were not followed decide."""
    known = []
    for term, (low, high) in bounds.items():
        text = Measured(term_text(source, term), Fraction(0), isinstance(term, Expectation)).text
        if low is None or high is None:
            known.append(f"{text} has no bound")
        else:
            known.append(f"{text} is {show_measured(low, high - low)}")
    of = f": {', '.join(known)}" if known else ""
    return TooLarge(
        f"too many states to decide this exactly, and runs of probability {show_distance(unknown)} "
        f"were left open{of}; {_REMEDIES[unknown > _MUCH]}",
        source,
        claim.span,
    )


def evaluated(source: Source, node: Expression, values: Mapping[str, Any]) -> Any:
    """Return the value of a part of a claim for given values.

    Raises:
        DivisionByZero: It divides by zero.
    """
    try:
        return evaluate(node, values)
    except ZeroDivisor as error:
        raise _divides_by_zero(source, error, values) from None


def _divides_by_zero(
    source: Source, error: ZeroDivisor, values: Mapping[str, Any]
) -> DivisionByZero:
    known = ", ".join(f"{_name(name)} = {show_value(value)}" for name, value in values.items())
    return DivisionByZero(
        f"the claim divides by zero: '{source.slice(error.node.right.span)}' is 0"
        + (f" where {known}" if known else ""),
        source,
        error.node.span,
    )


def term_text(source: Source, term: Term) -> str:
    """Return the text of a Prob or E, as written."""
    subject = term.event if isinstance(term, Probability) else term.term
    text = source.slice(subject.span)
    if isinstance(term, Expectation):
        text = f"E[{text}]" if term.condition is None else f"E[{text} | "
        return text if term.condition is None else f"{text}{source.slice(term.condition.span)}]"
    return text if term.condition is None else f"{text} | {source.slice(term.condition.span)}"


def parts_of(
    source: Source,
    term: Term,
    states: list[tuple[Key, dict[str, Any]]],
    group: Mapping[Key, Any],
) -> tuple[Any, Any]:
    """Return the weighted sum of a Prob or E, and the weight that it is over."""
    subject = term.event if isinstance(term, Probability) else term.term
    weight: Any = Fraction(0)
    amount: Any = Fraction(0)
    for key, state in states:
        if term.condition is None or evaluated(source, term.condition, state):
            weight += group[key]
            amount += group[key] * evaluated(source, subject, state)
    if weight == 0:
        assert term.condition is not None
        key, state = max(states, key=lambda item: float(group[item[0]]))
        shown = ", ".join(f"{_name(name)} = {show_value(value)}" for name, value in state.items())
        several = f"all {len(states)} outcomes, for instance"
        outcomes = "the only outcome," if len(states) == 1 else several
        raise ImpossibleCondition(
            f"the condition '{source.slice(term.condition.span)}' has probability zero: it is "
            f"false in {outcomes} where {shown} (probability {group[key]})",
            source,
            term.condition.span,
        )
    return amount, weight


def _name(name: str) -> str:
    return "the value" if name == VALUE else name.partition("#")[0]


def fill(formula: Expression, values: Mapping[Term, Fraction]) -> Expression:
    """Return a formula with numbers in the place of Prob and E."""

    def number(node: Expression) -> Expression | None:
        if isinstance(node, Probability | Expectation):
            return Literal(node.span, values[node])
        return None

    return transform(formula, number)


def _margin(
    filled: Expression, states: list[tuple[Key, dict[str, Any]]], claim: Claim
) -> Fraction | None:
    if claim.speaks_of_value:
        return None
    margins = []
    for node in comparisons(filled):
        left, right = (evaluate(side, states[0][1]) for side in (node.left, node.right))
        if not isinstance(left, bool | tuple):
            margins.append(abs(Fraction(left) - right))
    return min(margins, default=None)


def _outcome(
    claim: Claim,
    formula: Expression,
    values: Mapping[Term, Fraction],
    states: list[tuple[Key, dict[str, Any]]],
    group: Mapping[Key, Fraction],
    failing: Mapping[str, Any],
) -> Outcome | None:
    """Return the likeliest outcome inside an event that is too likely, or outside a too rare one.

    Of a claim about single values it is the value at fault.
    """
    for node in comparisons(formula):
        if evaluate(fill(node, values), failing):
            continue
        for side, other in ((node.left, node.right), (node.right, node.left)):
            events = [t for t in terms_of(side) if isinstance(t, Probability)]
            if not events:
                continue
            amount = evaluate(fill(side, values), failing)
            wanted = bool(amount > evaluate(fill(other, values), failing))
            candidates = [
                (group[key], key)
                for key, state in states
                if (events[0].condition is None or evaluate(events[0].condition, state))
                and evaluate(events[0].event, state) is wanted
            ]
            if candidates:
                weight, key = max(candidates, key=lambda item: item[0])
                return Outcome(_show_key(claim, key), weight, key)
    at = [key for key, state in states if state == failing]
    best = at[0] if claim.speaks_of_value and at else max(group, key=lambda key: group[key])
    return Outcome(_show_key(claim, best), group[best], best)


def _show_key(claim: Claim, key: Key) -> str:
    names = [name.partition("#")[0] for name in claim.variables]
    shown = [f"{name} = {show_value(v)}" for name, v in zip(names, key[:-1], strict=True)]
    return ", ".join([f"value = {show_value(key[-1])}", *shown])
