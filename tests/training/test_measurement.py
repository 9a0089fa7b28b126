from __future__ import annotations

import io
import sys
import time
from typing import Any

import pytest

from hagane.errors import InvalidArgument
from hagane.training import measure
from hagane.training.iterators import MultiprocessIterator, SerialIterator


class Slow:
    """Each sample takes a time that leaves the core free."""

    def __init__(self, seconds: float):
        self.seconds = seconds

    def __len__(self) -> int:
        return 1000

    def __getitem__(self, index: int) -> int:
        time.sleep(self.seconds)
        return index


class Clock:
    """Time that passes only where it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def batches(self, seconds: float) -> Any:
        while True:
            self.now += seconds
            yield None

    def step(self, seconds: float) -> Any:
        def turn(_: object) -> None:
            self.now += seconds

        return turn


@pytest.mark.parametrize(
    ("loading", "compute", "limit", "remedy"),
    [(3.0, 1.0, "loading", "more workers"), (1.0, 3.0, "compute", "change nothing")],
)
def test_the_longer_time_is_the_limit(
    loading: float, compute: float, limit: str, remedy: str
) -> None:
    clock = Clock()
    result = measure(
        clock.batches(loading), clock.step(compute), batches=10, seconds=1e9, clock=clock
    )
    assert (result.loading, result.compute, result.iteration) == (loading, compute, 4.0)
    assert result.waiting == loading / 4
    assert result.limit == limit
    assert str(result).startswith(f"{limit} is the limit: loading {loading * 1e3:.2f} ms")
    assert remedy in str(result)


def test_measuring_leaves_the_iterator_where_it_was() -> None:
    iterator = SerialIterator(list(range(10)), 3, repeat=False, seed=1)
    expected = SerialIterator(list(range(10)), 3, repeat=False, seed=1)
    iterator.next()
    expected.next()
    measure(iterator, lambda _: None, batches=20)
    assert [*iterator] == [*expected]


@pytest.mark.parametrize("columns", [40, 60])
def test_a_bar_stays_within_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("COLUMNS", str(columns))
    measure(SerialIterator([1, 2], 1), lambda _: None, batches=50, progress=True)
    lines = stream.getvalue().split("\r")
    assert "50/50 batches" in lines[-2]
    assert max(map(len, lines)) < columns


def test_a_bar_is_drawn_and_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    measure(SerialIterator([1, 2], 1), lambda _: None, batches=4, progress=True)
    assert "both    [########################] 4/4 batches" in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[K")


def test_an_iterator_without_batches_is_an_error() -> None:
    with pytest.raises(InvalidArgument, match="gives no batches"):
        measure([], lambda _: None)
    with pytest.raises(InvalidArgument, match="positive number of batches, got 0"):
        measure([1], lambda _: None, batches=0)


@pytest.mark.long  # real time: a busy machine stretches it
@pytest.mark.parametrize("ratio", [0.2, 0.5, 1.0, 2.0, 5.0])
def test_an_iteration_costs_the_longer_of_loading_and_compute(ratio: float) -> None:
    loading = 0.02
    with MultiprocessIterator(Slow(loading / 2), 2, n_processes=1, n_prefetch=2) as iterator:
        results = []
        while not results or (results[-1].overlap >= 1.25 and len(results) < 8):
            results.append(measure(iterator, lambda _: time.sleep(loading * ratio), batches=15))
    result = results[-1]
    assert result.overlap < 1.25  # 1.1 on a quiet machine, see benchmarks/data_overlap.py
    assert result.limit == "compute" or ratio <= 1.0
