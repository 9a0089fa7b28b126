"""Routes that start exports."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from hagane.tools.rl.server.state import State


async def start(request: Request) -> Response:
    """Explain."""
    return JSONResponse({}, 202)


def _x(state: State, request: Request) -> dict[str, Any]:
    """List."""
    return {}


async def exported(request: Request) -> Response:
    """Get."""
    return JSONResponse({})
