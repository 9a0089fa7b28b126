"""Order, random state and position: what settles a run, and how it is taken up again."""

from __future__ import annotations

import copy
import pickle
import random
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hagane.errors import InvalidArgument
from hagane.training.errors import InvalidState
from hagane.training.iterators import (
    MultiprocessIterator,
    MultithreadIterator,
    SerialIterator,
    ShuffleOrderSampler,
)
from hagane.training.iterators.cores import local_ranks, worker_count
from hagane.training.iterators.orders import InOrder, SeededShuffle
from hagane.training.iterators.permutation import Permutation
from hagane.training.iterators.state import start, step
from tests.training.sample_datasets import Drawing


@given(st.integers(0, 3000), st.integers(0, 2**63 - 1), st.integers(0, 50))
def test_a_permutation_has_every_index_once(length: int, seed: int, sweep: int) -> None:
    order = Permutation(length, seed, sweep)
    assert sorted(order[0:length].tolist()) == list(range(length))


@given(st.integers(1, 20_000), st.integers(0, 2**63 - 1), st.data())
def test_slices_of_a_permutation_agree(length: int, seed: int, data: st.DataObject) -> None:
    begin = data.draw(st.integers(0, length))
    end = data.draw(st.integers(begin, length))
    order = Permutation(length, seed, 1)
    np.testing.assert_array_equal(order[begin:end], order[0:length][begin:end])


