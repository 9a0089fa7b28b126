"""Explanations by gradients: integrated gradients and SmoothGrad.

Agents that give no gradient, policies in ONNX among them, have theirs estimated from differences in
batches: of each number of a list, of each small square of a picture.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hagane.tools.rl.errors import NotExplainable
from hagane.tools.rl.explain.subject import Floats, Subject, Target, chosen_part

_MOST = 4096


def integrated_gradients(
    subject: Subject, targets: Mapping[str, Target], steps: int = 24
) -> dict[str, Floats]:
    """Return each part's share in the difference to the mean observation.

    Axiomatic Attribution for Deep Networks, Sundararajan et al. 2017, equation 3, by the midpoint
    rule. The parts add up to the target at the observation less the target at the mean.
    """
    base = subject.base
    start = subject.mean if subject.mean is not None else np.zeros_like(base)
    places = ((np.arange(steps) + 0.5) / steps).astype(np.float32)
    way = start[None] + places.reshape(-1, *[1] * base.ndim) * (base - start)[None]
    outputs = subject.outputs(base[None])
    maps = {}
    for name, target in targets.items():
        slope = gradient(subject, way, chosen_part(target, outputs)).mean(axis=0)
        maps[name] = subject.flat((base - start) * slope)
    return maps


def smooth_gradient(
    subject: Subject,
    targets: Mapping[str, Target],
    samples: int = 16,
    noise: float = 0.15,
    seed: int = 0,
) -> dict[str, Floats]:
    """Return the mean absolute gradient around the observation.

    SmoothGrad, Smilkov et al. 2017: noise is a share of the observation's range.
    """
    base = subject.base
    reach = float(base.max() - base.min()) or 1.0
    generator = np.random.default_rng(seed)
    around = base[None] + generator.normal(0, noise * reach, (samples, *base.shape)).astype(
        np.float32
    )
    outputs = subject.outputs(base[None])
    maps = {}
    for name, target in targets.items():
        slope = np.abs(gradient(subject, around, chosen_part(target, outputs))).mean(axis=0)
        maps[name] = subject.flat(slope)
    return maps


def gradient(subject: Subject, batch: Floats, target: Target) -> Floats:
    """Return the gradient of a target at each observation of a batch, of the batch's shape."""
    if subject.agent.can("gradient") and not subject.history:
        states = subject.states(len(batch))
        exact = subject.agent.agent.gradient(batch, target.key, target.index, states)
        return np.asarray(exact, np.float32)
    return np.stack([_estimated(subject, point, target) for point in batch])


def _estimated(subject: Subject, point: Floats, target: Target) -> Floats:
    if subject.picture:
        height, width = subject.plane
        side = max(1, round(min(height, width) / 12))
        rows, columns = -(-height // side), -(-width // side)
        blocks = np.zeros((rows * columns, height, width), np.float32)
        for index in range(rows * columns):
            row, column = divmod(index, columns)
            blocks[index, row * side : (row + 1) * side, column * side : (column + 1) * side] = 1
        moves = np.broadcast_to(subject.spread(blocks), (len(blocks), *point.shape))
    else:
        if point.size > _MOST:
            raise NotExplainable(
                f"the agent gives no gradient, and {point.size} numbers are too many to estimate it"
            )
        moves = np.eye(point.size, dtype=np.float32).reshape(point.size, *point.shape)
    size = 1e-2 * (float(subject.base.max() - subject.base.min()) or 1.0)
    ahead = target.parts(subject.outputs(point[None] + size * moves)).sum(axis=1)
    behind = target.parts(subject.outputs(point[None] - size * moves)).sum(axis=1)
    slopes = (ahead - behind) / (2 * size)
    weight = moves.reshape(len(moves), -1).sum(axis=1)
    return np.tensordot(slopes / weight, moves, 1).astype(np.float32)
