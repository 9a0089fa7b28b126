"""Push-down automata over rules that call each other: the bytes, and the tokens, that may follow.

All stacks that the text so far allows are followed at once. Equal stacks are one node, so that a
choice between alternatives costs no more than the places in which they differ. C does it where
there is a compiler (``compiled_machine.py``); ``PythonMachine`` is the same in short.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Protocol, TypeAlias

import numpy as np

from hagane.lexgen.masks.machines.compiled import CompiledMachine
from hagane.lexgen.masks.rules.rules import Automata
from hagane.lexgen.masks.vocabularies.vocabulary import Vocabulary
from hagane.machine import NoCompiler


class Machine(Protocol):
    """Runs the automata of rules; places of texts are numbers, as they are met."""

    @property
    def places(self) -> int:
        """The number of places so far."""

    def start(self, rule: int) -> int:
        """Return the place before a text of a rule; -1 if there is none."""

    def advance(self, place: int, text: bytes) -> int:
        """Return the place after some bytes; -1 if no text goes on like that."""

    def take(self, place: int, token: int) -> int:
        """Return the place after a token; -1 if it is not allowed, or there is no such place."""

    def ends(self, place: int) -> bool:
        """Return whether the text may end."""

    def mask(self, place: int) -> tuple[bytearray, bool]:
        """Return the bits of the tokens that may follow, and whether the text may end.

        The bits are 32-bit words of this machine's byte order, which the caller may change.

        Raises:
            LookupError: There is no such place.
        """


# The threads of a place: a state of a rule, and the stack below it.
_Threads: TypeAlias = tuple[tuple[int, Any], ...]


class PythonMachine:
    """The same without a compiler; a stack is a chain of tuples."""

    def __init__(self, automata: Automata, vocabulary: Vocabulary):
        a = automata
        self._starts = a.starts.tolist()
        self._accepts = a.accepts.astype(bool).tolist()
        self._nullable = a.nullable.astype(bool).tolist()
        self._begins = a.begins.astype(bool)
        self._delta = np.full((len(a.accepts), 256), -1, np.int32)
        for state, (first, last) in enumerate(pairwise(a.first_span.tolist())):
            for low, high, to in a.spans[first:last].tolist():
                self._delta[state, low : high + 1] = to
        self._calls = a.calls.tolist()
        self._of = [range(*pair) for pair in pairwise(a.first_call)]
        data, offsets = vocabulary.sorted_bytes
        self._tokens = [data[s:e] for s, e in pairwise(offsets)]
        self._ids = vocabulary.order
        self._words = (len(vocabulary) + 31) // 32
        self._texts = vocabulary.tokens
        self._threads: list[_Threads] = []
        self._numbers: dict[_Threads, int] = {}

    @property
    def places(self) -> int:
        """The number of places so far."""
        return len(self._threads)

    def start(self, rule: int) -> int:
        """Return the place before a text of a rule; -1 if there is none."""
        return -1 if self._starts[rule] < 0 else self._place([(self._starts[rule], None)])

    def advance(self, place: int, text: bytes) -> int:
        """Return the place after some bytes; -1 if no text goes on like that."""
        found = list(self._threads[place])
        for byte in text:
            found = self._step(found, byte)
        return self._place(found)

    def take(self, place: int, token: int) -> int:
        """Return the place after a token; -1 if it is not allowed, or there is no such place."""
        text = self._texts[token] if 0 <= token < len(self._texts) else None
        return self.advance(place, text) if text and 0 <= place < len(self._threads) else -1

    def ends(self, place: int) -> bool:
        """Return whether the text may end."""
        return any(
            below is None and self._accepts[state]
            for state, below in self._closed(self._threads[place], -1)
        )

    def mask(self, place: int) -> tuple[bytearray, bool]:
        """Return the bits of the tokens that may follow, and whether the text may end.

        The bits are 32-bit words of this machine's byte order, which the caller may change.

        Raises:
            LookupError: There is no such place.
        """
        if not 0 <= place < len(self._threads):
            raise LookupError(place)
        bits = np.zeros(self._words, np.uint32)
        path = [list(self._threads[place])]
        previous = b""
        for id, token in zip(self._ids.tolist(), self._tokens, strict=True):
            common = 0
            for a, b in zip(token, previous, strict=False):
                if a != b:
                    break
                common += 1
            del path[min(common, len(path) - 1) + 1 :]
            previous = token
            if len(path) <= common and not path[-1]:
                continue
            for byte in token[len(path) - 1 :]:
                path.append(self._step(path[-1], byte))
                if not path[-1]:
                    break
            if path[-1]:
                bits[id >> 5] |= np.uint32(1 << (id & 31))
        return bytearray(bits.tobytes()), self.ends(place)

    def _place(self, found: Sequence[tuple[int, Any]]) -> int:
        threads = tuple(found)
        if not threads:
            return -1
        number = self._numbers.get(threads)
        if number is None:
            number = self._numbers[threads] = len(self._threads)
            self._threads.append(threads)
        return number

    def _step(self, threads: Sequence[tuple[int, Any]], byte: int) -> list[tuple[int, Any]]:
        found: dict[tuple[int, Any], None] = {}
        for state, below in self._closed(threads, byte):
            to = int(self._delta[state, byte])
            if to >= 0:
                found[to, below] = None
        return list(found)

    def _closed(self, threads: Sequence[tuple[int, Any]], byte: int) -> list[tuple[int, Any]]:
        """Return threads and every one that they become without reading."""
        work = dict.fromkeys(threads)
        order = list(work)
        for state, below in order:  # grows while it runs
            more: list[tuple[int, Any]] = []
            for call in self._of[state]:
                rule, to, low, high = self._calls[call]
                if low == high == 1:
                    if self._nullable[rule]:
                        more.append((to, below))
                    if byte >= 0 and self._begins[rule, byte]:
                        more.append((self._starts[rule], (to, -1, below)))
                else:
                    more += self._between(call, 0, below, byte)
            if self._accepts[state] and below is not None:
                what, count, parent = below
                more += [(what, parent)] if count < 0 else self._between(what, count, parent, byte)
            for thread in more:
                if thread not in work:
                    work[thread] = None
                    order.append(thread)
        return order

    def _between(self, call: int, count: int, parent: Any, byte: int) -> Iterator[tuple[int, Any]]:
        rule, to, low, high = self._calls[call]
        if count >= low or self._nullable[rule]:
            yield to, parent
        if (high < 0 or count < high) and byte >= 0 and self._begins[rule, byte]:
            following = count if high < 0 and count >= low else count + 1
            yield self._starts[rule], (call, following, parent)


def make_machine(automata: Automata, vocabulary: Vocabulary, native: bool | None = None) -> Machine:
    """Return the fastest machine there is; ``native`` insists on C (True) or Python (False).

    Raises:
        NoCompiler: C is asked for and there is no compiler.
    """
    if native is False:
        return PythonMachine(automata, vocabulary)
    try:
        return CompiledMachine(automata, vocabulary)
    except NoCompiler:
        if native:
            raise
        return PythonMachine(automata, vocabulary)
