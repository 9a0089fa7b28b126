"""Other weights in a build."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import hagane
from hagane.cli import main
from hagane.errors import InvalidArgument
from hagane.ship import build_model, refit
from tests.native.models import draw
from tests.native.models import model as make_model
from tests.ship.conftest import Maker
from tests.ship.models import CASES


def other_weights(name: str, path: Path) -> onnx.ModelProto:
    model, _ = CASES[name]()
    for i, tensor in enumerate(model.graph.initializer):
        array = numpy_helper.to_array(tensor)
        if array.dtype == np.float32:
            tensor.CopyFrom(numpy_helper.from_array(draw(array.shape, 50 + i), tensor.name))
    onnx.save(model, path)
    return model


@pytest.mark.parametrize(
    ("name", "embedded"),
    [("images", False), ("images", True), ("recurrent", False), ("attention", False)],
)
def test_a_build_gets_other_weights_without_a_compiler(
    builds: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, embedded: bool
) -> None:
    options = {"embed_weights": True} if embedded else {}
    folder = tmp_path / "b"
    shutil.copytree(builds(name, **options), folder)
    model = other_weights(name, tmp_path / "new.onnx")
    _, feed = CASES[name]()
    (expected,) = hagane.InferenceSession(model).run(None, feed)
    before = hagane.load_built(folder)
    (old,) = before.run(None, feed)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CC", "none")
    monkeypatch.setitem(sys.modules, "ziglang", None)
    with pytest.raises(SystemExit) as ended:
        main(["refit", str(folder), str(tmp_path / "new.onnx")])
    assert ended.value.code == 0
    assert not np.array_equal(old, expected)
    np.testing.assert_array_equal(before.run(None, feed)[0], old)
    # (This process has a library of this path already, of which weights may be part.)
    np.testing.assert_array_equal(hagane.load_built(folder).run(None, feed)[0], expected)
    np.testing.assert_array_equal(before.run(None, feed)[0], old)


def test_paths_may_be_texts(tmp_path: Path) -> None:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    for seed in range(2):
        made = make_model(nodes, {"x": draw((2, 3))}, constants={"w": draw((3, 4), seed)})
        onnx.save(made, tmp_path / f"m{seed}.onnx")
    folder = str(tmp_path / "b")
    build_model(str(tmp_path / "m0.onnx"), folder)
    refit(folder, str(tmp_path / "m1.onnx"))
    (y,) = hagane.load_built(folder).run(None, {"x": draw((2, 3))})
    np.testing.assert_allclose(y, draw((2, 3)) @ draw((3, 4), 1), rtol=1e-5)


def test_another_structure_is_listed(builds: Maker, tmp_path: Path) -> None:
    folder = tmp_path / "b"
    shutil.copytree(builds("images"), folder)
    model, feed = CASES["images"]()
    model.graph.node[1].op_type = "Tanh"
    onnx.save(model, tmp_path / "new.onnx")
    with pytest.raises(InvalidArgument, match=r"build has Relu '' of c .*the model has Tanh ''"):
        refit(folder, tmp_path / "new.onnx")
    assert hagane.load_built(folder).run(None, feed)[0].shape == (2, 7)


def test_sizes_may_have_other_names(builds: Maker, tmp_path: Path) -> None:
    folder = tmp_path / "b"
    shutil.copytree(builds("attention"), folder)
    model = other_weights("attention", tmp_path / "new.onnx")
    renamed = 0
    for value in (*model.graph.input, *model.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.HasField("dim_param"):
                dim.dim_param = f"other_{dim.dim_param}"
                renamed += 1
    assert renamed
    onnx.save(model, tmp_path / "new.onnx")
    refit(folder, tmp_path / "new.onnx")
    _, feed = CASES["attention"]()
    (expected,) = hagane.InferenceSession(model).run(None, feed)
    np.testing.assert_array_equal(hagane.load_built(folder).run(None, feed)[0], expected)
