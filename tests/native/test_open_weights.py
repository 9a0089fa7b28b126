"""Weights and scales that come from inputs whose sizes only a run knows: native all the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import helper

import hagane
from hagane.machine import best_level
from hagane.native import Target
from hagane.runtime import pipeline
from hagane.runtime.backends import NativeBackend
from hagane.runtime.settings import Settings

Sizes = list[int | str]


def check(op: str, sizes: list[Sizes], known: list[dict[str, int]], **attributes: Any) -> None:
    """Compare runs at several sizes in one session with ONNX Runtime; all on kernels."""
    names = [f"x{number}" for number in range(len(sizes))]
    graph = helper.make_graph(
        [helper.make_node(op, names, ["y"], **attributes)],
        "g",
        [helper.make_tensor_value_info(n, 1, s) for n, s in zip(names, sizes, strict=True)],
        [helper.make_tensor_value_info("y", 1, None)],
    )
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 23)])
    settings = Settings((NativeBackend(Target(best_level())),))
    found = pipeline.read(model, settings)
    built = pipeline.build(found.model, found.types, settings, ready=False)
    assert not built.on_reference()
    mine = hagane.InferenceSession(model.SerializeToString())
    theirs = onnxruntime.InferenceSession(model.SerializeToString())
    rng = np.random.default_rng(0)
    for each in known:
        feed = {
            name: rng.normal(size=[s if isinstance(s, int) else each[s] for s in shape]).astype("f")
            for name, shape in zip(names, sizes, strict=True)
        }
        (got,), (wanted,) = mine.run(None, feed), theirs.run(None, feed)
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "sizes",
    [[["n", 2, 6, 7], ["m", 2, 3, "k"], ["m"]], [["n", "c", 6, 7], ["m", "c", "l", "k"]]],
)
def test_a_convolution_takes_weights_of_any_sizes(sizes: list[Sizes]) -> None:
    known = [{"n": 1, "m": 3, "k": 2, "l": 3, "c": 2}, {"n": 2, "m": 5, "k": 3, "l": 1, "c": 2}]
    check("Conv", sizes, known, pads=[1, 0, 0, 1], strides=[2, 1])


@pytest.mark.parametrize("scale", [["n", 5], [1], ["n", 1], ["s"]])
@pytest.mark.parametrize("op", ["LayerNormalization", "RMSNormalization"])
def test_a_normalization_takes_scales_that_broadcast(op: str, scale: Sizes) -> None:
    known = [{"n": 3, "s": 5}, {"n": 1, "s": 1}, {"n": 4, "s": 5}]
    check(op, [["n", 5], scale], known, axis=-1)
