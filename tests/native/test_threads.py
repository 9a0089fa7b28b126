"""Threads of the engine that are taken away in the middle of a run."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from hagane.machine import find_compiler
from hagane.machine.compiler import extra_flags
from hagane.native.c import c_source
from hagane.native.run.engine import ENGINE_PARTS, Engine

# However busy the machine is, the engine must not take it for one.
_FLAGS = ("-O2", "-std=gnu11", "-fPIC", "-D_GNU_SOURCE", "-DSTALL_NS=INT64_MAX")


# Names of steps; workers may look at them long after a test.
_STEPS: dict[str, ctypes.c_char_p] = {}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    folder = tmp_path_factory.mktemp("engine")
    source, library = folder / "stalled.c", folder / "stalled.so"
    hooks = Path(__file__).with_name("stalled_threads.c").read_text(encoding="utf-8")
    source.write_text(hooks + c_source(*ENGINE_PARTS), encoding="utf-8")
    flags = (*_FLAGS, *extra_flags())
    find_compiler().build([source], library, flags, libraries=("-lpthread",))
    return Engine(library)


class Counting:
    """A program whose tasks count how often they were done, and in which order."""

    def __init__(self, engine: Engine, tasks: list[int], threads: int):
        self.engine, self.tasks = engine, tasks
        self._runs = 0
        count = len(tasks)
        self._counters = [np.zeros(number, np.int64) for number in tasks]
        self._pointers = np.zeros((count, 2), np.uint64)
        self._sizes = np.zeros((count, 2), np.int64)
        self.program = engine.create(count, threads, 64)
        kernel = engine.address("count_task")
        for i, number in enumerate(tasks):
            before = i - 1 if i else i
            self._pointers[i] = [self._counters[k].ctypes.data for k in (i, before)]
            self._sizes[i] = self.tasks[before] if i else 0, 0
            engine.set_phase(
                self.program, i, kernel, self._pointers[i].ctypes.data,
                self._sizes[i].ctypes.data, number, int(number == 1),
            )  # fmt: skip

    def run(self) -> None:
        """Run it and check what each task counted."""
        self._runs += 1
        self._sizes[:, 1] = self._runs
        call = self.engine.library.call
        call.restype, call.argtypes = ctypes.c_int64, [ctypes.c_void_p, ctypes.c_void_p]
        assert call(self.engine.address("hg_run"), self.program) == -1
        for counters in self._counters:
            np.testing.assert_array_equal(counters, self._runs)

    def __del__(self) -> None:
        self.engine.destroy(self.program)


@pytest.fixture
def arm(engine: Engine) -> Iterator[Callable[[str], None]]:
    def stop_at(step: str) -> None:
        engine.library.arm(_STEPS.setdefault(step, ctypes.c_char_p(step.encode())))

    yield stop_at
    engine.library.let_go()


TASKS = [40, 1, 7, 2, 300, 1, 1, 16]


@pytest.mark.parametrize("threads", [2, 3, 5])
@pytest.mark.parametrize("step", ["claim", "look", "sleep"])
def test_a_run_ends_without_a_worker_that_was_taken_away(
    engine: Engine, arm: Callable[[str], None], step: str, threads: int
) -> None:
    program = Counting(engine, TASKS, threads)
    program.run()
    arm(step)
    program.run()
    assert engine.library.has_stopped() == 1
    assert engine.library.count_done() == sum(TASKS)
    assert engine.library.count_out_of_order() == 0
    for _ in range(5):  # others run meanwhile, also after this program is gone
        Counting(engine, TASKS, threads).run()


@pytest.mark.parametrize("step", ["claim", "look", "sleep"])
def test_a_worker_that_comes_back_late_does_no_harm(
    engine: Engine, arm: Callable[[str], None], step: str
) -> None:
    for _ in range(3):
        arm(step)
        Counting(engine, TASKS, 3).run()
        others = [Counting(engine, TASKS[::-1], 3) for _ in range(3)]
        for turn in range(12):
            if turn == 6:
                engine.library.let_go()
            others[turn % 3].run()


@pytest.mark.parametrize("step", ["task", "finish"])
def test_only_what_a_worker_has_claimed_is_waited_for(
    engine: Engine, arm: Callable[[str], None], step: str
) -> None:
    tasks = [64]
    program = Counting(engine, tasks, 2)
    program.run()
    arm(step)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(program.run)
        held = int(step == "task")
        while engine.library.count_done() < sum(tasks) - held:
            assert not running.done()
        assert not running.done()  # it cannot end before the task has
        engine.library.let_go()
        running.result()
    assert engine.library.count_out_of_order() == 0


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one core")
def test_a_woken_worker_that_does_not_begin_is_sent_to_another_core(
    engine: Engine, arm: Callable[[str], None]
) -> None:
    allowed = os.sched_getaffinity(0)
    if max(allowed) > 63:
        pytest.skip("the counters have a bit for each of 64 cores")
    library = engine.library
    library.cores_at_first.restype = library.cores_then.restype = ctypes.c_uint64
    program = Counting(engine, TASKS, 2)
    program.run()
    _wait_until_workers_sleep()
    arm("woken")
    patience = time.monotonic() + 60
    while library.cores_then() == 0:
        program.run()
        assert time.monotonic() < patience, "the worker is left where it is"
    others, again = _cores(library.cores_at_first()), _cores(library.cores_then())
    assert again == allowed
    assert others < allowed
    assert len(others) == len(allowed) - 1


def _cores(bits: int) -> set[int]:
    return {number for number in range(64) if bits >> number & 1}


@pytest.mark.parametrize("threads", [2, 4])
def test_callers_that_run_at_once_share_workers(engine: Engine, threads: int) -> None:
    engine.library.arm(None)

    def work(number: int) -> None:
        program = Counting(engine, [number % 7 + 1, *TASKS], threads)
        for _ in range(10):
            program.run()

    callers = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert engine.library.count_out_of_order() == 0


def test_a_program_of_many_threads_and_few_tasks_runs(engine: Engine) -> None:
    engine.library.arm(None)
    program = Counting(engine, [1, 2, 3, 63, 64, 65], 64)
    for _ in range(5):
        program.run()
    assert engine.library.count_out_of_order() == 0


def test_workers_sleep_when_there_is_nothing_to_do(engine: Engine) -> None:
    """Those who wait look for some microseconds, and then leave the core to others."""
    engine.library.arm(None)
    program = Counting(engine, TASKS, 4)
    for _ in range(2):
        program.run()
        assert _wait_until_workers_sleep() >= 3


def _wait_until_workers_sleep() -> int:
    """Wait for all other threads of this process; return how many there are."""
    others = set(os.listdir("/proc/self/task")) - {str(threading.get_native_id())}
    patience = time.monotonic() + 60
    while any(map(_is_awake, others)):
        assert time.monotonic() < patience, "a worker looks for tasks without end"
    return len(others)


def _is_awake(thread: str) -> bool:
    """Whether a thread of this process runs, or would if it had a core."""
    try:
        found = Path(f"/proc/self/task/{thread}/stat").read_text(encoding="utf-8")
    except OSError:
        return False  # it has ended
    return found.rpartition(")")[2].split()[0] == "R"
