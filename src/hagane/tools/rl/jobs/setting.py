"""The setting of a worker process before its job: agents, environment, limits."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hagane.tools.rl.agents.load import load_agent
from hagane.tools.rl.agents.protocol import Watched
from hagane.tools.rl.environments import World, make_world
from hagane.tools.rl.errors import EnvironmentFault


@dataclass(frozen=True, slots=True)
class Setting:
    """Agents and an environment by name.

    Attributes:
        agents: references of ``load_agent``; the first one is the one that is watched.
        environment: an id of Gymnasium, '' if the agent brings its own.
        frames: how many observations are stacked, None for Atari's four.
        meanings: names of actions that were given, '' as a key's text for none.
    """

    agents: tuple[str, ...]
    environment: str = ""
    frames: int | None = None
    meanings: dict[str, str] = field(default_factory=dict)

    def make(self, index: int = 0) -> tuple[Watched, World]:
        """Return the agent of that index and an environment.

        Raises:
            AgentFault: the agent cannot be made.
            EnvironmentFault: no environment was named, or it cannot be made.
        """
        world = make_world(self.environment, self.frames) if self.environment else None
        agent, brought = load_agent(self.agents[index], world.env if world is not None else None)
        if world is not None:
            return agent, world
        wanted = brought if brought is not None else getattr(agent.agent, "env", None)
        if wanted is None:
            raise EnvironmentFault(
                f"agent {self.agents[index]!r}: no environment: name one with --env, for instance "
                "--env CartPole-v1, or let make() return (agent, env)"
            )
        return agent, make_world(wanted, self.frames) if isinstance(wanted, str) else World(wanted)

    def prepare(self) -> None:
        """Import the modules of the environment; no user code runs yet."""
        if self.environment or any(agent.endswith(".onnx") for agent in self.agents):
            with contextlib.suppress(ImportError):
                import gymnasium
                from PIL import Image

                assert gymnasium
                assert Image

    def files(self) -> list[Path]:
        """Return the files whose change makes a prepared process stale."""
        return [Path(reference.rpartition(":")[0] or reference) for reference in self.agents]


@dataclass(frozen=True, slots=True)
class Live:
    """An agent and an environment that exist already, in the process that forks workers."""

    agent: Any
    environment: Any
    meanings: dict[str, str] = field(default_factory=dict)

    def make(self, index: int = 0) -> tuple[Watched, World]:
        """Return both."""
        return self.agent, self.environment

    def prepare(self) -> None:
        """Do nothing: all is there."""

    @property
    def agents(self) -> tuple[str, ...]:
        """The agent's name, as the only one."""
        return (self.agent.name,)

    def files(self) -> list[Path]:
        """Return no file."""
        return []
