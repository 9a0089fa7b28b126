"""``serve_agents`` for files and ``launch_visualizer`` for objects: from agents to a server."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hagane.errors import InvalidArgument, MissingExtra
from hagane.tools.rl.agents.load import adapted
from hagane.tools.rl.agents.protocol import Watched, named_actions
from hagane.tools.rl.environments import World
from hagane.tools.rl.jobs.setting import Live, Setting
from hagane.tools.rl.jobs.start import Forked, Fresh
from hagane.tools.rl.jobs.worker import Channel, serve_job
from hagane.tools.rl.logs.folder import LogFolder

_MOST_MEMORY = 2**32  # GiB, the most that the limit of a process can say


def _need_server() -> None:
    try:
        import starlette
        import uvicorn  # noqa: F401
        import websockets  # noqa: F401
        from PIL import Image  # noqa: F401

        assert starlette
    except ImportError:
        raise MissingExtra("hagane rl", "rl") from None


def serve_agents(
    agents: Sequence[str],
    environment: str = "",
    frames: int | None = None,
    log_dir: str | Path = "log_space",
    port: int = 5002,
    patience: float = 30.0,
    memory: float = 4.0,
    jobs: int = 2,
    debug: bool = False,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve agents that are named; each job loads its agent in a process of its own.

    Args:
        agents: references such as ``agent.py:make``; with several, checkpoints are compared.
        environment: an id of Gymnasium; '' if ``make`` brings the environment.
        frames: observations to stack; None for four in Atari games, none elsewhere.
        log_dir: folder of the logs, made if it is missing.
        port: on 127.0.0.1; 0 takes one that is free.
        patience: seconds without a sign of life after which a job is ended.
        memory: GiB that a job may take; 0 for no limit.
        jobs: that run at once.
        debug: whether requests are written to standard error.
        ready: called with the address; prints it if None.

    Raises:
        InvalidArgument: the port cannot be listened on, or a limit is out of range.
        RlError: the log folder cannot be used.
        MissingExtra: the extra ``rl`` is not installed.
    """
    _need_server()
    from hagane.tools.rl.server.serve import Limits, listen_on, serve

    if not agents:
        raise InvalidArgument("agents: expected at least one, such as agent.py:make")
    if patience <= 0 or memory < 0 or jobs < 1:
        raise InvalidArgument(
            "expected --patience above 0, --memory of at least 0 and --jobs of at least 1, "
            f"got {patience:g}, {memory:g} and {jobs}"
        )
    limits = Limits(patience, int(min(memory, _MOST_MEMORY) * 2**30), jobs)
    setting = Setting(tuple(agents), environment, frames)
    folder = LogFolder(Path(log_dir))
    listening = listen_on(port)
    starter = Fresh(setting, limits.memory)
    given = {"agent_name": agents[0], "environment": environment}
    serve(
        listening,
        folder,
        starter,
        setting.files(),
        setting.agents,
        given,
        limits,
        ready or _announce,
        debug,
    )


def launch_visualizer(
    agent: Any,
    gymlike_env: Any,
    action_meanings: Mapping[int, str],
    log_dir: str | Path = "log_space",
    port: int = 5002,
    raw_image_input: bool = False,
    debug: bool = False,
    contains_rnn: bool = False,
) -> None:
    """Serve an agent and an environment that a program has made, as ChainerRL Visualizer does.

    At a terminal, an existing folder without logs is used only after a yes.
    Jobs run in forks of the calling process as it is now; it must not have started threads that
    hold locks.

    Args:
        agent: any by the protocol, ChainerRL's, Stable-Baselines3's, or a PyTorch module.
        gymlike_env: has ``reset``, ``step`` and ``render``.
        action_meanings: names of discrete actions by number; {} for continuous ones.
        log_dir: folder of the logs, made if it is missing.
        port: on 127.0.0.1; 0 takes one that is free.
        raw_image_input: whether observations are pictures.
        debug: whether requests are written to standard error.
        contains_rnn: whether the agent is recurrent.

    Raises:
        AgentFault: the agent cannot act, or the action meanings are no mapping.
        EnvironmentFault: the environment lacks ``reset`` or ``step``.
        InvalidArgument: the port cannot be listened on.
    """
    _need_server()
    if not isinstance(action_meanings, Mapping):
        raise InvalidArgument(
            "action_meanings: they have to be dictionary entries such as {0: 'left', 1: 'right'}, "
            f"got {type(action_meanings).__name__}"
        )
    keys = sorted(action_meanings, key=str)
    if sorted(map(str, keys)) != sorted(map(str, range(len(keys)))):
        raise InvalidArgument(
            f"action_meanings: Invalid key index: expected the keys 0 to {max(0, len(keys) - 1)}, "
            f"got {keys}"
        )
    if not may_use(Path(log_dir), _terminal()):
        return
    from hagane.tools.rl.server.serve import Limits, listen_on, open_browser, serve

    watched = Watched(adapted(agent), type(agent).__name__)
    world = World(gymlike_env)

    limits = Limits()
    live = Live(watched, world, named_actions(action_meanings))
    given: dict[str, Any] = {
        "agent_name": watched.name,
        "environment": world.name,
        "action_meanings": named_actions(action_meanings),
        "raw_image_input": raw_image_input,
        "contains_recurrent_model": contains_rnn,
    }

    def body(reading: int, writing: int) -> None:
        _one_thread()
        serve_job(live, Channel(reading, writing), limits.memory)

    folder = LogFolder(Path(log_dir))
    listening = listen_on(port)
    starter = Forked(body)

    def ready(address: str) -> None:
        _announce(address)
        open_browser(address)

    serve(listening, folder, starter, [], live.agents, given, limits, ready, debug)


def may_use(log_dir: Path, ask: Callable[[str], str] | None) -> bool:
    """Return whether logs may go to a folder: others than new ones and those of logs are asked for.

    Args:
        log_dir: the folder, which need not exist.
        ask: puts a question to the user; None if there is nobody to ask, which counts as yes.
    """
    if ask is None or not log_dir.is_dir() or (log_dir / "rollouts").is_dir():
        return True
    question = f"{log_dir} exists and holds no logs. Write logs to it? (y/n) "
    return ask(question).strip().lower() == "y"


def _terminal() -> Callable[[str], str] | None:
    """Return the function that asks at the terminal, None without one."""
    return input if sys.stdin is not None and sys.stdin.isatty() else None


def _announce(address: str) -> None:
    print(f"watch at {address}", flush=True)


def _one_thread() -> None:
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)  # the threads of a pool do not survive a fork
