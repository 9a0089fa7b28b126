"""Reductions along runs of any length; numbers at the edges of other operators."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnxruntime
import pytest
from onnx import helper

import hagane
from hagane.errors import KernelError
from tests.native.models import every_level, model, refused, session
from tests.native.written import natively, node, proto_of

NUMPY = {
    "ReduceMax": np.max,
    "ReduceMin": np.min,
    "ReduceSum": np.sum,
    "ReduceMean": np.mean,
    "ReduceProd": np.prod,
    "ReduceL1": lambda x, **more: np.sum(np.abs(x), **more),
    "ReduceL2": lambda x, **more: np.sqrt(np.sum(x * x, **more)),
    "ReduceSumSquare": lambda x, **more: np.sum(x * x, **more),
    "ReduceLogSumExp": lambda x, **more: np.log(np.sum(np.exp(x), **more)),
}
# Runs shorter and longer than a vector, several and a piece; few and many results in a row.
ONE_AXIS = [
    ((5, 1, 3), 2), ((2, 2, 15), 2), ((1, 3, 16), 2), ((7, 1, 33), 2), ((2, 3, 100), 2),
    ((1, 2, 4501), 2), ((1, 300, 3), 1), ((1, 9, 64), 0), ((3, 11, 130), 1), ((3, 17, 7), 1),
    ((6, 1, 1), 1), ((1, 1, 90000), 2),
]  # fmt: skip
TWO_AXES = [
    ((2, 3, 100), (0, 2)),
    ((40, 5, 64), (0, 2)),
    ((5, 1, 257), (0, 1)),
    ((3, 4, 7), (1, 2)),
]


def results(names: list[str], feeds: list[dict[str, np.ndarray]]) -> list[list[np.ndarray]]:
    """Return what one native session with open sizes gives for feeds, an output a reduction."""
    nodes = [node(name, ["x", "a"], [name], keepdims=1) for name in names]
    proto = proto_of(nodes, feeds[0], ["a"], outputs=names)
    made = hagane.InferenceSession(proto)
    with natively():
        return [made.run(None, feed) for feed in feeds]


def near(name: str, got: np.ndarray, x: np.ndarray, axes: tuple[int, ...]) -> None:
    """Fail unless a result is within rounding of NumPy's in float64, or equals that of integers."""
    if x.dtype.kind in "iu":
        wide = x.astype(np.int64)
        want = NUMPY[name](wide, axis=axes, keepdims=True)
        if name == "ReduceMean":
            want = wide.sum(axes, keepdims=True) // (x.size // want.size)
        np.testing.assert_array_equal(got, want.astype(x.dtype), err_msg=f"{name} {x.shape} {axes}")
        return
    wide = x.astype(np.float64)
    want = NUMPY[name](wide, axis=axes, keepdims=True)
    scale = np.sum(abs(wide), axis=axes, keepdims=True) if name == "ReduceSum" else abs(want) + 3
    rounding = {"float16": 2e-3, "bfloat16": 1e-2, "float64": 1e-12}.get(x.dtype.name, 2e-6)
    finite = abs(want) < float(ml_dtypes.finfo(x.dtype).max)
    right = abs(got.astype(np.float64) - want) <= rounding * scale
    assert np.all(right | ~finite), f"{name} {x.dtype} {x.shape} {axes}"


@pytest.mark.parametrize(
    "dtype",
    [
        *("float32", "float16", "int32"),
        *(pytest.param(name, marks=pytest.mark.long) for name in ("float64", "bfloat16", "uint8")),
    ],
)
def test_runs_of_every_length_give_numpys_numbers(dtype: str) -> None:
    rng = np.random.default_rng(3)
    kind = np.dtype(getattr(ml_dtypes, dtype, None) or dtype)
    whole = kind.kind in "iu"
    names = [name for name in NUMPY if not whole or name not in ("ReduceL2", "ReduceLogSumExp")]
    names.remove("ReduceProd")
    factor = 9 if whole else 1
    feeds = [
        {
            "x": abs(rng.normal(size=shape) * factor).astype(kind) - kind.type(1),
            "a": np.array([axis]),
        }
        for shape, axis in ONE_AXIS
    ]
    if dtype == "uint8":
        names = ["ReduceMax", "ReduceMin"]  # ONNX has no others of bytes
    if dtype == "int32":
        feeds = [{**feed, "x": abs(feed["x"])} for feed in feeds]
    for feed, found in zip(feeds, results(names, feeds), strict=True):
        for name, got in zip(names, found, strict=True):
            near(name, got, feed["x"], (int(feed["a"][0]),))


