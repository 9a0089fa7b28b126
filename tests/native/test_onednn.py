"""oneDNN in the place of kernels of our own: the same results, and none but where it was chosen."""

from __future__ import annotations

import ctypes
import gc
import json
import logging
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

import hagane
from hagane.errors import MissingExtra
from hagane.graph import legalise, load
from hagane.machine import LEVELS, best_level, multiplies_bfloat16, processor_name
from hagane.native import Choice, Choices, onednn, plan_graph
from hagane.native.partition import NativePart
from hagane.native.segment import Segment
from hagane.ops import infer_types
from tests.native.models import draw, model, session
from tests.native.test_safety_forks import in_child
from tests.native.test_safety_sessions import resident_bytes, resources
from tests.native.test_tuning import _Always

needs_library = pytest.mark.skipif(
    onednn.obstacle() is not None, reason=f"oneDNN: {onednn.obstacle()}"
)
FEW = settings(max_examples=10)
PRECISIONS = [False, True] if multiplies_bfloat16(best_level()) else [False]
half_or_not = st.sampled_from(PRECISIONS)
orders = st.sampled_from([None, "groups", "pixels"])


def compiled(
    proto: onnx.ModelProto, *, half: bool, threads: int, choice: Choice | Choices
) -> tuple[Segment, int]:
    """Return a model's one compiled part, and how many of its kernels call oneDNN."""
    made = load(proto)
    legalise(made)
    types = infer_types(made)
    constants = {v: v.const_value.numpy() for v in made.graph.initializers.values()}
    choices = _Always(choice) if isinstance(choice, Choice) else choice
    plan = plan_graph(made.graph, types, constants, threads=threads, pairs=half, choices=choices)
    assert plan.refused == {}
    (part,) = plan.parts
    assert isinstance(part, NativePart)
    calls = sum(kernel.label.endswith("(oneDNN)") for kernel in part.segment.kernels)
    return part.segment, calls


def rounded(x: np.ndarray, half: bool) -> np.ndarray:
    return x.astype(ml_dtypes.bfloat16).astype(np.float32) if half else x


def by_reference(
    proto: onnx.ModelProto, feed: dict[str, np.ndarray], half: bool, round_inputs: Sequence[str]
) -> np.ndarray:
    """Return the result of the reference kernels, of rounded factors if the products are half."""
    changed = onnx.ModelProto()
    changed.CopyFrom(proto)
    for tensor in changed.graph.initializer:
        if tensor.name.startswith("w"):
            array = rounded(onnx.numpy_helper.to_array(tensor), half)
            tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
    fed = {name: rounded(x, half and name in round_inputs) for name, x in feed.items()}
    (want,) = session(changed, engine="reference").run(None, fed)
    return np.asarray(want)


