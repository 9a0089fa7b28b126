"""DataLoader beside PyTorch's own."""

from __future__ import annotations

import gc
import inspect
import itertools
import multiprocessing
import os
import pickle
import re
import time
import warnings
from typing import Any

import numpy as np
import pytest
import torch
import torch.utils.data as theirs
from hypothesis import given, settings
from hypothesis import strategies as st

from hagane.training import DataLoader, DistributedSampler
from hagane.training.errors import CollationError, DatasetError, LoadingTimeout, SampleError
from tests.training import loader_datasets as sets
from tests.training.loader_datasets import Kind, Stream
from tests.training.sample_datasets import Faulty, Foreign

# Workers are forked, as by default with Python 3.11, beside threads of pytest's.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")


def assert_same(one: Any, other: Any) -> None:
    assert type(one) is type(other), (one, other)
    if isinstance(one, torch.Tensor):
        assert one.dtype == other.dtype
        assert torch.equal(one, other)
    elif isinstance(one, dict):
        assert list(one) == list(other)
        for key in one:
            assert_same(one[key], other[key])
    elif isinstance(one, tuple | list):
        assert len(one) == len(other)
        for part, expected in zip(one, other, strict=True):
            assert_same(part, expected)
    else:
        assert one == other


def both(dataset: Any, epochs: int = 1, **options: Any) -> tuple[list[Any], list[Any]]:
    """Return the batches of both loaders, from equal seeds; PyTorch's makes them in one process."""
    plain = {
        key: value
        for key, value in options.items()
        if key not in ("num_workers", "prefetch_factor", "persistent_workers", "in_order")
    }
    made = []
    for kind, chosen in ((DataLoader, options), (theirs.DataLoader, plain)):
        torch.manual_seed(3)
        loader = kind(dataset, **chosen)
        made.append([[*loader] for _ in range(epochs)])
        assert len(loader) == len(made[-1][0])
    return made[0], made[1]


def test_the_signature_is_pytorchs() -> None:
    ours = inspect.signature(DataLoader).parameters
    expected = inspect.signature(theirs.DataLoader).parameters
    assert list(ours) == list(expected)
    for name, parameter in expected.items():
        assert ours[name].default == parameter.default, name
        assert ours[name].kind == parameter.kind, name


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", sets.SAMPLES)
def test_batches_are_those_of_pytorch_for_every_kind_of_sample(kind: str, workers: int) -> None:
    for options in ({"batch_size": 4, "shuffle": True}, {"batch_size": None}):
        ours, expected = both(Kind(kind), num_workers=workers, **options)
        assert_same(ours, expected)


@settings(max_examples=25, deadline=None)
@given(
    length=st.integers(0, 14),
    batch_size=st.one_of(st.none(), st.integers(1, 6)),
    shuffle=st.booleans(),
    drop_last=st.booleans(),
    workers=st.sampled_from([0, 0, 0, 1, 2]),
    epochs=st.integers(1, 2),
    chosen=st.sampled_from(["", "sampler", "batch_sampler", "generator", "random sampler"]),
    persistent=st.booleans(),
)
def test_batches_are_those_of_pytorch_for_combinations_of_options(
    length: int,
    batch_size: int | None,
    shuffle: bool,
    drop_last: bool,
    workers: int,
    epochs: int,
    chosen: str,
    persistent: bool,
) -> None:
    options: dict[str, Any] = {"batch_size": batch_size, "num_workers": workers}
    if batch_size is not None:
        options["drop_last"] = drop_last
    if chosen == "sampler":
        options["sampler"] = [each for each in (2, 0, 1, 1) if each < length]
    elif chosen == "batch_sampler":
        options = {"num_workers": workers, "batch_sampler": [[0], [2, 1]] if length > 2 else []}
    elif shuffle and length:
        options["shuffle"] = True
    if chosen == "generator":
        options["generator"] = torch.Generator()
    if chosen == "random sampler" and length and "shuffle" not in options:
        options["sampler"] = theirs.WeightedRandomSampler([1.0] * length, 9)
    if workers:
        options["persistent_workers"] = persistent
        options["prefetch_factor"] = 1 + length % 3
    made = []
    for kind in (DataLoader, theirs.DataLoader):
        if kind is theirs.DataLoader:
            options = {
                key: value
                for key, value in options.items()
                if key not in ("persistent_workers", "prefetch_factor")
            } | {"num_workers": 0}
        torch.manual_seed(length)
        if "generator" in options:
            options["generator"].manual_seed(5)
        loader = kind(Kind("dict", length), **options)
        made.append((len(loader), [[*loader] for _ in range(epochs)]))
    if not persistent:  # PyTorch draws the workers' seed once where they persist
        assert_same(*made)
    else:
        assert_same(made[0][1][0], made[1][1][0])


