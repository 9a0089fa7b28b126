"""Sessions shared by threads, made and dropped many times, and over forks and the end."""

from __future__ import annotations

import gc
import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

import hagane
from hagane.errors import KernelError
from hagane.native.engine import load_engine
from tests.native.models import draw, model, session


def images() -> onnx.ModelProto:
    """Return a model whose kernels are compiled for each shape, large enough for two threads."""
    x = draw((1, 8, 24, 24))
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "v"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("GlobalAveragePool", ["c"], ["y"]),
    ]
    constants = {"w": draw((16, 8, 3, 3), 1), "v": draw((16, 16, 3, 3), 2)}
    return model(nodes, {"x": x}, constants=constants, shapes={"x": ["n", 8, "h", "w"]})


def rows() -> onnx.ModelProto:
    """Return a model whose kernels serve all shapes, with a look-up that can fail."""
    feed = {"x": draw((3, 16)), "i": np.array([0, 1])}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Softmax", ["a"], ["b"]),
        helper.make_node("Gather", ["b", "i"], ["y"], "look"),
    ]
    return model(
        nodes,
        feed,
        constants={"w": draw((16, 40), 1)},
        shapes={"x": ["rows", 16], "i": ["count"]},
    )


def fixed() -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Return a model of fixed shapes, which is called the short way, and a feed."""
    feed = {"x": draw((1, 8, 24, 24))}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("GlobalAveragePool", ["b"], ["y"]),
    ]
    return model(nodes, feed, constants={"w": draw((16, 8, 3, 3), 1)}), feed


IMAGE_SHAPES = [(1, 8, 24, 24), (2, 8, 9, 13), (1, 8, 5, 40)]
ROW_COUNTS = [1, 2, 7, 33, 120]


def test_eight_threads_share_sessions_with_mixed_shapes_and_errors() -> None:
    image, row = session(images()), session(rows())
    one, feed = fixed()
    short = session(one)
    image_feeds = [{"x": draw(shape, 5)} for shape in IMAGE_SHAPES]
    row_feeds = [{"x": draw((n, 16), n), "i": np.array([n - 1, 0, -n])} for n in ROW_COUNTS]
    wanted = [image.run(None, f)[0] for f in image_feeds]
    wanted_rows = [row.run(None, f)[0] for f in row_feeds]
    (want,) = short.run(None, feed)

    def work(number: int) -> int:
        checked = 0
        for turn in range(40):
            at = (turn + number) % len(image_feeds)
            np.testing.assert_array_equal(image.run(None, image_feeds[at])[0], wanted[at])
            at = (turn * 3 + number) % len(row_feeds)
            np.testing.assert_array_equal(row.run(None, row_feeds[at])[0], wanted_rows[at])
            np.testing.assert_array_equal(short.run(None, feed)[0], want)
            if turn % 4 == number % 4:
                bad = {**row_feeds[at], "i": np.array([1000 + number])}
                with pytest.raises(KernelError, match=f"'look' failed: index {1000 + number}"):
                    row.run(None, bad)
            checked += 1
        return checked

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [40] * 8


def test_threads_that_meet_a_new_shape_at_once_compile_it_once() -> None:
    made = session(images())
    x = draw((1, 8, 11, 7))
    start = threading.Barrier(8)

    def work(number: int) -> np.ndarray:
        start.wait()
        return made.run(None, {"x": x})[0]

    with ThreadPoolExecutor(8) as pool:
        first, *others = pool.map(work, range(8))
    for other in others:
        np.testing.assert_array_equal(other, first)
    assert len(made._programs._by_shape) == 1


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def resources() -> tuple[int, int, int]:
    """Return the engine's bytes, open files and threads."""
    gc.collect()
    return (
        load_engine().allocated(),
        len(os.listdir("/proc/self/fd")),
        len(os.listdir("/proc/self/task")),
    )


def come_and_go(count: int) -> None:
    """Make, use and drop three sessions ``count`` times; nothing may be left of them."""
    one, feed = fixed()
    several, many = images(), rows()
    image, row = {"x": draw(IMAGE_SHAPES[1])}, {"x": draw((7, 16)), "i": np.array([3])}

    def once() -> None:
        session(one).run(None, feed)
        session(several).run(None, image)
        failing = session(many)
        failing.run(None, row)
        with pytest.raises(KernelError):
            failing.run(None, {**row, "i": np.array([7])})

    for _ in range(20):
        once()
    before, resident = resources(), 0
    for number in range(count):
        once()
        if number == count // 2:
            gc.collect()
            resident = resident_bytes()
    assert resources() == before
    grown = resident_bytes() - resident
    # The three sessions of a turn hold 380 kB of the engine's memory, and their graphs.
    assert grown < 3 << 20, f"{grown} bytes more after {3 * count} sessions"


def test_a_hundred_sessions_leave_nothing_behind() -> None:
    come_and_go(100)


@pytest.mark.long
def test_a_thousand_sessions_leave_nothing_behind() -> None:
    come_and_go(1000)


def test_sessions_made_and_dropped_by_many_threads_leave_nothing_behind() -> None:
    one, feed = fixed()
    (want,) = session(one).run(None, feed)

    def work(number: int) -> None:
        for _ in range(10):
            np.testing.assert_array_equal(session(one).run(None, feed)[0], want)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
        before = resources()
        list(pool.map(work, range(8)))
        assert resources() == before


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
    lock = made._programs._lock

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
        "from tests.native.test_safety_sessions import fixed, images, rows, in_child\n"
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


def test_a_result_is_right_though_the_collector_runs_the_session_meanwhile() -> None:
    x, y = draw((64,)), draw((64,), 1)
    made = session(model([helper.make_node("Neg", ["x"], ["y"])], {"x": x}))
    seen: list[bool] = []

    class Dropped:
        """Garbage in a cycle, which runs the session when it is collected."""

        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            seen.append(np.array_equal(made.run(None, {"x": y})[0], -y))

    # Lists that the interpreter has in reserve would be handed out without a collection.
    kept: list[object] = []
    before = gc.get_threshold()
    gc.collect()
    gc.disable()
    gc.set_threshold(1)
    try:
        for _ in range(20):
            for _ in range(100):
                kept.append([])
            Dropped()
            gc.enable()
            results = made._call({"x": x})  # type: ignore[misc]
            gc.disable()
            kept.append(results)
            np.testing.assert_array_equal(results[0], -x)
    finally:
        gc.set_threshold(*before)
        gc.enable()
    gc.collect()
    assert seen == [True] * 20
