"""Loops found in runs: inputs held until only some registers move, by constant amounts."""

from __future__ import annotations

import time
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from hagane.tools.rtl.proofs.loops import Loop, rounds_of, targets

if TYPE_CHECKING:
    from hagane.tools.rtl.compiled.engine import Words
    from hagane.tools.rtl.proofs.circuit import Circuit
    from hagane.tools.rtl.search.corpus import Node
    from hagane.tools.rtl.search.search import Search

_SETTLING = 16  # rows that are held before a loop may begin
_LONGEST = 12  # cycles of a loop
_MOST_NODES = 48
_MOST_ALIKE = 24  # loops that move the same registers in the same way
_SECONDS = 2.0  # of the solver for one loop


def accelerate(search: Search, circuit: Circuit, seconds: float) -> int:
    """Look for loops in states reached, and go on from where they lead; return the finds."""
    stop = time.monotonic() + min(seconds, search.time_left())
    tried: Counter[tuple[object, ...]] = Counter()
    seen: set[tuple[object, ...]] = set()
    fresh = 0
    nodes = search.corpus.nodes
    chosen = [nodes[0], *nodes[1:][-_MOST_NODES:][::-1]]
    for node in chosen:
        for row in _rows(search, node):
            if time.monotonic() > stop or not search.open:
                return fresh
            for loop, begin in _loops(search, node, row):
                # Inputs that are held may decide how long a counter goes on.
                moves = (loop.period, tuple(sorted(loop.steps.items())))
                held = (*moves, tuple(sorted(loop.row.items())))
                if held in seen or tried[moves] >= _MOST_ALIKE:
                    continue
                seen.add(held)
                tried[moves] += 1
                rounds = rounds_of(circuit, loop, _SECONDS)
                if rounds > 2 and (*moves, rounds) not in seen:
                    seen.add((*moves, rounds))
                    fresh += _follow(search, circuit, node, loop, begin, rounds, row)
    return fresh


def _rows(search: Search, node: Node) -> list[Words]:
    """Return rows worth holding in a state."""
    rows = [node.rows[-1]] if len(node.rows) else []
    rows.append(search.engine.rows([_resting(search)])[0])
    rows += list(search.engine.random_rows(search.random.getrandbits(60), 2))
    return rows


def _resting(search: Search) -> dict[str, int]:
    return {reset.name: 1 - reset.active for reset in search.model.resets}


def _loops(search: Search, node: Node, row: Words) -> list[tuple[Loop, int]]:
    """Return loops that a held row leads to, and after how many rows they begin."""
    engine = search.engine
    rows = np.repeat(row[None, :], _SETTLING + 3 * _LONGEST + 1, axis=0)
    for reset in search.model.resets:
        if engine.test(row[None, :])[0][reset.name] == reset.active:
            return []
    states = [engine.values(state) for state in engine.states(rows, node.state)]
    widths = {name: max(1, term.width) for name, term in search.model.state.items()}
    first = states[_SETTLING]
    for period in range(1, _LONGEST + 1):
        later = [states[_SETTLING + k * period] for k in (1, 2, 3)]
        steps = {}
        for name, width in widths.items():
            size = 1 << width
            step = (later[0][name] - first[name]) % size
            if any((b[name] - a[name]) % size != step for a, b in pairwise(later)):
                break
            if step and width > 64:
                break
            if step:
                steps[name] = step
        else:
            if steps:
                held = engine.test(row[None, :])[0]
                return [(Loop(first, held, period, steps), _SETTLING + 1)]
            return []
    return []


def _follow(
    search: Search,
    circuit: Circuit,
    node: Node,
    loop: Loop,
    begin: int,
    rounds: int,
    row: Words,
) -> int:
    """Go on from states along a loop: where a goal is met there, and where the loop ends."""
    engine, fresh = search.engine, 0
    most = search.budget.replayed_rows(len(search.model.signals)) // 4

    def go(target: int, last: Words) -> int:
        length = begin + target * loop.period
        if length <= most:
            held = np.repeat(row[None, :], length, axis=0)
            return search.corpus.add(node, np.concatenate([held, last[None, :]])) is not None
        state = engine.state(loop.after(circuit, target))
        return search.corpus.jump(node, state, last, length) is not None

    literals = {
        engine.bit_of[goal]: circuit.bits(search.goals[goal])[0] for goal in search.open_goals()
    }
    asked = targets(circuit, loop, rounds, literals, _SECONDS)
    try:
        target, chosen = next(asked)
        while search.time_left() > 0:
            fresh += go(target, engine.rows([chosen])[0])
            target, chosen = asked.send([engine.bit_of[goal] for goal in search.open_goals()])
    except StopIteration:
        pass
    for target in (rounds, rounds - 1, rounds // 2):
        fresh += go(target, row)
    return fresh
