"""Which rotary position embeddings become one node, and which must not."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from tests.native.models import draw, model
from tests.passes.harness import applied, node

X = draw((2, 3, 5, 8))
ANGLES = draw((5, 4), 1)
NUMBERS = {
    "zero": np.array([0]), "middle": np.array([4]), "end": np.array([1 << 40]),
    "last": np.array([-1]), "one": np.array([1]), "halves": np.array([4, 4]),
    "third": np.array([3]), "scale": np.array(1.5, np.float32),
}  # fmt: skip
SLICES = [node("Slice", "x zero middle last", "a"), node("Slice", "x middle end last one", "b")]
TURNED = [
    node("Neg", "b", "n"), node("Concat", "n a", "r", axis=-1), node("Mul", "x cos", "p"),
    node("Mul", "r sin", "q"), node("Add", "p q", "y"),
]  # fmt: skip


def twice(angles: np.ndarray) -> dict[str, np.ndarray]:
    """Return constant tables."""
    whole = np.concatenate([angles, angles], -1)
    return {"cos": np.cos(whole), "sin": np.sin(whole)}


def run(
    nodes: list[onnx.NodeProto],
    tables: dict[str, np.ndarray],
    shapes: dict[str, list[int | str]] | None = None,
    **feed: np.ndarray,
) -> list[str]:
    inputs = {"x": X, **feed}
    proto = model(nodes, inputs, constants={**NUMBERS, **tables}, shapes=shapes)
    return applied(proto, inputs)[1]


def split(sizes: str = "x halves") -> onnx.NodeProto:
    return onnx.helper.make_node("Split", sizes.split(), ["a", "b"], axis=3)


@pytest.mark.parametrize("form", ["slices", "split"])
def test_halves_may_be_cut_by_slice_or_split(form: str) -> None:
    first = SLICES if form == "slices" else [split()]
    assert run([*first, *TURNED], twice(ANGLES))[-1:] == ["RotaryEmbedding"]


@pytest.mark.parametrize("shape", [(5, 4), (1, 5, 4), (1, 1, 5, 4), (2, 1, 5, 4)])
def test_tables_may_lack_axes_or_be_there_for_each_of_the_batch(shape: tuple[int, ...]) -> None:
    found = run([*SLICES, *TURNED], twice(draw(shape, 4)))
    assert found == ["RotaryEmbedding"]


COMPUTED = [
    node("Concat", "f f", "t", axis=-1), node("Cos", "t", "c"), node("Sin", "t", "s"),
    node("Mul", "c scale", "c1"), node("Mul", "scale s", "s1"), node("Unsqueeze", "c1 one", "cos"),
    node("Unsqueeze", "s1 one", "sin"),
]  # fmt: skip


@pytest.mark.parametrize("batch", [1, 2])
def test_tables_may_be_computed(batch: int) -> None:
    angles = draw((batch, 5, 4), 2)
    found = run([*COMPUTED, *SLICES, *TURNED], {}, f=angles)
    assert found[-1] == "RotaryEmbedding"
    assert ("Expand" in found) == (batch == 1)


@pytest.mark.parametrize("batch", [1, "n"])
def test_sizes_may_be_named(batch: int | str) -> None:
    shapes = {"x": ["n", 3, "l", 8], "f": [batch, "l", 4]}
    angles = draw((1 if batch == 1 else 2, 5, 4), 2)
    assert run([*COMPUTED, *SLICES, *TURNED], {}, shapes, f=angles)[-1] == "RotaryEmbedding"


def test_both_products_and_the_sum_may_be_turned_around() -> None:
    nodes = [
        *TURNED[:2],
        node("Mul", "cos x", "p"),
        node("Mul", "sin r", "q"),
        node("Add", "q p", "y"),
    ]
    assert run([*SLICES, *nodes], twice(ANGLES)) == ["RotaryEmbedding"]


def different() -> dict[str, np.ndarray]:
    table = draw((5, 8), 3)
    return {"cos": np.cos(table), "sin": np.sin(table)}


PLAIN = node("Concat", "n a", "r", axis=-1)
REFUSED = {
    "halves that differ": ([*SLICES, *TURNED], different()),
    "tables for each head": ([*SLICES, *TURNED], twice(draw((3, 5, 4)))),
    "tables of one position": ([*SLICES, *TURNED], twice(draw((1, 4)))),
    "other pieces": (
        [node("Slice", "x zero third last", "a"), node("Slice", "x third end last", "b"), *TURNED],
        twice(ANGLES),
    ),
    "the first half negated": (
        [*SLICES, node("Neg", "a", "n"), node("Concat", "n b", "r", axis=-1), *TURNED[2:]],
        twice(ANGLES),
    ),
    "the second half not negated": (
        [*SLICES, node("Abs", "b", "n"), *TURNED[1:]], twice(ANGLES)),
    "a difference": ([*SLICES, *TURNED[:4], node("Sub", "p q", "y")], twice(ANGLES)),
    "the halves of another": (
        [node("Exp", "x", "e"), node("Slice", "e zero middle last", "a"),
         node("Slice", "e middle end last", "b"), *TURNED], twice(ANGLES)),
}  # fmt: skip


@pytest.mark.parametrize("form", REFUSED)
def test_what_only_looks_like_it_stays(form: str) -> None:
    assert "RotaryEmbedding" not in run(*REFUSED[form])


def test_tables_that_are_not_known_to_have_equal_halves_stay() -> None:
    tables = {name: array.astype(np.float32) for name, array in twice(ANGLES).items()}
    assert "RotaryEmbedding" not in run([*SLICES, *TURNED], {}, **tables)
    shifted = [node("Add", "cos row", "cos1"), *SLICES, *TURNED[:2], node("Mul", "x cos1", "p")]
    found = run([*shifted, *TURNED[3:]], {**tables, "row": draw((8,))})
    assert "RotaryEmbedding" not in found
