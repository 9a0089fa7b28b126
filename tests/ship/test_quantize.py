"""Models of bytes: ranges by four methods, errors of layers, accuracy that is kept."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import hagane
from hagane.cli import main
from hagane.errors import InvalidArgument
from hagane.ship.quantize import METHODS, QuantizeOptions, Scheme, quantize
from hagane.ship.quantize.thresholds import (
    entropy_threshold,
    mse_threshold,
    percentile_threshold,
)
from tests.native.models import draw
from tests.ship.models import CASES, make, node, save

Feeds = list[dict[str, np.ndarray]]


def feeds(count: int = 4) -> Feeds:
    return [{"x": draw((2, 3, 12, 10), 10 + i)} for i in range(count)]


def snr(expected: np.ndarray, found: np.ndarray) -> float:
    error = float(np.sum((expected - found) ** 2))
    return float(10 * np.log10(np.sum(expected**2) / error)) if error else float(np.inf)


@pytest.mark.parametrize("method", METHODS)
def test_a_model_of_bytes_is_close_and_runs_in_onnx_runtime(tmp_path: Path, method: str) -> None:
    path, made = tmp_path / "images.onnx", tmp_path / "bytes.onnx"
    save(CASES["images"](), path)
    report = quantize(path, feeds, made, QuantizeOptions(method))
    model = onnx.load(made)
    onnx.checker.check_model(onnx.shape_inference.infer_shapes(model), full_check=True)
    assert {layer.operator for layer in report.layers} == {"Conv", "Gemm"}
    assert all(layer.snr_db is None or layer.snr_db > 15 for layer in report.layers)
    (feed,) = feeds(1)
    (expected,) = hagane.InferenceSession(path).run(None, feed)
    (found,) = hagane.InferenceSession(made).run(None, feed)
    (theirs,) = onnxruntime.InferenceSession(made).run(None, feed)
    assert snr(expected, found) > 15
    assert snr(theirs, found) > 25


@pytest.mark.parametrize(
    "scheme", [Scheme(per_channel=False), Scheme(symmetric=True), Scheme(weights_only=True)]
)
def test_schemes_are_close_and_run_in_onnx_runtime(tmp_path: Path, scheme: Scheme) -> None:
    path, made = tmp_path / "images.onnx", tmp_path / "bytes.onnx"
    save(CASES["images"](), path)
    quantize(path, feeds, made, QuantizeOptions(scheme=scheme))
    (feed,) = feeds(1)
    (expected,) = hagane.InferenceSession(path).run(None, feed)
    for found in (
        hagane.InferenceSession(made).run(None, feed)[0],
        onnxruntime.InferenceSession(made).run(None, feed)[0],
    ):
        assert snr(expected, found) > 15


def test_products_of_a_transformer_are_quantised(tmp_path: Path) -> None:
    path, made = tmp_path / "attention.onnx", tmp_path / "bytes.onnx"
    model, feed = CASES["attention"]()
    onnx.save(model, path)
    report = quantize(path, lambda: [feed], made)
    assert [layer.operator for layer in report.layers] == ["MatMul"] * 4
    (expected,) = hagane.InferenceSession(path).run(None, feed)
    assert snr(expected, hagane.InferenceSession(made).run(None, feed)[0]) > 20


def test_normalisations_go_into_convolutions(tmp_path: Path) -> None:
    nodes = [
        node("Conv", ["x", "w"], ["c"], "conv"),
        node("BatchNormalization", ["c", "s", "b", "m", "v"], ["n"]),
        node("Relu", ["n"], ["y"]),
    ]
    constants = {"w": draw((8, 3, 3, 3)), "s": draw((8,), 1), "b": draw((8,), 2)}
    constants |= {"m": draw((8,), 3), "v": np.abs(draw((8,), 4)) + 0.5}
    case = make(nodes, {"x": (1, 3, 8, 8)}, ["y"], constants, {"x": draw((1, 3, 8, 8))})
    feed = save(case, tmp_path / "m.onnx")
    quantize(tmp_path / "m.onnx", lambda: [feed], tmp_path / "q.onnx")
    operators = {each.op_type for each in onnx.load(tmp_path / "q.onnx").graph.node}
    assert "BatchNormalization" not in operators
    (expected,) = hagane.InferenceSession(tmp_path / "m.onnx").run(None, feed)
    assert snr(expected, hagane.InferenceSession(tmp_path / "q.onnx").run(None, feed)[0]) > 25


def test_the_entropy_threshold_cuts_a_long_tail() -> None:
    counts = np.zeros(2048)
    counts[:256] = 1000 * np.exp(-np.arange(256) / 60)
    counts[2000] = 1
    assert 128 <= entropy_threshold(counts) < 400
    assert entropy_threshold(np.ones(128)) == 128
    flat = np.ones(2048)
    assert entropy_threshold(flat) > 1900


def test_percentile_and_squared_error_cut_outliers() -> None:
    counts = np.zeros(1000)
    counts[:100] = 100
    counts[999] = 1
    assert percentile_threshold(counts, 99.9) == 100
    assert percentile_threshold(counts, 100) == 1000
    assert 90 <= mse_threshold(counts) < 999
    assert mse_threshold(np.ones(1000)) > 900


def files(folder: Path) -> tuple[str, str]:
    """Write a model whose one layer suffers from bytes, data and a metric; return their options."""
    harsh = draw((16, 16), 1)
    harsh[0] *= 3000  # one input channel that is small counts for as much as the others
    nodes = [
        node("MatMul", ["x", "fine"], ["a"], "first"),
        node("Relu", ["a"], ["b"]),
        node("MatMul", ["b", "harsh"], ["y"], "second"),
    ]
    case = make(
        nodes, {"x": (8, 16)}, ["y"], {"fine": draw((16, 16)), "harsh": harsh}, {"x": draw((8, 16))}
    )
    save(case, folder / "m.onnx")
    (folder / "data.py").write_text(
        "import numpy as np\n"
        "import hagane\n"
        "rng = np.random.default_rng(0)\n"
        "feeds = [{'x': rng.standard_normal((8, 16)).astype(np.float32)} for _ in range(3)]\n"
        "def make():\n    yield from feeds\n"
        f"session = hagane.InferenceSession({str(folder / 'm.onnx')!r})\n"
        "def metric(run):\n"
        "    pairs = [(session.run(None, f)[0], run(f)[0]) for f in feeds]\n"
        "    lost = sum(abs(a - b).mean() for a, b in pairs)\n"
        "    return 1 - lost / sum(abs(a).mean() for a, _ in pairs)\n"
        "def empty():\n    return []\n"
        "def constant():\n    return [{'x': np.full((8, 16), 2, np.float32)}] * 2\n"
        "def nan():\n    return [{'x': np.full((8, 16), np.nan, np.float32)}]\n"
        "def wrong():\n    return [3]\n"
    )
    return str(folder / "m.onnx"), str(folder / "data.py")


def test_layers_stay_in_fp32_until_accuracy_is_kept(tmp_path: Path) -> None:
    model, data = files(tmp_path)
    out, report = tmp_path / "q.onnx", tmp_path / "r.json"
    options = ["--data", f"{data}:make", "-o", str(out), "--report", str(report)]
    keep = ["--keep-accuracy", "0.01%", "--metric", f"{data}:metric"]
    with pytest.raises(SystemExit) as ended:
        main(["quantize", model, *options, *keep])
    assert ended.value.code == 0
    found = json.loads(report.read_text())
    assert found["metric"]["quantized"] >= 0.9999
    assert {*found["layers"][0]} == {"name", "operator", "precision", "snr_db"}
    assert {layer["precision"] for layer in found["layers"]} <= {"int8", "fp32"}
    raised = [layer["snr_db"] for layer in found["layers"] if layer["precision"] == "fp32"]
    others = [layer["snr_db"] for layer in found["layers"] if layer["precision"] == "int8"]
    assert raised
    assert not others or max(raised) <= min(others)
    page = tmp_path / "r.html"
    with pytest.raises(SystemExit) as ended:
        main(["quantize", model, *options[:-1], str(page)])
    assert ended.value.code == 0
    assert "<td>second</td><td>MatMul</td><td>int8</td>" in page.read_text()


@pytest.mark.parametrize(
    ("function", "text"),
    [
        ("empty", "data.py:empty gave no feed: calibration needs some"),
        ("constant", "input 'x' is 2 everywhere in all 2 feeds: calibrate with data as"),
        ("nan", "input 'x' of feed 0 has 128 numbers that are NaN or infinite: leave such feeds"),
        ("wrong", "expected a feed {input: array}, got int as number 0"),
        ("none", "has no function 'none'"),
    ],
)
def test_data_that_cannot_calibrate_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], function: str, text: str
) -> None:
    model, data = files(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["quantize", model, "--data", f"{data}:{function}", "-o", str(tmp_path / "q.onnx")])
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert text in error
    assert error.count("\n") == 1
    assert not (tmp_path / "q.onnx").exists()


def test_options_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "images.onnx"
    save(CASES["images"](), path)
    with pytest.raises(InvalidArgument, match="expected one of minmax, entropy, percentile, mse"):
        quantize(path, feeds, tmp_path / "q.onnx", QuantizeOptions("best"))
    with pytest.raises(InvalidArgument, match="--keep-accuracy needs --metric"):
        quantize(path, feeds, tmp_path / "q.onnx", QuantizeOptions(keep_accuracy=0.1))


def test_a_model_of_bytes_builds(tmp_path: Path) -> None:
    from hagane.ship import build_model

    path, made = tmp_path / "images.onnx", tmp_path / "bytes.onnx"
    save(CASES["images"](), path)
    quantize(path, feeds, made)
    build_model(made, tmp_path / "b")
    (feed,) = feeds(1)
    (expected,) = hagane.InferenceSession(made).run(None, feed)
    np.testing.assert_array_equal(hagane.load_built(tmp_path / "b").run(None, feed)[0], expected)
