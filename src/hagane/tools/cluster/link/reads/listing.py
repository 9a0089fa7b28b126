"""Lists, in pages, and watches of a store, as clients of an API server read them."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from hagane.tools.cluster.link.objects.refusal import Refused, status
from hagane.tools.cluster.link.objects.resources import Resource
from hagane.tools.cluster.link.objects.store import Change, Compacted, Store
from hagane.tools.cluster.link.reads.selecting import Chosen
from hagane.tools.cluster.link.reads.tables import table

# Seconds between bookmarks, as informers expect about one a minute.
_BOOKMARK = 30.0
_PATIENCE = 0.5
_TOO_OLD = "too old resource version: list again"


def number(query: Mapping[str, str], name: str) -> int | None:
    """Return a whole number of a query, or None.

    Raises:
        Refused: It is not one.
    """
    text = query.get(name, "")
    if not text:
        return None
    if not text.isdigit() or len(text) > 18:
        raise Refused(
            400, "BadRequest", f"{name}: expected a whole number below 10^18, got {text[:40]!r}"
        )
    return int(text)


def listed(
    store: Store, kind: Resource, chosen: Chosen, query: Mapping[str, str]
) -> dict[str, Any]:
    """Return a list of a resource, or a page of one (``limit`` and ``continue``).

    Raises:
        Refused: ``limit``, ``continue`` or ``resourceVersion`` is malformed, or the version of the
            first page is forgotten: all pages are of one version.
    """
    limit = number(query, "limit")
    asked = number(query, "resourceVersion") or 0
    objects, version = store.items(kind.name)
    if asked > version:
        raise Refused(504, "Timeout", f"Too large resource version: {asked}, current: {version}")
    start = ""
    if query.get("continue"):
        start, version = _page(query["continue"])
        try:
            objects = store.items_at(kind.name, version)
        except Compacted:
            raise Refused(
                410, "Expired", "The provided continue parameter is too old: list again"
            ) from None
    items = [(key, value) for key, value in sorted(objects) if key > start and chosen(value)]
    meta: dict[str, Any] = {"resourceVersion": str(version)}
    if limit and len(items) > limit:
        token = json.dumps({"start": items[limit - 1][0], "version": version}).encode()
        meta["continue"] = base64.urlsafe_b64encode(token).decode()
        meta["remainingItemCount"] = len(items) - limit
        items = items[:limit]
    return {
        "apiVersion": kind.group_version,
        "kind": f"{kind.kind}List",
        "metadata": meta,
        "items": [value for _, value in items],
    }


def _page(token: str) -> tuple[str, int]:
    try:
        found = json.loads(base64.urlsafe_b64decode(token.encode()))
        return str(found["start"]), int(found["version"])
    except (ValueError, TypeError, KeyError):
        raise Refused(400, "BadRequest", "continue: not a token of this server") from None


def lines(
    store: Store,
    kind: Resource,
    chosen: Chosen,
    query: Mapping[str, str],
    clock: Callable[[], float] | None = None,
) -> AsyncIterator[bytes]:
    """Return the events of a watch, one JSON object a line, until it times out.

    With a clock of the simulated time each object is a table of one row. Without a version, or from
    version 0, the objects that are there come first. An object that begins to be chosen is added,
    one that ceases to be is deleted.

    Raises:
        Refused: ``timeoutSeconds`` or ``resourceVersion`` is malformed.
    """
    seconds = number(query, "timeoutSeconds")
    version = number(query, "resourceVersion") or 0
    if version > store.version:
        # Of a server that was here before: its changes never come, so the client lists again.
        raise Refused(410, "Expired", f"{_TOO_OLD} (version {version} is not of this server)")
    ends = 3600 if seconds is None else seconds

    def line(sort: str, value: Mapping[str, Any]) -> bytes:
        if clock is None or sort == "BOOKMARK":
            return _line(sort, kind, value)
        row = table(kind, [value], {}, clock)
        return json.dumps({"type": sort, "object": row}).encode() + b"\n"

    return _lines(store, kind, chosen, query, version, ends, line)


async def _lines(
    store: Store,
    kind: Resource,
    chosen: Chosen,
    query: Mapping[str, str],
    version: int,
    seconds: int,
    line: Callable[[str, Mapping[str, Any]], bytes],
) -> AsyncIterator[bytes]:
    ends = time.monotonic() + seconds
    bookmarks = query.get("allowWatchBookmarks") in ("true", "1")
    initial = query.get("sendInitialEvents") in ("true", "1")
    if initial or not version:
        objects, version = store.items(kind.name)
        for _, value in sorted(objects):
            if chosen(value):
                yield line("ADDED", value)
        if initial and bookmarks:
            yield _bookmark(kind, version, {"k8s.io/initial-events-end": "true"})
    marked = time.monotonic()
    while not store.closed:
        try:
            changes, seen = store.since(kind.name, version)
        except Compacted:
            # As an API server says it once the answer has begun.
            event = {"type": "ERROR", "object": status(410, "Expired", _TOO_OLD)}
            yield json.dumps(event).encode() + b"\n"
            return
        for change in changes:
            sort = _sort(change, chosen)
            if sort:
                yield line(sort, change.object)
        version = max(version, seen)
        now = time.monotonic()
        if bookmarks and now - marked > _BOOKMARK:
            marked = now
            yield _bookmark(kind, version, {})
        if now >= ends:
            break
        await store.wait(version, min(_PATIENCE, ends - now))
    if bookmarks and not store.closed:
        yield _bookmark(kind, version, {})


def _sort(change: Change, chosen: Chosen) -> str:
    """Return the type of the event that a change is to a watcher, or nothing."""
    before = change.before is not None and chosen(change.before)
    after = change.kind != "DELETED" and chosen(change.object)
    if after:
        return "MODIFIED" if before else "ADDED"
    return "DELETED" if before else ""


def _line(sort: str, kind: Resource, value: Mapping[str, Any]) -> bytes:
    typed = {"apiVersion": kind.group_version, "kind": kind.kind, **value}
    return json.dumps({"type": sort, "object": typed}).encode() + b"\n"


def _bookmark(kind: Resource, version: int, annotations: Mapping[str, str]) -> bytes:
    meta: dict[str, Any] = {"resourceVersion": str(version), "creationTimestamp": None}
    if annotations:
        meta["annotations"] = dict(annotations)
    return _line("BOOKMARK", kind, {"metadata": meta})
