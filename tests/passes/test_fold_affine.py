"""What scales and shifts channels becomes weights and biases where it can."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.native.models import draw, model
from tests.passes.harness import applied, node

IMAGE, ROWS = draw((1, 4, 6, 7)), draw((3, 4))
WEIGHTS = {
    "Conv": draw((5, 4, 3, 3), 1), "ConvTranspose": draw((4, 5, 3, 3), 1),
    "Gemm": draw((4, 5), 1), "MatMul": draw((4, 5), 1),
}  # fmt: skip
STATISTICS = {
    "scale": draw((5,), 3), "shift": draw((5,), 4), "mean": draw((5,), 5),
    "variance": np.abs(draw((5,), 6)) + np.float32(0.1),
}  # fmt: skip


def left(linear: onnx.NodeProto, after: list[onnx.NodeProto], **constants: np.ndarray) -> list[str]:
    """Return the operators left of ``linear`` and what follows, up to ``y``."""
    x = IMAGE if linear.op_type.startswith("Conv") else ROWS
    if "w" not in constants:
        constants["w"] = WEIGHTS[linear.op_type]
    proto = model([linear, *after], {"x": x}, constants=constants)
    return applied(proto, {"x": x})[1]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("operator", ["Conv", "ConvTranspose", "Gemm", "MatMul"])
def test_batch_normalisation_becomes_weights(operator: str, bias: bool) -> None:
    constants = {**STATISTICS, **({"b": draw((5,), 2)} if bias else {})}
    linear = node(operator, "x w b" if bias and operator != "MatMul" else "x w", "c")
    normal = node("BatchNormalization", "c scale shift mean variance", "y", epsilon=1e-3)
    if operator == "MatMul":
        constants.pop("b", None)
    expected = "Gemm" if operator == "MatMul" else operator
    assert left(linear, [normal], **constants) == [expected]


CHANNELS = {"Conv": (5, 1, 1), "ConvTranspose": (1, 5, 1, 1), "Gemm": (5,), "MatMul": (1, 5)}


@pytest.mark.parametrize("each", [True, False])
@pytest.mark.parametrize("operator", CHANNELS)
def test_factors_become_weights(operator: str, each: bool) -> None:
    factor = draw(CHANNELS[operator] if each else (), 7) + np.float32(3)
    linear = node(operator, "x w", "c")
    assert left(linear, [node("Mul", "f c", "y")], f=factor) == [operator]
    assert left(linear, [node("Div", "c f", "y")], f=factor) == [operator]


@pytest.mark.parametrize("operator", ["Conv", "ConvTranspose", "Gemm"])
@pytest.mark.parametrize("bias", [True, False])
def test_summands_become_biases(operator: str, bias: bool) -> None:
    summand, linear = draw(CHANNELS[operator], 7), node(operator, "x w", "c")
    constants = {"b": draw((5,), 2)} if bias else {}
    if bias:
        linear = node(operator, "x w b", "c")
    after = [node("Add", "s c", "t"), node("Sub", "t s2", "y")]
    assert left(linear, after, s=summand, s2=np.float32(0.5), **constants) == [operator]


def test_factors_of_gemm_itself_are_kept() -> None:
    linear = node("Gemm", "x w b", "c", alpha=0.5, beta=2.0, transB=1)
    found = left(
        linear, [node("Mul", "c f", "t"), node("Add", "t s", "y")],
        w=draw((5, 4)), b=draw((1, 5)), f=draw((5,), 8), s=draw((), 9),
    )  # fmt: skip
    assert found == ["Gemm"]


CONV, GEMM = node("Conv", "x w", "c"), node("Gemm", "x w", "c")
STAYS = {
    "a summand after a matrix product": (
        node("MatMul", "x w", "c"), [node("Add", "c f", "y")], {"f": draw((5,))}),
    "a factor along another axis": (CONV, [node("Mul", "c f", "y")], {"f": draw((5,))}),
    "a factor for each row": (GEMM, [node("Mul", "c f", "y")], {"f": draw((3, 1))}),
    "a factor that widens": (GEMM, [node("Mul", "c f", "y")], {"f": draw((2, 1, 1))}),
    "a division by zero": (GEMM, [node("Div", "c f", "y")], {"f": np.array(0, np.float32)}),
    "infinite": (GEMM, [node("Add", "c f", "y")], {"f": np.array(np.inf, np.float32)}),
    "too large": (GEMM, [node("Mul", "c f", "y")], {"f": np.array(3e38, np.float32)}),
    "divided by": (GEMM, [node("Div", "f c", "y")], {"f": np.array(2, np.float32)}),
    "subtracted from": (GEMM, [node("Sub", "f c", "y")], {"f": np.array(2, np.float32)}),
    "weights that others read": (
        GEMM, [node("Mul", "c f", "d"), node("Gemm", "x w", "e", alpha=2.0),
               node("Add", "d e", "y")],
        {"f": np.array(2, np.float32)}),
    "a result read twice": (CONV, [node("Mul", "c f", "d"), node("Add", "c d", "y")],
                            {"f": np.array(2, np.float32)}),
    "a bias for each row": (node("Gemm", "x w b", "c"), [node("Mul", "c f", "y")],
                            {"f": np.array(2, np.float32), "b": draw((3, 5))}),
    "a bias that is a column": (node("Gemm", "x w b", "c"), [node("Mul", "c f", "y")],
                                {"f": np.array(2, np.float32), "b": draw((3, 1))}),
    "a bias that is a column of as many": (
        node("Gemm", "x w b", "c"), [node("Mul", "c f", "y")],
        {"f": np.array(2, np.float32), "b": draw((3, 1)), "w": draw((4, 3))}),
    "groups": (node("ConvTranspose", "x w", "c", group=2), [node("Mul", "c f", "y")],
               {"f": draw((6, 1, 1)), "w": draw((4, 3, 3, 3))}),
    "a normalisation of something read twice": (
        CONV,
        [node("BatchNormalization", "c scale shift mean variance", "n"), node("Add", "c n", "y")],
        STATISTICS),
}  # fmt: skip


@pytest.mark.parametrize("form", STAYS)
def test_what_cannot_be_folded_stays(form: str) -> None:
    linear, after, constants = STAYS[form]
    found = left(linear, after, **constants)
    assert sorted(found) == sorted(one.op_type for one in [linear, *after])


def test_normalisation_while_training_stays() -> None:
    normal = helper.make_node(
        "BatchNormalization", ["c", *STATISTICS], ["y", "m", "v"], training_mode=1
    )
    proto = model([CONV, normal], {"x": IMAGE}, constants={"w": WEIGHTS["Conv"], **STATISTICS})
    counts, operators = applied(proto, {"x": IMAGE})
    assert "fold_affine" not in counts
    assert operators.count("ReduceMean") == 2  # of the batch, by another pass


def test_weights_that_are_computed_stay() -> None:
    feed = {"x": ROWS, "w": WEIGHTS["Gemm"]}
    nodes = [GEMM, node("Mul", "c f", "y")]
    proto = model(nodes, feed, constants={"f": np.array(2, np.float32)})
    assert "fold_affine" not in applied(proto, feed)[0]


def test_the_channels_of_products_with_more_axes_are_the_last() -> None:
    x = draw((2, 5, 4))
    nodes = [
        node("MatMul", "x w", "c"),
        node("BatchNormalization", "c scale shift mean variance", "y"),
    ]
    proto = model(nodes, {"x": x}, constants={"w": draw((4, 4)), **STATISTICS})
    assert applied(proto, {"x": x})[0] == {}
