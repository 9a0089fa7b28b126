"""What the checker says of NumPy's functions is what NumPy computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hagane
from hagane.checking import Request, check_source
from hagane.frontends.python.report.findings import Report
from hagane.frontends.python.values.values import (
    DType,
    Real,
    Tensor,
)
from hagane.graph.types import dtype_name

from .numpy_calls import ARRAYS, RIGHT, WRONG, calls

INPUTS = {
    name: f"{array.dtype}[{', '.join(map(str, array.shape))}]" for name, array in ARRAYS.items()
}


def checked(expression: str, folder: Path) -> Report:
    """Return the report on a function that returns the expression."""
    file = folder / "called.py"
    lines = [
        "import numpy as np", "", "", f"def called({', '.join(ARRAYS)}):",
        f"    return {expression}", "",
    ]  # fmt: skip
    file.write_text("\n".join(lines))
    return check_source(Request(file, "called", INPUTS))


def run(expression: str) -> Any:
    """Return what NumPy computes."""
    with np.errstate(all="ignore"):
        return eval(expression, {"np": np, **ARRAYS})


def described(value: Any) -> object:
    """Return shape and element type of an array, or any other value itself."""
    if isinstance(value, np.ndarray | np.generic):
        return value.shape, str(value.dtype)
    if isinstance(value, np.dtype):
        return str(value)
    return value


def inferred(value: Any) -> object:
    """Return the same of what the checker found."""
    if isinstance(value, Tensor):
        return value.shape, dtype_name(value.dtype)
    return dtype_name(value.dtype) if isinstance(value, DType) else value


@pytest.mark.parametrize("expression", calls(RIGHT))
def test_an_expression_has_the_type_that_numpy_computes(expression: str, tmp_path: Path) -> None:
    report = checked(expression, tmp_path)
    assert report.errors == []
    assert report.unknown == []
    expected, found = run(expression), report.result
    if isinstance(found, Real):
        assert isinstance(expected, float)
        return
    assert inferred(found) == described(expected)


@pytest.mark.parametrize("expression", calls(WRONG))
def test_an_expression_that_numpy_refuses_is_an_error(expression: str, tmp_path: Path) -> None:
    with pytest.raises((TypeError, ValueError, IndexError, AttributeError, np.linalg.LinAlgError)):
        run(expression)
    report = checked(expression, tmp_path)
    assert [problem.place.line for problem in report.errors] == [5]


def test_there_are_enough_of_them() -> None:
    assert len(set(calls(RIGHT))) >= 150
    assert len(set(calls(WRONG))) >= 40


def test_an_item_set_to_what_only_the_run_knows_makes_the_content_unknown() -> None:
    def sized(x: Any) -> Any:
        sizes = np.zeros(2)
        sizes[0] = x.sum()
        return np.ones((int(sizes[0]), 2))

    report = hagane.check(sized, "float32[n]")
    assert not report.errors
    assert not report.notices
    assert str(report.returned) == "numpy.ndarray(dtype=float64, shape=(None, 2))"
