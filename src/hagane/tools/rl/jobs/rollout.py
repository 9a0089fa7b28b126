"""The job that lets an agent act: one line of the log and one picture a step."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from hagane.tools.rl.agents.outputs import plain
from hagane.tools.rl.agents.protocol import Watched
from hagane.tools.rl.environments import Picture, World
from hagane.tools.rl.errors import InvalidLog
from hagane.tools.rl.logs.folder import LOG_NAME
from hagane.tools.rl.logs.observations import ObservationWriter
from hagane.tools.rl.logs.records import log_of

Progress = Callable[[int, int], None]


def roll_out(
    agent: Watched, world: World, folder: Path, steps: int, seed: int | None, progress: Progress
) -> dict[str, Any]:
    """Let an agent act for a number of steps; episodes that end are begun anew and counted on.

    Args:
        agent: acts.
        world: is acted upon.
        folder: of the rollout; gets ``rollout_log.jsonl``, ``images/`` and the observations.
        steps: how many.
        seed: of the environment's first episode, NumPy, ``random`` and PyTorch; None draws one.
        progress: called with steps done and steps wanted.

    Returns:
        ``{"steps": n, "episodes": n, "warnings": [...]}``.
    """
    seed = random.SystemRandom().randrange(2**31) if seed is None else seed
    seed_all(seed)
    warnings: list[str] = []
    agent.end_episode()
    observation = world.reset(seed)
    episode, total = 0, 0.0
    kept = True
    with (
        ObservationWriter(folder) as observations,
        open(folder / LOG_NAME, "a", encoding="utf-8") as log,
    ):
        for step in range(steps):
            picture = world.render()
            path = _saved(picture, folder, step)
            kept = kept and _kept(observations, observation, warnings)
            shown = agent.explain(observation)
            action = agent.act(observation)
            memory, boxes = world.ram(), world.objects()
            following, reward, terminated, truncated, _ = world.step(action)
            total += reward
            line: dict[str, Any] = {
                "step": step,
                "reward": plain(reward),
                "action": plain(action),
                "image_path": path,
                **shown,
                "episode": episode,
                "episode_return": plain(total),
            }
            if terminated or truncated:
                line["done"] = "terminated" if terminated else "truncated"
            if step == 0:
                line["seed"] = seed
                line["agent"] = agent.name
                line["environment"] = world.name
            if memory is not None:
                line["ram"] = memory.tobytes().hex()
            if boxes:
                line["objects"] = boxes
            log.write(json.dumps(line, allow_nan=False) + "\n")
            log.flush()
            progress(step + 1, steps)
            observation = following
            if terminated or truncated:
                episode, total = episode + 1, 0.0
                agent.end_episode()
                observation = world.reset()
    agent.end_episode()
    log_of(folder).keep()
    if world.blind:
        warnings.append(f"no pictures of environment {world.name}: {world.blind}")
    return {"steps": steps, "episodes": episode + 1, "warnings": warnings}


def seed_all(seed: int) -> None:
    """Seed ``random``, NumPy and, where it is loaded, PyTorch."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)


def _saved(picture: Picture | None, folder: Path, step: int) -> str | None:
    if picture is None:
        return None
    from PIL import Image

    path = folder / "images" / f"{step:06d}.png"
    Image.fromarray(picture).save(path, compress_level=1)
    return str(path)


def _kept(observations: ObservationWriter, observation: Any, warnings: list[str]) -> bool:
    try:
        observations.append(observation)
    except InvalidLog as error:
        warnings.append(f"{error}; steps of this rollout cannot be explained")
        return False
    return True
