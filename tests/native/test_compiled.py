"""Compiled parts as data: written by one process, loaded by another, weights replaced."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import hagane.native
from hagane.errors import InvalidArgument, InvalidModel, NoSuchFile, UnsupportedModel
from hagane.machine import best_level
from hagane.native import Compiled, Target, load_compiled, save_compiled
from hagane.native.plan import partition
from hagane.native.rules.packings import OF_ONE_PROCESS, PACKINGS
from hagane.native.run.loaded import Loaded
from hagane.runtime import pipeline
from hagane.runtime.backends import NativeBackend, NativePart
from hagane.runtime.settings import Settings
from tests.native.models import draw, model


def compiled(proto: onnx.ModelProto, **options: Any) -> Compiled:
    """Return the one part of a model as it is, without passes."""
    found = pipeline.read(proto, Settings())
    settings = Settings((NativeBackend(Target(best_level(), 2)),), optimize=False)
    built = pipeline.build(found.model, found.types, settings, ready=False)
    (part,) = built.program.parts()
    assert isinstance(part, NativePart)
    return part.compile(**options)


def images(w: np.ndarray, b: np.ndarray) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1] * 4),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "g"], ["y"], transB=1),
    ]
    feed = {"x": draw((2, 20, 13, 11))}
    constants = {"w": w, "b": b, "g": draw((7, len(w)), 9)}
    return model(nodes, feed, constants=constants), feed


def convolution() -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    return images(draw((40, 20, 3, 3), 1), draw((40,), 2))


def depthwise() -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], group=20, pads=[1] * 4),
        helper.make_node("Conv", ["c", "v"], ["y"]),
    ]
    feed = {"x": draw((1, 20, 9, 9))}
    return model(
        nodes, feed, constants={"w": draw((20, 1, 3, 3), 1), "v": draw((3, 20, 1, 1), 2)}
    ), feed


def recurrent() -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    node = helper.make_node("LSTM", ["x", "w", "r", "b"], ["y"], hidden_size=5)
    feed = {"x": draw((6, 3, 4))}
    constants = {"w": draw((1, 20, 4), 1), "r": draw((1, 20, 5), 2), "b": draw((1, 40), 3)}
    return model([node], feed, constants=constants), feed


def any_batch() -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        helper.make_node("Add", ["m", "b"], ["a"]),
        helper.make_node("Concat", ["a", "a"], ["k"], axis=0),
        helper.make_node("Softmax", ["k"], ["y"]),
    ]
    sides = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 33]),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, None),
    ]
    constants = [
        numpy_helper.from_array(draw((33, 17), 1), "w"),
        numpy_helper.from_array(draw((17,), 2), "b"),
    ]
    graph = helper.make_graph(nodes, "g", sides[:1], sides[1:], constants)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    return proto, {"x": draw((5, 33), 4)}


def loop() -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    body = helper.make_graph(
        [
            helper.make_node("MatMul", ["s", "w"], ["m"]),
            helper.make_node("Tanh", ["m"], ["next"]),
            helper.make_node("Identity", ["next"], ["each"]),
            helper.make_node("Identity", ["going"], ["on"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("going", TensorProto.BOOL, []),
            helper.make_tensor_value_info("s", TensorProto.FLOAT, [4, 4]),
        ],
        [
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", TensorProto.FLOAT, [4, 4]),
            helper.make_tensor_value_info("each", TensorProto.FLOAT, [4, 4]),
        ],
    )
    node = helper.make_node("Loop", ["count", "", "x"], ["y", "all"], body=body)
    feed = {"x": draw((4, 4)), "count": np.array(6, np.int64)}
    sides = [
        helper.make_tensor_value_info("count", TensorProto.INT64, []),
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 4]),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 4]),
        helper.make_tensor_value_info("all", TensorProto.FLOAT, [None, 4, 4]),
    ]
    w = numpy_helper.from_array(draw((4, 4), 3), "w")
    graph = helper.make_graph([node], "g", sides[:2], sides[2:], [w])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), feed


def bytes_of_images() -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    random = np.random.default_rng(0)
    node = helper.make_node(
        "QLinearConv", ["x", "s", "z", "w", "s", "zw", "s", "z"], ["y"], pads=[1] * 4
    )
    constants = {
        "s": np.array(0.1, np.float32),
        "z": np.array(3, np.uint8),
        "zw": np.array(0, np.int8),
        "w": random.integers(-9, 9, (24, 16, 3, 3)).astype(np.int8),
    }
    feed = {"x": random.integers(0, 255, (1, 16, 8, 8)).astype(np.uint8)}
    return model([node], feed, constants=constants), feed


MODELS: dict[str, Callable[[], tuple[onnx.ModelProto, dict[str, np.ndarray]]]] = {
    each.__name__: each
    for each in (convolution, depthwise, recurrent, any_batch, loop, bytes_of_images)
}
_CHILD = """
import os, sys
import numpy as np
import hagane.machine.compiler as compiler
import hagane.native.run.engine as engine
assert os.environ["PATH"] == ""
def none():
    raise compiler.NoCompiler("there is none")
