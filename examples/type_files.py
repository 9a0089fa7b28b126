"""Tell file types by their content with Google's Magika (``magika``, Apache-2.0)."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import numpy as np
from fetch import fetch
from PIL import Image

import hagane


def features(content: bytes, settings: dict[str, int]) -> np.ndarray:
    """Return the first and last bytes, without surrounding white space, padded."""
    block, begin, end = (settings[k] for k in ("block_size", "beg_size", "end_size"))
    padding = settings["padding_token"]
    head = list(content[:block].lstrip()[:begin])
    tail = list(content[-block:].rstrip()[-end:])
    head += [padding] * (begin - len(head))
    tail = [padding] * (end - len(tail)) + tail
    return np.array(head + tail, dtype=np.int32)


def samples() -> dict[str, bytes]:
    """Return contents of known types, made on the spot."""
    picture, archive = io.BytesIO(), io.BytesIO()
    Image.effect_noise((64, 64), 40).save(picture, "PNG")
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("a.txt", "text " * 100)
    table = "\n".join(f"{i},{i * i},{i**3},name{i}" for i in range(80))
    return {
        "python": Path(__file__).read_bytes(),
        "json": json.dumps(
            {"rows": [{"id": i, "tags": ["a"]} for i in range(40)]}, indent=2
        ).encode(),
        "png": picture.getvalue(),
        "zip": archive.getvalue(),
        "csv": f"id,square,cube,name\n{table}\n".encode(),
    }


def main() -> None:
    folder = fetch("magika==1.0.3") / "magika" / "models" / "standard_v3_3"
    settings = json.loads((folder / "config.min.json").read_text(encoding="utf-8"))
    session = hagane.InferenceSession(folder / "model.onnx")
    contents = samples()
    batch = np.stack([features(content, settings) for content in contents.values()])
    (scores,) = session.run(None, {session.get_inputs()[0].name: batch})
    for expected, score in zip(contents, scores, strict=True):
        found = settings["target_labels_space"][score.argmax()]
        print(f"{expected}: recognised as {found} ({score.max():.0%})")
        assert found == expected


if __name__ == "__main__":
    main()
