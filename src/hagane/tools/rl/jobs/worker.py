"""A worker process: makes the agent, waits for one job, does it, says how it went, ends.

It is told about its job by one line of JSON, and tells by lines of JSON: ``ready``, ``progress``,
``done`` or ``error``. If the server goes away, so does it. Prints of the agent go to standard
error, and its memory is limited.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any, Protocol

from hagane.errors import HaganeError
from hagane.tools.rl.agents.load import described
from hagane.tools.rl.agents.outputs import kinds
from hagane.tools.rl.agents.protocol import Watched
from hagane.tools.rl.environments import World
from hagane.tools.rl.jobs.rollout import roll_out, seed_all
from hagane.tools.rl.jobs.setting import Setting

_EVERY = 0.1
_TRACE = 4000


class Making(Protocol):
    """The function that yields the agent and the environment of a job."""

    @property
    def meanings(self) -> dict[str, str]:
        """Names of actions that were given."""

    def prepare(self) -> None:
        """Do the slow work that is the same for every job."""

    def make(self, index: int = 0) -> tuple[Watched, World]:
        """Return both."""


class Channel:
    """The two pipes to the server."""

    def __init__(self, reading: int, writing: int):
        self._reading = os.fdopen(reading, "rb", buffering=0)
        self._writing = writing
        self._last = 0.0

    def job(self) -> dict[str, Any] | None:
        """Wait for the job and return it, None if the server has gone."""
        line = b""
        while not line.endswith(b"\n"):
            piece = self._reading.read(65536)
            if not piece:
                return None
            line += piece
        threading.Thread(target=self._watch, daemon=True).start()
        job: dict[str, Any] = json.loads(line)
        return job

    def tell(self, kind: str, **facts: Any) -> None:
        """Send one message."""
        line = json.dumps({"type": kind, **facts}).encode() + b"\n"
        while line:
            line = line[os.write(self._writing, line) :]

    def progress(self, done: int, total: int) -> None:
        """Send how far the job is, ten times a second at most."""
        now = time.monotonic()
        if now - self._last >= _EVERY or done >= total:
            self._last = now
            self.tell("progress", done=done, total=total)

    def _watch(self) -> None:
        while self._reading.read(1):
            continue
        os._exit(1)


def serve_job(setting: Making, channel: Channel, limit: int) -> None:
    """Do one job: the whole life of a worker after its start.

    Args:
        setting: makes the agent and the environment.
        channel: to the server.
        limit: of this process's memory, in bytes; 0 for none.
    """
    _limit_memory(limit)
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    os.environ.setdefault("SDL_AUDIODRIVER", "dummy")
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    try:
        setting.prepare()
        job = channel.job()
        if job is None:
            return
        channel.tell("ready")
        agent, world = setting.make(int(job.get("agent", 0)))
        channel.tell("made")
        channel.tell("done", result=do(job, agent, world, setting, channel))
    except MemoryError:
        channel.tell("error", message=f"out of memory: the job took more than {_size(limit)}")
    except BrokenPipeError:
        return
    except HaganeError as error:
        cause = error.__cause__
        trace = _trace(cause) if cause is not None else ""
        channel.tell("error", message=str(error), trace=trace)
    except SystemExit as error:
        channel.tell("error", message=f"the agent called exit({error.code})", trace=_trace(error))
    except BaseException as error:
        channel.tell("error", message=described(error), trace=_trace(error))


def do(
    job: dict[str, Any], agent: Watched, world: World, setting: Making, channel: Channel
) -> dict[str, Any]:
    """Do a job of any kind and return its result."""
    kind = job["kind"]
    if kind == "rollout":
        folder = Path(job["rollout_dir"])
        return roll_out(agent, world, folder, job["step_count"], job["seed"], channel.progress)
    if kind == "saliency":
        from hagane.tools.rl.explain.job import Request, explain_steps

        request = Request(**job["request"])
        folder = Path(job["rollout_dir"])
        return explain_steps(agent, world, folder, job["name"], request, channel.progress)
    if kind == "video":
        from hagane.tools.rl.jobs.video import make_video

        words = {key: job[key] for key in ("name", "first", "last", "fps", "explanation")}
        return make_video(Path(job["rollout_dir"]), **words, progress=channel.progress)
    if kind == "profile":
        return profile(agent, world, setting.meanings)
    raise HaganeError(f"job: there is no kind {kind!r}")


def profile(agent: Watched, world: World, given: dict[str, str]) -> dict[str, Any]:
    """Return the page's facts of an agent, found by asking it about one observation."""
    seed_all(0)
    agent.end_episode()
    observation = world.reset(0)
    picture = world.render()
    record = agent.explain(observation)
    agent.end_episode()
    count = world.actions()
    meanings = given or agent.meanings() or world.meanings()
    notes = []
    widths = {
        len(record[key])
        for key in ("action_probs", "action_values", "action_logits")
        if key in record
    }
    wanted = count if count is not None else next(iter(widths), None)
    if meanings and wanted is not None and len(meanings) != wanted:
        notes.append(
            f"action meanings: {len(meanings)} names for {wanted} actions; "
            "actions without a name are shown by number"
        )
    if picture is None:
        notes.append(f"no pictures of environment {world.name}: {world.blind}")
    shape = list(getattr(observation, "shape", ()) or ())
    return {
        "agent_type": agent.kind,
        "agent_name": agent.name,
        "environment": world.name,
        "action_meanings": meanings,
        "raw_image_input": len(shape) in (2, 3) and min(shape[-2:]) >= 5,
        "contains_recurrent_model": agent.recurrent,
        **kinds(record),
        "keys": sorted(record),
        "observation_shape": shape,
        "explanations": {
            "forward": agent.can("forward"),
            "gradient": agent.can("gradient"),
            "randomised": agent.can("randomised"),
            "ram": world.ram() is not None,
        },
        "notes": notes,
    }


def _trace(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))[-_TRACE:]


def _limit_memory(limit: int) -> None:
    if not limit:
        return
    import resource

    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _size(limit: int) -> str:
    return f"{limit / 2**30:.1f} GiB"


def main() -> None:
    """Serve one job in a process of its own: the settings are the only argument."""
    facts = json.loads(sys.argv[1])
    os.dup2(2, 1)
    setting = Setting(
        tuple(facts["agents"]), facts["environment"], facts["frames"], facts["meanings"]
    )
    channel = Channel(facts["reading"], facts["writing"])
    serve_job(setting, channel, facts["limit"])
    sys.stderr.flush()
    os._exit(0)
