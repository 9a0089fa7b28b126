"""Which forms of root-mean-square normalisation become one node, and which must not."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto

from tests.native.models import draw, model
from tests.passes.harness import applied, counted, node

X = draw((2, 5, 24))
CONSTANTS = {
    "two": np.array(2, np.float32), "last": np.array([-1]), "epsilon": np.array(1e-6, np.float32),
    "one": np.array(1, np.float32), "minus": np.array(-0.5, np.float32), "w": draw((24,), 1),
    "half": np.array(0.5, np.float32), "third": np.array(2), "zero": np.array(0, np.float32),
}  # fmt: skip


def root_mean_square(square: str = "power", form: str = "Sqrt") -> list[onnx.NodeProto]:
    """Return nodes that compute ``n``, the normalised ``x``."""
    squared = node("Pow", "x two", "q") if square == "power" else node("Mul", "x x", "q")
    nodes = [squared, node("ReduceMean", "q last", "m"), node("Add", "m epsilon", "v")]
    last = {
        "Sqrt": [node("Sqrt", "v", "r"), node("Div", "x r", "n")],
        "half power": [node("Pow", "v half", "r"), node("Div", "x r", "n")],
        "quotient": [
            node("Sqrt", "v", "r"), node("Div", "one r", "i"), node("Mul", "x i", "n"),
        ],
        "Reciprocal": [
            node("Sqrt", "v", "r"), node("Reciprocal", "r", "i"), node("Mul", "i x", "n"),
        ],
        "power": [node("Pow", "v minus", "i"), node("Mul", "x i", "n")],
    }  # fmt: skip
    return [*nodes, *last[form]]


@pytest.mark.parametrize("form", ["Sqrt", "half power", "quotient", "Reciprocal", "power"])
@pytest.mark.parametrize("square", ["power", "product"])
@pytest.mark.parametrize("scale", ["n w", "w n"])
def test_every_way_to_divide_is_recognised(square: str, form: str, scale: str) -> None:
    nodes = [*root_mean_square(square, form), node("Mul", scale, "y")]
    counts, left = applied(model(nodes, {"x": X}, constants=CONSTANTS), {"x": X})
    assert counts["fuse_rms_norm"] == 1
    assert left == ["RMSNormalization"]


def test_the_scale_may_be_computed() -> None:
    feed = {"x": X, "g": draw((24,), 3)}
    nodes = [node("Add", "g one", "s"), *root_mean_square(), node("Mul", "n s", "y")]
    assert applied(model(nodes, feed, constants=CONSTANTS), feed)[1] == ["Add", "RMSNormalization"]


@pytest.mark.parametrize("factor", [(5, 24), (2, 1, 1), ()])
def test_a_factor_that_is_no_row_stays_a_product(factor: tuple[int, ...]) -> None:
    feed = {"x": X, "g": draw(factor, 3)}
    nodes = [*root_mean_square(), node("Mul", "n g", "y")]
    assert applied(model(nodes, feed, constants=CONSTANTS), feed)[1] == ["RMSNormalization", "Mul"]


def test_a_result_that_is_read_twice_is_normalised_without_scale() -> None:
    nodes = [*root_mean_square(), node("Mul", "n w", "t"), node("Add", "n t", "y")]
    left = applied(model(nodes, {"x": X}, constants=CONSTANTS), {"x": X})[1]
    assert left == ["RMSNormalization", "Mul", "Add"]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_numbers_that_are_cast_for_it_are_recognised(dtype: type) -> None:
    narrow = int(TensorProto.FLOAT16 if dtype is np.float16 else TensorProto.BFLOAT16)
    feed = {"h": X.astype(dtype)}
    nodes = [
        node("Cast", "h", "x", to=TensorProto.FLOAT), *root_mean_square(),
        node("Cast", "n", "c", to=narrow), node("Mul", "w c", "y"),
    ]  # fmt: skip
    constants = {**CONSTANTS, "w": CONSTANTS["w"].astype(dtype)}
    proto = model(nodes, feed, constants=constants)
    assert applied(proto, feed, tolerance=2e-2)[1] == ["RMSNormalization"]


def test_a_cast_before_another_precision_stays() -> None:
    feed = {"h": X.astype(np.float16)}
    nodes = [
        node("Cast", "h", "x", to=TensorProto.FLOAT), *root_mean_square(), node("Mul", "w n", "y"),
    ]  # fmt: skip
    left = applied(model(nodes, feed, constants=CONSTANTS), feed)[1]
    assert left == ["Cast", "RMSNormalization"]


REFUSED = {
    "another axis": {"last": np.array([1])},
    "two axes": {"last": np.array([1, 2])},
    "another power": {"two": np.array(3, np.float32)},
    "no ε": {"epsilon": np.array(0, np.float32)},
    "an ε for each element": {"epsilon": np.full((5, 1), 1e-3, np.float32)},
}


@pytest.mark.parametrize("form", REFUSED)
def test_what_only_looks_like_it_stays(form: str) -> None:
    nodes = [*root_mean_square(), node("Mul", "n w", "y")]
    assert "fuse_rms_norm" not in counted(nodes, {**CONSTANTS, **REFUSED[form]}, x=X)


def test_a_mean_of_other_squares_or_without_its_axis_stays() -> None:
    nodes = root_mean_square("product")
    other = [node("Mul", "z z", "q"), *nodes[1:], node("Mul", "n w", "y")]
    assert "fuse_rms_norm" not in counted(other, CONSTANTS, x=X, z=draw(X.shape, 4))
    mean = node("ReduceMean", "q last", "m", keepdims=0)
    lost = [nodes[0], mean, *nodes[2:], node("Mul", "n w", "y")]
    square = draw((24, 24), 5)
    assert "fuse_rms_norm" not in counted(lost, CONSTANTS, x=square)


def test_double_precision_stays() -> None:
    constants = {
        name: array.astype(np.float64) if array.dtype == np.float32 else array
        for name, array in CONSTANTS.items()
    }
    nodes = [*root_mean_square(), node("Mul", "n w", "y")]
    assert "fuse_rms_norm" not in counted(nodes, constants, x=X.astype(np.float64))


def test_a_length_known_only_at_run_time_stays() -> None:
    nodes = [*root_mean_square(), node("Mul", "n n", "y")]
    proto = model(nodes, {"x": X}, constants=CONSTANTS, shapes={"x": [2, 5, "n"]})
    assert applied(proto, {"x": X})[0] == {}
