"""Markov chains as a PRISM model: a discrete-time Markov chain over one state variable.

Syntax: the PRISM manual, "The PRISM Language" (4.8). Probabilities are exact quotients, which
Storm's exact mode keeps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from hagane.tools.prob.engines.chains.machine import State
from hagane.tools.prob.engines.run import show_value
from hagane.tools.prob.language.source import Source


@dataclass(frozen=True, slots=True)
class Part:
    """A chain as a part of a model, its states numbered from ``first``."""

    states: Sequence[State]
    first: int = 0


def model_text(source: Source, parts: Sequence[Part], declarations: Iterable[str]) -> str:
    """Return chains as one PRISM model; it begins in the first state of each."""
    count = sum(len(part.states) for part in parts)
    lines = [
        f"// {source.name}: a state holds the variables that are still needed",
        "dtmc",
        "",
        "module program",
        f"  s : [0..{max(1, count - 1)}]{' init 0' if len(parts) == 1 else ''};",
    ]
    for part in parts:
        for index, state in enumerate(part.states):
            lines += _command(source, part.first, index, state)
    lines += ["endmodule", ""]
    if len(parts) > 1:
        lines += [f"init {' | '.join(f's={part.first}' for part in parts)} endinit", ""]
    return "\n".join([*lines, *declarations]) + "\n"


def _command(source: Source, first: int, index: int, state: State) -> list[str]:
    merged: dict[int, Fraction] = {}
    for share, target in state.options:
        merged[target] = merged.get(target, Fraction(0)) + share
    steps = " + ".join(f"{share}:(s'={first + target})" for target, share in merged.items())
    if state.node is None:
        comment = f"the value is {show_value(state.key[0])}"
    else:
        line, _ = source.position(state.node.span.start)
        comment = f"line {line}: {source.slice(state.node.span)}"
        if state.kind == "claim":
            comment = f"line {line}: a claim about {show_value(state.key[-1])}"
    own = first + index
    return [f"  // {comment}", f"  [] s={own} -> {steps or f'''1:(s'={own})'''};"]


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


def rewards(name: str, gains: Mapping[int, Fraction]) -> str:
    """Return a structure of rewards for being in states."""
    lines = [f"  s={state} : {gain};" for state, gain in sorted(gains.items())]
    # Storm refuses a structure without any.
    return "\n".join([f'rewards "{name}"', *(lines or ["  true : 0;"]), "endrewards"])
