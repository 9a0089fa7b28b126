"""Masks of tokens for a regular expression, all of them computed at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hagane.errors import InvalidArgument
from hagane.lexgen.automata.determinise import determinise
from hagane.lexgen.automata.dfa import minimise
from hagane.lexgen.automata.nfa import build_nfa
from hagane.lexgen.automata.utf8 import END_BYTE, byte_dfa, byte_rows
from hagane.lexgen.expressions.charset import AT_END
from hagane.lexgen.expressions.syntax import Branch, Chars, Pattern, concat
from hagane.lexgen.masks.machines.mask_index import make_walker
from hagane.lexgen.masks.vocabularies.vocabulary import Vocabulary


class FiniteStates:
    """The states of a pattern's byte automaton in which some sequence of tokens ends.

    A token is allowed if some continuation by tokens still matches the whole pattern.

    Args:
        tree: The pattern.
        vocabulary: The tokens.
        native: See ``make_walker``.

    Raises:
        InvalidArgument: No sequence of tokens matches.
    """

    def __init__(self, tree: Pattern, vocabulary: Vocabulary, native: bool | None = None):
        # The end of the text is a symbol of its own, so that $ and look-ahead keep their meaning.
        whole = tuple(_ended(branch) for branch in tree.branches)
        bytewise = byte_dfa(minimise(determinise(build_nfa([whole])).winners_only()))
        rows = np.array(byte_rows(bytewise), np.int32).reshape(-1, END_BYTE + 1)
        self.start = bytewise.starts[0][0]
        if self.start < 0:
            raise InvalidArgument(f"TokenMask: no text matches the pattern '{tree.source}'")
        self._accepting = rows[:, END_BYTE] >= 0
        self._delta = np.ascontiguousarray(rows[:, :END_BYTE])
        self._texts = vocabulary.tokens
        self._words = self._all_words(tree.source, vocabulary, native)

    def __iter__(self) -> Iterator[int]:
        return iter(self._words)

    def bits(self, state: int) -> tuple[NDArray[np.uint8], bool]:
        """Return the bits of the tokens that may come next, and whether the output may end.

        The caller may add the token that ends an output, which is the same in every use.

        Raises:
            LookupError: There is no such state.
        """
        return self._words[state].view(np.uint8), bool(self._accepting[state])

    def accepts(self, state: int) -> bool:
        """Return whether the output may end."""
        return bool(self._accepting[state])

    def take(self, state: int, token: int) -> int:
        """Return the state after a token; -1 if it is not allowed, or there is no such state."""
        text = self._texts[token] if 0 <= token < len(self._texts) else None
        if not text or state not in self._words:
            return -1
        for byte in text:
            state = int(self._delta[state, byte])
            if state < 0:
                return -1
        return state if state in self._words else -1

    def _all_words(
        self, source: str, vocabulary: Vocabulary, native: bool | None
    ) -> dict[int, NDArray[np.uint32]]:
        walker = make_walker(self._delta, vocabulary, native)
        n_words = (len(vocabulary) + 31) // 32
        usable = np.ones(len(self._delta), np.uint8)
        found, after = self._rows(walker, usable, n_words)
        alive = {state for state in found if self._accepting[state]}
        before: dict[int, list[int]] = {}
        for state, targets in after.items():
            for to in targets:
                before.setdefault(to, []).append(state)
        stack = list(alive)
        while stack:
            for state in before.get(stack.pop(), ()):
                if state not in alive:
                    alive.add(state)
                    stack.append(state)
        if self.start not in alive:
            raise InvalidArgument(
                f"TokenMask: no sequence of tokens of this vocabulary matches '{source}'"
            )
        if len(alive) < len(found):
            usable[:] = 0
            usable[list(alive)] = 1
            found, _ = self._rows(walker, usable, n_words)
        return found

    def _rows(
        self, walker: Any, usable: NDArray[np.uint8], n_words: int
    ) -> tuple[dict[int, NDArray[np.uint32]], dict[int, list[int]]]:
        found: dict[int, NDArray[np.uint32]] = {}
        after: dict[int, list[int]] = {}
        stack = [self.start]
        while stack:
            state = stack.pop()
            if state in found:
                continue
            bits = np.zeros(n_words, np.uint32)
            after[state] = walker.row(state, usable, bits).tolist()
            found[state] = bits
            stack.extend(to for to in after[state] if to not in found)
        return found, after


def _ended(branch: Branch) -> Branch:
    end = Chars(AT_END)
    if branch.following is None:
        return Branch(concat(branch.body, end))
    # The whole output is followed by its end: the context must match there.
    return Branch(branch.body, branch.following)
