"""What the checker infers for every assigned and returned tensor is what PyTorch computes."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from hagane.frontends.python.check import Request, check_source
from hagane.frontends.python.findings import Report

from .case import Case, draw_inputs, draw_sizes, load
from .catalogue import TORCH
from .tracing import TracedValue, trace_values

torch = pytest.importorskip("torch")
_BY_NAME = {case.name: case for case in TORCH}


def inferred(
    report: Report, sizes: Mapping[str, int]
) -> dict[tuple[int, str], set[tuple[object, ...]]]:
    """Shapes and element types of named tensors by line; None for a size that data decides."""
    found: dict[tuple[int, str], set[tuple[object, ...]]] = {}
    for item in report.types:
        if item.shape is not None:
            values = tuple(value for value, _ in item.shape)
            found.setdefault((item.place.line, item.expression), set()).add((values, item.dtype))
    return found


def agrees(value: TracedValue, options: set[tuple[object, ...]]) -> bool:
    """Whether one of the inferred types is that of the traced value."""
    for shape, dtype in options:
        assert isinstance(shape, tuple)
        if dtype == value.dtype and len(shape) == len(value.shape):
            pairs = zip(shape, value.shape, strict=True)
            if all(size is None or size == real for size, real in pairs):
                return True
    return False


def disagreements(case: Case, sizes: Mapping[str, int]) -> list[str]:
    """Traced values that the checker types otherwise, or not at all."""
    report = check_source(Request(case.path, case.target, case.inputs, case.make, sizes))
    assert not report.errors, report.errors
    module = load(case.path)
    torch.manual_seed(0)
    owner = eval(case.make, vars(module))
    inputs = draw_inputs(case, sizes, 0)
    function = getattr(owner, case.method) if case.method != "forward" else owner
    with torch.no_grad():
        traced = trace_values(case.path, function, **inputs)
    types = inferred(report, sizes)
    wrong = []
    for value in traced:
        if "[" in value.name or value.name == "return":
            continue
        options = types.get((value.line, value.name), set())
        if not agrees(value, options):
            wrong.append(f"{case.file}:{value.line}: {value} inferred {options}")
    return wrong


@pytest.mark.parametrize("name", _BY_NAME)
def test_inferred_shapes_are_those_that_pytorch_computes(name: str) -> None:
    case = _BY_NAME[name]
    for seed in range(3):
        assert disagreements(case, draw_sizes(case, seed)) == []
