"""A small example of a difference between hagane and a simulator.

The rows before the difference are tried without each of them, and without each input (zero in
every row); one replay tries them all, a second one all removals together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hagane.symbolic.term import Term, postorder
from hagane.tools.rtl.circuit.simulate import Test
from hagane.tools.rtl.replay.replay import Difference, Replay

_MOST_ROWS = 48

Player = Callable[[Sequence[Test]], Replay | None]


def reduce_difference(
    differences: Sequence[Difference],
    signals: Mapping[str, Term],
    tests: Sequence[Test],
    kept: frozenset[str],
    play: Player,
) -> tuple[Difference, Test]:
    """Return the first difference nearest to the inputs, in the smallest test that shows it.

    ``kept`` names inputs that are not tried as zero (resets); ``play`` replays tests.
    """
    first = min((item.test, item.cycle) for item in differences)
    difference = min(
        (item for item in differences if (item.test, item.cycle) == first),
        key=lambda item: len(postorder((signals[item.signal],))),
    )
    whole = tuple(dict(row) for row in tests[difference.test][: difference.cycle + 1])
    base = whole[-_MOST_ROWS:]
    names = [name for name in base[-1] if name not in kept]
    trials: list[Test] = [base, *(_without(base, {at}) for at in range(len(base) - 1))]
    trials += [_zeroed(base, {name}) for name in names]
    shown = _showing(difference.signal, trials, play)
    if 0 not in shown:
        # The difference needs the state that earlier tests left; it stays as it is.
        return difference, whole
    rows = {at for at in range(len(base) - 1) if at + 1 in shown}
    zeros = {name for index, name in enumerate(names) if index + len(base) in shown}
    together = [
        _zeroed(_without(base, rows), zeros),
        _without(base, rows),
        _zeroed(base, zeros),
        *(trials[index] for index in sorted(shown, key=lambda index: len(trials[index]))[:1]),
    ]
    shown = _showing(difference.signal, together, play)
    if not shown:
        return difference, base
    best = min(shown, key=lambda index: (len(together[index]), index))
    return shown[best], together[best]


def _without(test: Test, rows: set[int]) -> Test:
    return tuple(row for at, row in enumerate(test) if at not in rows)


def _zeroed(test: Test, names: set[str]) -> Test:
    return tuple({name: 0 if name in names else row[name] for name in row} for row in test)


def _showing(signal: str, trials: Sequence[Test], play: Player) -> dict[int, Difference]:
    """Return the trials in whose last row the signal differs, by their number."""
    replay = play(trials)
    found = {}
    for item in replay.differences if replay is not None else ():
        if item.signal == signal and item.cycle == len(trials[item.test]) - 1:
            found[item.test] = item
    return found


def described(difference: Difference, test: Test) -> str:
    """Return the reduced example as text, a row of inputs after the other."""
    rows = "; ".join(
        ", ".join(f"{name}=0x{value:x}" for name, value in row.items()) for row in test
    )
    count = "1 row" if len(test) == 1 else f"{len(test)} rows"
    return (
        f"reduced to {count} of inputs: '{difference.signal}' is 0x{difference.theirs:x} in the "
        f"simulator, 0x{difference.ours:x} in hagane, after {rows}"
    )
