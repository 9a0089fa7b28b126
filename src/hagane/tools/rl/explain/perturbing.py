"""Explanations by perturbation: Greydanus et al. 2018, and occlusion by the rollout's mean.

All perturbed pictures of an observation are asked about in one batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from hagane.tools.rl.agents.protocol import Watched
from hagane.tools.rl.errors import NotExplainable
from hagane.tools.rl.explain.subject import Floats, Subject, Target

Form = Literal["gaussian", "disc"]


@dataclass(frozen=True, slots=True)
class Grid:
    """Where a picture is perturbed, and how.

    Attributes:
        density: pixels from one point to the next.
        radius: of the mask, as the deviation of its Gaussian.
        blur: deviation of the blur that is blended in.
        form: ``gaussian`` masks of Greydanus et al. 2018, or ChainerRL Visualizer's ``disc``, whose
            radius depends on its place.
        across: whether frames are blurred into each other too, as ChainerRL Visualizer does.
    """

    density: int = 10
    radius: float = 5.0
    blur: float = 3.0
    form: Form = "gaussian"
    across: bool = False


def grid_for(height: int, width: int) -> Grid:
    """Return the published grid for pictures of some size, one of every pixel for tiny ones."""
    return Grid() if min(height, width) >= 40 else Grid(1, 0.6, 1.5)


def greydanus(
    subject: Subject, targets: Mapping[str, Target], grid: Grid, blends: Watched | None = None
) -> dict[str, Floats]:
    """Return maps of Σ(Δ)² of each target where the picture is blurred, ``(height, width)``.

    Visualizing and Understanding Atari Agents, Greydanus et al. 2018, equations 1 to 3; without the
    factor of one half, as ChainerRL Visualizer has it.

    Args:
        subject: the subject of the explanation.
        targets: the outputs.
        grid: where the picture is perturbed, and how.
        blends: of ``blends_of``; without it, or with a history, a batch of blends is made.
    """
    height, width = subject.plane
    masks, rows, columns = masks_of(height, width, grid)
    if blends is not None and not subject.history:
        outputs, _ = blends.forward(subject.scaled(subject.base[None]), subject.state)
    else:
        outputs = subject.outputs(_blends(subject, masks, grid))
    maps = {}
    for name, target in targets.items():
        parts = target.parts(outputs)
        scores = ((parts[1:] - parts[0]) ** 2).sum(axis=1).reshape(rows, columns)
        maps[name] = upsampled(scores, height, width)
    return maps


def blends_of(subject: Subject, grid: Grid) -> Watched | None:
    """Return the agent that answers an observation for all blends of a grid, None if it can't.

    It is compiled for the shape of the observation: worth its while for several steps.
    """
    if not subject.agent.can("blended"):
        return None
    height, width = subject.plane
    masks, _, _ = masks_of(height, width, grid)
    sizes = [height, width]
    if grid.across and subject.channels is not None:
        sizes.append(subject.base.shape[subject.channels])
    blurs = tuple(blur_matrix(size, grid.blur) for size in sizes)
    found = subject.agent.agent.blended(subject.base.shape, masks, blurs)
    return None if found is None else Watched(found, subject.agent.name)


def one_by_one(subject: Subject, targets: Mapping[str, Target], grid: Grid) -> dict[str, Floats]:
    """Return the maps of ``greydanus`` as the original computes them, a pass a point.

    The batched form is measured against it.
    """
    height, width = subject.plane
    base = subject.base
    before = subject.outputs(base[None])
    rows, columns = -(-height // grid.density), -(-width // grid.density)
    scores = {name: np.zeros((rows, columns)) for name in targets}
    for row in range(rows):
        for column in range(columns):
            place = (row * grid.density, column * grid.density)
            mask = mask_at(place, height, width, grid)
            blended = subject.spread(mask[None])[0]
            after = subject.outputs((base + blended * (blur(subject, grid) - base))[None])
            for name, target in targets.items():
                difference = target.parts(after)[0] - target.parts(before)[0]
                scores[name][row, column] = (difference**2).sum()
    return {name: upsampled(score, height, width) for name, score in scores.items()}


def occlusion(
    subject: Subject, targets: Mapping[str, Target], window: int | None = None
) -> dict[str, Floats]:
    """Return Σ(Δ)² of each target where a part of the observation gives way to its mean.

    Pictures lose squares of ``window`` pixels, the value of a pixel is the mean over the squares
    that cover it; lists of numbers lose one number at a time, ``(numbers,)``.
    """
    base = subject.base
    mean = subject.mean if subject.mean is not None else np.zeros_like(base)
    if subject.picture:
        masks = windows(*subject.plane, window)
        spread = subject.spread(masks)
    else:
        count = base.size
        if count > 4096:
            raise NotExplainable(f"occlusion of {count} numbers one at a time takes too long")
        masks = np.eye(count, dtype=np.float32)
        spread = masks.reshape(count, *base.shape)
    batch = np.concatenate((base[None], np.where(spread > 0, mean[None], base[None])))
    outputs = subject.outputs(batch.astype(np.float32))
    maps = {}
    for name, target in targets.items():
        parts = target.parts(outputs)
        scores = ((parts[1:] - parts[0]) ** 2).sum(axis=1)
        if subject.picture:
            covered = masks.sum(axis=0)
            maps[name] = (np.tensordot(scores, masks, 1) / np.maximum(covered, 1)).astype(
                np.float32
            )
        else:
            maps[name] = scores.reshape(base.shape).astype(np.float32)
    return maps


def _blends(subject: Subject, masks: Floats, grid: Grid) -> Floats:
    """Return the observation, and its blend with its blur under each mask."""
    base = subject.base
    batch = _room(len(masks) + 1, base.shape)
    batch[0] = base
    np.multiply(subject.spread(masks), (blur(subject, grid) - base)[None], out=batch[1:])
    batch[1:] += base
    return batch


@lru_cache(maxsize=2)
def _room(count: int, shape: tuple[int, ...]) -> Floats:
    """Return memory for a batch, kept for the next step: fresh pages cost as much as filling."""
    return np.empty((count, *shape), np.float32)


@lru_cache(maxsize=16)
def windows(height: int, width: int, window: int | None = None) -> Floats:
    """Return masks of overlapping squares, ``(n, height, width)``."""
    side = window or max(1, round(min(height, width) / 10))
    stride = max(1, side // 2)
    tops = sorted({min(top, height - side) for top in range(0, height, stride)})
    lefts = sorted({min(left, width - side) for left in range(0, width, stride)})
    masks = np.zeros((len(tops) * len(lefts), height, width), np.float32)
    for index, (top, left) in enumerate((top, left) for top in tops for left in lefts):
        masks[index, top : top + side, left : left + side] = 1
    return masks


@lru_cache(maxsize=16)
def masks_of(height: int, width: int, grid: Grid) -> tuple[Floats, int, int]:
    """Return all masks of a grid ``(n, height, width)``, and its rows and columns."""
    rows, columns = -(-height // grid.density), -(-width // grid.density)
    masks = np.stack(
        [
            mask_at((row * grid.density, column * grid.density), height, width, grid)
            for row in range(rows)
            for column in range(columns)
        ]
    )
    return masks, rows, columns


def mask_at(place: tuple[int, int], height: int, width: int, grid: Grid) -> Floats:
    """Return the share of the blur at each pixel for one point, ``(height, width)``, in 0 to 1."""
    y, x = np.ogrid[:height, :width]
    distance = (y - place[0]) ** 2 + (x - place[1]) ** 2
    if grid.form == "gaussian":
        return np.asarray(np.exp(-distance / (2 * grid.radius**2)), np.float32)
    keep = (distance / distance.max() >= 0.01).astype(np.float64)
    rows, columns = blur_matrix(height, grid.radius), blur_matrix(width, grid.radius)
    return np.asarray(1 - rows @ keep @ columns.T, np.float32)


def blur(subject: Subject, grid: Grid) -> Floats:
    """Return the picture blurred by a Gaussian, each channel by itself unless ``across``.

    By sums of shifted pictures: small products of matrices would wait for threads of NumPy's.
    """
    last = subject.base.ndim - (subject.channels == 2)
    blurred = subject.base.astype(np.float64)
    axes = [last - 2, last - 1]
    if grid.across and subject.channels is not None:
        axes.append(subject.channels)
    for axis in axes:
        blurred = _blurred(blurred, axis, grid.blur)
    return blurred.astype(np.float32)


def _blurred(picture: npt.NDArray[np.float64], axis: int, deviation: float) -> Any:
    reach, weights = _gaussian(deviation)
    size = picture.shape[axis]
    ends = [(reach, reach) if i == axis else (0, 0) for i in range(picture.ndim)]
    padded = np.moveaxis(np.pad(picture, ends, "symmetric"), axis, 0)
    total = sum(weight * padded[at : at + size] for at, weight in enumerate(weights))
    return np.moveaxis(total, 0, axis)


def _gaussian(deviation: float) -> tuple[int, npt.NDArray[np.float64]]:
    """Return the weights of a Gaussian cut at four deviations, and how far they reach."""
    reach = int(4 * deviation + 0.5)
    weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * deviation**2))
    return reach, weights / weights.sum()


@lru_cache(maxsize=32)
def blur_matrix(size: int, deviation: float) -> npt.NDArray[np.float64]:
    """Return the matrix of a Gaussian blur, cut at four deviations, edges mirrored.

    The convention of ``scipy.ndimage.gaussian_filter`` (mode ``reflect``).
    """
    reach, weights = _gaussian(deviation)
    matrix = np.zeros((size, size))
    for row in range(size):
        for offset, weight in zip(range(-reach, reach + 1), weights, strict=True):
            at = (row + offset) % (2 * size)
            matrix[row, at if at < size else 2 * size - 1 - at] += weight
    return matrix


def upsampled(scores: npt.NDArray[np.float64], height: int, width: int) -> Floats:
    """Return scores of a grid for every pixel, by bilinear interpolation."""
    rows = _stretch(scores.shape[0], height)
    columns = _stretch(scores.shape[1], width)
    return (rows @ scores @ columns.T).astype(np.float32)


@lru_cache(maxsize=32)
def _stretch(points: int, size: int) -> npt.NDArray[np.float64]:
    matrix = np.zeros((size, points))
    place = np.clip((np.arange(size) + 0.5) * points / size - 0.5, 0, points - 1)
    low = np.floor(place).astype(int)
    high = np.minimum(low + 1, points - 1)
    matrix[np.arange(size), low] += 1 - (place - low)
    matrix[np.arange(size), high] += place - low
    return matrix
