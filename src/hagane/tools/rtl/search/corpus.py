"""The runs that met something new, as a tree: each begins where another one ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hagane.tools.rtl.compiled.engine import Engine, Words


@dataclass(eq=False, slots=True)
class Node:
    """A run: rows from the state in which its parent ended.

    ``met`` are the bits of the goals that the way here from the start of a test meets, ``length``
    its rows. ``depth`` says how many cycles ahead no open goal was, by a solver. Where ``jump`` is
    not 0, so many of the rows are rounds of a loop that no run took.
    """

    parent: Node | None
    rows: Words
    state: Words
    met: int
    length: int
    depth: int = 0
    jump: int = 0

    def path(self) -> Words:
        """Return all rows from the start of a test."""
        parts, node = [], self
        while True:
            parts.append(node.rows)
            if node.parent is None:
                return np.concatenate(parts[::-1])
            node = node.parent


class Corpus:
    """All runs that met something new.

    Args:
        engine: The compiled circuit.
        prologue: The rows that every test begins with.
    """

    def __init__(self, engine: Engine, prologue: Words):
        self.engine = engine
        if len(prologue):
            met, state = engine.run(prologue, engine.warm(prologue[0]))
        else:
            met, state = 0, engine.warm(np.zeros(engine.row_words, np.uint64))
        self.root = Node(None, prologue, state, met, len(prologue))
        self.nodes = [self.root]
        self.met = met
        self.jumped = 0
        self.sequential = engine.model.sequential

    def add(self, parent: Node, rows: Words) -> Node | None:
        """Run rows from where a node ends; keep the run if it meets anything new."""
        met, state = self.engine.run(rows, parent.state)
        if not met & ~self.met & ~self.jumped:
            return None
        if parent.jump:
            self.jumped |= met
        else:
            self.met |= met
        node = Node(parent, rows, state, met | parent.met, parent.length + len(rows))
        node.jump = parent.jump
        self.nodes.append(node)
        return node

    def jump(self, parent: Node, state: Words, row: Words, rows: int) -> Node | None:
        """Keep a state that a loop of so many rows leads to, if a row there meets anything new."""
        met, after = self.engine.run(row[None, :], state)
        if not met & ~self.met & ~self.jumped:
            return None
        self.jumped |= met
        node = Node(parent, row[None, :], after, met, parent.length + rows, jump=parent.jump + rows)
        self.nodes.append(node)
        return node

    def starts(self, most: int) -> tuple[Words, list[Node]]:
        """Return the states to run on from: the first, and the newest."""
        if not self.sequential:
            return self.root.state[None, :], [self.root]
        chosen = [self.root, *self.nodes[1:][-most:]]
        return np.stack([node.state for node in chosen]), chosen

    def fewest(self, wanted: int) -> list[Node]:
        """Return few nodes whose ways together meet the wanted bits, as far as any do."""
        left, chosen = wanted, []
        pool = [(node, node.met & wanted) for node in self.nodes if not node.jump]
        while left and pool:
            pool = [(node, met & left) for node, met in pool if met & left]
            if not pool:
                break
            best, met = max(
                pool,
                key=lambda item: (item[1].bit_count() * 1000 // (20 + item[0].length), item[1]),
            )
            chosen.append(best)
            left &= ~met
        return _needed(chosen, wanted)


def _needed(nodes: Sequence[Node], wanted: int) -> list[Node]:
    """Return the nodes without those whose goals the others meet."""
    kept = list(nodes)
    for node in sorted(nodes, key=lambda item: -item.length):
        rest = 0
        for other in kept:
            if other is not node:
                rest |= other.met
        if not node.met & wanted & ~rest:
            kept.remove(node)
    return kept
