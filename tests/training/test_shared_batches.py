"""Batches as views of shared memory: how long they live, and what becomes of them."""

from __future__ import annotations

import collections
import gc
import os
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hagane.training.datasets import TupleDataset
from hagane.training.iterators import MultiprocessIterator, SerialIterator
from hagane.training.iterators.batch import stack
from hagane.training.iterators.processes.layout import assemble, read_layout
from hagane.training.iterators.processes.memory import Slot, create
from hagane.training.iterators.processes.writer import BatchWriter

X = np.arange(400, dtype=np.float32).reshape(100, 4)


def test_batches_are_views_of_shared_memory_and_stay_as_long_as_they_are_held() -> None:
    with MultiprocessIterator(X, 5, shuffle=False, n_processes=2, collate="stack") as iterator:
        held = [iterator.next() for _ in range(12)]
        shared = [not isinstance(batch.base, bytearray) and not _copied(batch) for batch in held]
        assert shared[:3] == [True] * 3
        assert not any(shared[3:])  # the ring had no more to lend
        for number, batch in enumerate(held):
            np.testing.assert_array_equal(batch, X[5 * number : 5 * number + 5])
        del held, batch
        gc.collect()
        assert not _copied(iterator.next())
        last = iterator.next()
    np.testing.assert_array_equal(last, X[65:70])  # also after the iterator is finalized


def _copied(batch: Any) -> bool:
    return isinstance(batch.base, bytearray)


def test_a_batch_that_is_dropped_returns_its_buffer() -> None:
    with MultiprocessIterator(X, 5, n_processes=1, collate="stack") as iterator:
        addresses = {iterator.next().__array_interface__["data"][0] for _ in range(50)}
        assert iterator._pool is not None
        assert len(addresses) <= iterator._pool.setting.slots


def test_copies_come_on_request() -> None:
    with MultiprocessIterator(X, 5, n_processes=1, collate="stack", copy=True) as iterator:
        assert _copied(iterator.next())


def test_batches_can_be_written_to() -> None:
    with MultiprocessIterator(X, 5, shuffle=False, n_processes=1, collate="stack") as iterator:
        for begin in range(0, 100, 5):
            batch = iterator.next()
            np.testing.assert_array_equal(batch, X[begin : begin + 5])
            batch *= -1


def test_a_dataset_in_memory_is_shared_and_not_changed_by_what_workers_write() -> None:
    with MultiprocessIterator(Writing(), 4, shuffle=False, n_processes=1) as iterator:
        assert iterator.next() == [1.0, 1.0, 1.0, 1.0]
        assert iterator.next() == [2.0, 2.0, 2.0, 2.0]


class Writing:
    def __init__(self) -> None:
        self.counts = np.zeros(4)

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> float:
        self.counts[index] += 1
        return float(self.counts[index])


def total(samples: list[Any]) -> dict[str, Any]:
    return {"sum": np.sum(samples, axis=0), "count": len(samples)}


def test_a_function_collates_in_the_worker() -> None:
    with MultiprocessIterator(X, 5, shuffle=False, n_processes=1, collate=total) as iterator:
        batch = iterator.next()
    np.testing.assert_array_equal(batch["sum"], X[:5].sum(axis=0))
    assert batch["count"] == 5


Point = collections.namedtuple("Point", ["x", "y"])

arrays = st.builds(
    lambda shape, kind, fill: np.full(shape, fill).astype(kind),
    st.lists(st.integers(0, 3), max_size=3).map(tuple),
    st.sampled_from(["f4", "i8", "?", "c16", ">i2", "M8[s]", "S3", "O"]),
    st.integers(0, 9),
)
leaves = st.one_of(
    arrays,
    st.integers(),
    st.floats(allow_nan=False),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.none(),
    st.booleans(),
    st.integers(0, 9).map(np.float32),
    arrays.map(np.asfortranarray),
)
samples_of_any_kind = st.recursive(
    leaves,
    lambda part: st.one_of(
        st.lists(part, max_size=3),
        st.lists(part, max_size=3).map(tuple),
        st.dictionaries(st.sampled_from("abc"), part, max_size=3),
        st.tuples(part, part).map(lambda pair: Point(*pair)),
    ),
    max_leaves=5,
)


