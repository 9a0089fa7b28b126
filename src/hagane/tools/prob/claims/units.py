"""The units of a program: the main expression, and each function for each of its arguments.

A function is a unit for each argument that its parameters' types admit or, where they set no
bounds, for each that the program passes to it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from hagane.tools.prob.engines.ledger import Ledger, Unit, function_unit, main_unit
from hagane.tools.prob.language.formula import domain_of
from hagane.tools.prob.language.program import Function, Program
from hagane.tools.prob.language.syntax import Value

# Above this many combinations, a function is checked for the arguments that it gets.
_MOST_ARGUMENTS = 4_096

_Inputs = tuple[Value, ...]


def visit_units(program: Program, visit: Callable[[Unit, bool], Ledger]) -> None:
    """Call ``visit`` once for each unit that makes a claim, and for the main expression.

    Args:
        program: The program.
        visit: Takes a unit and whether its function is visited for all arguments that its type
            admits; returns a ledger that has the calls which the unit makes.
    """
    pending = deque([(main_unit(program), True)])
    done: set[tuple[Function, _Inputs]] = set()
    calls: dict[Function, set[_Inputs]] = {}
    while pending:
        while pending:
            unit, exhaustive = pending.popleft()
            for function, inputs in visit(unit, exhaustive).calls.items():
                calls.setdefault(function, set()).update(inputs)
        for function in program.functions:
            exhaustive, wanted = _inputs(function, calls.get(function, set()))
            for given in wanted:
                unit = function_unit(function, given)
                if (function, given) not in done and unit.sites:
                    done.add((function, given))
                    pending.append((unit, exhaustive))


def _inputs(function: Function, passed: set[_Inputs]) -> tuple[bool, list[_Inputs]]:
    """Return the inputs to check a function for, and whether these are all that it admits."""
    count = len(function.parameters)
    admitted = _admitted(function)
    if admitted is None:
        return False, sorted(passed, key=repr)
    captured = {inputs[count:] for inputs in passed} if function.captured else {()}
    return not function.captured, [(*own, *rest) for own in admitted for rest in captured]


def _admitted(function: Function) -> list[_Inputs] | None:
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
