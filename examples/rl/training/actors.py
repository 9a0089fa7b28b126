"""A2C and PPO, with discrete and Gaussian policies (Mnih et al. 2016; Schulman et al. 2017)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import gymnasium
import numpy as np
import torch
from torch import nn

from .settings import Settings
from .snapshot import Drawing, body

TRACE = 0.95


class Actor(nn.Module):
    """A policy and a value over separate layers."""

    def __init__(self, env: gymnasium.Env, settings: Settings):
        super().__init__()
        shape = env.observation_space.shape
        self.discrete = isinstance(env.action_space, gymnasium.spaces.Discrete)
        self.size = int(env.action_space.n) if self.discrete else env.action_space.shape[0]
        self.reach = 1.0 if self.discrete else float(env.action_space.high[0])
        self.policy_body, self.value_body = body(shape, settings.width), body(shape, settings.width)
        self.policy = nn.Linear(settings.width // 2, self.size)
        self.value = nn.Linear(settings.width // 2, 1)
        nn.init.orthogonal_(self.policy.weight, 0.01)
        nn.init.zeros_(self.policy.bias)
        self.log_std = nn.Parameter(torch.full((self.size,), -0.5))

    def forward(self, observations: torch.Tensor):
        """Return the distribution of actions and the values."""
        out = self.policy(self.policy_body(observations))
        value = self.value(self.value_body(observations))[..., 0]
        if self.discrete:
            return torch.distributions.Categorical(logits=out), value
        normal = torch.distributions.Normal(out, self.log_std.exp())
        return torch.distributions.Independent(normal, 1), value

    def act(self, observation: np.ndarray):
        """Return the likeliest action."""
        with torch.no_grad():
            out = self.policy(
                self.policy_body(torch.as_tensor(np.asarray(observation, np.float32))[None])
            )[0]
        if self.discrete:
            return int(out.argmax())
        return (out.numpy() * self.reach).clip(-self.reach, self.reach)

    def save(self, path: Path, shape: tuple[int, ...], facts: dict[str, str]) -> None:
        """Write the network as ONNX."""
        drawing = Drawing()
        out = drawing.through("observation", self.policy_body)
        outputs: dict[str, list[object]] = {"state_value": ["batch", 1]}
        if self.discrete:
            drawing.linear(out, self.policy, "action_logits")
            drawing.node("Softmax", "action_logits", name="action_probs", axis=1)
            outputs |= {"action_logits": ["batch", self.size], "action_probs": ["batch", self.size]}
        else:
            reach = drawing.constant(np.float32([self.reach]))
            drawing.node("Mul", drawing.linear(out, self.policy), reach, name="action_means")
            variance = (2 * self.log_std).exp().detach().numpy() * self.reach**2
            zero = drawing.node("Mul", "action_means", drawing.constant(np.float32([0])))
            drawing.node("Add", zero, drawing.constant(variance), name="action_vars")
            outputs |= {"action_means": ["batch", self.size], "action_vars": ["batch", self.size]}
        drawing.linear(drawing.through("observation", self.value_body), self.value, "state_value")
        drawing.save(path, {"observation": ["batch", *shape]}, outputs, facts)


def train(settings: Settings, report: Callable[[int, Callable], None]) -> Actor:
    """Train and return the network."""
    lanes = settings.lanes
    envs = gymnasium.vector.SyncVectorEnv(
        [lambda: gymnasium.make(settings.environment) for _ in range(lanes)],
        autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP,
    )
    actor = Actor(gymnasium.make(settings.environment), settings)
    optimizer = torch.optim.Adam(actor.parameters(), settings.rate, eps=1e-5)
    states, _ = envs.reset(seed=settings.seed)
    done_steps, reported = 0, 0
    while done_steps < settings.steps:
        for group in optimizer.param_groups:
            group["lr"] = settings.rate * (1 - done_steps / settings.steps)
        batch, states = _collect(envs, actor, states, settings)
        done_steps += settings.horizon * lanes
        _learn(actor, optimizer, batch, settings)
        if done_steps * settings.reports // settings.steps > reported:
            reported = done_steps * settings.reports // settings.steps
            report(done_steps, actor.act)
    return actor


def _collect(envs, actor: Actor, states: np.ndarray, s: Settings):
    keep: list[list] = [[] for _ in range(6)]
    for _ in range(s.horizon):
        seen = torch.as_tensor(states, dtype=torch.float32)
        with torch.no_grad():
            policy, value = actor(seen)
            action = policy.sample()
            chance = policy.log_prob(action)
        taken = (
            action.numpy()
            if actor.discrete
            else (action.numpy() * actor.reach).clip(-actor.reach, actor.reach)
        )
        states, rewards, ended, cut, info = envs.step(taken)
        rewards = rewards * s.scale
        if cut.any() and "final_obs" in info:
            for lane in np.flatnonzero(cut & ~ended):
                last = torch.as_tensor(np.asarray(info["final_obs"][lane], np.float32))[None]
                with torch.no_grad():
                    rewards[lane] += s.discount * float(actor(last)[1][0])
        going = 1.0 - (ended | cut)
        for column, item in zip(keep, (seen, action, chance, value, rewards, going), strict=True):
            column.append(
                torch.as_tensor(np.asarray(item), dtype=torch.float32)
                if isinstance(item, np.ndarray)
                else item
            )
    with torch.no_grad():
        following = actor(torch.as_tensor(states, dtype=torch.float32))[1]
    seen, actions, chances, values, rewards, going = (torch.stack(column) for column in keep)
    advantages = torch.zeros_like(values)
    trace = torch.zeros(len(following))
    for step in reversed(range(s.horizon)):
        error = rewards[step] + s.discount * going[step] * following - values[step]
        trace = error + s.discount * TRACE * going[step] * trace
        advantages[step] = trace
        following = values[step]
    flat = [
        item.flatten(0, 1) for item in (seen, actions, chances, advantages, advantages + values)
    ]
    return flat, states


def _learn(actor: Actor, optimizer: torch.optim.Optimizer, batch, s: Settings) -> None:
    seen, actions, before, advantages, returns = batch
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    rounds, size = (8, max(64, len(seen) // 8)) if s.algorithm == "ppo" else (1, len(seen))
    for _ in range(rounds):
        for rows in torch.randperm(len(seen)).split(size):
            policy, values = actor(seen[rows])
            chance = policy.log_prob(actions[rows])
            if s.algorithm == "ppo":
                ratio = (chance - before[rows]).exp()
                gain = torch.minimum(
                    ratio * advantages[rows], ratio.clamp(0.8, 1.2) * advantages[rows]
                )
            else:
                gain = chance * advantages[rows]
            loss = -gain.mean() + 0.5 * (returns[rows] - values).square().mean()
            loss = loss - s.entropy * policy.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(actor.parameters(), 0.5)
            optimizer.step()
