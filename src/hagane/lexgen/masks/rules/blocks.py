"""The rules of one grammar, joined: made deterministic in C, or by ``units.py``."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hagane.lexgen.masks.library import grammar_library
from hagane.lexgen.masks.rules.units import MOST_STATES, Nfa, Unit
from hagane.machine import NoCompiler


class Facts(Protocol):
    """Facts of rules by number, of which those of modules are known."""

    ends: NDArray[np.uint8]
    nullable: NDArray[np.uint8]
    begins: NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Block:
    """Rules with their states numbered together, and facts of all rules of the grammar.

    Attributes:
        starts: The first state of each rule of the block; -1 where it matches no text.
        first_span: Where the spans of a state begin, (states + 1,).
        spans: The first byte, the last one, the state after them, (spans, 3).
        accepts: Whether the rule of a state may end there, (states,).
        first_call: Where the calls of a state begin, (states + 1,).
        calls: The rule, the state after it, the least and the most repetitions, (calls, 4).
        nullable: Whether a rule of the grammar matches the empty text, (rules,).
        begins: Whether a text of a rule of the grammar may begin with a byte, (rules, 256).
    """

    starts: Mapping[int, int]
    first_span: NDArray[np.int32]
    spans: NDArray[np.int32]
    accepts: NDArray[np.uint8]
    first_call: NDArray[np.int32]
    calls: NDArray[np.int32]
    nullable: NDArray[np.uint8]
    begins: NDArray[np.uint8]


def joined(units: Mapping[int, Unit], facts: Facts) -> Block:
    """Return the units of rules as a block."""
    starts, states = {}, 0
    kept = []
    for rule, unit in units.items():
        starts[rule] = -1 if unit.empty else states
        if not unit.empty:
            kept.append((unit, states))
            states += unit.states
    first, seen = [np.zeros(1, np.int32)], 0
    for unit, _ in kept:
        first.append(unit.first_call[1:] + np.int32(seen))
        seen += len(unit.calls)
    tables = [unit.calls + np.array([0, at, 0, 0], np.int32) for unit, at in kept]
    rows = [np.where(unit.delta < 0, np.int32(-1), unit.delta + np.int32(at)) for unit, at in kept]
    return Block(
        starts,
        *_spans_of(np.concatenate([np.zeros((0, 256), np.int32), *rows])),
        np.concatenate([np.zeros(0, np.uint8), *(unit.accepts for unit, _ in kept)]),
        np.concatenate(first),
        np.concatenate([np.zeros((0, 4), np.int32), *tables]),
        facts.nullable,
        facts.begins,
    )


def _spans_of(delta: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return where the spans of each state begin, and the spans."""
    edge = np.ones((len(delta), 257), np.bool_)
    edge[:, 1:256] = delta[:, 1:] != delta[:, :-1]
    state, low = np.nonzero(edge[:, :256])
    high = np.nonzero(edge[:, 1:])[1]
    to = delta[state, low]
    kept = to >= 0
    first = np.zeros(len(delta) + 1, np.int32)
    np.cumsum(np.bincount(state[kept], minlength=len(delta)), out=first[1:])
    return first, np.stack([low[kept], high[kept], to[kept]], axis=1).astype(np.int32)


def compile_block(
    nfa: Nfa,
    rules: Mapping[int, tuple[int, int]],
    facts: Facts,
    usable: frozenset[int],
    native: bool,
) -> Block | None:
    """Return the rules of a grammar, made deterministic in C.

    Args:
        nfa: Their edges.
        rules: The first and the last state of each.
        facts: Of the grammar's rules.
        usable: The bytes that texts may have.
        native: Insist on C.

    Returns:
        None without a compiler, with too many states, and where a rule calls itself before any
        text.

    Raises:
        NoCompiler: C is asked for and there is no compiler.
    """
    try:
        library = grammar_library().functions
    except NoCompiler:
        if native:
            raise
        return None
    lists = [array("i", numbers) for numbers in (nfa.bytes, nfa.free, nfa.calls)]
    units = array("i", [n for rule, ends in rules.items() for n in (rule, *ends)])
    known = np.concatenate([facts.ends[:, None], facts.nullable[:, None], facts.begins], axis=1)
    mask = bytearray(256)
    for byte in usable:
        mask[byte] = 1
    places = [each.buffer_info()[0] for each in lists]
    made = library.hagane_block(
        nfa.states, places[0], len(lists[0]) // 4, places[1], len(lists[1]) // 2,
        places[2], len(lists[2]) // 5, units.buffer_info()[0], len(rules),
        known.__array_interface__["data"][0], len(known), bytes(mask), MOST_STATES,
    )  # fmt: skip
    if not made:
        return None
    try:
        parts = array("q", [0] * 11)
        library.hagane_block_parts(made, parts.buffer_info()[0])
        states, spans, calls = parts[:3]

        def copied(place: int, count: int, kind: type[np.generic] = np.int32) -> NDArray[Any]:
            size = count * np.dtype(kind).itemsize
            text = ctypes.string_at(parts[3 + place], size) if size else b""
            return np.frombuffer(text, kind)

        starts = copied(5, len(rules)).tolist()
        return Block(
            dict(zip(rules, starts, strict=True)),
            copied(0, states + 1),
            copied(1, spans * 3).reshape(-1, 3),
            copied(2, states, np.uint8),
            copied(3, states + 1),
            copied(4, calls * 4).reshape(-1, 4),
            copied(6, len(known), np.uint8),
            copied(7, len(known) * 256, np.uint8).reshape(-1, 256),
        )
    finally:
        library.hagane_block_end(made)