@needs_library
@FEW
@given(
    st.integers(1, 130), st.integers(1, 200), st.integers(1, 200), st.sampled_from([1, 2, 3]),
    st.booleans(), st.booleans(), st.booleans(), half_or_not, orders,
)  # fmt: skip
def test_a_product_is_that_of_the_reference_kernel(
    m: int, k: int, n: int, threads: int,
    biased: bool, added: bool, bounded: bool, half: bool, order: str | None,
) -> None:  # fmt: skip
    feed = {"x": draw((2, m, k)), "r": draw((2, m, n), 3)}
    nodes, last = [helper.make_node("MatMul", ["x", "w"], ["p"])], "p"
    if biased:
        nodes.append(helper.make_node("Add", [last, "b"], [last := "biased"]))
    if added:
        nodes.append(helper.make_node("Add", [last, "r"], [last := "added"]))
    if bounded:
        nodes.append(helper.make_node("Clip", [last, "low", "high"], [last := "bounded"]))
    nodes.append(helper.make_node("Sigmoid", [last], ["y"]))
    constants = {
        "w": draw((k, n), 1) / np.float32(k**0.5), "b": draw((n,), 2),
        "low": np.float32(-1.5), "high": np.float32(0.5),
    }  # fmt: skip
    if not added:
        del feed["r"]
    proto = model(nodes, feed, constants=constants)
    segment, calls = compiled(
        proto, half=half, threads=threads, choice=Choice(library="onednn", order=order)
    )
    assert calls == 1
    (got,) = segment.run([feed[buffer.name] for buffer, _, _ in segment.inputs])
    want = by_reference(proto, feed, half, ["x"])
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@needs_library
@FEW
@given(
    st.integers(1, 2), st.integers(5, 40), st.integers(1, 70), st.integers(1, 14),
    st.integers(1, 14), st.sampled_from([(1, 1), (3, 3), (1, 3), (2, 1)]), st.integers(1, 2),
    st.integers(1, 2), st.integers(0, 2), st.sampled_from([1, 2]), st.booleans(), half_or_not,
    orders,
)  # fmt: skip
def test_a_convolution_is_that_of_the_reference_kernel(
    images: int, channels: int, out: int, height: int, width: int, kernel: tuple[int, int],
    stride: int, dilation: int, pad: int, threads: int, added: bool, half: bool,
    order: str | None,
) -> None:  # fmt: skip
    height, width = (
        max(size, (tap - 1) * dilation + 1)
        for size, tap in zip((height, width), kernel, strict=True)
    )
    feed = {"x": draw((images, channels, height, width))}
    attributes = {
        "strides": [stride, stride + 1], "dilations": [dilation] * 2, "pads": [pad, 0, 0, pad],
    }  # fmt: skip
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"], **attributes)]
    constants = {"w": draw((out, channels, *kernel), 1), "b": draw((out,), 2)}
    last = "c"
    if added:
        sizes = [
            (size + pad - (tap - 1) * dilation - 1) // step + 1
            for size, tap, step in zip((height, width), kernel, (stride, stride + 1), strict=True)
        ]
        constants["r"] = draw((images, out, *sizes), 3)
        nodes.append(helper.make_node("Add", ["c", "r"], [last := "added"]))
    nodes.append(helper.make_node("Relu", [last], ["y"]))
    proto = model(nodes, feed, constants=constants)
    segment, calls = compiled(
        proto, half=half, threads=threads, choice=Choice(library="onednn", order=order)
    )
    narrow = out * 2 <= best_level().lanes  # vectors along rows serve some of these
    assert calls == 1 or narrow
    (got,) = segment.run([feed["x"]])
    if calls:
        want = by_reference(proto, feed, half, ["x"])
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@needs_library
@pytest.mark.parametrize("half", PRECISIONS)
@pytest.mark.parametrize("groups", [2, 4, 16])
def test_a_grouped_convolution_is_that_of_the_reference_kernel(half: bool, groups: int) -> None:
    feed = {"x": draw((2, 64, 9, 11))}
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], pads=[1] * 4, group=groups)]
    constants = {"w": draw((128, 64 // groups, 3, 3), 1)}
    proto = model(nodes, feed, constants=constants)
    for order in ("groups", "pixels"):
        choice = Choice(library="onednn", order=order)  # type: ignore[arg-type]
        segment, calls = compiled(proto, half=half, threads=2, choice=choice)
        assert calls == 1
        (got,) = segment.run([feed["x"]])
        want = by_reference(proto, feed, half, ["x"])
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@needs_library
@pytest.mark.parametrize("half", PRECISIONS)
def test_large_layers_are_divided_and_stay_the_same(half: bool) -> None:
    feed = {"x": draw((1, 128, 40, 36))}
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c"], pads=[1] * 4, strides=[2, 1]),
        helper.make_node("Relu", ["c"], ["d"]),
        helper.make_node("Conv", ["d", "w2"], ["e"], pads=[1] * 4),
        helper.make_node("GlobalAveragePool", ["e"], ["f"]),
        helper.make_node("Flatten", ["f"], ["g"]),
        helper.make_node("Gemm", ["g", "w3"], ["y"], transB=1),
    ]
    constants = {
        "w1": draw((320, 128, 3, 3), 1), "w2": draw((330, 320, 3, 3), 2) / 48,
        "w3": draw((3000, 330), 3),
    }  # fmt: skip
    proto = model(nodes, feed, constants=constants)
    (exact,) = session(proto, engine="reference").run(None, feed)
    bound = np.abs(exact).max() * (2e-2 if half else 1e-5)
    for order in ("groups", "pixels"):
        choice = Choice(library="onednn", order=order)  # type: ignore[arg-type]
        segment, calls = compiled(proto, half=half, threads=2, choice=choice)
        assert calls == 3
        np.testing.assert_allclose(segment.run([feed["x"]])[0], exact, rtol=0, atol=bound)


@needs_library
def test_layers_beside_other_kernels_share_images_with_them() -> None:
    # The border that the second convolution reads lies around what the first one writes, and
    # what the third one reads.
    feed = {"x": draw((1, 32, 12, 12))}
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"]),
        helper.make_node("Conv", ["a", "w2"], ["b"], pads=[1] * 4, group=32),
        helper.make_node("Conv", ["a", "w3"], ["c"], pads=[1] * 4, strides=[1, 1]),
        helper.make_node("Add", ["b", "c"], ["y"]),
    ]
    constants = {
        "w1": draw((32, 32, 1, 1), 1), "w2": draw((32, 1, 3, 3), 2), "w3": draw((32, 32, 3, 3), 3),
    }  # fmt: skip
    proto = model(nodes, feed, constants=constants)
    (want,) = session(proto, engine="reference").run(None, feed)
    for half in PRECISIONS:
        segment, calls = compiled(proto, half=half, threads=2, choice=Choice(library="onednn"))
        assert calls == 2
        bound = np.abs(want).max() * (2e-2 if half else 1e-5)
        np.testing.assert_allclose(segment.run([feed["x"]])[0], want, rtol=0, atol=bound)


class _Some(dict[str, Choice]):
    """oneDNN for layers whose key has a text in it, the rules' forms for others."""

    def __init__(self, text: str):
        super().__init__()
        self._text = text

    def get(self, key: str, default: Any = None) -> Any:
        return Choice(library="onednn") if self._text in key else default


@needs_library
@pytest.mark.parametrize("half", PRECISIONS)
@pytest.mark.parametrize("channels", [40, 64])
@pytest.mark.parametrize(
    ("which", "expected"), [("conv", 4), ("3x3", 2), ("1x1 1x1 1x1 0x0x0x0", 2)]
)
def test_blocks_with_additions_share_images_with_kernels_of_our_own(
    half: bool, channels: int, which: str, expected: int
) -> None:
    feed = {"x": draw((2, channels, 9, 10))}
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w2"], ["c"], pads=[1] * 4),
        helper.make_node("Relu", ["c"], ["d"]),
        helper.make_node("Conv", ["d", "w3", "b3"], ["e"]),
        helper.make_node("Add", ["e", "b"], ["f"]),
        helper.make_node("Relu", ["f"], ["g"]),
        helper.make_node("Conv", ["g", "w4"], ["y"], pads=[0, 1, 1, 0]),
    ]
    scale = np.float32(channels**-0.5)
    constants = {
        "w1": draw((channels, channels, 1, 1), 1) * scale,
        "w2": draw((80, channels, 3, 3), 2) * scale / 3,
        "w3": draw((channels, 80, 1, 1), 3) / 9, "b3": draw((channels,), 4),
        "w4": draw((channels, channels, 3, 3), 5) * scale / 3,
    }  # fmt: skip
    proto = model(nodes, feed, constants=constants)
    (want,) = session(proto, engine="reference").run(None, feed)
    segment, calls = compiled(proto, half=half, threads=2, choice=_Some(which))
    assert calls == expected
    (got,) = segment.run([feed["x"]])
    bound = np.abs(want).max() * (2e-2 if half else 1e-5)
    np.testing.assert_allclose(got, want, rtol=0, atol=bound)


