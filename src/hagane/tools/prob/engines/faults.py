"""Errors of a run, in the words of every engine.

``run`` is a function that tells the run so far; engines that don't know it return "".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from hagane.tools.prob.engines.run import show_value
from hagane.tools.prob.language.operators import ZeroDivisor
from hagane.tools.prob.language.program import Apply, shown
from hagane.tools.prob.language.source import (
    BadDistribution,
    DivisionByZero,
    EndlessRecursion,
    Source,
    TooLarge,
    UnboundedRecursion,
)
from hagane.tools.prob.language.syntax import Choose, Draw, Flip, Rand

Told: TypeAlias = Callable[[], str]


def untold() -> str:
    """Tell nothing about the run."""
    return ""


_LONGEST = 80  # characters of an expression in a message, which has its place too


def _tail(run: Told) -> str:
    told = run()
    return f"; a run that gets there: {told}" if told else ""


def division_by_zero(
    source: Source, error: ZeroDivisor, values: Mapping[str, Any], run: Told | str
) -> DivisionByZero:
    """Return the error for a divisor that is zero with the given values."""
    divisor = source.slice(error.node.right.span)
    if len(divisor) > _LONGEST:
        divisor = f"{divisor[: _LONGEST - 1]}…"
    known = ", ".join(
        f"{shown(name)} = {show_value(value)}"
        for name, value in sorted(values.items())
        if name[0].isalpha() or name[0] == "_"
    )
    where = f" with {known}" if known else ""
    tail = _tail(run if callable(run) else lambda: run)
    return DivisionByZero(
        f"division by zero on a possible run: '{divisor}' is 0{where}{tail}",
        source,
        error.node.span,
    )


def check_range(source: Source, node: Rand, bounds: tuple[int, int], run: Told) -> None:
    """Refuse an empty range."""
    low, high = bounds
    if low > high:
        raise BadDistribution(
            f"rand({low}, {high}) is empty: the lower bound is above the upper one on a possible "
            f"run{_tail(run)}",
            source,
            node.span,
        )


def check_chance(source: Source, node: Flip, chance: Fraction, run: Told) -> None:
    """Refuse a probability that is none."""
    if not 0 <= chance <= 1:
        text = source.slice(node.probability.span)
        which = "" if text == str(chance) else f", and '{text}' is {chance}"
        raise BadDistribution(
            f"flip({chance}): a probability lies between 0 and 1{which}{_tail(run)}",
            source,
            node.span,
        )


def check_law(source: Source, node: Draw, arguments: Sequence[Any], run: Told) -> None:
    """Refuse arguments of a continuous distribution that are none of it."""
    if node.law == "uniform":
        wrong = not arguments[0] < arguments[1]
        wanted = "the least below the greatest"
    else:
        wrong, wanted = not arguments[-1] > 0, "a deviation above 0"
        if node.law == "exponential":
            wanted = "a rate above 0"
    if wrong:
        shown = ", ".join(map(str, arguments))
        raise BadDistribution(
            f"{node.law}({shown}): expected {wanted}{_tail(run)}", source, node.span
        )


def check_shares(source: Source, node: Choose, shares: Sequence[Fraction], run: Told) -> None:
    """Refuse probabilities of ``choose`` that are negative or do not sum to one."""
    for (weight, _), share in zip(node.branches, shares, strict=True):
        if share < 0:
            raise BadDistribution(
                f"choose: the probability '{source.slice(weight.span)}' is {share}, below 0"
                f"{_tail(run)}",
                source,
                weight.span,
            )
    if sum(shares) != 1:
        raise BadDistribution(
            f"choose: the probabilities sum to {sum(shares)}, expected 1{_tail(run)}",
            source,
            node.span,
        )


def measure_error(
    source: Source, node: Apply, inputs: Sequence[Any], values: tuple[int, int], run: Told
) -> UnboundedRecursion:
    """Return the error that a recursive call does not lower its measure."""
    before, after = values
    assert node.function.measure is not None
    text = source.slice(node.function.measure.span)
    problem = "becomes negative" if after < 0 else "does not fall"
    return UnboundedRecursion(
        f"the measure '{text}' of '{shown(node.function.name)}' {problem}: it is {before}, and "
        f"{after} in the call {_call(node, inputs)}{_tail(run)}",
        source,
        node.span,
    )


def endless_call(source: Source, node: Apply, inputs: Sequence[Any], run: Told) -> EndlessRecursion:
    """Return the error that a call is reached again from itself."""
    return EndlessRecursion(
        f"'{shown(node.function.name)}' recurses without end (unbounded recursion): "
        f"{_call(node, inputs)} is reached again from itself; let an argument fall towards a "
        f"case that does not recurse{_tail(run)}",
        source,
        node.span,
    )


def too_deep(
    source: Source, node: Apply, inputs: Sequence[Any], depth: int, run: Told
) -> UnboundedRecursion:
    """Return the error that too many calls of a function are open."""
    function = node.function
    kind = EndlessRecursion if function.depth is None else UnboundedRecursion
    if function.depth is None:
        limit = "the limit"
        remedy = (
            "let an argument fall towards a case that does not recurse; if it does end, say after "
            "how many calls, as in 'depth 20000' before '='"
        )
    else:
        limit, remedy = "its declared depth", "declare more, or let it end sooner"
    return kind(
        f"'{shown(function.name)}' recurses without bound (unbounded recursion): it is {depth} "
        f"calls deep, {limit}, and calls {_call(node, inputs)}; {remedy}{_tail(run)}",
        source,
        node.span,
    )


def unbounded_work(error: TooLarge) -> TooLarge:
    """Return the error that a chain of recursive calls has too many states."""
    return TooLarge(
        f"{error.message.partition(';')[0]}; recursion has finitely many when a call is the last "
        "thing that its function does and arguments keep within bounds (sums that only grow are "
        "taken apart where claims ask for E of them alone)",
        error.source,
        error.span,
    )


def _call(node: Apply, inputs: Sequence[Any]) -> str:
    given = ", ".join(show_value(value) for value in inputs[: len(node.function.parameters)])
    return f"{shown(node.function.name)}({given})"
