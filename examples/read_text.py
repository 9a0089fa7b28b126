"""Read text in a picture: find lines, check their direction, recognise characters.

Models: PP-OCR (PaddlePaddle) as packaged by ``rapidocr-onnxruntime`` (Apache-2.0). The picture is
drawn here; the text read has to be the text drawn.
"""

from __future__ import annotations

import numpy as np
from fetch import fetch
from PIL import Image, ImageDraw, ImageFont

import hagane

LINES = ("Hello hagane 2026", "shapes before crashes")
FOLDER = "rapidocr_onnxruntime/models"


def draw(lines: tuple[str, ...]) -> np.ndarray:
    """Return a white page with one line of black text below the other, uint8 (h, w, 3)."""
    page = Image.new("RGB", (640, 64 + 80 * len(lines)), "white")
    font = ImageFont.load_default(size=40)
    for row, line in enumerate(lines):
        ImageDraw.Draw(page).text((40, 40 + 80 * row), line, fill="black", font=font)
    return np.asarray(page)


def runs(mask: np.ndarray, gap: int = 3) -> list[tuple[int, int]]:
    """Return the stretches of true entries, joining those less than ``gap`` apart."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(np.int8), [0]])))
    spans: list[tuple[int, int]] = []
    for start, end in edges.reshape(-1, 2):
        if spans and start - spans[-1][1] < gap:
            spans[-1] = (spans[-1][0], int(end))
        else:
            spans.append((int(start), int(end)))
    return spans


def find_lines(page: np.ndarray, detector: hagane.InferenceSession) -> list[np.ndarray]:
    """Return the crop of every line of text, from top to bottom."""
    height, width = (32 * round(side / 32) for side in page.shape[:2])
    resized = np.asarray(Image.fromarray(page).resize((width, height)), dtype=np.float32) / 255
    mean, deviation = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])
    x = ((resized - mean) / deviation).transpose(2, 0, 1)[None]
    (probability,) = detector.run(None, {"x": x})
    text = probability[0, 0] > 0.3
    crops = []
    scale_y, scale_x = page.shape[0] / height, page.shape[1] / width
    for top, bottom in runs(text.any(axis=1)):
        columns = np.flatnonzero(text[top:bottom].any(axis=0))
        # The detector marks the core of a line; the crop takes half its height more all around.
        margin = (bottom - top) // 2
        rows = slice(max(0, int((top - margin) * scale_y)), int((bottom + margin) * scale_y))
        left = max(0, int((columns[0] - margin) * scale_x))
        crops.append(page[rows, left : int((columns[-1] + margin) * scale_x)])
    return crops


def line_input(crop: np.ndarray, width: int | None = None) -> np.ndarray:
    """Return a line, 48 pixels high, as float32 (1, 3, 48, width) in [-1, 1]."""
    wide = width or max(48, round(48 * crop.shape[1] / crop.shape[0]))
    picture = np.asarray(Image.fromarray(crop).resize((wide, 48)), dtype=np.float32)
    return (picture / 127.5 - 1).transpose(2, 0, 1)[None]


def decode(probability: np.ndarray, alphabet: list[str]) -> str:
    """Return the best path of connectionist temporal classification (Graves et al., 2006)."""
    best = probability.argmax(axis=1)
    fresh = np.concatenate([[True], best[1:] != best[:-1]]) & (best != 0)
    return "".join(alphabet[i] for i in best[fresh])


def main() -> None:
    folder = fetch("rapidocr-onnxruntime==1.4.4") / FOLDER
    detector = hagane.InferenceSession(folder / "ch_PP-OCRv4_det_infer.onnx")
    direction = hagane.InferenceSession(folder / "ch_ppocr_mobile_v2.0_cls_infer.onnx")
    reader = hagane.InferenceSession(folder / "ch_PP-OCRv4_rec_infer.onnx")
    characters = reader.get_modelmeta().custom_metadata_map["character"].splitlines()
    alphabet = ["", *characters, " "]
    crops = find_lines(draw(LINES), detector)
    assert len(crops) == len(LINES), f"expected {len(LINES)} lines, found {len(crops)}"
    for crop, expected in zip(crops, LINES, strict=True):
        (upside_down,) = direction.run(None, {"x": line_input(crop, 192)})
        assert upside_down[0].argmax() == 0, "the line is upright"
        (probability,) = reader.run(None, {"x": line_input(crop)})
        text = decode(probability[0], alphabet)
        print(f"read: {text}")
        # The model was trained on Chinese, which has no spaces, and often leaves them out.
        assert text.replace(" ", "") == expected.replace(" ", ""), f"expected {expected!r}"
    turned = np.ascontiguousarray(crops[0][::-1, ::-1])
    (upside_down,) = direction.run(None, {"x": line_input(turned, 192)})
    assert upside_down[0].argmax() == 1, "the turned line is seen to be upside down"
    print("a line turned by 180 degrees is recognised as such")


if __name__ == "__main__":
    main()
