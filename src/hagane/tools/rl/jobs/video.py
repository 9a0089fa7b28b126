"""The job that makes a video of a rollout's pictures, with the maps of an explanation over them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hagane.tools.rl.errors import InvalidLog, NoSuchRollout
from hagane.tools.rl.logs.folder import LogFolder, made_within
from hagane.tools.rl.logs.records import log_of

FORMATS = {"gif": "image/gif", "webp": "image/webp", "png": "image/png"}
_TINTS = {"actor": (0, 90, 255), "critic": (255, 40, 40), "qfunc": (255, 40, 40)}
_OTHER = (255, 40, 40)


def make_video(
    folder: Path,
    name: str,
    first: int,
    last: int,
    fps: int,
    explanation: str,
    progress: Callable[[int, int], None],
) -> dict[str, Any]:
    """Write ``exports/<name>``: GIF, animated WebP or animated PNG, by its ending.

    Args:
        folder: of the rollout.
        name: of the file.
        first: step.
        last: step, included.
        fps: pictures a second.
        explanation: its maps lie over the pictures; '' for none.
        progress: called with pictures read and pictures wanted.

    Raises:
        InvalidLog: no step has a picture.
    """
    from PIL import Image

    logs = LogFolder(folder.parents[1])
    rows = log_of(folder).rows(first, last - first + 1)
    overlay = _Overlay(logs, folder.name, explanation) if explanation else None
    frames = []
    for index, row in enumerate(rows):
        path = row.get("image_path")
        if path:
            try:
                picture = np.asarray(Image.open(logs.picture(path)[0]).convert("RGB"))
            except (NoSuchRollout, OSError):
                continue
            if overlay is not None:
                picture = overlay.over(picture, first + index)
            frames.append(Image.fromarray(picture))
        progress(index + 1, len(rows))
    if not frames:
        raise InvalidLog(
            f"{folder.name}: steps {first} to {last} have no pictures to make a video of"
        )
    target = made_within(folder, "exports")
    options: dict[str, Any] = {"duration": round(1000 / fps), "loop": 0}
    if name.endswith(".gif"):
        frames = [frame.quantize(128, dither=Image.Dither.NONE) for frame in frames]
    frames[0].save(target / name, save_all=True, append_images=frames[1:], **options)
    return {"name": name, "frames": len(frames)}


class _Overlay:
    def __init__(self, logs: LogFolder, rollout: str, name: str):
        if Path(name).name != name:
            raise InvalidLog(f"{rollout}: there is no explanation {name[:60]!r}")
        meta = logs.file(rollout, "explanations", name, "meta.json")
        self.meta = json.loads(meta.read_text(encoding="utf-8"))
        shape = (-1, len(self.meta["targets"]), *self.meta["shape"])
        maps = logs.file(rollout, "explanations", name, "maps.f32")
        self.maps = np.fromfile(maps, np.float32).reshape(shape)

    def over(self, picture: npt.NDArray[np.uint8], step: int) -> npt.NDArray[np.uint8]:
        from PIL import Image

        at = step - int(self.meta["from_step"])
        if not 0 <= at < len(self.maps) or self.maps.ndim != 4:
            return picture
        seen = picture.astype(np.float32)
        for name, found in zip(self.meta["targets"], self.maps[at], strict=True):
            largest = float(self.meta["largest"][name]) or 1.0
            share = Image.fromarray(np.abs(found) / np.float32(largest), "F").resize(
                (picture.shape[1], picture.shape[0]), Image.Resampling.BILINEAR
            )
            weight = 0.7 * np.clip(np.asarray(share), 0, 1)[..., None] ** 0.5
            seen = seen * (1 - weight) + np.asarray(_TINTS.get(name, _OTHER)) * weight
        return seen.clip(0, 255).astype(np.uint8)
