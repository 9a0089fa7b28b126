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


def scattered(x: Any, mask: Any) -> Any:
    return x.masked_scatter(mask.unsqueeze(-1), x[mask] * 2)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_mask_that_holds_nowhere_takes_nothing_of_an_empty_source(share: float) -> None:
    model = hagane.capture(scattered, "float32[b, n, 4]", "bool[b, n]")
    rng = np.random.default_rng(3)
    x, mask = rng.random((2, 5, 4), np.float32), rng.random((2, 5)) < share
    wanted = scattered(torch.tensor(x), torch.tensor(mask)).numpy()
    for engine in (hagane.InferenceSession, other_engine):
        np.testing.assert_array_equal(engine(model).run(None, {"x": x, "mask": mask})[0], wanted)


def chosen_rows(x: Any, m: Any) -> Any:
    kept = m if m.sum() > 0 else m[:1]
    y = torch.where(kept > 0, x, -1.0)
    rows, columns = y.shape
    return y[:, None].expand(rows, 2, columns).reshape(rows * 2, columns)


def chosen_sides(x: Any, m: Any) -> Any:
    kept = m if m.sum() > 0 else m[:1]
    other = x if x.sum() > 0 else x[:1]
    y = kept * other
    return y.view(y.shape[0], -1)


def other_engine(model: Any) -> Any:
    return onnxruntime.InferenceSession(to_proto(model).SerializeToString())


@pytest.mark.parametrize("program", [chosen_rows, chosen_sides])
def test_a_size_that_is_1_on_one_path_broadcasts_to_the_other_one(program: Any) -> None:
    model = hagane.capture(program, "float32[b, n]", "float32[b, 1]")
    rng = np.random.default_rng(4)
    for engine in (hagane.InferenceSession(model), other_engine(model)):
        for sign, way, rows in ((1, 1, 3), (1, -1, 3), (-1, 1, 3), (-1, -1, 3), (-1, -1, 1)):
            x = sign * rng.random((rows, 4), np.float32)
            m = way * rng.random((rows, 1), np.float32)
            wanted = program(torch.tensor(x), torch.tensor(m)).numpy()
            np.testing.assert_allclose(engine.run(None, {"x": x, "m": m})[0], wanted, rtol=1e-6)
