"""Which forms of attention become one node, and which must not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from tests.native.models import draw, model, session
from tests.passes.harness import applied, counted, node

HEAD, QUERIES, KEYS = 8, 5, 6
Q, K, V = draw((2, 3, QUERIES, HEAD)), draw((2, 3, KEYS, HEAD), 1), draw((2, 3, KEYS, 4), 2)
CONSTANTS = {
    "root": np.array(np.sqrt(HEAD), np.float32), "scale": np.float32([0.3]),
    "half": np.array(HEAD**-0.25, np.float32), "negative": np.array(-0.3, np.float32),
    "vector": np.float32(np.arange(1, 7)), "zero": np.array(0, np.float32),
    "infinite": np.array(-np.inf, np.float32), "low": np.array(-3.4e38, np.float32),
    "near": np.array(-1e4, np.float32), "one": np.array(1, np.float32),
}  # fmt: skip
TRANSPOSED = node("Transpose", "k", "kt", perm=[0, 1, 3, 2])
PRODUCT = node("MatMul", "q kt", "s")
SOFTMAX = node("Softmax", "s1", "p", axis=-1)
END = node("MatMul", "p v", "y")

SCALES = {
    "quotient": [TRANSPOSED, PRODUCT, node("Div", "s root", "s1")],
    "product": [TRANSPOSED, PRODUCT, node("Mul", "scale s", "s1")],
    "none": [TRANSPOSED, node("MatMul", "q kt", "s1")],
    "of queries": [node("Div", "q root", "q1"), TRANSPOSED, node("MatMul", "q1 kt", "s1")],
    "of keys": [
        node("Mul", "k scale", "k1"),
        node("Transpose", "k1", "kt", perm=[0, 1, 3, 2]),
        node("MatMul", "q kt", "s1"),
    ],
    "of transposed keys": [
        TRANSPOSED,
        node("Mul", "kt scale", "k1"),
        node("MatMul", "q k1", "s1"),
    ],
    "half and half": [
        node("Mul", "q half", "q1"),
        TRANSPOSED,
        node("Mul", "half kt", "k1"),
        node("MatMul", "q1 k1", "s1"),
    ],
}


@pytest.mark.parametrize("form", SCALES)
def test_the_scale_may_stand_anywhere(form: str) -> None:
    feed = {"q": Q, "k": K, "v": V}
    proto = model([*SCALES[form], SOFTMAX, END], feed, constants=CONSTANTS)
    counts, left = applied(proto, feed)
    assert counts["fuse_attention"] == 1
    assert left == ["Attention"]


def keys(form: str) -> tuple[np.ndarray, list[onnx.NodeProto]]:
    if form == "given transposed":
        return K.transpose(0, 1, 3, 2), [node("Identity", "k", "kt")]
    if form == "by one step":
        return K.transpose(0, 2, 1, 3), [node("Transpose", "k", "kt", perm=[0, 2, 3, 1])]
    return K, [
        node("Reshape", "k matrices", "k1"),
        node("Transpose", "k1", "k2", perm=[0, 2, 1]),
        node("Reshape", "k2 four", "kt"),
    ]


@pytest.mark.parametrize("form", ["given transposed", "by one step", "as matrices"])
def test_keys_may_be_transposed_in_other_ways(form: str) -> None:
    k, nodes = keys(form)
    feed = {"q": Q, "k": np.ascontiguousarray(k), "v": V}
    shapes = {"matrices": np.array([-1, KEYS, HEAD]), "four": np.array([2, 3, HEAD, KEYS])}
    proto = model([*nodes, node("MatMul", "q kt", "s1"), SOFTMAX, END], feed, constants=shapes)
    counts, left = applied(proto, feed)
    assert counts["fuse_attention"] == 1
    assert left == (["Attention"] if form == "as matrices" else ["Transpose", "Attention"])


def masked(*nodes: onnx.NodeProto) -> list[onnx.NodeProto]:
    """Return attention whose scores ``s`` the nodes turn to ``s1``."""
    return [TRANSPOSED, PRODUCT, *nodes, SOFTMAX, END]


def boolean(shape: Sequence[int], seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).random(shape) > 0.4


FINITE = node("Where", "c zero low", "m")
MASKS = {
    "numbers": ([node("Add", "s m", "s1")], {"m": draw((2, 1, 5, 6))}),
    "of two axes": ([node("Add", "m s", "s1")], {"m": draw((5, 6))}),
    "two": ([node("Add", "s m", "t"), node("Add", "n t", "s1")],
            {"m": draw((2, 1, 1, 6)), "n": draw((3, 5, 6))}),
    "after the scale": ([node("Mul", "s scale", "t"), node("Add", "t m", "s1")],
                        {"m": draw((1, 1, 5, 6))}),
    "kept": ([node("Where", "c s infinite", "s1")], {"c": boolean((2, 1, 5, 6))}),
    "dropped": ([node("Where", "c infinite s", "s1")], {"c": boolean((1, 6))}),
    "low filler": ([node("Where", "c s low", "s1")], {"c": boolean((5, 6))}),
    "low filler dropped": ([node("Where", "c low s", "s1")], {"c": boolean((5, 6))}),
    "two kinds": ([node("Where", "c s infinite", "t"), node("Add", "t m", "s1")],
                  {"c": boolean((5, 6)), "m": draw((3, 1, 6))}),
}  # fmt: skip


@pytest.mark.parametrize("form", MASKS)
def test_masks_are_recognised(form: str) -> None:
    nodes, masks = MASKS[form]
    assert "fuse_attention" in counted(masked(*nodes), CONSTANTS, q=Q, k=K, v=V, **masks)


NOBODY = np.zeros((2, 1, 5, 6), bool)
SOME = np.concatenate([NOBODY[:1], ~NOBODY[:1]])


@pytest.mark.parametrize("mask", [NOBODY, SOME, ~NOBODY], ids=["none", "some", "all"])
@pytest.mark.parametrize("form", ["boolean", "number", "low"])
def test_rows_without_a_key_give_what_they_gave(form: str, mask: np.ndarray) -> None:
    nodes = {
        "boolean": [node("Where", "c s infinite", "s1")],
        "number": [node("Where", "c zero infinite", "m"), node("Add", "s m", "s1")],
        "low": [node("Where", "c s low", "s1")],
    }
    feed = {"q": Q, "k": K, "v": V, "c": mask}
    proto = model(masked(*nodes[form]), feed, constants=CONSTANTS)
    found = session(proto, engine="reference").run(None, feed)[0]
    assert np.isnan(found[0]).all() == (form != "low" and not mask[0].any())
    assert applied(proto, feed)[0]["fuse_attention"] == 1


def test_a_mask_that_leaves_each_row_a_key_needs_no_test_of_rows() -> None:
    feed = {"q": Q, "k": K, "v": V, "c": boolean((5, 6))}
    finite = [node("Where", "c zero low", "m"), node("Add", "s m", "s1")]
    assert applied(model(masked(*finite), feed, constants=CONSTANTS), feed)[1] == [
        "Where", "Attention",
    ]  # fmt: skip
    causal = {**CONSTANTS, "t": np.tri(5, 6, dtype=bool)}
    feed.pop("c")
    fixed = [node("Where", "t s infinite", "s1")]
    assert applied(model(masked(*fixed), feed, constants=causal), feed)[1] == ["Attention"]


BERT = [
    node("Cast", "c", "kept", to=TensorProto.FLOAT), node("Sub", "one kept", "lost"),
    node("Mul", "lost low", "m"), node("Add", "s m", "s1"),
]  # fmt: skip


@pytest.mark.parametrize("dtype", [bool, np.int64])
def test_masks_that_cannot_reach_infinity_need_no_test_of_rows(dtype: type) -> None:
    feed = {"q": Q, "k": K, "v": V, "c": SOME.astype(dtype)}
    counts, left = applied(model(masked(*BERT), feed, constants=CONSTANTS), feed)
    assert counts["fuse_attention"] == 1
    # An integer may be so large that the product is infinite, whatever the ones who feed it mean.
    assert ("Greater" in left) == (dtype is not bool)


def test_integers_that_make_a_mask_infinite_give_what_they_gave() -> None:
    feed = {"q": Q, "k": K, "v": V, "c": np.where(SOME, 1, -5)}
    proto = model(masked(*BERT), feed, constants=CONSTANTS)
    assert np.isnan(session(proto, engine="reference").run(None, feed)[0]).any()
    assert applied(proto, feed)[0]["fuse_attention"] == 1


def test_zeros_for_rows_without_a_key_are_what_attention_gives() -> None:
    feed = {"q": Q, "k": K, "v": V, "c": SOME}
    nodes = [
        TRANSPOSED, PRODUCT, node("Where", "c s infinite", "s1"), SOFTMAX,
        node("IsNaN", "p", "n"), node("Where", "n zero p", "p1"), node("MatMul", "p1 v", "y"),
    ]  # fmt: skip
    counts, left = applied(model(nodes, feed, constants=CONSTANTS), feed)
    assert counts["fuse_attention"] == 1
    assert left == ["Attention"]


REFUSED = {
    "negative scale": masked(node("Mul", "s negative", "s1")),
    "a factor for each key": masked(node("Mul", "s vector", "s1")),
    "a constant divided by scores": masked(node("Div", "one s", "s1")),
    "a mask before the scale": masked(node("Add", "s vector2", "t"), node("Mul", "t scale", "s1")),
    "a mask of one column": masked(node("Add", "s column", "s1")),
    "a mask of one axis": masked(node("Add", "s vector", "s1")),
    "a filler that scores may come near": masked(node("Where", "c s near", "s1")),
    "a low filler and another mask": masked(
        node("Add", "s vector2", "t"), node("Where", "c t low", "s1")
    ),
    "another axis": [TRANSPOSED, PRODUCT, node("Softmax", "s", "p", axis=2), END],
    "scores read by others": [
        TRANSPOSED, node("MatMul", "q kt", "s1"), SOFTMAX, node("MatMul", "p v", "t"),
        node("MatMul", "s1 v", "u"), node("Add", "t u", "y"),
    ],
    "probabilities read by others": [
        TRANSPOSED, node("MatMul", "q kt", "s1"), SOFTMAX, node("MatMul", "p v", "t"),
        node("ReduceMax", "p", "u"), node("Add", "t u", "y"),
    ],
    "probabilities on the right": [
        TRANSPOSED, node("MatMul", "q kt", "s1"), SOFTMAX, node("MatMul", "square p", "y"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("form", REFUSED)
def test_what_attention_would_not_compute_stays(form: str) -> None:
    constants = {
        **CONSTANTS, "vector2": draw((1, 6)), "column": draw((5, 1)), "c": boolean((5, 6)),
        "square": draw((5, 5)),
    }  # fmt: skip
    used = {name for one in REFUSED[form] for name in one.input}
    constants = {name: array for name, array in constants.items() if name in used}
    assert "fuse_attention" not in counted(REFUSED[form], constants, q=Q, k=K, v=V)


SHAPES = {
    "values shared by the batch": (Q, K, V[:1]),
    "keys shared by the heads": (Q, K[:, :1], V),
    "queries of one batch": (Q[:1], K, V),
    "float64": (Q.astype(np.float64), K.astype(np.float64), V.astype(np.float64)),
}


@pytest.mark.parametrize("form", SHAPES)
def test_shapes_and_types_that_attention_does_not_take_stay(form: str) -> None:
    q, k, v = SHAPES[form]
    assert counted([*SCALES["none"], SOFTMAX, END], {}, q=q, k=k, v=v) == set()


def test_a_mask_that_widens_the_scores_stays() -> None:
    nodes = masked(node("Add", "s m", "s1"))
    found = counted(nodes, CONSTANTS, q=Q[:1], k=K[:1], v=V[:1], m=draw((2, 1, 5, 6)))
    assert "fuse_attention" not in found


def test_sizes_may_be_named() -> None:
    feed = {"q": Q, "k": K, "v": V, "m": draw((2, 1, 5, 6))}
    shapes = {
        "q": ["n", 3, "l", HEAD], "k": ["n", 3, "s", HEAD], "v": ["n", 3, "s", 4],
        "m": ["n", 1, "l", "s"],
    }  # fmt: skip
    nodes = masked(node("Add", "s m", "s1"))
    known = model(nodes, feed, shapes=shapes)
    assert applied(known, feed)[0]["fuse_attention"] == 1
    unknown = model(nodes, feed, shapes={**shapes, "m": ["n", 1, "l", "t"]})
    assert applied(unknown, feed)[0] == {}


def test_a_list_of_matrices_is_a_batch_of_one() -> None:
    feed = {"q": Q[0], "k": K[0], "v": V[0], "c": boolean((3, 5, 6)) & SOME[1, 0]}
    nodes = [
        node("Transpose", "k", "kt", perm=[0, 2, 1]), PRODUCT, node("Mul", "s scale", "t"),
        node("Where", "c t infinite", "s1"), SOFTMAX, END,
    ]  # fmt: skip
    counts, left = applied(model(nodes, feed, constants=CONSTANTS), feed)
    assert counts["fuse_attention"] == 1
    assert left.count("Attention") == 1
    without = [nodes[0], node("MatMul", "q kt", "s1"), SOFTMAX, END]
    feed.pop("c")
    left = applied(model(without, feed), feed)[1]
    assert sorted(left) == ["Attention", "Squeeze", *["Unsqueeze"] * 3]


def repeated(name: str, times: str = "many") -> list[onnx.NodeProto]:
    return [
        node("Unsqueeze", f"{name}0 two", f"{name}1"),
        node("Expand", f"{name}1 {times}", f"{name}2"),
        node("Reshape", f"{name}2 heads_{name}", name),
    ]


def test_heads_that_are_shared_are_not_copied() -> None:
    feed = {"q": draw((2, 6, QUERIES, HEAD)), "k0": K, "v0": V}
    sizes = {
        "two": np.array([2]), "many": np.array([1, 1, 2, 1, 1]),
        "heads_k": np.array([2, 6, KEYS, HEAD]), "heads_v": np.array([2, 6, KEYS, 4]),
    }  # fmt: skip
    nodes = [*repeated("k"), *repeated("v"), TRANSPOSED, node("MatMul", "q kt", "s1"), SOFTMAX, END]
    assert applied(model(nodes, feed, constants=sizes), feed)[1] == ["Attention"]


def test_heads_that_are_repeated_in_another_order_are_copied() -> None:
    feed = {"q": draw((2, 6, QUERIES, HEAD)), "k0": K, "v0": V}
    sizes = {
        "two": np.array([1]), "many": np.array([1, 2, 1, 1, 1]),
        "heads_k": np.array([2, 6, KEYS, HEAD]), "heads_v": np.array([2, 6, KEYS, 4]),
    }  # fmt: skip
    nodes = [*repeated("k"), *repeated("v"), TRANSPOSED, node("MatMul", "q kt", "s1"), SOFTMAX, END]
    assert applied(model(nodes, feed, constants=sizes), feed)[1].count("Expand") == 2
