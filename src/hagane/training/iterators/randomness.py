"""Random numbers of a sample: settled by (seed, sweep, index) in every worker.

A dataset may draw from ``sample_random()``, or from the global generators of ``random``, NumPy
and, once it is imported, PyTorch. The global ones are set before each sample. That costs some
microseconds, so it is left out while the dataset draws nothing: ``Loader`` compares the states of
the generators before and after a batch, and a batch that drew is made again with every sample
set up. The numbers are the same either way.
"""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from hagane.training.errors import DatasetError
from hagane.training.iterators.permutation import mix

_SAMPLE = 0x5A  # keeps the streams of samples apart from those of orders
_LOOKS = 16  # samples of a batch that must draw nothing, for the others to be tried without a seed


class _Current(threading.local):
    key: tuple[int, int, int] | None = None


_current = _Current()


def sample_random() -> np.random.Generator:
    """Return a generator for the sample in the making, the same whenever it is made again.

    Each call starts the sample's stream from its beginning. Outside a dataset that an iterator is
    reading, the generator is unseeded.
    """
    if _current.key is None:
        return np.random.default_rng()
    seed, sweep, index = _current.key
    key = np.array([mix(seed, _SAMPLE), sweep], dtype=np.uint64)
    counter = np.array([0, 0, 0, index & 0xFFFFFFFFFFFFFFFF], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter))


class GlobalGenerators:
    """The generators that a process shares: of ``random``, NumPy and PyTorch."""

    def capture(self) -> tuple[Any, ...]:
        """Return the states of all of them."""
        torch = sys.modules.get("torch")
        words = np.random.get_state(legacy=True)
        return (
            random.getstate(),
            words,
            None if torch is None else torch.get_rng_state(),
        )

    def restore(self, captured: tuple[Any, ...]) -> None:
        """Set the states that ``capture`` returned."""
        random.setstate(captured[0])
        np.random.set_state(captured[1])
        torch = sys.modules.get("torch")
        if torch is not None and captured[2] is not None:
            torch.set_rng_state(captured[2])

    def seed(self, value: int) -> None:
        """Set all of them from 64 bits."""
        random.seed(value)
        np.random.seed(value & 0xFFFFFFFF)
        torch = sys.modules.get("torch")
        if torch is not None:
            torch.default_generator.manual_seed(value >> 1)

    def same(self, one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
        """Say whether nothing was drawn between two captures."""
        if one[0] != other[0] or one[1][2:] != other[1][2:]:
            return False
        if not np.array_equal(one[1][1], other[1][1]):
            return False
        if one[2] is None or other[2] is None:
            return one[2] is None and other[2] is None
        return bool(one[2].equal(other[2]))


class Loader:
    """Makes the samples of a draw, each with its own random state.

    Args:
        dataset: Read by index.
        keep_global: Put the global generators back after each batch. A worker process, which
            has them to itself, does not.
        use_global: Set the global generators at all. Threads share them, so they cannot; nor
            do workers whose generators the caller has set.
        many: Ask for a batch at once, by ``dataset.__getitems__``; its samples then share the
            random state of the first.
    """

    def __init__(
        self, dataset: Any, keep_global: bool, use_global: bool = True, many: bool = False
    ):
        self.dataset = dataset
        self._many = many
        self._keep = keep_global
        self.use_global = use_global
        self._generators = GlobalGenerators()
        self._idle: tuple[Any, ...] | None = None
        self._draws = True  # whether the dataset is thought to draw from global generators

    def load(
        self,
        seed: int,
        indices: Sequence[int],
        sweeps: Sequence[int],
        begin: Callable[[], Callable[[Any], object]],
        entering: Callable[[int], object] | None = None,
        asked: Sequence[Any] | None = None,
    ) -> None:
        """Make every sample and hand it to the result of ``begin``.

        Args:
            seed: Seed of the iterator.
            indices: The indices that the dataset is asked for, unless ``asked`` gives them.
            sweeps: For each index the sweep it belongs to.
            begin: Called before the first sample, and again if the batch is started over.
            entering: Called with the place of a sample before it is made.
            asked: Keys of any type, one for each index.
        """
        keys = [(seed, sweep, index) for index, sweep in zip(indices, sweeps, strict=True)]
        wanted = indices if asked is None else asked
        if self._many:
            keys = keys[:1]
        try:
            if not self.use_global:
                self._run(begin(), keys, wanted, entering)
            else:
                self._load_guarded(self._generators, keys, wanted, begin, entering)
        finally:
            _current.key = None

    def _load_guarded(
        self,
        generators: GlobalGenerators,
        keys: list[tuple[int, int, int]],
        wanted: Sequence[Any],
        begin: Callable[[], Callable[[Any], object]],
        entering: Callable[[int], object] | None,
    ) -> None:
        # In a worker nothing draws between batches: the states after one hold before the next.
        before = self._idle or generators.capture()
        try:
            if not self._draws:
                failure: Exception | None = None
                try:
                    self._run(begin(), keys, wanted, entering)
                except Exception as error:
                    failure = error
                if generators.same(before, generators.capture()):
                    self._idle = None if self._keep else before
                    if failure is not None:
                        raise failure
                    return
                self._draws, self._idle = True, None
            drew = False
            last: tuple[Any, ...] | None = None  # the states before samples that were not seeded

            def seeded() -> Iterable[tuple[int, int, int]]:
                nonlocal drew, last
                for place, key in enumerate(keys):
                    if place >= _LOOKS and not drew:
                        last = last or generators.capture()
                        yield key
                        continue
                    generators.seed(mix(*key))
                    fresh = None if drew else generators.capture()
                    yield key
                    drew = drew or not generators.same(fresh or (), generators.capture())

            failure = None
            try:
                self._run(begin(), seeded(), wanted, entering)
            except Exception as error:
                failure = error
            if last is not None and not generators.same(last, generators.capture()):
                drew, failure = True, None
                self._run(begin(), seeded(), wanted, entering)
            if failure is not None:
                raise failure
            self._draws = drew
        finally:
            if self._keep:
                generators.restore(before)

    def _run(
        self,
        accept: Callable[[Any], object],
        keys: Iterable[tuple[int, int, int]],
        wanted: Sequence[Any],
        entering: Callable[[int], object] | None,
    ) -> None:
        dataset, current = self.dataset, _current
        for place, key in enumerate(keys):
            if entering is not None:
                entering(place)
            current.key = key
            if self._many:
                self._run_many(accept, list(wanted))
            else:
                accept(dataset[wanted[place]])

    def _run_many(self, accept: Callable[[Any], object], wanted: list[Any]) -> None:
        samples = self.dataset.__getitems__(wanted)
        if len(samples) != len(wanted):
            raise DatasetError(
                f"{type(self.dataset).__name__}.__getitems__: expected a list of {len(wanted)} "
                f"samples, one for each index, got {len(samples)}"
            )
        for sample in samples:
            accept(sample)
