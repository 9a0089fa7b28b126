"""Functions that return a copy, the array itself, or one of the two as they are told."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch

import hagane
from hagane.errors import CaptureError
from hagane.graph import to_proto

# Expressions of a float32 array x of its own, whose result the program then changes.
ARRAYS = [
    "x.astype(x.dtype)", "x.astype(x.dtype, copy=False)", "x.astype('f4', 'K', 'unsafe', 1, False)",
    "x.astype('f8', copy=False)", "x.T.astype(x.dtype, copy=False)", "np.array(x)",
    "np.array(x, copy=None)", "np.array(x, copy=False)", "np.array(x, dtype='f8', copy=None)",
    "np.astype(x, x.dtype, copy=False)", "np.asarray(x)", "np.asarray(x, copy=True)",
    "np.reshape(x, -1, copy=True)", "x.reshape(-1, copy=True)", "x.reshape(-1)",
    "np.nan_to_num(x, copy=False)", "np.nan_to_num(x)",
]  # fmt: skip
TENSORS = [
    "x.to(x.dtype)", "x.to(x.dtype, copy=True)", "x.to('cpu', torch.float32, False, True)",
    "x.to(torch.float64)", "torch.asarray(x)", "torch.asarray(x, copy=True)",
    "F.dropout(x, 0.5, training=False)", "F.dropout(x, 0.5, False, True)", "torch.flip(x, ())",
    "F.alpha_dropout(x, 0.5)", "x.sum_to_size(x.shape)", "x.roll(0)", "x.cumsum(0)", "x.clone()",
]  # fmt: skip


def module_of(expressions: list[str], start: str, path: Path) -> ModuleType:
    """Return a module with a function for each expression, which changes its result."""
    text = "import numpy as np\nimport torch\nimport torch.nn.functional as F\n"
    for number, expression in enumerate(expressions):
        text += f"\n\ndef f{number}(given):\n    x = given.{start}()\n    y = {expression}\n"
        text += "    y += 1\n    return x * 2, y\n"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def results(function: Any, given: Any, given_type: Any) -> tuple[list[Any], list[Any]]:
    expected = [np.asarray(part) for part in function(given)]
    model = hagane.capture(function, given_type, dynamic={"given": {0: "n"}})
    session = onnxruntime.InferenceSession(
        to_proto(model).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return expected, session.run(None, {"given": np.asarray(given)})


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_a_changed_result_is_seen_in_the_array_it_shares_memory_with(
    kind: str, tmp_path: Path
) -> None:
    listed, start = (ARRAYS, "copy") if kind == "numpy" else (TENSORS, "clone")
    module = module_of(listed, start, tmp_path / f"copies_of_{kind}.py")
    array = np.array([[1.5, -2], [0, 4], [3, 3]], np.float32)
    wrong = {}
    for number, expression in enumerate(listed):
        given = array.copy() if kind == "numpy" else torch.from_numpy(array.copy())
        expected, found = results(getattr(module, f"f{number}"), given, given)
        same = all(
            a.dtype == b.dtype and np.array_equal(a, b)
            for a, b in zip(expected, found, strict=True)
        )
        if not same:
            wrong[expression] = expected, found
    assert wrong == {}


def avoided(given: Any) -> Any:
    return np.array(given, dtype=np.float64, copy=False)


def test_an_array_that_may_not_be_copied_keeps_its_element_type() -> None:
    with pytest.raises(CaptureError, match="Unable to avoid copy.*leave out copy=False"):
        hagane.capture(avoided, np.ones(3, np.float32))
