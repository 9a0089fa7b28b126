"""Models of bytes: ranges by four methods, errors of layers, accuracy that is kept."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import hagane
from hagane.cli import main
from hagane.errors import InvalidArgument, NoSuchFile
from hagane.machine import cpu_features
from hagane.ship.quantize import METHODS, QuantizeOptions, Scheme, quantize
from hagane.ship.quantize.equalize import equalize
from hagane.ship.quantize.graph import Source
from hagane.ship.quantize.thresholds import (
    BINS,
    Observed,
    entropy_threshold,
    mse_threshold,
    percentile_threshold,
    range_of,
    spread,
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


def test_weights_that_nodes_turn_are_quantised(tmp_path: Path) -> None:
    nodes = [
        node("Transpose", ["w"], ["turned"], perm=[1, 0]),
        node("MatMul", ["x", "turned"], ["m"], "product"),
        node("Split", ["s"], ["low", "high"], axis=0, num_outputs=2),
        node("Concat", ["high", "low"], ["scale"], axis=0),
        node("Mul", ["m", "scale"], ["y"]),
    ]
    constants = {"w": draw((8, 12)), "s": draw((8,), 1)}
    case = make(nodes, {"x": (3, 12)}, ["y"], constants, {"x": draw((3, 12), 2)})
    feed = save(case, tmp_path / "m.onnx")
    report = quantize(tmp_path / "m.onnx", lambda: [feed], tmp_path / "q.onnx")
    assert [layer.name for layer in report.layers] == ["product"]
    graph = onnx.load(tmp_path / "q.onnx").graph
    assert not {"Transpose", "Split", "Concat"} & {each.op_type for each in graph.node}
    assert not {"w", "s"} & {item.name for item in graph.initializer}
    (expected,) = hagane.InferenceSession(tmp_path / "m.onnx").run(None, feed)
    assert snr(expected, hagane.InferenceSession(tmp_path / "q.onnx").run(None, feed)[0]) > 20


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


def test_levels_are_spread_over_bins_as_tensorrt_does() -> None:
    # The example of "8-bit Inference with TensorRT" (GTC 2017), 8 bins in 2 levels.
    counts = np.float64([1, 0, 2, 3, 5, 3, 1, 7])
    np.testing.assert_array_equal(spread(counts, 2), [2, 0, 2, 2, 4, 4, 4, 4])


def published(counts: np.ndarray, levels: int) -> int:
    """The threshold by the algorithm of that talk, step by step, where levels divide the bins."""
    best, found = np.inf, -1
    for i in range(levels, len(counts)):
        reference = counts[:i].copy()
        reference[i - 1] += counts[i:].sum()
        candidate = np.zeros(i)
        edges = [k * i // levels for k in range(levels + 1)]
        for low, high in itertools.pairwise(edges):
            filled = [k for k in range(low, high) if counts[k]]
            for k in filled:
                candidate[k] = counts[low:high].sum() / len(filled)
        p, q = reference / reference.sum(), candidate / candidate.sum()
        divergence = 0.0
        for a, b in zip(p, q, strict=True):
            divergence += 0.0 if a == 0 else np.inf if b == 0 else a * np.log(a / b)
        if divergence < best:
            best, found = divergence, i
    return found


@pytest.mark.parametrize("seed", range(4))
def test_entropy_thresholds_are_those_of_the_published_algorithm(seed: int) -> None:
    random = np.random.default_rng(seed)
    numbers = np.abs(random.standard_t(2 + seed, 3000))
    counts = np.histogram(numbers, 256, (0, numbers.max()))[0].astype(np.float64)
    assert entropy_threshold(counts, 32) == published(counts, 32)
    observed = Observed(0.0, 256.0, np.zeros(BINS, np.int64))
    observed.counts[:200], observed.counts[2000] = 1000, 1
    kept = entropy_threshold(observed.counts)
    assert range_of(observed, "entropy", 0.0) == (0.0, (kept + 0.5) * 256 / BINS)


def test_a_flat_histogram_keeps_most_of_its_range() -> None:
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
        "def other():\n    return [feeds[0], {'z': feeds[0]['x']}]\n"
        "def missing():\n    return [{}]\n"
        "def wide():\n    return [{'x': np.ones((8, 17), np.float32)}]\n"
        "def flat():\n    return [{'x': np.ones(16, np.float32)}]\n"
        "def double():\n    return [{'x': np.ones((8, 16))}]\n"
        "def number():\n    return 3\n"
        "def late():\n"
        "    spoilt = feeds[1]['x'].copy()\n    spoilt[3, 5] = -np.inf\n"
        "    return [feeds[0], {'x': spoilt}]\n"
    )
    return str(folder / "m.onnx"), str(folder / "data.py")


def test_layers_stay_in_fp32_until_accuracy_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, data = files(tmp_path)
    out, report = tmp_path / "q.onnx", tmp_path / "r.json"
    options = ["--data", f"{data}:make", "-o", str(out), "--report", str(report)]
    keep = ["--keep-accuracy", "0.01%", "--metric", f"{data}:metric"]
    with pytest.raises(SystemExit) as ended:
        main(["quantize", model, *options, *keep])
    assert ended.value.code == 0
    found = json.loads(report.read_text())
    assert found["metric"]["quantized"] >= 0.9999
    keys = {"name", "operator", "precision", "snr_db", "effect_db", "fp32_ms", "ms"}
    assert {*found["layers"][0]} == keys
    assert {layer["precision"] for layer in found["layers"]} <= {"int8", "fp32"}
    raised = [layer["effect_db"] for layer in found["layers"] if layer["precision"] == "fp32"]
    others = [layer["effect_db"] for layer in found["layers"] if layer["precision"] == "int8"]
    assert raised
    assert not others or max(raised) <= min(others)
    page = tmp_path / "r.html"
    with pytest.raises(SystemExit) as ended:
        main(["quantize", model, *options[:-1], str(page)])
    assert ended.value.code == 0
    assert "<td>second</td><td>MatMul</td><td>int8</td>" in page.read_text()
    assert "outputs" not in capsys.readouterr().out.splitlines()[-1]
    with pytest.raises(SystemExit) as ended:
        main(["quantize", model, *options, "--effects"])
    assert ended.value.code == 0
    effects = [line.split() for line in capsys.readouterr().out.splitlines() if "MatMul" in line]
    assert [line[2] for line in effects] == ["outputs", "outputs"]
    layers = json.loads(report.read_text())["layers"]
    assert all(5 < layer["effect_db"] < 80 for layer in layers)
    assert {layer["ms"] for layer in layers} == {None}


def test_a_report_has_the_time_of_each_layer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, data = files(tmp_path)
    page, report = tmp_path / "r.html", tmp_path / "r.json"
    for written in (page, report):
        options = ["--data", f"{data}:make", "-o", str(tmp_path / "q.onnx")]
        with pytest.raises(SystemExit) as ended:
            main(["quantize", model, *options, "--times", "--report", str(written)])
        assert ended.value.code == 0
    found = json.loads(report.read_text())
    for layer in found["layers"]:
        assert 0 < layer["fp32_ms"] <= found["ms"]["fp32"]
        assert 0 < layer["ms"] <= found["ms"]["quantized"]
    lines = capsys.readouterr().out.splitlines()
    assert sum(" ms  int8  MatMul " in line for line in lines) == 4
    assert "ms in fp32" in page.read_text()


@pytest.mark.parametrize(
    ("function", "text"),
    [
        ("empty", "data.py:empty gave no feed: calibration needs some"),
        ("constant", "input 'x' is 2 everywhere in all 2 feeds: calibrate with data as"),
        ("nan", "input 'x' of feed 0 has 128 numbers that are NaN or infinite: leave such feeds"),
        ("wrong", "expected a feed {input: array}, got int as number 0"),
        ("other", "data.py:other: feed 1: unknown input 'z'; the model takes: x: float32[8, 16]"),
        ("missing", "data.py:missing: feed 0: missing input 'x' (float32[8, 16])"),
        ("wide", "feed 0: input 'x': expected float32[8, 16], got float32[8, 17]: axis 1 has"),
        ("flat", "feed 0: input 'x': expected float32[8, 16] (2 axes), got float32[16] (1 axes)"),
        ("double", "got float64[8, 16]; convert it first, for instance with .astype('float32')"),
        ("number", "data.py:number: expected an iterable of feeds {input: array}, got int"),
        ("late", "input 'x' of feed 1 has 1 numbers that are NaN or infinite: leave such feeds"),
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


def test_data_without_numbers_or_without_an_end_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, made = tmp_path / "rows.onnx", tmp_path / "q.onnx"
    feed = save(CASES["any_batch"](), path)
    none = {"x": feed["x"][:0]}
    with pytest.raises(InvalidArgument, match="mine: none of 2 feeds has a number in it"):
        quantize(path, lambda: [none, none], made, where="mine")
    monkeypatch.setattr("hagane.ship.quantize.calibrate._MOST_FEEDS", 40)
    with pytest.raises(InvalidArgument, match="gave 41 feeds .* needs repeat=False"):
        quantize(path, lambda: itertools.repeat(feed), made)
    assert not made.exists()
    quantize(path, lambda: [none, feed], made)


def test_a_report_needs_a_folder_before_anything_is_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, data = files(tmp_path)
    words = ["quantize", model, "--data", f"{data}:make", "-o", str(tmp_path / "q.onnx")]
    with pytest.raises(SystemExit) as ended:
        main([*words, "--report", str(tmp_path / "none" / "r.json")])
    assert ended.value.code != 0
    assert "there is no folder" in capsys.readouterr().err
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


def chain(folder: Path) -> tuple[Path, Feeds]:
    """Write convolutions in a row whose channels differ by factors of hundreds."""
    first, deep = draw((8, 3, 3, 3), 1), draw((8, 1, 3, 3), 2)
    scales = np.logspace(-2, 2, 8).astype(np.float32)
    nodes = [
        node("Conv", ["x", "a", "ab"], ["c"], "first", pads=[1] * 4),
        node("Relu", ["c"], ["r"]),
        node("Conv", ["r", "d", "db"], ["e"], "deep", pads=[1] * 4, group=8),
        node("Relu", ["e"], ["s"]),
        node("Conv", ["s", "l"], ["y"], "last"),
    ]
    constants = {
        "a": first * scales.reshape(-1, 1, 1, 1), "ab": draw((8,), 4) * scales,
        "d": deep / scales.reshape(-1, 1, 1, 1), "db": draw((8,), 5),
        "l": draw((4, 8, 1, 1), 3),
    }  # fmt: skip
    found = [{"x": draw((1, 3, 10, 10), 20 + i)} for i in range(4)]
    case = make(nodes, {"x": (1, 3, 10, 10)}, ["y"], constants, found[0])
    save(case, folder / "chain.onnx")
    return folder / "chain.onnx", found


def outputs_snr(path: Path, made: Path, given: Feeds) -> float:
    before, after = hagane.InferenceSession(path), hagane.InferenceSession(made)
    pairs = [(before.run(None, feed)[0], after.run(None, feed)[0]) for feed in given]
    return snr(np.stack([a for a, _ in pairs]), np.stack([b for _, b in pairs]))


def test_equalisation_lets_one_scale_fit_all_channels(tmp_path: Path) -> None:
    path, given = chain(tmp_path)
    found = []
    for balanced in (False, True):
        options = QuantizeOptions(scheme=Scheme(per_channel=False), equalize=balanced)
        quantize(path, lambda: given, tmp_path / "q.onnx", options)
        found.append(outputs_snr(path, tmp_path / "q.onnx", given))
    assert found[1] > found[0] + 10
    assert found[1] > 25


def test_equalisation_alone_leaves_the_outputs(tmp_path: Path) -> None:
    path, given = chain(tmp_path)
    source = Source(path)
    assert equalize(source) == 2
    weights = [source.constants[name] for name in ("a", "d")]
    reach = [np.abs(w).reshape(8, -1).max(1) for w in weights]
    assert reach[0].max() / reach[0].min() < 10
    (expected,) = hagane.InferenceSession(path).run(None, given[0])
    (found,) = hagane.InferenceSession(source.model).run(None, given[0])
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("before", ["LayerNormalization", "Relu"])
def test_outliers_of_activations_go_into_weights(tmp_path: Path, before: str) -> None:
    outliers = np.ones(32, np.float32)
    outliers[[3, 7]] = 200
    head = (
        node("LayerNormalization", ["x", "s", "b"], ["n"])
        if before == "LayerNormalization"
        else node("Mul", ["x", "s"], ["n"])
    )
    nodes = [
        head,
        node("MatMul", ["n", "p"], ["q"], "one"),
        node("MatMul", ["n", "r"], ["y"], "two"),
    ]
    weights = {"p": draw((32, 8), 1), "r": draw((32, 8), 2)}
    constants = {"s": outliers, **({"b": draw((32,), 3)} if len(head.input) > 2 else {}), **weights}
    given = [{"x": draw((2, 5, 32), 30 + i)} for i in range(4)]
    save(make(nodes, {"x": (2, 5, 32)}, ["q", "y"], constants, given[0]), tmp_path / "m.onnx")
    found = []
    for strength in (None, 0.5):
        options = QuantizeOptions(smooth=strength)
        report = quantize(tmp_path / "m.onnx", lambda: given, tmp_path / "q.onnx", options)
        found.append(min(layer.snr_db for layer in report.layers if layer.snr_db is not None))
    assert found[1] > found[0]
    operators = [each.op_type for each in onnx.load(tmp_path / "q.onnx").graph.node]
    # A normalisation takes the factors itself.
    assert operators.count("Mul") == (0 if before == "LayerNormalization" else 2)
    assert outputs_snr(tmp_path / "m.onnx", tmp_path / "q.onnx", given) > 25


def test_biases_make_up_for_mean_errors(tmp_path: Path) -> None:
    path, made = tmp_path / "m.onnx", tmp_path / "q.onnx"
    nodes = [
        node("MatMul", ["x", "w"], ["m"], "one"),
        node("Add", ["m", "b"], ["a"]),
        node("Gemm", ["a", "v"], ["y"], "two"),
    ]
    constants = {"w": np.abs(draw((24, 16), 1)), "b": draw((16,), 2), "v": np.abs(draw((16, 6), 3))}
    given = [{"x": 3 + draw((40, 24), 40 + i)} for i in range(3)]
    save(make(nodes, {"x": (40, 24)}, ["y"], constants, given[0]), path)
    means = []
    for correct in (False, True):
        scheme = Scheme(per_channel=False)
        quantize(path, lambda: given, made, QuantizeOptions(scheme=scheme, correct_bias=correct))
        before, after = hagane.InferenceSession(path), hagane.InferenceSession(made)
        errors = [after.run(None, f)[0] - before.run(None, f)[0] for f in given]
        means.append(float(np.abs(np.concatenate(errors).mean(0)).max()))
    assert means[1] < 0.7 * means[0]


@pytest.mark.parametrize(
    ("scheme", "least"),
    [
        (Scheme(dynamic=True), 25),
        (Scheme(dynamic=True, per_channel=False), 20),
        (Scheme(weights_only=True, bits=4), 12),
        (Scheme(weights_only=True, bits=4, block=16), 13),
    ],
)
@pytest.mark.parametrize("case", ["images", "attention"])
def test_forms_without_ranges_need_no_data(
    tmp_path: Path, scheme: Scheme, least: float, case: str
) -> None:
    path, made = tmp_path / "m.onnx", tmp_path / "q.onnx"
    feed = save(CASES[case](), path)
    report = quantize(path, None, made, QuantizeOptions(scheme=scheme))
    assert {layer.snr_db for layer in report.layers} == {None}
    (expected,) = hagane.InferenceSession(path).run(None, feed)
    (found,) = hagane.InferenceSession(made).run(None, feed)
    (theirs,) = onnxruntime.InferenceSession(made).run(None, feed)
    assert snr(expected, found) > least
    # Without VNNI, ONNX Runtime cuts sums of two products of bytes off at 16 bits.
    assert snr(theirs, found) > (30 if "avx512_vnni" in cpu_features() else 10)


def test_weights_of_recurrent_layers_become_bytes(tmp_path: Path) -> None:
    path, made = tmp_path / "m.onnx", tmp_path / "q.onnx"
    feed = save(CASES["recurrent"](), path)
    report = quantize(path, lambda: [feed], made)
    assert "LSTM" in {layer.operator for layer in report.layers}
    weights = {item.data_type for item in onnx.load(made).graph.initializer}
    assert onnx.TensorProto.INT8 in weights
    assert outputs_snr(path, made, [feed]) > 30


@pytest.mark.parametrize("per_channel", [True, False])
def test_an_lstm_rounds_inputs_and_states_in_each_run(tmp_path: Path, per_channel: bool) -> None:
    path, made = tmp_path / "m.onnx", tmp_path / "q.onnx"
    nodes = [
        node("LSTM", ["x", "w", "r", "b"], ["y", "h"], direction="bidirectional", hidden_size=24)
    ]
    constants = {
        "w": draw((2, 96, 10), 1) / 3,
        "r": draw((2, 96, 24), 2) / 5,
        "b": draw((2, 192), 3),
    }
    feed = save(
        make(nodes, {"x": (7, 3, 10)}, ["y", "h"], constants, {"x": draw((7, 3, 10))}), path
    )
    scheme = Scheme(dynamic=True, per_channel=per_channel)
    report = quantize(path, None, made, QuantizeOptions(scheme=scheme))
    assert [layer.precision for layer in report.layers] == ["int8"]
    assert [each.op_type for each in onnx.load(made).graph.node] == ["DynamicQuantizeLSTM"]
    expected = hagane.InferenceSession(path).run(None, feed)
    found = hagane.InferenceSession(made).run(None, feed)
    theirs = onnxruntime.InferenceSession(made).run(None, feed)
    for plain, ours, other in zip(expected, found, theirs, strict=True):
        assert snr(plain, ours) > 25
        assert snr(other, ours) > (30 if "avx512_vnni" in cpu_features() else 10)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (QuantizeOptions(), "rounding activations .* needs --data FILE.py:make"),
        (QuantizeOptions(scheme=Scheme(dynamic=True), smooth=0.5), "--smooth needs --data"),
        (QuantizeOptions(scheme=Scheme(bits=4)), "--bits 4 needs --weights-only"),
        (QuantizeOptions(scheme=Scheme(dynamic=True, weights_only=True)), "choose one of them"),
        (QuantizeOptions(percentile=200), "--percentile: expected more than 0 and at most 100"),
        (
            QuantizeOptions(scheme=Scheme(weights_only=True, bits=3)),
            "--bits: expected 8 or 4, got 3",
        ),
        (
            QuantizeOptions(scheme=Scheme(dynamic=True, block=24)),
            "--block: expected a power of two",
        ),
        (QuantizeOptions(scheme=Scheme(dynamic=True), smooth=2), "expected a number from 0 to 1"),
    ],
)
def test_forms_that_do_not_fit_are_refused(
    tmp_path: Path, options: QuantizeOptions, text: str
) -> None:
    path = tmp_path / "images.onnx"
    save(CASES["images"](), path)
    with pytest.raises(InvalidArgument, match=text):
        quantize(path, None, tmp_path / "q.onnx", options)


@pytest.mark.long
@pytest.mark.parametrize(
    "options",
    [
        QuantizeOptions(correct_bias=True, keep_accuracy=0.0),
        QuantizeOptions(correct_bias=True, fit_rounding=True, smooth=0.5, keep_accuracy=0.0),
    ],
)
@pytest.mark.parametrize("case", ["images", "attention"])
def test_layers_in_fp32_are_what_they_were(
    tmp_path: Path, options: QuantizeOptions, case: str
) -> None:
    path, made = tmp_path / "m.onnx", tmp_path / "q.onnx"
    feed = save(CASES[case](), path)
    (expected,) = hagane.InferenceSession(path).run(None, feed)

    def agreement(run: Callable[[dict[str, np.ndarray]], list[np.ndarray]]) -> float:
        return float(np.allclose(run(feed)[0], expected, rtol=1e-4, atol=1e-5))

    report = quantize(path, lambda: [feed], made, options, metric=agreement)
    assert report.metric == (1.0, 1.0)
    assert {layer.precision for layer in report.layers} == {"fp32"}


def test_metrics_that_return_no_number_and_folders_that_are_not_there_are_named(
    tmp_path: Path,
) -> None:
    path = tmp_path / "m.onnx"
    feed = save(CASES["images"](), path)
    options = QuantizeOptions(keep_accuracy=0.01)
    with pytest.raises(InvalidArgument, match="--metric: expected a number, .* got str"):
        quantize(path, lambda: [feed], tmp_path / "q.onnx", options, metric=lambda run: "good")
    with pytest.raises(NoSuchFile, match="there is no folder"):
        quantize(path, lambda: [feed], tmp_path / "no" / "q.onnx")
