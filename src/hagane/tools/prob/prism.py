"""A program as a PRISM model: a discrete-time Markov chain over one state variable.

Syntax: the PRISM manual, "The PRISM Language" (4.8). Probabilities are exact quotients, which
Storm's exact mode keeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from hagane.tools.prob.judge import term_text, terms_of
from hagane.tools.prob.ledger import DEFAULT_LIMITS, Limits, Unit, main_unit
from hagane.tools.prob.machine import Chain, State, explore
from hagane.tools.prob.operators import evaluate
from hagane.tools.prob.program import VALUE, Program, Site
from hagane.tools.prob.run import show_value
from hagane.tools.prob.syntax import Probability


@dataclass(frozen=True, slots=True)
class PrismModel:
    """A model and the properties to ask of it.

    Attributes:
        text: The model.
        properties: The properties, one a line, each under a comment that says what it is.
    """

    text: str
    properties: str


def export_prism(
    program: Program, unit: Unit | None = None, limits: Limits = DEFAULT_LIMITS
) -> PrismModel:
    """Return a program, or one unit of it, as a PRISM model.

    Each Prob of each claim becomes a pair of labels; a probability given the observations is the
    quotient of the two.

    Raises:
        PathError: Some possible run goes wrong.
        TooLarge: More states than ``limits.states``.
    """
    unit = unit or main_unit(program)
    chain = explore(program, unit, limits)
    sites = unit.sites
    labels, properties = _claim_labels(program, unit, chain, sites)
    ends: dict[str, list[int]] = {}
    for index, state in enumerate(chain.states):
        if state.kind in ("end", "rejected"):
            ends.setdefault(state.kind, []).append(index)
    labels += [label(kind, states) for kind, states in ends.items()]
    return PrismModel(model_text(program, chain, labels), "\n".join(properties) + "\n")


def model_text(program: Program, chain: Chain, labels: Sequence[str]) -> str:
    """Return a chain as a PRISM model with the given labels."""
    lines = [
        f"// {program.source.name}: a state holds the variables that are still needed",
        "dtmc",
        "",
        "module program",
        f"  s : [0..{max(1, len(chain.states) - 1)}] init 0;",
        *(line for i, state in enumerate(chain.states) for line in _command(program, i, state)),
        "endmodule",
        "",
        *labels,
    ]
    return "\n".join(lines) + "\n"


def _command(program: Program, index: int, state: State) -> list[str]:
    source = program.source
    merged: dict[int, Fraction] = {}
    for share, target in state.options:
        merged[target] = merged.get(target, Fraction(0)) + share
    steps = " + ".join(f"{share}:(s'={target})" for target, share in merged.items())
    if state.node is None:
        comment = f"the value is {show_value(state.key[0])}"
    else:
        line, _ = source.position(state.node.span.start)
        comment = f"line {line}: {source.slice(state.node.span)}"
        if state.kind == "claim":
            comment = f"line {line}: a claim about {show_value(state.key[-1])}"
    stay = f"1:(s'={index})"
    return [f"  // {comment}", f"  [] s={index} -> {steps or stay};"]


def _claim_labels(
    program: Program, unit: Unit, chain: Chain, sites: Sequence[Site]
) -> tuple[list[str], list[str]]:
    labels: list[str] = []
    properties: list[str] = []
    for number, site in enumerate(sites):
        reached = [(i, s) for i, s in enumerate(chain.states) if s.site is site]
        labels.append(label(f"claim{number}", [i for i, _ in reached]))
        if site.claim.formula is None:
            continue
        names = (*site.claim.variables, VALUE)
        for index, term in enumerate(terms_of(site.claim.formula)):
            if not isinstance(term, Probability):
                continue
            given, inside = [], []
            for i, state in reached:
                values = {**unit.values, **dict(zip(names, state.key, strict=True))}
                if term.condition is None or evaluate(term.condition, values):
                    given.append(i)
                    if evaluate(term.event, values):
                        inside.append(i)
            event, condition = f"claim{number}_event{index}", f"claim{number}_given{index}"
            labels += [label(event, inside), label(condition, given)]
            properties += [
                f"// Prob({term_text(program.source, term)}) of '{site.subject}' is the first "
                "over the second",
                f'P=? [ F "{event}" ];',
                f'P=? [ F "{condition}" ];',
            ]
    return labels, properties


def label(name: str, states: Sequence[int]) -> str:
    """Return a label over states, as ranges."""
    ranges: list[list[int]] = []
    for state in sorted(states):
        if ranges and ranges[-1][1] == state - 1:
            ranges[-1][1] = state
        else:
            ranges.append([state, state])
    tests = [f"s={a}" if a == b else f"(s>={a} & s<={b})" for a, b in ranges]
    return f'label "{name}" = {" | ".join(tests) or "false"};'