def test_orders_of_epochs_are_pytorchs_where_workers_persist() -> None:
    made = []
    for kind in (DataLoader, theirs.DataLoader):
        torch.manual_seed(1)
        loader = kind(Kind("number"), 3, True, num_workers=1, persistent_workers=True)
        made.append([[*loader] for _ in range(3)])
        del loader
    assert_same(*made)


def test_a_generator_of_numpys_settles_the_order_too() -> None:
    def epochs() -> Any:
        loader = DataLoader(Kind("number"), 4, True, generator=np.random.default_rng(3))
        return [torch.cat(list(loader)).tolist() for _ in range(2)]

    first, second = epochs()
    assert epochs() == [first, second]
    assert sorted(first) == sorted(second)
    assert first != second


@pytest.mark.parametrize("workers", [0, 2])
def test_samples_that_come_a_batch_at_a_time(workers: int) -> None:
    ours, expected = both(sets.AtOnce("tensors"), num_workers=workers, batch_size=4)
    assert_same(ours, expected)


@pytest.mark.parametrize("workers", [0, 2])
def test_keys_need_not_be_numbers_and_rows_of_tensors_are_taken_at_once(workers: int) -> None:
    words = ["a", "bcd", "ef"]
    loader = DataLoader(sets.Lookup(), 2, sampler=words, num_workers=workers)
    assert [batch.tolist() for batch in loader] == [[1, 3], [2]]
    tensors = theirs.TensorDataset(torch.rand(5, 2), torch.arange(5), torch.rand(5).half())
    assert_same(*both(tensors, num_workers=workers, batch_size=2, shuffle=True))
    loader = DataLoader({"a": 1, "bcd": 5, "ef": 2}, 2, sampler=words, num_workers=workers)
    assert [batch.tolist() for batch in loader] == [[1, 5], [2]]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_collation_of_ones_own_runs_where_the_batch_is_made(workers: int) -> None:
    ours, expected = both(Kind("arrays"), num_workers=workers, batch_size=4, collate_fn=sets.double)
    assert_same(ours, expected)
    loader = DataLoader(Kind("number"), 4, num_workers=workers, collate_fn=sets.fails)
    with pytest.raises(ArithmeticError, match="no such batch") as caught:
        next(iter(loader))
    assert isinstance(caught.value, SampleError) == bool(workers)


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("batch_size", [None, 1, 3])
@pytest.mark.parametrize("workers", [0, 1, 2])
def test_iterable_datasets_give_the_batches_of_pytorch(
    workers: int, batch_size: int | None, drop_last: bool
) -> None:
    if batch_size is None and drop_last:
        pytest.skip("no batches to drop: refused")
    options: Any = {"batch_size": batch_size, "drop_last": drop_last, "num_workers": workers}
    for length in (0, 12):  # parts of equal length, whose order is fixed
        ours = [*DataLoader(Stream(length), **options)]
        assert_same(ours, [*theirs.DataLoader(Stream(length), **options)])
    uneven = DataLoader(Stream(11), **options, persistent_workers=workers > 0)
    for _ in range(2):
        numbers = [int(each) for batch in uneven for each in np.atleast_1d(batch)]
        if not drop_last:
            assert sorted(numbers) == list(range(11))
        else:
            # Of two workers one has six samples, the other five.
            assert len(numbers) == (9 if batch_size == 3 else 11)
    assert len(uneven) == len(theirs.DataLoader(Stream(11), **options))


