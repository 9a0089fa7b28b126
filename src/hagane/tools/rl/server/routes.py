"""Common parts of routes: answers of JSON, made in a thread so that nothing waits for a disk."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from hagane.tools.rl.server.state import State


def answered(make: Callable[[State, Request], Any]) -> Callable[[Request], Awaitable[Response]]:
    """Return a route that answers with the value of ``make`` as JSON."""

    async def route(request: Request) -> Response:
        value = await run_in_threadpool(make, state_of(request), request)
        return JSONResponse(value, headers={"cache-control": "no-store"})

    return route


def state_of(request: Request) -> State:
    """Return the server's state."""
    state: State = request.app.state.watch
    return state


def asked_number(request: Request, key: str, default: int) -> int:
    """Return a number of at least 0 of the query; raises HTTPException 422 for anything else."""
    text = request.query_params.get(key)
    if text is None:
        return default
    if not text.isdecimal() or len(text) > 12:
        raise HTTPException(422, f"{key}: expected a number of at least 0, got {text[:40]!r}")
    return int(text)
