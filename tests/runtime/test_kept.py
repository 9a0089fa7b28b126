"""Sessions that a second start takes from the cache."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import hagane
from hagane.errors import HaganeError
from hagane.machine import CodeCache
from hagane.runtime import opened
from hagane.runtime.kept import key_of, named_files, source_state
from hagane.runtime.shapes import beside as other_process
from hagane.runtime.shapes.repeats import RUNS
from tests.native.models import engine_bytes


def write(path: Path, scale: float = 1.0, rows: int | str = "n", columns: int = 24) -> Path:
    """Write a model of a product and a sum."""
    random = np.random.default_rng(0)
    weights = {
        "w": (scale * random.standard_normal((16, columns))).astype(np.float32),
        "b": random.standard_normal(columns).astype(np.float32),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [rows, columns])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    model.producer_name = "a test"
    onnx.save(model, path)
    return path


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("HAGANE_CACHE_BYTES", raising=False)
    monkeypatch.delenv("HAGANE_SESSION_CACHE", raising=False)
    return write(tmp_path / "model.onnx")


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Note each model that is read."""
    found: list[object] = []
    read = opened.read

    def noting(source: Any, settings: Any) -> Any:
        found.append(source)
        return read(source, settings)

    monkeypatch.setattr(opened, "read", noting)
    return found


def feed(rows: int) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(rows).standard_normal((rows, 16)).astype(np.float32)}


def facts(session: hagane.InferenceSession) -> list[Any]:
    return [
        session.get_inputs(), session.get_outputs(), session.get_overridable_initializers(),
        session.get_modelmeta(),
    ]  # fmt: skip


def test_a_second_session_reads_no_model_and_gives_the_same(
    path: Path, reads: list[object]
) -> None:
    first = hagane.InferenceSession(path)
    want = {rows: first.run(None, feed(rows)) for rows in (1, 3, 40)}
    assert len(reads) == 1
    del first
    second = hagane.InferenceSession(path)
    for rows, outputs in want.items():
        np.testing.assert_array_equal(second.run(None, feed(rows))[0], outputs[0])
        np.testing.assert_array_equal(second.run(["y"], feed(rows))[0], outputs[0])
    told = facts(second)
    assert len(reads) == 1
    assert told == facts(hagane.InferenceSession(path.read_bytes()))


