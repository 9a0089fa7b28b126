"""HTTP servers in a thread: a well-kept library (uvicorn) with limits on requests."""

from __future__ import annotations

import asyncio
import json
import socket
from threading import Thread
from typing import Any

from hagane.errors import MissingExtra

# Bytes of a body, as an API server limits them, and seconds in which it has to come.
MOST_BYTES = 3 << 20
BODY_SECONDS = 30.0
# So far a larger body is read, and dropped: a client that still writes would not see the answer.
_DROPPED_BYTES = 5 * MOST_BYTES
# Connections that may wait to be taken.
_BACKLOG = 2048


class BadBody(Exception):
    """A body that is too large, too slow or no JSON.

    Attributes:
        status: The HTTP status that says so.
    """

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status


async def read_bytes(request: Any) -> bytes:
    """Return the body of a request.

    Raises:
        BadBody: It is larger than 3 MiB (413), or takes over 30 s (408).
    """
    parts: list[bytes] = []
    size = 0

    async def read() -> None:
        nonlocal size
        async for part in request.stream():
            size += len(part)
            if size <= MOST_BYTES:
                parts.append(part)
            elif size > _DROPPED_BYTES:
                break
        if size > MOST_BYTES:
            raise BadBody(413, f"the body has over {MOST_BYTES:,} bytes, the most allowed")

    try:
        await asyncio.wait_for(read(), BODY_SECONDS)
    except TimeoutError:
        raise BadBody(408, f"the body did not come within {BODY_SECONDS:g} s") from None
    return b"".join(parts)


async def read_json(request: Any) -> Any:
    """Return the JSON in a request's body; an empty one is an empty object.

    Raises:
        BadBody: As of :func:`read_bytes`, or it is not JSON (400).
    """
    body = await read_bytes(request)
    try:
        return json.loads(body or b"{}", parse_constant=_no_number)
    except RecursionError:
        raise BadBody(400, "the body is not JSON: it nests too deep") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise BadBody(400, f"the body is not JSON: {error}") from None
    except ValueError:
        raise BadBody(400, "the body has a number of more digits than are read") from None


def _no_number(text: str) -> None:
    raise json.JSONDecodeError(f"{text} is no JSON", text, 0)


class Listening:
    """A server that answers on 127.0.0.1 between ``__enter__`` and ``__exit__``.

    Args:
        app: An ASGI application.
        port: Where to listen; 0 picks one.

    Raises:
        MissingExtra: uvicorn is not installed.
        OSError: The port is taken.
    """

    def __init__(self, app: Any, port: int = 0):
        try:
            import uvicorn
        except ImportError:
            raise MissingExtra("serving a cluster over HTTP", "cluster") from None
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self.socket.bind(("127.0.0.1", port))
        except OSError:
            self.socket.close()
            raise
        # Clients may connect from now on; they wait until the loop runs.
        self.socket.listen(_BACKLOG)
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                log_level="critical",
                access_log=False,
                backlog=_BACKLOG,
                timeout_keep_alive=75,
                timeout_graceful_shutdown=1,
                lifespan="off",
            )
        )
        self._thread = Thread(target=self._run, daemon=True)

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"http://127.0.0.1:{self.socket.getsockname()[1]}"

    def _run(self) -> None:
        asyncio.run(self._server.serve(sockets=[self.socket]))

    def __enter__(self) -> Listening:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join()
        self.socket.close()

    def serve_forever(self) -> None:
        """Answer until the process is interrupted."""
        with self:
            while self._thread.is_alive():
                self._thread.join(0.5)
