"""Nodes keep the file, the line and the calls that they came from."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
import torch
from typer.testing import CliRunner

import hagane
from hagane.cli import build_app
from hagane.errors import KernelError
from hagane.graph import save
from hagane.graph.places import CALLS, PLACE, place_of, short
from hagane.ops import infer_types
from hagane.passes import optimize
from tests.native.models import session as session_of

FILE = str(Path(__file__).resolve())


def line_with(text: str) -> int:
    """Return the line of this file that holds a comment."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(n for n, line in enumerate(lines, 1) if line.endswith(f"# {text}"))


def row(table: Any, index: Any) -> Any:
    return table[index]  # the row


def read(table: Any, index: Any) -> Any:
    found = row(table, index)  # the call
    return np.exp(found) * 2  # the result


def normalised(x: Any) -> Any:
    middle = x - x.mean(-1, keepdims=True)  # the middle
    return middle / np.sqrt((middle * middle).mean(-1, keepdims=True) + 1e-5)  # the quotient


def gated(x: Any) -> Any:
    return x * torch.sigmoid(x)  # the gate


def captured() -> ir.Model:
    return hagane.capture(read, "float32[n, 3]", "int64[k]")


def test_a_node_has_its_line_and_the_calls_that_led_there() -> None:
    gather = next(node for node in captured().graph if node.op_type == "Gather")
    assert gather.metadata_props[PLACE].startswith(f"{FILE}:{line_with('the row')}:")
    assert gather.metadata_props[CALLS] == f"{FILE}:{line_with('the call')}"
    called = f"called from test_places.py:{line_with('the call')}"
    assert place_of(gather) == f"{FILE}:{line_with('the row')}, {called}"
    exp = next(node for node in captured().graph if node.op_type == "Exp")
    assert CALLS not in exp.metadata_props


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_an_error_at_run_time_names_the_line_and_the_call(engine: str) -> None:
    session = session_of(captured(), engine=engine)
    with pytest.raises(KernelError) as caught:
        session.run(None, {"table": np.ones((2, 3), "f"), "index": np.array([5])})
    line, call = line_with("the row"), line_with("the call")
    assert f"({FILE}:{line}, called from test_places.py:{call}) failed" in str(caught.value)


def test_profiles_name_the_line_of_each_kernel() -> None:
    session = hagane.InferenceSession(captured())
    feeds = {"table": np.ones((2, 3), "f"), "index": np.array([1])}
    report = session.profile(feeds, runs=2)
    assert any(k.place.startswith(f"{FILE}:{line_with('the row')},") for k in report.kernels)
    assert f"test_places.py:{line_with('the row')}" in str(report)
    assert any("place" in event["args"] for event in report.trace())


def test_inspect_shows_lines_in_passes_text_json_and_drawings(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    save(hagane.capture(normalised, "float32[n, 8]"), path)

    def shown(*arguments: str) -> str:
        result = CliRunner().invoke(build_app("inspect"), ["inspect", str(path), *arguments])
        assert result.exit_code == 0, result.output
        return result.output

    middle, quotient = line_with("the middle"), line_with("the quotient")
    assert f"(test_places.py:{quotient})" in shown("--passes")
    assert f"# {FILE}:{middle}" in shown("--text")
    assert f"{FILE}:{middle}" in json.loads(shown("--json"))["places"].values()
    for name in ("model.svg", "model.html"):
        shown("--graph", str(tmp_path / name))
        assert f"<title>{FILE}:{quotient}</title>" in (tmp_path / name).read_text()
    assert f"{FILE}:{quotient}" in shown("--c")


def test_nodes_that_passes_make_have_the_place_of_those_that_they_replace() -> None:
    model = hagane.capture(gated, "float32[n, 8]")
    types = infer_types(model)
    optimize(model.graph, types)
    (swish,) = (node for node in model.graph if node.op_type == "Swish")
    assert place_of(swish) == f"{FILE}:{line_with('the gate')}"


def test_a_place_is_shortened_to_the_name_of_its_file() -> None:
    assert short("/a/b/model.py:12") == "model.py:12"
    assert short(inspect.getfile(read)) == "test_places.py"
