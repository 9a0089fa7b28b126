"""Opening a session enters few files, and imports what the model needs alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

# Of files, as docs/performance/starting.md states; of modules there is room for some more rules.
FILES, MODULES = 98, 324
KEPT_FILES, KEPT_MODULES = 17, 32
# A model of six nodes: convolution, activation, pooling, reshape, product, softmax.
PROGRAM = """
import json, sys
import hagane
hagane.InferenceSession(sys.argv[1])
modules = sorted(name for name in sys.modules if name.partition(".")[0] == "hagane")
files = set()
def enter(frame, event, argument):
    place = frame.f_code.co_filename.replace("\\\\", "/")
    if event == "call" and "/hagane/" in place and frame.f_code.co_name != "<module>":
        files.add(place.rpartition("/hagane/")[2])
sys.setprofile(enter)
hagane.InferenceSession(sys.argv[1])
sys.setprofile(None)
print(json.dumps([modules, sorted(files)]))
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("six") / "six.onnx"
    onnx.save(six_nodes(), path)
    return path


def opened(model: Path, **settings: str) -> tuple[list[str], list[str]]:
    """Return the modules of hagane in a process that opened a model, and the files it entered."""
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(model)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "HAGANE_INSTRUCTIONS": "portable", **settings},
    )
    modules, files = json.loads(ran.stdout)
    return modules, files


def test_opening_a_session_enters_few_files(model: Path) -> None:
    """Whoever follows a model through the code reads these."""
    modules, files = opened(model, HAGANE_SESSION_CACHE="off")
    assert 60 < len(files) <= FILES, files
    assert len(modules) <= MODULES, modules
    for absent in ("passes.fusing", "ops.attention", "ops.recurrent", "ops.contrib", "gradients"):
        assert not any(name.startswith(f"hagane.{absent}") for name in modules), absent


def test_opening_a_session_again_skips_the_pipeline(model: Path, tmp_path: Path) -> None:
    cache = {"XDG_CACHE_HOME": str(tmp_path)}
    first, _ = opened(model, **cache)
    modules, files = opened(model, **cache)
    assert 0 < len(files) <= KEPT_FILES, files
    assert len(modules) <= KEPT_MODULES < len(first), modules
    for absent in ("passes", "ops.convolution", "native.rules", "native.plan"):
        assert not any(name.startswith(f"hagane.{absent}") for name in modules), absent


def six_nodes() -> onnx.ModelProto:
    """Return a small network for images."""
    random = np.random.default_rng(0)
    weights = {"w": (16, 3, 3, 3), "b": (16,), "m": (256, 10), "c": (10,)}
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["conv"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["conv"], ["relu"]),
        helper.make_node("MaxPool", ["relu"], ["pool"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["pool"], ["flat"]),
        helper.make_node("Gemm", ["flat", "m", "c"], ["gemm"]),
        helper.make_node("Softmax", ["gemm"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "six",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 10])],
        [
            numpy_helper.from_array(random.standard_normal(shape).astype(np.float32), name)
            for name, shape in weights.items()
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
