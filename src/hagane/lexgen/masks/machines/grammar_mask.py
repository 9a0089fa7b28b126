"""Masks of tokens for the rules of a grammar, computed where they are asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hagane.errors import InvalidArgument
from hagane.lexgen.masks.machines.pushdown import make_machine
from hagane.lexgen.masks.rules.rules import Rules
from hagane.lexgen.masks.vocabularies.vocabulary import Vocabulary


class GrammarStates:
    """The places of outputs of a grammar, numbered as they are met.

    Args:
        rules: The rules; the first one is the whole output.
        vocabulary: The tokens.
        source: The grammar's name in messages, or its JSON schema.
        native: See ``make_machine``.

    Raises:
        InvalidArgument: No text matches.
    """

    def __init__(
        self, rules: Rules, vocabulary: Vocabulary, source: Any, native: bool | None = None
    ):
        self._machine = make_machine(rules.compile(vocabulary.alphabet, native), vocabulary, native)
        # The bits of the tokens that may come next, which the caller may change, and whether the
        # output may end; the state after a token, or -1.
        self.bits = self._machine.mask
        self.take = self._machine.take
        self.start = self._machine.start(0)
        if self.start < 0:
            name = source if isinstance(source, str) else f"JSON schema {json.dumps(source)[:60]}"
            raise InvalidArgument(f"TokenMask: no text matches '{name}'")

    def __iter__(self) -> Iterator[int]:
        return iter(range(self._machine.places))

    def accepts(self, state: int) -> bool:
        """Return whether the output may end."""
        return self._machine.ends(state)