def through_memory(
    samples: list[Any], stacked: bool, ragged: frozenset[int], together: bool = False
) -> Any:
    descriptor = create(1)
    slot = Slot(descriptor, 0)
    writer = BatchWriter(slot, len(samples), None, stacked, ragged, together)
    accept = writer.restart()
    for sample in samples:
        accept(sample)
    offset, length, buffers = writer.write_layout(writer.finish())
    padded = -(-length // 8) * 8
    memory = memoryview(slot.lease(offset + padded + 16 * buffers)).cast("B")
    os.close(descriptor)
    table = np.frombuffer(memory, np.int64, 2 * buffers, offset + padded).reshape(-1, 2)
    parts = [memory[begin : begin + size] for begin, size in table.tolist()]
    return assemble(read_layout(bytes(memory[offset : offset + length]), parts), memory)


@pytest.mark.long
@settings(deadline=None)
@given(st.lists(samples_of_any_kind, min_size=1, max_size=4), st.booleans(), st.booleans())
def test_any_samples_come_back_as_they_went(
    samples: list[Any], ragged: bool, together: bool
) -> None:
    columns = frozenset(range(5)) if ragged else frozenset()
    assert_same(through_memory(samples, False, columns, together), samples)


@pytest.mark.parametrize(
    "samples",
    [
        [np.zeros(()), []],
        [np.float32(1), np.float64(2)],
        [np.zeros(2), np.zeros((1, 3)), np.zeros(0)],
        [np.zeros(2), np.zeros(2, int)],
        [{"a": 1}, {"b": 1}],
        [(), ()],
        [(1, [np.zeros(3)]), (2, [np.zeros(4)])],
        [{"x": np.arange(2), "n": np.int64(4)}, {"n": np.int64(5), "x": np.arange(3)}],
        [np.zeros(2, ">f4"), np.ones(2, "<f4")],
        [np.datetime64(1, "D"), np.datetime64(2, "s")],
        [np.zeros((2, 3)).T, np.zeros((1, 3))],
    ],
)
@pytest.mark.parametrize("together", [False, True])
def test_samples_that_change_shape_on_the_way_come_back_as_they_went(
    samples: list[Any], together: bool
) -> None:
    assert_same(through_memory(samples, False, frozenset(), together), samples)


@settings(deadline=None)
@given(samples_of_any_kind, st.integers(1, 4))
def test_workers_stack_as_this_process_does(sample: Any, count: int) -> None:
    samples = [sample] * count
    assert_same(through_memory(samples, True, frozenset()), stack(samples))


def assert_same(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_array_equal(one, other)
    elif isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_same(one[key], other[key])
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for part, another in zip(one, other, strict=True):
            assert_same(part, another)
    else:
        assert one == other


def test_a_pytorch_dataset_gives_tensors_over_shared_memory() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra 'torch')")
    dataset = torch.utils.data.TensorDataset(torch.from_numpy(X), torch.arange(100))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        serial = SerialIterator(dataset, 5, shuffle=False, collate="stack").next()
        with MultiprocessIterator(
            dataset, 5, shuffle=False, n_processes=1, collate="stack"
        ) as iterator:
            images, labels = iterator.next()
    assert torch.equal(images, serial[0])
    assert torch.equal(labels, serial[1])


def test_arrays_in_memory_are_taken_at_once_with_the_samples_that_indexing_gives() -> None:
    pairs = TupleDataset(X, np.arange(100))
    with MultiprocessIterator(pairs, 5, n_processes=1, seed=1) as iterator:
        for sample, expected in zip(
            iterator.next(), SerialIterator(pairs, 5, seed=1).next(), strict=True
        ):
            assert type(sample) is type(expected)
            assert_same(sample, expected)
