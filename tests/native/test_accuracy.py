"""Accuracy of elementwise functions over all floats, as vector.h states it, against float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from onnx import helper

from tests.native.bodies import by_onnxruntime
from tests.native.models import every_level, model, refused, session

ALPHA, GAMMA = float(np.float32(1.67326319217681884765625)), float(np.float32(1.05070102214813))
erf, erfc = (np.vectorize(function, otypes=[np.float64]) for function in (math.erf, math.erfc))


def floats() -> np.ndarray:
    """Return floats of every exponent and sign, those in between that matter, and the edges."""
    random = np.random.default_rng(0)
    exponents = np.arange(255, dtype=np.uint32)[:, None] << 23
    drawn = (exponents | random.integers(0, 1 << 23, (255, 40), dtype=np.uint32)).reshape(-1)
    magnitudes = drawn.view(np.float32)
    edges = [0.0, -0.0, 1.0, -1.0, 3.0, -3.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45]
    return np.concatenate(
        [
            magnitudes,
            -magnitudes,
            np.linspace(-110, 110, 20001).astype(np.float32),
            np.linspace(-4, 4, 20001).astype(np.float32),
            np.array([*edges, np.finfo(np.float32).max, np.finfo(np.float32).min], np.float32),
        ]
    )


X = floats()


def softplus(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def gelu(x: np.ndarray) -> np.ndarray:
    return x * 0.5 * erfc(-x / math.sqrt(2))


def gelu_tanh(x: np.ndarray) -> np.ndarray:
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    return x / (1 + np.exp(-2 * inner))


def mish(x: np.ndarray) -> np.ndarray:
    return x * np.tanh(softplus(x))


def swish(x: np.ndarray) -> np.ndarray:
    return x / (1 + np.exp(-x))


def elu(x: np.ndarray) -> np.ndarray:
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


# Operator, attributes, exact result, and the largest error in units in the last place.
FUNCTIONS: list[tuple[str, dict[str, Any], Any, float]] = [
    ("Exp", {}, np.exp, 1.1),
    ("Log", {}, np.log, 0.9),
    ("Erf", {}, erf, 3.2),  # 2.3 where vectors have sixteen lanes
    ("Sigmoid", {}, lambda x: 1 / (1 + np.exp(-x)), 2.3),
    ("Tanh", {}, np.tanh, 1.3),
    ("Softplus", {}, softplus, 2.4),
    ("Swish", {}, swish, 3.0),
    ("Mish", {}, mish, 4.3),
    ("Gelu", {}, gelu, 5.3),
    ("Gelu", {"approximate": "tanh"}, gelu_tanh, 3.3),
    ("Elu", {}, elu, 1.0),
    ("Selu", {}, lambda x: GAMMA * np.where(x > 0, x, ALPHA * elu(x)), 2.0),
    ("Celu", {"alpha": 2.0}, lambda x: np.where(x > 0, x, 2 * elu(x / 2)), 1.1),
    ("HardSwish", {}, lambda x: x * np.clip((x + 3) / 6, 0, 1), 2.4),
    ("Softsign", {}, lambda x: x / (1 + np.abs(x)), 1.6),
    ("Sin", {}, np.sin, 2.0),
    ("Cos", {}, np.cos, 2.0),
    ("Tan", {}, np.tan, 3.5),
    ("Asin", {}, np.arcsin, 2.5),
    ("Acos", {}, np.arccos, 2.5),
    ("Atan", {}, np.arctan, 3.0),
    ("Sinh", {}, np.sinh, 4.0),
    ("Cosh", {}, np.cosh, 4.0),
    ("Asinh", {}, np.arcsinh, 4.0),
    ("Acosh", {}, np.arccosh, 4.0),
    ("Atanh", {}, np.arctanh, 4.0),
]  # fmt: skip
NAMES = [
    name + "".join(f"-{v}" for v in attributes.values()) for name, attributes, _, _ in FUNCTIONS
]


def errors(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Return errors in units in the last place of the exact results."""
    want = exact.astype(np.float32)
    unit = np.spacing(np.abs(want)).astype(np.float64)
    found = np.abs(got.astype(np.float64) - exact) / unit
    same = (got == want) | (np.isnan(got) & np.isnan(exact))
    return np.where(same, np.minimum(np.nan_to_num(found), 0.5), np.nan_to_num(found, nan=np.inf))


@every_level
@np.errstate(all="ignore")
def test_functions_are_as_accurate_as_stated(level: str) -> None:
    nodes = [
        helper.make_node(name, ["x"], [f"y{i}"], **attributes)
        for i, (name, attributes, _, _) in enumerate(FUNCTIONS)
    ]
    outputs = [f"y{i}" for i in range(len(nodes))]
    made = session(model(nodes, {"x": X}, outputs, opset=24), instructions=level)
    results = made.run(None, {"x": X})
    assert refused(made) == {}
    x = X.astype(np.float64)
    for name, got, (_, _, exact, bound) in zip(NAMES, results, FUNCTIONS, strict=True):
        found = errors(got, exact(x))
        worst = int(found.argmax())
        # Without fused products, the argument of the exponential is less exact.
        allowed = 120.0 if level == "portable" and name == "Gelu-tanh" else bound
        assert found[worst] <= allowed, (name, X[worst], got[worst], found[worst])


