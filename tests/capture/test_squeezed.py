"""Axes that ``squeeze`` drops where their size is 1: the graph is for other sizes, and says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch

import hagane
from hagane.errors import KernelError
from hagane.graph import to_proto


def one_axis(x: Any) -> Any:
    return x.squeeze(0) + 1


def all_axes(x: Any) -> Any:
    return x.squeeze().sum(-1)


def rank_alone(x: Any) -> Any:
    return torch.ones(2) * x.squeeze(0).dim()


def to_a_number(x: Any) -> Any:
    return x.squeeze(0).sum()


@pytest.mark.parametrize("program", [one_axis, all_axes, rank_alone, to_a_number])
def test_a_graph_with_squeeze_fails_where_the_axis_has_size_one(program: Any) -> None:
    model = hagane.capture(program, x="float32[n, 4, 3]")
    runs = (
        hagane.InferenceSession(model),
        onnxruntime.InferenceSession(to_proto(model).SerializeToString()),
    )
    for run in runs:
        x = np.random.default_rng(3).random((2, 4, 3), "f")
        np.testing.assert_allclose(run.run(None, {"x": x})[0], program(torch.tensor(x)), 1e-5)
        with pytest.raises(Exception, match=r"expected n >= 2 .axis \d, which squeeze would"):
            run.run(None, {"x": x[:1]})


def test_a_count_of_one_that_squeeze_drops_is_named() -> None:
    def cleared(x: Any) -> Any:
        return x.index_fill(0, torch.nonzero(x[:, 0] > 0).squeeze(), 0.0)

    made = hagane.compile(cleared, fullgraph=True)
    for column in ((1.0, -1.0, 2.0), (-1.0, -1.0, -1.0)):
        x = torch.tensor(column).unsqueeze(1).expand(3, 2)
        torch.testing.assert_close(made(x), cleared(x))
    with pytest.raises(KernelError, match=r"no size of 1 in nonzero_0, whose axis squeeze.*write"):
        made(torch.tensor([[1.0, 1.0], [-1.0, 1.0], [-1.0, 1.0]]))