@needs_library
@pytest.mark.parametrize("half", PRECISIONS)
@pytest.mark.parametrize(
    ("which", "expected"), [("product", 4), ("48x64x", 2), ("x128x64", 1), ("x128x96", 1)]
)
def test_products_share_rows_with_kernels_of_our_own(half: bool, which: str, expected: int) -> None:
    feed = {"x": draw((48, 64))}
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["a"]),
        helper.make_node("Gelu", ["a"], ["b"]),
        helper.make_node("MatMul", ["b", "w2"], ["c"]),
        helper.make_node("MatMul", ["b", "w3"], ["d"]),
        helper.make_node("Add", ["c", "x"], ["e"]),
        helper.make_node("Tanh", ["e"], ["f"]),
        helper.make_node("MatMul", ["f", "w4"], ["g"]),
        helper.make_node("Mul", ["d", "g"], ["y"]),
    ]
    constants = {
        "w1": draw((64, 128), 1) / 8, "w2": draw((128, 64), 2) / 11,
        "w3": draw((128, 96), 3) / 11, "w4": draw((64, 96), 4) / 8,
    }  # fmt: skip
    proto = model(nodes, feed, constants=constants, opset=20)
    (want,) = session(proto, engine="reference").run(None, feed)
    segment, calls = compiled(proto, half=half, threads=2, choice=_Some(which))
    assert calls == expected
    bound = np.abs(want).max() * (3e-2 if half else 1e-5)
    np.testing.assert_allclose(segment.run([feed["x"]])[0], want, rtol=0, atol=bound)


