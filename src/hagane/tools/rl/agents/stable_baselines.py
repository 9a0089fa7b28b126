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
        try:
            found = importlib.import_module("stable_baselines3")
        except ImportError:
            raise AgentFault(
                f"agent {path!r}: needs Stable-Baselines3: pip install stable-baselines3"
            ) from None
        for library, names in _LIBRARIES:
            for name in names:
                if f".{name.lower()}." in policy or _fits(name, facts):
                    try:
                        found = importlib.import_module(library)
                    except ImportError:
                        raise AgentFault(f"agent {path!r}: needs {library}") from None
                    return StableBaselinesAgent(getattr(found, name).load(path, device="cpu"))
        raise AgentFault(f"agent {path!r}: its algorithm could not be told from {policy!r}")

    def act(self, observation: Any) -> Any:
        """Return the action."""
        action, _ = self.model.predict(observation, deterministic=not self.sample)
        return int(action) if np.ndim(action) == 0 else action

    def explain(self, observation: Any) -> dict[str, Any]:
        """Return what the policy shows of one observation."""
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


def _fits(name: str, facts: dict[str, Any]) -> bool:
    marks = {
        "PPO": ("clip_range", "n_epochs"),
        "A2C": ("n_steps", "gae_lambda"),
        "SAC": ("ent_coef", "target_entropy"),
        "DQN": ("exploration_schedule",),
        "TD3": ("policy_delay",),
    }
    wanted = marks.get(name)
    if name == "A2C" and "clip_range" in facts:
        return False
    return wanted is not None and all(mark in facts for mark in wanted)
