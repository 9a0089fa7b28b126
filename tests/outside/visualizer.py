"""ChainerRL Visualizer's own tests, run against the server of ``hagane rl``.

    python tests/outside/visualizer.py FOLDER [pytest arguments]

``FOLDER`` holds a source tree of ``chainer/chainerrl-visualizer`` (MIT, version 0.1.1). Its tests
import ``chainerrl_visualizer``, ``chainerrl`` and ``gym``; the environment needs
``chainerrl==0.8.0`` (``--no-deps``), ``mock``, ``jsonlines``, ``fastcache``, ``cached-property``,
``future`` and hagane with the extras ``rl`` and ``chainer``. ``import chainer`` finds hagane,
``gym`` is Gymnasium, and ``chainerrl_visualizer`` is made here of hagane's own server and worker:
no line of the original runs.

``ASIDE`` names the cases that hold the original to something else than its interface, each with
the reason; any other failure, and any case of ``ASIDE`` that passes, ends with status 1.
"""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"

_SERVER = "expects calls of werkzeug or gevent, in whose place hagane has uvicorn"
_PROCESSES = "expects the arguments of the original's two processes; hagane has one for each job"
_CONTINUOUS = "expects a refusal of {}, the names of continuous actions, which need none"
_PANE = "expects a refusal of an agent that shows only a value; its panes say what is missing"
_SHOWN = "expects a refusal of outputs that the original could not show, and hagane shows"
_QUEUE = (
    "expects 200 for a body that is no JSON and for a job that is dropped without a word, a fault "
    "of the original; hagane answers 400, and 202 for a job that it queues"
)
_NOTHING = f"{_QUEUE}; its rollout does not exist, which hagane answers with 404"
ASIDE = {
    "test_web_server_debug": _SERVER,
    "test_web_server_production": _SERVER,
    "test_job_workder": _PROCESSES,
    "test_launch_visualizer": _PROCESSES,
    "test_validate_action_meanings[act_list1-number of entries]": _CONTINUOUS,
    "test_inspect_agent[outs1-Outputs of model do not contain]": _PANE,
    "test_rollout[Unsupported-model_outs4-0]": _SHOWN,
    "test_rollout[Unsupported-model_outs5-0]": _SHOWN,
    "test_rollout[Unsupported-model_outs7-0]": _SHOWN,
    "test_api_post_rollouts": _QUEUE,
    "test_api_get_rollouts_saliency": _NOTHING,
}


class Answer:
    """An answer as Flask's test client gives it."""

    def __init__(self, answer: Any):
        self.status_code = answer.status_code
        self.data = answer.content


class Client:
    """Asks hagane's application as Flask's test client asks the original's."""

    def __init__(self, app: Any, token: str, port: int):
        from starlette.testclient import TestClient

        self._client = TestClient(
            app,
            base_url=f"http://127.0.0.1:{port}",
            headers={"Authorization": f"Bearer {token}"},
            raise_server_exceptions=False,
        )

    def get(self, path: str) -> Answer:
        return Answer(self._client.get(path))

    def post(self, path: str, data: str | None, content_type: str) -> Answer:
        headers = {"Content-Type": content_type}
        return Answer(self._client.post(path, content=data or "", headers=headers))


class App:
    """hagane's application, with the attributes that the tests set."""

    def __init__(self, log_dir: Any, profile: dict[str, Any], running: Any):
        from hagane.tools.rl.jobs.pool import Job, Pool
        from hagane.tools.rl.logs.folder import LogFolder
        from hagane.tools.rl.server.app import make_app
        from hagane.tools.rl.server.state import State

        class Sharing(Pool):
            """Jobs, one of which runs as long as the tests' shared flag says so."""

            def jobs(self) -> list[Job]:
                shared = [Job(0, "rollout", {}, status="running")] if running.value is True else []
                return [*shared, *super().jobs()]

        pool = Sharing(Never(), [], most=1, patience=30.0, limit=0)
        folder = LogFolder(Path(str(log_dir)))
        folder.rollouts.rmdir()  # the tests make it
        state = State(folder, pool, ("agent",), profile)
        self.testing = False
        self._client = Client(make_app(state, "token", 5002), "token", 5002)

    def test_client(self) -> Client:
        return self._client


class Never:
    """A starter of workers that starts none: the tests stop where a job begins."""

    def start(self) -> Any:
        raise OSError("no worker")


def create_app(
    agent: Any,
    env: Any,
    profile: dict[str, Any],
    log_dir: Any,
    action_meanings: dict[int, str],
    raw_image_input: bool,
    job_queue: Any,
    is_job_running: Any,
    is_rollout_on_memory: Any,
) -> App:
    """Return hagane's application for the arguments of the original's."""
    given = {
        **profile,
        "agent_type": type(agent).__name__,
        "action_meanings": {str(key): name for key, name in action_meanings.items()},
        "raw_image_input": raw_image_input,
    }
    return App(log_dir, given, is_job_running)