@needs_library
def test_what_is_no_number_stays_so() -> None:
    x = draw((40, 64))
    x[3, 5] = np.nan
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Relu", ["p"], ["y"])]
    proto = model(nodes, {"x": x}, constants={"w": draw((64, 96), 1)})
    segment, _ = compiled(proto, half=False, threads=1, choice=Choice(library="onednn"))
    (got,) = segment.run([x])
    assert np.isnan(got[3]).all()
    assert not np.isnan(np.delete(got, 3, 0)).any()


def small() -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Return a product that the tuning cache of ``cached`` names."""
    feed = {"x": draw((64, 96))}
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")]
    return model(nodes, feed, constants={"w": draw((96, 128), 1)}), feed


def cached(path: Path, proto: onnx.ModelProto, **options: object) -> hagane.InferenceSession:
    """Return a session whose tuning cache says that oneDNN is the fastest."""
    key = f"product 64x96x128 fp32 {best_level().name} threads 2"
    content = {"format": 1, "processors": {processor_name(): {key: {"library": "onednn"}}}}
    path.write_text(json.dumps(content))
    chosen = hagane.SessionOptions(tune="fast", tune_cache=str(path), intra_op_num_threads=2)
    for name, value in options.items():
        chosen.add_session_config_entry(name, str(value))
    return hagane.InferenceSession(proto, chosen)


def calls_of(made: hagane.InferenceSession) -> int:
    """Return how many of a session's kernels call oneDNN."""
    (part,) = made._programs.general.native_parts()
    return sum(kernel.label.endswith("(oneDNN)") for kernel in part.segment.kernels)


@needs_library
def test_a_choice_of_the_cache_is_followed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    proto, feed = small()
    with caplog.at_level(logging.WARNING, logger="hagane"):
        made = cached(tmp_path / "choices.json", proto)
    assert caplog.text == ""
    assert calls_of(made) == 1
    assert "MatMul 'product' (oneDNN)" in str(made.profile(feed, runs=1))
    (want,) = session(proto, engine="reference").run(None, feed)
    np.testing.assert_allclose(made.run(None, feed)[0], want, rtol=1e-5, atol=1e-5)
    # Without tuning no cache is asked, and nothing calls the library.
    assert calls_of(session(proto)) == 0


