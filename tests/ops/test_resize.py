"""Sizes that Resize takes and refuses, beside ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest

from hagane.errors import HaganeError
from tests.native.models import session
from tests.oracle import assert_agrees, node_model, run_onnxruntime


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("policy", ["stretch", "not_larger", "not_smaller"])
@pytest.mark.parametrize("sizes", [[0, 3], [0, 0], [3, -1]])
def test_sizes_of_no_elements_are_refused(
    sizes: list[int], policy: str, mode: str, known: bool
) -> None:
    inputs = [np.ones((1, 1, 4, 4), np.float32), None, None, np.array(sizes)]
    more = {"axes": [2, 3], "keep_aspect_ratio_policy": policy, "mode": mode}
    constants = (3,) if known else ()
    model, feed = node_model("Resize", inputs, opset=19, constants=constants, **more)
    if policy == "not_smaller" and max(sizes) > 0:  # the largest ratio is that of all axes
        assert_agrees(model, feed)
        return
    with pytest.raises(Exception, match="ONNXRuntimeError"):
        run_onnxruntime(model, feed)
    for engine in ("native", "reference"):
        with pytest.raises(HaganeError, match="expected positive sizes"):
            session(model, engine=engine).run(None, feed)
