"""A lock that a child process finds free."""

from __future__ import annotations

import contextlib
import os
import signal
import threading

import pytest

from hagane.machine import Lock


def test_a_lock_excludes_other_threads_and_is_free_again_after_an_error() -> None:
    lock = Lock()
    inside: list[int] = []

    def work() -> None:
        for _ in range(200):
            with lock:
                inside.append(1)
                assert sum(inside) == 1
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with pytest.raises(ValueError, match="inside"), lock:
        raise ValueError("inside")
    with lock:
        assert inside == []


def test_a_child_process_finds_the_lock_free_while_a_thread_holds_it() -> None:
    lock = Lock()
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            done.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    child = os.fork()
    if child == 0:
        threading.Timer(20, os._exit, [1]).start()
        with lock:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    done.set()
    holder.join()
    assert os.waitstatus_to_exitcode(status) == 0
    with lock:
        pass


class Late(Exception):
    """Raised by the handler of a signal."""


def test_a_signal_whose_handler_raises_leaves_no_lock_held() -> None:
    lock, raised = Lock(), 0

    def late(*_: object) -> None:
        raise Late

    before = signal.signal(signal.SIGALRM, late)
    try:
        for _ in range(100):
            with contextlib.suppress(Late):
                signal.setitimer(signal.ITIMER_REAL, 5e-4)
                try:
                    while True:
                        with lock:
                            pass
                except Late:
                    raised += 1
            taken = threading.Thread(target=lock.__enter__)
            taken.start()
            taken.join(20)
            assert not taken.is_alive(), "the lock was held for ever"
            lock = Lock()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert raised > 50


def test_what_the_holder_calls_may_take_the_lock_again() -> None:
    lock = Lock()
    with lock, lock:
        pass
