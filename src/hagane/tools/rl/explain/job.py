"""The job that explains steps of a rollout, with its checks, and keeps the result in its folder.

``explanations/<name>/meta.json`` describes the explanation; ``maps.f32`` holds float32 maps, step
by step and target by target.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hagane.tools.rl.agents.protocol import State, Watched
from hagane.tools.rl.environments import World
from hagane.tools.rl.errors import NotExplainable
from hagane.tools.rl.explain import sanity
from hagane.tools.rl.explain.gradients import integrated_gradients, smooth_gradient
from hagane.tools.rl.explain.objects import Box, atari_boxes, object_saliency
from hagane.tools.rl.explain.perturbing import blends_of, greydanus, grid_for, occlusion
from hagane.tools.rl.explain.subject import (
    Floats,
    Subject,
    Target,
    chosen_part,
    replayed,
    targets_of,
)
from hagane.tools.rl.logs.folder import made_within
from hagane.tools.rl.logs.observations import count_observations, read_observation
from hagane.tools.rl.logs.records import log_of

METHODS = ("greydanus", "integrated_gradients", "smoothgrad", "occlusion", "objects")
REACHES = ("one", "all")
_BACK = 16
_CHECKED = 3
_SAMPLED = 128
_MANY = 32  # steps that are worth a graph of their own: it takes 0.1 to 0.7 s to make

Maps = dict[str, Floats]


@dataclass(frozen=True, slots=True)
class Request:
    """The request of an explanation.

    Attributes:
        first: step.
        last: step, included.
        method: of ``METHODS``.
        output: as ``targets_of`` takes it.
        reach: whether a recurrent agent's past is perturbed too (``all``).
        checks: whether the sanity checks are made.
    """

    first: int
    last: int
    method: str = "greydanus"
    output: str = "all"
    reach: str = "one"
    checks: bool = True


def explain_steps(
    agent: Watched,
    world: World,
    folder: Path,
    name: str,
    request: Request,
    progress: Callable[[int, int], None],
) -> dict[str, Any]:
    """Explain steps and keep the maps; return the meta data without the checks' curves.

    Raises:
        NotExplainable: the method does not fit the agent or the observations.
        InvalidLog: observations are missing.
    """
    kept = _Kept(folder)
    last = min(request.last, kept.count - 1)
    if request.first > last:
        raise NotExplainable(
            f"steps {request.first} to {request.last}: the rollout has {kept.count} observations"
        )
    place = made_within(made_within(folder, "explanations"), name)
    subject = kept.subject(agent, request.first, request.reach)
    outputs = subject.outputs(subject.base[None])
    targets = targets_of(outputs, request.output)
    steps = range(request.first, last + 1)
    meta: dict[str, Any] = {
        "name": name,
        "method": request.method,
        "reach": request.reach,
        "output": request.output,
        "targets": {key: [target.key, target.index] for key, target in targets.items()},
        "from_step": request.first,
        "to_step": last,
        "steps": 0,
        "largest": dict.fromkeys(targets, 0.0),
        "objects": {},
        "checks": [],
        "curves": {},
        "warnings": [],
        "exact_gradient": agent.can("gradient"),
    }
    checked = set(np.unique(np.linspace(request.first, last, _CHECKED).astype(int)).tolist())
    total = len(steps) + (len(checked) if request.checks else 0)
    done = 0
    findings: dict[tuple[str, str], list[sanity.Verdict]] = {}
    if request.method == "greydanus" and len(steps) >= _MANY:
        kept.blends = blends_of(subject, grid_for(*subject.plane))
    with open(place / "maps.f32", "wb") as file:
        for step in steps:
            subject = kept.subject(agent, step, request.reach)
            maps = _explained(subject, targets, request, kept, world, step, meta)
            for key, found in maps.items():
                meta["shape"] = list(found.shape)
                meta["largest"][key] = max(meta["largest"][key], float(np.abs(found).max()))
                file.write(np.ascontiguousarray(found, np.float32).tobytes())
            file.flush()
            meta["steps"] += 1
            done += 1
            progress(done, total)
            if request.checks and step in checked:
                _check(subject, targets, request, kept, world, step, maps, findings, meta)
                done += 1
                progress(done, total)
            _write(place / "meta.json", meta)
    meta["checks"] = [
        {**_joined(verdicts).to_json(), "output": output}
        for (output, _), verdicts in findings.items()
    ]
    meta["warnings"] = [
        f"{request.method} of {check['output']} fails a check, {check['name']}: {check['words']}"
        for check in meta["checks"]
        if check["holds"] is False
    ]
    _write(place / "meta.json", meta)
    return {key: value for key, value in meta.items() if key not in ("curves", "objects")}


def _explained(
    subject: Subject,
    targets: Mapping[str, Target],
    request: Request,
    kept: _Kept,
    world: World,
    step: int,
    meta: dict[str, Any],
) -> Maps:
    if request.method == "greydanus":
        blends = kept.blends if subject.agent is kept.agent else None
        return greydanus(subject, targets, grid_for(*subject.plane), blends)
    if request.method == "occlusion":
        return occlusion(subject, targets)
    if request.method == "integrated_gradients":
        return integrated_gradients(subject, targets)
    if request.method == "smoothgrad":
        return smooth_gradient(subject, targets)
    maps, numbers = object_saliency(subject, targets, kept.boxes(step, world), kept.median())
    meta["objects"][str(step)] = numbers
    return maps


def _check(
    subject: Subject,
    targets: Mapping[str, Target],
    request: Request,
    kept: _Kept,
    world: World,
    step: int,
    maps: Maps,
    findings: dict[tuple[str, str], list[sanity.Verdict]],
    meta: dict[str, Any],
) -> None:
    spare: dict[str, Any] = {"objects": {}}

    def again(target: Target, changed: Subject) -> Floats:
        return _explained(changed, {"it": target}, request, kept, world, step, spare)["it"]

    outputs = subject.outputs(subject.base[None])
    for key, target in targets.items():
        part = chosen_part(target, outputs) if "grad" in request.method else target
        verdicts = sanity.randomised(subject, partial(again, part), maps[key])
        verdicts.append(sanity.intervention(subject, part, maps[key], kept.others(step)))
        curves = sanity.faithfulness(subject, part, maps[key], seed=step)
        verdicts.append(sanity.faithful(curves))
        meta["curves"].setdefault(key, curves.to_json())
        for verdict in verdicts:
            findings.setdefault((key, verdict.name), []).append(verdict)


def _joined(verdicts: list[sanity.Verdict]) -> sanity.Verdict:
    values = [verdict.value for verdict in verdicts if verdict.value is not None]
    if not values:
        return verdicts[0]
    middle = sorted(verdicts, key=lambda verdict: verdict.value or 0.0)[len(verdicts) // 2]
    if middle.holds is None:
        return middle
    return middle


def _write(path: Path, meta: dict[str, Any]) -> None:
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(meta, allow_nan=False), encoding="utf-8")
    os.replace(draft, path)


class _Kept:
    """The observations of a rollout, and values over all of them.

    Attributes:
        agent: the one explained, apart from those with random weights.
        blends: answers for it, if not None, for an observation and all its blends.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.count = count_observations(folder)
        if not self.count:
            read_observation(folder, 0)
        self.log = log_of(folder)
        generator = np.random.default_rng(0)
        size = min(self.count, _SAMPLED)
        self._sampled = sorted(generator.choice(self.count, size, replace=False).tolist())
        self._seen: Floats | None = None
        self._states: tuple[int, State] | None = None
        self.agent: Watched | None = None
        self.blends: Watched | None = None

    def subject(self, agent: Watched, step: int, reach: str) -> Subject:
        """Return the agent at a step, with the recurrent state that it had there."""
        self.agent = agent
        observation = self.read(step)
        mean = np.asarray(self.sample().mean(axis=0), np.float32)
        if not agent.recurrent:
            return Subject(agent, observation, None, mean)
        if not agent.can("forward"):
            raise NotExplainable(
                f"{agent.name} is recurrent and has no forward(batch, state); its state cannot be "
                "carried to a step"
            )
        start = self.start_of(step)
        if reach == "all":
            history = [self.read(past) for past in range(max(start, step - _BACK), step)]
            return Subject(agent, observation, None, mean, history)
        known = self._states
        if known is not None and start <= known[0] == step - 1:
            before = self.read(step - 1)
            batch = Subject(agent, before).scaled(np.asarray(before, np.float32)[None])
            _, state = agent.forward(batch, known[1])
        else:
            state = replayed(agent, [self.read(past) for past in range(start, step)])
        self._states = (step, state)
        return Subject(agent, observation, state, mean)

    def start_of(self, step: int) -> int:
        """Return the first step of a step's episode."""
        episode = self.log.columns.get("episode")
        if episode is None or step >= len(episode):
            return 0
        return int(np.flatnonzero(episode == episode[step])[0])

    def read(self, step: int) -> Any:
        """Return an observation; raises NotExplainable for one that is no array."""
        found = read_observation(self.folder, step)
        if isinstance(found, dict | tuple):
            raise NotExplainable(
                f"step {step}: expected an array as observation, got a {type(found).__name__}"
            )
        return found

    def sample(self) -> Floats:
        """Return some observations of the rollout, ``(n, ...)``."""
        if self._seen is None:
            self._seen = np.stack([np.asarray(self.read(s), np.float32) for s in self._sampled])
        return self._seen

    def others(self, step: int, count: int = 8) -> list[Floats]:
        """Return observations of other steps."""
        places = [index for index, other in enumerate(self._sampled) if other != step]
        picked = np.random.default_rng(step).permutation(places)[:count]
        return [self.sample()[index] for index in picked]

    def median(self) -> Floats:
        """Return the median observation: the picture without moving things."""
        return np.asarray(np.median(self.sample(), axis=0), np.float32)

    def boxes(self, step: int, world: World) -> dict[str, Box]:
        """Return the objects at a step, from the log."""
        row = self.log.rows(step, 1)[0]
        if "objects" in row:
            return {key: Box(*box) for key, box in row["objects"].items()}
        return atari_boxes(world.name, bytes.fromhex(row["ram"])) if "ram" in row else {}
