"""Agents of ChainerRL: ``model``, ``phi``, ``batch_states``, ``act``, ``stop_episode``.

Outputs are told apart by the names of their classes, so that nothing of ChainerRL is imported; the
kinds that ChainerRL Visualizer refused (quadratic and single action values, mellowmax, continuous
deterministic policies) are shown too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hagane.tools.rl.agents.protocol import Array, Outputs, State
from hagane.tools.rl.errors import AgentFault


class ChainerRLAgent:
    """An agent by the protocol around one of ChainerRL's.

    Args:
        agent: has ``model``, ``act`` and ``batch_states``.
    """

    def __init__(self, agent: Any):
        self.agent = agent
        self.kind = type(agent).__name__
        self.recurrent = callable(getattr(agent.model, "state_kept", None))
        if not self.recurrent:
            self.forward = self._forward

    def act(self, observation: Any) -> Any:
        """Return the action."""
        return self.agent.act(observation)

    def stop_episode(self) -> None:
        """Tell the agent that an episode has ended."""
        self.agent.stop_episode()

    def explain(self, observation: Any) -> dict[str, Any]:
        """Return the model's outputs for one observation; a recurrent state stays as it is."""
        return {key: value[0] for key, value in self._outputs([observation]).items()}

    def _forward(self, batch: Array, state: State = None) -> tuple[Outputs, State]:
        return self._outputs(list(batch)), None

    def _outputs(self, observations: list[Any]) -> Outputs:
        agent = self.agent
        states = agent.batch_states(observations, getattr(agent, "xp", np), agent.phi)
        if self.recurrent:
            with agent.model.state_kept():
                found = agent.model(states)
        else:
            found = agent.model(states)
        shown: Outputs = {}
        for output in found if isinstance(found, tuple) else (found,):
            shown.update(shown_of(output, len(observations)))
        return shown


def shown_of(output: Any, batch: int) -> Outputs:
    """Return one output of a model by keys of the log.

    Raises:
        AgentFault: it is of a kind that is not known, or lacks a part of its kind.
    """
    names = [kind.__name__ for kind in type(output).__mro__]
    try:
        return _shown(output, names, batch)
    except AttributeError as error:
        kind = "ActionValue" if any("ActionValue" in name for name in names) else "Distribution"
        raise AgentFault(
            f"{kind} type {names[0]}: a part of its kind is missing: {error}"
        ) from None


def _shown(output: Any, names: list[str], batch: int) -> Outputs:
    if "DistributionalDiscreteActionValue" in names:
        return {
            "action_values": _array(output.q_values),
            "z_values": np.broadcast_to(_array(output.z_values), (batch, len(output.z_values))),
            "action_value_dist": _array(output.q_dist).transpose(0, 2, 1),
        }
    if "QuantileDiscreteActionValue" in names:
        return {
            "action_values": _array(output.q_values),
            "action_quantiles": _array(output.quantiles),
        }
    if "DiscreteActionValue" in names:
        return {"action_values": _array(output.q_values)}
    if "QuadraticActionValue" in names:
        return {
            "action_deterministic": _array(output.mu),
            "action_value": _array(output.v).reshape(batch, -1),
        }
    if "SingleActionValue" in names:
        return {"action_value": _array(output.max).reshape(batch, -1)}
    if "MellowmaxDistribution" in names:
        return {
            "action_probs": _array(output.all_prob),
            "mellowmax_beta": np.full(
                (batch, 1), float(np.mean(_array(getattr(output, "beta", 0.0))))
            ),
        }
    if "SoftmaxDistribution" in names:
        shown = {"action_probs": _array(output.all_prob)}
        if hasattr(output, "logits"):
            shown["action_logits"] = _array(output.logits)
        return shown
    if "GaussianDistribution" in names:
        return {"action_means": _array(output.mean), "action_vars": _array(output.var)}
    if "ContinuousDeterministicDistribution" in names:
        return {"action_deterministic": _array(output.x)}
    if "Variable" in names:
        return {"state_value": _array(output).reshape(batch, -1)}
    raise AgentFault(
        f"Model output type of {names[0]}: expected a Variable, a Distribution or an ActionValue "
        "of ChainerRL"
    )


def _array(value: Any) -> Array:
    inner = getattr(value, "data", value)
    if isinstance(inner, memoryview):
        inner = value
    if hasattr(inner, "get"):
        inner = inner.get()
    return np.asarray(inner)
