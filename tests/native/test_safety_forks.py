"""Sessions on both sides of a fork, and at the end of a process."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import hagane
from tests.native.models import draw, session
from tests.native.test_safety_sessions import fixed, images


def wait_for(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def in_child(check: Callable[[], bool]) -> int:
    """Return the exit code of a child that checks something; it may take a minute at most."""
    child = os.fork()
    if child == 0:
        threading.Timer(60, os._exit, [2]).start()
        try:
            os._exit(0 if check() else 1)
        except BaseException:
            os._exit(3)
    return wait_for(child)


@pytest.fixture
def busy() -> Iterator[tuple[hagane.InferenceSession, dict[str, np.ndarray], np.ndarray]]:
    """Yield a session that other threads run all the time, a feed and its result."""
    proto, feed = fixed()
    made = session(proto)
    (want,) = made.run(None, feed)
    stop = threading.Event()

    def work(short: bool) -> None:
        while not stop.is_set():
            made.run(None if short else ["y"], feed)

    threads = [threading.Thread(target=work, args=(short,)) for short in (True, False, True)]
    for thread in threads:
        thread.start()
    yield made, feed, want
    stop.set()
    for thread in threads:
        thread.join()


def test_children_run_a_session_that_other_threads_run_at_the_fork(
    busy: tuple[hagane.InferenceSession, dict[str, np.ndarray], np.ndarray],
) -> None:
    made, feed, want = busy
    proto, _ = fixed()

    def check() -> bool:
        same = all(np.array_equal(made.run(names, feed)[0], want) for names in (None, ["y"]) * 10)
        return same and np.array_equal(session(proto).run(None, feed)[0], want)

    assert [in_child(check) for _ in range(12)] == [0] * 12
    np.testing.assert_array_equal(made.run(None, feed)[0], want)


def test_a_child_compiles_a_shape_while_a_thread_of_its_parent_does() -> None:
    made = session(images())
    held, release = threading.Event(), threading.Event()
    lock = made._programs.repeats._lock

    def hold() -> None:
        with lock:  # as a thread does that compiles
            held.set()
            release.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    x = draw((1, 8, 6, 6))
    assert in_child(lambda: made.run(None, {"x": x})[0].shape == (1, 16, 1, 1)) == 0
    release.set()
    holder.join()
    assert made.run(None, {"x": x})[0].shape == (1, 16, 1, 1)


def _run_again(number: int) -> bool:
    made, feed, want = _SHARED
    return bool(np.array_equal(made.run(None, feed)[0], want)) and number >= 0


_SHARED: tuple[hagane.InferenceSession, dict[str, np.ndarray], np.ndarray]


def test_a_pool_of_forked_processes_runs_a_session_of_its_parent() -> None:
    global _SHARED
    proto, feed = fixed()
    made = session(proto)
    _SHARED = made, feed, made.run(None, feed)[0]
    with multiprocessing.get_context("fork").Pool(3) as pool:
        assert pool.map_async(_run_again, range(30)).get(120) == [True] * 30
    assert _run_again(0)


def run_python(program: str) -> subprocess.CompletedProcess[str]:
    header = (
        "import os, sys, threading, time\nimport numpy as np\n"
        "from tests.native.test_safety_forks import fixed, images, in_child\n"
        "from tests.native.models import draw, session\n"
    )
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", header + program],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_a_process_may_fork_before_it_uses_a_session() -> None:
    done = run_python("""if True:
        proto, feed = fixed()
        made = session(proto)
        shapes = [in_child(lambda: made.run(None, feed)[0].shape == (1, 16, 1, 1)),
                  in_child(lambda: session(proto).run(None, feed)[0].shape == (1, 16, 1, 1))]
        print(shapes, made.run(None, feed)[0].shape)
    """)
    assert (done.stdout, done.stderr) == ("[0, 0] (1, 16, 1, 1)\n", "")


@pytest.mark.parametrize("end", ["sys.exit(7)", "os.kill(os.getpid(), 15)", "raise SystemExit(7)"])
def test_a_process_may_end_while_a_run_goes_on(end: str) -> None:
    done = run_python(f"""if True:
        proto = images()
        made = session(proto)
        feed = {{"x": draw((4, 8, 150, 150))}}
        made.run(None, feed)
        again = lambda results, data, error: made.run_async(None, feed, again, None)
        for _ in range(3):
            made.run_async(None, feed, again, None)
        print("running", flush=True)
        {end}
    """)
    assert done.stdout == "running\n"
    assert done.stderr == ""
    assert done.returncode == (-15 if "kill" in end else 7)
