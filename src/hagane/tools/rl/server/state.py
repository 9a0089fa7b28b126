"""The state of the server: the log folder, the jobs, the agent's profile, the logs read so far."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hagane.tools.rl.jobs.pool import Job, Pool
from hagane.tools.rl.logs.folder import LOG_NAME, LogFolder
from hagane.tools.rl.logs.observations import count_observations
from hagane.tools.rl.logs.records import Log

_LOGS = 8


@dataclass(slots=True)
class State:
    """The state behind the routes; its methods may be called from several threads.

    Attributes:
        agents: names of the agents, the watched one first.
        profile: facts of ``agent_profile``, from the caller; completed by a job.
    """

    folder: LogFolder
    pool: Pool
    agents: tuple[str, ...]
    profile: dict[str, Any]
    _logs: OrderedDict[str, Log] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def log(self, rollout: str) -> Log:
        """Return a rollout's log as it is now; raises NoSuchRollout if there is no rollout."""
        path = self.folder.rollout(rollout) / LOG_NAME
        with self._lock:
            log = self._logs.pop(rollout, None) or Log(path)
            self._logs[rollout] = log
            while len(self._logs) > _LOGS:
                self._logs.popitem(last=False)
            log.refresh()
            return log

    def agent_of(self, rollout: str) -> int:
        """Return the index of the agent that a rollout's log names, 0 if it names none of ours."""
        rows = self.log(rollout).rows(0, 1)
        name = rows[0].get("agent") if rows else None
        names = [Path(agent).name for agent in self.agents]
        return names.index(name) if name in names else 0

    def on_memory(self) -> bool:
        """Return whether the latest rollout's observations are there to be explained."""
        latest = self.folder.latest()
        return latest is not None and count_observations(self.folder.rollouts / latest) > 0

    def server_state(self) -> dict[str, Any]:
        """Return the answer to ``GET /api/server_state``: ``errors`` is there once a job failed."""
        jobs = self.pool.jobs()
        running = any(job.status in ("running", "waiting") for job in jobs if not job.hidden)
        answer: dict[str, Any] = {
            "is_job_running": running,
            "is_rollout_on_memory": self.on_memory(),
        }
        errors = [error_of(job) for job in jobs if job.status == "failed"]
        return {**answer, "errors": errors} if errors else answer

    def jobs(self) -> list[dict[str, Any]]:
        """Return the jobs that were asked for, the oldest first."""
        return [job.to_json() for job in self.pool.jobs() if not job.hidden]

    def learn_profile(self, tell: Callable[[str], None] = lambda words: None) -> Job:
        """Start the job that asks the agent about itself; its result completes the profile.

        Args:
            tell: called with the fault of an agent that cannot be asked.
        """
        job = self.pool.submit("profile", {}, hidden=True)

        def listen(heard: Job) -> None:
            if heard is job and job.over.is_set():
                self.profile.update(job.result)
                if job.status == "failed":
                    notes = self.profile.setdefault("notes", [])
                    notes.append(f"the agent could not be asked: {job.message}")
                    tell(notes[-1])

        self.pool.listeners.insert(0, listen)
        return job


def error_of(job: Job) -> dict[str, Any]:
    """Return a failed job as an entry of ``errors``."""
    facts = job.to_json()
    return {
        "job": job.id,
        "kind": job.kind,
        "rollout_id": facts["rollout_id"],
        "message": job.message,
        "trace": job.trace,
    }
