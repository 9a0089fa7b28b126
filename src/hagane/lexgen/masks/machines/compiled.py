"""The push-down automaton of a grammar in C (``c/``)."""

from __future__ import annotations

import ctypes
from functools import partial

from hagane.lexgen.masks.library import grammar_library
from hagane.lexgen.masks.rules.rules import Automata
from hagane.lexgen.masks.vocabularies.vocabulary import Vocabulary


class _Store:
    """A vocabulary as a trie, and what is known of states that many grammars have."""

    def __init__(self, vocabulary: Vocabulary):
        self._functions = grammar_library().functions
        ids = vocabulary.order
        data, offsets = vocabulary.sorted_bytes
        self._memory = ids, data, offsets  # which it reads
        self.pointer = self._functions.hagane_store(
            data, offsets.ctypes.data, len(ids), ids.ctypes.data, len(vocabulary)
        )
        if not self.pointer:
            raise MemoryError("trie of a vocabulary")

    def __del__(self) -> None:
        if getattr(self, "pointer", None):
            self._functions.hagane_store_end(self.pointer)


_stores: dict[int, tuple[Vocabulary, _Store]] = {}


def _store_of(vocabulary: Vocabulary) -> _Store:
    """Return the vocabulary's store, made once for the last few vocabularies."""
    known = _stores.get(id(vocabulary))
    if known is not None and known[0] is vocabulary:
        return known[1]
    made = _Store(vocabulary)
    while len(_stores) >= 4:
        del _stores[next(iter(_stores))]
    _stores[id(vocabulary)] = (vocabulary, made)
    return made


class CompiledMachine:
    """The automaton in C; the methods are those of ``Machine``.

    Raises:
        NoCompiler: There is no C compiler.
    """

    def __init__(self, automata: Automata, vocabulary: Vocabulary):
        library = grammar_library()
        self._functions = library.functions
        self._store = _store_of(vocabulary)
        self._automata = a = automata  # whose memory the machine reads
        self._bytes = (len(vocabulary) + 31) // 32 * 4
        tables = (
            a.first_span, a.spans, a.starts, a.first_call, a.calls, a.shared, a.accepts, a.begins,
            a.nullable,
        )  # fmt: skip
        self._machine = self._functions.hagane_machine(
            self._store.pointer,
            len(a.accepts),
            *(table.__array_interface__["data"][0] for table in tables),
        )
        if not self._machine:
            raise MemoryError("tables of a grammar")
        if library.steps is not None:
            # In place of the methods below; both last as long as their machine's owner.
            self.take = partial(library.steps.take, self._machine)  # type: ignore[method-assign]
            self.mask = partial(library.steps.mask, self._machine)  # type: ignore[method-assign]

    def __del__(self) -> None:
        if getattr(self, "_machine", None):
            self._functions.hagane_machine_end(self._machine)

    @property
    def places(self) -> int:
        """The number of places so far."""
        return int(self._functions.hagane_places(self._machine))

    def start(self, rule: int) -> int:
        """Return the place before a text of a rule; -1 if there is none."""
        return _checked(self._functions.hagane_start(self._machine, rule))

    def advance(self, place: int, text: bytes) -> int:
        """Return the place after some bytes; -1 if no text goes on like that."""
        return _checked(self._functions.hagane_advance(self._machine, place, text, len(text)))

    def ends(self, place: int) -> bool:
        """Return whether the text may end."""
        return bool(self._functions.hagane_ends(self._machine, place))

    def take(self, place: int, token: int) -> int:
        """Return the place after a token; -1 if it is not allowed, or there is no such place."""
        if not -1 <= token < 2**31:  # ctypes would cut it off
            return -1
        return _checked(self._functions.hagane_take(self._machine, place, token))

    def mask(self, place: int) -> tuple[bytearray, bool]:
        """Return the bits of the tokens that may follow, and whether the text may end.

        The bits are 32-bit words of this machine's byte order, which the caller may change.

        Raises:
            LookupError: There is no such place.
        """
        if not 0 <= place < self.places:
            raise LookupError(place)
        bits = bytearray(self._bytes)
        memory = (ctypes.c_char * self._bytes).from_buffer(bits)
        ends = self._functions.hagane_mask(self._machine, place, ctypes.addressof(memory))
        if ends < 0:
            raise MemoryError("masks of a grammar")
        return bits, ends == 1


def _checked(result: int) -> int:
    if result < -1:
        raise MemoryError("stacks of a grammar")
    return result