def test_an_iterable_without_pytorch_and_one_that_gives_too_much() -> None:
    with pytest.raises(TypeError, match="Plain has no __len__"):
        len(DataLoader(sets.Plain(), 4))
    assert [each.tolist() for each in DataLoader(sets.Plain(), 4)] == [[0, 1, 2, 3], [4, 5, 6]]
    parts = [each.tolist() for each in DataLoader(sets.Plain(), 4, num_workers=2)]
    assert parts == [[0, 2, 4, 6], [1, 3, 5]]
    loader = DataLoader(Stream(4, shared=False), 2, num_workers=2)
    assert len(loader) == 2
    with pytest.warns(UserWarning, match=r"has 2 batches, but it gave more.*get_worker_info"):
        assert len([*loader]) == 4


def test_an_error_in_a_stream_is_named_and_ends_that_stream() -> None:
    epoch = iter(DataLoader(sets.Failing(), 1, num_workers=1))
    assert [next(epoch).item(), next(epoch).item()] == [0, 1]
    with pytest.raises(KeyError, match="no third") as caught:
        next(epoch)
    assert isinstance(caught.value, SampleError)
    assert caught.value.index == 2
    with pytest.raises(StopIteration):
        next(epoch)


def test_random_numbers_of_samples_depend_on_the_seed_and_not_on_the_workers() -> None:
    def run(workers: int, seed: int) -> Any:
        torch.manual_seed(seed)
        return [*DataLoader(sets.Drawing(), 4, shuffle=True, num_workers=workers)]

    expected = run(0, 1)
    for workers in (1, 2):
        assert_same(run(workers, 1), expected)
    assert not torch.equal(run(1, 2)[0][1], expected[0][1])
    again = theirs.WeightedRandomSampler([1.0, 0, 0, 0, 0, 0], 3)
    ((index, one, *_),) = DataLoader(sets.Drawing(), 3, sampler=again)
    assert index.tolist() == [0, 0, 0]
    assert len(set(one.tolist())) == 3


def test_streams_draw_what_they_draw_with_pytorch() -> None:
    made = []
    for kind in (DataLoader, theirs.DataLoader):
        torch.manual_seed(4)
        made.append([*kind(sets.DrawingStream(), 2, num_workers=2)])
    assert_same(*made)


def test_workers_are_begun_with_their_number_and_know_what_they_are() -> None:
    loader = DataLoader(
        sets.Changed(),
        2,
        num_workers=1,
        worker_init_fn=sets.set_offset,
        multiprocessing_context=multiprocessing.get_context("fork"),
    )
    assert [batch.tolist() for batch in loader] == [[100, 101], [102, 103]]
    with pytest.raises(RuntimeError, match="worker_init raised in worker 0(?s:.*)no such mount"):
        next(iter(DataLoader(sets.Changed(), num_workers=1, worker_init_fn=sets.refuse)))


class _Threaded:
    """As a session that owns threads: it cannot be deleted in a forked process."""

    def __init__(self) -> None:
        self.owner, self.itself = os.getpid(), self

    def __del__(self) -> None:
        if os.getpid() != self.owner:
            os._exit(9)


