"""The rules of one grammar, joined: made deterministic in C, or by ``units.py``."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hagane.lexgen.c_toolchain import load_library
from hagane.lexgen.masks.units import MOST_STATES, Nfa, Unit
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
        delta: Next states by state and byte, (states, 256), -1 for none.
        accepts: Whether the rule of a state may end there, (states,).
        first_call: Where the calls of a state begin, (states + 1,).
        calls: The rule, the state after it, the least and the most repetitions, (calls, 4).
        nullable: Whether a rule of the grammar matches the empty text, (rules,).
        begins: Whether a text of a rule of the grammar may begin with a byte, (rules, 256).
    """

    starts: Mapping[int, int]
    delta: NDArray[np.int32]
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
        np.concatenate([np.zeros((0, 256), np.int32), *rows]),
        np.concatenate([np.zeros(0, np.uint8), *(unit.accepts for unit, _ in kept)]),
        np.concatenate(first),
        np.concatenate([np.zeros((0, 4), np.int32), *tables]),
        facts.nullable,
        facts.begins,
    )


@cache
def _library() -> ctypes.PyDLL:
    source = (resources.files("hagane.lexgen.masks") / "subsets.c").read_text(encoding="utf-8")
    library = ctypes.PyDLL(load_library(source)._name)
    void, number = ctypes.c_void_p, ctypes.c_int32
    library.hagane_block.restype = void
    library.hagane_block.argtypes = [
        number, void, number, void, number, void, number, void, number, void, number,
        ctypes.c_char_p, number,
    ]  # fmt: skip
    library.hagane_block_parts.restype = None
    library.hagane_block_parts.argtypes = [void, void]
    library.hagane_block_end.restype = None
    library.hagane_block_end.argtypes = [void]
    return library


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
        None without a compiler, and where a rule matches no text, has states that lead nowhere, or
        calls itself before any text.

    Raises:
        NoCompiler: C is asked for and there is no compiler.
    """
    try:
        library = _library()
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
        parts = array("q", [0] * 9)
        library.hagane_block_parts(made, parts.buffer_info()[0])
        states, calls = parts[0], parts[1]

        def copied(place: int, count: int, kind: type[np.generic]) -> NDArray[np.generic]:
            size = count * np.dtype(kind).itemsize
            return np.frombuffer(ctypes.string_at(parts[2 + place], size) if size else b"", kind)

        starts = copied(4, len(rules), np.int32).tolist()
        return Block(
            dict(zip(rules, starts, strict=True)),
            copied(0, states * 256, np.int32).reshape(-1, 256),  # type: ignore[arg-type]
            copied(1, states, np.uint8),  # type: ignore[arg-type]
            copied(2, states + 1, np.int32),  # type: ignore[arg-type]
            copied(3, calls * 4, np.int32).reshape(-1, 4),  # type: ignore[arg-type]
            copied(5, len(known), np.uint8),  # type: ignore[arg-type]
            copied(6, len(known) * 256, np.uint8).reshape(-1, 256),  # type: ignore[arg-type]
        )
    finally:
        library.hagane_block_end(made)
