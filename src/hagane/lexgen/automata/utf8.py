"""Automata over code points to automata over the bytes of UTF-8."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hagane.lexgen.automata.alphabet import Alphabet
from hagane.lexgen.automata.dfa import DEAD, Dfa
from hagane.lexgen.expressions.charset import END, MAX

END_BYTE = 256
_LENGTH_LIMITS = (0x7F, 0x7FF, 0xFFFF, MAX)


def utf8_sequences(low: int, high: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """Yield sequences of byte ranges that together match the UTF-8 forms of a range.

    Surrogates have no UTF-8 form and are left out.
    """
    stack = [(low, high)]
    while stack:
        low, high = stack.pop()
        if low <= 0xDFFF and high >= 0xD800:
            if high > 0xDFFF:
                stack.append((0xE000, high))
            if low >= 0xD800:
                continue
            high = 0xD7FF
        limit = next(limit for limit in _LENGTH_LIMITS if low <= limit)
        if high > limit:
            stack.append((limit + 1, high))
            high = limit
        for shift in (6, 12, 18):
            mask = (1 << shift) - 1
            if limit == 0x7F or low >> shift == high >> shift:
                continue
            # A byte range may precede others only if those are full.
            if low & mask:
                stack.append(((low | mask) + 1, high))
                high = low | mask
                break
            if high & mask != mask:
                stack.append((high & ~mask, high))
                high = (high & ~mask) - 1
                break
        else:
            yield tuple(zip(chr(low).encode(), chr(high).encode(), strict=True))
            continue
        stack.append((low, high))


def byte_dfa(dfa: Dfa) -> Dfa:
    """Return the automaton over bytes that matches the UTF-8 forms of the texts of ``dfa``.

    The states of ``dfa`` keep their numbers; states inside of characters follow. A minimal
    automaton gives a minimal one: equal ways through a character are made once. The last class is
    that of the end of the input; bytes that are no UTF-8 lead nowhere.
    """
    nodes: dict[tuple[tuple[int, int, int], ...], int] = {}
    rows: list[list[int]] = []
    inner: list[list[int]] = []

    def node(
        sequences: list[tuple[tuple[tuple[int, int], ...], int]],
    ) -> tuple[tuple[int, int, int], ...]:
        """Group sequences by their first byte; return (low, high, next state)."""
        groups: dict[tuple[int, int], list[tuple[tuple[tuple[int, int], ...], int]]] = {}
        edges = []
        for sequence, to in sequences:
            if len(sequence) == 1:
                edges.append((*sequence[0], to))
            else:
                groups.setdefault(sequence[0], []).append((sequence[1:], to))
        for (low, high), rest in groups.items():
            key = node(rest)
            if key not in nodes:
                nodes[key] = dfa.n_states + len(inner)
                inner.append(_row(key))
            edges.append((low, high, nodes[key]))
        return tuple(sorted(edges))

    stops = (*dfa.alphabet.starts[1:], END)
    intervals = [
        (start, stop - 1, id)
        for start, stop, id in zip(dfa.alphabet.starts, stops, dfa.alphabet.ids, strict=True)
        if start < END
    ]
    spelled = [(list(utf8_sequences(low, high)), id) for low, high, id in intervals]
    for row in dfa.delta:
        found = [(s, row[id]) for sequences, id in spelled if row[id] >= 0 for s in sequences]
        made = _row(node(found))
        made[END_BYTE] = row[dfa.alphabet.end_class]
        rows.append(made)
    rows += inner
    return _over_classes(dfa, rows)


def _row(edges: tuple[tuple[int, int, int], ...]) -> list[int]:
    row = [DEAD] * (END_BYTE + 1)
    for low, high, to in edges:
        row[low : high + 1] = [to] * (high - low + 1)
    return row


def _over_classes(dfa: Dfa, rows: list[list[int]]) -> Dfa:
    columns = list(zip(*rows, strict=True))
    known: dict[tuple[int, ...], int] = {}
    ids = [known.setdefault(column, len(known)) for column in columns[:END_BYTE]]
    nowhere = known.setdefault((DEAD,) * len(rows), len(known))
    alphabet = Alphabet((*range(END_BYTE + 1), END), (*ids, nowhere, len(known)), len(known) + 1)
    representatives = list(known)
    delta = [
        [column[state] for column in representatives] + [rows[state][END_BYTE]]
        for state in range(len(rows))
    ]
    accepts = dfa.accepts + [()] * (len(rows) - dfa.n_states)
    return replace(dfa, alphabet=alphabet, delta=delta, accepts=accepts)


def byte_rows(dfa: Dfa) -> list[list[int]]:
    """Return a byte automaton as rows of 257 next states, the last one for the end of the input."""
    ids = dfa.alphabet.ids[:END_BYTE]
    end = dfa.alphabet.end_class
    return [[*(row[id] for id in ids), row[end]] for row in dfa.delta]
