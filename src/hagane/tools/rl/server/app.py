"""The routes: those of ChainerRL Visualizer, and the page's own."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp

from hagane.tools.rl.errors import NoSuchRollout, RlError
from hagane.tools.rl.jobs.pool import TooManyJobs
from hagane.tools.rl.server import explaining, exporting, reading, rollouts
from hagane.tools.rl.server.guard import Guard
from hagane.tools.rl.server.live import Live
from hagane.tools.rl.server.openapi import openapi
from hagane.tools.rl.server.page import page_file, start_page
from hagane.tools.rl.server.routes import answered
from hagane.tools.rl.server.state import State


def make_app(state: State, token: str, port: int) -> ASGIApp:
    """Return the application, guarded.

    Args:
        state: the logs and jobs that it shows and starts.
        token: that every request carries.
        port: under which it is reached.
    """
    live = Live(state)
    get, post = ["GET"], ["POST"]
    one = "/api/rollouts/{id}"
    app = Starlette(
        routes=[
            Route("/", start_page, methods=get),
            Route("/page/{name}", page_file, methods=get),
            Route("/images", reading.image, methods=get),
            Route("/api/openapi.json", answered(lambda state, request: openapi()), methods=get),
            Route("/api/server_state", answered(lambda s, r: s.server_state()), methods=get),
            Route("/api/agent_profile", answered(reading.profile), methods=get),
            Route("/api/rollouts", answered(rollouts.listed), methods=get),
            Route("/api/rollouts", rollouts.start, methods=post),
            Route(one, answered(reading.rollout), methods=get),
            Route(f"{one}/series", reading.series, methods=get),
            Route(f"{one}/search", answered(reading.search), methods=get),
            Route(f"{one}/saliency", explaining.start, methods=post),
            Route(f"{one}/explanations", answered(explaining.listed), methods=get),
            Route(f"{one}/explanations/{{name}}", explaining.maps, methods=get),
            Route(f"{one}/export", exporting.start, methods=post),
            Route(f"{one}/export", exporting.exported, methods=get),
            Route("/api/jobs", answered(lambda s, r: {"jobs": s.jobs()}), methods=get),
            Route("/api/jobs/{number:int}", rollouts.cancel, methods=["DELETE"]),
            WebSocketRoute("/api/live", live.attend),
        ],
        exception_handlers={
            HTTPException: _refused,
            NoSuchRollout: _missing,
            TooManyJobs: _busy,
            RlError: _unusable,
            Exception: _failed,
        },
        lifespan=live.lifespan,
    )
    app.state.watch = state
    app.state.token = token
    return Guard(app, token, port)


def _said(status: int, message: str) -> Response:
    return JSONResponse({"error": message}, status)


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _said(error.status_code, error.detail)


def _missing(request: Request, error: Exception) -> Response:
    return _said(404, str(error))


def _busy(request: Request, error: Exception) -> Response:
    return _said(429, str(error))


def _unusable(request: Request, error: Exception) -> Response:
    return _said(422, str(error))


def _failed(request: Request, error: Exception) -> Response:
    return _said(500, f"the server failed: {type(error).__name__}: {error}")