def test_a_permutation_spreads_indices_evenly_over_positions() -> None:
    length, seeds, parts = 64, 4000, 8
    counts = np.zeros((parts, parts))
    for seed in range(seeds):
        places = Permutation(length, seed, 0)[0:length]
        np.add.at(counts, (np.arange(length) * parts // length, places * parts // length), 1)
    expected = seeds * length / parts**2
    chi_square = float(((counts - expected) ** 2 / expected).sum())
    assert chi_square < 100  # 49 degrees of freedom: mean 49, deviation 10


def test_ten_million_indices_are_shuffled_in_constant_memory() -> None:
    tracemalloc.start()
    sampler = SeededShuffle(seed=1)
    state = start(sampler, 10_000_000, 0)
    for _ in range(300):
        state, draw = step(state, 100, True, sampler, 10_000_000)
        assert draw is not None
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2_000_000


@given(st.integers(1, 30), st.integers(1, 40), st.booleans())
def test_batches_of_an_epoch_cover_it_once(size: int, batch: int, shuffled: bool) -> None:
    sampler: Any = SeededShuffle(3) if shuffled else InOrder()
    state = start(sampler, size, 0)
    seen: list[tuple[int, int]] = []
    while len(seen) < 3 * size:
        before = state
        state, draw = step(state, batch, True, sampler, size)
        assert draw is not None
        assert len(draw.indices) == batch
        assert state.is_new_epoch == (state.epoch > before.epoch)
        seen += zip(draw.sweeps.tolist(), draw.indices.tolist(), strict=True)
    for sweep in range(3):
        assert sorted(i for s, i in seen if s == sweep) == list(range(size))


@given(st.integers(0, 30), st.integers(1, 40))
def test_without_repeat_the_last_batch_is_short(size: int, batch: int) -> None:
    state, indices = start(InOrder(), size, 0), []
    while True:
        state, draw = step(state, batch, False, InOrder(), size)
        if draw is None:
            break
        indices += draw.indices.tolist()
    assert indices == list(range(size))
    assert (state.epoch, state.current_position) == (1, 0)


def test_the_random_state_of_a_sample_is_settled_by_seed_epoch_and_index() -> None:
    def run(batch: int, workers: int, seed: int) -> dict[tuple[int, int], Any]:
        found = {}
        with MultiprocessIterator(Drawing(), batch, n_processes=workers, seed=seed) as iterator:
            count = [0] * 12
            for _ in range(36 // batch):
                for sample in iterator.next():
                    found[count[sample[0]], sample[0]] = sample[1:]
                    count[sample[0]] += 1
        return found

    one = run(4, 2, seed=1)
    assert run(6, 1, seed=1) == one
    assert run(12, 0, seed=1) == one
    assert len(set(one.values())) == 36
    assert run(4, 2, seed=2) != one


def test_making_batches_here_leaves_the_global_generators_alone() -> None:
    random.seed(1)
    np.random.seed(1)
    iterator = SerialIterator(Drawing(), 4, seed=0)
    iterator.next()
    got = random.random(), np.random.rand()
    random.seed(1)
    np.random.seed(1)
    assert got == (random.random(), np.random.rand())


class SometimesDrawing:
    """Draws in one sample only, long after it was settled that nothing draws."""

    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> tuple[int, float]:
        return index, random.random() if index == 33 else 0.0


def test_a_dataset_that_draws_rarely_is_as_deterministic() -> None:
    expected = dict(SerialIterator(SometimesDrawing(), 40, shuffle=False, seed=4).next())
    for workers in (0, 1, 2):
        with MultiprocessIterator(
            SometimesDrawing(), 4, repeat=False, shuffle=False, n_processes=workers, seed=4
        ) as iterator:
            assert dict(sample for batch in iterator for sample in batch) == expected


def test_numpy_seed_settles_a_run_without_a_seed() -> None:
    runs = []
    for _ in range(2):
        np.random.seed(7)
        runs.append([SerialIterator(list(range(20)), 7).next() for _ in range(3)])
    assert runs[0] == runs[1]


class Augmenting:
    """Draws from the generators of the program, as augmentation of pictures does."""

    def __len__(self) -> int:
        return 5

    def __getitem__(self, index: int) -> tuple[int, int, float]:
        return index, int(np.random.randint(100)), random.random()


def test_a_serial_iterator_without_a_seed_draws_samples_in_chainers_order() -> None:
    np.random.seed(3)
    random.seed(3)
    iterator = SerialIterator(Augmenting(), 5)
    found = []
    for _ in range(3):
        found.append((iterator.next(), np.random.rand()))
    np.random.seed(3)
    random.seed(3)
    data, order = Augmenting(), np.random.permutation(5)
    for batch, after in found:
        # The next epoch's order comes before the samples that end this one.
        following = np.random.permutation(5)
        assert batch == [data[i] for i in order]
        assert after == np.random.rand()
        order = following


def test_reset_shuffles_anew() -> None:
    iterator = SerialIterator(list(range(50)), 50, repeat=False, seed=1)
    epochs = []
    for _ in range(3):
        epochs += list(iterator)
        iterator.reset()
    assert len({tuple(epoch) for epoch in epochs}) == 3


KINDS: dict[str, Any] = {
    "serial": lambda **options: SerialIterator(Drawing(), 5, **options),
    "one worker": lambda **options: MultiprocessIterator(
        Drawing(), 5, n_processes=1, n_prefetch=4, **options
    ),
    "two workers": lambda **options: MultiprocessIterator(Drawing(), 5, n_processes=2, **options),
}


@pytest.mark.parametrize("sampler", [False, True])
@pytest.mark.parametrize("saved_by", KINDS)
@pytest.mark.parametrize("loaded_by", KINDS)
def test_a_run_goes_on_from_any_saved_state_in_any_iterator(
    saved_by: str, loaded_by: str, sampler: bool
) -> None:
    def options(seed: int) -> dict[str, Any]:
        if not sampler:
            return {"seed": seed}
        return {"seed": seed, "order_sampler": ShuffleOrderSampler(np.random.RandomState(seed))}

    with KINDS[saved_by](**options(1)) as one:
        for _ in range(4):
            one.next()
        state = pickle.loads(pickle.dumps(one.state_dict()))
        place = one.epoch_detail, one.previous_epoch_detail
        expected = [one.next() for _ in range(7)]
    with KINDS[loaded_by](**options(2)) as other:
        other.next()
        other.load_state_dict(state)
        assert (other.epoch_detail, other.previous_epoch_detail) == place
        assert [other.next() for _ in range(7)] == expected


class Archive:
    """A serializer of Chainer's kind: arrays by name, missing names are KeyErrors."""

    def __init__(self) -> None:
        self.saved: dict[str, Any] = {}

    def save(self, key: str, value: Any) -> Any:
        self.saved[key] = np.asarray(value)
        return value

    def load(self, key: str, value: Any) -> Any:
        stored = self.saved[key]
        if isinstance(value, np.ndarray):
            np.copyto(value, stored)
            return value
        return type(value)(stored.item())


@pytest.mark.parametrize("sampler", [False, True])
def test_serializers_of_chainers_kind_resume_exactly(sampler: bool) -> None:
    def make(seed: int) -> SerialIterator:
        order = ShuffleOrderSampler(np.random.RandomState(seed)) if sampler else None
        return SerialIterator(Drawing(), 5, seed=seed, order_sampler=order)

    one, other, archive = make(1), make(2), Archive()
    for _ in range(4):
        one.next()
    one.serialize(archive.save)
    other.serialize(archive.load)
    assert [other.next() for _ in range(7)] == [one.next() for _ in range(7)]


def test_a_state_that_does_not_fit_is_named() -> None:
    state = SerialIterator(list(range(10)), 3).state_dict()
    with pytest.raises(InvalidState, match="dataset of 10 samples, but this one has 11"):
        SerialIterator(list(range(11)), 3).load_state_dict(state)
    del state["sweep"]
    with pytest.raises(InvalidState, match="lacks the entry 'sweep'"):
        SerialIterator(list(range(10)), 3).load_state_dict(state)


def test_iterators_are_copied_and_pickled_where_they_stand() -> None:
    with MultiprocessIterator(Drawing(), 5, n_processes=1, seed=3) as one:
        one.next()
        with copy.copy(one) as two, pickle.loads(pickle.dumps(one)) as three:
            expected = one.next()
            assert two.next() == expected
            assert three.next() == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size: expected a positive integer, got 0"),
        ({"batch_size": 2.5}, "batch_size: expected a positive integer, got 2.5"),
        ({"seed": -1}, "seed: expected an integer from 0"),
        ({"collate": "concat"}, "collate: expected None, 'stack' or a function"),
        ({"start_method": "thread"}, "start_method: expected one of forkserver, spawn, fork"),
        ({"n_processes": -1}, "n_processes: expected None or an integer from 0"),
        ({"n_processes": 100_000}, "n_processes: expected None or an integer from 0 to 511"),
        ({"n_prefetch": "a"}, "n_prefetch: expected an integer, got 'a'"),
        ({"shared_mem": -5}, "shared_mem: expected None or a number of bytes, got -5"),
        ({"dataset_timeout": 0}, "dataset_timeout: expected None or a positive number of seconds"),
        ({"maxtasksperchild": 0}, "maxtasksperchild: expected None or a positive integer"),
        ({"shuffle": True, "order_sampler": lambda o, _: o}, "leave 'shuffle' at None"),
        ({"order_sampler": lambda o, _: o * 1.5}, "one-dimensional array of integer indices"),
    ],
)
def test_arguments_that_cannot_be_used_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        MultiprocessIterator([1, 2, 3], **{"batch_size": 2, **options})


def test_an_empty_dataset_repeats_nothing() -> None:
    assert list(SerialIterator([], 2, repeat=False)) == [[]]
    with MultiprocessIterator([], 2, repeat=False, n_processes=1) as iterator:
        assert list(iterator) == [[]]
    with pytest.raises(InvalidArgument, match="positive epoch size"):
        SerialIterator([], 2).next()


def test_threads_give_the_same_batches_with_sample_random() -> None:
    serial = SerialIterator(Drawing(), 5, seed=1)
    with MultithreadIterator(Drawing(), 5, n_threads=3, seed=1) as threads:
        for _ in range(5):
            expected = [(sample[0], sample[3]) for sample in serial.next()]
            assert [(sample[0], sample[3]) for sample in threads.next()] == expected


@pytest.mark.parametrize(
    ("allowed", "installed", "quota", "ranks", "expected"),
    [
        (8, 8, None, 1, 8),
        (8, 8, None, 2, 4),
        (4, 8, None, 2, 4),  # each rank is bound to cores of its own
        (8, 8, 3.5, 1, 3),
        (8, 8, 4.0, 4, 1),
        (2, 64, None, 1, 2),
        (2, 2, None, 8, 1),
    ],
)
def test_the_default_number_of_workers_is_this_process_share(
    allowed: int, installed: int, quota: float | None, ranks: int, expected: int
) -> None:
    assert worker_count(allowed, installed, quota, ranks) == expected


def test_local_ranks_are_read_from_what_launchers_set() -> None:
    assert local_ranks({}) == 1
    assert local_ranks({"OMPI_COMM_WORLD_LOCAL_SIZE": "4"}) == 4
    assert local_ranks({"LOCAL_WORLD_SIZE": "x", "MPI_LOCALNRANKS": "2"}) == 2
