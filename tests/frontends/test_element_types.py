"""Operators get elements of types that PyTorch has code for, and numbers that these can hold."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from hagane.frontends.libraries.torch.published import element_types
from hagane.frontends.libraries.torch.table import TORCH

from .checking import check_text


def test_the_table_of_element_types_tells_of_functions_that_are_known() -> None:
    text = files(element_types.__package__).joinpath("element_types.txt").read_text("utf-8")
    lines = text.splitlines()
    assert len(lines) > 500
    known = {*TORCH.functions, *(f"{name}.forward" for name in TORCH.layers)}
    known |= {f"torch.Tensor.{name}" for name in TORCH.methods["torch.Tensor"]}
    for line in lines:
        told, _, types = line.partition(": ")
        words = types.split()
        assert told.split()[0].partition("~")[0] in known, line
        assert words, line
        assert {*words} <= {*element_types.TYPES, *element_types.GROUPS}, line


@pytest.mark.parametrize(
    ("inputs", "call", "message", "remedy"),
    [
        ("x: Shaped['float16[4, 4]']", "torch.linalg.inv(x)",
         "expected elements of type float32, float64 or complex on the CPU, got "
         "torch.Tensor(dtype=float16, shape=(4, 4))", "convert it with .float()"),
        ("x: Shaped['complex64[4]']", "x > 1",
         "expected elements of type bool, integers or floats on the CPU, got "
         "torch.Tensor(dtype=complex64, shape=(4,))", "take its .real, .imag or .abs()"),
        ("x: Shaped['float32[4]']", "torch.arange(3, dtype=torch.complex64)",
         "expected elements of type integers or floats on the CPU, got dtype=torch.complex64", ""),
        ("x: Shaped['float16[4]'], m: Shaped['bool[4]']", "x.masked_fill(m, -1e9)",
         "expected value that elements of type float16 can hold, got -1000000000.0",
         "use float('-inf') or torch.finfo(torch.float16).min"),
        ("x: Shaped['float32[4]'], y: Shaped['int64[4]']", "torch.add(x, x, out=y)",
         "expected elements of type float32 as 'out', got torch.Tensor(dtype=int64, shape=(4,))",
         "give a tensor of dtype=torch.float32"),
    ],
)  # fmt: skip
def test_types_that_operators_lack_are_told_with_a_remedy(
    tmp_path: Path, inputs: str, call: str, message: str, remedy: str
) -> None:
    report = check_text(tmp_path, f"def f({inputs}):\n    return {call}\n")
    (error,) = report.errors
    assert message in error.message
    assert (error.remedy or "") == remedy


def test_tensors_elsewhere_may_have_other_types(tmp_path: Path) -> None:
    """The table is that of the CPU."""
    source = "def f(x: Shaped['float16[4, 4]']):\n    return torch.linalg.inv(x.cuda())\n"
    assert check_text(tmp_path, source).exit_code == 0
