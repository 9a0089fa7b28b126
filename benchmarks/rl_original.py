"""ChainerRL Visualizer's own saliency, run unchanged, for ``benchmarks/rl.py original``.

    python benchmarks/rl_original.py FOLDER {Chainer | PyTorch | hagane | float64}

``FOLDER`` holds a source tree of chainer/chainerrl-visualizer. Its function
``_score_frame_discrete_qvalues`` makes a mask, blurs the picture and asks the agent for each of 81
points. It stretched the scores by ``scipy.misc.imresize``, which rounded them to bytes and is gone;
here that step hands the scores over as they are. The agent is the DQN of ``dqn_weights``, in the
engine named; ``float64`` is PyTorch with 64 bits throughout. Each line on standard input is
answered with the scores as float64 ``(9, 9)``.
"""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import numpy as np

LAYERS = ((32, 4, 8, 4), (64, 32, 4, 2), (64, 64, 3, 1))


def dqn_weights(actions: int = 6) -> list[np.ndarray]:
    """Return random weights of a DQN over 4 × 84 × 84 (Mnih et al. 2015), without biases."""
    draw = np.random.default_rng(0)
    shapes = [(out, into, side, side) for out, into, side, _ in LAYERS]
    return [
        draw.normal(0, np.sqrt(2 / np.prod(shape[1:])), shape).astype(np.float32)
        for shape in (*shapes, (512, 3136), (actions, 512))
    ]


def with_chainer() -> Any:
    """Return the network as a function of a batch, computed by Chainer's functions."""
    import chainer
    from chainer import functions

    *convolutions, hidden, last = map(chainer.Variable, dqn_weights())

    def values(batch: Any) -> Any:
        for weight, (_, _, _, stride) in zip(convolutions, LAYERS, strict=True):
            batch = functions.relu(functions.convolution_2d(batch, weight, stride=stride))
        return functions.linear(functions.relu(functions.linear(batch, hidden)), last)

    return values


def with_pytorch(dtype: type = np.float32) -> Any:
    """Return the network in PyTorch, eager, without gradients."""
    import torch
    from torch.nn import functional

    *convolutions, hidden, last = (
        torch.from_numpy(weight.astype(dtype)) for weight in dqn_weights()
    )

    def values(batch: Any) -> Any:
        with torch.inference_mode():
            x = torch.from_numpy(batch.astype(dtype))
            for weight, (_, _, _, stride) in zip(convolutions, LAYERS, strict=True):
                x = functional.relu(functional.conv2d(x, weight, stride=stride))
            x = functional.relu(functional.linear(x.flatten(1), hidden))
            found = functional.linear(x, last)
        return types.SimpleNamespace(data=found.numpy())

    return values


def with_hagane() -> Any:
    """Return the network in a session of hagane."""
    from rl import nature

    from hagane.runtime import InferenceSession

    session = InferenceSession(nature())

    def values(batch: Any) -> Any:
        return types.SimpleNamespace(data=session.run(None, {"observation": batch})[0])

    return values


def scoring(folder: str, given: list[np.ndarray]) -> Any:
    """Return the original's function; the scores are added to a list."""
    from scipy.ndimage import gaussian_filter

    def imresize(scores: np.ndarray, size: Any, interp: str) -> np.ndarray:
        given.append(scores)
        return scores

    def module(name: str, **held: Any) -> None:
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(held)

    module("scipy.ndimage.filters", gaussian_filter=gaussian_filter)
    module("scipy.misc", imresize=imresize, imsave=None)
    module("jsonlines")
    module("chainerrl_visualizer")
    module("chainerrl_visualizer.utils", generate_random_string=None)
    kinds = ("DISCRETE_ACTION_VALUE", "DISTRIBUTIONAL_DISCRETE_ACTION_VALUE")
    module("chainerrl_visualizer.config", **dict.fromkeys((*kinds, "SOFTMAX_DISTRIBUTION")))
    path = Path(folder) / "chainerrl_visualizer" / "worker_jobs" / "saliency_job.py"
    space: dict[str, Any] = {}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), space)
    return space["_score_frame_discrete_qvalues"]


def main() -> None:
    folder, engine = sys.argv[1:]
    double = engine == "float64"
    ways = {"Chainer": with_chainer, "hagane": with_hagane, "PyTorch": with_pytorch}
    values = with_pytorch(np.float64) if double else ways[engine]()

    class Agent:
        """What the original asks of an agent."""

        xp = np

        @staticmethod
        def phi(observation: np.ndarray) -> np.ndarray:
            return np.asarray(observation, np.float64 if double else np.float32)

        @staticmethod
        def batch_states(states: Any, xp: Any, phi: Any) -> np.ndarray:
            return np.asarray([phi(state) for state in states])

        @staticmethod
        def model(batch: np.ndarray) -> Any:
            return types.SimpleNamespace(q_values=values(batch))

    given: list[np.ndarray] = []
    score = scoring(folder, given)
    observation = np.random.default_rng(1).random((4, 84, 84)).astype(np.float32)
    if double:
        observation = observation.astype(np.float64)
    for _ in sys.stdin:
        score(Agent, observation)
        sys.stdout.buffer.write(np.ascontiguousarray(given.pop(), np.float64).tobytes())
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