def test_a_missing_extra_is_named_where_it_was_chosen(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> onednn.OneDnn:
        raise MissingExtra("the library oneDNN", "onednn")

    monkeypatch.setattr(onednn, "load", missing)
    proto, feed = small()
    with caplog.at_level(logging.WARNING, logger="hagane"):
        made = cached(tmp_path / "choices.json", proto)
    (record,) = caplog.records
    assert record.getMessage() == (
        "oneDNN was measured to be fastest for 1 layers, which are computed by other kernels now: "
        "the library oneDNN needs the extra 'onednn', which is not installed: "
        "pip install 'hagane[onednn]'"
    )
    assert calls_of(made) == 0
    (want,) = session(proto, engine="reference").run(None, feed)
    np.testing.assert_allclose(made.run(None, feed)[0], want, rtol=1e-5, atol=1e-5)


def test_a_missing_extra_that_no_layer_needs_is_no_notice(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onednn, "PACKAGE", "a-package-that-is-not-installed")
    onednn.load.cache_clear()
    try:
        assert "pip install 'hagane[onednn]'" in str(onednn.obstacle())
        x = draw((8, 16))
        nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
        other = model(nodes, {"x": x}, constants={"w": draw((16, 8), 1)})
        with caplog.at_level(logging.WARNING, logger="hagane"):
            made = cached(tmp_path / "choices.json", other)
        assert caplog.text == ""
        np.testing.assert_allclose(made.run(None, {"x": x})[0], x @ draw((16, 8), 1), rtol=1e-4)
    finally:
        onednn.load.cache_clear()


def test_a_library_that_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "libdnnl.so.3"
    broken.write_text("no library")
    with pytest.raises(onednn.OneDnnError, match=r"cannot be loaded: .*libdnnl.* libgomp\.so\.1"):
        onednn.OneDnn(str(broken))


@needs_library
def test_instructions_that_were_not_allowed_are_not_used() -> None:
    lower = [level for level in LEVELS if level != best_level()]
    proto, _ = small()
    made = load(proto)
    legalise(made)
    types = infer_types(made)
    constants = {v: v.const_value.numpy() for v in made.graph.initializers.values()}
    choices = _Always(Choice(library="onednn"))
    (part,) = plan_graph(made.graph, types, constants, level=lower[-1], choices=choices).parts
    assert isinstance(part, NativePart)
    assert not any("(oneDNN)" in kernel.label for kernel in part.segment.kernels)


@needs_library
def test_layers_are_measured_with_the_library_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hagane.native.tuning._QUIET", 0.0)
    seen: list[Choice] = []

    def measured(segments: dict[Choice, Segment], *_: object) -> dict[Choice, float]:
        seen.extend(segments)
        return {form: 1.0 if form.library and form.order == "pixels" else 2.0 for form in segments}

    monkeypatch.setattr("hagane.native.tuning._measure", measured)
    path = tmp_path / "choices.json"
    x = draw((1, 32, 16, 16))
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c"], pads=[1] * 4),
        helper.make_node("MatMul", ["c", "w2"], ["y"]),
    ]
    constants = {"w1": draw((32, 32, 3, 3), 1), "w2": draw((16, 256), 2)}
    proto = model(nodes, {"x": x}, constants=constants)
    chosen = hagane.SessionOptions(tune="fast", tune_cache=str(path))
    made = hagane.InferenceSession(proto, chosen)
    assert seen.count(Choice(library="onednn", order="pixels")) == 2
    kept = json.loads(path.read_text())["processors"][processor_name()]
    assert list(kept.values()) == [{"library": "onednn", "order": "pixels"}] * 2
    assert calls_of(made) == 2
    (want,) = session(proto, engine="reference").run(None, {"x": x})
    np.testing.assert_allclose(made.run(None, {"x": x})[0], want, rtol=1e-4, atol=1e-3)


