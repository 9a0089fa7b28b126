"""Operators of training that are hagane's own: gradients, and references beside compositions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hagane.errors import TypeInferenceError
from hagane.graph.types import TensorType
from hagane.ops.builder import op
from hagane.ops.registry import operators
from tests.ops.gradient.differences import check
from tests.ops.gradient.test_windows import POOLS


def draw(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape)


def batch_norm(x: Any, scale: Any, bias: Any) -> Any:
    return op("BatchNormTraining", x, scale, bias, epsilon=1e-3, domain="hagane", outputs=3)


@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 5), (2, 3, 2, 4)], ids=str)
def test_batch_normalisation(shape: tuple[int, ...]) -> None:
    operands = draw(*shape), draw(shape[1], seed=1), draw(shape[1], seed=2)
    check(batch_norm, *operands, tolerance=1e-5)
    check(lambda *values: batch_norm(*values)[:1], *operands, tolerance=1e-5)


@pytest.mark.parametrize(("shape", "axis"), [((4, 5), -1), ((2, 3, 4), 1), ((6,), 0)], ids=str)
def test_normalisation_of_rows(shape: tuple[int, ...], axis: int) -> None:
    row = shape[axis:]
    operands = draw(*shape), draw(*row, seed=1), draw(*row, seed=2)
    for count in (3, 2):  # with a summand and without

        def norm(*values: Any) -> Any:
            return [op("LayerNormTraining", *values, axis=axis, epsilon=1e-3, domain="hagane")]

        check(norm, *operands[:count], tolerance=1e-5)


def test_choices() -> None:
    operands = draw(3, 4), draw(1, 4, seed=1), draw(3, 1, seed=2), draw(3, 4, seed=3)
    check(lambda *values: [op("SelectGreater", *values, domain="hagane")], *operands, wanted=[2, 3])


def same(name: str, *inputs: Any, **attributes: Any) -> None:
    """Fail unless a reference kernel and its composition give the same."""
    found = operators()["hagane", name]
    results = [kernel(*inputs, **attributes) for kernel in (found.reference, found.compose)]  # type: ignore[operator]
    results = [result if isinstance(result, tuple) else (result,) for result in results]
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("shape", "given"), POOLS[:5], ids=str)
def test_references_of_pools_are_their_compositions(shape: Any, given: dict[str, Any]) -> None:
    rank = len(given["kernel_shape"])
    kept = {"strides": [1] * rank, "dilations": [1] * rank, "pads": [0] * (2 * rank), **given}
    x = draw(*shape)
    y = op("MaxPool", x, **kept)
    g = draw(*y.shape, seed=4)
    same("MaxPoolGradient", x, y, g, **kept)
    for include in (0, 1):
        same("AveragePoolGradient", x, g, count_include_pad=include, **kept)


def test_references_of_normalisations_are_their_compositions() -> None:
    x, scale, bias = draw(3, 4, 5), draw(4, seed=1), draw(4, seed=2)
    same("BatchNormTraining", x, scale, bias, epsilon=1e-3)
    moments = x.mean((0, 2)), x.var((0, 2))
    same("BatchNormTrainingGradient", x, scale, *moments, draw(3, 4, 5, seed=3), epsilon=1e-3)


def test_references_of_normalised_rows_are_their_compositions() -> None:
    for shape, axis in (((3, 4, 5), -1), ((3, 4, 5), 1), ((7,), 0)):
        x, g, row = draw(*shape), draw(*shape, seed=3), shape[axis:]
        scale, bias = draw(*row, seed=1), draw(*row, seed=2)
        same("LayerNormTraining", x, scale, bias, axis=axis, epsilon=1e-3)
        same("LayerNormTrainingGradient", x, scale, g, axis=axis, epsilon=1e-3)


def test_operands_that_do_not_fit_are_named() -> None:
    import onnx_ir as ir

    from hagane.ops.builder import types

    x, wrong = (types.Typed(TensorType(ir.DataType.FLOAT, shape)) for shape in ((2, 3, 4), (5,)))
    with pytest.raises(TypeInferenceError, match="one number a channel"):
        batch_norm(x, wrong, wrong)
    with pytest.raises(TypeInferenceError, match="the shape of a row"):
        op("LayerNormTraining", x, wrong, axis=-1, epsilon=1e-3, domain="hagane")
