"""The store of the API server: objects with versions, and the changes to them in order."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import Any


@dataclass(frozen=True, slots=True)
class Change:
    """One change: ADDED, MODIFIED or DELETED.

    Attributes:
        object: The object after it, or as it was when it was deleted.
        before: The object before it, if there was one.
        key: Under which it is stored.
    """

    version: int
    kind: str
    resource: str
    object: dict[str, Any]
    before: dict[str, Any] | None = None
    key: str = ""


class Compacted(Exception):
    """The changes after a version are no longer all there; a client must list again."""


class Store:
    """Objects by resource and name; every change gets the next version.

    All threads share it.

    Args:
        history: how many changes are kept for watchers.
    """

    def __init__(self, history: int = 100_000) -> None:
        self.history = history
        self.version = 1
        self.objects: dict[str, dict[str, dict[str, Any]]] = {}
        self.changes: list[Change] = []
        # The version of the last change that is no longer kept.
        self.forgotten = 0
        self.closed = False
        self._lock = Lock()
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    def put(self, resource: str, key: str, value: dict[str, Any]) -> None:
        """Add or replace an object."""
        with self._lock:
            known = self.objects.setdefault(resource, {})
            before = known.get(key)
            kind = "ADDED" if before is None else "MODIFIED"
            known[key] = self._record(kind, resource, key, value, before)

    def create(self, resource: str, key: str, value: dict[str, Any]) -> bool:
        """Add an object; return whether there was none of that name."""
        with self._lock:
            known = self.objects.setdefault(resource, {})
            if key in known:
                return False
            known[key] = self._record("ADDED", resource, key, value, None)
            return True

    def show(self, resource: str, key: str, value: dict[str, Any]) -> None:
        """Add or replace an object by what the simulation says of it.

        Who manages which of its fields stays known.
        """
        with self._lock:
            known = self.objects.setdefault(resource, {})
            before = known.get(key)
            meta = (before or {}).get("metadata") or {}
            if "managedFields" in meta:
                # The manifest that the simulation keeps has those of the beginning.
                kept = {**value["metadata"], "managedFields": meta["managedFields"]}
                value = {**value, "metadata": kept}
            kind = "ADDED" if before is None else "MODIFIED"
            known[key] = self._record(kind, resource, key, value, before)

    def tell(self, resource: str, key: str, status: dict[str, Any]) -> None:
        """Replace the status of an object; nothing happens if it has it, or is not there."""
        with self._lock:
            known = self.objects.get(resource, {})
            before = known.get(key)
            if before is not None and before.get("status") != status:
                new = {**before, "status": status}
                known[key] = self._record("MODIFIED", resource, key, new, before)

    def drop(self, resource: str, key: str) -> None:
        """Take an object away; nothing happens if there is none."""
        with self._lock:
            value = self.objects.get(resource, {}).pop(key, None)
            if value is not None:
                self._record("DELETED", resource, key, value, value)

    def get(self, resource: str, key: str) -> dict[str, Any] | None:
        """Return an object, or None."""
        with self._lock:
            return self.objects.get(resource, {}).get(key)

    def items(self, resource: str) -> tuple[list[tuple[str, dict[str, Any]]], int]:
        """Return all objects of a resource by key, and the version as of which they are."""
        with self._lock:
            return list(self.objects.get(resource, {}).items()), self.version

    def items_at(self, resource: str, version: int) -> list[tuple[str, dict[str, Any]]]:
        """Return all objects of a resource by key, as they were at a version.

        Raises:
            Compacted: if changes after the version have been forgotten.
        """
        with self._lock:
            if self.forgotten > version:
                raise Compacted
            found = dict(self.objects.get(resource, {}))
            first = max(0, version - (self.version - len(self.changes)))
            for change in reversed(self.changes[first:]):
                if change.resource != resource:
                    continue
                if change.before is None:
                    found.pop(change.key, None)
                else:
                    found[change.key] = change.before
            return list(found.items())

    def all(self, resource: str) -> tuple[list[dict[str, Any]], int]:
        """Return all objects of a resource, and the version as of which they are."""
        found, version = self.items(resource)
        return [value for _, value in found], version

    def since(self, resource: str, version: int) -> tuple[list[Change], int]:
        """Return the changes of a resource after a version, and the version up to which they are.

        Raises:
            Compacted: if changes after the version have been forgotten.
        """
        with self._lock:
            if self.forgotten > version:
                raise Compacted
            # Versions are consecutive, so the place of a change follows from its version.
            first = max(0, version - (self.version - len(self.changes)))
            return [c for c in self.changes[first:] if c.resource == resource], self.version

    async def wait(self, version: int, seconds: float) -> None:
        """Wait until something changes after a version, or for some time."""
        event = asyncio.Event()
        entry = (asyncio.get_running_loop(), event)
        with self._lock:
            if self.version > version or self.closed:
                return
            self._waiting.append(entry)
        with suppress(TimeoutError):
            await asyncio.wait_for(event.wait(), seconds)
        with self._lock, suppress(ValueError):
            self._waiting.remove(entry)

    def close(self) -> None:
        """Release all waiters."""
        with self._lock:
            self.closed = True
            self._wake()

    def _wake(self) -> None:
        for loop, event in self._waiting:
            # A loop that has ended has no waiters left.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(event.set)
        self._waiting.clear()

    def _record(
        self,
        kind: str,
        resource: str,
        key: str,
        value: dict[str, Any],
        before: dict[str, Any] | None,
    ) -> dict[str, Any]:
        self.version += 1
        meta = {**value.get("metadata", {}), "resourceVersion": str(self.version)}
        stamped = {**value, "metadata": meta}
        self.changes.append(Change(self.version, kind, resource, stamped, before, key))
        if len(self.changes) > self.history:
            # Half at once, so that forgetting costs little per change.
            gone = len(self.changes) - self.history // 2
            self.forgotten = self.changes[gone - 1].version
            del self.changes[:gone]
        self._wake()
        return stamped
