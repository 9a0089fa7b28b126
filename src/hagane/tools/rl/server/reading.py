"""Routes that read logs: whole ones, parts, columns, searches, pictures."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from hagane.tools.rl.logs.search import find_steps
from hagane.tools.rl.server.routes import asked_number, state_of
from hagane.tools.rl.server.state import State

_MOST_ROWS = 1_000_000


def profile(state: State, request: Request) -> dict[str, Any]:
    """Return the agent's profile."""
    return state.profile


def rollout(state: State, request: Request) -> dict[str, Any]:
    """Return a log as the original does, or ``count`` lines from ``from`` on with its faults."""
    log = state.log(request.path_params["id"])
    start = asked_number(request, "from", 0)
    count = asked_number(request, "count", _MOST_ROWS)
    answer: dict[str, Any] = {
        "rollout_log": log.rows(start, count),
        "last_updated": log.updated(),
    }
    if request.query_params.keys() & {"from", "count"}:
        answer |= {"steps": log.steps, "warnings": log.warnings()}
    return answer


async def series(request: Request) -> Response:
    """Return the columns of a log from step ``from`` on, as binary float32.

    First the length of a header (4 bytes, little-endian), then the header in JSON with the columns'
    names, padded to a multiple of four bytes, then the columns one after the other.
    """
    state = state_of(request)
    start = asked_number(request, "from", 0)
    raw = await run_in_threadpool(_series, state, request.path_params["id"], start)
    return Response(
        raw, media_type="application/octet-stream", headers={"cache-control": "no-store"}
    )


def _series(state: State, rollout: str, start: int) -> bytes:
    log = state.log(rollout)
    start = min(start, log.steps)
    header = json.dumps(
        {
            "columns": list(log.columns),
            "from": start,
            "steps": log.steps,
            "last_updated": log.updated(),
            "warnings": log.warnings(),
        }
    ).encode()
    header += b" " * (-len(header) % 4)
    parts = [len(header).to_bytes(4, "little"), header]
    parts += [np.ascontiguousarray(column[start:]).tobytes() for column in log.columns.values()]
    return b"".join(parts)


def search(state: State, request: Request) -> dict[str, Any]:
    """Return the steps where a condition holds, such as ``max(action_values) drops by 0.5``."""
    log = state.log(request.path_params["id"])
    condition = request.query_params.get("where", "")
    steps = find_steps(log, condition)
    most = asked_number(request, "most", 1000)
    return {"where": condition, "count": len(steps), "steps": steps[:most].tolist()}


async def image(request: Request) -> Response:
    """Return a picture of the log folder."""
    text = request.query_params.get("image_path")
    if not text:
        raise HTTPException(422, "image_path: expected the path of a picture as logs hold it")
    path, media = await run_in_threadpool(state_of(request).folder.picture, text)
    return FileResponse(path, media_type=media, headers={"cache-control": "private, max-age=3600"})
