"""What iterators share with PyTorch's loader: lengths, dropped remainders, shards, samplers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hagane.errors import InvalidArgument
from hagane.training import get_worker_info
from hagane.training.errors import LoadingError
from hagane.training.iterators import (
    MultiprocessIterator,
    MultithreadIterator,
    SerialIterator,
    ShuffleOrderSampler,
)

KINDS: dict[str, Any] = {
    "serial": SerialIterator,
    "threads": MultithreadIterator,
    "no process": lambda *args, **named: MultiprocessIterator(*args, n_processes=0, **named),
}


@given(st.integers(0, 20), st.integers(1, 6), st.booleans())
def test_the_length_is_the_number_of_batches(size: int, batch: int, drop_last: bool) -> None:
    iterator = SerialIterator(range(size), batch, repeat=False, seed=1, drop_last=drop_last)
    batches = [each for each in iterator if each]
    assert len(iterator) == len(batches) == (size // batch if drop_last else -(-size // batch))
    assert iterator
    if drop_last:
        assert {len(each) for each in batches} <= {batch}
        iterator.reset()
        assert len([each for each in iterator if each]) == len(batches)


@pytest.mark.parametrize("kind", KINDS)
def test_a_remainder_is_dropped_from_every_epoch_of_a_repeating_iterator(kind: str) -> None:
    iterator = KINDS[kind](list(range(11)), 4, seed=2, drop_last=True)
    for epoch in range(3):
        assert iterator.epoch == epoch
        seen = iterator.next() + iterator.next()
        assert len(set(seen)) == 8
        assert iterator.is_new_epoch
    with pytest.raises(InvalidArgument, match="leaves nothing of an epoch of 3 samples in batches"):
        KINDS[kind](list(range(3)), 4, drop_last=True).next()


def test_a_state_saved_before_a_remainder_is_loaded_where_it_is_dropped() -> None:
    whole = SerialIterator(list(range(5)), 3, shuffle=False)
    whole.next()
    state = whole.state_dict()
    state["current_position"] = 4
    dropping = SerialIterator(list(range(5)), 3, shuffle=False, drop_last=True)
    dropping.load_state_dict(state)
    assert dropping.next() == [0, 1, 2]


@given(st.integers(1, 40), st.integers(1, 5), st.sampled_from([False, True, "large"]))
def test_ranks_share_each_epoch_evenly(size: int, ranks: int, shuffled: Any) -> None:
    from hagane.training.iterators.orders import InOrder, SeededShuffle, Sharded
    from hagane.training.iterators.state import start, step

    epochs: list[list[int]] = [[], []]
    lengths = set()
    for rank in range(ranks):
        whole: Any = (
            InOrder() if not shuffled else SeededShuffle(3, 0 if shuffled == "large" else 9)
        )
        sampler = Sharded(whole, size, rank, ranks)
        state = start(sampler, size, 0)
        assert state.order is not None
        lengths.add(len(state.order))
        for epoch in epochs:
            for _ in range(len(state.order)):
                state, draw = step(state, 1, True, sampler, size)
                assert draw is not None
                epoch += draw.indices.tolist()
    assert lengths == {-(-size // ranks)}
    for epoch in epochs:
        assert set(epoch) == set(range(size))
        assert len(epoch) - size < ranks
    if shuffled and size > 10:
        assert epochs[0] != epochs[1]


def reversed_order(order: Any, position: int) -> Any:
    return np.roll(order, 2)[::-1]


@pytest.mark.parametrize("order", [{"shuffle": False}, {"order_sampler": reversed_order}, {}])
@pytest.mark.parametrize("taken", range(0, 9, 2))
def test_a_shard_goes_on_beyond_the_epoch_in_which_it_was_saved(order: Any, taken: int) -> None:
    def make() -> SerialIterator:
        return SerialIterator(list(range(11)), 2, seed=4, shard=(1, 2), **order)

    plain, first, second = make(), make(), make()
    found = [first.next() for _ in range(taken)]
    second.load_state_dict(first.state_dict())
    found += [second.next() for _ in range(14 - taken)]
    assert found == [plain.next() for _ in range(14)]


def test_a_shard_is_resumed_and_its_seed_is_asked_for() -> None:
    def make(rank: int = 1) -> SerialIterator:
        return SerialIterator(list(range(10)), 2, seed=4, shard=(rank, 3))

    one = make()
    for _ in range(3):
        one.next()
    state = one.state_dict()
    other = make()
    other.load_state_dict(state)
    assert [one.next() for _ in range(5)] == [other.next() for _ in range(5)]
    assert len(one) == 2
    with pytest.raises(InvalidArgument, match="shard: .* expected a seed, the same on every rank"):
        SerialIterator(list(range(10)), 2, shard=(0, 2))
    for wrong in ((2, 2), (0,), 3, (-1, 2), ("0", 2)):
        with pytest.raises(InvalidArgument, match="shard: expected .rank, number of ranks. with"):
            SerialIterator(list(range(10)), 2, seed=1, shard=wrong)  # type: ignore[arg-type]
    in_order = SerialIterator(list(range(6)), 2, shuffle=False, shard=(1, 2))
    assert [in_order.next() for _ in range(3)] == [[1, 3], [5, 1], [3, 5]]


class Sampler:
    """Gives its epoch's number and what follows, as PyTorch's samplers do."""

    def __init__(self) -> None:
        self.epoch = -1

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Any:
        return iter([self.epoch, self.epoch + 1])

    def __len__(self) -> int:
        return 2


def test_samplers_of_pytorchs_form_settle_the_order() -> None:
    iterator = SerialIterator(list(range(9)), 2, order_sampler=Sampler())
    assert len(iterator) == 1
    assert [iterator.next() for _ in range(3)] == [[0, 1], [1, 2], [2, 3]]
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra 'torch')")
    some = torch.utils.data.SubsetRandomSampler([1, 3, 5, 7])
    with MultiprocessIterator(list(range(9)), 2, order_sampler=some, n_processes=1) as drawn:
        for _ in range(2):
            assert sorted(drawn.next() + drawn.next()) == [1, 3, 5, 7]
    batches = torch.utils.data.BatchSampler(range(4), 2, False)
    with pytest.raises(InvalidArgument, match=r"batches of indices go to .*DataLoader"):
        SerialIterator(list(range(9)), 2, order_sampler=batches)
    with pytest.raises(InvalidArgument, match="order_sampler: expected a function of an order"):
        SerialIterator(list(range(9)), 2, order_sampler=iter([1]))
    assert len(SerialIterator(list(range(9)), 2, order_sampler=ShuffleOrderSampler()).next()) == 2


class Told:
    """Samples that tell what the worker was told."""

    value = 0

    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> Any:
        info = get_worker_info()
        assert info is not None
        return Told.value, info.id, info.num_workers


def tell(worker: int) -> None:
    Told.value = 10 + worker


def refuse(worker: int) -> None:
    raise OSError("no such mount")


def test_workers_are_begun_with_their_number() -> None:
    assert get_worker_info() is None
    with MultiprocessIterator(Told(), 3, n_processes=1, worker_init=tell) as iterator:
        assert iterator.next() == [(10, 0, 1)] * 3
    with (
        MultiprocessIterator(Told(), 3, n_processes=1, worker_init=refuse) as iterator,
        pytest.raises(LoadingError, match="worker_init raised in worker 0(?s:.*)no such mount"),
    ):
        iterator.next()
    with pytest.raises(InvalidArgument, match="worker_init: expected None or a function"):
        MultiprocessIterator(np.zeros(3), 1, worker_init=3)  # type: ignore[arg-type]
