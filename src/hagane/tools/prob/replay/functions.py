"""Units of Python functions that are run instead of captured."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from fractions import Fraction
from types import FunctionType
from typing import Any

from hagane.tools.prob.engines.chains.chain import asks_for_means
from hagane.tools.prob.engines.chains.parametric import Formulas, formulas
from hagane.tools.prob.engines.engines import Choice
from hagane.tools.prob.engines.ledger import DEFAULT_LIMITS, Ledger, Limits, Unit
from hagane.tools.prob.language.program import Kind
from hagane.tools.prob.language.ratios import ParameterDecides, Ratio
from hagane.tools.prob.language.source import PathError, ProgramTypeError, Source, Span, TooLarge
from hagane.tools.prob.replay.chance import OtherChance
from hagane.tools.prob.replay.explore import PRECISE, Explorer, Uncounted
from hagane.tools.prob.replay.folded import folded
from hagane.tools.prob.replay.glimpsed import deals, glimpsed
from hagane.tools.prob.replay.marked import Marked
from hagane.tools.prob.replay.outcomes import Outcomes
from hagane.tools.prob.replay.runs import Unrepeatable

# Steps after which it is tried whether cards need to be drawn as a whole.
_BRIEF = 40_000


def replayed(
    function: Marked, kind: Kind, source: Source, span: Span, limits: Limits = DEFAULT_LIMITS
) -> Callable[[Unit], Choice]:
    """Return an engine for the units of one Python function.

    Args:
        function: The function.
        kind: The kind of its results.
        source: Its file.
        span: Its place there.
        limits: How many runs may be followed.
    """

    def run(unit: Unit) -> Choice:
        assert unit.function is not None
        arguments = [unit.values[name] for name in unit.function.parameters]
        means = bool(function.counters) and all(asks_for_means(s.claim) for s in unit.sites)
        try:
            found = _explored(function, arguments, limits, source, span, counts=means)
        except OtherChance as error:
            raise Unrepeatable(str(error)) from None
        for value in found.weights:
            _check_kind(value, kind, source, span)
        return Choice(_ledger(found, unit), "replay", _reason(found))

    return run


def replayed_with_parameters(
    function: Marked,
    arguments: Sequence[Any],
    kind: Kind,
    unit: Unit,
    source: Source,
    limits: Limits = DEFAULT_LIMITS,
) -> Formulas:
    """Return the distributions of a function whose arguments are parameters, as functions of them.

    Args:
        function: The function.
        arguments: The parameters.
        kind: The kind of its results.
        unit: The claims about its result.
        source: Its file.
        limits: How many runs may be followed.

    Raises:
        ParameterDecides: A parameter decides something else than a probability.
        TooLarge: Its states do not end, so there are no formulas.
    """
    span = unit.expression.span
    means = bool(function.counters) and all(asks_for_means(s.claim) for s in unit.sites)
    try:
        found = _explored(function, list(arguments), limits, source, span, counts=means)
    except OtherChance as error:
        raise Unrepeatable(str(error)) from None
    if found.open:
        raise TooLarge(
            "its runs meet in too many states, and of parameters there are no bounds, only "
            "formulas; let fewer variables live, or call it with numbers",
            source,
            span,
        )
    for value in found.weights:
        _check_kind(value, kind, source, span)
    return formulas(_ledger(found, unit), found.shares, found.pivots)


def _explored(
    function: Marked,
    arguments: list[Any],
    limits: Limits,
    source: Source,
    span: Span,
    *,
    counts: bool,
) -> Outcomes:
    if function.walkers and not counts:
        alike = folded(function, arguments, limits.runs)
        if alike is not None:
            return alike
    dealing = deals(function.function)
    explorer = Explorer(function, arguments, counts=counts, most=limits.runs)
    if dealing:
        explorer.most_steps = _BRIEF
    try:
        found = explorer.explore()
        if dealing and explorer.failure is None and found.open > PRECISE:
            seen = glimpsed(function, arguments, counts=counts, most=limits.runs)
            if seen is not None and not explorer.shares:
                return seen
            explorer = Explorer(function, arguments, counts=counts, most=limits.runs)
            found = explorer.explore()
    except Uncounted:
        return _explored(function, arguments, limits, source, span, counts=False)
    if isinstance(explorer.failure, ParameterDecides):
        raise explorer.failure
    if explorer.failure is not None:
        raise failed(explorer.failure, function.function, source, span)
    if explorer.tangled:
        raise TooLarge(
            "its states lead back to each other in too many ways to solve their equations; bound "
            "what grows",
            source,
            span,
        )
    if not found.weights and found.open and not found.shares:
        raise TooLarge(
            "no run came to its end within the limits; draw only what is looked at, as in "
            "random.sample(cards, 2) in the place of a shuffle, keep how many items there are in "
            "the place of the items (rand(1, 365) <= seen: a day that was seen before), or shorten "
            "ranges",
            source,
            span,
        )
    return found


def _ledger(found: Outcomes, unit: Unit) -> Ledger:
    ledger = Ledger(
        result=dict(found.weights),
        size=found.states,
        unending=found.unending,
        open=found.open,
        rejects=found.rejected,
        holds_means=found.holds_means,
    )
    for site in unit.sites:
        known = tuple(unit.values[name] for name in site.claim.variables)
        ledger.tables[site] = {(*known, value): weight for value, weight in found.weights.items()}
    return ledger


def _reason(found: Outcomes) -> str:
    return f"its runs were followed, {found.states:,} state{'' if found.states == 1 else 's'}"


def _check_kind(value: Any, kind: Kind, source: Source, span: Span) -> None:
    if not _is_of(value, kind):
        shown = kind if isinstance(kind, str) else f"({', '.join(map(str, kind))})"
        raise ProgramTypeError(f"a possible run returns {value!r}, expected {shown}", source, span)


def _is_of(value: Any, kind: Kind) -> bool:
    if isinstance(kind, tuple):
        return (
            isinstance(value, tuple)
            and len(value) == len(kind)
            and all(_is_of(item, inner) for item, inner in zip(value, kind, strict=True))
        )
    if isinstance(value, Fraction | Ratio):  # the mean of results that count
        return kind == "int"
    return isinstance(value, bool) if kind == "bool" else isinstance(value, int | bool)


def failed(error: Exception, function: FunctionType, source: Source, span: Span) -> PathError:
    """Return the error of a run that raised one, at the line of the function that led there."""
    line = None
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename == function.__code__.co_filename and frame.lineno is not None:
            line = frame.lineno
    if line is not None:
        lines = source.text.split("\n")
        start = sum(len(text) + 1 for text in lines[: line - 1])
        indent = len(lines[line - 1]) - len(lines[line - 1].lstrip())
        span = Span(start + indent, start + len(lines[line - 1]))
    text = f": {error}" if str(error) else ""
    return PathError(
        f"a possible run raises {type(error).__name__}{text}; to leave such runs out, use "
        "prob.observe",
        source,
        span,
    )
