"""A module of PyTorch as an agent: batches, exact gradients, random weights."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from hagane.tools.rl.agents.choosing import chosen
from hagane.tools.rl.agents.protocol import Array, Outputs, State
from hagane.tools.rl.errors import NotExplainable

Shown = dict[str, Any]


class TorchAgent:
    """An agent whose outputs a function computes with a module.

    Args:
        module: is put into evaluation mode.
        outputs: ``(module, batch, state) -> (tensors by keys of the log, state)``.
        sample: whether actions are drawn from a policy.
        recurrent: the state of one sequence at an episode's start, None if there is none.
        scale: the divisor of observations of bytes.
    """

    def __init__(
        self,
        module: Any,
        outputs: Callable[[Any, Any, Any], tuple[Shown, Any]],
        sample: bool = False,
        recurrent: tuple[Any, ...] | None = None,
        scale: float = 1.0,
    ):
        self.module = module.eval()
        self.kind = type(module).__name__
        self.name = self.kind
        self._outputs, self.sample = outputs, sample
        self._start = recurrent
        self.recurrent = recurrent is not None
        self.scale = scale
        self.state: State = None
        self.reset()

    def reset(self) -> None:
        """Forget the recurrent state."""
        start = self._start
        self.state = None if start is None else tuple(np.asarray(part) for part in start)

    def act(self, observation: Any) -> Any:
        """Return the action, and carry the state on."""
        outputs, self.state = self.forward(np.asarray(observation)[None], self.state)
        return chosen({key: value[0] for key, value in outputs.items()}, self.name, self.sample)

    def explain(self, observation: Any) -> Shown:
        """Return the outputs for one observation."""
        outputs, _ = self.forward(np.asarray(observation)[None], self.state)
        return {key: value[0] for key, value in outputs.items()}

    def forward(self, batch: Array, state: State = None) -> tuple[Outputs, State]:
        """Return the outputs for a batch and the states after it."""
        with torch.no_grad():
            outputs, after = self._outputs(
                self.module, self._tensor(batch), self._states(batch, state)
            )
        arrays = {key: value.detach().cpu().numpy() for key, value in outputs.items()}
        for key, value in arrays.items():
            if key == "z_values" and value.ndim == 1:
                arrays[key] = np.broadcast_to(value, (len(batch), len(value)))
        return arrays, None if after is None else tuple(
            part.detach().cpu().numpy() for part in after
        )

    def gradient(self, batch: Array, key: str, index: int | None, state: State = None) -> Array:
        """Return the gradient of an output with respect to each observation.

        Args:
            batch: observations.
            key: of the output.
            index: of the output's part; None sums the parts.
            state: recurrent states, which are held.

        Raises:
            NotExplainable: there is no such output.
        """
        seen = self._tensor(batch).requires_grad_(True)
        outputs, _ = self._outputs(self.module, seen, self._states(batch, state))
        if key not in outputs:
            raise NotExplainable(f"{self.name} has no output {key!r}; it has {', '.join(outputs)}")
        value = outputs[key].reshape(len(batch), -1)
        total = value.sum() if index is None else value[:, index].sum()
        (slope,) = torch.autograd.grad(total, seen)
        return np.asarray(slope.cpu().numpy() / self.scale)

    def randomised(self, seed: int, layers: int | None = None) -> TorchAgent:
        """Return the agent with weights drawn anew, from the last ``layers`` layers backwards."""
        generator = torch.Generator().manual_seed(seed)
        module = copy.deepcopy(self.module)
        weighty = [part for part in module.modules() if _own(part)]
        for part in weighty[::-1][:layers]:
            for weight in _own(part):
                spread = float(weight.detach().std()) if weight.numel() > 1 else 1.0
                fresh = torch.randn(weight.shape, generator=generator) * (spread or 1.0)
                weight.data.copy_(fresh)
        return TorchAgent(module, self._outputs, self.sample, self._start, self.scale)

    def layers(self) -> int:
        """Return how many layers have weights."""
        return sum(bool(_own(part)) for part in self.module.modules())

    def _tensor(self, batch: Array) -> Any:
        return torch.as_tensor(np.asarray(batch, np.float32) / self.scale)

    def _states(self, batch: Array, state: State) -> Any:
        if self._start is None:
            return None
        if state is None:
            state = tuple(np.repeat(np.asarray(part), len(batch), 0) for part in self._start)
        return tuple(torch.as_tensor(part) for part in state)


def _own(part: Any) -> list[Any]:
    weights = list(part.parameters(recurse=False))
    return weights if any(weight.dim() >= 2 for weight in weights) else []
