"""Two ways to start a worker: a fresh interpreter, or a fork of the process that has the agent."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from hagane.tools.rl.jobs.setting import Setting

_PROGRAM = "from hagane.tools.rl.jobs.worker import main; main()"


@dataclass(slots=True)
class Worker:
    """A worker process that was started and has not been told its job, or works on it.

    Attributes:
        writing: the pipe on which it is told its job.
        reading: the pipe on which it tells.
        status: waits for its end, some seconds at most, and returns the exit status, negative for
            a signal; None if it is not known.
    """

    pid: int
    writing: int
    reading: int
    status: Callable[[float], int | None]

    def tell(self, job: dict[str, Any]) -> None:
        """Send the job."""
        line = json.dumps(job).encode() + b"\n"
        with contextlib.suppress(BrokenPipeError):
            os.write(self.writing, line)

    def kill(self) -> None:
        """End it and its child processes."""
        for end in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                end(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Close both pipes."""
        for descriptor in (self.writing, self.reading):
            with contextlib.suppress(OSError):
                os.close(descriptor)


class Starter(Protocol):
    """Starts workers."""

    def start(self) -> Worker:
        """Start one."""

    def close(self) -> None:
        """Start no more."""


class Fresh:
    """Starts each worker as an interpreter of its own, which loads the agent from its file.

    Args:
        setting: the agents and the environment to load.
        limit: of its memory, in bytes.
    """

    def __init__(self, setting: Setting, limit: int):
        self.setting = setting
        self.limit = limit

    def start(self) -> Worker:
        """Start one."""
        read_job, write_job = os.pipe()
        read_news, write_news = os.pipe()
        facts = {
            "agents": self.setting.agents,
            "environment": self.setting.environment,
            "frames": self.setting.frames,
            "meanings": self.setting.meanings,
            "reading": read_job,
            "writing": write_news,
            "limit": self.limit,
        }
        try:
            process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, json.dumps(facts)],
                stdin=subprocess.DEVNULL,
                stdout=2,
                pass_fds=(read_job, write_news),
                start_new_session=True,
            )
        finally:
            os.close(read_job)
            os.close(write_news)
        return Worker(process.pid, write_job, read_news, process.wait)

    def close(self) -> None:
        """Start no more: nothing to do."""


class Forked:
    """Starts workers as forks of a process that holds the agent and does nothing else.

    The server has threads, and a fork of a process with threads may hang in any lock; so that
    process is forked off before the server starts, and forks on demand. Make this object before any
    thread is started.

    Args:
        body: called in each worker with its two pipes.
    """

    def __init__(self, body: Callable[[int, int], None]):
        self._lock = threading.Lock()
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        sys.stdout.flush()
        sys.stderr.flush()
        self._pid = os.fork()
        if self._pid == 0:
            self._ours.close()
            os.setsid()
            try:
                _fork_on_demand(theirs, body)
            finally:
                os._exit(0)
        theirs.close()

    def start(self) -> Worker:
        """Start one."""
        read_job, write_job = os.pipe()
        read_news, write_news = os.pipe()
        try:
            with self._lock:
                socket.send_fds(self._ours, [b"start"], [read_job, write_news])
                pid = int(self._ours.recv(64))
        finally:
            os.close(read_job)
            os.close(write_news)
        return Worker(pid, write_job, read_news, lambda seconds: self._status(pid))

    def close(self) -> None:
        """End the process that forks."""
        self._ours.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._pid, 0)

    def _status(self, pid: int) -> int | None:
        with self._lock:
            try:
                self._ours.send(b"status %d" % pid)
                return int(self._ours.recv(64))
            except (OSError, ValueError):
                return None


def _fork_on_demand(control: socket.socket, body: Callable[[int, int], None]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 64, 2)
        if not message:
            return
        if message.startswith(b"status "):
            control.send(b"%d" % _ended(int(message[7:])))
            continue
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            control.close()
            os.setsid()
            os.dup2(2, 1)
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            try:
                body(*descriptors)
            finally:
                sys.stderr.flush()
                os._exit(0)
        for descriptor in descriptors:
            os.close(descriptor)
        control.send(b"%d" % pid)


def _ended(pid: int) -> int:
    try:
        _, status = os.waitpid(pid, 0)
    except ChildProcessError:
        return 0
    return os.waitstatus_to_exitcode(status)
