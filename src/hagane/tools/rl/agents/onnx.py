"""A policy in ONNX, run by hagane.

The first input takes observations with a batch in front. Outputs that bear keys of the log
(``action_values``, ``state_value``, ...) are shown; a model of other names with one output counts
as values of actions. Every input beyond the first is a recurrent state of zeros at an episode's
start, and the output ``next_<input>`` is its following value.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import numpy_helper

from hagane.errors import HaganeError
from hagane.graph import to_proto
from hagane.runtime import InferenceSession
from hagane.tools.rl.agents.choosing import chosen
from hagane.tools.rl.agents.outputs import KEYS
from hagane.tools.rl.agents.protocol import Array, Outputs, State
from hagane.tools.rl.blends import blended
from hagane.tools.rl.errors import AgentFault

_TYPES = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(uint8)": np.uint8,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(float16)": np.float16,
}


class OnnxAgent:
    """An agent by the protocol, in batches, with random weights on demand.

    Args:
        model: a file, or its bytes.
        sample: whether actions are drawn from a policy; else the likeliest is taken.

    Raises:
        AgentFault: the model cannot be used as an agent.
        HaganeError: it cannot be loaded.
    """

    def __init__(self, model: str | Path | bytes, sample: bool = False):
        self.name = "policy" if isinstance(model, bytes) else Path(model).name
        self._bytes = model if isinstance(model, bytes) else None
        self._path = None if isinstance(model, bytes) else Path(model)
        self.session = InferenceSession(model if isinstance(model, bytes) else str(model))
        self.sample = sample
        inputs = self.session.get_inputs()
        if not inputs:
            raise AgentFault(f"{self.name}: expected an input for observations, it has none")
        self._observed, *self._carried = inputs
        self._given = [output.name for output in self.session.get_outputs()]
        missing = [item.name for item in self._carried if f"next_{item.name}" not in self._given]
        if missing:
            raise AgentFault(
                f"{self.name}: input {missing[0]!r} counts as a recurrent state; expected an "
                f"output 'next_{missing[0]}', got {', '.join(self._given)}"
            )
        shown = [name for name in self._given if name in KEYS]
        rest = [name for name in self._given if not name.startswith("next_")]
        if not shown and len(rest) != 1:
            raise AgentFault(
                f"{self.name}: expected outputs with names of the log such as 'action_values' or "
                f"'action_probs', got {', '.join(self._given)}"
            )
        self._names = {name: name for name in shown} or {rest[0]: "action_values"}
        facts = self.session.get_modelmeta().custom_metadata_map
        self.kind = facts.get("hagane.rl.algorithm", "").upper() or "ONNX"
        self.env = facts.get("hagane.rl.environment")
        self.byte_scale = 255.0
        self.recurrent = bool(self._carried)
        self.state: State = None
        self.reset()

    def reset(self) -> None:
        """Forget the recurrent state."""
        self.state = self._zeros(1) if self._carried else None

    def act(self, observation: Any) -> Any:
        """Return the action, and carry the state on."""
        outputs, self.state = self.forward(np.asarray(observation)[None], self.state)
        return chosen({key: value[0] for key, value in outputs.items()}, self.name, self.sample)

    def explain(self, observation: Any) -> dict[str, Any]:
        """Return the outputs for one observation."""
        outputs, after = self.forward(np.asarray(observation)[None], self.state)
        shown: dict[str, Any] = {key: value[0] for key, value in outputs.items()}
        if after is not None:
            shown["state_norm"] = float(np.sqrt(sum(float((part**2).sum()) for part in after)))
        return shown

    def forward(self, batch: Array, state: State = None) -> tuple[Outputs, State]:
        """Return the outputs for a batch and the states after it."""
        feeds = {self._observed.name: self._fitted(np.asarray(batch))}
        carried = state if state is not None else self._zeros(len(batch))
        for item, part in zip(self._carried, carried or (), strict=True):
            feeds[item.name] = np.asarray(part, _TYPES.get(item.type, np.float32))
        names = [*self._names, *(f"next_{item.name}" for item in self._carried)]
        values = [np.asarray(value) for value in self.session.run(names, feeds)]
        outputs: Outputs = {}
        for name, value in zip(self._names, values, strict=False):
            key = self._names[name]
            if key == "z_values" and value.ndim == 1:
                value = np.broadcast_to(value, (len(batch), len(value)))
            outputs[key] = value
        return outputs, tuple(values[len(self._names) :]) if self._carried else None

    def randomised(self, seed: int, layers: int | None = None) -> OnnxAgent:
        """Return the agent with weights drawn anew, as wide as they were.

        Args:
            seed: of the draw.
            layers: how many layers are drawn, counted from the output; None for all.
        """
        model = self._model()
        generator = np.random.default_rng(seed)
        held = {tensor.name: tensor for tensor in model.graph.initializer}
        done = 0
        for node in reversed(model.graph.node):
            weights = [held[name] for name in node.input if name in held]
            if not any(len(weight.dims) >= 2 for weight in weights):
                continue
            if layers is not None and done >= layers:
                break
            done += 1
            for weight in weights:
                array = numpy_helper.to_array(weight)
                if array.dtype.kind == "f":
                    spread = float(array.std()) or 1.0
                    drawn = generator.normal(0, spread, array.shape).astype(array.dtype)
                    weight.CopyFrom(numpy_helper.from_array(drawn, weight.name))
        if not done:
            raise AgentFault(f"{self.name}: it has no layer with weights that could be random")
        return OnnxAgent(model.SerializeToString())

    def blended(
        self,
        shape: tuple[int, ...],
        masks: npt.NDArray[np.float32],
        blurs: Sequence[npt.NDArray[np.float64]],
    ) -> OnnxAgent | None:
        """Return an agent that answers one observation for all its blends with a blur, or None.

        Its outputs have a batch: the observation, then a blend for each mask. None where the model
        does not begin with a convolution (``blends``).

        Args:
            shape: of observations: pictures with channels first or last, or without channels.
            masks: the share of the blur at each pixel, ``(n, height, width)``.
            blurs: the matrices that blur along height, width and, if given, channels.
        """
        seen = self._fitted(np.zeros((1, *shape), np.float32)).shape
        plane = masks.shape[1:]
        axes = next((a for a in ((2, 3), (1, 2)) if tuple(seen[i] for i in a) == plane), None)
        if axes is None:
            return None
        try:
            model = blended(self._model(), masks, blurs, seen, axes)
            return None if model is None else OnnxAgent(to_proto(model).SerializeToString())
        except HaganeError:  # a graph of another kind than was thought of: a batch serves it
            return None

    def layers(self) -> int:
        """Return how many layers have weights."""
        graph = self._model().graph
        wide = {tensor.name for tensor in graph.initializer if len(tensor.dims) >= 2}
        return sum(any(name in wide for name in node.input) for node in graph.node)

    def _model(self) -> onnx.ModelProto:
        raw = self._bytes if self._bytes is not None else (self._path or Path()).read_bytes()
        return onnx.load_from_string(raw)

    def _zeros(self, batch: int) -> tuple[Array, ...]:
        zeros = []
        for item in self._carried:
            sizes = [size if isinstance(size, int) else batch for size in item.shape]
            zeros.append(np.zeros(sizes, _TYPES.get(item.type, np.float32)))
        return tuple(zeros)

    def _fitted(self, batch: Array) -> Array:
        """Return a batch as the model takes it: dtype, and channels first or last.

        Pictures of bytes become floats of 0 to 255 over 255 where the model takes floats.
        """
        wanted = _TYPES.get(self._observed.type)
        if wanted is None:
            raise AgentFault(f"{self.name}: observations of {self._observed.type} are not given")
        if batch.dtype == np.uint8 and np.dtype(wanted).kind == "f":
            batch = batch.astype(wanted) / wanted(255)
        shape = self._observed.shape
        if len(shape) == 4 and batch.ndim == 4 and isinstance(shape[1], int):
            first, last = batch.shape[1], batch.shape[3]
            if shape[1] == last and shape[1] != first:
                batch = batch.transpose(0, 3, 1, 2)
        if len(shape) == 2 and batch.ndim > 2:
            batch = batch.reshape(len(batch), -1)
        return np.ascontiguousarray(batch, dtype=wanted)


def loaded(path: str) -> OnnxAgent:
    """Return the agent in a file; raises AgentFault, which names the fault."""
    try:
        return OnnxAgent(path)
    except AgentFault:
        raise
    except HaganeError as error:
        raise AgentFault(f"agent {path!r}: {error}") from error
