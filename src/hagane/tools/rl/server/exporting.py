"""Routes that make a video of steps and give it."""

from __future__ import annotations

from datetime import datetime

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response

from hagane.tools.rl.jobs.video import FORMATS
from hagane.tools.rl.server.bodies import read_object, whole, word
from hagane.tools.rl.server.routes import state_of


async def start(request: Request) -> Response:
    """Start a video of steps ``from_step`` to ``to_step``, answered 202."""
    body = await read_object(request)
    state = state_of(request)
    folder = await run_in_threadpool(state.folder.rollout, request.path_params["id"])
    steps = (await run_in_threadpool(state.log, folder.name)).steps
    if not steps:
        raise HTTPException(422, "the rollout has no steps yet")
    first = whole(body, "from_step", 0, steps - 1, 0)
    last = whole(body, "to_step", first, 10**9, steps - 1)
    kind = word(body, "format", tuple(FORMATS), "gif")
    name = f"{datetime.now().strftime('%Y%m%dT%H%M%S')}-{first}-{min(last, steps - 1)}.{kind}"
    job = state.pool.submit(
        "video",
        {
            "rollout_dir": str(folder),
            "name": name,
            "first": first,
            "last": min(last, steps - 1),
            "fps": whole(body, "fps", 1, 60, 20),
            "explanation": str(body.get("explanation") or ""),
        },
    )
    return JSONResponse({"is_export_started": True, "job": job.id, "name": name}, 202)


async def exported(request: Request) -> Response:
    """Return a video that was made."""
    name = request.query_params.get("name", "")
    ending = name.rpartition(".")[2]
    if ending not in FORMATS or "/" in name or name.startswith("."):
        raise HTTPException(422, "name: expected that of a video, as its job's result has it")
    state = state_of(request)
    path = await run_in_threadpool(state.folder.file, request.path_params["id"], "exports", name)
    return FileResponse(path, media_type=FORMATS[ending], filename=name)
