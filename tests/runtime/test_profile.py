"""Where the time of a model goes: kernels, their arithmetic, their share of the machine's peak."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import hagane
from hagane.cli import main
from hagane.errors import InvalidArgument
from tests.native.models import draw, model, session


def network() -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"], name="product"),
        helper.make_node("Relu", ["p"], ["r"], name="bound"),
        helper.make_node("Softmax", ["r"], ["y"], name="share"),
    ]
    return model(nodes, {"x": draw((64, 128))}, constants={"w": draw((128, 256), 1)}), {
        "x": draw((64, 128))
    }


def call(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 0


def test_kernels_are_reported_with_arithmetic_and_share_of_the_peak() -> None:
    proto, feed = network()
    report = session(proto, threads=1).profile(feed, runs=5)
    product = next(kernel for kernel in report.kernels if "product" in kernel.name)
    assert product.flops == 2 * 64 * 128 * 256
    assert product.engine == "native"
    assert 0 < product.share <= 1
    assert product.share == pytest.approx(product.flops / product.seconds / report.peak)
    assert report.runs == 5
    together = sum(kernel.seconds for kernel in report.kernels) + report.rest
    assert together == pytest.approx(report.seconds)


def test_without_a_feed_inputs_are_random() -> None:
    proto, _ = network()
    assert session(proto).profile(runs=1).kernels


def test_kernels_of_the_reference_engine_are_told_apart() -> None:
    proto, feed = network()
    report = session(proto, engine="reference").profile(feed, runs=2)
    assert [kernel.name for kernel in report.kernels] == [
        "MatMul 'product'", "Relu 'bound'", "Softmax 'share'",
    ]  # fmt: skip
    assert {kernel.engine for kernel in report.kernels} == {"reference"}


def test_a_report_is_a_table_and_a_trace(tmp_path: Path) -> None:
    proto, feed = network()
    report = session(proto).profile(feed, runs=2)
    lines = str(report).splitlines()
    assert "ms a run, mean of the faster half of 2; peak" in lines[0]
    assert len(lines) == 3 + len(report.kernels)
    assert lines[-1].endswith("between kernels")
    report.write(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())
    assert [event["name"] for event in events] == [kernel.name for kernel in report.kernels]
    assert all(event["ph"] == "X" and event["dur"] >= 0 for event in events)
    ends = [event["ts"] + event["dur"] for event in events]
    assert all(a <= b["ts"] + 1e-6 for a, b in zip(ends, events[1:], strict=False))


def test_sizes_that_are_open_are_asked_for() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    shapes: dict[str, list[int | str]] = {"x": ["n", 3]}
    made = session(model(nodes, {"x": draw((2, 3))}, shapes=shapes))
    with pytest.raises(InvalidArgument) as refused:
        made.profile()
    assert str(refused.value) == (
        "the model leaves sizes open, and its time depends on them: give an input_feed, or a "
        "number for each, shapes={'x': (n, 3)}"
    )
    (kernel,) = made.profile(shapes={"x": (5, 3)}).kernels
    assert kernel.flops == 15


@pytest.mark.parametrize("side", [30, 31])
def test_filters_that_are_transformed_count_the_products_that_are_done(side: int) -> None:
    """The definition takes 2.25 or 4 times as many."""
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])]
    feed = {"x": draw((1, 64, side, side))}
    proto = model(nodes, feed, constants={"w": draw((64, 64, 3, 3), 1)})
    report = session(proto, threads=1).profile(feed, runs=2)
    direct = 2 * 64 * 64 * 9 * side * side
    most = max(kernel.flops for kernel in report.kernels)
    tiles = {size: (-(-side // size)) ** 2 for size in (2, 4)}
    done = {2 * 64 * 64 * (size + 2) ** 2 * count for size, count in tiles.items()}
    assert most in done | {direct}
    assert all(kernel.share <= 1 for kernel in report.kernels)


def test_no_run_is_no_profile() -> None:
    proto, feed = network()
    with pytest.raises(InvalidArgument, match="expected one run or more, got 0"):
        session(proto).profile(feed, runs=0)


def test_a_loop_may_take_another_number_of_turns_each_time() -> None:
    body = helper.make_graph(
        [
            helper.make_node("Add", ["a", "a"], ["b"], name="double"),
            helper.make_node("Identity", ["go"], ["go_on"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("a", TensorProto.FLOAT, [2]),
        ],
        [
            helper.make_tensor_value_info("go_on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("b", TensorProto.FLOAT, [2]),
        ],
    )
    node = helper.make_node("Loop", ["n", "", "x"], ["y"], body=body, name="loop")
    feed = {"n": np.array(3), "x": np.float32([1, 2])}
    report = session(model([node], feed)).profile(feed, runs=2)
    assert report.kernels


def test_the_command_shows_the_profile_and_writes_the_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    proto, _ = network()
    onnx.save(proto, tmp_path / "model.onnx")
    trace = tmp_path / "trace.json"
    arguments = ["bench", str(tmp_path / "model.onnx"), "--profile", "--trace", str(trace)]
    call(arguments)
    shown = capsys.readouterr().out
    assert "of peak" in shown
    assert "MatMul+Relu 'product'" in shown
    assert json.loads(trace.read_text())
    call([*arguments, "--json"])
    assert json.loads(capsys.readouterr().out)["kernels"]


def test_the_public_interface_offers_it() -> None:
    assert hagane.InferenceSession.profile.__doc__
