"""Folders of chainer-trt's ModelRetriever: every kind of layer, and what is wrong with folders."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hagane
import hagane.functions as F  # noqa: N812
from hagane.cli import main
from hagane.errors import InvalidModel, NoSuchFile, UnsupportedModel
from hagane.ship.retrieved import KINDS, read_retrieved
from tests.native.models import draw

Layers = list[dict[str, Any]]


def save_tensor(path: Path, array: np.ndarray) -> None:
    sizes = ",".join(map(str, array.shape))
    path.write_bytes(f"{array.dtype.itemsize}\n{sizes}\n".encode() + array.tobytes())


class Folder:
    """A folder as it is written."""

    def __init__(self, path: Path):
        self.path = path
        self.layers: Layers = []
        self.outputs: list[Any] = []
        self.expected: dict[str, np.ndarray] = {}
        path.mkdir(exist_ok=True)

    def input(self, name: str, shape: Sequence[int]) -> str:
        given = {"type": "input", "name": name, "output_names": [name], "rank": -2}
        self.layers.append({**given, "shape": list(shape)})
        return name

    def layer(
        self,
        kind: str,
        sources: str | list[str],
        expected: Any = None,
        weights: Mapping[str, np.ndarray] | None = None,
        **given: Any,
    ) -> str:
        name = f"{kind}-{len(self.layers)}"
        key = "source" if isinstance(sources, str) else "sources"
        made = {"type": kind, "name": name, "output_names": [f"{name}_0"], key: sources, **given}
        for part, array in (weights or {}).items():
            made[f"{part}_weights_file"] = f"{name}_{part}.weights"
            save_tensor(self.path / f"{name}_{part}.weights", array)
        self.layers.append(made)
        if expected is not None:
            self.outputs.append([f"{name}_0", f"out {name}"])
            self.expected[f"out {name}"] = np.asarray(getattr(expected, "array", expected))
        return f"{name}_0"

    def save(self) -> Path:
        text = {"inputs": [], "outputs": self.outputs, "layers": self.layers}
        (self.path / "model.json").write_text(json.dumps(text))
        return self.path


X, Y = draw((2, 9, 8, 7), 1), draw((2, 9, 8, 7), 2)
WINDOW = {"kernel_w": 3, "kernel_h": 2, "pad_w": 1, "pad_h": 0, "stride_x": 2, "stride_y": 1}
POOL = {"window_width": 3, "window_height": 2, "stride_x": 2, "stride_y": 3, "pad_w": 1, "pad_h": 0}


def every_kind(path: Path) -> Folder:
    """Return a folder with a layer of each kind, and what Chainer's functions give for it."""
    made = Folder(path)
    x, y = made.input("x", X.shape[1:]), made.input("y", Y.shape[1:])
    kernel, bias = draw((6, 9, 2, 3), 3), draw((6,), 4)
    turned = draw((9, 4, 2, 3), 5)
    weights = {"kernel": kernel, "bias": bias}
    window = {"stride": (1, 2), "pad": (0, 1)}
    made.layer(
        "Convolution2DFunction", x, F.convolution_2d(X, kernel, bias, dilate=(2, 1), **window),
        weights, dilation_x=1, dilation_y=2, **WINDOW,
    )  # fmt: skip
    made.layer(
        "Deconvolution2DFunction", x, F.deconvolution_2d(X, turned, bias[:4], **window),
        {"kernel": turned, "bias": bias[:4]}, **WINDOW,
    )  # fmt: skip
    parts = dict(zip(("gamma", "beta", "mean"), (draw((9,), i) for i in (6, 7, 8)), strict=True))
    parts["var"] = np.abs(draw((9,), 9)) + np.float32(0.5)
    normal = F.fixed_batch_normalization(X, *parts.values(), eps=1e-3)
    for kind in ("BatchNormalizationFunction", "BatchNormalization"):
        made.layer(kind, x, normal, parts, eps=1e-3)
    for n in (4, 5):
        local = F.local_response_normalization(X, n, 1.5, 2e-2, 0.7)
        made.layer("LocalResponseNormalization", x, local, n=n, k=1.5, alpha=2e-2, beta=0.7)
    made.layer("ReLU", x, F.relu(X))
    made.layer("Sigmoid", x, F.sigmoid(X))
    made.layer("Tanh", x, F.tanh(X))
    made.layer("LeakyReLU", x, F.leaky_relu(X, 0.3), slope=0.3)
    made.layer("Softmax", x, F.softmax(X, axis=1))
    made.layer("Concat", [x, y], F.concat([X, Y], axis=2), axis=1)
    copied = made.layer("Copy", x)
    made.layer("Dropout", copied, X, dropout_ratio=0.5)
    made.layer("Reshape", x, X.reshape(2, 72, 7), shape=[72, 7])
    made.layer("Transpose", x, X.transpose(0, 3, 1, 2), axes=[2, 0, 1])
    summed = made.layer("Sum", x, X.sum(1))
    one = made.layer("Reshape", summed, shape=[1, 8, 7])
    spread = np.broadcast_to(X.sum(1)[:, None], X.shape)
    made.layer("BroadcastTo", one, spread, in_shape=[1, 8, 7], out_shape=[9, 8, 7])
    slices = [[None, None, -2], -1, [5, 1, -1]]
    made.layer("GetItem", x, X[:, ::-2, -1, 5:1:-1], slices=slices)
    most = F.max_pooling_2d(X, (2, 3), (3, 2), (0, 1), cover_all=True)
    made.layer("MaxPooling2D", x, most, cover_all=True, **POOL)
    most = F.max_pooling_2d(X, (2, 3), (3, 2), (0, 1), cover_all=False)
    made.layer("MaxPooling2D", x, most, cover_all=False, **POOL)
    mean = F.average_pooling_2d(X, (2, 3), (3, 2), (0, 1))
    made.layer("AveragePooling2D", x, mean, cover_all=False, **POOL)
    wide, last = draw((5, 504), 10), draw((5,), 11)
    made.layer("LinearFunction", x, F.linear(X, wide, last), {"kernel": wide, "bias": last})
    pair = {"transa": False, "transb": True}
    made.layer("MatMul", [x, y], F.matmul(X, Y, transb=True), **pair)
    for kind, value in {"Add": X + Y, "Sub": X - Y, "Mul": X * Y, "Div": X / Y}.items():
        made.layer(kind, [x, y], value)
    made.layer("Maximum", [x, y], np.maximum(X, Y))
    made.layer("Minimum", [x, y], np.minimum(X, Y))
    five, same = np.float32([5]), draw((1, 9, 8, 7), 12)
    made.layer("AddConstant", x, X + five, {"constant": five})
    made.layer("MulConstant", x, X * same, {"constant": same})
    made.layer("SubFromConstant", x, same - X, {"constant": same})
    made.layer("DivFromConstant", x, five / X, {"constant": five})
    square = made.layer("Mul", [x, x])
    for name, value in (("exp", np.exp(X)), ("abs", np.abs(X)), ("neg", -X), ("recip", 1 / X)):
        made.layer("Unary", x, value, operation=name)
    for name, value in (("log", np.log(X * X)), ("sqrt", np.abs(X))):
        made.layer("Unary", square, value, operation=name)
    positive = made.layer("ReLU", x)
    made.layer("Where", [positive, x, y], np.where(X > 0, X, Y))
    made.layer("ArgMax", x, X.argmax(1).astype(np.float32), shape=[9, 8, 7])
    made.layer("LinearInterpolate", [x, y, x], X * Y + (1 - X) * X)
    size = {"n_channels": 9, "input_hw": [8, 7], "output_hw": [5, 12]}
    larger = F.resize_images(X, (5, 12))
    made.layer("ResizeImages", x, larger, **size)
    made.layer("ResizeArgmax", x, larger.array.argmax(1).astype(np.float32), **size)
    made.layer("Shift", x, F.shift(X, (3, 1), (2, 1)), kh=3, kw=1, dy=2, dx=1)
    for way, value in {
        "right": np.maximum.accumulate(X, 3),
        "left": np.maximum.accumulate(X[..., ::-1], 3)[..., ::-1],
        "bottom": np.maximum.accumulate(X, 2),
    }.items():
        made.layer("DirectedPooling", x, value, dir=way)
    top = np.maximum.accumulate(X[:, :, ::-1], 2)[:, :, ::-1]
    made.layer("CornerPooling", x, top, dir="top")
    return made


