"""The page: one document, its modules and its style; nothing from other hosts.

No cookie carries the token, so the document names each of its parts with the token in the address.
"""

from __future__ import annotations

import json
import secrets
from functools import cache
from importlib.resources import files

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


def start_page(request: Request) -> Response:
    """Return the document."""
    token: str = request.app.state.token
    nonce = secrets.token_urlsafe(12)
    imports = {f"rl/{name[:-3]}": f"/page/{name}?token={token}" for name in modules()}
    text = _read("index.html")
    text = text.replace("{{imports}}", json.dumps({"imports": imports}))
    text = text.replace("{{token}}", token).replace("{{nonce}}", nonce)
    policy = (
        "default-src 'none'; script-src 'self' 'nonce-" + nonce + "'; style-src 'self'; "
        "img-src 'self' blob: data:; connect-src 'self'; media-src blob:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    headers = {"content-security-policy": policy, "cache-control": "no-store"}
    return HTMLResponse(text, headers=headers)


def page_file(request: Request) -> Response:
    """Return a part of the page."""
    name = request.path_params["name"]
    if name not in parts():
        raise HTTPException(404, "page: there is no such part")
    media = _TYPES[name[name.rindex(".") :]]
    return Response(_read(name), media_type=media, headers={"cache-control": "no-cache"})


@cache
def parts() -> frozenset[str]:
    """Return the names of the page's files that are served."""
    found = files("hagane.tools.rl") / "page"
    return frozenset(
        item.name for item in found.iterdir() if item.name[item.name.rfind(".") :] in _TYPES
    )


def modules() -> list[str]:
    """Return the names of the page's modules."""
    return sorted(name for name in parts() if name.endswith(".js"))


@cache
def _read(name: str) -> str:
    return (files("hagane.tools.rl") / "page" / name).read_text(encoding="utf-8")
