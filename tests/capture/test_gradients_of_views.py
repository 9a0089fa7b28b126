"""Views and tensors that were there before, as results while PyTorch records gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import hagane

pytestmark = pytest.mark.filterwarnings("ignore::hagane.CompileNotice")


class Halved(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 0.5


class Reversed(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return -g


def _without(x: Any) -> Any:
    with torch.no_grad():
        return x[0], x * 2


def _open(x: Any) -> Any:
    y = x * 2
    return y[: x.shape[0] // 2], y[1:], y[::2]


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "itself": lambda x: (x, x * 2, x),
    "views": lambda x: (x.t(), x[1:], x.view(-1)[3], x.detach(), x.detach()[0]),
    "of another result": lambda x: (lambda y: (y.t(), y, y[0], y.detach()))(x * 2),
    "of no result": lambda x: (lambda y: (y.t(), y[0], y.view(-1), y.detach()[1]))(x * 2),
    "copied": lambda x: (x.t().contiguous(), x.t().reshape(-1), x[[0, 1]], x.clone()),
    "complex": lambda x: (2 * torch.view_as_complex(x.reshape(3, 2, 2)), x * 1j),
    "of a function": lambda x: Halved.apply(x) * 1,
    "a view of a function": lambda x: (Reversed.apply(x), Halved.apply(x).t(), x * 2),
    "without gradients": _without,
    "that change nothing": lambda x: (x.squeeze(), x.flatten(0, 0), x.conj(), x.resolve_conj()),
    "of open sizes": _open,
    "of bounds that sizes decide": lambda x: x[round(x.shape[0] / 2) :, : x.shape[1] - 1],
    "of bounds that data decide": lambda x: x[: x.detach().gt(5).sum() // 3],
}


def _flat(found: Any) -> list[Any]:
    return [y for part in found for y in _flat(part)] if isinstance(found, tuple) else [found]


def _memory(tensors: list[Any]) -> list[int]:
    places = [tensor.untyped_storage().data_ptr() for tensor in tensors]
    return [places.index(place) for place in places]


def _told(program: Callable[[Any], Any], *, grad: bool) -> list[Any]:
    """Return values, gradients and memory of the results of a program, and what a write does."""
    x = torch.arange(12.0).reshape(4, 3).requires_grad_()
    with torch.set_grad_enabled(grad):
        found = _flat(program(x))
    told: list[Any] = [[y.tolist(), y.requires_grad, y.is_leaf] for y in found]
    told += [_memory([x, *found]), [next(i for i, z in enumerate(found) if z is y) for y in found]]
    if any(y.requires_grad and not y.is_leaf for y in found):
        sum(i * y.abs().sum() for i, y in enumerate(found, 1)).backward()
        told.append(None if x.grad is None else x.grad.tolist())
    with torch.no_grad():
        for y in found:
            y.add_(1)
        told += [y.tolist() for y in (x, *found)]
    return told


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("name", PROGRAMS)
def test_views_lead_back_and_share_memory(name: str, grad: bool) -> None:
    compiled = hagane.compile(
        PROGRAMS[name], fullgraph=True, dynamic="bounds" in name or "open" in name
    )
    expected = _told(PROGRAMS[name], grad=grad)
    for _ in range(2):
        assert _told(compiled, grad=grad) == expected


def test_a_write_into_a_view_is_a_version_of_the_argument() -> None:
    def program(x: Any) -> Any:
        return x[0]

    x = torch.ones(2, 2)
    compiled = hagane.compile(program, fullgraph=True)
    compiled(x)
    y = x * torch.ones(1, requires_grad=True)
    compiled(x).add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_weights_and_their_parts_are_results() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(2, 2))

        def forward(self, x: Any) -> Any:
            return self.weight, self.weight[1], x @ self.weight

    net = Net().eval()
    whole, part, _ = hagane.compile(net, fullgraph=True)(torch.ones(2, 2))
    assert whole is net.weight
    part.sum().backward()
    assert net.weight.grad.tolist() == [[0, 0], [1, 1]]


@torch.no_grad()
def test_views_of_what_a_call_writes() -> None:
    def program(x: Any) -> Any:
        x.add_(1)
        return x[0], x.t()

    x = torch.zeros(2, 2)
    row, turned = hagane.compile(program, fullgraph=True)(x)
    turned += 1
    assert x.tolist() == [[2, 2]] * 2
    assert row.tolist() == [2, 2]


def test_gradients_turned_on_and_off_within() -> None:
    def on(x: Any) -> Any:
        with torch.enable_grad():
            return x * 2

    def off(x: Any) -> Any:
        with torch.no_grad():
            return x * 2

    def asks(x: Any) -> Any:
        x.requires_grad_()
        return x * 2

    for program in (on, off):
        for modes in ((True, False), (False, True)):
            compiled = hagane.compile(program)
            for mode in (*modes, *modes):
                x = torch.ones(2, requires_grad=True)
                with torch.set_grad_enabled(mode):
                    assert compiled(x).requires_grad == program(x).requires_grad
    compiled = hagane.compile(asks)
    for mode in (False, False, True):
        x = torch.ones(2)
        with torch.set_grad_enabled(mode):
            assert compiled(x).requires_grad == mode
        assert x.requires_grad


def test_a_view_that_is_to_have_gradients() -> None:
    def program(x: Any) -> Any:
        return x.view(-1).requires_grad_()

    with torch.no_grad(), pytest.warns(hagane.CompileNotice, match="sets requires_grad"):
        assert hagane.compile(program)(torch.ones(2, 2)).requires_grad


def test_memory_of_grids_and_diagonals() -> None:
    def program(x: Any) -> Any:
        y, z = x * 1, x * 1
        grid, _ = torch.meshgrid(y[0], y[1], indexing="ij")
        own, part = torch.diag(z), z.diagonal()
        y.zero_()
        z.zero_()
        return grid, own, part

    x = torch.arange(4.0).reshape(2, 2)
    for found, wanted in zip(hagane.compile(program)(x), program(x), strict=True):
        assert torch.equal(found, wanted)
