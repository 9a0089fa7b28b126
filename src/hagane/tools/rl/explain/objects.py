"""Explanations by objects: the change of outputs where the ball, the paddle or the enemy is gone.

After Iyer et al. 2018 (object saliency maps). Objects are known where the environment names them or
where an Atari game's memory holds their places; they give way to the picture without
them, the rollout's median.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hagane.tools.rl.errors import NotExplainable
from hagane.tools.rl.explain.subject import Floats, Subject, Target


@dataclass(frozen=True, slots=True)
class Box:
    """Where an object is, in shares of the picture's height and width."""

    top: float
    left: float
    bottom: float
    right: float


@dataclass(frozen=True, slots=True)
class Place:
    """Where a game's memory holds an object's place on the screen of 210 × 160.

    Attributes:
        x: address of the horizontal place, None for a fixed one of ``dx``.
        dx: added to it.
        y: address of the vertical place, None for a fixed one of ``dy``.
        dy: added to it.
        width: of the object, in pixels.
        height: of the object, in pixels.
    """

    x: int | None
    dx: int
    y: int | None
    dy: int
    width: int
    height: int


# Fitted to where the objects' colours are on 600 screens of random play, two pixels at most apart.
ATARI: dict[str, dict[str, Place]] = {
    "ALE/Pong": {
        "player": Place(None, 140, 51, -13, 4, 16),
        "enemy": Place(None, 16, 50, -15, 4, 16),
        "ball": Place(49, -49, 54, -14, 2, 4),
    },
    "ALE/Breakout": {
        "paddle": Place(72, -47, None, 189, 16, 4),
        "ball": Place(99, -49, 101, 9, 2, 4),
    },
}


def atari_boxes(environment: str, ram: bytes) -> dict[str, Box]:
    """Return the objects of an Atari game that its memory tells, {} for unknown games."""
    places = ATARI.get(environment.split("-v")[0], {})
    found = {}
    for name, place in places.items():
        left = place.dx + (ram[place.x] if place.x is not None else 0)
        top = place.dy + (ram[place.y] if place.y is not None else 0)
        if (place.y is not None and ram[place.y] == 0) or not (0 <= left < 160 and 0 <= top < 210):
            continue
        bottom, right = min(210, top + place.height), min(160, left + place.width)
        found[name] = Box(top / 210, left / 160, bottom / 210, right / 160)
    return found


def object_saliency(
    subject: Subject, targets: Mapping[str, Target], boxes: Mapping[str, Box], empty: Floats
) -> tuple[dict[str, Floats], dict[str, dict[str, float]]]:
    """Return maps of Σ(Δ)² where objects are, and the same numbers by object.

    Args:
        subject: a picture.
        targets: outputs.
        boxes: of the objects.
        empty: the picture without objects, of the observation's shape.

    Raises:
        NotExplainable: no object is known.
    """
    if not boxes:
        raise NotExplainable(
            "objects: none are known here; expected an environment that names them, or one of "
            f"{', '.join(ATARI)} whose memory is in the log"
        )
    height, width = subject.plane
    masks = np.stack([_mask(box, height, width) for box in boxes.values()])
    base = subject.base
    removed = np.where(subject.spread(masks) > 0, empty[None], base[None])
    outputs = subject.outputs(np.concatenate((base[None], removed)).astype(np.float32))
    maps: dict[str, Floats] = {}
    numbers: dict[str, dict[str, float]] = {}
    for name, target in targets.items():
        parts = target.parts(outputs)
        scores = ((parts[1:] - parts[0]) ** 2).sum(axis=1)
        maps[name] = (scores[:, None, None] * masks).max(axis=0).astype(np.float32)
        numbers[name] = dict(zip(boxes, scores.tolist(), strict=True))
    return maps, numbers


def _mask(box: Box, height: int, width: int) -> npt.NDArray[np.float32]:
    mask = np.zeros((height, width), np.float32)
    top, left = int(box.top * height + 1e-6), int(box.left * width + 1e-6)
    bottom = max(top + 1, int(np.ceil(box.bottom * height - 1e-6)))
    right = max(left + 1, int(np.ceil(box.right * width - 1e-6)))
    mask[top:bottom, left:right] = 1
    return mask
