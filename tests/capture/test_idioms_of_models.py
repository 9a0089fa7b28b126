"""Idioms of published models: ``__getattr__``, classes that cost nothing, unused draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import hagane
from hagane.errors import CaptureError


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        for i in range(2):
            self.add_module(f"scale_{i}", nn.Linear(3, 3))
        self.register_buffer("shift", torch.ones(3))
        self.factor = 1

    def forward(self, x: Any) -> Any:
        for i in range(2):
            x = self.__getattr__(f"scale_{i}")(x)
        self.__setattr__("factor", 5)
        return x * self.__getattribute__("factor") + self.__getattr__("shift")


def test_methods_of_python_get_and_set_attributes_of_modules() -> None:
    module, x = Scaled().eval(), torch.randn(2, 3)
    expected = module(x)
    found = hagane.compile(module, fullgraph=True)(x)
    torch.testing.assert_close(found, expected)


def test_an_attribute_that_is_not_there_is_named() -> None:
    class Lacking(Scaled):
        def forward(self, x: Any) -> Any:
            return self.__getattr__("nothing")(x)

    with pytest.raises(CaptureError, match="Lacking has no attribute 'nothing'"):
        hagane.capture(Lacking(), "float32[n, 3]")


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_class_that_costs_nothing_may_be_a_size(smoothing: float) -> None:
    def function(logits: Any, places: Any) -> Any:
        n = logits.size(1)
        places = places.clamp(0, n)
        loss = nn.CrossEntropyLoss(ignore_index=n, label_smoothing=smoothing)(logits, places)
        rows = nn.functional.nll_loss(logits, places, ignore_index=n, reduction="none")
        return loss, rows

    model = hagane.capture(function, "float32[batch, n]", "int64[batch]")
    session = hagane.InferenceSession(model)
    for batch, n in ((3, 5), (4, 3)):
        torch.manual_seed(batch)
        logits, places = torch.randn(batch, n), torch.arange(batch) % 2 * (n + 3)
        feed = {"logits": logits.numpy(), "places": places.numpy()}
        expected = function(logits, places)
        for ours, theirs in zip(session.run(None, feed), expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5)


class Skipped(nn.Module):
    """A layer that training skips at random."""

    def forward(self, x: Any) -> Any:
        chance, other = np.random.uniform(0, 1), torch.rand([])
        skip = self.training and (chance < 0.5 or other < 0.5)
        return x if skip else x + 1


def test_draws_that_nothing_uses_are_left_out() -> None:
    model = hagane.capture(Skipped().eval(), "float32[n]")
    x = np.ones(3, np.float32)
    (found,) = hagane.InferenceSession(model).run(None, {"x": x})
    np.testing.assert_array_equal(found, x + 1)


def test_a_draw_is_refused_where_it_is_used() -> None:
    def function(x: Any) -> Any:
        chance = torch.rand(3)
        return x + chance

    told = r"py:\d+: x \+ chance: 'torch.rand' cannot be captured: it draws .*drawn in .*\.py:\d+"
    with pytest.raises(CaptureError, match=told):
        hagane.capture(function, "float32[3]")
    with pytest.raises(CaptureError, match="chance < 0.5: a number that no operator"):
        hagane.capture(Skipped().train(), "float32[n]")
