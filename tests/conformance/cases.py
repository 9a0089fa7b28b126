"""ONNX's own conformance cases, and which of them say nothing about released operators."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any

import onnx
import onnx_ir as ir
from onnx import numpy_helper

# Pattern of the case's name -> why it is left out.
EXCLUDED = {
    r"^test_(adagrad|adam|momentum|nesterov_momentum|gradient)": "domain of training, in preview",
    r"^test_flexattention": "domain ai.onnx.preview",
    r"^test_bernoulli": "random: the numbers that a seed stands for are not specified",
    r"^test_loop16_seq_none": "the runner takes the length of an array without axes; "
    "tests/ops/test_control.py runs the case with a comparison of its own",
}


# Name of the case -> absolute tolerance, where the expected numbers are less exact than
# ONNX's own tolerance: zeros that a library computed as 2e-7.
LOOSER = {"test_dft_inverse": 1e-6, "test_dft_inverse_opset19": 1e-6}


def absolute_tolerance(case: Any) -> float:
    """Return the tolerance of a case, in the unit of its outputs."""
    return max(float(case.atol), LOOSER.get(case.name, 0.0))


def exclusion(name: str) -> str | None:
    """Return why a case is left out, or None."""
    for pattern, reason in EXCLUDED.items():
        if re.search(pattern, name):
            return reason
    return None


@cache
def node_cases() -> Sequence[Any]:
    """Return the cases of single operators, which ONNX's runner takes with the same data."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        # Making the cases overflows and divides by zero on purpose.
        warnings.simplefilter("ignore")
        cases = tuple(load_model_tests(kind="node"))
    for case in cases:
        if case.name.startswith(("test_cast_", "test_castlike_")):
            case.data_sets[:] = [_in_range(*data) for data in case.data_sets]
    return cases


def _in_range(inputs: Sequence[Any], expected: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Put zeros for numbers that the integer type of a cast lacks.

    ONNX leaves the results of such floating-point numbers open, and the expected ones are those of
    the installed release of ml_dtypes.
    """
    data, (result,) = arrays(inputs[:1])[0], arrays(expected)
    bounds = _BOUNDS.get(result.dtype.name)
    if bounds is None or ir.DataType.from_numpy(data.dtype).is_integer():
        return list(inputs), list(expected)
    lacking = ~((data >= bounds[0]) & (data <= bounds[1]))
    data, result = data.copy(), result.copy()
    data[lacking], result[lacking] = 0, 0
    return [numpy_helper.from_array(data), *inputs[1:]], [numpy_helper.from_array(result)]


_BOUNDS = {"int2": (-2, 1), "uint2": (0, 3), "int4": (-8, 7), "uint4": (0, 15)}


def arrays(values: Sequence[Any]) -> list[Any]:
    """Return the values of a data set as arrays; some come as protobuf tensors."""
    return [
        numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value
        for value in values
    ]
