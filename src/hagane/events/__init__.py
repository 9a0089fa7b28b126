"""Discrete events: a heap with a stable order, and a log that survives crashes."""

from __future__ import annotations

from hagane.events.heap import EventHeap, Scheduled
from hagane.events.log import EventLog

__all__ = ["EventHeap", "EventLog", "Scheduled"]
