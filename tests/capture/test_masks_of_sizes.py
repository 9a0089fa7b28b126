"""Elements that a mask of the program's own picks, as contrastive losses do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import hagane


def all_pairs(a: Any, b: Any) -> Any:
    z = torch.nn.functional.normalize(torch.cat([a, b]), dim=1)
    n = z.shape[0]
    others = (z @ z.t() / 0.5)[~torch.eye(n, dtype=torch.bool)].view(n, -1)
    return others.logsumexp(1).mean()


def written(a: Any, b: Any) -> Any:
    n = a.shape[0]
    mask = torch.zeros((n, n), dtype=torch.bool)
    places = torch.arange(n)
    mask[(places, places)] = True
    near = a @ b.t()
    return (near[mask].view(-1, 1) - near[~mask].view(n, -1)).logsumexp(1).mean()


def diagonal(a: Any, b: Any) -> Any:
    near = a @ b.t()
    return near[torch.eye(a.shape[0]) == 1] * 2 + near.sum(1)


@pytest.mark.parametrize("loss", [all_pairs, written, diagonal], ids=lambda f: f.__name__)
def test_how_many_elements_it_picks_is_assumed(loss: Callable[[Any, Any], Any]) -> None:
    types = {"a": "float32[batch, 8]", "b": "float32[batch, 8]"}
    report = hagane.check(loss, **types)
    assert report.ok, str(report)
    session = hagane.InferenceSession(hagane.capture(loss, **types))
    for count in (2, 5):
        a, b = torch.randn(count, 8), torch.randn(count, 8)
        made = session.run(None, {"a": a.numpy(), "b": b.numpy()})[0]
        np.testing.assert_allclose(made, loss(a, b).numpy(), rtol=1e-4, atol=1e-5)


def chosen(a: Any, b: Any) -> Any:
    return a[a > 0] + b


def test_a_mask_that_data_decide_picks_any_number() -> None:
    report = hagane.check(chosen, a="float32[n]", b="float32[n]")
    assert [problem.code for problem in report.errors] == ["shape-mismatch"]
