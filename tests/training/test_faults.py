"""What goes wrong in a worker, in its parent or in memory, and what comes of it."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hagane.training.errors import (
    DatasetError,
    IteratorFinalized,
    LoadingError,
    SampleError,
    SharedMemoryFull,
    WorkerDied,
)
from hagane.training.iterators import MultiprocessIterator, MultithreadIterator, SerialIterator
from hagane.training.iterators.processes.crew import Setting
from hagane.training.iterators.processes.pool import Pool
from hagane.training.iterators.processes.protocol import MESSAGE, TaskMessage
from hagane.training.iterators.processes.worker import Work
from hagane.training.iterators.state import Draw
from tests.training.sample_datasets import Faulty, Foreign, Mixed

ROOT = Path(__file__).parents[2]
# What takes milliseconds on an idle machine may take this many seconds on a busy one. Whatever is
# bounded by it would take minutes, or for ever, were it not for the feature under test.
SOON = 15.0


@pytest.fixture(autouse=True)
def _shared_memory_stays_clean() -> Any:
    before = set(os.listdir("/dev/shm"))
    yield
    # The tracker of a killed process removes what that left behind a moment later.
    end = time.monotonic() + 5
    while not set(os.listdir("/dev/shm")) <= before and time.monotonic() < end:
        time.sleep(0.01)
    assert set(os.listdir("/dev/shm")) <= before


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def wait_until_gone(pids: list[int], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if all(map(gone, pids)):
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("kind", ["serial", "threads", "processes"])
def test_an_exception_is_raised_with_index_and_traceback_and_the_next_batch_follows(
    kind: str,
) -> None:
    dataset = Faulty("raises")
    iterator: Any = {
        "serial": lambda: SerialIterator(dataset, 4, shuffle=False),
        "threads": lambda: MultithreadIterator(dataset, 4, shuffle=False),
        "processes": lambda: MultiprocessIterator(dataset, 4, shuffle=False, n_processes=2),
    }[kind]()
    with iterator:
        assert [sample[0] for sample in iterator.next()] == [0, 1, 2, 3]
        with pytest.raises(KeyError, match="index 5 could not be made") as caught:
            iterator.next()
        assert isinstance(caught.value, SampleError)
        assert caught.value.index == 5
        assert "in raises" in caught.value.remote_traceback
        assert "no such label" in str(caught.value)
        assert [sample[0] for sample in iterator.next()] == [8, 9, 10, 11]


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ("raise", r"only_here\.OddError: odd sample"),
        ("mute", "Mute"),
        ("final", "odd sample"),
        ("raise a local class", "Local: odd sample"),
        ("return", r"unpickled in this process: ModuleNotFoundError: .*only_here"),
    ],
)
def test_what_only_the_worker_can_import_is_an_error_with_its_text_and_the_next_batch_follows(
    how: str, text: str
) -> None:
    with MultiprocessIterator(Foreign(how), 4, shuffle=False, n_processes=1) as iterator:
        assert iterator.next() == [0, 1, 2, 3]
        with pytest.raises(SampleError, match=text) as caught:
            iterator.next()
        assert caught.value.index == (4 if how == "return" else 5)
        assert "index 5" in str(caught.value) or "indices 4, 5, 6, 7" in str(caught.value)
        del caught
        assert iterator.next() == [8, 9, 10, 11]
        for _ in range(12):  # no slot was lost
            with contextlib.suppress(SampleError):
                iterator.next()


def test_a_stop_iteration_from_a_dataset_does_not_end_the_loop() -> None:
    with (
        MultiprocessIterator(Faulty("stops"), 4, shuffle=False, n_processes=1) as iterator,
        pytest.raises(SampleError, match="StopIteration"),
    ):
        list(iterator)


@pytest.mark.parametrize("what", ["exits", "is_killed"])
@pytest.mark.parametrize("method", ["forkserver", "spawn", "fork"])
def test_the_batch_of_a_dead_worker_is_made_again(what: str, method: str, tmp_path: Path) -> None:
    dataset = Faulty(what, once=str(tmp_path / "mark"))
    with MultiprocessIterator(
        dataset, 4, repeat=False, shuffle=False, n_processes=2, start_method=method
    ) as iterator:
        samples = [sample[0] for batch in iterator for sample in batch]
    assert samples == list(range(12))
    assert (tmp_path / "mark").exists()


@pytest.mark.parametrize(
    ("what", "how"),
    [("exits", "exited with status 3"), ("is_killed", "killed by SIGKILL while")],
)
def test_a_batch_that_kills_twice_is_reported_and_the_others_come(what: str, how: str) -> None:
    with MultiprocessIterator(Faulty(what), 4, shuffle=False, n_processes=2) as iterator:
        assert [sample[0] for sample in iterator.next()] == [0, 1, 2, 3]
        with pytest.raises(WorkerDied, match=f"{how}.*index 5"):
            iterator.next()
        assert [sample[0] for sample in iterator.next()] == [8, 9, 10, 11]


def test_workers_killed_from_outside_are_noticed_at_once() -> None:
    with MultiprocessIterator(Faulty("hangs", at=0), 4, shuffle=False, n_processes=1) as iterator:
        killed_at: list[float] = []
        raised = threading.Event()

        def kill_whoever_works() -> None:
            killed = -1
            while not raised.is_set():
                pool = iterator._pool
                if pool is None or pool.pids()[0] == killed or not pool.all_ready():
                    time.sleep(0.002)
                elif pool._control.progress(0).ticket >= 0:
                    killed = pool.pids()[0]
                    killed_at.append(time.monotonic())
                    os.kill(killed, signal.SIGKILL)

        killer = threading.Thread(target=kill_whoever_works)
        killer.start()
        with pytest.raises(WorkerDied, match=r"killed by SIGKILL .* index 0"):
            iterator.next()
        noticed = time.monotonic()
        raised.set()
        killer.join()
    assert len(killed_at) >= 2
    assert noticed - killed_at[-1] < SOON


def test_a_stalled_sample_is_reported_with_its_index_and_arrives(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with MultiprocessIterator(
        Faulty("waits", gate=str(gate)), 4, shuffle=False, n_processes=1, dataset_timeout=1.0
    ) as iterator:
        iterator.next()
        # Warnings are errors here, so that the gate can open once there was one.
        with pytest.raises(MultiprocessIterator.TimeoutWarning, match=r"index 5 for \d\.\d s, lo"):
            iterator.next()
        gate.touch()
        assert [sample[0] for sample in iterator.next()] == [4, 5, 6, 7]


def test_a_stalled_sample_of_an_abandoned_batch_is_reported_too(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with MultiprocessIterator(
        Faulty("waits", gate=str(gate)), 4, shuffle=False, n_processes=1, dataset_timeout=1.0
    ) as iterator:
        iterator.next()
        assert iterator._pool is not None
        while iterator._pool._control.progress(0).place != 1:
            time.sleep(0.002)
        iterator.reset()
        with pytest.raises(
            MultiprocessIterator.TimeoutWarning, match=r"index 5 for \d.* no longer wanted"
        ):
            iterator.next()
        gate.touch()
        assert [sample[0] for sample in iterator.next()] == [0, 1, 2, 3]


def test_a_task_that_a_worker_took_and_lost_is_sent_again(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    setting = Setting(1, 3, None, None, Work(False, None, None), "forkserver", None)
    pool = Pool(Faulty("waits", at=0, gate=str(gate)), setting)
    try:
        first, second = (
            pool.submit(Draw(np.array([index]), np.array([0])), seed=0) for index in (0, 1)
        )
        while pool._control.progress(0).ticket != first.ticket:
            pool.wait(first, 0.01)
        taken = TaskMessage.unpack(os.read(pool._queues[0].read, MESSAGE.size))
        assert taken.ticket == second.ticket
        gate.touch()
        assert pool.wait(first, SOON)
        assert pool.wait(second, SOON)
        assert second.ticket != taken.ticket
        assert second.result is not None
    finally:
        pool.close()


def test_a_sample_that_cannot_be_pickled_is_named() -> None:
    with MultiprocessIterator(
        Faulty("cannot_be_pickled"), 4, shuffle=False, n_processes=1
    ) as iterator:
        iterator.next()
        with pytest.raises(
            SampleError, match=r"index 5 could not be made.*[Cc]an't pickle"
        ) as caught:
            iterator.next()
        assert caught.value.index == 5


def test_a_dataset_that_cannot_be_pickled_is_named_with_the_remedy() -> None:
    class Local:
        def __len__(self) -> int:
            return 3

        def __getitem__(self, index: int) -> int:
            return index

    with pytest.raises(DatasetError, match=r"dataset \(Local\).*start_method='fork'"):
        MultiprocessIterator(Local(), 3, n_processes=1).next()
    with MultiprocessIterator(
        Local(), 3, shuffle=False, n_processes=1, start_method="fork"
    ) as iterator:
        assert iterator.next() == [0, 1, 2]


class Locked:
    """A dataset with a lock of threads, or of processes."""

    def __init__(self, lock: Any):
        self.lock = lock

    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> int:
        with self.lock:
            return index


def test_a_dataset_with_a_lock_of_threads_is_named_and_one_of_processes_travels() -> None:
    with pytest.raises(DatasetError, match=r"dataset \(Locked\) cannot be pickled.*lock"):
        MultiprocessIterator(Locked(threading.Lock()), 3, n_processes=1).next()
    lock = multiprocessing.get_context("forkserver").Lock()
    with MultiprocessIterator(Locked(lock), 3, shuffle=False, n_processes=1) as iterator:
        assert iterator.next() == [0, 1, 2]


UNGUARDED = """
import os
from hagane.training.iterators import MultiprocessIterator

