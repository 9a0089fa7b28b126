"""What the API server serves: objects with versions, and the changes to them in order."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Condition
from typing import Any


@dataclass(frozen=True, slots=True)
class Change:
    """One change: ADDED, MODIFIED or DELETED, and the object after (or before) it."""

    version: int
    kind: str
    resource: str
    object: dict[str, Any]


class Compacted(Exception):
    """The changes after a version are no longer all there; a client must list again."""


class Store:
    """Objects by resource and name; every change gets the next version.

    All threads share it; ``changed`` is notified at every change.

    Args:
        history: how many changes are kept for watchers.
    """

    def __init__(self, history: int = 100_000) -> None:
        self.history = history
        self.changed = Condition()
        self.version = 1
        self.objects: dict[str, dict[str, dict[str, Any]]] = {}
        self.changes: list[Change] = []
        # The version of the last change that is no longer kept.
        self.forgotten = 0
        self.closed = False

    def put(self, resource: str, key: str, value: dict[str, Any]) -> None:
        """Add or replace an object."""
        with self.changed:
            known = self.objects.setdefault(resource, {})
            kind = "MODIFIED" if key in known else "ADDED"
            known[key] = self._record(kind, resource, value)

    def drop(self, resource: str, key: str) -> None:
        """Take an object away; nothing happens if there is none."""
        with self.changed:
            value = self.objects.get(resource, {}).pop(key, None)
            if value is not None:
                self._record("DELETED", resource, value)

    def all(self, resource: str) -> tuple[list[dict[str, Any]], int]:
        """Return all objects of a resource, and the version as of which they are."""
        with self.changed:
            return list(self.objects.get(resource, {}).values()), self.version

    def since(self, resource: str, version: int, patience: float) -> list[Change]:
        """Return changes of a resource after a version, waiting for one if there is none yet.

        Raises:
            Compacted: if changes after the version have been forgotten; 0 stands for the oldest
                that is there.
        """
        with self.changed:

            def newer() -> list[Change]:
                # Versions are consecutive, so the place of a change follows from its version.
                first = version - (self.version - len(self.changes))
                if first < 0 and version > 0 and self.forgotten > version:
                    raise Compacted
                first = max(0, first)
                return [c for c in self.changes[first:] if c.resource == resource]

            found = newer()
            if not found and not self.closed:
                self.changed.wait(patience)
                found = newer()
            return found

    def close(self) -> None:
        """Let all who wait go."""
        with self.changed:
            self.closed = True
            self.changed.notify_all()

    def _record(self, kind: str, resource: str, value: dict[str, Any]) -> dict[str, Any]:
        self.version += 1
        meta = {**value.get("metadata", {}), "resourceVersion": str(self.version)}
        stamped = {**value, "metadata": meta}
        self.changes.append(Change(self.version, kind, resource, stamped))
        if len(self.changes) > self.history:
            # Half at once, so that forgetting costs little per change.
            gone = len(self.changes) - self.history // 2
            self.forgotten = self.changes[gone - 1].version
            del self.changes[:gone]
        self.changed.notify_all()
        return stamped
