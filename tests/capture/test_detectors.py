"""The parts of detectors that are theirs: boxes that overlap, sizes from the data, anchors."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

import hagane
from hagane.errors import CaptureError
from hagane.graph import to_proto


def kept_boxes(boxes: np.ndarray, scores: np.ndarray, threshold: float) -> list[int]:
    """The places of boxes that greedy suppression keeps, by its definition."""
    kept: list[int] = []
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    for place in np.argsort(-scores, kind="stable"):
        low = np.maximum(boxes[place, :2], boxes[kept, :2])
        high = np.minimum(boxes[place, 2:], boxes[kept, 2:])
        shared = np.clip(high - low, 0, None).prod(1)
        if not (shared / (area[place] + area[kept] - shared) > threshold).any():
            kept.append(int(place))
    return kept


def suppressed(boxes: Any, scores: Any) -> Any:
    keep = torch.ops.torchvision.nms(boxes, scores, 0.4)
    return keep, scores[keep]


def test_suppressed_boxes_are_those_of_the_definition() -> None:
    model = hagane.capture(suppressed, "float32[n, 4]", "float32[n]")
    session = onnxruntime.InferenceSession(to_proto(model).SerializeToString())
    engine = hagane.InferenceSession(model)
    rng = np.random.default_rng(3)
    for count in (1, 7, 40):
        low = rng.uniform(0, 6, (count, 2))
        boxes = np.concatenate([low, low + rng.uniform(1, 5, (count, 2))], 1).astype("f")
        scores = rng.permutation(count).astype("f")
        expected = kept_boxes(boxes, scores, 0.4)
        for run in (session.run, engine.run):
            places, best = run(None, {"boxes": boxes, "scores": scores})
            assert list(places) == expected
            np.testing.assert_array_equal(best, scores[expected])


def test_suppression_in_double_precision_keeps_its_precision() -> None:
    model = hagane.capture(suppressed, "float64[n, 4]", "float64[n]")
    session = onnxruntime.InferenceSession(to_proto(model).SerializeToString())
    rng = np.random.default_rng(3)
    for count in (0, 1, 40):
        low = rng.uniform(0, 6, (count, 2))
        boxes = np.concatenate([low, low + rng.uniform(1, 5, (count, 2))], 1)
        scores = 1 + rng.permutation(count) * 1e-12  # one number in float32
        expected = kept_boxes(boxes, scores, 0.4)
        for run in (session.run, hagane.InferenceSession(model).run):
            places, best = run(None, {"boxes": boxes, "scores": scores})
            assert list(places) == expected
            np.testing.assert_array_equal(best, scores[expected])


def test_boxes_and_scores_have_one_type() -> None:
    with pytest.raises(
        CaptureError,
        match=r"expected 'dets' and 'scores' of one type, got torch.Tensor\(dtype=float32",
    ):
        hagane.capture(suppressed, "float32[n, 4]", "float64[n]")


def pooled_regions(x: np.ndarray, rois: np.ndarray, exact: bool) -> np.ndarray:
    """Means of 2 × 2 samples in 3 × 2 parts of regions, by their definition (scale 0.5)."""
    made = np.zeros((len(rois), x.shape[1], 3, 2))
    height, width = x.shape[2:]

    def at(image: np.ndarray, y: float, x: float) -> Any:
        if y < -1 or y > height or x < -1 or x > width:
            return 0.0
        y, x = max(y, 0.0), max(x, 0.0)
        top, left = min(int(y), height - 1), min(int(x), width - 1)
        bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
        down, along = (y - top if top < height - 1 else 0), (x - left if left < width - 1 else 0)
        upper = image[:, top, left] * (1 - along) + image[:, top, right] * along
        lower = image[:, bottom, left] * (1 - along) + image[:, bottom, right] * along
        return upper * (1 - down) + lower * down

    for i, (number, *corners) in enumerate(rois):
        x0, y0, x1, y1 = (c * 0.5 - (0.5 if exact else 0) for c in corners)
        w, h = (x1 - x0, y1 - y0) if exact else (max(x1 - x0, 1.0), max(y1 - y0, 1.0))
        for row in range(3):
            for column in range(2):
                for a in (0.25, 0.75):
                    for b in (0.25, 0.75):
                        y, z = y0 + (row + a) * h / 3, x0 + (column + b) * w / 2
                        made[i, :, row, column] += at(x[int(number)], y, z) / 4
    return made


@pytest.mark.parametrize("exact", [False, True])
def test_aligned_regions_are_those_of_the_definition(exact: bool) -> None:
    def aligned(x: Any, rois: Any) -> Any:
        return torch.ops.torchvision.roi_align(x, rois, 0.5, 3, 2, 2, exact)

    model = hagane.capture(aligned, "float32[batch, 2, h, w]", "float32[n, 5]")
    session = onnxruntime.InferenceSession(to_proto(model).SerializeToString())
    rng = np.random.default_rng(4)
    x = rng.standard_normal((2, 2, 6, 7)).astype("f")
    low, size = rng.uniform(-3, 9, (5, 2)), rng.uniform(0.2, 12, (5, 2))
    rois = np.concatenate([[[0], [1], [1], [0], [1]], low, low + size], 1).astype("f")
    for run in (session.run, hagane.InferenceSession(model).run):
        found = run(None, {"x": x, "rois": rois})[0]
        np.testing.assert_allclose(found, pooled_regions(x, rois, exact), rtol=1e-4, atol=1e-5)


def test_regions_may_be_scaled_by_a_ratio_of_sizes() -> None:
    def aligned(x: Any, rois: Any) -> Any:
        scale = 3 / x.shape[2]
        return torch.ops.torchvision.roi_align(x, rois, scale, 3, 2, 2, True)

    model = hagane.capture(aligned, "float32[batch, 2, h, w]", "float32[n, 5]")
    x = np.random.default_rng(5).standard_normal((2, 2, 6, 7)).astype("f")
    rois = np.array([[1, -2, 1, 9.5, 4], [0, 1, 2, 7, 11]], "f")
    (found,) = hagane.InferenceSession(model).run(None, {"x": x, "rois": rois})
    np.testing.assert_allclose(found, pooled_regions(x, rois, True), rtol=1e-4, atol=1e-5)


def test_the_count_of_a_mask_is_the_count_of_its_places() -> None:
    def best(scores: Any) -> Any:
        mask = scores > 0.5
        count = min(3, torch.where(mask)[0].shape[0])
        return scores[mask].topk(count)[0]

    report = hagane.check(best, torch.zeros(9))
    assert report.ok, (report.errors, report.unknown)


class Pyramid(nn.Module):
    """Pictures of any size in one batch, and anchors that are moved to where they are used."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors = [torch.arange(3.0), torch.ones(3)]

    def forward(self, images: Any) -> Any:
        batch = images[0].new_zeros((len(images), 3, 16, 16))
        for place, image in enumerate(images):
            scale = min(8 / min(image.shape[-2:]), 16 / max(image.shape[-2:]))
            small = nn.functional.interpolate(
                image[None], scale_factor=scale, mode="bilinear", recompute_scale_factor=True
            )[0]
            batch[place, : small.shape[0], : small.shape[1], : small.shape[2]].copy_(small)
        self.anchors = [anchor.to(batch.dtype) for anchor in self.anchors]
        return batch, self.anchors[0] + self.anchors[1]


