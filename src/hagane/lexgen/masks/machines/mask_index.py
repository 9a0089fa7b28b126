"""Which tokens a state of a byte automaton allows: one walk over a trie of the vocabulary a state.

The walk is C where there is a compiler. Without one, NumPy advances all tokens together, byte by
byte.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hagane.lexgen.c_toolchain import load_library
from hagane.lexgen.masks.vocabularies.vocabulary import Vocabulary
from hagane.machine import NoCompiler

_SOURCE = """\
#include <stdint.h>
#include <string.h>

/* Builds the trie of sorted strings in preorder; returns the number of nodes. Node 0 is the first
   child of the root. first[k] counts the strings that end before node k. */
int64_t hagane_trie(const uint8_t *data, const int64_t *offsets, int64_t count, uint8_t *byte,
                    uint16_t *depth, int32_t *after, int32_t *first, int32_t *path)
{
  int64_t nodes = 0, open = 0;
  for (int64_t k = 0; k < count; k++) {
    const uint8_t *token = data + offsets[k];
    int64_t length = offsets[k + 1] - offsets[k], common = 0;
    while (common < open && common < length && byte[path[common]] == token[common]) common++;
    while (open > common) after[path[--open]] = (int32_t)nodes;
    for (; open < length; open++) {
      byte[nodes] = token[open];
      depth[nodes] = (uint16_t)open;
      first[nodes] = (int32_t)k;
      path[open] = (int32_t)nodes++;
    }
  }
  while (open > 0) after[path[--open]] = (int32_t)nodes;
  first[nodes] = (int32_t)count;
  return nodes;
}

/* Sets the bit of each token that leads from a state to a usable one, and marks where they lead. */
void hagane_mask(const int32_t *delta, int32_t state, const uint8_t *usable, const uint8_t *byte,
                 const uint16_t *depth, const int32_t *after, const int32_t *first,
                 const int32_t *ids, int64_t nodes, int32_t *path, uint32_t *bits, uint8_t *reached)
{
  path[0] = state;
  for (int64_t k = 0; k < nodes;) {
    int64_t at = depth[k];
    int32_t to = delta[(int64_t)path[at] * 256 + byte[k]];
    if (to < 0) { k = after[k]; continue; }
    path[at + 1] = to;
    if (first[k + 1] > first[k] && usable[to]) {
      reached[to] = 1;
      for (int32_t t = first[k]; t < first[k + 1]; t++)
        bits[(uint32_t)ids[t] >> 5] |= (uint32_t)1 << (ids[t] & 31);
    }
    k++;
  }
}
"""


class Walker(Protocol):
    """Finds the tokens that a state allows."""

    def row(
        self, state: int, usable: NDArray[np.uint8], bits: NDArray[np.uint32]
    ) -> NDArray[np.int64]:
        """Set the bits of the tokens that lead to usable states; return those states."""


@cache
def _library() -> ctypes.CDLL:
    library = load_library(_SOURCE)
    library.hagane_trie.restype = ctypes.c_int64
    library.hagane_trie.argtypes = [
        ctypes.c_char_p,
        ctypes.c_void_p,
        ctypes.c_int64,
        *[ctypes.c_void_p] * 5,
    ]
    library.hagane_mask.restype = None
    library.hagane_mask.argtypes = [
        ctypes.c_void_p,
        ctypes.c_int32,
        *[ctypes.c_void_p] * 6,
        ctypes.c_int64,
        *[ctypes.c_void_p] * 3,
    ]
    return library


class Trie:
    """A vocabulary as a trie in preorder.

    Raises:
        NoCompiler: There is no C compiler.
    """

    def __init__(self, vocabulary: Vocabulary):
        data, offsets = vocabulary.sorted_bytes
        room = len(data) + 1
        self.longest = int(np.diff(offsets).max()) if len(offsets) > 1 else 0
        self.byte = np.empty(room, np.uint8)
        self.depth = np.empty(room, np.uint16)
        self.after = np.empty(room, np.int32)
        self.first = np.empty(room + 1, np.int32)
        path = np.empty(self.longest + 1, np.int32)
        self.ids = vocabulary.order
        self.nodes = _library().hagane_trie(
            data,
            offsets.ctypes.data,
            len(offsets) - 1,
            *(a.ctypes.data for a in (self.byte, self.depth, self.after, self.first, path)),
        )


_tries: dict[int, tuple[Vocabulary, Trie]] = {}


def trie_of(vocabulary: Vocabulary) -> Trie:
    """Return the vocabulary's trie, made once for the last few vocabularies."""
    known = _tries.get(id(vocabulary))
    if known is not None and known[0] is vocabulary:
        return known[1]
    made = Trie(vocabulary)
    while len(_tries) >= 4:
        del _tries[next(iter(_tries))]
    _tries[id(vocabulary)] = (vocabulary, made)
    return made


