"""Masks of tokens for the rules of a grammar, computed where they are asked for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hagane.errors import InvalidArgument
from hagane.lexgen.masks.pushdown import make_machine
from hagane.lexgen.masks.rules import Rules
from hagane.lexgen.masks.vocabulary import Vocabulary


class GrammarStates:
    """The places of outputs of a grammar, numbered as they are met.

    Args:
        rules: The rules; the first one is the whole output.
        vocabulary: The tokens.
        source: The grammar's name in messages.
        native: See ``make_machine``.

    Raises:
        InvalidArgument: No text matches.
    """

    def __init__(
        self, rules: Rules, vocabulary: Vocabulary, source: str, native: bool | None = None
    ):
        self._machine = make_machine(rules.compile(vocabulary.alphabet), vocabulary, native)
        self.start = self._machine.start(0)
        if self.start < 0:
            raise InvalidArgument(f"TokenMask: no text matches '{source}'")

    def __iter__(self) -> Iterator[int]:
        return iter(range(self._machine.places))

    def words(self, state: int) -> tuple[NDArray[np.uint32], bool]:
        """Return the bits of the tokens that may come next, and whether the output may end.

        The caller may change the bits.

        Raises:
            LookupError: There is no such state.
        """
        return self._machine.mask(state)

    def accepts(self, state: int) -> bool:
        """Return whether the output may end."""
        return self._machine.ends(state)

    def advance(self, state: int, text: bytes) -> int:
        """Return the state after some bytes; -1 if there is none."""
        return self._machine.advance(state, text)