def test_pictures_of_several_sizes_become_one_batch() -> None:
    types = ["float32[3, h, w]", "float32[3, w, h]"]
    model = hagane.capture(Pyramid(), images=types)
    assert [value.name for value in model.graph.inputs] == ["images.0", "images.1"]
    session = onnxruntime.InferenceSession(to_proto(model).SerializeToString())
    for height, width in ((20, 31), (9, 9), (64, 40)):
        torch.manual_seed(height)
        images = [torch.rand(3, height, width), torch.rand(3, width, height)]
        found = session.run(None, {f"images.{i}": x.numpy() for i, x in enumerate(images)})
        for a, b in zip(Pyramid()(images), found, strict=True):
            np.testing.assert_allclose(a.numpy(), b, rtol=1e-4, atol=1e-5)


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, factor: float) -> Any:
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient * ctx.factor, None


def test_the_forward_pass_of_an_autograd_function_is_captured() -> None:
    model = hagane.capture(lambda x: Doubled.apply(x, 2.5) - x, "float32[n, 3]")
    x = np.linspace(-1, 1, 6, dtype="f").reshape(2, 3)
    (found,) = hagane.InferenceSession(model).run(None, {"x": x})
    np.testing.assert_allclose(found, x * 1.5, rtol=1e-6)
