"""Ctrl-C while the engine makes turns of a loop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import hagane
from hagane.native.ready import caller
from hagane.native.run import context
from tests.native.bodies import BOOL, INT64, graph, info, node
from tests.native.models import draw, model, session

ROOT = Path(__file__).parents[2]

# A child counts turns for ages unless a signal ends it, then runs the same session again.
_CHILD = """
import os, signal, threading
import numpy as np
from tests.native import test_control_signals as tests
made = tests.endless(*{arguments!r})
few = {{**tests.FEED, "n": np.array(5)}}
want = made.run(None, few)
timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
try:
    timer.start()
    made.run(None, {{**tests.FEED, "n": np.array(2**62)}})
except KeyboardInterrupt:
    print("interrupted", flush=True)
for _ in range(3):
    for left, right in zip(made.run(None, few), want, strict=True):
        np.testing.assert_array_equal(left, right)
print("again", flush=True)
"""

FEED = {"x": draw((96, 96))}


def endless(threads: int, size: int, growing: bool) -> hagane.InferenceSession:
    """Return a session of a loop of products, with or without a state that grows."""
    shape = (size, size)
    nodes = [node("MatMul", "s w", "p"), node("Tanh", "p", "t"), node("Identity", "go", "goes")]
    states = [info("s", shape=shape)]
    results = [info("t", shape=shape)]
    if growing:
        nodes += [node("ReduceSum", "g -", "r", keepdims=0), node("Mul", "r zero", "q"),
                  node("Unsqueeze", "q first", "item"),
                  node("Concat", "g item", "gg", axis=0)]  # fmt: skip
        states.append(info("g", shape=("rows",)))
        results.append(info("gg", shape=("rows",)))
    constants = {"w": draw(shape, 1) / 8, "zero": np.float32(0), "first": np.array([0])}
    body = graph(nodes, [info("i", INT64), info("go", BOOL), *states],
                 [info("goes", BOOL), *results], constants)  # fmt: skip
    names = ["y", "z"][: len(states)]
    loop = node("Loop", f"n - part {'start' if growing else ''}", " ".join(names), body=body)
    cut = [node("Slice", "x from to axes", "part")]
    outer = {"from": np.zeros(2, np.int64), "to": np.full(2, size), "axes": np.arange(2),
             "start": np.zeros(1, np.float32)}  # fmt: skip
    proto = model([*cut, loop], {"n": np.array(1), **FEED}, names, outer)
    return session(proto, threads=threads)


@pytest.mark.parametrize("growing", [False, True])
@pytest.mark.parametrize(("threads", "size"), [(1, 4), (2, 4), (2, 96), (3, 96)])
def test_ctrl_c_ends_a_loop_and_the_session_goes_on(threads: int, size: int, growing: bool) -> None:
    made = subprocess.run(
        [sys.executable, "-c", _CHILD.format(arguments=(threads, size, growing))],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    assert made.stdout.split() == ["interrupted", "again"], made.stderr


def counting(made: hagane.InferenceSession, turns: int = 2_000_000) -> None:
    made.run(None, {**FEED, "n": np.array(turns)})


def test_without_the_extension_the_loop_ends_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The way through ctypes, where Python's headers are missing."""
    for module in (caller, context):
        monkeypatch.setattr(module, "load_extension", lambda: None)
    made = endless(2, 4, False)
    timer = threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        counting(made)
    counting(made, 5)


def test_a_handler_that_does_not_raise_lets_the_loop_go_on() -> None:
    made = endless(2, 4, False)
    seen: list[float] = []
    old = signal.signal(signal.SIGUSR1, lambda *_: seen.append(time.monotonic()))
    stop = threading.Event()

    def send() -> None:
        while not stop.wait(0.05):
            os.kill(os.getpid(), signal.SIGUSR1)

    sender = threading.Thread(target=send)
    sender.start()
    try:
        counting(made)
        ended = time.monotonic()
    finally:
        stop.set()
        sender.join()
        signal.signal(signal.SIGUSR1, old)
    assert [moment for moment in seen if moment < ended]


def test_a_loop_in_another_thread_leaves_signals_to_the_main_one() -> None:
    made = endless(2, 4, False)
    thread = threading.Thread(target=counting, args=(made,))

    def interrupt() -> None:
        while thread.is_alive():
            os.kill(os.getpid(), signal.SIGINT)
            thread.join(0.01)

    thread.start()
    with pytest.raises(KeyboardInterrupt):
        interrupt()
    thread.join()