class _Collecting:
    """Collects garbage for each sample."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        gc.collect()
        return index


@pytest.mark.long
@pytest.mark.parametrize("collects", [True, False])
def test_a_forked_worker_leaves_what_its_parent_has_let_go(collects: bool) -> None:
    gc.collect()
    gc.disable()
    try:
        _Threaded()
        if collects:
            gc.enable()
        loader = DataLoader(
            _Collecting(), 2, num_workers=1,
            multiprocessing_context=multiprocessing.get_context("fork"),
        )  # fmt: skip
        assert [batch.tolist() for batch in loader] == [[0, 1], [2, 3]]
        assert gc.isenabled() == collects
    finally:
        gc.enable()


def test_epochs_without_persistent_workers_see_the_dataset_as_it_is_then() -> None:
    dataset = sets.Changed()
    fresh = DataLoader(dataset, 4, num_workers=1)
    kept = DataLoader(dataset, 4, num_workers=1, persistent_workers=True)
    for loader in (fresh, kept):
        assert next(iter(loader)).tolist() == [0, 1, 2, 3]
    dataset.offset = 10
    assert next(iter(fresh)).tolist() == [10, 11, 12, 13]
    assert next(iter(kept)).tolist() == [0, 1, 2, 3]


def test_an_epoch_left_in_the_middle_is_begun_anew_without_growing() -> None:
    kept = DataLoader(Kind("number", 40), 2, num_workers=2, persistent_workers=True)
    for _ in range(20):
        assert next(iter(kept)).tolist() == [0.0, 1.5]
    assert kept._persistent is not None
    pool = kept._persistent._pool
    assert pool is not None
    assert len(pool._ring._slots) == pool.setting.slots
    two = [iter(DataLoader(Kind("number"), 4, num_workers=1)) for _ in range(2)]
    for one, other in itertools.zip_longest(*two):
        assert torch.equal(one, other)


def test_batches_out_of_order_are_all_there() -> None:
    loader = DataLoader(Kind("number", 30), 3, num_workers=2, in_order=False)
    assert sorted(torch.cat([*loader]).tolist()) == [1.5 * each for each in range(30)]


def test_a_batch_that_is_done_before_another_is_taken_from_between_the_rest() -> None:
    class Slow(Kind):
        def __getitem__(self, index: int) -> Any:
            time.sleep(0.5 if index == 0 else 0)
            return super().__getitem__(index)

    loader = DataLoader(Slow("number", 12), 3, num_workers=2, in_order=False)
    first, *rest = [batch.tolist() for batch in loader]
    assert 0.0 not in first
    assert sorted(itertools.chain(first, *rest)) == [1.5 * each for each in range(12)]


@pytest.mark.long
def test_batches_stay_what_they_are_when_the_loader_is_gone() -> None:
    batches = [*DataLoader(Kind("tensors", 40), 4, num_workers=2)]
    gc.collect()
    for number, (x, y) in enumerate(batches):
        assert y.tolist() == list(range(4 * number, 4 * number + 4))
        assert (x == y[:, None, None]).all()
        x += 1  # they may be written to


def test_ranks_share_an_epoch() -> None:
    def of(rank: int, kind: Any, epoch: int, **options: Any) -> list[float]:
        sampler = kind(range(11), num_replicas=3, rank=rank, **options)
        sampler.set_epoch(epoch)
        loader = DataLoader(Kind("number"), 2, sampler=sampler)
        return [each / 1.5 for batch in loader for each in batch.tolist()]

    for drop_last in (False, True):
        for rank in range(3):
            ours = of(rank, DistributedSampler, 0, shuffle=False, drop_last=drop_last)
            torchs = theirs.DistributedSampler
            assert ours == of(rank, torchs, 0, shuffle=False, drop_last=drop_last)
    shuffled = [of(rank, DistributedSampler, 1) for rank in range(3)]
    assert {*itertools.chain(*shuffled)} == set(range(11))
    assert shuffled != [of(rank, DistributedSampler, 2) for rank in range(3)]
    with pytest.raises(ValueError, match="expected a rank from 0 to 1, got 2"):
        DistributedSampler(range(3), 2, 2)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("none", r"at \['a'\]: expected tensors, .* got NoneType; pass collate_fn"),
        ("ragged", r"at \[1\]\['image'\]: .* expected \[2, 3\], .* got \[2, 4\] at place 2; pad"),
        ("ragged tensors", r"differ in shape: expected \[1\], as at place 0, got \[2\] at place 1"),
        ("keys", r"do not look alike: expected a dict of 'a', 'b0', .* 'a', 'b1' at place 1"),
        ("lengths", "expected a list of 1, as at place 0, got a list of 2 at place 1"),
        ("object", r"at \[0\]: .* got object; pass"),
        ("text array", "got an array of <U1"),
    ],
)
@pytest.mark.parametrize("workers", [0, 1])
def test_samples_that_make_no_batch_are_named_with_their_place(
    kind: str, text: str, workers: int
) -> None:
    epoch = iter(DataLoader(sets.Odd(kind), 3, num_workers=workers))
    with pytest.raises(CollationError, match=text) as caught:
        next(epoch)
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, RuntimeError)
    with pytest.raises(StopIteration):
        next(epoch)


def test_an_error_of_the_dataset_is_named_and_the_next_batch_follows() -> None:
    for workers in (0, 2):
        epoch = iter(DataLoader(Faulty("raises"), 4, num_workers=workers))
        assert next(epoch)[0].tolist() == [0, 1, 2, 3]
        with pytest.raises(KeyError, match="index 5 could not be made"):
            next(epoch)
        assert next(epoch)[0].tolist() == [8, 9, 10, 11]
    epoch = iter(DataLoader(Foreign("raise"), 4, num_workers=1))
    next(epoch)
    with pytest.raises(SampleError, match="OddError: odd sample"):
        next(epoch)
    assert next(epoch).tolist() == [8, 9, 10, 11]


def test_a_stream_whose_worker_dies_ends_in_an_error() -> None:
    epoch = iter(DataLoader(map(int, "12"), num_workers=0))
    assert next(epoch).tolist() == [1]
    with pytest.raises(RuntimeError, match="on its way through an iterable dataset"):
        [*DataLoader(Dying(), num_workers=1)]


class Dying:
    """A stream whose process ends."""

    def __iter__(self) -> Any:
        import os

        yield 1
        os._exit(4)


def test_a_batch_that_takes_too_long_is_an_error(tmp_path: Any) -> None:
    gate = tmp_path / "gate"
    dataset = Faulty("waits", gate=str(gate))
    epoch = iter(DataLoader(dataset, 4, num_workers=1, timeout=0.3))
    while True:
        try:
            first = next(epoch)
            break
        except LoadingTimeout:  # a worker takes its time to start on a busy machine
            pass
    assert first[0].tolist() == [0, 1, 2, 3]
    with pytest.raises(LoadingTimeout, match=r"within timeout=0.3 seconds; .*index 5; the next"):
        next(epoch)
    gate.touch()
    while True:
        try:
            assert next(epoch)[0].tolist() == [4, 5, 6, 7]
            break
        except LoadingTimeout:
            pass


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"batch_size": 0}, "batch_size: expected a positive integer, or None .* got 0"),
        ({"batch_size": 2.0}, "batch_size: .* got 2.0"),
        ({"num_workers": -1}, "num_workers: expected an integer from 0, .* got -1"),
        ({"timeout": -1}, "timeout: expected seconds, or 0 to wait for ever, got -1"),
        ({"timeout": 3}, "timeout=3 speaks of worker processes, but num_workers is 0"),
        ({"prefetch_factor": 2}, "prefetch_factor=2 speaks of worker processes"),
        ({"prefetch_factor": 0, "num_workers": 1}, "prefetch_factor: .* got 0"),
        ({"persistent_workers": True}, "persistent_workers=True speaks of worker processes"),
        ({"sampler": [0], "shuffle": True}, "sampler and shuffle=True both say"),
        ({"batch_sampler": [[0]], "batch_size": 2}, "so does batch_size: pass batch_sampler"),
        ({"batch_sampler": [[0]], "drop_last": True}, "so does drop_last"),
        ({"batch_sampler": [[0]], "sampler": [0]}, "so does sampler"),
        ({"batch_sampler": [[0]], "shuffle": True}, "so does shuffle"),
        ({"batch_size": None, "drop_last": True}, "drop_last=True needs batches"),
        ({"sampler": 3}, "sampler: expected an iterable, got 3"),
        ({"collate_fn": 3}, "collate_fn: expected None or a function, got 3"),
        ({"generator": 3}, "generator: expected None, a torch.Generator or"),
        ({"multiprocessing_context": "thread", "num_workers": 1}, "one of fork, .* got 'thread'"),
        ({"multiprocessing_context": "fork"}, "'fork' speaks of worker processes"),
    ],
)
def test_options_that_do_not_go_together_are_named(options: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        DataLoader(Kind("number"), **options)


@pytest.mark.parametrize("name", ["shuffle", "sampler", "batch_sampler"])
def test_an_iterable_dataset_takes_no_indices(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}=.* chooses samples by index, but the dataset is"):
        DataLoader(Stream(3), **{name: [[0]] if name == "batch_sampler" else [0]})


def test_what_is_no_dataset_and_what_is_settled_is_said() -> None:
    with pytest.raises(DatasetError, match=r"with __iter__, got int"):
        DataLoader(3)
    with pytest.raises(DatasetError, match=r"Lookup.*has no len"):
        DataLoader(sets.Lookup())
    loader = DataLoader(Kind("number"), 4)
    with pytest.raises(ValueError, match="batch_size is settled when the loader is made"):
        loader.batch_size = 3
    loader.timeout = 3
    assert len(pickle.loads(pickle.dumps(loader))) == 3


@pytest.mark.skipif(torch.accelerator.is_available(), reason="an accelerator pins memory")
def test_pinning_without_a_device_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="has no accelerator: batches stay in ordinary memory"):
        loader = DataLoader(Kind("number"), 4, pin_memory=True)
    assert torch.cat([*loader]).tolist() == [1.5 * each for each in range(11)]


@pytest.mark.skipif(not torch.accelerator.is_available(), reason="needs an accelerator")
def test_batches_are_pinned_where_there_is_a_device() -> None:
    for workers in (0, 1):
        loader = DataLoader(Kind("dict"), 4, pin_memory=True, num_workers=workers)
        for batch in loader:
            assert batch["x"].is_pinned()
            assert batch["pair"][1].is_pinned()


WITHOUT = """
import sys
sys.modules["torch"] = None
import importlib.util
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "torch" else real(name, *rest)
import numpy as np
from hagane.training import DataLoader

