"""The protocol of agents: ``act``, and the outputs that they can show.

An agent is any object with ``act(observation)``. It may have, each on its own:

- ``explain(observation) -> dict`` with keys of ``outputs.py``; it leaves a recurrent state alone.
- ``reset()`` or ``stop_episode()``, called where an episode ends.
- ``forward(batch, state) -> (outputs, state)``: the same for a batch of observations, on which
  explanations in batches use. Outputs are arrays whose first dimension is the batch.
- ``state`` (tuple of arrays with a batch of 1, or None) of a recurrent agent.
- ``gradient(batch, key, index, state) -> array like batch``: of output ``key[index]``.
- ``randomised(seed, layers) -> agent``: itself with random weights, from the last layer backwards.
- ``action_meanings``: names of discrete actions, a mapping or sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from hagane.tools.rl.agents.outputs import checked
from hagane.tools.rl.errors import AgentFault

Array = npt.NDArray[Any]
State = tuple[Array, ...] | None
Outputs = dict[str, Array]


class Agent(Protocol):
    """The least that an agent has."""

    def act(self, observation: Any) -> Any:
        """Return the action for one observation."""


class Watched:
    """An agent with substitutes for missing methods, or a note that names them.

    Args:
        agent: the object of somebody's program.
        name: for messages and the page.
    """

    def __init__(self, agent: Any, name: str = ""):
        if not callable(getattr(agent, "act", None)):
            raise AgentFault(
                f"{name or type(agent).__name__}: expected an agent with act(observation), "
                f"got {type(agent).__name__} without it"
            )
        self.agent = agent
        self.name = name or type(agent).__name__
        self._acting = False

    @property
    def kind(self) -> str:
        """The name of its class, of the inner object's where it is an adapter."""
        return str(getattr(self.agent, "kind", None) or type(self.agent).__name__)

    @property
    def recurrent(self) -> bool:
        """Whether it carries a state from step to step."""
        return bool(
            getattr(self.agent, "recurrent", False)
            or getattr(self.agent, "state", None) is not None
        )

    def act(self, observation: Any) -> Any:
        """Return the action for one observation."""
        self._acting = True
        return self.agent.act(observation)

    def explain(self, observation: Any) -> dict[str, Any]:
        """Return its outputs for one observation, as they go into the log; {} if nothing."""
        explain = getattr(self.agent, "explain", None)
        if explain is None:
            return {}
        return checked(explain(observation), self.name)

    def end_episode(self) -> None:
        """Tell it that an episode has ended, or that the first one begins.

        ``stop_episode`` is called only after actions, as ChainerRL does.
        """
        ended, self._acting = self._acting, False
        for name in ("reset", "stop_episode"):
            call = getattr(self.agent, name, None)
            if callable(call):
                if ended or name == "reset":
                    call()
                return

    def state(self) -> State:
        """Return its recurrent state, None if it has none."""
        value = getattr(self.agent, "state", None)
        if value is None or callable(value):
            return None
        parts = value if isinstance(value, tuple | list) else (value,)
        return tuple(np.asarray(part) for part in parts)

    def forward(self, batch: Array, state: State = None) -> tuple[Outputs, State]:
        """Return the outputs for a batch of observations, in one pass where it can.

        Args:
            batch: observations, ``(batch, ...)``.
            state: recurrent states, each ``(batch, ...)``; None for those of an episode's start.

        Raises:
            AgentFault: it neither has ``forward`` nor ``explain``.
        """
        forward: Callable[..., Any] | None = getattr(self.agent, "forward", None)
        if callable(forward):
            result = forward(batch, state)
            outputs, after = result if isinstance(result, tuple) else (result, None)
            return {key: np.asarray(value) for key, value in outputs.items()}, after
        if getattr(self.agent, "explain", None) is None:
            raise AgentFault(
                f"{self.name}: nothing to explain: the agent shows no outputs; "
                "expected forward(batch, state) or explain(observation)"
            )
        rows = [self.explain(observation) for observation in batch]
        shared = [key for key in rows[0] if all(key in row for row in rows)]
        arrays = {key: _numbers([row[key] for row in rows]) for key in shared}
        return {key: value for key, value in arrays.items() if value is not None}, None

    def can(self, facet: str) -> bool:
        """Return whether it has an optional method such as ``gradient``."""
        return callable(getattr(self.agent, facet, None))

    def meanings(self) -> dict[str, str]:
        """Return names of discrete actions as it gives them, {} if it gives none."""
        value = getattr(self.agent, "action_meanings", None)
        return named_actions(value) if value else {}


def _numbers(rows: list[Any]) -> Array | None:
    try:
        return np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError):
        return None


def named_actions(value: Any) -> dict[str, str]:
    """Return action meanings with the actions' numbers as text, from a mapping or a sequence."""
    if isinstance(value, Mapping):
        return {str(key): str(text) for key, text in value.items()}
    if isinstance(value, list | tuple):
        return {str(key): str(text) for key, text in enumerate(value)}
    raise AgentFault(
        f"action meanings: expected a dict such as {{0: 'left'}} or a list of names, "
        f"got {type(value).__name__}"
    )
