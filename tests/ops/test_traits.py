"""Traits of operators, held against their reference kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from hagane.ops import operators
from hagane.ops.definition import OpDef
from hagane.ops.registry import schema
from hagane.ops.schema import tensor_dtype
from hagane.ops.traits import Trait

# Attributes without a default, and inputs that are not the operand itself.
_REQUIRED: dict[str, dict[str, Any]] = {"Cast": {"to": 1}, "BitShift": {"direction": "LEFT"}}
_OTHERS: dict[str, list[np.ndarray]] = {
    "Expand": [np.array([2, 3, 4])],
    "Tile": [np.array([1, 1, 1])],
    "Reshape": [np.array([4, -1])],
    "Unsqueeze": [np.array([1])],
    "Gather": [np.array([1, 0])],
    "GatherElements": [np.ones((2, 1, 4), np.int64)],
    "GatherND": [np.array([[1, 2], [0, 0]])],
    "Slice": [np.array([1]), np.array([3]), np.array([-1])],
    "DynamicSlice": [np.array([1]), np.array([3]), np.array([-1])],
    "ReverseSequence": [np.array([2, 1, 2])],
    "Compress": [np.array([True, False, True])],
}
_ATTRIBUTES: dict[str, dict[str, Any]] = {
    "DepthToSpace": {"blocksize": 2},
    "SpaceToDepth": {"blocksize": 2},
    "Split": {"num_outputs": 2},
}
_SHAPES = {"DepthToSpace": (1, 4, 2, 2), "SpaceToDepth": (1, 1, 4, 2), "Squeeze": (2, 1, 3)}


def having(trait: Trait) -> list[Any]:
    found = [op for op in operators().values() if trait in op.traits]
    assert found, trait
    return [pytest.param(op, id=f"{op.domain}.{op.name}") for op in found]


def attributes_of(op: OpDef) -> dict[str, Any]:
    return {
        **schema(*op.key).defaults, **_REQUIRED.get(op.name, {}), **_ATTRIBUTES.get(op.name, {}),
    }  # fmt: skip


def operand(op: OpDef, index: int, shape: tuple[int, ...]) -> np.ndarray:
    """Return numbers of the first element type that an input may have of those tried."""
    generator = np.random.default_rng(index)
    allowed = {tensor_dtype(one) for one in schema(*op.key).input(index).types}
    for dtype in (ir.DataType.FLOAT, ir.DataType.INT64, ir.DataType.UINT8, ir.DataType.BOOL):
        if dtype in allowed:
            return (generator.uniform(0.5, 4.5, shape)).astype(dtype.numpy())
    raise AssertionError(op.name)


@pytest.mark.parametrize("op", having(Trait.ELEMENTWISE))
def test_an_elementwise_operator_commutes_with_a_permutation_of_axes(op: OpDef) -> None:
    count = schema(*op.key).min_inputs
    if Trait.VARIADIC in op.traits:
        count = 2
    inputs = [operand(op, i, (2, 3, 4)) for i in range(count)]
    attributes = attributes_of(op)
    with np.errstate(all="ignore"):
        (plain,) = op(inputs, attributes, 1)
        (turned,) = op([one.transpose(2, 0, 1) for one in inputs], attributes, 1)
    assert isinstance(plain, np.ndarray)
    np.testing.assert_array_equal(turned, plain.transpose(2, 0, 1))
    assert plain.shape == (2, 3, 4)


@pytest.mark.parametrize("op", having(Trait.MOVING))
def test_a_moving_operator_makes_no_new_elements(op: OpDef) -> None:
    shape = _SHAPES.get(op.name, (2, 3, 4))
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    n_outputs = 2 if op.name == "Split" else 1
    outputs = op([x, *_OTHERS.get(op.name, [])], attributes_of(op), n_outputs)
    for output in outputs:
        assert isinstance(output, np.ndarray)
        assert output.size
        assert set(output.ravel()) <= set(x.ravel())


@pytest.mark.parametrize("op", having(Trait.RESHAPING))
def test_a_reshaping_operator_keeps_the_order_of_elements(op: OpDef) -> None:
    shape = _SHAPES.get(op.name, (2, 3, 4))
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    (output,) = op([x, *_OTHERS.get(op.name, [])], attributes_of(op), 1)
    assert isinstance(output, np.ndarray)
    assert output.shape != shape
    np.testing.assert_array_equal(output.ravel(), x.ravel())


@pytest.mark.parametrize("op", having(Trait.REPEATING))
def test_a_repeating_operator_that_keeps_the_shape_keeps_the_content(op: OpDef) -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    (output,) = op([x, *_OTHERS[op.name]], attributes_of(op), 1)
    np.testing.assert_array_equal(output, x)


@pytest.mark.parametrize("op", having(Trait.VARIADIC))
def test_a_variadic_operator_returns_its_only_input(op: OpDef) -> None:
    assert schema(*op.key).inputs[-1].variadic
    x = operand(op, 0, (2, 3))
    (output,) = op([x], {**attributes_of(op), "axis": 0}, 1)
    np.testing.assert_array_equal(output, x)


@pytest.mark.parametrize("op", having(Trait.ROWWISE))
def test_a_rowwise_operator_computes_each_slice_for_itself(op: OpDef) -> None:
    x = operand(op, 0, (3, 5))
    attributes = {**attributes_of(op), "axis": 1}
    (whole,) = op([x], attributes, 1)
    rows = [op([row[None]], attributes, 1)[0] for row in x]
    np.testing.assert_array_equal(whole, np.concatenate(rows))  # type: ignore[arg-type]


@pytest.mark.parametrize("op", having(Trait.LINEAR))
def test_a_linear_operator_maps_sums_to_sums(op: OpDef) -> None:
    shape = (2, 3) if op.name in ("Gemm", "MatMul") else (1, 3, 5)
    weights = operand(op, 1, (3, 3) if len(shape) == 2 else (3, 3, 2))
    x, y = operand(op, 0, shape), operand(op, 2, shape)
    (of_sum,) = op([x + y, weights], attributes_of(op), 1)
    (left,), (right,) = (op([one, weights], attributes_of(op), 1) for one in (x, y))
    np.testing.assert_allclose(of_sum, left + right, rtol=1e-5)  # type: ignore[operator]


@pytest.mark.parametrize("op", having(Trait.REDUCING))
def test_a_reducing_operator_leaves_fewer_elements(op: OpDef) -> None:
    x = operand(op, 0, (2, 3, 4))
    (output,) = op([x], attributes_of(op), 1)
    assert isinstance(output, np.ndarray)
    assert output.size < x.size


def test_operators_that_draw_are_those_of_the_random_family_and_dropout() -> None:
    drawing = {op.name for op in operators().values() if op.random}
    assert drawing == {
        "Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike",
        "RandomUniform", "RandomUniformLike",
    }  # fmt: skip
