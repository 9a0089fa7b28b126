"""Masks of tokens for the rules of a grammar, computed where they are asked for, and kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hagane.errors import InvalidArgument
from hagane.lexgen.masks.pushdown import Frames, Threads, make_machine
from hagane.lexgen.masks.rules import Rules
from hagane.lexgen.masks.vocabulary import Vocabulary

# Masks that are kept; one of 100,000 tokens takes 12 kB.
_KEPT = 4096


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
        self._automata = rules.compile(vocabulary.alphabet)
        self._machine = make_machine(self._automata, vocabulary, native)
        self._words = (len(vocabulary) + 31) // 32
        start = self._machine.start(0)
        if not start:
            raise InvalidArgument(f"TokenMask: no text matches '{source}'")
        self.start = 0
        self._threads: list[Threads] = [start]
        self._numbers: dict[Threads, int] = {start: 0}
        self._masks: OrderedDict[object, NDArray[np.uint32]] = OrderedDict()
        self._profiles: dict[int, list[tuple[int, ...]]] = {}

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self._threads)))

    def words(self, state: int) -> NDArray[np.uint32]:
        """Return the bits of the tokens that may come next."""
        if state < 0:
            raise LookupError(state)
        threads = self._threads[state]
        profiles = self._profiles.setdefault(len(threads), [])
        for looked in profiles:
            found = self._masks.get(self._key(threads, looked))
            if found is not None:
                return found
        bits = np.zeros(self._words, np.uint32)
        looked = self._machine.allowed(threads, bits)
        if looked not in profiles:
            profiles.append(looked)
        self._masks[self._key(threads, looked)] = bits
        if len(self._masks) > _KEPT:
            self._masks.popitem(last=False)
        return bits

    def accepts(self, state: int) -> bool:
        """Return whether the output may end."""
        return self._machine.ends(self._threads[state])

    def advance(self, state: int, text: bytes) -> int:
        """Return the state after some bytes."""
        threads = self._machine.advance(self._threads[state], text)
        number = self._numbers.get(threads)
        if number is None:
            number = self._numbers[threads] = len(self._threads)
            self._threads.append(threads)
        return number

    @cached_property
    def _bounds(self) -> list[tuple[int, int]]:
        a = self._automata
        return list(zip(a.call_low.tolist(), a.call_high.tolist(), strict=True))

    def _key(self, threads: Threads, looked: tuple[int, ...]) -> object:
        """Return the facts that decide the next tokens: states, and the frames looked at."""
        return tuple(
            (thread[0], self._near(self._machine.frames(thread, most)) if most else ())
            for thread, most in zip(threads, looked, strict=True)
        )

    def _near(self, frames: Frames) -> object:
        """Return frames whose repetitions count as far as a token reaches."""
        most = self._machine.longest + 1
        found = []
        for what, count in frames:
            if count < 0:
                found.append((what, -1, -1))
            else:
                low, high = self._bounds[what]
                left = -1 if high < 0 else min(high - count, most)
                found.append((what, min(max(low - count, 0), most), left))
        return tuple(found)
