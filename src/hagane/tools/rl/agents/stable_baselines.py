"""Models of Stable-Baselines3: A2C, PPO, DQN, QR-DQN, SAC, TD3, DDPG."""

from __future__ import annotations

import importlib
import json
import zipfile
from typing import Any

import numpy as np

from hagane.tools.rl.agents.protocol import Array, Outputs, State
from hagane.tools.rl.errors import AgentFault

_LIBRARIES = (
    ("stable_baselines3", ("PPO", "A2C", "DQN", "SAC", "TD3", "DDPG")),
    ("sb3_contrib", ("QRDQN", "TQC", "TRPO", "MaskablePPO")),
)


class StableBaselinesAgent:
    """An agent by the protocol around a model of Stable-Baselines3.

    Args:
        model: has ``policy`` and ``predict``.
        sample: whether actions are drawn from a policy.
    """

    def __init__(self, model: Any, sample: bool = False):
        self.model, self.policy, self.sample = model, model.policy, sample
        self.kind = type(model).__name__
        self.name = self.kind

    @staticmethod
    def load(path: str) -> StableBaselinesAgent:
        """Return the agent in an archive that ``model.save`` wrote.

        Loading one unpickles parts of it: open only archives that you trust.

        Raises:
            AgentFault: it is no such archive, or the library is not installed.
        """
        try:
            with zipfile.ZipFile(path) as archive:
                facts = json.loads(archive.read("data"))
        except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
            raise AgentFault(f"agent {path!r}: no archive of Stable-Baselines3: {error}") from None
        policy = str(facts.get("policy_class", {}).get("__module__", ""))
        library, name = _algorithm(policy, facts)
        if not name:
            raise AgentFault(f"agent {path!r}: its algorithm could not be told from {policy!r}")
        try:
            found = importlib.import_module(library)
        except ImportError:
            package = library.replace("_", "-")
            raise AgentFault(f"agent {path!r}: needs {library}: pip install {package}") from None
        return StableBaselinesAgent(getattr(found, name).load(path, device="cpu"))

    def act(self, observation: Any) -> Any:
        """Return the action."""
        action, _ = self.model.predict(observation, deterministic=not self.sample)
        return int(action) if np.ndim(action) == 0 else action

    def explain(self, observation: Any) -> dict[str, Any]:
        """Return the policy's outputs for one observation."""
        outputs, _ = self.forward(np.asarray(observation)[None])
        return {key: value[0] for key, value in outputs.items()}

    def forward(self, batch: Array, state: State = None) -> tuple[Outputs, State]:
        """Return the outputs for a batch."""
        import torch

        seen, _ = self.policy.obs_to_tensor(batch)
        with torch.no_grad():
            shown = self._shown(seen)
        return {key: value.detach().cpu().numpy() for key, value in shown.items()}, None

    def _shown(self, seen: Any) -> dict[str, Any]:
        policy = self.policy
        if hasattr(policy, "quantile_net"):
            quantiles = policy.quantile_net(seen)
            return {"action_quantiles": quantiles, "action_values": quantiles.mean(1)}
        if hasattr(policy, "q_net"):
            return {"action_values": policy.q_net(seen)}
        if hasattr(policy, "get_distribution"):
            inner = policy.get_distribution(seen).distribution
            value = {"state_value": policy.predict_values(seen)}
            if hasattr(inner, "logits"):
                return {"action_logits": inner.logits, "action_probs": inner.probs, **value}
            if hasattr(inner, "loc"):
                return {"action_means": inner.loc, "action_vars": inner.scale**2, **value}
            return value
        if hasattr(policy, "actor"):
            action = policy.actor(seen)
            low, high = policy.action_space.low, policy.action_space.high
            import torch

            half = torch.as_tensor((high - low) / 2)
            shown = {"action_deterministic": torch.as_tensor(low) + half * (action + 1)}
            if hasattr(policy, "critic"):
                values = policy.critic(seen, action)
                shown["action_value"] = torch.cat(values, dim=1).min(dim=1).values[:, None]
            return shown
        return {}


def _algorithm(policy: str, facts: dict[str, Any]) -> tuple[str, str]:
    """Return the library and the class that wrote an archive, '' if they cannot be told.

    The policy's module names most of them; actor-critic policies are shared, and told apart by the
    settings that only one algorithm has.
    """
    for library, names in _LIBRARIES:
        for name in names:
            if f".{name.lower()}." in policy:
                return library, name
    if "clip_range" in facts:
        return "stable_baselines3", "PPO"
    if "gae_lambda" in facts:
        return "stable_baselines3", "A2C"
    return "", ""