with open({log!r}, "a") as log:
    print(os.getpid(), file=log)
MultiprocessIterator(list(range(9)), 3, n_processes=2, start_method={method!r}).next()
"""


@pytest.mark.parametrize("method", ["forkserver", "spawn"])
def test_a_program_without_a_main_guard_ends_with_an_error_that_says_so(
    method: str, tmp_path: Path
) -> None:
    path, log = tmp_path / "unguarded.py", tmp_path / "log"
    path.write_text(UNGUARDED.format(log=str(log), method=method))
    ran = subprocess.run(
        [sys.executable, str(path)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=4 * SOON,
        check=False,
    )
    assert ran.returncode == 1
    assert "put the code that runs under  if __name__ == '__main__':" in ran.stderr
    pids = [int(line) for line in log.read_text().split()]
    assert 2 <= len(pids) < 20  # the program and its workers, none of which starts others
    assert wait_until_gone(pids, SOON)


def test_samples_that_are_no_arrays_travel_pickled_with_one_notice() -> None:
    with MultiprocessIterator(Faulty("is_odd"), 4, shuffle=False, n_processes=1) as iterator:
        iterator.next()
        with pytest.warns(MultiprocessIterator.SharedMemoryWarning, match=r"Faulty.*pickled"):
            assert iterator.next()[1].what == "raises"
        for _ in range(3):
            iterator.next()  # a second notice would be an error here


def test_samples_beyond_shared_mem_travel_pickled_with_one_notice() -> None:
    x = np.arange(40_000.0).reshape(4, 10_000)
    with MultiprocessIterator(
        list(x), 2, shuffle=False, n_processes=1, shared_mem=1000
    ) as iterator:
        with pytest.warns(MultiprocessIterator.SharedMemoryWarning, match="pass shared_mem="):
            batch = iterator.next()
        np.testing.assert_array_equal(batch, x[:2])
        np.testing.assert_array_equal(iterator.next(), x[2:])


def test_forkserver_works_while_threads_hold_locks_and_fork_warns() -> None:
    stop = threading.Event()
    holder = threading.Thread(target=stop.wait, name="holder")
    holder.start()
    try:
        with MultiprocessIterator(Mixed(), 4, n_processes=2) as iterator:
            assert len(iterator.next()) == 4
        forked = MultiprocessIterator(Mixed(), 4, n_processes=1, start_method="fork")
        with forked, pytest.warns(RuntimeWarning, match=r"threads run \(holder\)"):
            assert len(forked.next()) == 4
    finally:
        stop.set()
        holder.join()


def test_finalize_ends_workers_that_hang() -> None:
    with MultiprocessIterator(Faulty("hangs", at=7), 4, shuffle=False, n_processes=2) as iterator:
        iterator.next()
        assert iterator._pool is not None
        pids = iterator._pool.pids()
    assert wait_until_gone(pids, SOON)
    with pytest.raises(IteratorFinalized, match="make a new one"):
        iterator.next()
    with pytest.raises(NotImplementedError, match="cannot be reset"):
        iterator.reset()


PROGRAM = """
import sys
from hagane.training.iterators import MultiprocessIterator
from tests.training.sample_datasets import Faulty

