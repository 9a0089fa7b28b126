"""News over WebSocket: progress, errors and ends of jobs, as they come; jobs are cancelled there.

A page that reads slowly gets the latest news of each job, not all of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

from starlette.applications import Starlette
from starlette.websockets import WebSocket, WebSocketDisconnect

from hagane.tools.rl.jobs.pool import Job
from hagane.tools.rl.server.state import State

_MOST = 32
_EVERY = 0.05


class _Listener:
    def __init__(self) -> None:
        self.pending: dict[int, dict[str, Any]] = {}
        self.woken = asyncio.Event()


class Live:
    """Passes news of jobs on to all pages that listen."""

    def __init__(self, state: State):
        self.state = state
        self._listeners: set[_Listener] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    @contextlib.asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """Listen to the jobs while the server runs."""
        self._loop = asyncio.get_running_loop()
        self.state.pool.listeners.append(self._heard)
        yield
        self.state.pool.listeners.remove(self._heard)

    async def attend(self, socket: WebSocket) -> None:
        """Serve one page until it leaves."""
        if len(self._listeners) >= _MOST:
            await socket.close(1013, f"more than {_MOST} pages listen already")
            return
        await socket.accept()
        listener = _Listener()
        self._listeners.add(listener)
        sending = asyncio.create_task(self._send(socket, listener))
        try:
            while True:
                self._told(await socket.receive_text())
        except (WebSocketDisconnect, KeyError):
            pass
        finally:
            self._listeners.discard(listener)
            sending.cancel()

    async def _send(self, socket: WebSocket, listener: _Listener) -> None:
        with contextlib.suppress(WebSocketDisconnect, RuntimeError):
            state = {**self.state.server_state(), "jobs": self.state.jobs()}
            await socket.send_json({"type": "state", **state})
            while True:
                await listener.woken.wait()
                listener.woken.clear()
                news, listener.pending = listener.pending, {}
                for facts in news.values():
                    await socket.send_json(facts)
                await asyncio.sleep(_EVERY)

    def _told(self, text: str) -> None:
        try:
            message = json.loads(text[:1000])
        except ValueError:
            return
        number = message.get("cancel") if isinstance(message, dict) else None
        if isinstance(number, int):
            self.state.pool.cancel(number)

    def _heard(self, job: Job) -> None:
        facts = {"type": "job", "hidden": job.hidden, "over": job.over.is_set(), **job.to_json()}
        if self._loop is not None and not self._loop.is_closed():
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._spread, job.id, facts)

    def _spread(self, number: int, facts: dict[str, Any]) -> None:
        for listener in self._listeners:
            listener.pending[number] = facts
            listener.woken.set()
