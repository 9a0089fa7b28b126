"""Gradients of recurrent layers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hagane.ops.builder import op
from tests.ops.gradient.differences import check, check_operator

RNG = np.random.default_rng(23)
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def draw(*shape: int) -> np.ndarray:
    return np.asarray(RNG.uniform(-1, 1, shape))


@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_layers(name: str, direction: str) -> None:
    count, gates = (2 if direction == "bidirectional" else 1), GATES[name]
    steps, batch, size, hidden = 3, 2, 2, 2
    weights = [
        draw(count, gates * hidden, size),
        draw(count, gates * hidden, hidden),
        draw(count, 2 * gates * hidden),
    ]
    lengths = np.array([3, 1], np.int32)
    states = [draw(count, batch, hidden) for _ in range(2 if name == "LSTM" else 1)]
    attributes: dict[str, Any] = {"direction": direction, "hidden_size": hidden}
    x = draw(steps, batch, size)
    outputs = 1 + len(states)
    options = {"outputs": outputs, "second": False}
    check_operator(name, x, *weights, lengths, *states, attributes=attributes, **options)
    check_operator(name, x, *weights[:2], attributes=attributes, second=direction == "forward")
    flipped = [value.swapaxes(0, 1).copy() for value in (x, *states)]
    attributes = {**attributes, "layout": 1, "clip": 0.6}
    if name == "GRU":
        attributes["linear_before_reset"] = 1
    if name == "LSTM":
        attributes["input_forget"] = 1
        flipped.append(draw(count, 3 * hidden))
    check_operator(name, flipped[0], *weights, None, *flipped[1:], attributes=attributes, **options)


@pytest.mark.parametrize("reverse", [0, 1])
def test_steps_that_keep_their_gates(reverse: int) -> None:
    def steps(*inputs: Any) -> Any:
        return op("LSTMSteps", *inputs, reverse=reverse, domain="hagane", outputs=3)

    inputs = draw(4, 3, 8), draw(8, 2), draw(3, 2), draw(3, 2)
    check(lambda *inputs: steps(*inputs)[:2], *inputs)
    check(steps, *inputs, second=False)


@pytest.mark.parametrize(
    "activation",
    [
        "Affine",
        "Elu",
        "HardSigmoid",
        "LeakyRelu",
        "Relu",
        "ScaledTanh",
        "Sigmoid",
        "Softplus",
        "Softsign",
        "Tanh",
        "ThresholdedRelu",
    ],
)
def test_activations(activation: str) -> None:
    attributes = {"activations": [activation], "activation_alpha": [0.3], "activation_beta": [0.6]}
    check_operator(
        "RNN", draw(2, 2, 2), draw(1, 3, 2), draw(1, 3, 3), attributes=attributes, second=False
    )