def test_every_kind_of_layer_gives_what_chainer_gives(tmp_path: Path) -> None:
    made = every_kind(tmp_path / "net")
    assert {layer["type"] for layer in made.layers} == {*KINDS, "input"}
    made.layers.reverse()  # the order of layers does not matter
    session = hagane.InferenceSession(read_retrieved(made.save()))
    names = [item.name for item in session.get_outputs()]
    for name, found in zip(names, session.run(None, {"x": X, "y": Y}), strict=True):
        expected = made.expected[name]
        assert found.shape == expected.shape, name
        np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-5, err_msg=name)


def small(path: Path) -> Folder:
    made = Folder(path)
    name = made.input("x", [3])
    constant = {"type": "ConstantInput", "name": "c", "output_names": ["c"], "rank": -1}
    made.layers.append({**constant, "shape": [3], "input_tensor": "c.tensor"})
    save_tensor(path / "c.tensor", np.float16([[1, 2, 3]]))
    made.layer("Add", [name, "c"], np.zeros(1))
    return made


def test_folders_run_and_build_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = small(tmp_path / "net").save()
    np.save(tmp_path / "x.npy", np.float32([[1, 1, 1], [2, 2, 2]]))
    with pytest.raises(SystemExit) as ended:
        main(["run", str(folder), "--input", f"x={tmp_path / 'x.npy'}", "--json"])
    assert ended.value.code == 0
    outputs = json.loads(capsys.readouterr().out)["outputs"]
    assert outputs["out Add-2"]["data"] == [[2, 3, 4], [3, 4, 5]]
    with pytest.raises(SystemExit) as ended:
        main(["build", str(folder), "-o", str(tmp_path / "b"), "--shape", "x=1..4,3"])
    assert ended.value.code == 0
    (found,) = hagane.load_built(tmp_path / "b").run(None, {"x": np.float32([[0, 0, 1]])})
    np.testing.assert_array_equal(found, [[1, 2, 4]])


