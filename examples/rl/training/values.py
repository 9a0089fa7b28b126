"""DQN with double targets, categorical DQN and QR-DQN: one loop, three heads.

Mnih et al. 2015; van Hasselt et al. 2016; Bellemare et al. 2017; Dabney et al. 2018.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import gymnasium
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from .settings import Settings, slow
from .snapshot import Drawing, body

ATOMS, QUANTILES = 31, 20


class Values(nn.Module):
    """Q of each action, as a number, a distribution over atoms, or quantiles."""

    def __init__(self, shape: tuple[int, ...], actions: int, settings: Settings):
        super().__init__()
        self.kind, self.actions = settings.algorithm, actions
        self.body = body(shape, settings.width)
        count = {"dqn": 1, "c51": ATOMS, "qrdqn": QUANTILES}[self.kind]
        self.head = nn.Linear(settings.width // 2, actions * count)
        self.atoms = torch.linspace(settings.low, settings.high, ATOMS)

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """Return ``(batch, actions)`` or ``(batch, actions, atoms or quantiles)``."""
        out = self.head(self.body(observations))
        return out if self.kind == "dqn" else out.view(len(out), self.actions, -1)

    def values(self, out: torch.Tensor) -> torch.Tensor:
        """Return the expectation for each action."""
        if self.kind == "dqn":
            return out
        if self.kind == "c51":
            return (out.softmax(-1) * self.atoms).sum(-1)
        return out.mean(-1)

    def save(self, path: Path, shape: tuple[int, ...], facts: dict[str, str]) -> None:
        """Write the network as ONNX."""
        drawing, actions = Drawing(), self.actions
        value = drawing.through("observation", self.body)
        outputs: dict[str, list[object]] = {"action_values": ["batch", actions]}
        if self.kind == "dqn":
            drawing.linear(value, self.head, "action_values")
        else:
            value = drawing.shaped(drawing.linear(value, self.head), 0, actions, -1)
            axis = drawing.constant(np.asarray([2], np.int64))
            if self.kind == "c51":
                value = drawing.node("Softmax", value, axis=2)
                drawing.node("Transpose", value, name="action_value_dist", perm=[0, 2, 1])
                atoms = drawing.constant(self.atoms.numpy())
                drawing.node("Identity", atoms, name="z_values")
                weighed = drawing.node("Mul", value, atoms)
                drawing.node("ReduceSum", weighed, axis, name="action_values", keepdims=0)
                outputs["action_value_dist"] = ["batch", ATOMS, actions]
                outputs["z_values"] = [ATOMS]
            else:
                drawing.node("Transpose", value, name="action_quantiles", perm=[0, 2, 1])
                drawing.node("ReduceMean", value, axis, name="action_values", keepdims=0)
                outputs["action_quantiles"] = ["batch", QUANTILES, actions]
        drawing.save(path, {"observation": ["batch", *shape]}, outputs, facts)


class Replay:
    """The last transitions, in arrays."""

    def __init__(self, size: int, shape: tuple[int, ...]):
        self.states = np.zeros((size, *shape), np.float32)
        self.following = np.zeros((size, *shape), np.float32)
        self.actions = np.zeros(size, np.int64)
        self.rewards = np.zeros(size, np.float32)
        self.going = np.zeros(size, np.float32)
        self.size, self.count = size, 0

    def add(self, state, action, reward, following, ended) -> None:
        """Keep one transition."""
        at = self.count % self.size
        self.states[at], self.following[at] = state, following
        self.actions[at], self.rewards[at], self.going[at] = action, reward, not ended
        self.count += 1

    def draw(self, batch: int) -> list[torch.Tensor]:
        """Return a batch drawn uniformly."""
        at = np.random.randint(0, min(self.count, self.size), batch)
        arrays = (self.states, self.actions, self.rewards, self.following, self.going)
        return [torch.from_numpy(array[at]) for array in arrays]


def train(settings: Settings, report: Callable[[int, Callable], None]) -> Values:
    """Train and return the network; ``report(step, act)`` is called as training goes on."""
    env = gymnasium.make(settings.environment)
    shape, actions = env.observation_space.shape, int(env.action_space.n)
    network = Values(shape, actions, settings)
    target = copy.deepcopy(network)
    optimizer = torch.optim.Adam(network.parameters(), settings.rate)
    replay = Replay(settings.memory, shape)
    env.action_space.seed(settings.seed)
    state, _ = env.reset(seed=settings.seed)
    network.act = lambda observation: best(network, observation)
    for step in range(settings.steps):
        share = min(1.0, step / (settings.exploring * settings.steps))
        if np.random.random() < 1 + share * (settings.epsilon - 1):
            action = env.action_space.sample()
        else:
            action = best(network, state)
        following, reward, ended, cut, _ = env.step(action)
        if settings.potential is not None:
            after = 0.0 if ended else settings.potential(following)
            reward += settings.discount * after - settings.potential(state)
        replay.add(state, action, reward * settings.scale, following, ended)
        state = env.reset()[0] if ended or cut else following
        if step >= settings.start and step % settings.every == 0:
            slow(optimizer, settings, step)
            loss = _loss(network, target, replay.draw(settings.batch), settings)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 10.0)
            optimizer.step()
        if step % settings.refresh == 0:
            target.load_state_dict(network.state_dict())
        if (step + 1) % (settings.steps // settings.reports) == 0:
            report(step + 1, network.act)
    return network


def best(network: Values, observation: np.ndarray) -> int:
    """Return the action of the greatest value."""
    with torch.no_grad():
        batch = torch.as_tensor(np.asarray(observation, np.float32))[None]
        return int(network.values(network(batch)).argmax(-1)[0])


def _loss(network: Values, target: Values, batch: list[torch.Tensor], s: Settings) -> torch.Tensor:
    states, actions, rewards, following, going = batch
    rows = torch.arange(len(actions))
    chosen = network(states)[rows, actions]
    with torch.no_grad():
        next_actions = network.values(network(following)).argmax(-1)
        after = target(following)[rows, next_actions]
    discount = s.discount * going
    if s.algorithm == "dqn":
        return F.smooth_l1_loss(chosen, rewards + discount * after)
    if s.algorithm == "c51":
        wanted = _projected(after.softmax(-1), rewards, discount, network.atoms)
        return -(wanted * chosen.log_softmax(-1)).sum(-1).mean()
    goal = rewards[:, None] + discount[:, None] * after
    error = goal[:, None, :] - chosen[:, :, None]
    places = (torch.arange(QUANTILES) + 0.5) / QUANTILES
    weight = (places[None, :, None] - (error.detach() < 0).float()).abs()
    huber = F.huber_loss(
        chosen[:, :, None].expand_as(error), goal[:, None, :].expand_as(error), reduction="none"
    )
    return (weight * huber).mean(-1).sum(-1).mean()


def _projected(
    chances: torch.Tensor, rewards: torch.Tensor, discount: torch.Tensor, atoms: torch.Tensor
) -> torch.Tensor:
    """Return the shifted distribution on the atoms (Bellemare et al. 2017, equation 7)."""
    gap = float(atoms[1] - atoms[0])
    moved = (rewards[:, None] + discount[:, None] * atoms).clamp(float(atoms[0]), float(atoms[-1]))
    place = (moved - atoms[0]) / gap
    near = (1 - (place[:, :, None] - torch.arange(len(atoms))).abs()).clamp(min=0)
    return (chances[:, :, None] * near).sum(1)
