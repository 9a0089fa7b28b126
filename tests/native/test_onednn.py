"""oneDNN in the place of kernels of our own: the same results, and none but where it was chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from hagane.machine import best_level, multiplies_bfloat16
from hagane.native import Choice, Choices, Target
from hagane.native.rules.onednn import binding
from hagane.native.run.loaded import Loaded
from tests.drawing import few
from tests.native.models import draw, model, only_part, session
from tests.native.test_tuning import _Always

needs_library = pytest.mark.skipif(
    binding.obstacle() is not None, reason=f"oneDNN: {binding.obstacle()}"
)
FEW = few(5)
PRECISIONS = [False, True] if multiplies_bfloat16(best_level()) else [False]
half_or_not = st.sampled_from(PRECISIONS)
orders = st.sampled_from([None, "groups", "pixels"])


def compiled(
    proto: onnx.ModelProto, *, half: bool, threads: int, choice: Choice | Choices
) -> tuple[Loaded, int]:
    """Return a model's one compiled part, and how many of its kernels call oneDNN."""
    choices = _Always(choice) if isinstance(choice, Choice) else choice
    part = only_part(proto, Target(best_level(), threads, half, choices))
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

    def __bool__(self) -> bool:
        return True

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
