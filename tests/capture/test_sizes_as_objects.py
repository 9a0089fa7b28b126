"""``torch.Size``: a class of its own, whose text and operators programs use."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import hagane

MORE = (4,)
PROGRAMS = {
    "cut": lambda x: (x.shape[1:], x.size()[:-1], x.shape[::-1]),
    "joined": lambda x: (x.size() + MORE, MORE + x.shape, x.shape + x.shape, x.shape * 2),
    "other kinds": lambda x: (tuple(x.shape), list(x.shape), x.shape[0], x.stride()),
    "text": lambda x: (f"{x.shape}", str(x.size()), repr(x.shape[1:])),
    "classes": lambda x: (
        isinstance(x.shape, torch.Size), type(x.shape) is torch.Size, isinstance(x.shape, tuple),
        isinstance((2, 3), torch.Size), x.shape == (2, 3), x.shape.numel(),
    ),
    "keys": lambda x: {x.shape: x, (x.shape, x.dtype): 1, x.dtype: 2},
    "made": lambda x: (torch.Size([1, 2]), torch.Size(x.shape)),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_have_its_class(name: str) -> None:
    x = torch.ones(2, 3)
    expected = PROGRAMS[name](x)
    found = hagane.compile(PROGRAMS[name], fullgraph=True)(x)
    assert repr(found) == repr(expected)


def test_arguments_have_its_class() -> None:
    def f(x: Any, size: Any) -> Any:
        return x + 1 if isinstance(size, torch.Size) else x

    compiled = hagane.compile(f, fullgraph=True)
    x = torch.zeros(1)
    assert [compiled(x, s).item() for s in (torch.Size([3]), (3,), torch.Size([3]))] == [1, 0, 1]
