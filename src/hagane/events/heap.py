"""A heap of future events whose order never depends on chance."""

from __future__ import annotations

import heapq
from typing import Generic, TypeVar

T = TypeVar("T")


class Scheduled(Generic[T]):
    """One event in a heap: the handle with which it can be cancelled."""

    __slots__ = ("cancelled", "payload", "time")

    def __init__(self, time: float, payload: T):
        self.time = time
        self.payload = payload
        self.cancelled = False


class EventHeap(Generic[T]):
    """Future events in the order (time, rank, insertion).

    Two events at one time leave in order of rank, and two of one rank in the order in which they
    were pushed, so a simulation repeats to the byte. Cancelled events stay in the heap until they
    surface, and are counted out at once.

    Attributes:
        now: the time of the last event that left, in the caller's unit; never decreases.
    """

    def __init__(self, now: float = 0.0):
        self.now = now
        self._heap: list[tuple[float, int, int, Scheduled[T]]] = []
        self._pushed = 0
        self._live = 0

    def __len__(self) -> int:
        return self._live

    def push(self, time: float, payload: T, rank: int = 0) -> Scheduled[T]:
        """Return the handle of a new event.

        Raises:
            ValueError: if ``time`` lies before ``now`` or is no number.
        """
        if not time >= self.now:
            raise ValueError(f"an event at {time} lies before the present, {self.now}")
        event = Scheduled(time, payload)
        heapq.heappush(self._heap, (time, rank, self._pushed, event))
        self._pushed += 1
        self._live += 1
        return event

    def cancel(self, event: Scheduled[T]) -> bool:
        """Take an event out of the future; return whether it was still there."""
        if event.cancelled:
            return False
        event.cancelled = True
        self._live -= 1
        return True

    def peek(self) -> float | None:
        """Return the time of the next event, or None when there is none."""
        while self._heap and self._heap[0][3].cancelled:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def pop(self) -> T:
        """Advance ``now`` to the next event and return its payload.

        Raises:
            IndexError: if no event is left.
        """
        while self._heap:
            time, _, _, event = heapq.heappop(self._heap)
            if event.cancelled:
                continue
            # A popped event counts as cancelled, so that a late cancel reports False.
            event.cancelled = True
            self._live -= 1
            self.now = time
            return event.payload
        raise IndexError("no event is left")
