"""Where programs detach values or compute without gradients, compiled steps have none either."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hagane
import hagane.functions as F  # noqa: N812
import hagane.links as L  # noqa: N812
from hagane.errors import CaptureError

torch = pytest.importorskip("torch")
from torch import nn, optim  # noqa: E402


def within(y: Any) -> Any:
    with torch.no_grad():
        spread = y.abs().mean(0)
        with torch.enable_grad():
            other = y * 2
    return y / (spread + 1) + other


@torch.no_grad()
def spread(y: Any) -> Any:
    return y.abs().mean(0)


def nested(y: Any) -> Any:
    @torch.inference_mode()
    def scale(y: Any) -> Any:
        return y.square().sum(1, keepdim=True)

    return y / (scale(y) + 1)


def switched(y: Any) -> Any:
    torch.set_grad_enabled(False)
    mean = y.abs().mean(0)
    torch.set_grad_enabled(True)
    with torch.set_grad_enabled(mode=False):
        low = y.amin()
    return y / (mean + 1) + y * low


def looped(y: Any) -> Any:
    for _ in range(2):
        with torch.no_grad():
            weights = y.softmax(1)
        y = y.tanh() * weights
    return y


def branched(y: Any) -> Any:
    if y.sum() > 100:
        return y.softmax(1)
    return y * y.detach() * 2


PARTS: dict[str, Callable[[Any], Any]] = {
    "detach": lambda y: y.detach() * 0.5 + y,
    "data": lambda y: y * y.data,
    "item": lambda y: y / y.abs().max().item() + y * float(y.detach().sum()),
    "straight through": lambda y: y + (torch.round(y) - y).detach(),
    "no_grad": within,
    "decorated": lambda y: y / (spread(y) + 1),
    "nested": nested,
    "switched": switched,
    "loop": looped,
    "branch": branched,
}


class Parts(nn.Module):
    """A layer for each part, and rows of which one is padding."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 6) for _ in PARTS])
        self.rows = nn.Embedding(5, 4, padding_idx=-1)

    @torch.no_grad()
    def mean(self, y: Any) -> Any:
        return y.mean(0)

    def forward(self, x: Any, places: Any) -> Any:
        x = x + self.rows(places)
        found = [part(layer(x)) for layer, part in zip(self.layers, PARTS.values(), strict=True)]
        return torch.stack(found) + self.mean(found[0])


def cubes(module: Any, x: Any, places: Any) -> Any:
    return (module(x, places) ** 3).sum()


def test_detached_values_and_modes_stop_gradients_as_in_pytorch() -> None:
    torch.manual_seed(0)
    ours = Parts().double()
    theirs = copy.deepcopy(ours)
    given = torch.randn(5, 4).double(), torch.tensor([0, 4, 2, 4, 1])
    step = hagane.compile(cubes, optim.SGD(ours.parameters(), lr=0.01))
    reference = optim.SGD(theirs.parameters(), lr=0.01)
    loss = cubes(theirs, *given)
    loss.backward()
    reference.step()
    torch.testing.assert_close(step(ours, *given), loss.detach(), rtol=1e-12, atol=0)
    names = [name for name, _ in ours.named_parameters()]
    for name, mine, one in zip(names, ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, one, rtol=1e-10, atol=1e-11, msg=lambda m, n=name: n + m)


class Steps(nn.Module):
    """Layers that the loss depends on by functions that are constant almost everywhere."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 6) for _ in range(7)])

    def forward(self, x: Any) -> Any:
        a, b, c, d, e, f, g = (layer(x) for layer in self.layers)
        flat = a.round() + b.floor() * c.sign() + torch.div(d, 2, rounding_mode="trunc")
        return flat + e.detach().ceil() + (f > 0).double() + 0 * g.trunc()


def test_functions_that_are_constant_almost_everywhere_have_gradients_of_zeros() -> None:
    torch.manual_seed(0)
    ours = Steps().double()
    theirs = copy.deepcopy(ours)
    x = torch.randn(5, 4).double()
    made = [
        optim.SGD(module.parameters(), lr=0.1, momentum=0.9, weight_decay=0.1)
        for module in (ours, theirs)
    ]
    step = hagane.compile(squares, made[0])
    for _ in range(2):
        loss = squares(theirs, x)
        made[1].zero_grad()
        loss.backward()
        made[1].step()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            torch.testing.assert_close(step(ours, x), loss.detach())
        names = {str(warning.message) for warning in told}
        # Those of which PyTorch has no gradient stay as they are; the others' weights decay.
        assert all("layers.4" in name and "layers.3" not in name for name in names)
    for mine, one in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, one, rtol=1e-12, atol=0)


class Rows(nn.Module):
    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.rows = nn.Embedding(5, 3, **options)

    def forward(self, places: Any) -> Any:
        return self.rows(places)


def squares(module: Any, x: Any) -> Any:
    return module(x).square().sum()


def test_gradients_that_differ_from_the_functions_are_refused() -> None:
    places = torch.tensor([1, 1, 2])
    for module, x, message in (
        (Rows(scale_grad_by_freq=True), places, "scale_grad_by_freq cannot be trained"),
        (Rows(max_norm=1.0), places, r"in the call, which .*; leave max_norm out, and shorten"),
    ):
        step = hagane.compile(squares, optim.SGD(module.parameters(), lr=0.1))
        with pytest.raises(CaptureError, match=message):
            step(module, x)


class Links(hagane.Chain):
    def __init__(self) -> None:
        super().__init__()
        with self.init_scope():
            self.layers = L.Linear(4, 6).repeat(4, "init")

    def forward(self, x: Any) -> Any:
        a, b, c, d = (layer(x) for layer in self.layers)
        with hagane.no_backprop_mode():
            soft = F.softmax(a)
        with hagane.using_config("enable_backprop", False):
            low = F.min(b)
        parts = [a * soft, b * F.broadcast_to(low, b.shape), c * c.array, d * float(F.sum(d).array)]
        return F.stack(parts)


def link_cubes(model: Any, x: Any) -> Any:
    return F.sum(model(x) ** 3)


def test_arrays_and_modes_without_backprop_stop_gradients_of_links() -> None:
    np.random.seed(0)
    ours = Links()
    for parameter in ours.params():
        parameter.array = parameter.array.astype(np.float64)
    theirs = copy.deepcopy(ours)
    x = np.random.randn(3, 4)
    hagane.optimizers.SGD(0.01).setup(theirs).update(link_cubes, theirs, x)
    hagane.compile(link_cubes, hagane.optimizers.SGD(0.01).setup(ours))(ours, x)
    for (name, mine), one in zip(ours.namedparams(), theirs.params(), strict=True):
        np.testing.assert_allclose(mine.array, one.array, rtol=1e-10, atol=1e-12, err_msg=name)
