"""``hagane inspect --c`` and ``--asm``: the code of a model's kernels."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from hagane.machine import NoCompiler, best_level, find_compiler
from hagane.native.c import c_source
from hagane.native.run import disassemble
from hagane.native.run.engine import HEADER, KERNEL_FLAGS
from tests.cli.test_commands import call
from tests.native.models import draw
from tests.native.models import model as model_of

HOSTILE = "a */ int evil(void); /* \n #include <x.h>"


def network(conv: str = "conv1") -> onnx.ModelProto:
    """Return two convolutions of equal sizes, a sum of them, and an operator without a kernel."""
    constants = {f"w{i}": draw((8, 8, 3, 3), i) for i in range(2)} | {"b": draw((8,), 3)}
    nodes = [
        helper.make_node("Conv", ["x", "w0", "b"], ["a"], conv, strides=[2, 2], pads=[1] * 4),
        helper.make_node("Relu", ["a"], ["r"], "relu1"),
        helper.make_node("Conv", ["x", "w1", "b"], ["c"], "conv2", strides=[2, 2], pads=[1] * 4),
        helper.make_node("Relu", ["c"], ["d"], "relu2"),
        helper.make_node("Mul", ["r", "d"], ["y"], "times"),
        helper.make_node("Bernoulli", ["q"], ["z"], "drawn"),
    ]
    feed = {"x": draw((1, 8, 12, 12)), "q": np.eye(3, dtype=np.float32)}
    return model_of(nodes, feed, ["y", "z"], constants)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "net.onnx"
    onnx.save(network(), path)
    return path


def test_kernels_are_headed_by_nodes_and_shapes_and_named_by_sizes(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, _ = call(capsys, "inspect", model, "--c")
    assert status == 0
    heading = out[out.index("/* Conv+Relu 'conv1'") :]
    first, conv, relu, *_ = heading.splitlines()
    assert conv.startswith(" *   Conv 'conv1': x float32[1, 8, 12, 12], w0 float32[8, 8, 3, 3], b ")
    assert conv.endswith("-> a float32[1, 8, 6, 6]")
    assert relu == " *   Relu 'relu1': a float32[1, 8, 6, 6] -> r float32[1, 8, 6, 6]"
    assert first == "/* Conv+Relu 'conv1'"
    assert re.search(r"^void conv_3x3_stride2_6x6x8_relu_[0-9a-f]{8}\(", heading, re.MULTILINE)
    assert " *   P[0] reads 'x', " in heading
    assert re.search(r"^ \*   tasks: \d+ \*/$", heading, re.MULTILINE)


def test_equal_kernels_are_one_function(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = call(capsys, "inspect", model, "--c")
    after = out[out.index("/* Conv+Relu 'conv2'") :]
    assert re.search(r"^/\* the function conv_3x3_stride2_6x6x8_relu_\w+ above \*/$", after, re.M)
    assert len(re.findall(r"^void conv_3x3_stride2", out, re.MULTILINE)) == 1


@pytest.mark.parametrize("option", ["--c", "--asm"])
@pytest.mark.parametrize("wanted", ["relu2", "d"])
def test_a_node_or_its_value_chooses_the_kernels_that_compute_it(
    model: Path, option: str, wanted: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, _ = call(capsys, "inspect", model, option, wanted)
    assert status == 0
    assert "Conv+Relu 'conv2'" in out
    assert "'conv1'" not in out


def test_the_listed_c_is_what_is_compiled(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The listing compiles, and names of a hostile model stay in its comments."""
    onnx.save(network(HOSTILE), model)
    _, out, _ = call(capsys, "inspect", model, "--c")
    code = re.sub(r"/\*.*?\*/", "", out, flags=re.DOTALL)
    assert "evil" in out
    assert "evil" not in code
    assert "#include" not in code
    source, made = tmp_path / "listed.c", tmp_path / "listed.s"
    source.write_text(c_source(*HEADER) + out, encoding="utf-8")
    find_compiler().translate(source, made, (*KERNEL_FLAGS, *best_level().flags, "-O0"))
    functions = re.findall(r"^void (\w+)\(", code, re.MULTILINE)
    assert len(functions) >= 4
    assembly = made.read_text(encoding="utf-8")
    assert all(f"{function}:" in assembly for function in functions)


