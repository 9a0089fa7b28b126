"""Constrained decoding: which tokens may a language model emit next."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hagane.errors import InvalidArgument
from hagane.lexgen.automata.determinise import determinise
from hagane.lexgen.automata.dfa import minimise
from hagane.lexgen.automata.nfa import build_nfa
from hagane.lexgen.automata.regex import Regex
from hagane.lexgen.automata.utf8 import END_BYTE, byte_dfa, byte_rows
from hagane.lexgen.expressions.charset import AT_END
from hagane.lexgen.expressions.parse import parse
from hagane.lexgen.expressions.syntax import Branch, Chars, Pattern, concat
from hagane.lexgen.masks.json_schema import schema_pattern
from hagane.lexgen.masks.mask_index import make_walker
from hagane.lexgen.masks.vocabulary import Source, Vocabulary


class Bitmask:
    """The allowed tokens, one bit each.

    Index it with a token, turn it into an array of booleans with ``numpy.asarray``, or take
    ``words``: 32 tokens each, the lowest number in the lowest bit.
    """

    __slots__ = ("size", "words")

    def __init__(self, words: NDArray[np.uint32], size: int):
        self.words = words
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, token: int) -> bool:
        if not 0 <= token < self.size:
            raise IndexError(f"expected a token between 0 and {self.size - 1}, got {token}")
        return bool(int(self.words[token >> 5]) >> (token & 31) & 1)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        array = self.to_bool()
        return array if dtype is None else array.astype(dtype)

    def __invert__(self) -> NDArray[np.bool_]:
        return ~self.to_bool()

    def to_bool(self) -> NDArray[np.bool_]:
        """Return an array of booleans, one a token."""
        packed = self.words.astype("<u4", copy=False).view(np.uint8)
        return np.unpackbits(packed, count=self.size, bitorder="little").view(np.bool_)

    def tokens(self) -> NDArray[np.int64]:
        """Return the numbers of the allowed tokens."""
        return np.flatnonzero(self.to_bool())

    def count(self) -> int:
        """Return how many tokens are allowed."""
        return int(self.to_bool().sum())


class TokenMask:
    """The tokens that keep an output within a pattern, for each state on the way.

    The index is built once: a state is a state of the pattern's byte automaton in which some
    sequence of tokens ends. A token is allowed if some continuation by tokens still matches the
    whole pattern, so no output runs into a dead end.

    Args:
        pattern: A regular expression that the whole output must match, or a JSON schema (a mapping,
            or its text).
        vocabulary: A ``tokenizer.json`` file, a list of tokens, or a mapping of tokens to numbers.
        end: The token that ends an output, by number or name; found by its usual names otherwise.
            It is allowed where the output matches. Without one, ask ``accepts``.
        native: Build the index in C (True), in NumPy (False), or in C where there is a compiler.

    Raises:
        RegexSyntaxError: The expression is malformed.
        InvalidArgument: The schema or the vocabulary cannot be used, or no sequence of tokens
            matches.
    """

    def __init__(
        self,
        pattern: str | Regex | Mapping[str, Any],
        vocabulary: Source,
        end: int | str | None = None,
        native: bool | None = None,
    ):
        self.vocabulary = Vocabulary.of(vocabulary, end)
        self.end = self.vocabulary.end
        self.size = len(self.vocabulary)
        tree = _pattern_of(pattern)
        # The end of the text is a symbol of its own, so that $ and look-ahead mean what they say.
        whole = tuple(_ended(branch) for branch in tree.branches)
        bytewise = byte_dfa(minimise(determinise(build_nfa([whole])).winners_only()))
        rows = np.array(byte_rows(bytewise), np.int32).reshape(-1, END_BYTE + 1)
        start = bytewise.starts[0][0]
        if start < 0:
            raise InvalidArgument(f"TokenMask: no text matches the pattern '{tree.source}'")
        self._accepting = rows[:, END_BYTE] >= 0
        self._delta = np.ascontiguousarray(rows[:, :END_BYTE])
        self.start = start
        self.done = len(rows)  # after the token that ends the output
        self._build(tree.source, native)

    def _build(self, source: str, native: bool | None) -> None:
        walker = make_walker(self._delta, self.vocabulary, native)
        n_words = (self.size + 31) // 32
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
        self._masks = {state: self._with_end(state, bits) for state, bits in found.items()}
        last = np.zeros(n_words, np.uint32)
        if self.end is not None:
            last[self.end >> 5] |= np.uint32(1 << (self.end & 31))
        self._masks[self.done] = Bitmask(last, self.size)
        self._rows_as_lists: dict[int, list[int]] = {}

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

    def _with_end(self, state: int, bits: NDArray[np.uint32]) -> Bitmask:
        if self.end is not None and self._accepting[state]:
            bits[self.end >> 5] |= np.uint32(1 << (self.end & 31))
        return Bitmask(bits, self.size)

    @property
    def states(self) -> list[int]:
        """All states, the one after the end token last."""
        return list(self._masks)

    def mask(self, state: int) -> Bitmask:
        """Return the tokens that may come next."""
        try:
            return self._masks[state]
        except KeyError:
            raise InvalidArgument(f"TokenMask: there is no state {state}") from None

    def accepts(self, state: int) -> bool:
        """Return whether the output may end here."""
        return state == self.done or bool(self._accepting[state])

    def advance(self, state: int, token: int) -> int:
        """Return the state after a token.

        Raises:
            InvalidArgument: The token is not allowed in this state.
        """
        mask = self.mask(state)
        if not 0 <= token < self.size or not mask[token]:
            text = self.vocabulary.tokens[token] if 0 <= token < self.size else None
            raise InvalidArgument(f"TokenMask: token {token} ({text!r}) is not allowed here")
        if token == self.end:
            return self.done
        delta = self._delta
        for byte in self.vocabulary.tokens[token] or b"":
            state = int(delta[state, byte])
        return state

    def apply(self, logits: Any, state: int) -> NDArray[Any]:
        """Return logits (…, size) with minus infinity for every token that is not allowed.

        The last axis may be longer than the vocabulary, as padded models have it; the tokens beyond
        are not allowed.
        """
        array = np.asarray(logits)
        if array.ndim == 0 or array.shape[-1] < self.size:
            raise InvalidArgument(
                f"TokenMask.apply: expected logits with a last axis of at least {self.size}, got "
                f"{list(array.shape)}"
            )
        allowed = np.zeros(array.shape[-1], np.bool_)
        allowed[: self.size] = self.mask(state).to_bool()
        return np.where(allowed, array, np.asarray(-np.inf, array.dtype))


def _ended(branch: Branch) -> Branch:
    end = Chars(AT_END)
    if branch.following is None:
        return Branch(concat(branch.body, end))
    # What follows the whole output is its end: the context must match there.
    return Branch(branch.body, branch.following)


def _pattern_of(pattern: str | Regex | Mapping[str, Any]) -> Pattern:
    if isinstance(pattern, Regex):
        return pattern.tree
    if isinstance(pattern, Mapping):
        return schema_pattern(pattern)
    if not isinstance(pattern, str):
        raise InvalidArgument(
            "TokenMask: expected a regular expression or a JSON schema, got "
            f"{type(pattern).__name__}"
        )
    if pattern.lstrip().startswith("{"):
        try:
            return schema_pattern(json.loads(pattern))
        except json.JSONDecodeError:
            pass
    return parse(pattern)