def test_products_and_several_axes_give_numpys_numbers() -> None:
    rng, names = (
        np.random.default_rng(4),
        ["ReduceProd", "ReduceMax", "ReduceLogSumExp", "ReduceSum"],
    )
    feeds = [
        {"x": rng.uniform(0.9, 1.1, shape).astype(np.float32), "a": np.array(axes)}
        for shape, axes in TWO_AXES
    ]
    for feed, found in zip(feeds, results(names, feeds), strict=True):
        for name, got in zip(names, found, strict=True):
            near(name, got, feed["x"], tuple(map(int, feed["a"])))


def test_numbers_that_are_none_and_infinities_come_through() -> None:
    names, feeds = ["ReduceMax", "ReduceMin", "ReduceLogSumExp"], []
    for shape, axis in ONE_AXIS[:-1]:
        for special in (np.nan, np.inf, -np.inf):
            x = np.random.default_rng(1).normal(size=shape).astype(np.float32)
            x.reshape(-1)[[0, x.size // 2, x.size - 1]] = special
            feeds.append({"x": x, "a": np.array([axis])})
    for feed, found in zip(feeds, results(names, feeds), strict=True):
        for name, got in zip(names, found, strict=True):
            axes = (int(feed["a"][0]),)
            with np.errstate(all="ignore"):
                top = np.max(feed["x"].astype(np.float64), axis=axes, keepdims=True)
                want = NUMPY[name](feed["x"].astype(np.float64), axis=axes, keepdims=True)
            if name == "ReduceLogSumExp":
                want = np.where(np.isfinite(top), want, top)
            np.testing.assert_allclose(got, want, rtol=1e-5, err_msg=f"{name} {feed['x'].shape}")


@every_level
@pytest.mark.parametrize("count", [9000, "n"])
def test_long_sums_keep_the_digits_of_float32(level: str, count: int | str) -> None:
    x = np.random.default_rng(5).random((9000, 33), np.float32)
    rows = helper.make_node("ReduceSum", ["x", "first"], ["rows"], keepdims=0)
    whole = helper.make_node("ReduceSum", ["x"], ["whole"], keepdims=0)
    turned = helper.make_node("Transpose", ["x"], ["turned"], perm=[1, 0])
    mean = helper.make_node("ReduceMean", ["turned", "last"], ["mean"], keepdims=0)
    so_far = helper.make_node("CumSum", ["x", "zero"], ["so_far"])
    proto = model(
        [rows, whole, turned, mean, so_far], {"x": x}, ["rows", "whole", "mean", "so_far"],
        {"first": np.array([0]), "last": np.array([1]), "zero": np.array(0)}, {"x": (count, 33)},
    )  # fmt: skip
    made = session(proto, instructions=level)
    assert not refused(made)
    exact = x.astype(np.float64)
    wanted = exact.sum(0), exact.sum(), exact.mean(0), exact.cumsum(0)
    for got, want in zip(made.run(None, {"x": x}), wanted, strict=True):
        # One chain of 9,000 is off by 1e-6 and more.
        assert np.linalg.norm(got - want) < 3e-7 * np.linalg.norm(want)


@every_level
@pytest.mark.parametrize("rows", [5, 60])
def test_long_products_of_computed_matrices_keep_the_digits_of_float32(
    level: str, rows: int
) -> None:
    rng = np.random.default_rng(6)
    feed = {"a": rng.random((rows, 3072), np.float32), "b": rng.random((3072, 40), np.float32)}
    made = session(model([helper.make_node("MatMul", ["a", "b"], ["y"])], feed), instructions=level)
    (got,) = made.run(None, feed)
    exact = feed["a"].astype(np.float64) @ feed["b"]
    assert np.linalg.norm(got - exact) < 2e-7 * np.linalg.norm(exact)  # 8e-7 in one chain


def test_extremes_of_bytes_and_long_integers_are_onnx_runtimes() -> None:
    names = ["ReduceMax", "ReduceMin"]
    for dtype in ("uint8", "int64"):
        limits = np.iinfo(dtype)
        x = np.random.default_rng(2).integers(limits.min, limits.max, (5, 70, 9), dtype, True)
        feed = {"x": x, "a": np.array([1])}
        nodes = [node(name, ["x", "a"], [name], keepdims=0) for name in names]
        for made in nodes:
            made.name = made.op_type
        proto = proto_of(nodes, feed, ["a"], opset=20, outputs=names)
        other = onnxruntime.InferenceSession(proto.SerializeToString())
        got = hagane.InferenceSession(proto).run(None, feed)
        for left, right in zip(got, other.run(None, feed), strict=True):
            np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize(("name", "dtype"), [("Div", "uint8"), ("Mod", "int64")])
@pytest.mark.parametrize("constant", [True, False])
def test_division_of_integers_by_zero_is_refused_as_onnx_runtime_does(
    name: str, dtype: str, constant: bool
) -> None:
    a, b = np.array([5, 7, 9, 4], dtype), np.array([1, 2, 0, 3], dtype)
    made = helper.make_node(name, ["a", "b"], ["y"], "half")
    if constant:
        proto, feed = model([made], {"a": a}, constants={"b": b}), {"a": a}
    else:
        feed = {"a": a, "b": b}
        proto = model([made], feed)
    with pytest.raises(Exception, match=r"(?i)(division|modulo) by zero|b_data|Mod::Mod"):
        onnxruntime.InferenceSession(proto.SerializeToString()).run(None, feed)
    session = hagane.InferenceSession(proto)
    with pytest.raises(KernelError, match=f"{name} 'half' failed: ZeroDivisionError: integer"):
        session.run(None, feed)
    if not constant:
        feed["b"] = np.array([1, 2, 2, 3], dtype)
        want = {"Div": [5, 3, 4, 1], "Mod": [0, 1, 1, 1]}[name]
        assert session.run(None, feed)[0].tolist() == want


def test_selu_of_infinite_alpha_is_onnx_runtimes_around_zero() -> None:
    feed = {"x": np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan] * 3, np.float32)}
    for alpha in (float("inf"), 1.5):
        proto = model([helper.make_node("Selu", ["x"], ["y"], alpha=alpha)], feed)
        (want,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, feed)
        (got,) = hagane.InferenceSession(proto).run(None, feed)
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_a_constant_is_laid_where_one_end_cuts_more_than_there_is() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    proto = proto_of([node("Pad", ["x", "p"])], {"x": x, "p": np.zeros(4, int)}, ["p"], opset=20)
    made = hagane.InferenceSession(proto)
    other = onnxruntime.InferenceSession(proto.SerializeToString())
    for pads in ([0, -4, 0, 4], [0, 4, 0, -4], [-3, 0, 3, 1], [1, -2, -1, 5], [0, -3, 0, 0]):
        feed = {"x": x, "p": np.array(pads)}
        with natively():
            (got,) = made.run(None, feed)
        np.testing.assert_array_equal(got, other.run(None, feed)[0])
    constant = model([node("Pad", ["x", "p"])], {"x": x}, constants={"p": np.array([0, -4, 0, 4])})
    got = hagane.InferenceSession(constant).run(None, {"x": x})[0]
    np.testing.assert_array_equal(got, np.zeros((2, 3)))
    with pytest.raises(KernelError, match="leave nothing of axis 1 of size 3"):
        made.run(None, {"x": x, "p": np.array([0, -4, 0, 0])})


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int32", "uint8", "bool"])
def test_the_largest_and_the_least_of_nothing_are_native(dtype: str) -> None:
    """As where no row lacks a number, in imputers of scikit-learn."""
    ends = (False, True) if dtype == "bool" else (-np.inf, np.inf)
    if np.dtype(dtype).kind in "iu":
        ends = (np.iinfo(dtype).min, np.iinfo(dtype).max)
    feeds = [
        {"x": np.ones(shape, dtype), "a": np.array(axes)}
        for shape, axes in (((0, 3, 5), [0]), ((2, 0, 70), [1]), ((3, 4, 0), [2]), ((0, 9, 0), [0]))
    ]
    for feed, (least, most) in zip(feeds, results(["ReduceMax", "ReduceMin"], feeds), strict=True):
        shape = np.sum(feed["x"], axis=int(feed["a"][0]), keepdims=True).shape
        np.testing.assert_array_equal(least, np.full(shape, ends[0], dtype))
        np.testing.assert_array_equal(most, np.full(shape, ends[1], dtype))
