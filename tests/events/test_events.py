from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hagane.events import EventHeap, EventLog


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2))))
def test_events_leave_by_time_then_rank_then_insertion(pushed: list[tuple[int, int]]) -> None:
    heap: EventHeap[tuple[int, int, int]] = EventHeap()
    for index, (time, rank) in enumerate(pushed):
        heap.push(time, (time, rank, index), rank)
    left = [heap.pop() for _ in pushed]
    assert left == sorted(left)
    assert len(heap) == 0


def test_a_cancelled_event_never_leaves() -> None:
    heap: EventHeap[str] = EventHeap()
    heap.push(2, "late")
    event = heap.push(1, "early")
    assert heap.cancel(event)
    assert not heap.cancel(event)
    assert heap.peek() == 2
    assert heap.pop() == "late"
    with pytest.raises(IndexError, match="no event is left"):
        heap.pop()


def test_an_event_in_the_past_is_refused() -> None:
    heap: EventHeap[str] = EventHeap(now=10)
    with pytest.raises(ValueError, match="an event at 9 lies before the present, 10"):
        heap.push(9, "x")


def test_the_log_on_disk_holds_every_record_as_one_line(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with EventLog(path, keep=True) as log:
        log.write(1.5, "bind", pod="a", node="n")
        log.write(2, "finish", pod="a")
        digest = log.digest()
        assert [r["kind"] for r in log] == ["bind", "finish"]
    lines = path.read_text().splitlines()
    assert json.loads(lines[0]) == {"time": 1.5, "kind": "bind", "pod": "a", "node": "n"}
    again = EventLog()
    again.write(1.5, "bind", pod="a", node="n")
    again.write(2, "finish", pod="a")
    assert again.digest() == digest
