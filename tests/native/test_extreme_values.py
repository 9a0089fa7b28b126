"""Zeros, infinities, no numbers, the least and the largest: native kernels and the reference."""

from __future__ import annotations

from collections import defaultdict

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper

from tests.native.extreme_values import REAL, WHOLE, elementwise, grid, lines, of_lines
from tests.native.models import draw, every_level, model, session

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
_FIRST = ("float32", "int32")
first = pytest.mark.parametrize("kind", _FIRST)
others = pytest.mark.parametrize("kind", [k for k in (*REAL, *WHOLE) if k not in _FIRST])
_ERROR = {"float64": 1e-9, "float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2}
# Of equal numbers either may be taken; the standard says nothing of their signs.
_EITHER_ZERO = ("Max", "Min", "Relu", "Sign")
# Sums and products of numbers whose order decides between a large one and infinity.
_ORDERED = ("ReduceProd", "CumProd")


def alike(
    name: str, got: np.ndarray, want: np.ndarray, *, signs: bool = False, summed: bool = False
) -> None:
    """Fail unless no numbers and infinities lie at the same places, and the rest is near.

    Args:
        name: What is compared.
        got: Of the native kernels.
        want: Of the reference kernels.
        signs: Whether zeros have signs.
        summed: Whether results are sums of numbers near one, or much larger.
    """
    assert got.dtype == want.dtype, name
    assert got.shape == want.shape, name
    if got.dtype.name not in _ERROR:
        np.testing.assert_array_equal(got, want, name)
        return
    error, tiny = _ERROR[got.dtype.name], float(ml_dtypes.finfo(got.dtype).tiny)
    left, right = got.astype(np.float64), want.astype(np.float64)
    least = error if summed else 4 * tiny
    np.testing.assert_allclose(left, right, rtol=error, atol=least, err_msg=name)
    if signs:
        zero = (left == 0) & (right == 0)
        np.testing.assert_array_equal(np.signbit(left[zero]), np.signbit(right[zero]), name)


@first
def test_every_elementwise_operator_meets_the_ends_of_its_types(kind: str) -> None:
    check_elements(kind)


@pytest.mark.long
@others
def test_every_elementwise_operator_meets_the_ends_of_other_types(kind: str) -> None:
    check_elements(kind)


def check_elements(kind: str) -> None:
    groups: dict[tuple[str, ...], list[onnx.NodeProto]] = defaultdict(list)
    for types, name, choices in elementwise(kind):
        split = ("whole",) if name in ("Div", "Mod") else ()
        groups[(*types, *split)] += [
            helper.make_node(name, [f"x{i}" for i in range(len(types))], ["y"], **attributes)
            for attributes in choices
        ]
    assert sum(map(len, groups.values())) > 10
    for (*types, last), nodes in groups.items():
        kinds = types if last == "whole" else [*types, last]
        feed = grid(kinds, nodes[0].op_type)
        for i, node in enumerate(nodes):
            node.output[:] = [f"y{i}"]
        names = [f"y{i}" for i in range(len(nodes))]
        proto = model(nodes, feed, names, shapes={name: ["n"] for name in feed}, opset=24)
        proto.ir_version = 10
        native = session(proto, threads=1).run(None, feed)
        wanted = session(proto, engine="reference").run(None, feed)
        for node, got, want in zip(nodes, native, wanted, strict=True):
            if node.op_type == "Gelu":  # (its formula loses what is far below zero)
                near = ~(feed["x0"].astype(np.float64) < -3) | ~np.isfinite(want.astype("f8"))
                got, want = got[near], want[near]
            about = f"{node.op_type} {kinds} {[a.name for a in node.attribute]}"
            alike(about, got, want, signs=node.op_type not in _EITHER_ZERO)


@first
def test_lines_meet_the_ends_of_their_types(kind: str) -> None:
    check_lines(kind)


@pytest.mark.long
@others
def test_lines_meet_the_ends_of_other_types(kind: str) -> None:
    check_lines(kind)


def check_lines(kind: str) -> None:
    feed = {"x": lines(kind)}
    proto, names = of_lines(kind)
    assert len(names) > 5
    native = session(proto, threads=1).run(None, feed)
    wanted = session(proto, engine="reference").run(None, feed)
    for name, got, want in zip(names, native, wanted, strict=True):
        if not (name.startswith(_ORDERED) and kind in REAL):
            alike(f"{name} of {kind}", got, want, summed=True)


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_casts_of_what_does_not_fit_are_those_of_processors(kind: str) -> None:
    """As the compilers of NumPy and ONNX Runtime convert them; the standard leaves them open."""
    low, high = -(2**31), 2**31
    x = np.array([np.nan, np.inf, -np.inf, 2.0**64, 2.0**63, 2.0**32, 2.0**31, -1], kind)
    wanted = {
        "uint32": [high, 0, high, 0, 0, 0, high, 2**32 - 1],
        "uint64": [2**63, 0, 2**63, 0, 2**63, 2**32, high, 2**64 - 1],
        "int32": [low, low, low, low, low, low, low, -1],
        "int64": [-(2**63)] * 5 + [2**32, high, -1],
    }
    nodes = [
        helper.make_node("Cast", ["x"], [to], to=int(ir.DataType[to.upper()])) for to in wanted
    ]
    proto = model(nodes, {"x": x}, list(wanted), shapes={"x": ["n"]})
    for to, got in zip(wanted, session(proto).run(None, {"x": x}), strict=True):
        np.testing.assert_array_equal(got, np.array(wanted[to], to), to)


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_doubles_are_cut_to_four_bits_without_rounding(engine: str) -> None:
    """A double just below a whole number is that number as a float."""
    x = np.array([0.9999999999, -0.9999999999, 7.9999999999, -7.9999999999, 9, -9])
    to = int(ir.DataType.INT4)
    proto = model([helper.make_node("Cast", ["x"], ["y"], to=to)], {"x": x}, shapes={"x": ["n"]})
    (got,) = session(proto, engine=engine).run(None, {"x": x})
    assert got.astype(int).tolist() == [0, 0, 7, -7, -7, 7]


@every_level
def test_a_range_with_no_number_has_none(level: str) -> None:
    """Wherever it lies, and whatever the rest; numbers next to nothing have a scale of nought."""
    node = helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "s", "z"])
    rows = [np.array([2, 3], np.float32), np.array([np.nan], np.float32)]
    rows += [np.full(3, 1e-45, np.float32), np.array([0, 1e-45, -1e-45], np.float32)]
    for size, place in ((3, 1), (40, 0), (97, 96), (300, 77)):
        rows.append(draw((size,)))
        rows[-1][place] = np.nan
    proto = model([node], {"x": rows[0]}, ["y", "s", "z"], shapes={"x": ["n"]})
    native = session(proto, instructions=level, threads=1)
    reference = session(proto, engine="reference")
    for x in rows:
        got, want = native.run(None, {"x": x}), reference.run(None, {"x": x})
        for name, left, right in zip("ysz", got, want, strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-6, err_msg=f"{name} of {x}")
        assert np.isnan(got[1]) == np.isnan(x).any()


