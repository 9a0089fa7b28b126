"""Soft actor-critic (Haarnoja et al. 2018), with a temperature that is learnt."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import gymnasium
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from .settings import Settings
from .snapshot import Drawing


def layers(inputs: int, outputs: int, width: int) -> nn.Sequential:
    """Return two wide layers and one narrow."""
    return nn.Sequential(
        nn.Linear(inputs, width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, outputs),
    )


class Soft(nn.Module):
    """A squashed Gaussian policy and two values."""

    def __init__(self, inputs: int, size: int, reach: float, width: int):
        super().__init__()
        self.size, self.reach = size, reach
        self.policy = layers(inputs, 2 * size, width)
        self.first, self.second = layers(inputs + size, 1, width), layers(inputs + size, 1, width)
        self.heat = nn.Parameter(torch.zeros(()))

    def draw(self, states: torch.Tensor):
        """Return actions in -1..1 and the logarithm of their density."""
        mean, spread = self.policy(states).chunk(2, -1)
        normal = torch.distributions.Normal(mean, spread.clamp(-5, 2).exp())
        raw = normal.rsample()
        squash = 2 * (np.log(2) - raw - F.softplus(-2 * raw))
        return raw.tanh(), (normal.log_prob(raw) - squash).sum(-1)

    def worth(self, states: torch.Tensor, actions: torch.Tensor):
        """Return both values."""
        both = torch.cat([states, actions], -1)
        return self.first(both)[:, 0], self.second(both)[:, 0]

    def act(self, observation: np.ndarray) -> np.ndarray:
        """Return the action without noise."""
        with torch.no_grad():
            out = self.policy(torch.as_tensor(np.float32(observation))[None])[0]
        return out[: self.size].tanh().numpy() * self.reach

    def save(self, path: Path, shape: tuple[int, ...], facts: dict[str, str]) -> None:
        """Write the network as ONNX: the action, and the lesser of both values of it."""
        d = Drawing()
        out = d.through("observation", self.policy)
        ends = [d.constant(np.asarray([number], np.int64)) for number in (0, self.size, 1)]
        mean = d.node("Slice", out, ends[0], ends[1], ends[2])
        squashed = d.node("Tanh", mean)
        d.node("Mul", squashed, d.constant(np.float32([self.reach])), name="action_deterministic")
        both = d.node("Concat", "observation", squashed, axis=1)
        d.node(
            "Min", d.through(both, self.first), d.through(both, self.second), name="action_value"
        )
        outputs = {"action_deterministic": ["batch", self.size], "action_value": ["batch", 1]}
        d.save(path, {"observation": ["batch", *shape]}, outputs, facts)


def train(settings: Settings, report: Callable[[int, Callable], None]) -> Soft:
    """Train and return the networks."""
    env = gymnasium.make(settings.environment)
    inputs, size = env.observation_space.shape[0], env.action_space.shape[0]
    agent = Soft(inputs, size, float(env.action_space.high[0]), settings.width)
    target = copy.deepcopy(agent)
    actor = torch.optim.Adam(agent.policy.parameters(), settings.rate)
    critics = [*agent.first.parameters(), *agent.second.parameters()]
    critic = torch.optim.Adam(critics, settings.rate)
    heater = torch.optim.Adam([agent.heat], settings.rate)
    kept: list[tuple] = []
    state, _ = env.reset(seed=settings.seed)
    for step in range(settings.steps):
        if step < settings.start:
            action = np.random.uniform(-1, 1, size).astype(np.float32)
        else:
            with torch.no_grad():
                action = agent.draw(torch.as_tensor(np.float32(state))[None])[0][0].numpy()
        following, reward, ended, cut, _ = env.step(action * agent.reach)
        kept.append((state, action, reward * 0.1, following, float(not ended)))
        state = env.reset()[0] if ended or cut else following
        if step >= settings.start:
            rows = [kept[index] for index in np.random.randint(0, len(kept), settings.batch)]
            states, actions, rewards, after, going = (
                torch.as_tensor(np.asarray(column, np.float32))
                for column in zip(*rows, strict=True)
            )
            with torch.no_grad():
                drawn, chance = agent.draw(after)
                worth = torch.minimum(*target.worth(after, drawn)) - agent.heat.exp() * chance
                goal = rewards + settings.discount * going * worth
            first, second = agent.worth(states, actions)
            _descend(critic, (first - goal).square().mean() + (second - goal).square().mean())
            drawn, chance = agent.draw(states)
            worth = torch.minimum(*agent.worth(states, drawn))
            _descend(actor, (agent.heat.exp().detach() * chance - worth).mean())
            _descend(heater, -(agent.heat * (chance.detach() - size)).mean())
            with torch.no_grad():
                for ours, theirs in zip(agent.parameters(), target.parameters(), strict=True):
                    theirs.lerp_(ours, 0.01)
        if (step + 1) % (settings.steps // settings.reports) == 0:
            report(step + 1, agent.act)
    return agent


def _descend(optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
