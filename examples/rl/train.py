"""Train the agents that ship with hagane, and write their snapshots and learning curves.

    python examples/rl/train.py [NAME ...] [--seeds 3] [--first 0] [--out examples/rl/agents]

Each takes minutes on two cores. ``curves.json`` gets the mean return of ten episodes at ten points
of each seed's training; the snapshot is that of the seed that ends best, and one of a fifth of the
training of seed 0 lies beside it, to be compared with. All is written after each seed;
``--first 2`` goes on after the first two.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
import time
from pathlib import Path

import gymnasium
import numpy as np
import torch
from training.settings import AGENTS, Settings

from hagane.tools.rl import games
from training import actors, recurrent, soft, values

FAMILIES = {
    "dqn": values,
    "c51": values,
    "qrdqn": values,
    "a2c": actors,
    "ppo": actors,
    "r2d2": recurrent,
    "sac": soft,
}


def score(make_act, settings: Settings, episodes: int = 10) -> float:
    """Return the mean return of some episodes that all evaluations share."""
    env = gymnasium.make(settings.environment)
    total = 0.0
    for episode in range(episodes):
        act = make_act() if settings.algorithm == "r2d2" else make_act
        state, _ = env.reset(seed=10_000 + episode)
        over = False
        while not over:
            state, reward, ended, cut, _ = env.step(act(state))
            total += float(reward)
            over = ended or cut
    return total / episodes


def train_one(name: str, settings: Settings) -> tuple[object, list[list[float]]]:
    """Train with one seed; return the agent and its curve."""
    torch.manual_seed(settings.seed)
    np.random.seed(settings.seed)
    curve: list[list[float]] = []
    started = time.monotonic()

    def report(step: int, act) -> None:
        curve.append([step, score(act, settings)])
        spent = time.monotonic() - started
        print(
            f"{name} seed {settings.seed}: step {step}: {curve[-1][1]:.1f} ({spent:.0f} s)",
            flush=True,
        )

    return FAMILIES[settings.algorithm].train(settings, report), curve


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(AGENTS)}; all if none")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="seeds that were trained before")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "agents")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    games.register()
    for name in arguments.names or AGENTS:
        path = arguments.out / "curves.json"
        known = json.loads(path.read_text()).get(name, {}) if path.exists() else {}
        returns = known.get("returns", [])[: arguments.first]
        if len(returns) < arguments.first:
            parser.error(f"--first {arguments.first}: {path} has {len(returns)} seeds of {name}")
        for seed in range(arguments.first, arguments.seeds):
            settings = dataclasses.replace(AGENTS[name], seed=seed)
            agent, curve = train_one(name, settings)
            if all(curve[-1][1] > earlier[-1] for earlier in returns):
                save(arguments.out / f"{name}.onnx", agent, settings)
            returns.append([round(value, 2) for _, value in curve])
            note(path, name, settings, [step for step, _ in curve], returns)
            if seed == 0:
                early = dataclasses.replace(settings, steps=settings.steps // 5, reports=2)
                save(arguments.out / f"{name}-early.onnx", train_one(name, early)[0], early)


def note(path: Path, name: str, settings: Settings, steps: list[int], returns: list) -> None:
    """Write one agent's curves beside those of the others."""
    curves = json.loads(path.read_text()) if path.exists() else {}
    curves[name] = {"environment": settings.environment, "steps": steps, "returns": returns}
    text = json.dumps(curves, indent=1)
    rows = re.sub(r"\[\s+([-\d.,\s]+?)\s+\]", lambda row: f"[{' '.join(row[1].split())}]", text)
    path.write_text(rows + "\n")


def save(path: Path, agent, settings: Settings) -> None:
    """Write a snapshot."""
    shape = gymnasium.make(settings.environment).observation_space.shape
    agent.save(path, shape, {"algorithm": settings.algorithm, "environment": settings.environment})


if __name__ == "__main__":
    main()
