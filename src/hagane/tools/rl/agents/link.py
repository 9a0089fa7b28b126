"""A link of ``hagane.nn`` as an agent: batches, exact gradients, random weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from hagane.nn.autograd.configuration import no_backprop_mode, using_config
from hagane.nn.autograd.variable import Variable
from hagane.tools.rl.agents.choosing import chosen
from hagane.tools.rl.agents.protocol import Array, Outputs, State
from hagane.tools.rl.errors import AgentFault, NotExplainable


class LinkAgent:
    """An agent whose outputs a link computes from a batch of observations.

    Args:
        link: gives a variable, which counts as values of actions, or a dict of variables by keys of
            the log.
    """

    def __init__(self, link: Any):
        self.link = link
        self.kind = type(link).__name__
        self.name = self.kind

    def act(self, observation: Any) -> Any:
        """Return the action."""
        return chosen(self.explain(observation), self.name)

    def explain(self, observation: Any) -> dict[str, Any]:
        """Return the outputs for one observation."""
        outputs, _ = self.forward(np.asarray(observation)[None])
        return {key: value[0] for key, value in outputs.items()}

    def forward(self, batch: Array, state: State = None) -> tuple[Outputs, State]:
        """Return the outputs for a batch."""
        with no_backprop_mode():
            found = self._found(Variable(np.asarray(batch, np.float32)))
        return {key: np.asarray(value.array) for key, value in found.items()}, None

    def gradient(self, batch: Array, key: str, index: int | None, state: State = None) -> Array:
        """Return the gradient of an output, or of one part of it, at each observation.

        Raises:
            NotExplainable: there is no such output.
        """
        seen = Variable(np.asarray(batch, np.float32))
        found = self._found(seen)
        if key not in found:
            raise NotExplainable(f"{self.name} has no output {key!r}; it has {', '.join(found)}")
        value = found[key]
        weight = np.zeros(value.array.shape, value.array.dtype)
        flat = weight.reshape(len(weight), -1)
        flat[:, slice(None) if index is None else slice(index, index + 1)] = 1
        value.grad = weight
        value.backward()
        self.link.cleargrads()
        return np.asarray(seen.grad)

    def randomised(self, seed: int, layers: int | None = None) -> LinkAgent:
        """Return the agent with weights drawn anew, from the last ``layers`` layers backwards."""
        generator = np.random.default_rng(seed)
        link = self.link.copy(mode="copy")
        for part in _weighty(link)[::-1][:layers]:
            for parameter in part.params():
                array = parameter.array
                spread = float(array.std()) or 1.0
                array[...] = generator.normal(0, spread, array.shape)
        return LinkAgent(link)

    def layers(self) -> int:
        """Return how many layers have weights."""
        return len(_weighty(self.link))

    def _found(self, batch: Variable) -> dict[str, Variable]:
        with using_config("train", False):
            found = self.link(batch)
        if isinstance(found, Variable):
            return {"action_values": found}
        if isinstance(found, dict):
            return found
        raise AgentFault(
            f"{self.name}: expected a Variable or a dict of them by keys of the log, "
            f"got {type(found).__name__}"
        )


def _weighty(link: Any) -> list[Any]:
    """Return the links without children that have weights, in their order."""
    return [
        part
        for part in link.links()
        if not any(True for _ in part.children())
        and any(weight.array is not None and weight.array.ndim >= 2 for weight in part.params())
    ]