@pytest.mark.parametrize("option", ["--c", "--asm"])
def test_a_wrong_node_is_refused_with_names_like_it(
    model: Path, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, error = call(capsys, "inspect", model, option, "cnv2")
    assert status != 0
    assert not out
    text = " ".join(error.split())
    assert "no kernel computes a node 'cnv2'; near names: 'conv2', 'conv1'" in text
    assert "`hagane inspect MODEL --passes` tells" in text


def test_a_node_on_its_reference_kernel_is_refused_with_the_reason(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, error = call(capsys, "inspect", model, "--c", "drawn")
    assert status != 0
    text = " ".join(error.split())
    assert "node 'drawn' (Bernoulli) has no native kernel: there is no kernel for it" in text


def test_a_node_without_an_option_is_refused(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, error = call(capsys, "inspect", model, "conv1")
    assert status != 0
    text = " ".join(error.split())
    assert "the node 'conv1' is asked for: expected --c or --asm with it" in text


@pytest.mark.skipif(shutil.which("objdump") is None, reason="no objdump on this machine")
def test_machine_code_comes_from_objdump(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = call(capsys, "inspect", model, "--asm", "times")
    assert status == 0
    assert "# Mul 'times'" in out
    lines = out[out.index("\nmul_") :].splitlines()
    assert re.fullmatch(r"mul_[\dx]+_[0-9a-f]{8}:", lines[1])
    assert re.fullmatch(r" +0  \S.*", lines[2])
    assert any(re.search(r"\bret", line) for line in lines)


def _hide_objdump(monkeypatch: pytest.MonkeyPatch) -> None:
    found = shutil.which

    def hidden(name: str, *rest: Any, **named: Any) -> str | None:
        return None if name == "objdump" else found(name, *rest, **named)

    monkeypatch.setattr(disassemble.shutil, "which", hidden)


def test_without_objdump_the_compiler_writes_the_machine_code(
    model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _hide_objdump(monkeypatch)
    status, out, _ = call(capsys, "inspect", model, "--asm", "times")
    assert status == 0
    assert re.search(r"^mul_\w+:$", out, re.MULTILINE)
    assert "\tret" in out


def test_without_any_compiler_machine_code_is_refused(
    model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise NoCompiler("found no C compiler: install gcc")

    _hide_objdump(monkeypatch)
    monkeypatch.setattr(disassemble, "find_compiler", refuse)
    status, _, error = call(capsys, "inspect", model, "--asm", "times")
    assert status != 0
    assert "found no C compiler: install gcc" in " ".join(error.split())


def test_a_model_without_kernels_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    feed = {"q": np.eye(3, dtype=np.float32)}
    path = tmp_path / "drawn.onnx"
    node = helper.make_node("Bernoulli", ["q"], ["z"], "drawn")
    onnx.save(model_of([node], feed, ["z"]), path)
    for option, mark in (("--c", "/* "), ("--asm", "# ")):
        status, out, _ = call(capsys, "inspect", path, option)
        assert status == 0
        assert out.startswith(f"{mark}No node of this model is compiled.")


def test_loops_are_listed_with_the_kernels_of_their_bodies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["going"], ["goes"], "keep"),
            helper.make_node("Sin", ["before"], ["after"], "inside"),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", onnx.TensorProto.INT64, []),
            helper.make_tensor_value_info("going", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("before", onnx.TensorProto.FLOAT, [5]),
        ],
        [
            helper.make_tensor_value_info("goes", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("after", onnx.TensorProto.FLOAT, [5]),
        ],
    )
    nodes = [helper.make_node("Loop", ["n", "", "x"], ["y"], "loop", body=body)]
    proto = model_of(nodes, {"x": draw((5,))}, ["y"], {"n": np.array(3)})
    path = tmp_path / "loop.onnx"
    onnx.save(proto, path)
    _, out, _ = call(capsys, "inspect", path, "--c")
    assert "/* Loop 'loop'\n * the engine runs the kernels that follow, up to the end" in out
    assert " *   Sin 'inside': before float32[5] -> after float32[5]" in out
    _, out, _ = call(capsys, "inspect", path, "--c", "inside")
    assert "void sin_5_" in out
