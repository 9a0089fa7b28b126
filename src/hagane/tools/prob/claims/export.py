"""A program with its functions and types as a PRISM model and properties.

Syntax of properties: the PRISM manual, "Property Specification" (4.8).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hagane.tools.prob.claims.judge import evaluated, term_text, terms_of
from hagane.tools.prob.claims.modular import conjuncts
from hagane.tools.prob.claims.units import visit_units
from hagane.tools.prob.claims.verdict import show_circumstances
from hagane.tools.prob.engines.chains.machine import State, explore
from hagane.tools.prob.engines.chains.prism import Part, label, model_text, rewards
from hagane.tools.prob.engines.ledger import DEFAULT_LIMITS, Key, Ledger, Limits, Unit
from hagane.tools.prob.language.program import (
    VALUE,
    Program,
    Site,
    draws_reals,
    mentions_probability,
    shown,
)
from hagane.tools.prob.language.source import ProgramTypeError, Source, TooLarge
from hagane.tools.prob.language.syntax import Expression, Probability, Value


@dataclass(frozen=True, slots=True)
class PrismModel:
    """A model and the properties to ask of it.

    Attributes:
        text: The model.
        properties: The properties, one a line, under comments that name their claims.
    """

    text: str
    properties: str


def export_prism(program: Program, limits: Limits = DEFAULT_LIMITS) -> PrismModel:
    """Return a program as a PRISM model, and its types as properties.

    The model begins in the main expression (label ``unit0``) and, as parts of their own, in each
    function that has a type to decide, for each argument that it is checked for. A statement of a
    claim measures becomes two properties, of which the first over the second is the Prob or E: the
    second is the probability that the claim is reached, observations met and its condition true.
    A claim about single values becomes a label that no run may reach.

    Raises:
        PathError: Some possible run goes wrong.
        TooLarge: More states than ``limits.states``.
    """
    if draws_reals(program):
        raise ProgramTypeError(
            "a model of PRISM has whole numbers alone, and this program draws continuous values",
            program.source,
            program.main.span,
        )
    units: list[_Exported] = []

    def visit(unit: Unit, exhaustive: bool) -> Ledger:
        chain = explore(program, unit, limits)
        first = units[-1].part.first + len(units[-1].part.states) if units else 0
        made = _Exported(unit, Part(chain.states, first), f"unit{len(units)}")
        if first + len(chain.states) > limits.states:
            raise TooLarge(
                f"the model needs more than {limits.states:,} states, all functions together, and "
                f"{made.title} is one of many; bound the parameters of functions more tightly",
                program.source,
                unit.expression.span,
            )
        units.append(made)
        return chain.calls

    visit_units(program, visit)
    declared = [label(each.name, [each.part.first]) for each in units]
    for kind in ("end", "rejected"):
        found = [number for each in units for number, state in each.states() if state.kind == kind]
        declared.append(label(kind, found))
    asked: list[str] = []
    count = 0
    for each in units:
        asked += [f'// {each.title}: from label "{each.name}"']
        for question in _questions(each):
            writer = _Writer(program.source, each, f"claim{count}", alone=len(units) == 1)
            writer.write(question)
            declared += writer.declared
            asked += writer.asked
            count += 1
    text = model_text(program.source, [each.part for each in units], declared)
    return PrismModel(text, "\n".join(asked) + "\n")


@dataclass(frozen=True, slots=True)
class _Exported:
    """A unit as a part of the model."""

    unit: Unit
    part: Part
    name: str

    @property
    def title(self) -> str:
        if self.unit.function is None:
            return "the main expression"
        given = show_circumstances(self.unit.values)
        return f"'{shown(self.unit.function.name)}'" + (f" with {given}" if given else "")

    def states(self) -> Iterator[tuple[int, State]]:
        """Yield the states with their numbers in the model."""
        return enumerate(self.part.states, self.part.first)


@dataclass(frozen=True, slots=True)
class _Question:
    """A claim for one value of its fixed variables, and the states in which it is made."""

    site: Site
    fixed: Mapping[str, Value]
    reached: Mapping[int, Mapping[str, Any]]


def _questions(exported: _Exported) -> Iterator[_Question]:
    unit = exported.unit
    for site in unit.sites:
        claim = site.claim
        names = (*claim.variables, VALUE)
        groups: dict[Key, dict[int, dict[str, Any]]] = {}
        for number, state in exported.states():
            if state.site is site:
                values = {**unit.values, **dict(zip(names, state.key, strict=True))}
                groups.setdefault(state.key[: len(claim.fixed)], {})[number] = values
        for fixed, reached in sorted(groups.items(), key=lambda item: repr(item[0])):
            yield _Question(site, dict(zip(claim.fixed, fixed, strict=True)), reached)


class _Writer:
    """Writes the labels, rewards and properties of one claim."""

    def __init__(self, source: Source, exported: _Exported, name: str, *, alone: bool):
        self.source = source
        self.exported = exported
        self.name = name
        self.alone = alone
        self.declared: list[str] = []
        self.asked: list[str] = []

    def write(self, question: _Question) -> None:
        site, reached = question.site, question.reached
        formula = site.claim.formula
        line, _ = self.source.position(site.span.start)
        given = f" with {show_circumstances(question.fixed)}" if question.fixed else ""
        self.asked.append(f"// line {line}: '{site.subject}' : {site.claim.text}{given}")
        self.declared.append(label(self.name, list(reached)))
        for index, term in enumerate(terms_of(formula) if formula is not None else ()):
            inside = [
                number
                for number, values in reached.items()
                if term.condition is None or self._value(term.condition, values)
            ]
            condition = f"{self.name}_given{index}"
            self.declared.append(label(condition, inside))
            text = term_text(self.source, term)
            if isinstance(term, Probability):
                event = f"{self.name}_event{index}"
                holds = [n for n in inside if self._value(term.event, reached[n])]
                self.declared.append(label(event, holds))
                self._comment(f"Prob({text}) is the first over the second")
                self._ask(f'P=? [ F "{event}" ]')
            else:
                self._expectation(index, term.term, {n: reached[n] for n in inside})
                self._comment(f"{text} is the first less the second, over the third")
                for part in ("gain", "loss"):
                    reward = f"{self.name}_{part}{index}"
                    self._ask(f'R{{"{reward}"}}=? [ F "end" | "rejected" ]')
            self._ask(f'P=? [ F "{condition}" ]')
        for index, conjunct in enumerate(conjuncts(formula)):
            if not mentions_probability(conjunct):
                broken = f"{self.name}_broken{index}"
                false = [n for n, values in reached.items() if not self._value(conjunct, values)]
                self.declared.append(label(broken, false))
                self._comment(f"'{self.source.slice(conjunct.span)}' is sure where this is 0")
                self._ask(f'P=? [ F "{broken}" ]')

    def _expectation(
        self, index: int, term: Expression, reached: Mapping[int, Mapping[str, Any]]
    ) -> None:
        # Rewards are not negative, so gains and losses are apart.
        amounts = {
            number: Fraction(self._value(term, values)) for number, values in reached.items()
        }
        for part, sign in (("gain", 1), ("loss", -1)):
            found = {n: sign * amount for n, amount in amounts.items() if sign * amount > 0}
            self.declared.append(rewards(f"{self.name}_{part}{index}", found))

    def _value(self, node: Expression, values: Mapping[str, Any]) -> Any:
        return evaluated(self.source, node, values)

    def _comment(self, text: str) -> None:
        self.asked.append(f"// {text}")

    def _ask(self, query: str) -> None:
        if self.alone:
            self.asked.append(f"{query};")
        else:
            self.asked.append(f'filter(min, {query}, "{self.exported.name}");')
