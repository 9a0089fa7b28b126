"""Push-down automata over rules that call each other: the bytes, and the tokens, that may follow.

All stacks that the text so far allows are followed at once. Equal stacks are one node, so that a
choice between alternatives costs no more than the places in which they differ.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from itertools import pairwise
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hagane.lexgen.c_toolchain import load_library
from hagane.lexgen.masks.mask_index import trie_of
from hagane.lexgen.masks.rules import Automata
from hagane.lexgen.masks.vocabulary import Vocabulary
from hagane.machine import NoCompiler

# The threads of a place: a state of a rule, and the stack below it.
Threads: TypeAlias = tuple[tuple[int, Any], ...]
# A stack from the top: states to return to (count -1), or calls with their repetitions.
Frames: TypeAlias = tuple[tuple[int, int], ...]
_FRAMES = 64


class Machine(Protocol):
    """Runs the automata of rules."""

    longest: int

    def start(self, rule: int) -> Threads:
        """Return the threads before a text of a rule."""

    def advance(self, threads: Threads, text: bytes) -> Threads:
        """Return the threads after some bytes; none if no text goes on like that."""

    def ends(self, threads: Threads) -> bool:
        """Return whether the text may end."""

    def allowed(self, threads: Threads, bits: NDArray[np.uint32]) -> tuple[int, ...]:
        """Set the bits of the tokens that may follow.

        Returns:
            For each thread, how many frames of its stack were looked at.
        """

    def frames(self, thread: tuple[int, Any], most: int) -> Frames:
        """Return the frames of a thread's stack from the top, at most so many."""


@cache
def _library() -> ctypes.CDLL:
    source = (resources.files("hagane.lexgen.masks") / "pushdown.c").read_text(encoding="utf-8")
    library = load_library(source)
    void, number = ctypes.c_void_p, ctypes.c_int32
    for name, result, arguments in (
        ("hagane_machine", void, [void] * 10),
        ("hagane_machine_end", None, [void]),
        ("hagane_advance", number, [void, void, number, ctypes.c_char_p, ctypes.c_int64, void]),
        ("hagane_ends", number, [void, void, number]),
        ("hagane_allowed", number, [void, void, number, *[void] * 5, ctypes.c_int64, void, void]),
        ("hagane_frames", number, [void, number, number, void, number]),
        ("hagane_height", number, [void, number]),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def _flat(threads: Threads) -> NDArray[np.int32]:
    return np.array(threads, np.int32).reshape(-1, 2)


class CompiledMachine:
    """The automaton in C.

    Raises:
        NoCompiler: There is no C compiler.
    """

    def __init__(self, automata: Automata, vocabulary: Vocabulary):
        self._library = _library()
        self._trie = trie_of(vocabulary)
        self.longest = self._trie.longest
        self._automata = automata  # whose memory the machine reads
        self._ends = np.empty(self.longest + 3, np.int64)
        self._room = np.empty(2 * _FRAMES, np.int32)
        a = automata
        tables = (
            a.delta, a.starts, a.first_call, a.call_rule, a.call_to, a.call_low, a.call_high,
            a.accepts, a.begins, a.nullable,
        )  # fmt: skip
        self._machine = self._library.hagane_machine(*(table.ctypes.data for table in tables))
        if not self._machine:
            raise MemoryError("tables of a grammar")

    def __del__(self) -> None:
        if getattr(self, "_machine", None):
            self._library.hagane_machine_end(self._machine)

    def start(self, rule: int) -> Threads:
        """Return the threads before a text of a rule."""
        state = int(self._automata.starts[rule])
        return () if state < 0 else ((state, -1),)

    def advance(self, threads: Threads, text: bytes) -> Threads:
        """Return the threads after some bytes; none if no text goes on like that."""
        pairs = _flat(threads)
        found = ctypes.POINTER(ctypes.c_int32)()
        count = self._checked(
            self._library.hagane_advance(
                self._machine, pairs.ctypes.data, len(pairs), text, len(text), ctypes.byref(found)
            )
        )
        return tuple(sorted((found[2 * k], found[2 * k + 1]) for k in range(count)))

    def ends(self, threads: Threads) -> bool:
        """Return whether the text may end."""
        pairs = _flat(threads)
        return bool(self._library.hagane_ends(self._machine, pairs.ctypes.data, len(pairs)))

    def allowed(self, threads: Threads, bits: NDArray[np.uint32]) -> tuple[int, ...]:
        """Set the bits of the tokens that may follow; see ``Machine.allowed``."""
        pairs = _flat(threads)
        t = self._trie
        lowest = self._checked(
            self._library.hagane_allowed(
                self._machine, pairs.ctypes.data, len(pairs),
                *(a.ctypes.data for a in (t.byte, t.depth, t.after, t.first, t.ids)),
                t.nodes, self._ends.ctypes.data, bits.ctypes.data,
            )
        )  # fmt: skip
        heights = (self._library.hagane_height(self._machine, node) for _, node in threads)
        return tuple(max(height - lowest + 1, 0) for height in heights)

    def frames(self, thread: tuple[int, Any], most: int) -> Frames:
        """Return the frames of a thread's stack from the top, at most so many."""
        most = min(most, self._library.hagane_height(self._machine, thread[1]))
        room = self._room if 2 * most <= len(self._room) else np.empty(2 * most, np.int32)
        count = self._library.hagane_frames(self._machine, thread[1], 0, room.ctypes.data, most)
        return tuple((int(room[2 * k]), int(room[2 * k + 1])) for k in range(count))

    def _checked(self, result: int) -> int:
        if result < 0:
            raise MemoryError("stacks of a grammar")
        return result


class PythonMachine:
    """The same without a compiler; a stack is a chain of tuples."""

    def __init__(self, automata: Automata, vocabulary: Vocabulary):
        a = automata
        self._starts = a.starts.tolist()
        self._accepts = a.accepts.astype(bool).tolist()
        self._nullable = a.nullable.astype(bool).tolist()
        self._begins = a.begins.astype(bool)
        self._delta = a.delta
        calls = list(
            zip(
                *(c.tolist() for c in (a.call_rule, a.call_to, a.call_low, a.call_high)),
                strict=True,
            )
        )
        self._calls = calls
        self._of = [range(*pair) for pair in pairwise(a.first_call)]
        data, offsets = vocabulary.sorted_bytes
        self._tokens = [data[s:e] for s, e in pairwise(offsets)]
        self._ids = vocabulary.order
        self.longest = max(map(len, self._tokens), default=0)

    def start(self, rule: int) -> Threads:
        """Return the threads before a text of a rule."""
        return () if self._starts[rule] < 0 else ((self._starts[rule], None),)

    def advance(self, threads: Threads, text: bytes) -> Threads:
        """Return the threads after some bytes; none if no text goes on like that."""
        found = list(threads)
        for byte in text:
            found = self._step(found, byte)
        return tuple(found)

    def ends(self, threads: Threads) -> bool:
        """Return whether the text may end."""
        return any(
            below is None and self._accepts[state] for state, below in self._closed(threads, -1)
        )

    def allowed(self, threads: Threads, bits: NDArray[np.uint32]) -> tuple[int, ...]:
        """Set the bits of the tokens that may follow; see ``Machine.allowed``."""
        path = [list(threads)]
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
        return (sys.maxsize,) * len(threads)

    def frames(self, thread: tuple[int, Any], most: int) -> Frames:
        """Return the frames of a thread's stack from the top, at most so many."""
        found: list[tuple[int, int]] = []
        below = thread[1]
        while below is not None and len(found) < most:
            found.append((below[0], below[1]))
            below = below[2]
        return tuple(found)

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
