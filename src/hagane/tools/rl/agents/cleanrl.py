"""CleanRL's networks, told apart by the attributes that its single-file programs give them.

CleanRL saves ``state_dict``s; ``make()`` builds the network of its program, loads the weights into
it, and returns the network. Other modules count as networks of Q values.
"""

from __future__ import annotations

from typing import Any

import torch

from hagane.tools.rl.agents.torch import Shown, TorchAgent


def module_agent(module: Any) -> TorchAgent:
    """Return an agent around a network.

    - ``actor`` and ``critic``: PPO with discrete actions, after ``network`` if there is one;
    - ``actor_mean``, ``actor_logstd`` and ``critic``: PPO with continuous actions;
    - ``atoms`` and ``network``: C51;
    - ``action_scale`` and ``action_bias``: the actor of SAC or of TD3 and DDPG;
    - else the module itself gives Q values, or a dict by keys of the log.
    """
    if hasattr(module, "actor_mean") and hasattr(module, "critic"):
        return TorchAgent(module, _gaussian)
    if hasattr(module, "actor") and hasattr(module, "critic"):
        return TorchAgent(module, _actor_critic)
    if hasattr(module, "atoms") and hasattr(module, "network"):
        return TorchAgent(module, _categorical)
    if hasattr(module, "action_scale") and hasattr(module, "action_bias"):
        return TorchAgent(module, _soft)
    return TorchAgent(module, _plain)


def _actor_critic(module: Any, batch: Any, state: Any) -> tuple[Shown, Any]:
    inner = getattr(module, "network", None)
    hidden = inner(batch / 255.0) if inner is not None else batch
    logits = module.actor(hidden)
    return {
        "action_logits": logits,
        "action_probs": logits.softmax(-1),
        "state_value": module.critic(hidden),
    }, None


def _gaussian(module: Any, batch: Any, state: Any) -> tuple[Shown, Any]:
    mean = module.actor_mean(batch)
    return {
        "action_means": mean,
        "action_vars": (2 * module.actor_logstd).exp().expand_as(mean),
        "state_value": module.critic(batch),
    }, None


def _categorical(module: Any, batch: Any, state: Any) -> tuple[Shown, Any]:
    seen = batch / 255.0 if batch.dim() == 4 else batch
    atoms = module.atoms
    chances = module.network(seen).view(len(batch), -1, len(atoms)).softmax(-1)
    return {
        "action_values": (chances * atoms).sum(-1),
        "action_value_dist": chances.transpose(1, 2),
        "z_values": atoms,
    }, None


def _soft(module: Any, batch: Any, state: Any) -> tuple[Shown, Any]:
    out = module(batch)
    if not isinstance(out, tuple):
        return {"action_deterministic": out}, None
    return {"action_deterministic": out[0].tanh() * module.action_scale + module.action_bias}, None


def _plain(module: Any, batch: Any, state: Any) -> tuple[Shown, Any]:
    out = module(batch)
    if isinstance(out, dict):
        return out, None
    if isinstance(out, tuple) and len(out) == 2 and isinstance(out[1], torch.Tensor):
        return {
            "action_logits": out[0],
            "action_probs": out[0].softmax(-1),
            "state_value": out[1],
        }, None
    return {"action_values": out}, None
