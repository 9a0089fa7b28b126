"""Compiled results share memory with arguments, weights and each other where the program's do."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import hagane

TORCH: dict[str, Callable[[Any], Any]] = {
    "transposed": lambda x: x.t(),
    "a row and a column": lambda x: (x[0], x[:, 1]),
    "cut": lambda x: (x[1:3], x[::2], x.narrow(0, 1, 2)),
    "of other axes": lambda x: (x.view(-1), x.unsqueeze(0), x.flatten(), x.unflatten(0, (2, 2))),
    "parts": lambda x: x.split([1, 3]),
    "detached": lambda x: x.detach()[1:],
    "contiguous": lambda x: (x.contiguous(), x.t().contiguous(), x.t().reshape(-1)),
    "copied": lambda x: (x[0].clone(), x[[0, 1]], x.flip(0), x.flip(0).flip(0), x * 1, x[x > 0]),
    "of another result": lambda x: (lambda y: (y[0], y.view(-1), y))(x * 2),
    "diagonals": lambda x: (x.diagonal(), x.diagonal(1), x.t().diagonal(-1)[1:], x.diag()),
    "windows": lambda x: (x.unfold(0, 2, 2), x[1:].unfold(1, 2, 3)),
    "a diagonal of another result": lambda x: (lambda y: (y.diagonal(), y[0]))(x * 2),
    "itself": lambda x: {"a": x, "b": [x[0], x[0]], "c": x.view_as(x)},
}
NUMPY: dict[str, Callable[[Any], Any]] = {
    "transposed": lambda a: (a.T, np.swapaxes(a, 0, 1)),
    "backward": lambda a: a[::-1],
    "of other axes": lambda a: (a.reshape(-1), a.ravel(), a[None, 1:], np.squeeze(a[None])),
    "parts": lambda a: np.split(a, 2),
    "as an array": lambda a: (np.asarray(a), np.ascontiguousarray(a), np.ascontiguousarray(a.T)),
    "copied": lambda a: (np.array(a), a.flatten(), a.copy(), a.astype(np.float32), np.roll(a, 1)),
}


def _flat(found: Any) -> list[Any]:
    if isinstance(found, dict):
        found = list(found.values())
    if isinstance(found, list | tuple):
        return [one for part in found for one in _flat(part)]
    return [found]


def _seen(program: Callable[[Any], Any], x: Any) -> list[Any]:
    """Return the argument and all results after a write into each result."""
    seen = []
    for place in range(len(_flat(program(copy.deepcopy(x))))):
        given = copy.deepcopy(x)
        results = _flat(program(given))
        results[place][...] = results[place] + 100
        seen += [np.asarray(one).tolist() for one in (given, *results)]
    return seen


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", TORCH)
def test_results_of_pytorch(name: str, dynamic: Any) -> None:
    x = torch.arange(12.0).reshape(4, 3) - 3
    compiled = hagane.compile(TORCH[name], fullgraph=True, dynamic=dynamic)
    assert _seen(compiled, x) == _seen(TORCH[name], x)


@pytest.mark.parametrize("name", NUMPY)
def test_results_of_numpy(name: str) -> None:
    x = np.arange(12, dtype=np.float32).reshape(4, 3) - 3
    compiled = hagane.compile(NUMPY[name], fullgraph=True)
    assert _seen(compiled, x) == _seen(NUMPY[name], x)


@pytest.mark.parametrize("name", ["a row and a column", "cut", "transposed", "copied", "diagonals"])
def test_results_of_arguments_that_lie_otherwise(name: str) -> None:
    whole = torch.arange(36.0).reshape(6, 6) - 3
    for given in (whole[1:5, ::2], whole[:3, 1:5].t()):
        compiled = hagane.compile(TORCH[name], fullgraph=True)
        ours, theirs = _flat(compiled(given)), _flat(TORCH[name](given))
        for one, other in zip(ours, theirs, strict=True):
            assert torch.equal(one, other)
            memory = one.untyped_storage().data_ptr(), other.untyped_storage().data_ptr()
            inside = [abs(at - whole.data_ptr()) < 4 * whole.numel() for at in memory]
            assert inside[0] == inside[1]


def test_parts_of_weights_and_state() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(2, 2))
            self.last: Any = torch.zeros(2)

        def forward(self, x: Any) -> Any:
            self.last = x[0]
            return self.weight[1]

    net = Net().eval()
    compiled = hagane.compile(net, fullgraph=True)
    with torch.no_grad():
        for _ in range(2):
            x = torch.ones(2, 2)
            compiled(x)[0] += 1
            x[0] = 5
            assert net.last.tolist() == [5, 5]
    assert net.weight.tolist() == [[0, 0], [2, 0]]


def _contiguous(x: Any) -> Any:
    return x.contiguous()


def _turned(x: Any) -> Any:
    return x.contiguous().t()[1:]


def _written(x: Any) -> Any:
    return x.contiguous().add_(1)


@pytest.mark.filterwarnings("ignore::hagane.CompileNotice")
@pytest.mark.parametrize("program", [_contiguous, _turned, _written])
def test_what_lies_otherwise_is_copied_by_contiguous(program: Any) -> None:
    compiled = hagane.compile(program)
    for make in (lambda: torch.ones(3, 2), lambda: torch.ones(2, 3).t()):
        for _ in range(2):
            mine, theirs = make(), make()
            found, expected = compiled(mine), program(theirs)
            assert (found is mine) == (expected is theirs)
            assert found.stride() == expected.stride()
            found.zero_()
            expected.zero_()
            assert torch.equal(mine, theirs)
