"""Constrained decoding: which tokens may a language model emit next."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hagane.errors import InvalidArgument
from hagane.lexgen.automata.regex import Regex
from hagane.lexgen.expressions.parse import parse
from hagane.lexgen.masks.grammars.grammar import Grammar
from hagane.lexgen.masks.machines.finite_mask import FiniteStates
from hagane.lexgen.masks.machines.grammar_mask import GrammarStates
from hagane.lexgen.masks.schemas.writing import USUAL_SPACE, schema_rules
from hagane.lexgen.masks.vocabularies.vocabulary import Source, Vocabulary

# Where the lowest byte of a word lies.
_FIRST_BYTE = 0 if sys.byteorder == "little" else 3


class Bitmask:
    """The allowed tokens, one bit each.

    Index it with a token, turn it into an array of booleans with ``numpy.asarray``, or take
    ``words``: 32 tokens each, the lowest number in the lowest bit.
    """

    __slots__ = ("_bits", "size")

    def __init__(self, bits: bytearray | NDArray[np.uint8], size: int):
        self._bits = bits
        self.size = size

    @property
    def words(self) -> NDArray[np.uint32]:
        """The bits as 32-bit words, which share their memory."""
        return np.frombuffer(self._bits, np.uint32)

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, token: int) -> bool:
        if not 0 <= token < self.size:
            raise IndexError(f"expected a token between 0 and {self.size - 1}, got {token}")
        return bool(self._bits[(token >> 3) ^ _FIRST_BYTE] >> (token & 7) & 1)

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
    r"""The tokens that keep an output within a pattern, for each state on the way.

    States are numbers. Those of a regular expression are all known at once, with their masks; those
    of a JSON schema or a grammar are numbered as outputs reach them, and their masks are computed
    when they are asked for.

    A token is allowed if some text that begins with it still matches the whole pattern. Of regular
    expressions, that text is made of tokens of the vocabulary; of schemas and grammars, of bytes
    that some tokens have. So no output runs into a dead end where every byte is a token, as in the
    vocabularies of language models.

    Args:
        pattern: A regular expression that the whole output must match; a JSON schema (a mapping,
            its text, or a model of pydantic); or a ``Grammar``.
        vocabulary: A tokenizer (a file, or an object of tokenizers, transformers, tiktoken or
            SentencePiece), a list of tokens, or a mapping of tokens to numbers.
        end: The token that ends an output, by number or name; found by its usual names otherwise.
            It is allowed where the output matches. Without one, ask ``accepts``.
        native: Compute masks in C (True), without a compiler (False), or in C where there is one.
        space: Of a JSON schema: a regular expression of the white space after ``:`` and ``,`` and
            inside of brackets, one space at most if nothing is given. ``r"[ \n]*"`` takes texts of
            ``json.dumps(..., indent=2)`` too; ``""`` only those without.

    Raises:
        RegexSyntaxError: The expression is malformed.
        InvalidArgument: The schema, the grammar or the vocabulary cannot be used, or no sequence of
            tokens matches.
    """

    def __init__(
        self,
        pattern: str | Regex | Mapping[str, Any] | bool | Grammar | type[Any],
        vocabulary: Source,
        end: int | str | None = None,
        native: bool | None = None,
        space: str = USUAL_SPACE,
    ):
        self.vocabulary = Vocabulary.of(vocabulary, end)
        self.end = self.vocabulary.end
        self.size = len(self.vocabulary)
        self._states = _states_of(pattern, self.vocabulary, native, space)
        self.start = self._states.start
        self._take, self._bits = self._states.take, self._states.bits
        self.done = -1  # after the token that ends the output
        self._masks: dict[int, Bitmask] = {}
        end = self.end or 0
        self._end_byte, self._end_bit = (end >> 3) ^ _FIRST_BYTE, 1 << (end & 7)

    @property
    def states(self) -> list[int]:
        """All states that are known so far, the one after the end token last."""
        return [*self._states, self.done]

    def mask(self, state: int) -> Bitmask:
        """Return the tokens that may come next.

        Raises:
            InvalidArgument: There is no such state.
        """
        found = self._masks.get(state)
        return self._made(state) if found is None else found

    def _made(self, state: int) -> Bitmask:
        bits: bytearray | NDArray[np.uint8]
        if state == self.done:
            bits, ends = bytearray((self.size + 31) // 32 * 4), True
        else:
            try:
                bits, ends = self._bits(state)
            except LookupError:
                raise InvalidArgument(f"TokenMask: there is no state {state}") from None
        if ends and self.end is not None:
            bits[self._end_byte] |= self._end_bit
        found = self._masks[state] = Bitmask(bits, self.size)
        if len(self._masks) > _KEPT:
            del self._masks[next(iter(self._masks))]
        return found

    def accepts(self, state: int) -> bool:
        """Return whether the output may end here."""
        return state == self.done or self._states.accepts(state)

    def advance(self, state: int, token: int) -> int:
        """Return the state after a token.

        Raises:
            InvalidArgument: The token is not allowed in this state.
        """
        to = self._take(state, int(token))
        if to >= 0:
            return to
        self.mask(state)  # raises if there is no such state
        if token == self.end and self.accepts(state) and state != self.done:
            return self.done
        text = self.vocabulary.tokens[token] if 0 <= token < self.size else None
        raise InvalidArgument(f"TokenMask: token {token} ({text!r}) is not allowed here")

    def apply(self, logits: Any, state: int) -> Any:
        """Return logits (…, size) with minus infinity for every token that is not allowed.

        The last axis may be longer than the vocabulary, as padded models have it; the tokens beyond
        are not allowed. A tensor of PyTorch stays one.

        Raises:
            InvalidArgument: There are fewer logits than tokens, or no such state.
        """
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(logits, torch.Tensor):
            allowed = self._allowed(tuple(logits.shape), state)
            return logits.masked_fill(~torch.from_numpy(allowed).to(logits.device), -torch.inf)
        array = np.asarray(logits)
        allowed = self._allowed(array.shape, state)
        return np.where(allowed, array, np.asarray(-np.inf, array.dtype))

    def _allowed(self, shape: tuple[int, ...], state: int) -> NDArray[np.bool_]:
        if not shape or shape[-1] < self.size:
            raise InvalidArgument(
                f"TokenMask.apply: expected logits with a last axis of at least {self.size}, got "
                f"{list(shape)}"
            )
        allowed = np.zeros(shape[-1], np.bool_)
        allowed[: self.size] = self.mask(state).to_bool()
        return allowed


# Masks by state; one of 100,000 tokens takes 12 kB.
_KEPT = 4096


def _states_of(
    pattern: Any,
    vocabulary: Vocabulary,
    native: bool | None,
    space: str,
) -> FiniteStates | GrammarStates:
    if isinstance(pattern, Regex):
        return FiniteStates(pattern.tree, vocabulary, native)
    if isinstance(pattern, Grammar):
        return GrammarStates(pattern.rules, vocabulary, pattern.name, native)
    if isinstance(pattern, str) and pattern.lstrip().startswith("{"):
        with suppress(json.JSONDecodeError):  # a regular expression
            pattern = json.loads(pattern)
    elif isinstance(pattern, type) and hasattr(pattern, "model_json_schema"):  # pydantic
        pattern = pattern.model_json_schema()
    if isinstance(pattern, (Mapping, bool)):
        return GrammarStates(schema_rules(pattern, space), vocabulary, pattern, native)
    if not isinstance(pattern, str):
        raise InvalidArgument(
            "TokenMask: expected a regular expression, a JSON schema or a Grammar, got "
            f"{type(pattern).__name__}"
        )
    return FiniteStates(parse(pattern), vocabulary, native)
