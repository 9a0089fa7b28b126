"""Conditions and marks that programs give PyTorch's compiler."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch

import hagane
from hagane.errors import CaptureError
from hagane.graph import to_proto


def marked(x: Any) -> Any:
    torch._check_with(ValueError, x.dim() == 2, lambda: f"expected 2 axes, got {x.dim()}")
    torch._check(x.shape[1] > 0)
    torch._check_is_size(x.shape[0], max=1000)
    torch._dynamo.mark_dynamic(x, 0)
    torch._dynamo.mark_static_address(x)
    torch._dynamo.graph_break()
    return x * 2


def guarded(x: Any) -> Any:
    try:
        torch._check_index(x.dim() == 3)
    except IndexError:
        return x + 1
    return x


def positive(x: Any) -> Any:
    torch._check_tensor_all(x > 0, lambda: "expected positive numbers")
    return x.sqrt()


@pytest.mark.filterwarnings("ignore:_check_is_size")
@pytest.mark.parametrize("program", [marked, guarded, positive])
def test_conditions_that_hold_and_marks_change_nothing(program: Any) -> None:
    report = hagane.check(program, x="float32[n, 3]")
    assert (report.errors, report.unknown) == ([], [])
    model = hagane.capture(program, x="float32[n, 3]")
    session = onnxruntime.InferenceSession(to_proto(model).SerializeToString())
    x = torch.rand(2, 3) + 1
    np.testing.assert_allclose(session.run(None, {"x": x.numpy()})[0], program(x), rtol=1e-6)


def test_a_condition_that_fails_is_an_error() -> None:
    (error,) = hagane.check(marked, x="float32[n, 3, 4]").errors
    assert "raises" in error.message
    with pytest.raises(CaptureError, match="raises"):
        hagane.capture(marked, x="float32[n, 3, 4]")
