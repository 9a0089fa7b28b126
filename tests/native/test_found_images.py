"""Images whose sizes are products of floats, padded to multiples, and regions of them."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper

from hagane.runtime import ShapeMismatch
from hagane.runtime.backends.native import NativePart
from tests.native.bodies import by_onnxruntime
from tests.native.models import draw, refused, session
from tests.passes.harness import applied

# As detectors of torchvision scale a picture, pad it, choose boxes and pool from features.
DETECTOR = """
<ir_version: 8, opset_import: ["" : 17]>
detector (float[3, h, w] x, float[n, 4] boxes, float[n] scores) => (float y, float z) {
  zero = Constant <value_ints = [0]> ()
  none = Constant <value_ints = [0, 0]> ()
  kept = Constant <value_ints = [1, 3]> ()
  two = Constant <value_ints = [2]> ()
  side = Constant <value_floats = [19.0]> ()
  four = Constant <value_float = 4.0> ()
  s = Shape <start = 1> (x)
  f = Cast <to = 1> (s)
  short = ReduceMin <keepdims = 0> (f)
  scale = Div (side, short)
  scaled = Mul (f, scale)
  whole = Floor (scaled)
  part = Cast <to = 7> (whole)
  sizes = Concat <axis = 0> (kept, part)
  x4 = Unsqueeze (x, zero)
  r = Resize <mode = "linear"> (x4, , , sizes)
  now = Shape <start = 2> (r)
  size = Cast <to = 1> (now)
  quarters = Div (SIZE, four)
  up = Ceil (quarters)
  multiple = Mul (up, four)
  more = Sub (multiple, SIZE)
  pad = Cast <to = 7> (more)
  pads = Concat <axis = 0> (none, none, none, pad)
  p = Pad (r, pads)
  c = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (p, w1)
  y = Relu (c)
  limit = Constant <value_float = 0.0> ()
  mean = ReduceMean <keepdims = 0> (y)
  weighed = Mul (scores, mean)
  good = Greater (weighed, limit)
  chosen = Compress <axis = 0> (boxes, good)
  count = Shape <end = 1> (chosen)
  batch = ConstantOfShape (count)
  batch1 = Cast <to = 7> (batch)
  pooled = RoiAlign <output_height = 3, output_width = 3, sampling_ratio = 2, spatial_scale = 0.5>
           (y, chosen, batch1)
  z = Conv (pooled, w2)
}
"""


def detector(size: str = "size") -> onnx.ModelProto:
    """Return the model, padded by the size that it has, or that it was given (``whole``)."""
    proto = onnx.parser.parse_model(DETECTOR.replace("SIZE", size))
    proto.graph.initializer.append(numpy_helper.from_array(draw((4, 3, 3, 3), 1), "w1"))
    proto.graph.initializer.append(numpy_helper.from_array(draw((5, 4, 3, 3), 2), "w2"))
    return proto


def feed(height: int, width: int, count: int) -> dict[str, np.ndarray]:
    corner = np.abs(draw((count, 2), count)) * 4
    boxes = np.concatenate([corner, corner + 3 + np.abs(draw((count, 2), height))], axis=1)
    return {"x": draw((3, height, width), width), "boxes": boxes, "scores": draw((count,), height)}


@pytest.fixture
def gone(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The parts that went back to reference kernels in a run."""
    run, found = NativePart.run, list[str]()

    def watched(self: NativePart, *args: object) -> object:
        try:
            return run(self, *args)  # type: ignore[arg-type]
        except ShapeMismatch:
            found.append(str(self.nodes[0].name))
            raise

    monkeypatch.setattr(NativePart, "run", watched)
    return found


@pytest.mark.parametrize("size", ["size", "whole"])
def test_pictures_of_found_sizes_are_convolved_and_pooled(size: str, gone: list[str]) -> None:
    proto = detector(size)
    made = session(proto)
    assert refused(made) == {}
    for height, width, count in ((20, 30, 3), (40, 21, 9), (13, 17, 1), (40, 21, 2), (64, 48, 30)):
        own = feed(height, width, count)
        for left, right in zip(made.run(None, own), by_onnxruntime(proto, own), strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-4)
    assert gone == []


def test_axes_that_stay_are_named_no_more() -> None:
    """The number of channels is known then, which a convolution needs."""
    for size, times in (("size", 1), ("whole", 2)):
        counts, _ = applied(detector(size), feed(20, 30, 3))
        assert counts["fold_kept_axes"] == times


@pytest.mark.parametrize(
    ("attributes", "first", "times"),
    [
        (', keep_aspect_ratio_policy = "not_larger"', "1, 3", 0),
        ("", "1, 2", 1),  # the second axis changes
        ("", "2, 3", 1),  # the first one does
        ("", "2, 6", 0),
    ],
)
def test_axes_that_change_stay_named(attributes: str, first: str, times: int) -> None:
    text = f"""
<ir_version: 8, opset_import: ["" : 18]>
resized (float[1, 3, h, w] x, float[2] f) => (float[a, b, c, d] y) {{
  kept = Constant <value_ints = [{first}]> ()
  part = Cast <to = 7> (f)
  sizes = Concat <axis = 0> (kept, part)
  y = Resize <mode = "nearest"{attributes}> (x, , , sizes)
}}"""
    proto = onnx.parser.parse_model(text)
    own = {"x": draw((1, 3, 5, 6)), "f": np.array([9.0, 12.0], np.float32)}
    assert applied(proto, own)[0].get("fold_kept_axes", 0) == times
    np.testing.assert_allclose(
        session(proto).run(None, own)[0], by_onnxruntime(proto, own)[0], rtol=1e-5, atol=1e-6
    )


def test_scales_that_the_run_computes_may_have_ones_in_front() -> None:
    text = """
<ir_version: 8, opset_import: ["" : 17]>
resized (float[n, c, h, w] x, float[2] f) => (float[a, b, d, e] y) {
  kept = Constant <value_floats = [1.0, 1.0]> ()
  scales = Concat <axis = 0> (kept, f)
  y = Resize <mode = "linear"> (x, , scales)
}"""
    proto = onnx.parser.parse_model(text)
    own = {"x": draw((2, 3, 5, 6)), "f": np.array([1.5, 2.5], np.float32)}
    assert applied(proto, own)[0]["fold_kept_axes"] == 1
    made = session(proto)
    assert refused(made) == {}
    for factors in ((1.5, 2.5), (0.6, 3.0), (1.0, 1.0)):
        own["f"] = np.array(factors, np.float32)
        np.testing.assert_allclose(
            made.run(None, own)[0], by_onnxruntime(proto, own)[0], rtol=1e-5, atol=1e-6
        )