class TrieWalker:
    """The walk in C.

    Raises:
        NoCompiler: There is no C compiler.
    """

    def __init__(self, delta: NDArray[np.int32], vocabulary: Vocabulary):
        self.trie = trie_of(vocabulary)
        self.delta = np.ascontiguousarray(delta, np.int32)
        self.path = np.empty(self.trie.longest + 2, np.int32)
        self.reached = np.zeros(len(delta), np.uint8)
        t = self.trie
        self.before: list[Any] = [a.ctypes.data for a in (t.byte, t.depth, t.after, t.first, t.ids)]

    def row(
        self, state: int, usable: NDArray[np.uint8], bits: NDArray[np.uint32]
    ) -> NDArray[np.int64]:
        """Set the bits of the tokens that lead to usable states; return those states."""
        self.reached[:] = 0
        _library().hagane_mask(
            self.delta.ctypes.data,
            state,
            usable.ctypes.data,
            *self.before,
            self.trie.nodes,
            self.path.ctypes.data,
            bits.ctypes.data,
            self.reached.ctypes.data,
        )
        return np.flatnonzero(self.reached)


class ArrayWalker:
    """The walk in NumPy: all tokens at once, one byte of each at a time."""

    def __init__(self, delta: NDArray[np.int32], vocabulary: Vocabulary):
        # One more row, so that -1, as an index, leads to -1.
        dead = np.full((1, 256), -1, np.int32)
        self.flat = np.concatenate([delta, dead]).astype(np.int32).ravel()
        self.dead = len(delta)
        tokens = [(number, token) for number, token in enumerate(vocabulary.tokens) if token]
        tokens.sort(key=lambda pair: -len(pair[1]))
        self.ids = np.array([number for number, _ in tokens], np.int64)
        longest = len(tokens[0][1]) if tokens else 0
        lengths = np.array([len(token) for _, token in tokens])
        self.columns = [
            np.frombuffer(
                bytes(token[k] for _, token in tokens[: int((lengths > k).sum())]), np.uint8
            )
            for k in range(longest)
        ]

    def row(
        self, state: int, usable: NDArray[np.uint8], bits: NDArray[np.uint32]
    ) -> NDArray[np.int64]:
        """Set the bits of the tokens that lead to usable states; return those states."""
        states = np.full(len(self.ids), state, np.int32)
        for column in self.columns:
            count = len(column)
            moved = self.flat[states[:count] * 256 + column]
            states[:count] = np.where(moved < 0, self.dead, moved)
        allowed = (states != self.dead) & np.append(usable, 0)[states].astype(np.bool_)
        ids = self.ids[allowed]
        np.bitwise_or.at(bits, ids >> 5, np.uint32(1) << (ids & 31).astype(np.uint32))
        return np.unique(states[allowed]).astype(np.int64)


def make_walker(
    delta: NDArray[np.int32], vocabulary: Vocabulary, native: bool | None = None
) -> Walker:
    """Return the fastest walker there is; ``native`` insists on C (True) or NumPy (False).

    Raises:
        NoCompiler: C is asked for and there is no compiler.
    """
    if native is False:
        return ArrayWalker(delta, vocabulary)
    try:
        return TrieWalker(delta, vocabulary)
    except NoCompiler:
        if native:
            raise
        return ArrayWalker(delta, vocabulary)
