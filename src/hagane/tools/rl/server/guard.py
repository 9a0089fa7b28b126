"""Checks of every request before anything looks at it: Host, token, Origin, size.

The server listens on 127.0.0.1 only. A page of another site could still send requests there from
its visitor's browser, under a name of its own that resolves to 127.0.0.1; hence ``Host`` and
``Origin`` are checked. Other users of the machine lack the token. No cookie is ever set: the token
comes with each request.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BYTES = 1_000_000
_LONGEST_TARGET = 8192
_MOST_DRAINED, _LONGEST_DRAIN = 64_000_000, 10.0  # bytes, seconds

_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)


class Guard:
    """Refuses requests that do not come from the page of this server.

    Args:
        app: the application behind it.
        token: that every request carries, as ``?token=`` or ``Authorization: Bearer``.
        port: under which the server is reached.
        most: bytes of a body.
    """

    def __init__(self, app: ASGIApp, token: str, port: int, most: int = MOST_BYTES):
        self.app = app
        self.token = token.encode()
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        if port == 80:
            self.hosts |= {"127.0.0.1", "localhost"}
        self.origins = {f"http://{host}" for host in self.hosts}
        self.most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it with 400, 401, 403, 413 or 414."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        status, reason = self._judged(scope, headers)
        if status:
            await _refuse(scope, receive, send, status, reason)
            return
        if scope["type"] == "websocket":
            await self.app(scope, receive, send)
            return
        seen = 0

        async def limited() -> Message:
            nonlocal seen
            message = await receive()
            if message["type"] == "http.request":
                seen += len(message.get("body", b""))
                if seen > self.most:
                    if message.get("more_body"):
                        await _drain(receive)
                    raise HTTPException(413, self._too_large())
            return message

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *_HEADERS]
            await send(message)

        await self.app(scope, limited, marked)

    def _judged(self, scope: Scope, headers: Headers) -> tuple[int, str]:
        host = headers.get("host", "")
        if host not in self.hosts:
            return 403, f"Host: expected one of {sorted(self.hosts)}, got {host[:80]!r}"
        if len(scope.get("query_string", b"")) + len(scope["path"]) > _LONGEST_TARGET:
            return 414, f"the address is longer than {_LONGEST_TARGET} bytes"
        given = self._given(scope, headers)
        if given is None:
            return 401, (
                "token: expected it as ?token= or as 'Authorization: Bearer TOKEN'; "
                "the address with the token was printed when the server started"
            )
        if not secrets.compare_digest(given, self.token):
            return 403, "token: not the one of this server, which changes with every start"
        origin = headers.get("origin")
        if origin is not None and origin not in self.origins:
            return 403, f"Origin: requests of other sites are refused, got {origin[:80]!r}"
        if headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            return 403, "Sec-Fetch-Site: requests of other sites are refused"
        length = headers.get("content-length", "0")
        if not length.isdecimal():
            return 400, f"Content-Length: expected a number, got {length[:40]!r}"
        if len(length) > 15 or int(length) > self.most:
            return 413, self._too_large()
        return 0, ""

    def _given(self, scope: Scope, headers: Headers) -> bytes | None:
        bearer = headers.get("authorization", "")
        if bearer[:7].lower() == "bearer ":
            return bearer[7:].strip().encode()
        values = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token")
        return values[0].encode() if values else None

    def _too_large(self) -> str:
        return f"body: expected at most {self.most} bytes"


async def _drain(receive: Receive) -> None:
    """Read the rest of a body and forget it, within bounds.

    A connection that is closed while its client still sends is reset, and the answer is lost.
    """
    seen = 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LONGEST_DRAIN):
            while seen < _MOST_DRAINED:
                message = await receive()
                seen += len(message.get("body", b""))
                if message["type"] != "http.request" or not message.get("more_body"):
                    return


async def _refuse(scope: Scope, receive: Receive, send: Send, status: int, reason: str) -> None:
    if scope["type"] == "websocket":
        message = await receive()
        if message["type"] == "websocket.connect":
            await send({"type": "websocket.close", "code": 4000 + status % 1000, "reason": reason})
        return
    await _drain(receive)
    body = json.dumps({"error": reason}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
        *_HEADERS,
    ]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
