"""What is trained: one entry an agent that ships."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Settings:
    """One training.

    Attributes:
        steps: of the environment.
        epsilon: share of random actions in the end.
        exploring: share of the steps over which it falls to that.
        every: steps between updates.
        refresh: steps between copies to the target network.
        low: the least return that a categorical network can express, after ``scale``.
        scale: of rewards while learning.
        reports: how often the agent is evaluated.
        slowing: whether the learning rate of a value falls over the training.
        potential: of a state; its increase is added to the reward while learning, which leaves the
            best policy as it is (Ng et al. 1999).
    """

    algorithm: str
    environment: str
    steps: int
    width: int = 128
    rate: float = 1e-3
    batch: int = 64
    discount: float = 0.99
    memory: int = 50_000
    start: int = 1_000
    every: int = 2
    refresh: int = 500
    epsilon: float = 0.05
    exploring: float = 0.3
    low: float = 0.0
    high: float = 100.0
    scale: float = 1.0
    lanes: int = 8
    horizon: int = 128
    entropy: float = 0.01
    reports: int = 10
    seed: int = 0
    slowing: bool = False
    potential: Callable[[Any], float] | None = None


def energy(state: Any) -> float:
    """Return the energy of MountainCar's car: what it has to gain before it reaches the top."""
    place, speed = float(state[0]), float(state[1])
    return 5000 * (0.5 * speed**2 + 0.0025 / 3 * math.sin(3 * place))


def slow(optimizer: Any, settings: Settings, step: int) -> None:
    """Let the learning rate fall to a twentieth over the training where it is wanted to."""
    if settings.slowing:
        for group in optimizer.param_groups:
            group["lr"] = settings.rate * max(0.05, 1 - step / settings.steps)


AGENTS = {
    "dqn-cartpole": Settings("dqn", "CartPole-v1", 30_000),
    "qrdqn-cartpole": Settings("qrdqn", "CartPole-v1", 20_000, slowing=True),
    "c51-cartpole": Settings("c51", "CartPole-v1", 30_000, low=0.0, high=100.0),
    "dqn-bricks": Settings("dqn", "hagane/Bricks-v0", 120_000, rate=5e-4, every=4),
    "ppo-cartpole": Settings("ppo", "CartPole-v1", 60_000, rate=1e-3, horizon=128, width=64),
    "a2c-cartpole": Settings("a2c", "CartPole-v1", 80_000, rate=2e-3, horizon=16, width=64),
    "ppo-acrobot": Settings("ppo", "Acrobot-v1", 80_000, rate=1e-3, width=64),
    "dqn-mountaincar": Settings(
        "dqn", "MountainCar-v0", 40_000, every=4, scale=0.1, slowing=True, potential=energy
    ),
    "ppo-pendulum": Settings(
        "ppo", "Pendulum-v1", 200_000, rate=1e-3, discount=0.9, horizon=256, scale=0.1, entropy=0.0
    ),
    "r2d2-cartpole": Settings(
        "r2d2", "hagane/CartPoleHidden-v0", 24_000, width=64, every=4, scale=0.1, slowing=True
    ),
    "sac-pendulum": Settings("sac", "Pendulum-v1", 8_000, rate=1e-3, every=1, batch=128, width=64),
}