@pytest.mark.parametrize("alpha", [1.0, 1.702])
def test_swish_is_as_onnx_defines_it(alpha: float) -> None:
    node = helper.make_node("Swish", ["x"], ["y"], alpha=alpha)
    x = np.linspace(-20, 20, 4001).astype(np.float32)
    (got,) = session(model([node], {"x": x}, opset=24)).run(None, {"x": x})
    wide = x.astype(np.float64)
    np.testing.assert_allclose(got, wide / (1 + np.exp(-alpha * wide)), rtol=1e-5)


@every_level
def test_the_logarithm_of_softmax_keeps_the_digits_of_what_is_near_zero(level: str) -> None:
    random = np.random.default_rng(0)
    x = random.standard_normal((64, 37)).astype(np.float32)
    x[np.arange(64), random.integers(0, 37, 64)] += np.linspace(0, 30, 64).astype(np.float32)
    x[8:16] += np.float32(4096)
    x[16:20] = 7
    x[20:24, ::2] = 40
    proto = model([helper.make_node("LogSoftmax", ["x"], ["y"])], {"x": x})
    made = session(proto, instructions=level)
    (got,) = made.run(None, {"x": x})
    assert refused(made) == {}
    z = x.astype(np.float64) - x.max(-1, keepdims=True)
    peak = z == 0
    ones = peak.sum(-1, keepdims=True) - 1.0
    rest = np.where(peak, 0, np.exp(z)).sum(-1, keepdims=True)
    np.testing.assert_allclose(got, z - np.log1p(ones + rest), rtol=6e-7)
    (theirs,) = by_onnxruntime(proto, {"x": x})
    np.testing.assert_allclose(got, theirs, rtol=1e-5, atol=1e-3)


@every_level
def test_shares_that_count_no_more_are_zero_and_never_denormal(level: str) -> None:
    x = np.zeros((5, 40), np.float32)
    x[0, 1:] = -np.float32(3.4e38)
    x[1, 1:] = -np.inf
    x[2] = -np.arange(40) * 3
    x[3, 7] = np.nan
    x[4] = -100.0
    proto = model([helper.make_node("Softmax", ["x"], ["y"])], {"x": x})
    (got,) = session(proto, instructions=level).run(None, {"x": x})
    exact = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    want = exact / exact.sum(1, keepdims=True)
    np.testing.assert_allclose(got, want, rtol=2e-6, atol=2e-35)
    assert np.isnan(got[3]).all()
    assert not np.any((got != 0) & (np.abs(got) < np.finfo(np.float32).tiny))


@every_level
@np.errstate(all="ignore")
def test_powers_are_within_two_ulp_and_end_where_those_of_c_do(level: str) -> None:
    ends = np.array([0, 1, 2, 3, 0.5, 1 / 3, 1e-40, 1e38, np.inf, np.nan, 16777215, 2**31], "f")
    ends = np.concatenate([ends, -ends])
    random = np.random.default_rng(0)
    x = np.exp(random.uniform(-20, 20, 20000)).astype(np.float32)
    x[::3] = random.uniform(0.5, 2, x[::3].size)
    y = random.uniform(-4, 4, x.size).astype(np.float32)
    y[::5] = random.uniform(-90, 90, y[::5].size)
    x = np.concatenate([np.repeat(ends, ends.size), x])
    y = np.concatenate([np.tile(ends, ends.size), y])
    proto = model([helper.make_node("Pow", ["x", "e"], ["y"])], {"x": x, "e": y})
    made = session(proto, instructions=level)
    (got,) = made.run(None, {"x": x, "e": y})
    assert refused(made) == {}
    exact = np.power(x.astype(np.float64), y.astype(np.float64))
    found = errors(got, exact)
    worst = int(found.argmax())
    assert found[worst] <= 2.0, (x[worst], y[worst], got[worst], exact[worst])
    np.testing.assert_array_equal(np.signbit(got), np.signbit(np.where(np.isnan(got), got, exact)))


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "reflection"])
def test_grids_of_doubles_are_sampled_in_double_precision(mode: str, padding: str) -> None:
    random = np.random.default_rng(0)
    feed = {"x": random.standard_normal((2, 3, 5, 6)), "g": random.uniform(-1.2, 1.2, (2, 4, 7, 2))}
    node = helper.make_node("GridSample", ["x", "g"], ["y"], mode=mode, padding_mode=padding)
    proto = model([node], feed)
    (got,) = session(proto).run(None, feed)
    (want,) = session(proto, engine="reference").run(None, feed)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def test_tanh_of_doubles_is_within_three_units_in_the_last_place() -> None:
    random = np.random.default_rng(0)
    small = np.exp(random.uniform(-700, 3.2, 20000)) * random.choice([-1, 1], 20000)
    ends = np.array([0, -0.0, 1e-320, 0.17, 0.35, 22, 30, np.inf, -np.inf, np.nan])
    x = np.concatenate([ends, small, random.uniform(-2, 2, 20000)])
    proto = model([helper.make_node("Tanh", ["x"], ["y"])], {"x": x})
    (got,) = session(proto).run(None, {"x": x})
    exact = np.tanh(x.astype(np.longdouble))
    np.testing.assert_array_equal(np.isnan(got), np.isnan(x))
    known = ~np.isnan(x)
    units = np.abs(got - exact)[known] / np.spacing(np.abs(exact[known]).astype(np.float64))
    assert units.max() <= 3
    np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(x[known]))
