"""Lists that hold tensors as indices: arrays for NumPy, often tuples for PyTorch."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import hagane

TORCH = (
    "x[[0, p]]", "x[[p, p]]", "x[[p]]", "x[[torch.tensor([0, 1]), torch.tensor([1, 2])]]",
    "x[[0, 1], [p, p]]", "x[[[0, 1], [1, 2]]]", "x[[0, int(p)]]", "x[[slice(0, 2)]]",
    "x[[p, 0], 1]", "x[:, [p, 0]]", "x[items.tolist()]", "x[range(2)]", "x[[p - 1, p], items]",
    "put(x, [0, p])", "put(x, (slice(None), [p, 0]))", "put(x, items.tolist())",
    "x[(0, 1), 1:]", "x[(0, p), :]", "put(x, ((0, 1), slice(1, 3)))",
)  # fmt: skip
NUMPY = (
    "x[[0, p]]", "x[[p, 0]]", "x[[0, int(p)]]", "x[[p, 0], 1]", "x[:, [p, 0]]", "x[items.tolist()]",
    "x[[[p, 0], [1, p]]]", "put(x, [0, p])", "put(x, ([p, 1], [0, 1]))", "swapped(x, 0, p)",
    "x[(0, 1), 1:]", "put(x, ((0, 2), slice(1, 3)))",
)  # fmt: skip
SOURCE = """import numpy as np
import torch


def put(x, place):
    y = 1 * x
    y[place] = 5
    return y


def swapped(x, i, k):
    y = 1 * x
    y[[i, k]] = y[[k, i]]
    return y


def program(x, p, items):
    return {}
"""


@pytest.mark.filterwarnings("ignore::hagane.CompileNotice")
@pytest.mark.parametrize(
    ("library", "expression"), [*(("torch", e) for e in TORCH), *(("numpy", e) for e in NUMPY)]
)
def test_lists_with_tensors_as_indices(library: str, expression: str, tmp_path: Path) -> None:
    path = tmp_path / "indexing.py"
    path.write_text(SOURCE.format(expression))
    space: dict[str, Any] = {"__name__": "indexing"}
    exec(compile(path.read_text(), str(path), "exec"), space)
    program = space["program"]
    compiled = hagane.compile(program, fullgraph=True)
    for place in (2, 1):
        arrays = np.arange(12.0).reshape(4, 3), np.array(place), np.array([1, 2])
        given = [torch.from_numpy(a) if library == "torch" else a for a in arrays]
        if library == "numpy":
            given[1] = given[1][()]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch's, of lists for tuples
            want = program(*given)
        got = compiled(*given)
        assert got.shape == want.shape
        np.testing.assert_array_equal(np.asarray(got), np.asarray(want))
    found = hagane.check(program, *given)
    assert not found.errors
    assert found.tensors[""].shape == tuple(want.shape)