samples = [{"x": np.full(2, i, np.float32), "t": i, "s": str(i)} for i in range(5)]
if __name__ == "__main__":
    for workers in (0, 1):
        np.random.seed(1)
        for batch in DataLoader(samples, 3, shuffle=True, num_workers=workers):
            print({key: value if key == "s" else value.tolist() for key, value in batch.items()})
"""


def test_without_pytorch_batches_are_arrays(tmp_path: Any) -> None:
    import subprocess
    import sys

    path = tmp_path / "without.py"
    path.write_text(WITHOUT)
    ran = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    assert lines[:2] == lines[2:]
    assert re.match(r"\{'x': \[\[\d\.0, \d\.0\], ", lines[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "array" not in lines[0]


@pytest.mark.parametrize("kind", ["dict", "tensors", "half", "named tuple", "ordered"])
def test_a_collation_may_leave_the_samples_as_they_are(kind: str) -> None:
    ours, expected = both(Kind(kind), num_workers=1, batch_size=4, collate_fn=list)
    assert repr(ours) == repr(expected)
    mixed = [{"a": np.arange(3000)}, {"b": 1}, {"a": np.zeros((2, 2))}, {"a": "text"}]
    (batch,) = DataLoader(mixed, 4, num_workers=1, collate_fn=list)
    assert repr(batch) == repr(mixed)


@pytest.mark.parametrize("batch_size", [3, None])
def test_the_function_in_the_place_of_a_collation_makes_what_the_loader_makes(
    batch_size: int | None,
) -> None:
    data = Kind("dict")
    made = DataLoader(data, batch_size=batch_size)
    expected = theirs.DataLoader(data, batch_size=batch_size)
    rows = [data[i] for i in range(3)] if batch_size else data[0]
    assert_same(made.collate_fn(rows), expected.collate_fn(rows))
    again = DataLoader(data, batch_size=batch_size, collate_fn=made.collate_fn, num_workers=1)
    assert again.own_collation is None
    assert_same([*again], [*expected])
    own = DataLoader(data, batch_size=batch_size, collate_fn=len)
    assert own.collate_fn is len
