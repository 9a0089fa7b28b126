"""Programs for single shapes are made one at a time in a process, however many sessions ask."""

from __future__ import annotations

import logging
import threading

import pytest

from hagane.runtime.shapes import repeats
from hagane.runtime.shapes.repeats import MOST_WAITING, RUNS, Past, Repeats, Shapes


def test_many_sessions_have_their_programs_made_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeats, "_turns", repeats._Turns())  # no other test's sessions wait
    sessions: list[Repeats[int]] = []
    at_work = most = 0
    going = threading.Event()

    def make(shapes: Shapes) -> tuple[int, int]:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        going.wait()
        at_work -= 1
        return 1, 1

    shapes: Shapes = ((3, 4),)
    for _ in range(3 * MOST_WAITING):
        session = Repeats(make, logging.getLogger(__name__))
        assert session.find(shapes, Past(RUNS)) is None
        sessions.append(session)
    asked = [session for session in sessions if session._building is not None]
    going.set()
    assert len(asked) == MOST_WAITING + 1
    for session in asked:
        session.wait()
        assert session.find(shapes, Past(1)) == 1
    assert most == 1
    late = sessions[-1]
    assert late.find(shapes, Past(1)) is None  # it asks again
    late.wait()
    assert late.find(shapes, Past(1)) == 1
