"""Every type rule against what ONNX's cases compute, with known and with symbolic sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hagane.graph import SequenceType, TensorType, load
from hagane.graph.types import OptionalType, Type, dtype_name
from hagane.ops import GraphTypes, infer_types
from hagane.ops.values import array_dtype
from hagane.passes.legalise import legalise
from hagane.symbolic import evaluate, symbol, symbols_of
from tests.conformance.cases import arrays, exclusion, node_cases

_CASES = [case for case in node_cases() if exclusion(case.name) is None]


@pytest.mark.parametrize("symbolic", [False, True], ids=["known", "symbolic"])
@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.name)
def test_inferred_types_are_those_computed(case: Any, symbolic: bool) -> None:
    model = load(case.model)
    legalise(model)
    for inputs, outputs in case.data_sets:
        shapes, sizes = {}, {}
        for value, array in zip(model.graph.inputs, arrays(inputs), strict=False):
            if isinstance(array, np.ndarray) and value.shape is not None and symbolic:
                names = [f"{value.name}__{axis}" for axis in range(array.ndim)]
                sizes |= dict(zip(names, array.shape, strict=True))
                shapes[value.name] = [symbol(name) for name in names]
        types = infer_types(model, shapes=shapes)
        for value, array in zip(model.graph.outputs, arrays(outputs), strict=True):
            _check(str(value.name), types.types.get(value), array, sizes, types)


def _check(
    name: str, found: Type | None, value: Any, sizes: dict[str, int], types: GraphTypes
) -> None:
    if isinstance(found, OptionalType):
        if value is None:
            return
        found = found.element
    if isinstance(value, list):
        assert isinstance(found, SequenceType), f"{name}: {found}"
        for item in value:
            _check(name, found.element, item, sizes, types)
        return
    if found is None:
        return
    assert isinstance(found, TensorType), f"{name}: {found}"
    if isinstance(value, dict):
        return
    assert dtype_name(found.dtype) == dtype_name(array_dtype(np.asarray(value))), name
    if found.shape is None:
        return
    assert len(found.shape) == np.ndim(value), f"{name}: {found} for {np.shape(value)}"
    for dim, size in zip(found.shape, np.shape(value), strict=True):
        if not symbols_of(dim) - sizes.keys():
            assert evaluate(dim, sizes) == size, f"{name}: {found} for {np.shape(value)}"