if __name__ == "__main__":
    iterator = MultiprocessIterator(
        Faulty({what!r}, at=9), 4, shuffle=False, n_processes=2, start_method={method!r}
    )
    iterator.next()
    while not iterator._pool.all_ready():
        iterator._pool._turn(None, 10)
    import multiprocessing.forkserver as server
    import multiprocessing.resource_tracker as tracker
    helpers = [server._forkserver._forkserver_pid, tracker._resource_tracker._pid]
    print(*iterator._pool.pids(), *[pid for pid in helpers if pid], flush=True)
    while True:
        iterator.next()
"""


@contextlib.contextmanager
def program(tmp_path: Path, what: str, method: str) -> Any:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.format(what=what, method=method))
    started = subprocess.Popen(
        [sys.executable, str(path)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert started.stdout is not None
        yield started, [int(word) for word in started.stdout.readline().split()]
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
        started.communicate()


@pytest.mark.parametrize("method", ["forkserver", "spawn", "fork"])
@pytest.mark.parametrize("what", ["hangs", "no_fault"])
def test_no_process_outlives_a_parent_that_is_killed(
    what: str, method: str, tmp_path: Path
) -> None:
    with program(tmp_path, what, method) as (parent, pids):
        assert len(pids) >= 2
        parent.kill()
        parent.wait()
        assert wait_until_gone(pids, SOON)


@pytest.mark.parametrize("method", ["forkserver", "spawn", "fork"])
def test_ctrl_c_ends_everything_at_once(method: str, tmp_path: Path) -> None:
    with program(tmp_path, "hangs", method) as (parent, pids):
        time.sleep(0.2)  # let it come to wait for the sample that hangs
        os.killpg(parent.pid, signal.SIGINT)
        _, errors = parent.communicate(timeout=SOON)
        assert wait_until_gone(pids, SOON)
        assert errors.rstrip().endswith("KeyboardInterrupt")
        assert errors.count("Traceback") == 1


def test_an_iterator_carried_into_a_forked_process_says_so() -> None:
    with MultiprocessIterator(Mixed(), 4, n_processes=1) as iterator:
        iterator.next()
        iterator._owner = -1  # what a fork would find
        with pytest.raises(LoadingError, match="carried into a forked process"):
            iterator.next()


def test_a_batch_larger_than_memory_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from hagane.training.iterators.processes import memory

    monkeypatch.setattr(memory, "memory_left", lambda: 1 << 20)
    slot = memory.Slot(memory.create(1), 0)
    with pytest.raises(SharedMemoryFull, match="needs 100,000,064 bytes, but 1,048,576 bytes"):
        slot.reserve(100_000_000)
    with pytest.raises(MemoryError, match="expected at most"):
        slot.reserve(1 << 40)


FULL = """
import numpy as np
from hagane.training.iterators import MultiprocessIterator
from hagane.training.errors import SharedMemoryFull

