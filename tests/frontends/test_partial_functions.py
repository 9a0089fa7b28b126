"""``functools.partial`` as the model that is checked or captured."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import torch
from onnxruntime import InferenceSession

import hagane
from hagane.graph import to_proto


def scaled(x, factor):
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"no tensor: {type(x)}")
    return x * factor


def test_a_partial_is_checked_over_the_arguments_that_it_leaves_open():
    report = hagane.check(functools.partial(scaled, factor=2.0), "float32[b, 3]")
    assert report.ok, report.notices
    assert str(report.returned) == "torch.Tensor(dtype=float32, shape=(b, 3))"


def test_a_partial_takes_tensors_of_the_library_that_its_function_uses():
    model = hagane.capture(functools.partial(scaled, factor=2.0), "float32[b, 3]")
    assert [value.name for value in model.graph.inputs] == ["x"]
    session = InferenceSession(to_proto(model).SerializeToString())
    given = np.ones((4, 3), np.float32)
    np.testing.assert_allclose(session.run(None, {"x": given})[0], given * 2)


def test_a_partial_of_a_function_written_in_c_keeps_its_arguments():
    total = functools.partial(torch.sum, dim=0)
    assert str(hagane.check(total, "float32[b, 3]").returned).endswith("shape=(3,))")
    names = [value.name for value in hagane.capture(total, "float32[b, 3]").graph.inputs]
    assert names == ["input"]
    with pytest.raises(hagane.errors.HaganeError, match="'partial' has no argument 'dim'"):
        hagane.capture(total, "float32[b, 3]", dim="int64")


def test_a_layer_of_a_library_is_checked_alone():
    report = hagane.check(torch.nn.LSTM(3, 4), "float32[n, b, 3]")
    assert report.ok, report.notices
    assert str(report.returned).startswith("(torch.Tensor(dtype=float32, shape=(n, b, 4))")


def test_what_no_table_knows_is_said_with_the_remedy():
    report = hagane.check(len, "float32[b, 3]")
    assert not report.checked
    assert "has no Python source that can be checked: it is written in C" in (
        report.notices[0].message
    )
