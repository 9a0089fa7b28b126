"""Products of two computed matrices of bfloat16, as steps of training multiply them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

import hagane
from hagane.machine import best_level, multiplies_bfloat16
from hagane.native.rules.products import gemm
from tests.drawing import few
from tests.native.models import RUNNABLE

_SIZES = (
    ((), 37, 65, 50), ((), 16, 64, 32), ((), 130, 513, 70), ((), 5, 2, 6), ((), 9, 1, 33),
    ((), 40, 1024, 7), ((3,), 9, 7, 33), ((2, 2), 17, 8, 16), ((), 3, 40, 50), ((), 0, 3, 9),
)  # fmt: skip


def product_model(
    batch: tuple[int, ...], sizes: tuple[int, int, int], turned: tuple[bool, bool], free: bool
) -> tuple[onnx.ModelProto, tuple[int, ...], tuple[int, ...]]:
    """Return a product of rounded floats, and the shapes of its inputs.

    Args:
        batch: Axes before those of the matrices.
        sizes: Rows, inner size, columns.
        turned: Whether each side is given transposed.
        free: Whether sizes are known at run time only.
    """
    m, k, n = sizes
    shapes = [(*batch, k, m) if turned[0] else (*batch, m, k),
              (*batch, n, k) if turned[1] else (*batch, k, n)]  # fmt: skip
    rank = len(batch) + 2
    nodes = []
    for name, swapped in zip("ab", turned, strict=True):
        nodes.append(helper.make_node("Cast", [name], [f"{name}1"], to=TensorProto.BFLOAT16))
        perm = [*range(rank - 2), rank - 1, rank - 2] if swapped else [*range(rank)]
        nodes.append(helper.make_node("Transpose", [f"{name}1"], [f"{name}2"], perm=perm))
    nodes.append(helper.make_node("MatMul", ["a2", "b2"], ["c"]))
    nodes.append(helper.make_node("Cast", ["c"], ["y"], to=TensorProto.FLOAT))
    inputs = [
        helper.make_tensor_value_info(
            name, TensorProto.FLOAT, [f"{name}{i}" for i in range(rank)] if free else shape
        )
        for name, shape in zip("ab", shapes, strict=True)
    ]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * rank)
    graph = helper.make_graph(nodes, "product", inputs, [output])
    opsets = [helper.make_opsetid("", 21)]
    proto = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    return proto, shapes[0], shapes[1]


def check(
    batch: tuple[int, ...],
    sizes: tuple[int, int, int],
    turned: tuple[bool, bool],
    free: bool,
    level: str,
) -> None:
    proto, left, right = product_model(batch, sizes, turned, free)
    options = hagane.SessionOptions()
    options.intra_op_num_threads = 2
    options.add_session_config_entry("hagane.instructions", level)
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(shape).astype(np.float32) for shape in (left, right))
    found = hagane.InferenceSession(proto, options).run(None, {"a": a, "b": b})[0]
    exact = [x.astype(ml_dtypes.bfloat16).astype(np.float64) for x in (a, b)]
    x, y = (side.swapaxes(-1, -2) if t else side for side, t in zip(exact, turned, strict=True))
    # Sums of float32, then one rounding to 8 bits.
    within = np.abs(x @ y) * 2.0**-8 + (np.abs(x) @ np.abs(y)) * 2.0**-20
    assert found.shape == (x @ y).shape
    assert np.all(np.abs(found - x @ y) <= within)


@pytest.mark.parametrize("level", [name for name in RUNNABLE if name != "amx"][:1])
@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True)])
def test_products_are_sums_of_rounded_factors(
    turned: tuple[bool, bool], free: bool, level: str
) -> None:
    for number, (batch, *sizes) in enumerate(_SIZES):
        if number % 3 != (turned[0] + 2 * turned[1]) % 3 and not batch:
            continue  # each size once, stacks for all
        check(batch, (sizes[0], sizes[1], sizes[2]), turned, free, level)


@pytest.mark.long
@few(60)
@given(
    st.sampled_from([(), (), (2,), (3, 1)]),
    st.tuples(st.integers(0, 90), st.integers(1, 600), st.integers(1, 90)),
    st.tuples(st.booleans(), st.booleans()),
    st.booleans(),
    st.sampled_from([name for name in RUNNABLE if name != "amx"]),
)
def test_drawn_products_are_sums_of_rounded_factors(
    batch: tuple[int, ...],
    sizes: tuple[int, int, int],
    turned: tuple[bool, bool],
    free: bool,
    level: str,
) -> None:
    check(batch, sizes, turned, free, level)


@pytest.mark.skipif(
    not multiplies_bfloat16(best_level()), reason="this processor has no products of bfloat16"
)
def test_pairs_are_multiplied_where_the_processor_can(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    written = gemm.panel_function

    def noted(*given: object, **named: object) -> str:
        asked.append(named.get("pairs"))
        return written(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(gemm, "panel_function", noted)
    proto, left, right = product_model((), (64, 32, 64), (False, False), free=False)
    session = hagane.InferenceSession(proto)
    session.run(None, {"a": np.ones(left, "f"), "b": np.ones(right, "f")})
    assert asked
    assert all(asked)
