"""Workers that the system stops at some step, and that go on, or die, at any later time."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hagane.training.iterators import MultiprocessIterator
from tests.training.stalling import STEPS, Stalling

SOON = 15.0


def stopped(mark: Path) -> int:
    """Return the process that left a mark, once the system has stopped it."""
    deadline = time.monotonic() + SOON
    while time.monotonic() < deadline:
        text = mark.read_text() if mark.exists() else ""
        if text:
            stat = Path(f"/proc/{text}/stat").read_text()
            if stat.rpartition(")")[2].split()[0] == "T":
                return int(text)
        time.sleep(0.002)
    raise AssertionError("no worker was stopped")


def check(batch: Any, number: int) -> None:
    rows, _ = batch
    expected = np.arange(4 * number, 4 * number + 4) % 12
    assert rows[:, 0].tolist() == expected.tolist()
    assert (rows == rows[:, :1]).all()


@pytest.mark.parametrize("end", ["goes on", "is killed"])
@pytest.mark.parametrize("step", STEPS)
def test_a_worker_that_stalls_never_writes_into_a_batch_in_the_callers_hands(
    step: str, end: str, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    with MultiprocessIterator(
        Stalling(step, mark), 4, shuffle=False, n_processes=2, n_prefetch=3, collate="stack"
    ) as iterator:
        check(iterator.next(), 0)
        process = stopped(mark)
        pool: Any = iterator._pool
        if step not in (
            "task read",
            "batch published",
        ):  # a batch that is known to be in the making
            iterator.reset()
            number = 0
        else:
            number = 1
        held: list[tuple[Any, Any]] = []
        for _ in range(7):
            batch = iterator.next()
            check(batch, number % 3)
            number += 1
            if len(held) < 3:  # those in shared memory; more would be copies
                held.append((batch, [np.copy(part) for part in batch]))
            # Nobody but the worker that still goes makes batches.
            assert step == "batch published" or (batch[1] != process).all()
        if end == "is killed":
            os.kill(process, signal.SIGKILL)
        else:
            os.kill(process, signal.SIGCONT)
        deadline = time.monotonic() + SOON
        back = False  # whether a batch came from the one that stalled, or from the one after it
        while not back or pool._ring._revoked or any(map(pool.abandoned, pool._tickets.values())):
            assert time.monotonic() < deadline
            batch = iterator.next()
            check(batch, number % 3)
            number += 1
            back = back or batch[1][0] == process or process not in pool.pids()
        for batch, kept in held:
            for part, expected in zip(batch, kept, strict=True):
                np.testing.assert_array_equal(part, expected)
        assert len(pool._ring._slots) <= pool.setting.slots + 1


def test_the_slot_of_an_attempt_that_was_given_up_is_not_given_out(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with MultiprocessIterator(
        Stalling("task read", mark), 4, shuffle=False, n_processes=2, collate="stack"
    ) as iterator:
        first = iterator.next()
        process = stopped(mark)
        pool: Any = iterator._pool
        second = iterator.next()
        (revoked,) = pool._ring._revoked.values()
        assert process in revoked.holders
        assert pool._ring._slots[revoked.slot].owner == -1
        for _ in range(6):
            iterator.next()
            assert all(task.slot != revoked.slot for task, _ in iterator._tasks)
            assert revoked.slot not in pool._ring._free
        check(first, 0)
        check(second, 1)