@every_level
@pytest.mark.parametrize(("size", "stride", "pad"), [(2, 2, 0), (3, 2, 1), (3, 3, 0)])
def test_windows_with_no_number_are_none(level: str, size: int, stride: int, pad: int) -> None:
    """Also where the convolution before pools its results in registers, or makes them by planes."""
    random = np.random.default_rng(0)
    x = random.standard_normal((2, 32, 12, 14)).astype(np.float32)
    x[random.random(x.shape) < 0.02] = np.nan
    x[0, 0] = -np.inf
    few = random.standard_normal((1, 1, 28, 28)).astype(np.float32)
    few[0, 0, 3, 4], few[0, 0, 20, 27] = np.nan, np.inf
    pool = {"kernel_shape": [size] * 2, "strides": [stride] * 2, "pads": [pad] * 4}
    nodes = [
        helper.make_node("MaxPool", ["x"], ["pooled"], **pool),
        helper.make_node("GlobalMaxPool", ["x"], ["whole"]),
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1] * 4),
        helper.make_node("MaxPool", ["c"], ["behind"], **pool),
        helper.make_node("Conv", ["few", "v"], ["d"]),
        helper.make_node("MaxPool", ["d"], ["filtered"], **pool),
    ]
    weights = {
        "w": random.standard_normal((32, 32, 3, 3)).astype(np.float32),
        "v": random.standard_normal((8, 1, 3, 3)).astype(np.float32),
    }
    names, feed = ["pooled", "whole", "behind", "filtered"], {"x": x, "few": few}
    proto = model(nodes, feed, names, weights)
    native = session(proto, instructions=level, threads=1).run(None, feed)
    wanted = session(proto, engine="reference").run(None, feed)
    for name, got, want in zip(names, native, wanted, strict=True):
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want), name)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4, err_msg=name)


@pytest.mark.parametrize("ratio", [0, 2])
def test_regions_with_no_number_have_the_largest_after_it(ratio: int) -> None:
    """As comparisons in the order of samples decide."""
    sizes = {"output_height": 2, "output_width": 3, "sampling_ratio": ratio}
    regions = np.array([[0, 0, 4, 4], [1, 1, 5, 6], [2, 1, 3, 3]], np.float32)
    feed = {"x": draw((1, 2, 6, 7)), "regions": regions, "images": np.zeros(3, np.int64)}
    proto = model([helper.make_node("RoiAlign", [*feed], ["y"], mode="max", **sizes)], feed)
    native, reference = session(proto), session(proto, engine="reference")
    for place in ((0, 0, 2, 2), (0, 1, 1, 3), (0, 0, 4, 5)):
        x = draw((1, 2, 6, 7))
        x[place] = np.nan
        (got,), (want,) = (each.run(None, feed | {"x": x}) for each in (native, reference))
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5, err_msg=str(place))