def rollout(agent: Any, env: Any, folder: Any, steps: int, *shared: Any) -> None:
    """Let an agent act, by the job that a worker of hagane runs."""
    from hagane.tools.rl.agents.load import adapted
    from hagane.tools.rl.agents.protocol import Watched
    from hagane.tools.rl.environments import World
    from hagane.tools.rl.jobs.rollout import roll_out

    watched = Watched(adapted(agent), type(agent).__name__)
    roll_out(watched, World(env), Path(str(folder)), steps, 0, lambda done, total: None)


def inspect_agent(agent: Any, env: Any, contains_rnn: Any) -> dict[str, Any]:
    """Return the outputs that an agent shows for the first observation."""
    from hagane.tools.rl.agents.load import adapted
    from hagane.tools.rl.agents.protocol import Watched
    from hagane.tools.rl.environments import World

    return Watched(adapted(agent), "agent").explain(World(env).reset(0))


def validate_action_meanings(meanings: Any) -> None:
    """Check names of actions, as ``launch_visualizer`` does before it asks for anything else."""
    from hagane.rl import launch_visualizer

    class Found(Exception):
        pass

    class Agent:
        @property
        def act(self) -> Any:
            raise Found

    try:
        launch_visualizer(Agent(), None, meanings)
    except Found:
        return


def modify_gym_env_render(env: Any) -> None:
    """Let an environment's ``render`` be the one through which a rollout gets its pictures."""
    from hagane.tools.rl.environments import World

    env.render = World(env).render


def answer(question: str) -> str:
    """Return the answer that a test gives in place of the terminal."""
    reply: str = sys.modules["chainerrl_visualizer.launcher"].input(question)  # type: ignore[attr-defined]
    return reply


def prepare_log_directory(log_dir: Any) -> bool:
    """Return whether ``launch_visualizer`` would use a folder."""
    from hagane.tools.rl.launch import may_use

    return may_use(Path(str(log_dir)), answer)


def substitute() -> None:
    """Make the modules that the tests import, of hagane."""
    from hagane.nn.aliasing import install
    from hagane.rl import launch_visualizer
    from hagane.tools.rl import launch
    from hagane.tools.rl.logs import folder

    install()
    launch._terminal = lambda: answer
    sys.modules["gym"] = gymnasium
    sys.modules["gym.spaces"] = gymnasium.spaces
    # ChainerRL's monitor stands on parts of gym that Gymnasium dropped; no test uses it.
    monitor = types.ModuleType("chainerrl.wrappers.monitor")
    monitor.__dict__.update(Monitor=gymnasium.Wrapper, ContinuingTimeLimitMonitor=None)
    sys.modules[monitor.__name__] = monitor
    held: dict[str, dict[str, Any]] = {
        "": {"launch_visualizer": launch_visualizer},
        ".server_tasks": {},
        ".server_tasks.rollout_ids": {"timestamp_format": folder._TIME},
        ".views": {},
        ".views.rollout": {"ROLLOUT_LOGFILE_NAME": folder.LOG_NAME},
        ".web_server": {"create_app": create_app, "web_server": None},
        ".worker_jobs": {"rollout": rollout},
        ".job_worker": {},
        ".launcher": {
            "inspect_agent": inspect_agent,
            "modify_gym_env_render": modify_gym_env_render,
            "prepare_log_directory": prepare_log_directory,
            "validate_action_meanings": validate_action_meanings,
        },
    }
    for suffix, names in held.items():
        module = types.ModuleType(f"chainerrl_visualizer{suffix}")
        module.__path__ = []
        module.__dict__.update(names)
        sys.modules[module.__name__] = module
        parent, _, name = module.__name__.rpartition(".")
        if parent:
            setattr(sys.modules[parent], name, module)


class Verdicts:
    """Counts the cases, and holds those of ``ASIDE`` to failing."""

    def __init__(self) -> None:
        self.passed: list[str] = []
        self.aside: list[tuple[str, str]] = []
        self.wrong: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the outcome of a case."""
        if report.when != "call" and not (report.when == "setup" and report.failed):
            return
        name = report.nodeid.rpartition("::")[2]
        reason = ASIDE.get(name) or ASIDE.get(name.partition("[")[0])
        if report.passed and reason is None:
            self.passed.append(name)
        elif report.failed and reason is not None:
            self.aside.append((name, reason))
        else:
            self.wrong.append(f"{name}: {'passes, but is set aside' if reason else 'fails'}")


def main(arguments: Sequence[str]) -> int:
    """Run the tests of a source tree; return 0 where only cases of ``ASIDE`` fail."""
    if not arguments or not (Path(arguments[0]) / "tests" / "test_web_server.py").is_file():
        print(f"usage: {sys.argv[0]} FOLDER [pytest arguments]", file=sys.stderr)
        return 2
    sys.path.insert(0, str(SOURCE))
    substitute()
    verdicts = Verdicts()
    os.chdir(arguments[0])
    options = ["-q", "--no-header", "-p", "no:cacheprovider", *arguments[1:], "tests"]
    pytest.main(options, plugins=[verdicts])
    for name, reason in verdicts.aside:
        print(f"aside: {name}: {reason}")
    for line in verdicts.wrong:
        print(f"wrong: {line}")
    count = len(verdicts.passed), len(verdicts.aside), len(verdicts.wrong)
    print("{} pass, {} are set aside, {} are wrong".format(*count))
    return int(bool(verdicts.wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