def test_another_process_takes_it_from_the_cache(path: Path) -> None:
    want = hagane.InferenceSession(path).run(None, feed(5))[0]
    program = """if True:
        import sys
        import numpy as np, hagane
        x = np.random.default_rng(5).standard_normal((5, 16)).astype(np.float32)
        (y,) = hagane.InferenceSession(sys.argv[1]).run(None, {"x": x})
        assert not {"onnx", "onnx_ir", "hagane.ops", "hagane.passes"} & sys.modules.keys()
        sys.stdout.buffer.write(y.tobytes())
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], env=environment, capture_output=True,
        timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout == want.tobytes()


def test_what_is_not_kept_is_built_when_it_is_needed(path: Path, reads: list[object]) -> None:
    hagane.InferenceSession(path)
    second = hagane.InferenceSession(path)
    assert len(reads) == 1
    assert second.profile(feed(3), runs=2).runs == 2
    assert len(reads) == 2
    assert second.memory_plan({"x": (3, 16)}).values > 0
    assert len(reads) == 2


@pytest.mark.parametrize(
    "bad", [{}, {"x": np.zeros((3, 17), np.float32)}, {"x": np.zeros((3, 16))}]
)
def test_it_refuses_what_the_first_session_refuses(path: Path, bad: dict[str, np.ndarray]) -> None:
    texts = []
    for _ in range(2):
        with pytest.raises(HaganeError) as caught:
            hagane.InferenceSession(path).run(None, bad)
        texts.append((type(caught.value), str(caught.value)))
    assert texts[0] == texts[1]


def test_another_content_setting_or_version_is_another_session(
    path: Path, reads: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = hagane.InferenceSession(path).run(None, feed(2))[0]
    write(path, scale=2.0)
    second = hagane.InferenceSession(path).run(None, feed(2))[0]
    assert np.abs(first - second).max() > 0.1
    hagane.InferenceSession(path, hagane.SessionOptions(intra_op_num_threads=3))
    assert len(reads) == 3
    hagane.InferenceSession(path, hagane.SessionOptions(logid="other"))
    assert len(reads) == 3
    monkeypatch.setattr("hagane.native.ready.plan_file.FORMAT", -1)
    again = hagane.InferenceSession(path).run(None, feed(2))[0]
    np.testing.assert_array_equal(again, second)
    assert len(reads) == 4


def test_a_copy_of_the_file_is_the_same_session(path: Path, reads: list[object]) -> None:
    hagane.InferenceSession(path)
    copy = path.with_name("copy.onnx")
    copy.write_bytes(path.read_bytes())
    hagane.InferenceSession(copy)
    assert len(reads) == 1


def test_it_can_be_switched_off(
    path: Path, reads: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = hagane.SessionOptions()
    options.add_session_config_entry("hagane.cache", "off")
    for _ in range(2):
        hagane.InferenceSession(path, options)
    monkeypatch.setenv("HAGANE_SESSION_CACHE", "off")
    hagane.InferenceSession(path)
    assert len(reads) == 3


def test_sessions_of_one_file_share_their_weights(path: Path) -> None:
    write(path, columns=4096)
    first, second = hagane.InferenceSession(path), hagane.InferenceSession(path)
    third = hagane.InferenceSession(path)
    part = next(first._programs.general.parts())
    engine = part.segment.engine  # type: ignore[attr-defined]
    # (The count is the process's: sessions of other tests may be garbage not collected yet.)
    before = engine_bytes()
    more = [hagane.InferenceSession(path) for _ in range(5)]
    # (Each has tables, and memory for values, which gets its pages as sizes grow.)
    assert engine.allocated() - before < 5 * (256 << 10) + 16 * 4096 * 4
    for session in (first, second, third, *more):
        assert session.run(None, feed(2))[0].shape == (2, 4096)


def damage(entry: Path, name: str) -> None:
    file = entry / name
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize("name", ["session.json", "kernels.so", "weights"])
def test_a_damaged_entry_is_made_anew(path: Path, reads: list[object], name: str) -> None:
    want = hagane.InferenceSession(path).run(None, feed(3))[0]
    key = key_of(str(path), hagane.SessionOptions())
    assert key is not None
    found = CodeCache("sessions").find(key)
    assert found is not None
    damage(found.parent, name)
    again = hagane.InferenceSession(path)
    np.testing.assert_array_equal(again.run(None, feed(3))[0], want)
    assert len(reads) == 2
    hagane.InferenceSession(path)
    assert len(reads) == 2


def test_sessions_that_are_made_at_once_are_kept_once(path: Path) -> None:
    def run(rows: int) -> np.ndarray:
        made: np.ndarray = hagane.InferenceSession(path).run(None, feed(rows))[0]
        return made

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(run, [2, 3] * 4))
    for rows, each in zip([2, 3] * 4, found, strict=True):
        np.testing.assert_array_equal(each, run(rows))
    (entry,) = (e for e in CodeCache("sessions").folder.iterdir() if (e / "session.json").exists())
    assert {file.name for file in entry.iterdir()} >= {"session.json", "kernels.so", "weights"}


def test_a_file_that_changes_under_a_session_is_not_taken_for_the_old_one(path: Path) -> None:
    hagane.InferenceSession(path)
    second = hagane.InferenceSession(path)
    write(path, scale=3.0)
    second.run(None, feed(3))
    with pytest.raises(HaganeError, match="was changed after the session was made"):
        second.memory_plan({"x": (3, 16)})


def beside(path: Path, location: str = "w.bin") -> Path:
    """Move the weights of a model into a file beside it."""
    model = onnx.load(path)
    path.unlink()
    onnx.save(model, path, save_as_external_data=True, location=location, size_threshold=0)
    return path.with_name(location)


def test_a_model_whose_weights_lie_in_another_file_is_kept_under_both_contents(
    path: Path, reads: list[object]
) -> None:
    weights = beside(path)
    first = hagane.InferenceSession(path).run(None, feed(2))[0]
    np.testing.assert_array_equal(hagane.InferenceSession(path).run(None, feed(2))[0], first)
    assert len(reads) == 1
    weights.write_bytes((2 * np.frombuffer(weights.read_bytes(), np.float32)).tobytes())
    second = hagane.InferenceSession(path).run(None, feed(2))[0]
    np.testing.assert_allclose(second, 2 * first, rtol=1e-5)
    assert len(reads) == 2


def test_a_session_whose_other_file_is_gone_says_so(path: Path) -> None:
    weights = beside(path)
    hagane.InferenceSession(path)
    weights.unlink()
    with pytest.raises(HaganeError, match=r"w\.bin"):
        hagane.InferenceSession(path)


def test_names_of_other_files_are_found_whatever_their_length(path: Path) -> None:
    for name in ("w", "w" * 127, "w" * 200, "Gewichte für x.bin"):
        write(path)
        assert named_files(path) == set()
        beside(path, name)
        assert named_files(path) == {name}


def test_weights_outside_the_folder_are_never_kept(path: Path) -> None:
    beside(path)
    content = path.read_bytes()
    assert content.count(b"w.bin") == 2
    path.write_bytes(content.replace(b"w.bin", b"../w2"))
    assert key_of(str(path), hagane.SessionOptions()) is None


def test_a_model_that_names_its_other_file_in_an_unusual_order_is_not_kept(path: Path) -> None:
    weights = beside(path)
    content = path.read_bytes()
    key, value = b"\n\x08location", b"\x12\x05w.bin"
    assert content.count(key + value) == 2
    path.write_bytes(content.replace(key + value, value + key))
    first = hagane.InferenceSession(path).run(None, feed(2))[0]
    weights.write_bytes((2 * np.frombuffer(weights.read_bytes(), np.float32)).tobytes())
    second = hagane.InferenceSession(path).run(None, feed(2))[0]
    np.testing.assert_allclose(second, 2 * first, rtol=1e-5)


def write_layers(path: Path) -> None:
    """Write a model of a convolution of open sizes, which specialises."""
    weights = np.random.default_rng(0).standard_normal((8, 3, 3, 3)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])],
        "layers",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, "h", "w2"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 8, "h", "w2"])],
        [numpy_helper.from_array(weights, "w")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), path)


def image(height: int) -> dict[str, np.ndarray]:
    values = np.random.default_rng(height).standard_normal((1, 3, height, 9))
    return {"x": values.astype(np.float32)}


@pytest.mark.long
def test_a_session_that_specialises_is_kept_and_specialises_later(
    path: Path, reads: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("_NICE", 0), ("_IDLE", False), ("_PATIENCE", 300.0)):
        monkeypatch.setattr(other_process, name, value)
    write_layers(path)
    want = {rows: hagane.InferenceSession(path).run(None, image(rows))[0] for rows in (4, 11)}
    assert len(reads) == 1
    session = hagane.InferenceSession(path)
    for rows in (4, 11, 4):
        np.testing.assert_array_equal(session.run(None, image(rows))[0], want[rows])
    assert len(reads) == 1, "shapes that came a few times read nothing"
    for _ in range(3 * RUNS):
        np.testing.assert_allclose(session.run(None, image(11))[0], want[11], 1e-4, 1e-4)
    assert session._repeats is not None
    session._repeats.wait()
    assert len(reads) == 1, "another process has read it"
    assert len(list(session._repeats)) == 1
    np.testing.assert_allclose(session.run(None, image(11))[0], want[11], 1e-4, 1e-4)
    np.testing.assert_allclose(session.run(None, image(4))[0], want[4], 1e-4, 1e-4)


def test_a_session_that_may_not_specialise_never_reads_the_model(
    path: Path, reads: list[object]
) -> None:
    write_layers(path)
    options = hagane.SessionOptions(specialize=False)
    hagane.InferenceSession(path, options)
    session = hagane.InferenceSession(path, options)
    for _ in range(3 * RUNS):
        session.run(None, image(5))
    assert len(reads) == 1


def test_a_session_that_counts_shapes_is_freed_with_its_last_reference(path: Path) -> None:
    write_layers(path)
    hagane.InferenceSession(path)
    session = hagane.InferenceSession(path)
    session.run(None, image(5))
    gone = weakref.ref(session)
    del session
    gc.collect()
    assert gone() is None


def test_models_of_several_parts_are_not_kept(path: Path, reads: list[object]) -> None:
    node = helper.make_node("StringNormalizer", ["s"], ["t"])
    graph = helper.make_graph(
        [node], "text", [helper.make_tensor_value_info("s", TensorProto.STRING, ["n"])],
        [helper.make_tensor_value_info("t", TensorProto.STRING, ["m"])],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), path)
    for _ in range(2):
        hagane.InferenceSession(path).run(None, {"s": np.array(["a"], object)})
    assert len(reads) == 2


def test_a_model_with_texts_that_nobody_reads_is_opened_anew(
    path: Path, reads: list[object]
) -> None:
    model = onnx.load(path)
    model.graph.input.append(helper.make_tensor_value_info("said", TensorProto.STRING, ["k"]))
    onnx.save(model, path)
    said = {"said": np.array(["a", "b"], dtype=object)}
    for count in (1, 2):
        (found,) = hagane.InferenceSession(path).run(None, {**feed(2), **said})
        assert found.shape == (2, 24)
        assert len(reads) == count


def test_the_record_of_an_installed_package_stands_for_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "hagane"
    (package / "ops").mkdir(parents=True)
    monkeypatch.setattr(hagane, "__file__", str(package / "__init__.py"))
    for name in ("graph", "machine", "native", "passes", "runtime", "symbolic"):
        (package / name).mkdir()
    source = package / "ops" / "add.py"
    source.write_text("one = 1\n")

    def states() -> tuple[str, str]:
        """Return the state, and that after a change of the source."""
        before = source_state.__wrapped__()
        source.write_text(source.read_text() + "more = 2\n")
        return before, source_state.__wrapped__()

    before, after = states()
    assert before != after
    record = tmp_path / f"hagane-{hagane.__version__}.dist-info" / "RECORD"
    record.parent.mkdir()
    record.write_text("hagane/ops/add.py,sha256=a,9\n")
    before, after = states()
    assert before == after
    record.write_text("hagane/ops/add.py,sha256=another,9\n")
    assert source_state.__wrapped__() != after
