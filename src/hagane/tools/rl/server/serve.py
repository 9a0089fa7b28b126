"""Starting the server, and ending it."""

from __future__ import annotations

import contextlib
import secrets
import signal
import socket
import sys
import webbrowser
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn

from hagane.errors import InvalidArgument
from hagane.tools.rl.jobs.pool import Pool
from hagane.tools.rl.jobs.start import Starter
from hagane.tools.rl.logs.folder import LogFolder
from hagane.tools.rl.server.app import make_app
from hagane.tools.rl.server.state import State


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a job.

    Attributes:
        patience: seconds without a sign of life.
        memory: bytes; 0 for no limit.
        jobs: that run at once.
    """

    patience: float = 30.0
    memory: int = 4 << 30
    jobs: int = 2


def listen_on(port: int) -> socket.socket:
    """Return a socket that listens on 127.0.0.1, on any free port for 0.

    Raises:
        InvalidArgument: the port is taken, or no port.
    """
    if not 0 <= port < 65536:
        raise InvalidArgument(f"--port: expected a number from 0 to 65535, got {port}")
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind(("127.0.0.1", port))
    except OSError as error:
        found.close()
        raise InvalidArgument(
            f"--port {port}: cannot be listened on: {error.strerror}; "
            "--port 0 takes one that is free"
        ) from None
    found.listen(256)
    return found


def serve(
    listening: socket.socket,
    folder: LogFolder,
    starter: Starter,
    files: list[Path],
    agents: tuple[str, ...],
    given: dict[str, Any],
    limits: Limits,
    ready: Callable[[str], None],
    debug: bool = False,
) -> None:
    """Serve until Ctrl-C or SIGTERM.

    Args:
        listening: from ``listen_on``.
        folder: of the logs.
        starter: starts workers.
        files: a change of any of them makes a prepared worker stale.
        agents: their names.
        given: fields of the agent's profile that are known beforehand.
        limits: of jobs.
        ready: called with the address once requests are answered.
        debug: whether each request is written to standard error.
    """
    token = secrets.token_urlsafe(24)
    port = listening.getsockname()[1]
    pool = Pool(starter, files, most=limits.jobs, patience=limits.patience, limit=limits.memory)
    profile = {
        "agent_type": agents[0],
        "agents": list(agents),
        "action_meanings": {},
        "raw_image_input": False,
        "contains_recurrent_model": False,
        "state_value_returned": False,
        "distribution_type": None,
        "action_value_type": None,
        "notes": [],
        **given,
    }
    state = State(folder, pool, agents, profile)
    config = uvicorn.Config(
        make_app(state, token, port),
        http="h11",
        ws="websockets-sansio",
        ws_max_size=4096,
        log_level="info" if debug else "error",
        access_log=debug,
        lifespan="on",
        server_header=False,
        timeout_graceful_shutdown=2,
        timeout_keep_alive=30,
    )
    server = _Server(config, lambda: ready(f"http://127.0.0.1:{port}/?token={token}"))
    try:
        state.learn_profile(lambda words: print(words, file=sys.stderr, flush=True))
        with contextlib.suppress(KeyboardInterrupt):
            server.run(sockets=[listening])
    finally:
        with _uninterrupted():
            pool.close()
            listening.close()


class _Server(uvicorn.Server):
    """Uvicorn's server, which says when it answers."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]):
        super().__init__(config)
        self._ready = ready

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End soon; a second Ctrl-C changes nothing, where uvicorn's would drop what it runs."""
        super().handle_exit(sig, frame)
        self.force_exit = False

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then say so."""
        await super().startup(sockets=sockets)
        if self.started:
            self._ready()


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def open_browser(address: str) -> None:
    """Open the page in a browser where there is one."""
    with contextlib.suppress(Exception):
        webbrowser.open_new_tab(address)
