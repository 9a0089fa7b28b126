"""A small trained network whose inputs carry quantised noise: its chance of a wrong decision.

The network (2 inputs, 8 hidden units with ReLU, 1 output) learns to tell two interleaved half
circles apart; weights and inputs are then rounded to integers, as an accelerator would have them.
Each sensor adds an error between -2 and 2 steps. For every test point, the type of ``decision``
bounds the chance that noise turns a right decision into a wrong one; the bound is decided exactly,
not by sampling.

Run it with ``python examples/prob/noisy_classifier.py``.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from hagane import prob

# Steps of the inputs per unit, and of the weights.
INPUT_STEPS = 16
WEIGHT_STEPS = 32
NOISE = 2
HIDDEN = 8


def half_circles(count: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return points (count, 2) of two half circles, and which circle each is of."""
    angle = generator.uniform(0, np.pi, count)
    label = generator.integers(0, 2, count)
    x = np.where(label == 0, np.cos(angle), 1 - np.cos(angle))
    y = np.where(label == 0, np.sin(angle), 0.5 - np.sin(angle))
    return np.stack([x, y], 1) + generator.normal(0, 0.1, (count, 2)), label


def train(points: np.ndarray, labels: np.ndarray, generator: np.random.Generator) -> list:
    """Return weights and biases, trained by gradient descent on the logistic loss."""
    w1, b1 = generator.normal(0, 1, (2, HIDDEN)), np.zeros(HIDDEN)
    w2, b2 = generator.normal(0, 1, HIDDEN), 0.0
    for _ in range(3000):
        hidden = np.maximum(points @ w1 + b1, 0)
        error = 1 / (1 + np.exp(-(hidden @ w2 + b2))) - labels
        back = np.outer(error, w2) * (hidden > 0)
        w2 = w2 - 0.5 * hidden.T @ error / len(points)
        b2 = b2 - 0.5 * error.mean()
        w1 = w1 - 0.5 * points.T @ back / len(points)
        b1 = b1 - 0.5 * back.mean(0)
    return [w1, b1, w2, b2]


def quantise(weights: list) -> tuple[list, list, list, int]:
    """Return the weights as integers; biases in the steps of the sums they join."""
    w1, b1, w2, b2 = weights
    return (
        np.rint(w1 * WEIGHT_STEPS).astype(int).T.tolist(),
        np.rint(b1 * WEIGHT_STEPS * INPUT_STEPS).astype(int).tolist(),
        np.rint(w2 * WEIGHT_STEPS).astype(int).tolist(),
        round(b2 * WEIGHT_STEPS * WEIGHT_STEPS * INPUT_STEPS),
    )


def check_point(network: tuple, point: list[int], label: bool, bound: str) -> prob.Report:
    """Return the verdict on one point: is a wrong decision as rare as ``bound`` says?"""
    w1, b1, w2, b2 = network

    def decide(x: int, y: int) -> bool:
        hidden = [max(0, row[0] * x + row[1] * y + bias) for row, bias in zip(w1, b1, strict=True)]
        return sum(w * h for w, h in zip(w2, hidden, strict=True)) + b2 > 0

    @prob.typed("{wrong:bool | Prob(wrong) <= " + bound + "}", raises=False)
    def decision() -> bool:
        x = point[0] + prob.rand(-NOISE, NOISE)
        y = point[1] + prob.rand(-NOISE, NOISE)
        return decide(x, y) != label

    return decision.report


def main() -> list[tuple[list[int], Fraction]]:
    """Train, check twelve points, from the border inwards, and print their chances."""
    generator = np.random.default_rng(0)
    network = train(*half_circles(400, generator), generator)
    points, labels = half_circles(200, generator)
    hidden = np.maximum(points @ network[0] + network[1], 0)
    scores = hidden @ network[2] + network[3]
    print(f"right without noise: {np.mean((scores > 0) == labels):.1%}")
    small = quantise(network)
    found = []
    for index in np.argsort(np.abs(scores))[::8][:12]:
        point = np.rint(points[index] * INPUT_STEPS).astype(int).tolist()
        report = check_point(small, point, bool(labels[index]), "1/20")
        (verdict,) = report.verdicts
        chance = verdict.probabilities[0].value
        word = "holds" if verdict.holds else "fails"
        print(f"{point!s:>10}: wrong with probability {chance!s:>6}; <= 1/20 {word}")
        found.append((point, chance))
    return found


if __name__ == "__main__":
    main()
