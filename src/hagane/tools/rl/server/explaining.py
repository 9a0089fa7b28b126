"""Routes that start explanations of steps, list finished ones, and give their maps."""

from __future__ import annotations

import json
import os
from datetime import datetime
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from hagane.tools.rl.errors import NoSuchRollout
from hagane.tools.rl.explain.job import METHODS, REACHES
from hagane.tools.rl.logs.folder import open_regular
from hagane.tools.rl.logs.observations import count_observations
from hagane.tools.rl.server.bodies import read_object, whole, word
from hagane.tools.rl.server.routes import asked_number, state_of
from hagane.tools.rl.server.state import State

_MOST_STEPS = 10_000
_INTENSITIES = {
    "actor_intensity": "actor",
    "critic_intensity": "critic",
    "qfunc_intensity": "qfunc",
}


async def start(request: Request) -> Response:
    """Start an explanation of steps ``from_step`` to ``to_step``, answered 202."""
    body = await read_object(request)
    state = state_of(request)
    rollout = request.path_params["id"]
    folder = await run_in_threadpool(state.folder.rollout, rollout)
    first = whole(body, "from_step", 0, 10**9)
    last = whole(body, "to_step", 0, 10**9)
    if last < first:
        raise HTTPException(422, f"to_step: expected at least from_step ({first}), got {last}")
    if last - first >= _MOST_STEPS:
        raise HTTPException(422, f"expected at most {_MOST_STEPS} steps, got {last - first + 1}")
    count = count_observations(folder)
    if first >= count:
        raise HTTPException(
            422,
            f"from_step: the rollout has {count} observations that can be explained, got {first}"
            + ("" if count else "; logs of ChainerRL Visualizer hold none"),
        )
    for key in _INTENSITIES:
        whole(body, key, 0, 10**9, 0)
    output = body.get("output", _asked(body))
    if not isinstance(output, str) or len(output) > 80:
        raise HTTPException(422, "output: expected a name such as actor or action_values.0")
    checks = body.get("checks", True)
    if not isinstance(checks, bool):
        raise HTTPException(422, f"checks: expected true or false, got {str(checks)[:40]!r}")
    wanted = {
        "first": first,
        "last": last,
        "method": word(body, "method", METHODS, METHODS[0]),
        "output": output,
        "reach": word(body, "reach", REACHES, REACHES[0]),
        "checks": checks,
    }
    known = await run_in_threadpool(state.agent_of, folder.name)
    agent = whole(body, "agent", 0, len(state.agents) - 1, known)
    name = datetime.now().strftime("%Y%m%dT%H%M%S.%f")
    job = state.pool.submit(
        "saliency",
        {"rollout_dir": str(folder), "name": name, "request": wanted, "agent": agent},
    )
    return JSONResponse({"is_saliency_started": True, "job": job.id, "explanation": name}, 202)


def _asked(body: dict[str, Any]) -> str:
    """Return the output that intensities of the original's interface ask for."""
    asked = [name for key, name in _INTENSITIES.items() if body.get(key)]
    return asked[0] if len(asked) == 1 else "all"


def listed(state: State, request: Request) -> dict[str, Any]:
    """Return the explanations of a rollout, with their checks."""
    rollout = request.path_params["id"]
    folder = state.folder.rollout(rollout) / "explanations"
    found = []
    names = sorted(os.listdir(folder)) if folder.is_dir() and not folder.is_symlink() else []
    for name in names:
        try:
            found.append(_meta(state, rollout, name))
        except (NoSuchRollout, ValueError):
            continue
    return {"explanations": found}


async def maps(request: Request) -> Response:
    """Return the maps of a step: float32, target by target, in the order of the meta data."""
    step = asked_number(request, "step", 0)
    names = request.path_params["id"], request.path_params["name"]
    raw = await run_in_threadpool(_maps, state_of(request), *names, step)
    return Response(raw, media_type="application/octet-stream")


def _meta(state: State, rollout: str, name: str) -> dict[str, Any]:
    path = state.folder.file(rollout, "explanations", name, "meta.json")
    with os.fdopen(open_regular(path), "rb") as file:
        meta: dict[str, Any] = json.loads(file.read(1 << 24))
    return meta


def _maps(state: State, rollout: str, name: str, step: int) -> bytes:
    missing = NoSuchRollout(f"explanation {name[:60]!r} of {rollout[:60]!r}: no map of step {step}")
    if "/" in name or name.startswith("."):
        raise missing
    try:
        meta = _meta(state, rollout, name)
        size = 4 * len(meta["targets"])
        for length in meta["shape"]:
            size *= int(length)
        at = (step - int(meta["from_step"])) * size
    except (KeyError, TypeError, ValueError):
        raise missing from None
    if at < 0 or not 0 < size < 1 << 28:
        raise missing
    path = state.folder.file(rollout, "explanations", name, "maps.f32")
    with os.fdopen(open_regular(path), "rb") as file:
        file.seek(at)
        raw = file.read(size)
    if len(raw) < size:
        raise missing
    return raw
