"""Calls that give arguments to ``*args``, and to parameters that have a place alone."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch

import hagane

pytestmark = pytest.mark.filterwarnings("ignore::hagane.CompileNotice")


def weighted(first: Any, /, scale: Any = 1.0, *others: Any, **more: Any) -> Any:
    found = first * scale + sum(other.sum() for other in others)
    return found * more.get("weight", 1) + len(others)


def test_compiled_functions_take_any_number() -> None:
    run = hagane.compile(weighted, fullgraph=True)
    x, one, two = torch.rand(3), torch.rand(2), torch.rand(5)
    calls = [((x,), {}), ((x, 2.0, one), {}), ((x, 2.0, one, two), {"weight": torch.rand(3)}),
             ((torch.rand(4), 3.0, two, one), {"weight": 2})]  # fmt: skip
    for given, named in calls:
        torch.testing.assert_close(run(*given, **named), weighted(*given, **named))


def test_checked_functions_take_any_number() -> None:
    report = hagane.check(weighted, "float32[n]", "float32[n]", "float32[a]", "float32[b]")
    assert report.errors == []
    assert "shape=(n,)" in str(report.returned)


def test_a_module_in_a_closure_is_no_part_of_the_model() -> None:
    import dataclasses as used

    @dataclasses.dataclass
    class Pair:
        x: Any
        y: Any = None

    def program(pair: Any) -> Any:
        return used.replace(pair, y=pair.x * 3)

    assert used is dataclasses
    found = hagane.compile(program, fullgraph=True)(Pair(np.ones(2)))
    np.testing.assert_array_equal(found.y, np.full(2, 3.0))
