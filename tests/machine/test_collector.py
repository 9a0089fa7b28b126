"""Garbage collection that is held off."""

from __future__ import annotations

import gc
import threading

import pytest

from hagane.machine.collector import collector_at_rest


def test_it_runs_again_after_the_last_block_of_all_threads() -> None:
    assert gc.isenabled()
    inside, leave = threading.Event(), threading.Event()

    def work() -> None:
        with collector_at_rest():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=work)
    with collector_at_rest():
        assert not gc.isenabled()
        thread.start()
        assert inside.wait(10)
    assert not gc.isenabled()  # the other block has not ended
    leave.set()
    thread.join()
    assert gc.isenabled()


def test_it_runs_again_after_an_error_and_stays_off_where_it_was() -> None:
    with pytest.raises(KeyError), collector_at_rest():
        raise KeyError
    assert gc.isenabled()
    gc.disable()
    try:
        with collector_at_rest(), collector_at_rest():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()
