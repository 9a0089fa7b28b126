"""Fixtures of the tests of training."""

from __future__ import annotations

import threading

import pytest


@pytest.fixture(autouse=True)
def _no_session_of_another_test_compiles() -> None:
    """Wait for threads of sessions, of which a forked worker would warn."""
    for thread in threading.enumerate():
        if thread.name == "hagane-specialize":
            thread.join()
