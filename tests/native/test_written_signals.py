"""Resize by the data, quantisation of any type, Fourier transforms, tables: with open sizes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import numpy_helper

from tests.native.written import check, check_fault, node

RANDOM = np.random.default_rng(0)


def draw(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize(
    ("mode", "attributes"),
    [
        ("nearest", {}),
        ("nearest", {"nearest_mode": "ceil", "coordinate_transformation_mode": "asymmetric"}),
        ("linear", {}),
        ("linear", {"coordinate_transformation_mode": "align_corners"}),
        ("linear", {"antialias": 1}),
        ("cubic", {"exclude_outside": 1, "coordinate_transformation_mode": "half_pixel_symmetric"}),
    ],
)
def test_images_are_resized_by_scales_of_a_run(mode: str, attributes: dict[str, Any]) -> None:
    made = node("Resize", ["x", "", "scales"], mode=mode, **attributes)
    feeds = [
        {"x": draw(1, 2, 5, 4), "scales": np.array(scales, np.float32)}
        for scales in ([1, 1, 2, 3], [1, 1, 0.6, 0.5], [1, 1, 1, 1.7])
    ]
    check(made, feeds, fixed=["scales"], length=8)


@pytest.mark.parametrize("scales", [(2, 2), (1, 3), (3, 1), (2, 9)])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_images_grow_by_whole_factors(dtype: Any, scales: tuple[int, int]) -> None:
    """Rows of any width, whose elements are repeated a vector at a time."""
    constant = numpy_helper.from_array(np.array([1, 1, *scales], np.float32))
    made = [
        node("Constant", [], ["scales"], value=constant),
        node("Resize", ["x", "", "scales"], coordinate_transformation_mode="asymmetric",
             nearest_mode="floor"),
    ]  # fmt: skip
    sizes = [(1, 1), (5, 37), (2, 64), (3, 1)]
    check(made, [{"x": (draw(2, 3, *size) * 9).astype(dtype)} for size in sizes])


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float64])
def test_other_elements_are_resized(dtype: Any) -> None:
    made = node("Resize", ["x", "", "scales"], mode="linear")
    x = (np.arange(12).reshape(3, 4) * 20).astype(dtype)
    feeds = [{"x": x, "scales": np.array([1.5, 2], np.float32)}]
    check(made, feeds, fixed=["scales"], length=8, steps=1)


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_proportions_are_kept(policy: str) -> None:
    made = node("Resize", ["x", "", "", "sizes"], keep_aspect_ratio_policy=policy, axes=[1, 2])
    feeds = [{"x": draw(2, 4, 6), "sizes": np.array(sizes)} for sizes in ([9, 7], [3, 12])]
    check(made, feeds, fixed=["sizes"])


def test_a_part_of_an_image_is_resized() -> None:
    made = node(
        "Resize", ["x", "roi", "", "sizes"], mode="linear", axes=[0, 1],
        coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=7.0,
    )  # fmt: skip
    rois = ([0.1, 0.2, 0.9, 0.8], [-0.5, 0.0, 1.5, 1.0])
    feeds = [
        {"x": draw(6, 5), "roi": np.array(roi, np.float32), "sizes": np.array([4, 7])}
        for roi in rois
    ]
    check(made, feeds, fixed=["roi", "sizes"], length=8)


BLOCKED = {"axis": 1, "block_size": 3}


@pytest.mark.parametrize(
    "to",
    [
        *(np.int16, np.uint16, ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.int2),
        *(ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float4_e2m1fn),
    ],
)
def test_numbers_are_quantised_to_any_type(to: Any) -> None:
    kind = int(ir.DataType.from_numpy(np.dtype(to)))
    made = node("QuantizeLinear", ["x", "s"], output_dtype=kind)
    feeds = [{"x": draw(4, 6) * 9, "s": np.array([0.7], np.float32)}]
    check(made, feeds, fixed=["s"], opset=25)
    blocked = node("QuantizeLinear", ["x", "s"], output_dtype=kind, **BLOCKED)
    scales = np.array([[0.5, 2], [3, 0.1], [1, 1], [0.3, 9]], np.float32)
    check(blocked, [{"x": draw(4, 6) * 9, "s": scales}], fixed=["s", "x"], opset=25)


@pytest.mark.parametrize("to", [np.float32, np.float16])
@pytest.mark.parametrize(
    "source", [np.int16, np.uint16, ml_dtypes.int4, ml_dtypes.float8_e4m3fn, np.int8]
)
def test_numbers_of_any_type_are_dequantised(source: Any, to: Any) -> None:
    x = np.arange(24).reshape(4, 6).astype(np.int8).astype(source)
    scales = np.array([[0.5, 2], [3, 0.1], [1, 1], [0.3, 9]], to)
    zeros = np.array([[1, 2], [3, 0], [1, 1], [0, 2]], np.int8).astype(source)
    made = node("DequantizeLinear", ["x", "s", "z"], **BLOCKED)
    check(made, [{"x": x, "s": scales, "z": zeros}], fixed=["x", "s", "z"], opset=25)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("inverse", [0, 1])
@pytest.mark.parametrize("onesided", [0, 1])
def test_signals_of_any_length_are_transformed(dtype: Any, inverse: int, onesided: int) -> None:
    made = node("DFT", ["x"], inverse=inverse, onesided=onesided)
    parts = 1 if onesided and not inverse else 2
    feeds = [{"x": draw(2, n, parts, dtype=dtype)} for n in (2, 3, 4, 7, 12, 30, 64, 97)]
    check(made, feeds, fixed=["x:2"], length=200)


@pytest.mark.parametrize("inverse", [0, 1])
@pytest.mark.parametrize("n", [37, 74, 211, 504])
def test_lengths_that_a_model_fixes_are_transformed(n: int, inverse: int) -> None:
    nodes = [node("Constant", [], ["n"], value_int=n),
             node("DFT", ["x", "n"], inverse=inverse)]  # fmt: skip
    feeds = [{"x": draw(rows, n, 2)} for rows in (1, 3)]
    check(nodes, feeds, fixed=["x:2"], length=200)


def test_an_axis_and_a_length_of_a_run() -> None:
    made = node("DFT", ["x", "n", "axis"], onesided=1)
    feeds = [
        {"x": draw(3, 5, 4, 1), "n": np.array(n), "axis": np.array(axis)}
        for n, axis in ((5, 1), (8, 2), (2, -2), (3, 0))
    ]
    check(made, feeds, fixed=["x:3", "n", "axis"], length=100)
    check_fault(made, feeds[0], feeds[0] | {"axis": np.array(9)}, fixed=["x:3", "n", "axis"])


def test_spectra_of_windows() -> None:
    nodes = [
        node("Constant", [], ["n"], value_int=8), node("Constant", [], ["step"], value_int=4),
        node("HannWindow", ["n"], ["w"]), node("STFT", ["x", "step", "w"]),
    ]  # fmt: skip
    check(nodes, [{"x": draw(2, 32, 1)}, {"x": draw(1, 50, 1)}], fixed=["x:2"], length=50)


@pytest.mark.parametrize("name", ["Hann", "Hamming", "Blackman"])
@pytest.mark.parametrize("periodic", [0, 1])
def test_windows_of_any_length(name: str, periodic: int) -> None:
    feeds = [{"n": np.array(n)} for n in (10, 1, 0, 33)]
    check(node(f"{name}Window", ["n"], periodic=periodic), feeds, fixed=["n"], length=9)


def test_channels_are_normalised_by_their_neighbours() -> None:
    feeds = [{"x": draw(2, 7, 3, 4)}, {"x": draw(1, 7, 1, 9)}]
    check(node("LRN", ["x"], size=4, alpha=0.1), feeds, fixed=["x:1"], length=9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_determinants(dtype: Any) -> None:
    singular = np.ones((2, 3, 3), dtype)
    feeds = [{"x": draw(n, n, dtype=dtype)[None]} for n in (1, 2, 5)]
    for feed in [*feeds, {"x": singular}]:
        check(node("Det", ["x"]), [feed], fixed=["x:1", "x:2"], length=30)


@pytest.mark.parametrize("aligned", [0, 1])
def test_grids_of_sizes_of_a_run(aligned: int) -> None:
    made = node("AffineGrid", ["t", "size"], align_corners=aligned)
    feeds = [{"t": draw(2, 2, 3), "size": np.array(size)} for size in ([2, 1, 4, 5], [2, 3, 1, 2])]
    check(made, feeds, fixed=["t:1", "t:2", "size"], length=9)
    made = node("AffineGrid", ["t", "size"], align_corners=aligned)
    feed = {"t": draw(1, 3, 4), "size": np.array([1, 1, 2, 3, 4])}
    check(made, [feed], fixed=["t:1", "t:2", "size"], length=9)


def test_axes_of_a_run_are_folded_away() -> None:
    made = node("ReduceSum", ["x", "axes"], keepdims=0)
    feeds = [{"x": draw(3, 4, 5), "axes": np.array([axis])} for axis in (0, 1, -1)]
    check(made, feeds, fixed=["axes"], length=9)


def test_blocks_of_a_run_become_an_image() -> None:
    made = node("Col2Im", ["x", "image", "block"], strides=[2, 1], pads=[1, 0, 1, 0])
    feeds = [
        {"x": draw(2, 3 * 2 * 2, 12), "image": np.array([4, 5]), "block": np.array([2, 2])},
        {"x": draw(1, 2 * 3 * 1, 10), "image": np.array([4, 5]), "block": np.array([3, 1])},
    ]
    check(made, feeds, fixed=["image", "block"], length=9)


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
def test_sequences_with_gaps_are_counted(mode: str) -> None:
    made = node(
        "TfIdfVectorizer", ["x"], mode=mode, min_gram_length=1, max_gram_length=2,
        max_skip_count=3, ngram_counts=[0, 3], ngram_indexes=[4, 0, 2, 1, 3],
        pool_int64s=[2, 3, 5, 5, 6, 7, 2], weights=[1.5, 2.0, 0.5, 3.0, 1.0],
    )  # fmt: skip
    rows = RANDOM.integers(2, 8, (4, 9))
    for dtype in (np.int64, np.int32):
        x = rows.astype(dtype)
        check(made, [{"x": x}, {"x": x[:1]}, {"x": x[:, :1]}, {"x": x[:, :0]}])


def test_numbers_are_encoded_by_a_table() -> None:
    x = np.array([[1.0, 2.5, np.nan], [7.0, -1.0, 2.0]], np.float32)
    keys = {"keys_floats": [2.5, 1.0, float("nan"), -1.0]}
    made = node("ai.onnx.ml:LabelEncoder", ["x"], **keys, values_int64s=[5, 6, 7, 8])
    check(made, [{"x": x}, {"x": x[:1]}])
    tables = {
        "keys_tensor": numpy_helper.from_array(np.array([3, 1, 2])),
        "values_tensor": numpy_helper.from_array(np.array([0.5, -1, 9], np.float32)),
    }
    proto = onnx.helper.make_node("LabelEncoder", ["x"], ["y"], "node", "", "ai.onnx.ml", **tables)
    check(proto, [{"x": np.array([1, 2, 3, 4])}])


@pytest.mark.parametrize("axes", [1, 2])
def test_real_signals_are_transformed_and_back(axes: int) -> None:
    there = node("com.microsoft:Rfft", ["x"], ["f"], normalized=0, onesided=1, signal_ndim=axes)
    back = node("com.microsoft:Irfft", ["f"], normalized=0, onesided=1, signal_ndim=axes)
    check(
        [there, back], [{"x": draw(2, 6, 8)}, {"x": draw(1, 5, 14)}], outputs=["f", "y"], length=90
    )


def test_half_a_transform_has_a_length_that_a_run_gives() -> None:
    made = node("DFT", ["x", "n"], onesided=1)
    feeds = [{"x": draw(2, 12, 1), "n": np.array(n)} for n in (12, 7, 30, 1)]
    check(made, feeds, fixed=["x:2", "n"], length=40)


def test_half_a_transform_has_the_length_of_an_axis() -> None:
    """As exporters write ``rfft``."""
    made = [
        node("Shape", ["x"], ["shape"], start=1, end=2),
        node("Squeeze", ["shape"], ["n"]),
        node("DFT", ["x", "n"], ["y"], onesided=1),
    ]
    feeds = [{"x": draw(2, n, 1)} for n in (12, 7, 30, 1)]
    check(made, feeds, fixed=["x:2"], length=40)
