"""CleanRL's networks from their weights alone: the files that its programs save.

The names and shapes of the weights tell the layers; the activations are those of CleanRL's
programs: ReLU in ``network``, ``fc1`` and ``fc2``, tanh in policies and values without layers in
common.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from hagane.tools.rl.agents.cleanrl import module_agent
from hagane.tools.rl.agents.torch import TorchAgent
from hagane.tools.rl.errors import AgentFault

_STRIDES = {8: 4, 4: 2, 3: 1}  # of convolutions by the side of their kernel (Mnih et al. 2015)
_ELSE = "Let make() in AGENT.py return the network, and name AGENT.py:make"
_PARTS = ("network", "actor", "critic", "actor_mean")

Weights = Mapping[str, torch.Tensor]


def loaded(path: str) -> TorchAgent:
    """Return the agent whose weights a file holds; nothing of it is unpickled but tensors.

    Raises:
        AgentFault: it cannot be read, or holds no network that CleanRL's programs save.
    """
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise AgentFault(f"agent {path!r}: cannot be read: {error.strerror}") from None
    except Exception:  # PyTorch's own words propose to unpickle anything
        raise AgentFault(
            f"agent {path!r}: expected tensors alone, a state_dict() that torch.save wrote; it "
            f"holds other objects, or is no file of PyTorch. {_ELSE}"
        ) from None
    if isinstance(found, tuple) and found:
        found = found[0]  # DDPG, TD3: the actor, then its critics
    if isinstance(found, dict) and isinstance(found.get("model_weights"), dict):
        found = found["model_weights"]  # C51
    if not _named_tensors(found):
        raise AgentFault(
            f"agent {path!r}: expected weights by name, got {type(found).__name__}. {_ELSE}"
        )
    try:
        module = network(found)
    except (KeyError, RuntimeError, ValueError, IndexError) as error:
        raise AgentFault(
            f"agent {path!r}: its weights are of no network of CleanRL ({_first_line(error)}): "
            f"{', '.join(list(found)[:6])}. {_ELSE}"
        ) from None
    agent = module_agent(module)
    agent.kind = "CleanRL"
    return agent


def network(weights: Weights) -> nn.Module:
    """Return the network that the weights are of.

    Raises:
        KeyError: a weight is missing.
        RuntimeError: others are there than a network has.
        ValueError: the weights name no part that is known.
    """
    module: nn.Module = _Actor(weights) if "fc1.weight" in weights else _Parts(weights)
    module.load_state_dict(dict(weights))
    return module


class _Parts(nn.Module):  # type: ignore[misc]
    """DQN, C51 and PPO: those of ``network``, ``actor``, ``critic``, ``actor_mean`` there are."""

    def __init__(self, weights: Weights):
        super().__init__()
        shared = any(name.startswith("network.") for name in weights)
        heads = any(name.startswith("actor") for name in weights)
        for part in _PARTS:
            own = {n[len(part) + 1 :]: w for n, w in weights.items() if n.startswith(f"{part}.")}
            if own:
                kind = nn.ReLU if shared else nn.Tanh
                setattr(self, part, _sequence(own, kind, ends=part == "network" and heads))
        if not any(hasattr(self, part) for part in _PARTS):
            raise ValueError("no part is called network, actor or critic")
        for name in ("atoms", "actor_logstd"):
            if name in weights:
                self.register_buffer(name, weights[name])

    def forward(self, batch: Any) -> Any:
        """Return Q values, where the network has no heads."""
        return self.network(batch / 255.0 if batch.dim() == 4 else batch)


class _Actor(nn.Module):  # type: ignore[misc]
    """The actor of DDPG and TD3 (``fc_mu``), or of SAC (``fc_mean``)."""

    def __init__(self, weights: Weights):
        super().__init__()
        self.last = "fc_mu" if "fc_mu.weight" in weights else "fc_mean"
        for name in sorted({name.rpartition(".")[0] for name in weights} - {""}):
            setattr(self, name, _layer(weights[f"{name}.weight"], f"{name}.bias" in weights))
        for name in ("action_scale", "action_bias"):
            self.register_buffer(name, weights[name])

    def forward(self, batch: Any) -> Any:
        """Return the action of DDPG and TD3; SAC's mean before tanh, twice."""
        hidden = self.fc2(self.fc1(batch).relu()).relu()
        out = getattr(self, self.last)(hidden)
        if self.last == "fc_mean":
            return out, out
        return out.tanh() * self.action_scale + self.action_bias


def _sequence(weights: Weights, kind: type[nn.Module], ends: bool) -> nn.Module:
    """Return layers for weights by their place in a sequence, with activations between them."""
    if "weight" in weights:
        return _layer(weights["weight"], "bias" in weights)
    places = sorted({int(found[1]) for n in weights if (found := re.match(r"(\d+)\.weight$", n))})
    layers: list[nn.Module] = []
    for place in places:
        weight = weights[f"{place}.weight"]
        while len(layers) < place:
            flat = weight.dim() == 2 and len(layers) == place - 1 and _last(layers) == 4
            layers.append(nn.Flatten() if flat else kind())
        layers.append(_layer(weight, f"{place}.bias" in weights))
    return nn.Sequential(*layers, *([kind()] if ends else []))


def _last(layers: list[nn.Module]) -> int:
    """Return the rank of the weight of the last layer that has one, 0 if none has."""
    ranks = [layer.weight.dim() for layer in layers if isinstance(layer, nn.Linear | nn.Conv2d)]
    return ranks[-1] if ranks else 0


def _layer(weight: torch.Tensor, bias: bool) -> nn.Module:
    if weight.dim() == 2:
        return nn.Linear(weight.shape[1], weight.shape[0], bias)
    if weight.dim() == 4 and weight.shape[2] in _STRIDES:
        side = weight.shape[2]
        return nn.Conv2d(weight.shape[1], weight.shape[0], side, _STRIDES[side], bias=bias)
    raise ValueError(f"a weight has the shape {list(weight.shape)}")


def _named_tensors(found: Any) -> bool:
    return (
        isinstance(found, dict)
        and bool(found)
        and all(isinstance(weight, torch.Tensor) for weight in found.values())
    )


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