class Large:
    def __len__(self):
        return 8
    def __getitem__(self, index):
        return np.full(1_000_000, index, np.float32)

if __name__ == "__main__":
    small, large = np.zeros((8, 10), np.float32), np.zeros((8, 1_000_000), np.float32)
    with MultiprocessIterator(list(small), 4, n_processes=1, memory_folder="/dev/shm") as iterator:
        iterator.next()
        print("small fits")
    try:
        MultiprocessIterator(list(large), 4, n_processes=1, memory_folder="/dev/shm").next()
    except SharedMemoryFull as error:
        print(error)
    try:
        MultiprocessIterator(Large(), 4, n_processes=1, memory_folder="/dev/shm").next()
    except SharedMemoryFull as error:
        print(error)
    with MultiprocessIterator(list(large), 4, n_processes=1) as iterator:
        print("anonymous memory holds", len(iterator.next()))
"""


def test_a_full_dev_shm_is_a_clear_error_and_no_matter_by_default(tmp_path: Path) -> None:
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare, to have a small /dev/shm of its own")
    path = tmp_path / "full.py"
    path.write_text(FULL)
    inside = 'mount -t tmpfs -o size=2m tmpfs /dev/shm && exec "$0" "$1"'
    ran = subprocess.run(
        [
            "unshare",
            "--user",
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            inside,
            sys.executable,
            path,
        ],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    if ran.returncode and ("unshare" in ran.stderr or "mount" in ran.stderr):
        pytest.skip(f"no user namespaces here: {ran.stderr.strip()}")
    assert ran.stderr == ""
    first, second, third, fourth = ran.stdout.splitlines()
    assert first == "small fits"
    assert second.startswith("shared memory is full: the dataset, sent to the workers, needs 32,")
    assert "No space left on device" in second
    assert third.startswith("shared memory is full: a batch needs 16,")
    assert fourth == "anonymous memory holds 4"
