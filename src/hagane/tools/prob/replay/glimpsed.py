"""The runs of a function that deals cards: items are drawn as far as it looks at them.

Each run is compared with one that has all its items, as chance has it, in another order where the
order makes no difference. Where the two differ (the program asks for the type of an item, say) the
function is followed with all items drawn.
"""

from __future__ import annotations

import dis
import random
import sys
from collections.abc import Sequence
from fractions import Fraction
from types import CodeType, FunctionType
from typing import Any

from hagane.tools.prob.replay.explore import PRECISE, Explorer
from hagane.tools.prob.replay.marked import Marked
from hagane.tools.prob.replay.older import outside
from hagane.tools.prob.replay.outcomes import Outcomes
from hagane.tools.prob.replay.runs import Run
from hagane.tools.prob.replay.unseen import Pool, Unfit, Unseen

_DEALING = frozenset(("sample", "shuffle"))
# Of these a stand-in is told from an item, and no question is asked.
_TELLING = frozenset(("type", "id"))
_FEW_RUNS = 50  # are compared several times
_chance = random.Random(0)  # of what is not looked at in comparisons


class GlimpsingRun(Run):
    """A run whose dealt items are drawn as far as it looks at them."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.pools: list[Pool] = []
        self.looks: set[int] = set()

    def look(self, shares: Sequence[Fraction]) -> int:
        """Return the answer to a question."""
        self.looks.add(self.at)
        return self.weighted(shares)

    def dealt(self, items: Sequence[Any], count: int) -> list[Any]:
        """Return some of the items, in any order."""
        pool = Pool(items, count)
        self.pools.append(pool)
        return pool.views()

    def unordered(self, hand: Any) -> Any:
        """Return a hand whose order makes no difference."""
        if type(hand) is list and all(type(item) is Unseen for item in hand) and hand:
            slots = [item._slot for item in hand]
            if len({id(slot.pool) for slot in slots}) == 1 == max(map(slots.count, slots)):
                slots[0].pool.alike(slots)
        return hand


class _Compared(Run):
    """A run with the same draws, and items that are all there."""

    def __init__(self, chain: Explorer, hands: Sequence[list[Any]]) -> None:
        super().__init__(chain, 0, (), Fraction(1), 1.0)
        self.hands = iter(hands)

    def dealt(self, items: Sequence[Any], count: int) -> list[Any]:
        """Return the next hand."""
        return next(self.hands)


class GlimpsingExplorer(Explorer):
    """Follows such runs."""

    run = GlimpsingRun

    def ended(self, run: Run, value: Any, failure: Exception | None) -> None:
        """Compare a run.

        Raises:
            Unfit: The run with all items comes to something else.
        """
        assert isinstance(run, GlimpsingRun)
        for _ in range(4 if self.runs < _FEW_RUNS else 1):
            hands = [pool.completed(_chance.shuffle) for pool in run.pools]
            again = Explorer(self.marked, self.arguments, counts=bool(self.counters), most=1)
            again.states[0].picks = tuple(
                pick for place, pick in enumerate(run.picks) if place not in run.looks
            )
            again.states[0].marks = sys.maxsize
            try:
                other: Any = again._call(_Compared(again, hands))
            except Exception as error:
                if failure is None or type(error) is not type(failure):
                    raise Unfit from None
                continue
            if failure is not None or _shape(other) != _shape(value):
                raise Unfit


def _shape(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple, tuple(map(_shape, value))
    return (type(value), getattr(value, "value", value))


def deals(function: FunctionType) -> bool:
    """Return whether a function, or one of its file that it calls, deals items."""
    return any(_DEALING & set(code.co_names) for code in _codes(function))


def _codes(function: FunctionType) -> list[CodeType]:
    others = [f for f in outside(function).values() if isinstance(f, FunctionType)]
    found = [function.__code__, *(f.__code__ for f in others)]
    for code in found:  # grows while it runs
        found += [each for each in code.co_consts if isinstance(each, CodeType)]
    return found


def glimpsed(
    marked: Marked, arguments: Sequence[Any], *, counts: bool, most: int
) -> Outcomes | None:
    """Follow the runs of a function that deals items; None if that leads nowhere."""
    for code in _codes(marked.function):
        if _TELLING & set(code.co_names):
            return None
        if any(step.opname.startswith("MATCH_") for step in dis.get_instructions(code)):
            return None
    explorer = GlimpsingExplorer(marked, arguments, counts=counts, most=most)
    try:
        found = explorer.explore()
    except Unfit:
        return None
    return found if explorer.failure is None and found.open <= PRECISE else None
