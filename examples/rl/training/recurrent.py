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
    """One layer, one gated recurrent unit, one value an action."""

    def __init__(self, inputs: int, actions: int, width: int):
        super().__init__()
        self.width = width
        self.entry = nn.Sequential(nn.Linear(inputs, width), nn.ReLU())
        self.cell = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, actions)

    def forward(self, observations: torch.Tensor, state: torch.Tensor):
        """Return values ``(batch, steps, actions)`` and the last state ``(batch, width)``."""
        states, last = self.cell(self.entry(observations), state[None])
        return self.head(states), last[0]

    def save(self, path: Path, shape: tuple[int, ...], facts: dict[str, str]) -> None:
        """Write the network as ONNX."""
        d, width = Drawing(), self.width
        x = d.through("observation", self.entry)
        given, held = nn.Linear(width, 3 * width), nn.Linear(width, 3 * width)
        for layer, side in ((given, "ih"), (held, "hh")):
            layer.weight.data = getattr(self.cell, f"weight_{side}_l0").data
            layer.bias.data = getattr(self.cell, f"bias_{side}_l0").data
        thirds = d.constant(np.asarray([width] * 3, np.int64))
        for side, value in (("given", d.linear(x, given)), ("held", d.linear("state", held))):
            parts = [f"{side}_{part}" for part in ("reset", "keep", "new")]
            d.nodes.append(helper.make_node("Split", [value, thirds], parts, axis=1))
        reset = d.node("Sigmoid", d.node("Add", "given_reset", "held_reset"))
        keep = d.node("Sigmoid", d.node("Add", "given_keep", "held_keep"))
        fresh = d.node("Add", "given_new", d.node("Mul", reset, "held_new"))
        fresh = d.node("Tanh", fresh)
        change = d.node("Mul", keep, d.node("Sub", "state", fresh))
        d.node("Add", fresh, change, name="next_state")
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
    env.action_space.seed(settings.seed)
    state, _ = env.reset(seed=settings.seed)
    hidden = torch.zeros(1, settings.width)
    piece = _empty(hidden)
    for step in range(settings.steps):
        with torch.no_grad():
            values, after = network(torch.as_tensor(np.float32(state))[None, None], hidden)
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
            values, hidden = network(torch.as_tensor(np.float32(observation))[None, None], hidden)
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
    ours_all, _ = network(seen, hidden)
    with torch.no_grad():
        aims_all, _ = target(seen, hidden)
    taken = ours_all[:, :-1].gather(-1, actions.long()[..., None])[..., 0]
    best = ours_all[:, 1:].argmax(-1, keepdim=True).detach()
    wanted = rewards + s.discount * going * aims_all[:, 1:].gather(-1, best)[..., 0]
    weight = real.clone()
    weight[:, :BURN] *= (hidden.abs().sum(-1, keepdim=True) == 0).float()  # stale states elsewhere
    return (
        F.smooth_l1_loss(taken, wanted.detach(), reduction="none") * weight
    ).sum() / weight.sum()
