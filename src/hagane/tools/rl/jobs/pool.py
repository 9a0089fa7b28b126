"""Jobs, each in a process of its own: queued, watched, cancelled, and never in each other's way.

For each running job a thread reads its worker's reports. A worker that says nothing for too long is
ended, as is one that takes too much memory; one that dies leaves an error, and the next job runs.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from hagane.tools.rl.errors import RlError
from hagane.tools.rl.jobs.start import Starter, Worker

Status = Literal["waiting", "running", "done", "failed", "cancelled"]
_KEPT = 50
_LONGEST = 1 << 24


class TooManyJobs(RlError, RuntimeError):
    """The queue of jobs is full."""


@dataclass(slots=True)
class Job:
    """One job and how far it is.

    Attributes:
        request: the worker's orders.
        hidden: whether it is the server's own and shown to nobody unless it fails.
    """

    id: int
    kind: str
    request: dict[str, Any]
    hidden: bool = False
    status: Status = "waiting"
    done: int = 0
    total: int = 0
    message: str = ""
    trace: str = ""
    result: dict[str, Any] = field(default_factory=dict)
    cancelled: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)

    def to_json(self) -> dict[str, Any]:
        """Return its description for the page."""
        return {
            "id": self.id,
            "kind": self.kind,
            "status": self.status,
            "done": self.done,
            "total": self.total,
            "message": self.message,
            "trace": self.trace,
            "rollout_id": Path(self.request.get("rollout_dir", "")).name,
            "agent": self.request.get("agent", 0),
            "result": self.result,
        }


class Pool:
    """Runs jobs.

    Args:
        starter: starts workers.
        files: a change of any of them makes a prepared worker stale.
        most: jobs that run at once; more wait.
        waiting: jobs that may wait; more are refused.
        patience: seconds without a word after which a worker counts as stuck.
        limit: bytes of memory that a worker may take.
    """

    def __init__(
        self,
        starter: Starter,
        files: list[Path],
        most: int = 2,
        waiting: int = 16,
        patience: float = 30.0,
        limit: int = 0,
    ):
        self._starter = starter
        self._files = files
        self._most, self._waiting = most, waiting
        self._patience, self._limit = patience, limit
        self._lock = threading.Lock()
        self._next = 1
        self._queue: deque[Job] = deque()
        self._running: dict[int, Job] = {}
        self._past: deque[Job] = deque(maxlen=_KEPT)
        self._spare: tuple[Worker, list[float]] | None = None
        self._closed = False
        self.listeners: list[Callable[[Job], None]] = []

    def submit(self, kind: str, request: dict[str, Any], hidden: bool = False) -> Job:
        """Queue a job and return it; raises TooManyJobs where too many wait."""
        self.check_room()
        with self._lock:
            job = Job(self._next, kind, {**request, "kind": kind}, hidden)
            self._next += 1
            self._queue.append(job)
        self._heard(job)
        self._advance()
        return job

    def check_room(self) -> None:
        """Raise TooManyJobs where another job would be refused."""
        with self._lock:
            if self._closed:
                raise TooManyJobs("the server is ending and takes no more jobs")
            if len(self._queue) >= self._waiting:
                raise TooManyJobs(
                    f"{self._waiting} jobs are waiting already; cancel some, or wait for them"
                )

    def cancel(self, number: int) -> Job | None:
        """Cancel a job that waits or runs; None if there is none of that number."""
        with self._lock:
            job = next((job for job in self._all() if job.id == number), None)
            waiting = job is not None and job in self._queue
            if job is not None and waiting:
                self._queue.remove(job)
                job.status = "cancelled"
                self._past.append(job)
        if job is None:
            return None
        job.cancelled.set()
        if waiting:
            job.over.set()
            self._heard(job)
        return job

    def jobs(self) -> list[Job]:
        """Return all jobs that are remembered, oldest first."""
        with self._lock:
            return sorted(self._all(), key=lambda job: job.id)

    def prepare(self) -> None:
        """Start a worker ahead, so that the next job finds one."""
        marks = self._marks()
        with self._lock:
            if self._spare is None and not self._closed:
                self._spare = (self._starter.start(), marks)

    def close(self) -> None:
        """End all workers and wait for them, a few seconds at most."""
        with self._lock:
            self._closed = True
            running = list(self._running.values())
            for job in [*self._queue, *running]:
                job.cancelled.set()
            self._queue.clear()
            spare, self._spare = self._spare, None
        if spare is not None:
            _bury(spare[0], 2)
        end = time.monotonic() + 3
        for job in running:
            job.over.wait(max(0.0, end - time.monotonic()))
        self._starter.close()

    def _all(self) -> list[Job]:
        return [*self._past, *self._running.values(), *self._queue]

    def _advance(self) -> None:
        while True:
            with self._lock:
                if self._closed or len(self._running) >= self._most or not self._queue:
                    return
                job = self._queue.popleft()
                job.status = "running"
                self._running[job.id] = job
            threading.Thread(target=self._attend, args=(job,), daemon=True).start()

    def _worker(self) -> Worker:
        marks = self._marks()
        with self._lock:
            spare, self._spare = self._spare, None
        if spare is not None:
            if spare[1] == marks:
                return spare[0]
            _bury(spare[0])
        return self._starter.start()

    def _marks(self) -> list[float]:
        return [path.stat().st_mtime if path.is_file() else 0.0 for path in self._files]

    def _attend(self, job: Job) -> None:
        worker: Worker | None = None
        try:
            worker = self._worker()
            worker.tell(job.request)
            self._heard(job)
            self._follow(job, worker)
        except Exception as error:
            _fail(job, f"the worker could not be used: {error}")
        finally:
            if worker is not None:
                _bury(worker)
            with self._lock:
                self._running.pop(job.id, None)
                if not (job.hidden and job.status == "done"):
                    self._past.append(job)
            job.over.set()
            self._heard(job)
            self._advance()
            if not self._closed:
                self.prepare()

    def _follow(self, job: Job, worker: Worker) -> None:
        last = time.monotonic()
        buffer = b""
        while job.status == "running":
            if job.cancelled.is_set():
                job.status, job.message = "cancelled", "cancelled"
                return
            ready, _, _ = select.select([worker.reading], [], [], 0.1)
            if ready:
                piece = os.read(worker.reading, 1 << 16)
                if not piece:
                    _fail(job, self._death(worker))
                    return
                buffer += piece
                *lines, buffer = buffer.split(b"\n")
                for line in lines:
                    self._understand(job, line)
                last = time.monotonic()
                if len(buffer) > _LONGEST:
                    _fail(job, "the worker sent a message without end")
                    return
            if time.monotonic() - last > self._patience and job.status == "running":
                _fail(
                    job,
                    f"stuck: the agent or environment did not answer for {self._patience:g} s "
                    f"(after {job.done} of {job.total} steps); a longer --patience lets it",
                )
                return
            if self._limit and _resident(worker.pid) > self._limit and job.status == "running":
                _fail(job, f"out of memory: more than {self._limit / 2**30:.1f} GiB")
                return

    def _understand(self, job: Job, line: bytes) -> None:
        try:
            news = json.loads(line)
        except ValueError:
            return
        kind = news.get("type")
        if kind == "progress":
            job.done, job.total = int(news["done"]), int(news["total"])
            self._heard(job)
        elif kind == "done":
            job.result = news.get("result") or {}
            job.status = "done"
        elif kind == "error":
            _fail(job, str(news.get("message", "")), str(news.get("trace", "")))

    def _death(self, worker: Worker) -> str:
        status = worker.status(10)
        if status is None or status == 0:
            return "the worker process ended before its job was done: the agent called os._exit(0)?"
        if status > 0:
            return f"the worker process ended with status {status} before its job was done"
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = f"signal {-status}"
        return f"the worker process was ended by {name} before its job was done"

    def _heard(self, job: Job) -> None:
        for listener in list(self.listeners):
            listener(job)


def _fail(job: Job, message: str, trace: str = "") -> None:
    job.message, job.trace = message, trace
    job.status = "failed"


def _bury(worker: Worker, seconds: float = 10) -> None:
    worker.kill()
    with contextlib.suppress(Exception):  # one that waits for a disk does not end at once
        worker.status(seconds)
    worker.close()


def _resident(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
