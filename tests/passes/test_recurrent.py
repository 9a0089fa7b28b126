"""Recurrent programs written by hand: products of rows and tables, states for nobody."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from tests.native.bodies import BOOL, INT64, graph, info
from tests.native.models import draw, model
from tests.passes.harness import applied, node

TABLE, W = draw((5, 6), 1), draw((10, 7), 2)
CONSTANTS = {"table": TABLE, "w": W, "own": W[:6]}


def test_a_table_of_which_rows_are_multiplied_is_multiplied_ahead() -> None:
    nodes = [node("Gather", "table ids", "r"), node("MatMul", "r own", "y")]
    feed = {"ids": np.array([[4, 0, 2], [1, 1, 3]])}
    counts, left = applied(model(nodes, feed, constants=CONSTANTS), feed)
    assert counts["fold_looked_up"] == 1
    assert left == ["Gather"]


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
@pytest.mark.parametrize("order", ["r x", "x r"])
def test_rows_joined_to_a_state_are_multiplied_ahead(order: str, shape: tuple[int, ...]) -> None:
    nodes = [node("Gather", "table ids", "r"), node("Concat", order, "j", axis=-1)]
    nodes += [node("MatMul", "j w", "y")]
    feed = {"ids": np.ones(shape, np.int64) * 3, "x": draw((*shape, 4))}
    counts, left = applied(model(nodes, feed, constants=CONSTANTS), feed)
    assert counts["fold_looked_up"] == 1
    assert left == ["Gather", "MatMul", "Add"]


def test_a_joined_value_that_others_read_stays() -> None:
    nodes = [node("Gather", "table ids", "r"), node("Concat", "r x", "j", axis=-1)]
    nodes += [node("MatMul", "j w", "m"), node("ReduceMax", "j", "s", keepdims=0)]
    feed = {"ids": np.array([1, 2]), "x": draw((2, 4))}
    nodes += [node("Add", "m s", "y")]
    assert "fold_looked_up" not in applied(model(nodes, feed, constants=CONSTANTS), feed)[0]


@pytest.mark.parametrize("by", ["Gather", "Slice"])
@pytest.mark.parametrize("count", [3, 5])
@pytest.mark.parametrize("product", ["MatMul", "Gemm", "turned Gemm"])
def test_rows_that_one_matrix_multiplies_are_multiplied_at_once(
    by: str, count: int, product: str
) -> None:
    constants = {"w": draw((4, 6), 3), "axis": np.array([0]), "b": draw((6,), 4)}
    made = node("MatMul", "r w", "m") if product == "MatMul" else node("Gemm", "r w b", "m")
    if product == "turned Gemm":
        constants["w"] = draw((6, 4), 3)
        made = node("Gemm", "r w b", "m", transB=1)
    nodes = []
    for i in range(count):
        constants |= {f"i{i}": np.array([i]), f"j{i}": np.array([i + 1]), f"n{i}": np.array(i)}
        if by == "Gather":
            nodes.append(node("Gather", f"x n{i}", f"r{i}"))
        else:
            nodes.append(node("Slice", f"x i{i} j{i} axis", f"s{i}"))
            nodes.append(node("Squeeze", f"s{i} axis", f"r{i}"))
        step = onnx.NodeProto()
        step.CopyFrom(made)
        step.input[0], step.output[0] = f"r{i}", f"m{i}"
        nodes.append(step)
        nodes.append(node("Tanh", f"m{i}" if i == 0 else f"a{i}", f"h{i}"))
        if i:
            nodes.insert(-1, node("Add", f"m{i} h{i - 1}", f"a{i}"))
    nodes.append(node("Identity", f"h{count - 1}", "y"))
    feed = {"x": draw((6, 2, 4))}
    counts, left = applied(model(nodes, feed, constants=constants), feed)
    assert counts.get("merge_row_products", 0) == (count if count > 3 else 0)
    assert left.count(made.op_type) == (count if count <= 3 else product == "MatMul")


@pytest.mark.parametrize("attributes", [{"alpha": 2.0}, {"beta": 0.5}])
def test_scaled_products_of_rows_stay(attributes: dict[str, float]) -> None:
    constants = {f"n{i}": np.array(i) for i in range(4)} | {"w": draw((4, 6), 3), "b": draw((6,))}
    nodes = [node("Gather", f"x n{i}", f"r{i}") for i in range(4)]
    nodes += [node("Gemm", f"r{i} w b", f"m{i}", **attributes) for i in range(4)]
    nodes.append(node("Max", "m0 m1 m2 m3", "y"))
    feed = {"x": draw((4, 2, 4))}
    assert "merge_row_products" not in applied(model(nodes, feed, constants=constants), feed)[0]


def test_a_state_that_nothing_reads_goes() -> None:
    nodes = [node("Add", "a x", "t"), node("Neg", "t", "u"), node("Exp", "t", "v")]
    nodes += [node("Identity", "go", "goes"), node("Mul", "kept kept", "w")]
    shapes = ("a", "unread", "kept")
    body = graph(
        nodes,
        [info("i", INT64), info("go", BOOL), *(info(name, shape=(3,)) for name in shapes)],
        [info("goes", BOOL), *(info(name, shape=(3,)) for name in ("t", "u", "w", "v", "u"))],
    )
    feed = {"n": np.array(3), "x": draw((3,))}
    loop = node("Loop", "n going x x x", "y", body=body)
    loop.output.extend(["p", "q", "r", "s"])
    constants = {"going": np.array(True)}
    proto = model([loop, node("Neg", "s", "z")], feed, ["y", "z"], constants)
    counts, _ = applied(proto, feed)
    assert counts["drop_states"] == 1
