"""The subject of an explanation: an agent at one observation, and one of its outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hagane.tools.rl.agents.protocol import Array, Outputs, State, Watched
from hagane.tools.rl.errors import NotExplainable

Floats = npt.NDArray[np.float32]

# Which key answers for the actor, the critic and the Q function, the best one first.
OUTPUTS = {
    "actor": ("action_logits", "action_probs", "action_means", "action_deterministic"),
    "critic": ("state_value",),
    "qfunc": ("action_values", "action_value"),
}
CHUNK = 128


@dataclass(frozen=True, slots=True)
class Target:
    """An output to be explained.

    Attributes:
        key: of the outputs.
        index: of the part, such as the action; None for all parts together.
    """

    key: str
    index: int | None = None

    def parts(self, outputs: Outputs) -> npt.NDArray[np.float64]:
        """Return the output's parts, ``(batch, parts)``."""
        value = np.asarray(outputs[self.key], np.float64)
        value = value.reshape(len(value), -1)
        return value if self.index is None else value[:, self.index : self.index + 1]


@dataclass(frozen=True, slots=True)
class Subject:
    """An agent at one observation.

    Attributes:
        agent: is asked in batches.
        observation: as the agent saw it.
        state: the recurrent state before it, each part with a batch of 1; None without one.
        mean: of the rollout's observations, in place of "nothing to see".
        history: observations before this one in its episode, if all of them are perturbed.
    """

    agent: Watched
    observation: Array
    state: State = None
    mean: Floats | None = None
    history: Sequence[Array] = field(default_factory=tuple)

    @property
    def base(self) -> Floats:
        """The observation in floats of its own scale."""
        return np.asarray(self.observation, np.float32)

    @property
    def channels(self) -> int | None:
        """The axis of channels or frames of a picture, None without one."""
        shape = self.base.shape
        if len(shape) == 3:
            return 0 if shape[0] < min(shape[1:]) else 2
        return None

    @property
    def picture(self) -> bool:
        """Whether the observation is a picture rather than a list of numbers."""
        shape = self.base.shape
        return len(shape) in (2, 3) and sorted(shape)[-2] >= 5

    @property
    def plane(self) -> tuple[int, int]:
        """Height and width of a picture; raises NotExplainable for anything else."""
        shape = self.base.shape
        if not self.picture:
            raise NotExplainable(
                f"expected pictures as observations, got shape {list(shape)}; occlusion, "
                "integrated gradients and SmoothGrad explain lists of numbers"
            )
        if len(shape) == 2:
            return shape[0], shape[1]
        return (shape[1], shape[2]) if self.channels == 0 else (shape[0], shape[1])

    def spread(self, masks: Floats) -> Floats:
        """Return masks ``(n, height, width)`` with the axis of channels, to multiply by."""
        if self.channels is None:
            return masks
        return masks[:, None] if self.channels == 0 else masks[..., None]

    def flat(self, attribution: Floats) -> Floats:
        """Return an attribution of an observation's shape without channels: their sum."""
        return attribution if self.channels is None else attribution.sum(axis=self.channels)

    def outputs(self, batch: Floats) -> Outputs:
        """Return the agent's outputs for variants of the observation.

        With a history, the same change is made to every observation of it, and the recurrent state
        is computed anew: ``batch - observation`` is added everywhere.
        """
        if not len(batch):
            raise NotExplainable("there is no variant of the observation to ask about")
        found = [self._chunk(batch[at : at + CHUNK]) for at in range(0, len(batch), CHUNK)]
        keys = [key for key in found[0] if all(key in part for part in found)]
        return {key: np.concatenate([part[key] for part in found]) for key in keys}

    def scaled(self, batch: Floats) -> Floats:
        """Return a batch as the agent takes it: some take bytes for fractions of 255."""
        scale = getattr(self.agent.agent, "byte_scale", None)
        if scale and np.asarray(self.observation).dtype == np.uint8:
            return batch / np.float32(scale)
        return batch

    def states(self, count: int) -> State:
        """Return the recurrent state for a batch."""
        if self.state is None:
            return None
        return tuple(np.repeat(part, count, axis=0) for part in self.state)

    def _chunk(self, batch: Floats) -> Outputs:
        state = self.states(len(batch))
        if self.history:
            change = batch - self.base
            state = None
            for seen in self.history:
                moved = np.asarray(seen, np.float32)[None] + change
                _, state = self.agent.forward(self.scaled(moved), state)
        outputs, _ = self.agent.forward(self.scaled(batch), state)
        return outputs


def targets_of(outputs: Outputs, wanted: str) -> dict[str, Target]:
    """Return the targets that a request names, by short names.

    Args:
        outputs: of the agent at some observation.
        wanted: ``all``, ``actor``, ``critic``, ``qfunc``, or a key with an index such as
            ``action_values.2``.

    Raises:
        NotExplainable: the agent gives no such output.
    """
    if wanted in OUTPUTS or wanted == "all":
        found = {}
        for name, keys in OUTPUTS.items():
            key = next((key for key in keys if key in outputs), None)
            if key is not None and wanted in (name, "all"):
                found[name] = Target(key)
        if found:
            return found
    key, _, index = wanted.partition(".")
    if key in outputs:
        width = outputs[key].reshape(len(outputs[key]), -1).shape[1]
        if not index:
            return {wanted: Target(key)}
        if index.isdecimal() and int(index) < width:
            return {wanted: Target(key, int(index))}
        raise NotExplainable(f"output {wanted!r}: {key} has {width} parts, counted from 0")
    raise NotExplainable(
        f"output {wanted!r}: the agent does not give it; it gives {', '.join(outputs) or 'nothing'}"
    )


def chosen_part(target: Target, outputs: Outputs) -> Target:
    """Return the target's greatest part where it has several: gradients need one number."""
    if target.index is not None:
        return target
    return Target(target.key, int(target.parts(outputs)[0].argmax()))


def replayed(agent: Watched, observations: Sequence[Any]) -> State:
    """Return the recurrent state after some observations from an episode's start."""
    state: State = None
    for seen in observations:
        batch = Subject(agent, np.asarray(seen)).scaled(np.asarray(seen, np.float32)[None])
        _, state = agent.forward(batch, state)
    return state
