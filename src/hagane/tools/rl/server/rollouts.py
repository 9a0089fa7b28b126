"""Routes that list rollouts, start one, and cancel jobs."""

from __future__ import annotations

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from hagane.tools.rl.server.bodies import read_object, whole
from hagane.tools.rl.server.routes import state_of
from hagane.tools.rl.server.state import State

MOST_STEPS = 1_000_000


def listed(state: State, request: Request) -> dict[str, Any]:
    """Return the rollouts' names, or the latest one's with its folder."""
    if request.query_params.get("q") == "latest":
        latest = state.folder.latest()
        path = str(state.folder.rollouts / latest) if latest else ""
        return {"rollout_id": latest or "", "rollout_path": path}
    return {"rollout_ids": state.folder.ids()}


async def start(request: Request) -> Response:
    """Start a rollout: ``{"step_count": n, "seed": s, "agent": i}``, answered 202."""
    body = await read_object(request)
    state = state_of(request)
    steps = whole(body, "step_count", 1, MOST_STEPS)
    seed = whole(body, "seed", 0, 2**31 - 1, None)
    agent = whole(body, "agent", 0, len(state.agents) - 1, 0)
    return JSONResponse(await run_in_threadpool(_started, state, steps, seed, agent), 202)


def _started(state: State, steps: int, seed: int | None, agent: int) -> dict[str, Any]:
    state.pool.check_room()
    folder = state.folder.new()
    job = state.pool.submit(
        "rollout",
        {"rollout_dir": str(folder), "step_count": steps, "seed": seed, "agent": agent},
    )
    return {
        "rollout_path": str(folder),
        "is_rollout_started": True,
        "rollout_id": folder.name,
        "job": job.id,
    }


async def cancel(request: Request) -> Response:
    """Cancel a job."""
    job = state_of(request).pool.cancel(request.path_params["number"])
    if job is None:
        raise HTTPException(404, f"job {request.path_params['number']}: there is none")
    return JSONResponse(job.to_json(), 202)