@needs_library
def test_packed_weights_and_scratch_memory_are_in_the_plan(tmp_path: Path) -> None:
    proto, _ = small()
    plan = cached(tmp_path / "choices.json", proto).memory_plan({})
    assert plan.weights >= 96 * 128 * 4
    segment, _ = compiled(proto, half=False, threads=2, choice=Choice(library="onednn"))
    assert segment.memory({})[0] == plan.weights


@needs_library
def test_the_callers_setting_of_openmp_stays(tmp_path: Path) -> None:
    openmp = ctypes.CDLL("libgomp.so.1")
    before = openmp.omp_get_max_threads()
    openmp.omp_set_num_threads(5)
    try:
        proto, feed = small()
        cached(tmp_path / "choices.json", proto).run(None, feed)
        assert openmp.omp_get_max_threads() == 5
    finally:
        openmp.omp_set_num_threads(before)


@needs_library
@pytest.mark.parametrize("half", PRECISIONS)
def test_threads_share_a_session_and_children_run_it(half: bool) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c"], pads=[1] * 4),
        helper.make_node("MatMul", ["c", "w2"], ["y"]),
    ]
    feed = {"x": draw((1, 32, 16, 24))}
    constants = {"w1": draw((48, 32, 3, 3), 1), "w2": draw((24, 256), 2)}
    proto = model(nodes, feed, constants=constants)
    segment, calls = compiled(proto, half=half, threads=2, choice=Choice(library="onednn"))
    assert calls == 2
    (want,) = segment.run([feed["x"]])

    def work(_: int) -> bool:
        return all(np.array_equal(segment.run([feed["x"]])[0], want) for _ in range(20))

    with ThreadPoolExecutor(6) as pool:
        running = [pool.submit(work, number) for number in range(12)]
        children = [in_child(lambda: work(0)) for _ in range(3)]

        def anew() -> bool:
            # Other sizes, so that the child makes primitives of its own.
            x = draw((17, 33))
            node = helper.make_node("MatMul", ["x", "w"], ["y"])
            other = model([node], {"x": x}, constants={"w": draw((33, 65), 1)})
            own, _ = compiled(other, half=half, threads=2, choice=Choice(library="onednn"))
            return bool(np.allclose(own.run([x])[0], x @ draw((33, 65), 1), rtol=0.1, atol=0.5))

        children.append(in_child(anew))
        assert all(future.result() for future in running)
    assert children == [0] * 4


def come_and_go(count: int) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c"], pads=[1] * 4),
        helper.make_node("MatMul", ["c", "w2"], ["y"]),
    ]
    x = draw((1, 16, 8, 8))
    constants = {"w1": draw((16, 16, 3, 3), 1), "w2": draw((8, 40), 2)}
    proto = model(nodes, {"x": x}, constants=constants)

    def once() -> None:
        segment, calls = compiled(proto, half=False, threads=2, choice=Choice(library="onednn"))
        assert calls == 2
        for _ in range(20):
            segment.run([x])

    for _ in range(20):
        once()
    before = resources()
    marks: list[int] = []
    for _ in range(5):
        for _ in range(count // 5):
            once()
        gc.collect()
        marks.append(resident_bytes())
    assert resources() == before
    # The allocator takes and returns memory now and then; what is lost is lost all the time.
    # AddressSanitizer keeps what is freed for a while.
    grown = min(later - sooner for sooner, later in pairwise(marks))
    assert grown < 256 << 10 or "HAGANE_SANITIZE" in os.environ, f"resident bytes: {marks}"


@needs_library
def test_forty_models_leave_nothing_behind() -> None:
    come_and_go(40)


@needs_library
@pytest.mark.long
def test_a_thousand_models_leave_nothing_behind() -> None:
    come_and_go(1000)