def test_outputs_may_be_plain_names(tmp_path: Path) -> None:
    made = small(tmp_path / "net")
    made.outputs = ["Add-2_0"]
    (output,) = hagane.InferenceSession(read_retrieved(made.save())).get_outputs()
    assert output.name == "Add-2_0"


def test_folders_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    made = small(tmp_path / "net")
    made.layers[-1]["type"] = "Increment"
    with pytest.raises(UnsupportedModel, match="layer 'Add-2' is of the kind Increment; known are"):
        read_retrieved(made.save())
    made.layers[-1]["type"] = "Add"
    made.layers[-1]["sources"] = ["x", "nowhere"]
    with pytest.raises(InvalidModel, match="layer 'Add-2' reads 'nowhere', which no layer before"):
        read_retrieved(made.save())
    made.layers[-1]["sources"] = ["x", "c"]
    (made.path / "c.tensor").write_bytes(b"4\n1,3\n12345")
    with pytest.raises(InvalidModel, match=r"c.tensor' is damaged: expected a line with 2 or 4"):
        read_retrieved(made.save())
    (made.path / "c.tensor").unlink()
    with pytest.raises(NoSuchFile, match=r"no file '.*c.tensor', which model.json names"):
        read_retrieved(made.save())
    (made.path / "model.json").write_text('{"layers": [{}]}')
    with pytest.raises(InvalidModel, match="is no description by ModelRetriever, or is damaged"):
        read_retrieved(made.path)
    with pytest.raises(NoSuchFile, match=r"there is no file '.*model.json'"):
        read_retrieved(tmp_path)


def test_a_layer_that_does_not_fit_its_input_is_named(tmp_path: Path) -> None:
    made = Folder(tmp_path / "net")
    x = made.input("x", [4, 5])
    made.layer("MatMul", [x, x], np.zeros(1), transa=False, transb=False)
    with pytest.raises(InvalidModel, match=r"layer 'MatMul-1' \(MatMul\):"):
        read_retrieved(made.save())