engine.find_compiler = compiler.find_compiler = none
from hagane.native import load_compiled
from hagane.native.run.loaded import Loaded
for name in sys.argv[2:]:
    folder = sys.argv[1]
    part = Loaded(load_compiled(f"{folder}/{name}.part"))
    feed = np.load(f"{folder}/{name}.npz")
    results = part.run([feed[buffer.name] for buffer, _, _ in part.inputs])
    again = part.run([feed[buffer.name] for buffer, _, _ in part.inputs])
    assert all(np.array_equal(a, b) for a, b in zip(results, again))
    np.savez(f"{folder}/{name}.out.npz", *results)
"""


def test_another_process_runs_a_part_without_compiler_and_model(tmp_path: Path) -> None:
    wanted = {}
    for name, make in MODELS.items():
        proto, feed = make()
        part = compiled(proto)
        save_compiled(part, tmp_path / f"{name}.part")
        np.savez(tmp_path / f"{name}.npz", **feed)
        loaded = Loaded(part)
        wanted[name] = loaded.run([feed[buffer.name] for buffer, _, _ in loaded.inputs])
    environment = {**os.environ, "PATH": "", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    environment.pop("CC", None)
    words = [sys.executable, "-c", _CHILD, str(tmp_path), *MODELS]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    for name, want in wanted.items():
        got = np.load(tmp_path / f"{name}.out.npz")
        assert len(got.files) == len(want)
        for each, array in zip(got.files, want, strict=True):
            np.testing.assert_array_equal(got[each], array, err_msg=name)
    assert not list(tmp_path.glob(".*"))  # no half-written files


def test_a_part_of_open_sizes_is_read_back_for_any_of_them(tmp_path: Path) -> None:
    proto, _ = any_batch()
    save_compiled(compiled(proto), tmp_path / "part")
    loaded = Loaded(load_compiled(tmp_path / "part"))
    for n in (1, 3, 70):
        x = draw((n, 33), n)
        (got,) = loaded.run([x])
        (want,) = hagane.InferenceSession(proto).run(None, {"x": x})
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-7)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kept") / "part"
    save_compiled(compiled(convolution()[0]), path)
    return path


def rewritten(kept: Path, to: Path, change: Callable[[dict[str, bytes]], None]) -> Path:
    """Write a file whose members are changed; those whose checksums are to fit have new ones."""
    with zipfile.ZipFile(kept) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(to, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return to


def with_tables(kept: Path, to: Path, **entries: Any) -> Path:
    def change(members: dict[str, bytes]) -> None:
        tables = {**json.loads(members["part.json"]), **entries}
        members["part.json"] = json.dumps(tables).encode()
        checksums = json.loads(members["checksums.json"])
        checksums["part.json"] = hagane.native.run.files.hashlib.sha256(
            members["part.json"]
        ).hexdigest()
        members["checksums.json"] = json.dumps(checksums).encode()

    return rewritten(kept, to, change)


def test_damaged_and_foreign_files_are_refused(kept: Path, tmp_path: Path) -> None:
    path = tmp_path / "part"
    with pytest.raises(NoSuchFile, match=r"there is no file '.*part'"):
        load_compiled(path)
    whole = kept.read_bytes()
    for content in (b"", b"\x7fELF", whole[: len(whole) // 2]):
        path.write_bytes(content)
        with pytest.raises(InvalidModel, match="expected a compiled part as save_compiled writes"):
            load_compiled(path)
    flipped = bytearray(whole)
    flipped[len(whole) // 3] ^= 0x40
    path.write_bytes(flipped)
    with pytest.raises(InvalidModel):
        load_compiled(path)

    def change(members: dict[str, bytes]) -> None:
        members["kernels.so"] += b"!"

    with pytest.raises(InvalidModel, match=r"is damaged: the checksum of 'kernels\.so' is another"):
        load_compiled(rewritten(kept, path, change))
    with pytest.raises(InvalidModel, match="is damaged: it lacks a part, or has one too many"):
        load_compiled(rewritten(kept, path, lambda members: members.pop("sources/0") and None))
    with pytest.raises(InvalidModel, match="expected a hagane compiled part, got 'a song'"):
        load_compiled(with_tables(kept, path, kind="a song"))
    with pytest.raises(InvalidModel, match="expected version 3, got 99; compile the part again"):
        load_compiled(with_tables(kept, path, version=99))
    with pytest.raises(UnsupportedModel, match=r"without avx9000: compile the part for it"):
        load_compiled(with_tables(kept, path, needs=["avx9000"]))
    with pytest.raises(UnsupportedModel, match="machine code for pdp11"):
        load_compiled(with_tables(kept, path, machine="pdp11"))
    with pytest.raises(InvalidModel, match="KeyError"):
        load_compiled(with_tables(kept, path, part={}))


@pytest.mark.parametrize("name", ["convolution", "depthwise", "recurrent", "any_batch", "loop"])
def test_replaced_weights_are_packed_anew_and_nothing_is_compiled(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proto, feed = MODELS[name]()
    save_compiled(compiled(proto, replaceable=True), tmp_path / "part")
    monkeypatch.setattr(partition, "compile_kernels", lambda *_: pytest.fail("compiled"))
    found = load_compiled(tmp_path / "part")
    loaded = Loaded(found, keep_sources=True)
    changing = {source.name for source in found.sources if source.may_change}
    wanted = {
        "convolution": {"w", "b", "g"}, "depthwise": {"w", "v"}, "recurrent": {"w", "r"},
        "any_batch": {"w", "b"}, "loop": {"w"},
    }[name]  # fmt: skip
    assert changing == wanted
    arrays = [feed[buffer.name] for buffer, _, _ in loaded.inputs]
    before = loaded.run(arrays)
    fresh: dict[str, np.ndarray] = {}
    for index, tensor in enumerate(proto.graph.initializer):
        if tensor.name in changing:
            fresh[tensor.name] = draw(tuple(tensor.dims), 50 + index)
            tensor.CopyFrom(numpy_helper.from_array(fresh[tensor.name], tensor.name))
    loaded.replace(fresh)
    options = hagane.SessionOptions()
    options.add_session_config_entry("hagane.engine", "reference")
    names = [buffer.name for buffer, _, _ in loaded.outputs]
    want = hagane.InferenceSession(proto, options).run(names, feed)
    got = loaded.run(arrays)
    for left, right, old in zip(got, want, before, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-4)
        assert not np.allclose(left, old)


def test_one_of_several_weights_may_be_replaced() -> None:
    proto, feed = convolution()
    loaded = Loaded(compiled(proto, replaceable=True), keep_sources=True)
    b = draw((40,), 77)
    loaded.replace({"b": b})
    (want,) = hagane.InferenceSession(images(draw((40, 20, 3, 3), 1), b)[0]).run(None, feed)
    np.testing.assert_allclose(loaded.run([feed["x"]])[0], want, rtol=1e-4, atol=1e-5)


def test_replacements_that_cannot_be_are_told() -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        helper.make_node("Clip", ["m", "least", "most"], ["c"]),
        helper.make_node("Reshape", ["c", "shape"], ["y"]),
    ]
    constants = {
        "w": draw((4, 6), 1), "least": np.array(-0.5, np.float32),
        "most": np.array(0.5, np.float32), "shape": np.array([3, 4], np.int64),
    }  # fmt: skip
    feed = {"x": draw((2, 4))}
    part = compiled(model(nodes, feed, constants=constants), replaceable=True)
    assert {source.name for source in part.sources if source.may_change} == {"w"}
    loaded = Loaded(part, keep_sources=True)
    with pytest.raises(InvalidArgument, match="replace: no weight is packed from 'v', but: .*w"):
        loaded.replace({"v": draw((4, 6))})
    with pytest.raises(
        InvalidArgument, match=r"replace 'w': expected float32\[4, 6\], got float32\[6, 4\]"
    ):
        loaded.replace({"w": draw((6, 4))})
    with pytest.raises(InvalidArgument, match="load the part with keep_sources=True"):
        Loaded(part).replace({"w": draw((4, 6))})
    fixed = Loaded(compiled(convolution()[0]), keep_sources=True)
    with pytest.raises(
        InvalidArgument, match=r"replace 'w': kernels, or weights .*compile the part anew"
    ):
        fixed.replace({"w": draw((40, 20, 3, 3))})


def test_weights_computed_ahead_of_a_constant_hold_it() -> None:
    """Sums of 8-bit columns, and factors of scales, are made before weights are packed."""
    part = compiled(bytes_of_images()[0], replaceable=True)
    assert not any(source.may_change for source in part.sources)


def test_every_recipe_is_listed_by_name() -> None:
    source = Path(hagane.native.__file__).parent
    used = {
        name
        for path in source.rglob("*.py")
        for name in re.findall(r"\bPacking\(\s*(\w+),", path.read_text(encoding="utf-8"))
    }
    assert used - {"packing"} == {*PACKINGS, *(each.__name__ for each in OF_ONE_PROCESS)}


def test_the_example_of_the_document_prints_as_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source = Path(__file__).parents[2] / "docs" / "compiled.md"
    text = source.read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (shown,) = re.findall(r"```\n(\[.*?)```", text, re.DOTALL)
    exec(compile(code, "compiled.md", "exec"), {})
    assert capsys.readouterr().out == shown
