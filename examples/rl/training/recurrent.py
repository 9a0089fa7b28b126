"""A recurrent DQN in the manner of R2D2 (Kapturowski et al. 2019): stored states, burn-in."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import gymnasium
import numpy as np
import torch
from onnx import helper
from torch import nn
from torch.nn import functional as F

from .settings import Settings, slow
from .snapshot import Drawing

LENGTH, BURN = 24, 8


class Memory(nn.Module):
    """One layer, one gated recurrent cell, one value an action."""

    def __init__(self, inputs: int, actions: int, width: int):
        super().__init__()
        self.width = width
        self.entry = nn.Sequential(nn.Linear(inputs, width), nn.ReLU())
        self.gates = nn.Linear(2 * width, 2 * width)
        self.fresh = nn.Linear(2 * width, width)
        self.head = nn.Linear(width, actions)

    def forward(self, observations: torch.Tensor, state: torch.Tensor):
        """Return values ``(batch, actions)`` and the next state ``(batch, width)``."""
        x = self.entry(observations)
        forget, update = torch.sigmoid(self.gates(torch.cat([x, state], -1))).chunk(2, -1)
        candidate = torch.tanh(self.fresh(torch.cat([x, forget * state], -1)))
        state = (1 - update) * state + update * candidate
        return self.head(state), state

    def save(self, path: Path, shape: tuple[int, ...], facts: dict[str, str]) -> None:
        """Write the network as ONNX."""
        d, width = Drawing(), self.width
        x = d.through("observation", self.entry)
        both = d.node("Concat", x, "state", axis=1)
        gates = d.node("Sigmoid", d.linear(both, self.gates))
        half = d.constant(np.asarray([width, width], np.int64))
        d.nodes.append(helper.make_node("Split", [gates, half], ["forget", "update"], axis=1))
        kept = d.node("Mul", "forget", "state")
        candidate = d.node("Tanh", d.linear(d.node("Concat", x, kept, axis=1), self.fresh))
        change = d.node("Mul", "update", d.node("Sub", candidate, "state"))
        d.node("Add", "state", change, name="next_state")
        d.linear("next_state", self.head, "action_values")
        d.save(
            path,
            {"observation": ["batch", *shape], "state": ["batch", width]},
            {"action_values": ["batch", self.head.out_features], "next_state": ["batch", width]},
            facts,
        )


def train(settings: Settings, report: Callable[[int, Callable], None]) -> Memory:
    """Train and return the network."""
    env = gymnasium.make(settings.environment)
    shape, actions = env.observation_space.shape, int(env.action_space.n)
    network = Memory(shape[0], actions, settings.width)
    target = copy.deepcopy(network)
    optimizer = torch.optim.Adam(network.parameters(), settings.rate)
    pieces: list[tuple] = []
    state, _ = env.reset(seed=settings.seed)
    hidden = torch.zeros(1, settings.width)
    piece = _empty(hidden)
    for step in range(settings.steps):
        with torch.no_grad():
            values, after = network(torch.as_tensor(np.float32(state))[None], hidden)
        share = min(1.0, step / (settings.exploring * settings.steps))
        random = np.random.random() < 1 + share * (settings.epsilon - 1)
        action = env.action_space.sample() if random else int(values.argmax())
        following, reward, ended, cut, _ = env.step(action)
        for column, item in zip(
            piece[1:],
            (state, action, reward * settings.scale, float(not ended), 1.0),
            strict=True,
        ):
            column.append(item)
        state, hidden = following, after
        if ended or cut or len(piece[1]) == LENGTH:
            pieces.append(_filled(piece, following))
            if len(pieces) > 4000:
                pieces.pop(0)
            if ended or cut:
                state, hidden = env.reset()[0], torch.zeros(1, settings.width)
            piece = _empty(hidden)
        if len(pieces) > 40 and step % settings.every == 0:
            slow(optimizer, settings, step)
            loss = _loss(network, target, pieces, settings)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 10.0)
            optimizer.step()
        if step % settings.refresh == 0:
            target.load_state_dict(network.state_dict())
        if (step + 1) % (settings.steps // settings.reports) == 0:
            report(step + 1, lambda: _player(network))
    return network


def _player(network: Memory):
    hidden = torch.zeros(1, network.width)

    def act(observation: np.ndarray) -> int:
        nonlocal hidden
        with torch.no_grad():
            values, hidden = network(torch.as_tensor(np.float32(observation))[None], hidden)
        return int(values.argmax())

    return act


def _empty(hidden: torch.Tensor) -> tuple:
    return (hidden[0], [], [], [], [], [])


def _filled(piece: tuple, last: np.ndarray) -> tuple:
    hidden, states, *rest = piece
    missing = LENGTH - len(states)
    seen = np.stack([*states, last, *[np.zeros_like(last)] * missing]).astype(np.float32)
    columns = [np.asarray([*column, *[0] * missing], np.float32) for column in rest]
    return (hidden, torch.from_numpy(seen), *map(torch.from_numpy, columns))


def _loss(network: Memory, target: Memory, pieces: list[tuple], s: Settings) -> torch.Tensor:
    chosen = [pieces[index] for index in np.random.randint(0, len(pieces), 32)]
    hidden, seen, actions, rewards, going, real = (
        torch.stack(c) for c in zip(*chosen, strict=True)
    )
    online, theirs, ours, aims = hidden, hidden, [], []
    for step in range(LENGTH + 1):
        if step == BURN:
            online = online.detach()
        values, online = network(seen[:, step], online)
        with torch.no_grad():
            goal, theirs = target(seen[:, step], theirs)
        ours.append(values)
        aims.append(goal)
    ours_all, aims_all = torch.stack(ours, 1), torch.stack(aims, 1)
    taken = ours_all[:, :-1].gather(-1, actions.long()[..., None])[..., 0]
    best = ours_all[:, 1:].argmax(-1, keepdim=True).detach()
    wanted = rewards + s.discount * going * aims_all[:, 1:].gather(-1, best)[..., 0]
    weight = real.clone()
    weight[:, :BURN] *= (hidden.abs().sum(-1, keepdim=True) == 0).float()  # stale states elsewhere
    return (
        F.smooth_l1_loss(taken, wanted.detach(), reduction="none") * weight
    ).sum() / weight.sum()
