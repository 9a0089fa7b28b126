"""Conversions from and to numbers of 8, 4 and 2 bits, and others that are hard to round."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper

from tests.native.written import check, node

FLOATS = [
    *("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"),
    *("float8_e8m0fnu", "float4_e2m1fn"),
]
TINY = [*FLOATS, "int4", "uint4", "int2", "uint2"]


def onnx_type(dtype: Any) -> int:
    return int(ir.DataType.from_numpy(np.dtype(dtype)))


def all_codes(name: str) -> np.ndarray:
    """Return every value of a type."""
    dtype = np.dtype(getattr(ml_dtypes, name))
    bits = int(ir.DataType.from_numpy(dtype).itemsize * 8)
    return np.arange(1 << bits, dtype=np.uint8).view(dtype).reshape(2, -1)


def hard_floats(dtype: Any) -> np.ndarray:
    """Return numbers of all magnitudes, those half way between neighbours, and the special ones."""
    near = np.concatenate([all_codes(name).astype(np.float64).ravel() for name in FLOATS])
    near = np.unique(near[np.isfinite(near)])
    middles = (near[:-1] + near[1:]) / 2
    beside = np.concatenate([middles * (1 - 2e-3), middles, middles * (1 + 2e-3), near])
    far = np.array([0.0, -0.0, 3e-30, 1e9, -1e9, np.inf, -np.inf, np.nan])
    with np.errstate(over="ignore"):
        return np.concatenate([beside, far]).astype(dtype)


def check_casts(
    feed: dict[str, np.ndarray], casts: dict[str, tuple[str, Any, dict[str, Any]]]
) -> None:
    """Fail unless casts in one model agree: by result, the value cast, the type, attributes."""
    nodes = [
        helper.make_node("Cast", [x], [name], to=onnx_type(to), **attributes)
        for name, (x, to, attributes) in casts.items()
    ]
    check(nodes, [feed], opset=25, outputs=list(casts))


@pytest.mark.parametrize("to", [np.float32, np.float16, ml_dtypes.bfloat16, np.float64])
def test_every_code_is_widened(to: Any) -> None:
    feed = {name: all_codes(name) for name in TINY}
    check_casts(feed, {f"{name} wide": (name, to, {}) for name in TINY})


@pytest.mark.parametrize("source", [np.float32, np.float16, np.float64])
def test_floats_are_rounded_to_few_bits(source: Any) -> None:
    x = hard_floats(source)
    casts = {
        f"{name} {saturate}": (
            "positive" if "e8m0" in name else "x",
            getattr(ml_dtypes, name),
            {"saturate": saturate},
        )
        for name in FLOATS
        for saturate in (0, 1)
    }
    check_casts({"x": x, "positive": np.abs(x)}, casts)


def test_scales_are_rounded_in_three_ways() -> None:
    to = ml_dtypes.float8_e8m0fnu
    casts = {mode: ("x", to, {"round_mode": mode}) for mode in ("up", "down", "nearest")}
    check_casts({"x": np.abs(hard_floats(np.float32))}, casts)


@pytest.mark.parametrize("other", [np.int8, np.uint8, np.int32, np.int64, np.float32, np.float16])
def test_integers_of_few_bits_keep_the_low_ones(other: Any) -> None:
    x = np.arange(-120, 120).astype(other)
    if np.dtype(other).kind == "f":
        x = (np.arange(-8, 16) / 2).astype(other)
    names = ("int4", "uint4", "int2", "uint2")
    feed = {"x": x} | {name: all_codes(name) for name in names}
    casts = {f"to {name}": ("x", getattr(ml_dtypes, name), {}) for name in names}
    check_casts(feed, casts | {f"from {name}": (name, other, {}) for name in names})


def test_few_bits_are_moved() -> None:
    nodes = [helper.make_node("Transpose", [name], [f"{name} turned"]) for name in TINY]
    nodes += [helper.make_node("Flatten", [name], [f"{name} flat"], axis=0) for name in TINY]
    feed = {name: all_codes(name) for name in TINY}
    check(nodes, [feed], opset=25, outputs=[each.output[0] for each in nodes])


def test_doubles_are_rounded_to_halves_once() -> None:
    above, below = 1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-11 - 2.0**-40
    x = np.array([above, below, -above, 65519.99999999, 65520.0, 6e-8, 1e-300, np.inf, np.nan])
    check(node("Cast", ["x"], to=onnx_type(np.float16)), [{"x": x}])


@pytest.mark.parametrize("source", [np.float32, np.float64, np.float16])
def test_floats_are_cut_to_integers(source: Any) -> None:
    feed = {"below": np.linspace(-100, 120, 97), "above": np.linspace(0, 120, 97)}
    casts = {kind: ("below" if kind[0] == "i" else "above", np.dtype(kind), {})
             for kind in ("int8", "uint8", "int16", "uint16", "uint32", "uint64")}  # fmt: skip
    check_casts({name: x.astype(source) for name, x in feed.items()}, casts)


def test_the_largest_unsigned_integers_are_reached() -> None:
    x = np.array([2.0**31, 2.0**32 - 256, 0.5])
    check(node("Cast", ["x"], to=onnx.TensorProto.UINT32), [{"x": x}])
    x = np.array([2.0**63, 2.0**64 - 2048, 2.0**62, 0.5])
    check(node("Cast", ["x"], to=onnx.TensorProto.UINT64), [{"x": x}])


@pytest.mark.parametrize("source", [np.float32, np.float64, np.float16])
def test_numbers_beyond_unsigned_integers_become_one_wherever_they_stand(source: Any) -> None:
    beyond = [np.nan, -np.inf, np.inf, -3e9, 5e9, 1e20, -1.0]
    with np.errstate(over="ignore"):
        x = np.array(beyond * 5).astype(source)
    cast = node("Cast", ["x"], to=onnx.TensorProto.UINT32)
    check(cast, [{"x": x}, {"x": x[3:]}, {"x": x[:1]}])


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint32])
def test_bits_are_shifted_by_any_amount(dtype: Any) -> None:
    low = np.iinfo(dtype).min
    x = np.array([low, low // 2, -1 if low else 7, 1, 5, np.iinfo(dtype).max]).astype(dtype)
    amounts = np.array([0, 1, 7, 8, 31, 32, 63, 64, 100, -1 if low else 3]).astype(dtype)
    feeds = [{"x": x[:, None], "n": amounts[None]}]
    nodes = [node("BitShift", ["x", "n"], [way], direction=way) for way in ("LEFT", "RIGHT")]
    check(nodes, feeds, fixed=["x:1", "n:0"], opset=28, outputs=["LEFT", "RIGHT"])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_remainders_have_the_sign_of_the_divisor(dtype: Any) -> None:
    x = np.array([5.5, -5.5, 0.0, -0.0, 6.0, -6.0, np.inf, np.nan, 1e-3]).astype(dtype)
    by = np.array([2.0, -2.0, 0.7, np.inf, -np.inf]).astype(dtype)
    check(node("Mod", ["x", "by"]), [{"x": x[:, None], "by": by[None]}], fixed=["x:1", "by:0"])


@pytest.mark.parametrize("base", [np.int32, np.int64, np.float32, np.float64, np.float16])
def test_powers_of_mixed_types(base: Any) -> None:
    kinds = ("int32", "int64", "float32", "float64", "uint32")
    feed = {kind: np.array([[0, 1, 2, 3, 5]]).astype(kind) for kind in kinds}
    feed["x"] = np.array([1, 2, 3, 7, -3]).astype(base)[:, None]
    nodes = [node("Pow", ["x", kind], [f"to {kind}"]) for kind in kinds]
    fixed = ["x:1", *(f"{kind}:0" for kind in kinds)]
    check(nodes, [feed], length=4, fixed=fixed, outputs=[f"to {kind}" for kind in kinds])


def test_infinities_of_each_sign() -> None:
    x = np.array([0.0, np.inf, -np.inf, np.nan, 1e38], np.float32)
    nodes = [
        node("IsInf", ["x"], [f"{below}{above}"], detect_negative=below, detect_positive=above)
        for below in (0, 1)
        for above in (0, 1)
    ]
    names = [each.output[0] for each in nodes]
    check(nodes, [{"x": x}, {"x": x.repeat(20)}], outputs=names)


def test_truth_values_are_compared() -> None:
    x = np.array([True, False]).repeat(20)
    made = node("Equal", ["x", "other"])
    check(made, [{"x": x[:, None], "other": x[None]}], fixed=["x:1", "other:0"])


def test_a_dropout_that_keeps_everything_gives_its_mask() -> None:
    feeds = [{"x": np.ones((3, 5), np.float32)}, {"x": np.zeros((1, 40), np.float32)}]
    check(node("Dropout", ["x"], ["y", "mask"]), feeds)


def test_sizes_become_numbers_of_any_type() -> None:
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Cast", ["s"], ["half"], to=onnx.TensorProto.FLOAT16),
        node("Neg", ["s"], ["below"]),
        node("Cast", ["below"], ["wrapped"], to=onnx.TensorProto.UINT16),
    ]
    feeds = [{"x": np.zeros(shape, np.float32)} for shape in ((3, 4), (1, 70))]
    check(nodes, feeds, outputs=["half", "wrapped"])
