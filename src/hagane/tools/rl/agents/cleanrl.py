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

    - ``actor`` and ``critic``: PPO with discrete actions, after ``network`` if there is one, and
      after ``lstm``, whose state is carried through an episode;
    - ``actor_mean``, ``actor_logstd`` and ``critic``: PPO with continuous actions;
    - ``atoms`` and ``network``: C51;
    - ``support`` and ``n_atoms``: Rainbow, which gives probabilities of actions by atoms;
    - ``fc_logits``: the actor of SAC with discrete actions;
    - ``action_scale`` and ``action_bias``: the actor of SAC or of TD3 and DDPG;
    - else the module itself gives Q values, or a dict by keys of the log.
    """
    if hasattr(module, "actor_mean") and hasattr(module, "critic"):
        return TorchAgent(module, _gaussian)
    if hasattr(module, "actor") and hasattr(module, "critic"):
        memory = getattr(module, "lstm", None)
        if not isinstance(memory, torch.nn.LSTM):
            return TorchAgent(module, _actor_critic)
        start = torch.zeros(1, memory.num_layers, memory.hidden_size)
        return TorchAgent(module, _recurrent, recurrent=(start, start))
    if hasattr(module, "atoms") and hasattr(module, "network"):
        return TorchAgent(module, _categorical)
    if hasattr(module, "support") and hasattr(module, "n_atoms"):
        return TorchAgent(module, _rainbow)
    if hasattr(module, "fc_logits"):
        return TorchAgent(module, _discrete_soft)
    if hasattr(module, "action_scale") and hasattr(module, "action_bias"):
        return TorchAgent(module, _soft)
    return TorchAgent(module, _plain)


def _actor_critic(module: Any, batch: Any, state: Any) -> tuple[Shown, Any]:
    inner = getattr(module, "network", None)
    hidden = inner(batch / 255.0) if inner is not None else batch
    return _weighed(module.actor(hidden), module.critic(hidden)), None


def _recurrent(module: Any, batch: Any, state: Any) -> tuple[Shown, Any]:
    """One step; states are of shape (batch, layers, units)."""
    before = tuple(part.transpose(0, 1).contiguous() for part in state)
    hidden, after = module.lstm(module.network(batch / 255.0)[None], before)
    shown = _weighed(module.actor(hidden[0]), module.critic(hidden[0]))
    return shown, tuple(part.transpose(0, 1) for part in after)


def _weighed(logits: Any, value: Any = None) -> Shown:
    shown = {"action_logits": logits, "action_probs": logits.softmax(-1)}
    return shown if value is None else {**shown, "state_value": value}


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
    return _distributed(
        module.network(seen).view(len(batch), -1, len(atoms)).softmax(-1), atoms
    ), None


def _rainbow(module: Any, batch: Any, state: Any) -> tuple[Shown, Any]:
    return _distributed(module(batch), module.support), None


def _distributed(chances: Any, atoms: Any) -> Shown:
    """Return what to show of probabilities of shape (batch, actions, atoms)."""
    return {
        "action_values": (chances * atoms).sum(-1),
        "action_value_dist": chances.transpose(1, 2),
        "z_values": atoms,
    }


def _discrete_soft(module: Any, batch: Any, state: Any) -> tuple[Shown, Any]:
    return _weighed(module(batch)), None


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
        return _weighed(*out), None
    return {"action_values": out}, None
