"""Inputs held for long: counters within counters come to their ends, as those of a picture do."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from hagane.tools.rtl.compiled.engine import Words
    from hagane.tools.rtl.search.corpus import Node
    from hagane.tools.rtl.search.search import Search

_PIECE = 1 << 14  # rows of one call
_MOST = 1 << 22  # rows that one row of inputs is held for
_NODES = 12  # states to hold inputs in, the start and the newest


def hold(search: Search, seconds: float) -> int:
    """Hold single rows of inputs in states reached as long as anything moves; return the finds.

    Each row is held for a share of the time; a circuit whose state comes to rest takes none.
    """
    stop = time.monotonic() + min(seconds, search.time_left())
    nodes = search.corpus.nodes
    chosen = [nodes[0], *nodes[1:][-_NODES:][::-1]]
    ways = [(node, row) for node in chosen for row in _rows(search, node)]
    fresh = 0
    for number, (node, row) in enumerate(ways):
        now = time.monotonic()
        if now > stop or not search.open:
            break
        fresh += _held(search, node, row, now + (stop - now) / min(12, len(ways) - number))
    return fresh


def _rows(search: Search, node: Node) -> list[Words]:
    """Return the rows to hold: those of quiet inputs, of one or all at 1, and those before."""
    model, engine = search.model, search.engine
    quiet = {reset.name: 1 - reset.active for reset in model.resets}
    quiet.update(dict.fromkeys(model.ticks, 1))
    free = [item.name for item in model.inputs if item.width == 1 and item.name not in quiet]
    rows = [quiet, {**quiet, **dict.fromkeys(free, 1)}]
    if node.parent is None:
        rows += [{**quiet, name: 1} for name in free[:16] if len(free) > 1]
    words = list(engine.rows(rows))
    if len(node.rows) and node.parent is not None:
        words.insert(0, node.rows[-1])
    return words + list(engine.random_rows(search.random.getrandbits(60), 1))


def _held(search: Search, node: Node, row: Words, stop: float) -> int:
    engine, corpus, fresh = search.engine, search.corpus, 0
    piece = np.repeat(row[None, :], engine.pace(_PIECE), axis=0)
    most = search.budget.replayed_rows(len(search.model.signals)) // 4
    state, length = node.state, 0
    while length < _MOST and time.monotonic() < stop:
        met, after = engine.run(piece, state)
        new = met & search.open
        if new:
            count = engine.until(piece, state, new)
            if length + count <= most:
                rows = np.repeat(row[None, :], length + count, axis=0)
                fresh += corpus.add(node, rows) is not None
            else:
                before = engine.run(piece[: count - 1], state)[1] if count > 1 else state
                fresh += corpus.jump(node, before, row, length + count) is not None
        if (after == state).all():
            break
        state, length = after, length + len(piece)
    return fresh
