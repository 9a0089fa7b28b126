"""Assertions as goals: those in the source, and expressions given from outside.

An expression is bound into the top module as the input of a small checker module, so that it is
elaborated and simulated like any other expression there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hagane.symbolic.term import Term
from hagane.tools.rtl.circuit.cycle import CycleModel
from hagane.tools.rtl.circuit.elaborate import Elaborated, Sources
from hagane.tools.rtl.circuit.simulate import Goal, Test, Violation
from hagane.tools.rtl.errors import InvalidDesign
from hagane.tools.rtl.search.search import Found

_CHECKER = "hagane_check"
CHECKER_FILE = "hagane_assertions.sv"
_FIRST_LINE = 4  # of the file, that binds a checker


@dataclass(frozen=True, slots=True)
class Standing:
    """Where an assertion stands: violated by a test, proved, reachable, or unknown."""

    name: str
    status: str
    test: int | None = None
    cycle: int | None = None
    inputs: Mapping[str, int] | None = None
    why: str = ""


def bind_assertions(sources: Sources, expressions: Sequence[str], folder: Path) -> Sources:
    """Return sources with a checker bound to the top module for each expression."""
    if not expressions:
        return sources
    lines = [
        f"module {_CHECKER} (input logic holds);",
        "  always_comb assert (holds);",
        "endmodule",
    ]
    for index, expression in enumerate(expressions):
        lines.append(
            f"bind {sources.top} {_CHECKER} {_CHECKER}_{index} (.holds(1'(|({expression}))));"
        )
    path = folder / CHECKER_FILE
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return replace(sources, files=(*sources.files, path))


def explained(error: InvalidDesign, expressions: Sequence[str]) -> InvalidDesign:
    """Return the error with the option named where it is about a checker's line."""

    def option(match: re.Match[str]) -> str:
        index = int(match[1]) - _FIRST_LINE
        return f"--assert '{expressions[index]}': "

    text = re.sub(rf"\S*{re.escape(CHECKER_FILE)}:(\d+):\d+: ", option, str(error))
    return InvalidDesign(re.sub(rf"\nbind \S+ {_CHECKER}.*\n.*", "", text))


def check_names(elaborated: Elaborated, expressions: Sequence[str]) -> None:
    """Refuse expressions with unknown names: the language would make nets of them, silently.

    Raises:
        InvalidDesign: An expression uses a name that the top module does not know.
    """
    for member in elaborated.top.body:
        if member.kind.name == "Net" and member.isImplicit:
            position = elaborated.position(member.location)
            if Path(position.file).name == CHECKER_FILE:
                expression = expressions[position.line - _FIRST_LINE]
                raise InvalidDesign(
                    f"--assert '{expression}': there is no '{member.name}' in module "
                    f"'{elaborated.top.name}'"
                )


def violations(model: CycleModel, expressions: Sequence[str]) -> dict[str, Term]:
    """Return, by name, under which condition each assertion fails."""
    named: dict[str, Term] = {}
    for (position, scope), term in model.asserts.items():
        name = f"{position}" + (f" in {scope}" if scope else "")
        if scope.startswith(f"{_CHECKER}_"):
            name = expressions[int(scope.removeprefix(f"{_CHECKER}_"))]
        named[name] = term
    return named


def without_checkers(model: CycleModel) -> None:
    """Take the points and signals of bound checkers out of the coverage of ``model``."""
    for key in [key for key in model.points if key.scope.startswith(f"{_CHECKER}_")]:
        del model.points[key]
    for name in [name for name in model.signals if name.startswith(f"{_CHECKER}_")]:
        del model.signals[name]


def standings(
    names: Sequence[str],
    found: Found,
    reached: Mapping[Goal, tuple[int, int]],
    tests: Sequence[Test],
    replayed: bool,
) -> list[Standing]:
    """Give each assertion the verdict of the replay and the proofs."""
    result = []
    for name in names:
        goal = Violation(name)
        if goal in reached:
            test, cycle = reached[goal]
            row = dict(tests[test][cycle])
            result.append(Standing(name, "violated", test, cycle, row))
        elif goal in found.dead:
            dead = found.dead[goal]
            result.append(Standing(name, "proved", cycle=dead.cycles, why=dead.why))
        elif goal in found.reachable:
            cycles = found.reachable[goal]
            why = f"broken {cycles:,} cycles after reset, by a proved loop or inputs held so long"
            result.append(Standing(name, "reachable", cycle=found.reachable[goal], why=why))
        else:
            why = found.unknown.get(goal, "")
            if goal in found.covered:
                why = "the replay did not show it" if replayed else "no simulator replayed it"
            result.append(Standing(name, "unknown", why=why))
    return result
