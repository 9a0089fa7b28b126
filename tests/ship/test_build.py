"""Builds: equal to the session's results, the same bytes again, refused with a remedy."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from platform import machine

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import hagane
from hagane.cli import main
from hagane.errors import InvalidArgument, InvalidFeed, InvalidModel, KernelError, UnsupportedModel
from hagane.ship import BuildOptions, build_model
from hagane.ship.quantize import QuantizeOptions, quantize
from tests.native import models
from tests.native.models import draw
from tests.ship.conftest import Maker
from tests.ship.models import CASES, make, save

KEYS = ["version", "name", "target", "library", "weights", "inputs", "outputs", "peak_bytes"]


@pytest.mark.parametrize("name", CASES)
def test_a_build_returns_what_the_session_returns_to_the_bit(builds: Maker, name: str) -> None:
    model, feed = CASES[name]()
    expected = hagane.InferenceSession(model).run(None, feed)
    with hagane.load_built(builds(name)) as built:
        for _ in range(2):
            found = built.run(None, feed)
            assert len(found) == len(expected)
            for left, right in zip(found, expected, strict=True):
                assert left.dtype == right.dtype
                np.testing.assert_array_equal(left, right)


def test_sizes_of_a_range_share_one_program(builds: Maker) -> None:
    model, _ = CASES["attention"]()
    session = hagane.InferenceSession(model)
    built = hagane.load_built(builds("attention"))
    for batch, length in [(1, 1), (3, 17), (2, 5), (1, 40), (3, 17)]:
        x = draw((batch, length, 16), length)
        (expected,), (found,) = session.run(None, {"x": x}), built.run(None, {"x": x})
        np.testing.assert_array_equal(found, expected)


def test_sizes_that_expressions_name_are_told_by_them(tmp_path: Path) -> None:
    nodes = [helper.make_node("MaxPool", ["x"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
             helper.make_node("Resize", ["p", "", "", "size"], ["y"])]  # fmt: skip
    constants = {"size": np.array([1, 3, 4, 4])}
    x = draw((1, 3, 8, 7))
    shapes: dict[str, Sequence[int | str]] = {"x": [1, 3, "2*h", "2*w + 1"]}
    proto = models.model(nodes, {"x": x}, constants=constants, shapes=shapes)
    onnx.save(proto, tmp_path / "model.onnx")
    build_model(tmp_path / "model.onnx", tmp_path / "built")
    session = hagane.InferenceSession(proto)
    built = hagane.load_built(tmp_path / "built")
    for shape in ((1, 3, 8, 7), (1, 3, 2, 31)):
        x = draw(shape)
        (expected,), (found,) = session.run(None, {"x": x}), built.run(None, {"x": x})
        np.testing.assert_array_equal(found, expected)
    with pytest.raises(InvalidFeed, match="axis 2 of one is 7, expected 6"):
        built.run(None, {"x": draw((1, 3, 7, 7))})


def test_loops_of_other_lengths_run_in_the_same_build(builds: Maker) -> None:
    for name in ("loop", "growing"):
        model, feed = CASES[name]()
        session, built = hagane.InferenceSession(model), hagane.load_built(builds(name))
        for count in (0, 1, 9, 3):
            changed = {**feed, "count": np.array(count)}
            pairs = zip(built.run(None, changed), session.run(None, changed), strict=True)
            for left, right in pairs:
                np.testing.assert_array_equal(left, right)


def test_the_same_model_makes_the_same_bytes(builds: Maker, tmp_path: Path) -> None:
    first = builds("images")
    save(CASES["images"](), tmp_path / "images.onnx")
    again = tmp_path / "elsewhere" / "again"
    build_model(tmp_path / "images.onnx", again)
    assert sorted(p.name for p in again.iterdir()) == sorted(p.name for p in first.iterdir())
    for path in again.iterdir():
        assert path.read_bytes() == (first / path.name).read_bytes(), path.name


def test_a_manifest_says_what_there_is(builds: Maker) -> None:
    folder = builds("any_batch", shapes=("x=1..8,33",))
    manifest = json.loads((folder / "manifest.json").read_text())
    assert [key for key in KEYS if key not in manifest] == []
    assert manifest["library"] == "libany_batch.so"
    assert manifest["weights"] == "any_batch.weights"
    (x,) = manifest["inputs"]
    assert (x["name"], x["least"], x["most"], x["type"]) == ("x", [1, 33], [8, 33], 1)
    assert manifest["peak_bytes"] > (folder / manifest["weights"]).stat().st_size
    readme = (folder / "README.md").read_text()
    assert "cc program.c -I DIR -L DIR -lany_batch" in readme


@pytest.mark.parametrize(
    ("options", "files"),
    [
        ((), {"liba_b_1.so", "a_b_1.weights"}),
        (("--static", "--embed-weights", "--name", "own"), {"libown.a"}),
        (("--shared", "--menoh"), {"liba_b_1.so", "a_b_1.weights", "libmenoh.so", "menoh"}),
    ],
)
def test_the_command_writes_the_files_that_it_names(
    tmp_path: Path, options: tuple[str, ...], files: set[str]
) -> None:
    save(CASES["any_batch"](), tmp_path / "a b.1.onnx")
    given = ["--shape", "x=1..8,33", "--target", "x86-64"] if machine() == "x86_64" else []
    with pytest.raises(SystemExit) as ended:
        main(["build", str(tmp_path / "a b.1.onnx"), "-o", str(tmp_path / "b"), *given, *options])
    assert ended.value.code == 0
    found = {path.name for path in (tmp_path / "b").iterdir()}
    assert found == {"hagane.h", "manifest.json", "README.md", *files}
    assert (tmp_path / "b" / "menoh" / "menoh.h").exists() == ("menoh" in files)
    manifest = json.loads((tmp_path / "b" / "manifest.json").read_text())
    assert manifest["library"] in files
    assert (manifest["weights"] in files) == ("--embed-weights" not in options)
    assert manifest["name"] == ("own" if "own" in options else "a_b_1")
    assert manifest["version"] == "1.0"
    if given:
        assert manifest["target"] == "x86-64"


def test_a_library_needs_the_c_library_alone_and_exports_its_interface(builds: Maker) -> None:
    if shutil.which("readelf") is None:
        pytest.skip("readelf is not on this machine")
    (library,) = builds("images").glob("*.so")
    text = subprocess.run(
        ["readelf", "-d", "--dyn-syms", "-W", str(library)], capture_output=True, text=True
    ).stdout
    needed = [line.split("[")[1].rstrip("]") for line in text.splitlines() if "(NEEDED)" in line]
    assert {name.split(".")[0] for name in needed} <= {"libc", "libm", "libpthread"}
    symbols = [line.split() for line in text.splitlines() if " GLOBAL " in line]
    own = [fields[-1] for fields in symbols if fields[6] != "UND"]
    assert own
    assert all(name.startswith("hagane_") for name in own)


def test_kernels_that_need_numbers_get_a_program_for_each_size(
    builds: Maker, tmp_path: Path
) -> None:
    body = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 6, 7])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(draw((8, 3, 3, 3)), "w")],
    )
    proto = helper.make_model(body, opset_imports=[helper.make_opsetid("", 21)])
    onnx.save(proto, tmp_path / "m.onnx")
    build_model(tmp_path / "m.onnx", tmp_path / "b", BuildOptions(shapes=("x=1..2,3,6,7",)))
    built = hagane.load_built(tmp_path / "b")
    for n in (1, 2):
        x = draw((n, 3, 6, 7))
        (expected,) = hagane.InferenceSession(proto).run(None, {"x": x})
        np.testing.assert_array_equal(built.run(None, {"x": x})[0], expected)
    with pytest.raises(InvalidFeed, match="input 'x': axis 0 is 3, expected 1 to 2"):
        built.run(None, {"x": draw((3, 3, 6, 7))})


def test_an_operator_without_a_kernel_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = helper.make_graph(
        [helper.make_node("Bernoulli", ["x"], ["y"], "find")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 3])],
    )
    onnx.save(helper.make_model(body), tmp_path / "m.onnx")
    with pytest.raises(SystemExit) as ended:
        main(["build", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "b")])
    assert ended.value.code == 2
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    assert "Bernoulli 'find' cannot be built" in text
    assert "hagane.InferenceSession" in text
    assert not (tmp_path / "b").exists()


def test_remedies_are_those_of_the_kind_of_refusal(tmp_path: Path) -> None:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2])
    text = helper.make_tensor_value_info("t", TensorProto.STRING, ["n"])
    cut = helper.make_tensor_sequence_value_info("y", TensorProto.FLOAT, None)
    joined = helper.make_tensor_value_info("y", TensorProto.STRING, ["n"])
    maps = onnx.ValueInfoProto(name="y")
    maps.type.sequence_type.elem_type.map_type.key_type = TensorProto.INT64
    maps.type.sequence_type.elem_type.map_type.value_type.tensor_type.elem_type = 1
    labels = {"domain": "ai.onnx.ml", "classlabels_int64s": [3, 4]}
    decided = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    found = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    bodies = {
        name: helper.make_graph([helper.make_node("ReduceSum", ["x"], [name], keepdims=keeps)],
                                name, [],
                                [helper.make_tensor_value_info(name, TensorProto.FLOAT, None)])
        for name, keeps in (("then_branch", 1), ("else_branch", 0))  # of two axes, of none
    }  # fmt: skip
    cases = {
        r"ZipMap 'y' .*options=\{'zipmap': False\}": (
            helper.make_node("ZipMap", ["x"], ["y"], **labels), [x], maps),
        "StringConcat 'y' .*give and take codes in place of texts": (
            helper.make_node("StringConcat", ["t", "t"], ["y"]), [text], joined),
        "SplitToSequence 'y' .*put the items of a sequence together": (
            helper.make_node("SplitToSequence", ["x"], ["y"]), [x], cut),
        "If 'either' .*known rank.*with --constant INPUT=NUMBER": (
            helper.make_node("If", ["c"], ["y"], "either", **bodies), [decided, x], found),
    }  # fmt: skip
    for told, (node, inputs, output) in cases.items():
        graph = helper.make_graph([node], "g", inputs, [output])
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)]
        onnx.save(helper.make_model(graph, opset_imports=opsets), tmp_path / "m.onnx")
        with pytest.raises(UnsupportedModel) as refused:
            build_model(tmp_path / "m.onnx", tmp_path / "b")
        assert re.search(told, " ".join(str(refused.value).split()))
        assert not (tmp_path / "b").exists()


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        (("z=1",), "--shape z: the model has no such input; it has: x"),
        (("x=1",), r"--shape x: expected 2 sizes for \[n, 33\], got 1"),
        (("x=1,34",), "--shape x: axis 1 is 33 in the model, got 34"),
        (("x=8..1,33",), "from a smaller to a larger size, got '8..1'"),
        (("x=a,33",), "expected sizes as 3 or 1..8, separated by commas, got 'a'"),
        (("x",), "expected INPUT=1..8,3,224,224"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(
    tmp_path: Path, shapes: tuple[str, ...], text: str
) -> None:
    save(CASES["any_batch"](), tmp_path / "m.onnx")
    with pytest.raises(InvalidArgument, match=text):
        build_model(tmp_path / "m.onnx", tmp_path / "b", BuildOptions(shapes=shapes))
    assert not (tmp_path / "b").exists()


def test_open_sizes_are_built_as_large_as_memory_allows(tmp_path: Path) -> None:
    x = draw((2, 1, 3, 1, 2))
    case = make([helper.make_node("Neg", ["x"], ["y"])], {"x": tuple("abcde")}, ["y"], {}, {"x": x})
    save(case, tmp_path / "m.onnx")
    told: list[str] = []
    build_model(tmp_path / "m.onnx", tmp_path / "b", notice=told.append)
    assert told[0] == "-lm may mean the system's libm: --name chooses another name"
    assert re.search(r"x axis 0 \(a\).*: built for 1 to \d+", told[1])
    np.testing.assert_array_equal(hagane.load_built(tmp_path / "b").run(None, {"x": x})[0], -x)
    largest = BuildOptions(shapes=(f"x=1..{9 * 10**18},1..8,8,1,1",))
    with pytest.raises(
        InvalidArgument, match=r"x=9000000000000000000,8,8,1,1, .* beyond any memory"
    ):
        build_model(tmp_path / "m.onnx", tmp_path / "c", largest)
    assert not (tmp_path / "c").exists()


def test_targets_and_precisions_that_there_are_not_are_refused(tmp_path: Path) -> None:
    save(CASES["any_batch"](), tmp_path / "m.onnx")
    with pytest.raises(InvalidArgument, match="--target 'z80': expected one of x86-64-v4"):
        build_model(tmp_path / "m.onnx", tmp_path / "b", BuildOptions(target="z80"))
    options = BuildOptions(target="x86-64-v3", precision="bf16")
    with pytest.raises(InvalidArgument, match="x86-64-v3 has no products of bfloat16"):
        build_model(tmp_path / "m.onnx", tmp_path / "b", options)


def test_bytes_are_calibrated_by_the_build_itself(tmp_path: Path) -> None:
    model, feed = CASES["images"]()
    save(CASES["images"](), tmp_path / "images.onnx")
    options = BuildOptions(precision="int8", data=lambda: [feed])
    manifest = build_model(tmp_path / "images.onnx", tmp_path / "b", options)
    assert (manifest["precision"], manifest["name"]) == ("int8", "images")
    assert any(name.startswith("QLinear") or "Quantize" in name for name in manifest["nodes"])
    (expected,) = hagane.InferenceSession(model).run(None, feed)
    (found,) = hagane.load_built(tmp_path / "b").run(None, feed)
    assert 0 < np.abs(found - expected).max() < 0.1 * np.abs(expected).max()
    with pytest.raises(InvalidArgument, match="--precision int8 needs --data FILE.py:make"):
        build_model(tmp_path / "images.onnx", tmp_path / "b", BuildOptions(precision="int8"))
    other = BuildOptions(quantization=QuantizeOptions("entropy"))
    with pytest.raises(InvalidArgument, match="are for --precision int8, got --precision fp32"):
        build_model(tmp_path / "images.onnx", tmp_path / "b", other)


@pytest.mark.long
def test_a_build_of_bytes_is_that_of_the_file_that_the_same_methods_write(tmp_path: Path) -> None:
    _, feed = CASES["images"]()
    save(CASES["images"](), tmp_path / "images.onnx")
    how = QuantizeOptions("entropy", correct_bias=True)
    quantize(tmp_path / "images.onnx", lambda: [feed], tmp_path / "q.onnx", how)
    options = BuildOptions(precision="int8", data=lambda: [feed], quantization=how)
    build_model(tmp_path / "images.onnx", tmp_path / "b", options)
    (expected,) = hagane.InferenceSession(tmp_path / "q.onnx").run(None, feed)
    (found,) = hagane.load_built(tmp_path / "b").run(None, feed)
    np.testing.assert_array_equal(found, expected)


def test_a_run_again_takes_sizes_that_changed_with_the_data(tmp_path: Path) -> None:
    nodes = [helper.make_node("NonZero", ["x"], ["y"])]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [6])
    y = helper.make_tensor_value_info("y", TensorProto.INT64, [1, "n"])
    graph = helper.make_graph(nodes, "found", [x], [y])
    model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 21)])
    onnx.save(model, tmp_path / "m.onnx")
    build_model(tmp_path / "m.onnx", tmp_path / "b")
    with hagane.load_built(tmp_path / "b") as built:
        # The shapes of inputs are always the same: results have other ones than those before.
        for array in ([1, 0, 0, 2, 0, 0], [0] * 6, [1] * 6, [0, 3, 3, 0, 0, 0], [5, 0, 0, 0, 0, 5]):
            given = np.array(array, np.float32)
            (found,) = built.run(["y"], {"x": given})
            np.testing.assert_array_equal(found, np.stack(np.nonzero(given)))


@pytest.mark.parametrize("compiler", [True, False])
def test_runs_alike_take_the_short_way_and_others_do_not(
    builds: Maker, monkeypatch: pytest.MonkeyPatch, compiler: bool
) -> None:
    built = hagane.load_built(builds("any_batch", shapes=("x=1..8,33",)))
    session = hagane.InferenceSession(CASES["any_batch"]()[0])
    if not compiler:
        monkeypatch.setattr("hagane.ship.loaded.load_module", lambda *_: None)
    kept = []
    for n in (3, 3, 3, 5, 5, 3, 3, 5):
        x = draw((n, 33), len(kept))
        kept.append((x.copy(), built.run(None, {"x": x})[0]))
    for x, found in kept:  # no result lies in the memory of another
        np.testing.assert_array_equal(found, session.run(None, {"x": x})[0])
    x, expected = kept[0]
    for given in (x.tolist(), np.asfortranarray(x), np.repeat(x, 2, axis=1)[:, ::2]):
        np.testing.assert_array_equal(built.run(None, {"x": given})[0], expected)
    np.testing.assert_array_equal(built.run(["y"], {"x": x})[0], expected)
    with pytest.raises(InvalidFeed, match="input 'x'"):
        built.run(None, {"x": x.astype(np.float64)})
    with pytest.raises(InvalidFeed, match="axis 0 is 9, expected 1 to 8"):
        built.run(None, {"x": draw((9, 33))})
    with pytest.raises(InvalidFeed, match="'z'"):
        built.run(None, {"x": x, "z": x})
    built.close()
    with pytest.raises(InvalidArgument, match="is closed"):
        built.run(None, {"x": x})


def test_a_folder_is_replaced_if_it_is_a_build_alone(builds: Maker, tmp_path: Path) -> None:
    save(CASES["plain"](), tmp_path / "plain.onnx")
    folder = tmp_path / "b"
    folder.mkdir()
    build_model(tmp_path / "plain.onnx", folder, BuildOptions(name="other"))
    assert (folder / "libother.so").exists()
    build_model(tmp_path / "plain.onnx", folder)
    assert {path.name for path in folder.iterdir()} == {
        *("README.md", "hagane.h", "libplain.so", "manifest.json", "plain.weights"),
    }
    with pytest.raises(InvalidArgument, match="expected one of"):
        build_model(tmp_path / "plain.onnx", folder, BuildOptions(target="?"))
    assert (folder / "manifest.json").exists()  # the build stays as it was
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").touch()
    with pytest.raises(InvalidArgument, match="is neither empty nor a build"):
        build_model(tmp_path / "plain.onnx", tmp_path / "mine")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["b", "mine", "plain.onnx"]


def test_a_process_opens_each_of_the_builds_that_a_folder_has_had(tmp_path: Path) -> None:
    first, feed = CASES["any_batch"]()
    second, _ = CASES["any_batch"]()
    for item in second.graph.initializer:
        weights = np.frombuffer(item.raw_data, np.float32) * np.float32(1.5)
        item.raw_data = weights.tobytes()
    opened = []
    for most, model in ((8, first), (9, first), (9, second), (8, first)):
        onnx.save(model, tmp_path / "m.onnx")
        options = BuildOptions(shapes=(f"x=1..{most},33",), embed_weights=most == 9)
        build_model(tmp_path / "m.onnx", tmp_path / "b", options)
        opened.append((hagane.load_built(tmp_path / "b"), hagane.InferenceSession(model)))
    for built, session in opened:
        expected = session.run(None, feed)[0]
        np.testing.assert_array_equal(built.run(None, feed)[0], expected)


def test_a_link_to_a_folder_stays_and_the_folder_is_replaced(builds: Maker, tmp_path: Path) -> None:
    model = builds("any_batch").parent / "any_batch.onnx"
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    build_model(model, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "manifest.json").is_file()


@pytest.mark.parametrize("threads", [-3, 65])
def test_more_threads_than_there_can_be_are_refused(tmp_path: Path, threads: int) -> None:
    save(CASES["images"](), tmp_path / "m.onnx")
    with pytest.raises(InvalidArgument, match=f"--threads: expected 0 to 64, got {threads}; 0"):
        build_model(tmp_path / "m.onnx", tmp_path / "b", BuildOptions(threads=threads))


def test_damaged_and_foreign_files_are_refused(builds: Maker, tmp_path: Path) -> None:
    folder = tmp_path / "b"
    shutil.copytree(builds("any_batch", shapes=("x=1..8,33",)), folder)
    weights = folder / "any_batch.weights"
    content = bytearray(weights.read_bytes())
    content[1000] ^= 1
    weights.write_bytes(content)
    with pytest.raises(InvalidModel, match="any_batch.weights is damaged, or of another build"):
        hagane.load_built(folder)
    manifest = folder / "manifest.json"
    manifest.write_text(manifest.read_text().replace("any_batch", "any_match", 1))
    with pytest.raises(InvalidModel, match="is damaged"):
        hagane.load_built(folder)


def test_data_out_of_range_name_the_node(builds: Maker) -> None:
    built = hagane.load_built(builds("look_up"))
    with pytest.raises(KernelError, match="index 10 is out of range for axis 0 with size 10"):
        built.run(None, {"i": np.array([10])})
    assert built.run(None, {"i": np.array([9])})[0].shape == (1, 5)


def test_feeds_are_checked_as_those_of_sessions(builds: Maker) -> None:
    built = hagane.load_built(builds("any_batch"))
    with pytest.raises(InvalidFeed, match="missing input 'x'"):
        built.run(None, {})
    with pytest.raises(InvalidArgument, match="unknown output 'q'; the model has: y"):
        built.run(["q"], {"x": draw((1, 33))})
    built.close()
    with pytest.raises(InvalidArgument, match="is closed"):
        built.run(None, {"x": draw((1, 33))})


def test_weights_may_lie_in_the_library(builds: Maker) -> None:
    folder = builds("images", embed_weights=True)
    assert not list(folder.glob("*.weights"))
    model, feed = CASES["images"]()
    (expected,) = hagane.InferenceSession(model).run(None, feed)
    np.testing.assert_array_equal(hagane.load_built(folder).run(None, feed)[0], expected)


def test_an_archive_is_for_programs_in_c(builds: Maker) -> None:
    with pytest.raises(UnsupportedModel, match="build the model with --shared"):
        hagane.load_built(builds("images", static=True))


@pytest.mark.parametrize("feed", [None, [1.0], "x"])
def test_feeds_that_map_no_names_are_named(builds: Maker, feed: object) -> None:
    built = hagane.load_built(builds("look_up"))
    with pytest.raises(InvalidFeed, match=f"map input names to arrays, got {type(feed).__name__}"):
        built.run(None, feed)  # type: ignore[arg-type]


def test_arguments_of_other_kinds_are_named(builds: Maker) -> None:
    with pytest.raises(InvalidArgument, match="expected the folder of a build, got None"):
        hagane.load_built(None)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="threads: expected a whole number, got '2'"):
        hagane.load_built(builds("look_up"), threads="2")  # type: ignore[arg-type]


def test_data_that_a_kernel_leaves_to_the_reference_are_named(tmp_path: Path) -> None:
    nodes = [helper.make_node("Div", ["x", "y"], ["z"], "quotient")]
    x, y, z = (helper.make_tensor_value_info(name, TensorProto.INT32, ["n"]) for name in "xyz")
    model = helper.make_model(
        helper.make_graph(nodes, "g", [x, y], [z]), opset_imports=[helper.make_opsetid("", 20)]
    )
    onnx.save(model, tmp_path / "m.onnx")
    build_model(tmp_path / "m.onnx", tmp_path / "b", BuildOptions(shapes=("x=0..4", "y=0..4")))
    built = hagane.load_built(tmp_path / "b")
    x, y = np.array([7, 9], np.int32), np.array([2, 3], np.int32)
    np.testing.assert_array_equal(built.run(None, {"x": x, "y": y})[0], [3, 3])
    with pytest.raises(KernelError, match="'quotient' failed: its kernel does not compute it for"):
        built.run(None, {"x": x, "y": y - 3})
