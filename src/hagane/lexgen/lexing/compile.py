"""From a specification to the tables of a lexer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hagane.lexgen.automata.determinise import determinise
from hagane.lexgen.automata.dfa import Dfa, minimise
from hagane.lexgen.automata.nfa import Accept, build_nfa
from hagane.lexgen.errors import SpecificationError
from hagane.lexgen.expressions.syntax import Branch, without_empty
from hagane.lexgen.lexing import runtime
from hagane.lexgen.lexing.fast_path import fast_path
from hagane.lexgen.lexing.specification import Action, Rule, Specification


@dataclass(frozen=True, slots=True)
class CompiledStep:
    """An accept of the automaton with the action that it leads to."""

    accept: Accept
    action: Action
    split: tuple[Dfa, Dfa] | None = None


@dataclass(frozen=True, slots=True)
class Compiled:
    """A lexer's automata, independent of the language that they will run in.

    ``full`` is the minimal automaton whose states keep every rule that they accept; ``dfa`` keeps
    the winners only. ``fast`` has for each start condition the expression of ``fast_path``.
    """

    specification: Specification
    full: Dfa
    dfa: Dfa
    steps: tuple[CompiledStep, ...]
    fast: tuple[tuple[str, list[Any]] | None, ...]

    @property
    def step_of(self) -> dict[Accept, int]:
        """The number of each accept's step."""
        return {step.accept: number for number, step in enumerate(self.steps)}


def compile_specification(specification: Specification) -> Compiled:
    """Return the automata of a lexer, in which no rule matches the empty text.

    Raises:
        SpecificationError: A rule names a start condition that does not exist, or there is no rule.
    """
    _check_conditions(specification)
    rules = tuple(_without_empty(rule) for rule in specification.rules)
    groups = specification.active()
    nfa = build_nfa([rule.pattern.branches for rule in rules], groups)
    try:
        full = minimise(determinise(nfa))
    except SpecificationError as error:
        raise SpecificationError(f"{_largest(specification.source, rules)}: {error}") from None
    dfa = minimise(full.winners_only())
    accepts = {accept for accepts in full.accepts for accept in accepts}
    steps = tuple(
        CompiledStep(accept, rules[accept.rule].action, _split(rules, accept))
        for accept in sorted(accepts, key=lambda a: (a.rule, a.back or 0, a.head or 0))
    )
    step_of = {step.accept: number for number, step in enumerate(steps)}
    fast = tuple(
        fast_path(rules, active, replace(full, starts=[full.starts[k]]).trimmed(), step_of)
        for k, active in enumerate(groups)
    )
    return Compiled(specification, full, dfa, steps, fast)


def _check_conditions(specification: Specification) -> None:
    known = specification.conditions
    if not specification.rules:
        raise SpecificationError(f"{specification.source}: expected at least one rule, got none")
    places = [(rule.label, rule.conditions, rule.action) for rule in specification.rules]
    places += [("<<EOF>>", (name,), act) for name, act in specification.at_end.items()]
    for label, conditions, action in places:
        for name in (*conditions, action.begin, action.push):
            if name and name != "*" and name not in known:
                raise SpecificationError(
                    f"rule {label}: there is no start condition '{name}'; declared are: "
                    f"{', '.join(known)} (declare one with %s or %x)"
                )


def _largest(source: str, rules: Sequence[Rule]) -> str:
    """Return the name of the rule with the most states of its own, which is likely to blame."""
    sizes = [build_nfa([rule.pattern.branches]).n_states for rule in rules]
    return f"{source}, largest is rule {rules[sizes.index(max(sizes))].label}"


def _without_empty(rule: Rule) -> Rule:
    branches = tuple(replace(b, body=without_empty(b.body)) for b in rule.pattern.branches)
    return replace(rule, pattern=replace(rule.pattern, branches=branches))


def _split(rules: tuple[Rule, ...], accept: Accept) -> tuple[Dfa, Dfa] | None:
    """Return the automata of the two parts of a trailing context whose place varies."""
    if accept.back is not None or accept.head is not None:
        return None
    branches = [b for b in rules[accept.rule].pattern.branches if b.following is not None]
    if len(branches) > 1:
        raise SpecificationError(
            f"rule {rules[accept.rule].label}: several branches have a trailing context of "
            "variable length; write them as rules of their own"
        )
    (branch,) = branches
    assert branch.following is not None
    parts = (Branch(branch.body), Branch(branch.following))
    body, following = (minimise(determinise(build_nfa([[part]]))) for part in parts)
    return body, following


def flat_table(dfa: Dfa, step_of: Mapping[Accept, int] | None = None) -> runtime.Automaton:
    """Return an automaton in the form that runs.

    Without steps a state's code has a bit for each number of symbols that an accept gives back.
    """
    stride = dfa.alphabet.n_classes + 2
    delta: list[int] = []
    for row, accepts in zip(dfa.delta, dfa.accepts, strict=True):
        code = 0
        if accepts:
            code = sum(1 << (accept.back or 0) for accept in accepts)
            code = step_of[accepts[0]] + 1 if step_of is not None else code
        hold = -2 if any(to >= 0 for to in row) else -1
        delta += [code, *(to * stride if to >= 0 else -1 for to in row), hold]
    ids = tuple(id + 1 for id in dfa.alphabet.ids)
    starts = () if step_of is not None else tuple(start_rows(dfa)[0])
    return runtime.Automaton(dfa.alphabet.starts, ids, stride, delta, starts)


def start_rows(dfa: Dfa) -> list[list[int]]:
    """Return the start states as rows of the flat table."""
    stride = dfa.alphabet.n_classes + 2
    rows = [[state * stride if state >= 0 else -1 for state in row] for row in dfa.starts]
    return [row if len(set(row)) > 1 else row[:1] for row in rows]


def machine(compiled: Compiled, codes: Mapping[int, Callable[..., Any]]) -> runtime.Machine:
    """Return the running form; ``codes[n]`` is the function of the user code of step ``n``.

    The code of the end of the input in condition ``k`` is ``codes[-1 - k]``.
    """
    specification = compiled.specification
    names = list(specification.conditions)
    steps = [
        runtime.Step(
            step.action.kind,
            step.accept.back,
            step.accept.head,
            *_moves(step.action, names),
            codes.get(number),
            None if step.split is None else (flat_table(step.split[0]), flat_table(step.split[1])),
        )
        for number, step in enumerate(compiled.steps)
    ]
    at_end = {
        names.index(name): runtime.Step(
            action.kind, 0, None, *_moves(action, names), codes.get(-1 - names.index(name))
        )
        for name, action in specification.at_end.items()
    }
    return runtime.Machine(
        flat_table(compiled.dfa, compiled.step_of),
        steps,
        tuple(names),
        start_rows(compiled.dfa),
        at_end,
        list(compiled.fast),
    )


def _moves(action: Action, names: list[str]) -> tuple[int, int, bool]:
    return (
        names.index(action.begin) if action.begin else -1,
        names.index(action.push) if action.push else -1,
        action.pop,
    )
