"""Losses that change their arguments: dicts, lists, objects, memory of tensors."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch import nn, optim
from torch.nn import functional

import hagane
from hagane.errors import InvalidArgument


def popping(module: Any, batch: Any) -> Any:
    labels = batch.pop("labels")
    batch["x"] = batch["x"] * 2
    batch["scores"] = module(batch["x"])
    batch["count"] = 3
    return functional.cross_entropy(batch["scores"], labels)


def nested(module: Any, batch: Any) -> Any:
    inner = batch["inner"]
    inner["x"].mul_(2)
    inner["sum"] = inner["x"].sum()
    batch["again"] = inner
    batch.setdefault("weight", torch.ones(()))
    batch.update(extra=[batch["weight"], 1])
    return functional.cross_entropy(module(inner["x"]), batch["labels"])


def clearing(module: Any, batch: Any) -> Any:
    x, labels = batch.pop("x"), batch.pop("labels", None)
    batch.clear()
    return functional.cross_entropy(module(x), labels)


def with_loss(module: Any, batch: Any) -> Any:
    batch["loss"] = functional.cross_entropy(module(batch["x"]), batch["labels"])
    return batch["loss"]


def made(change: Callable[..., Any], x: Any, labels: Any) -> dict[str, Any]:
    if change is nested:
        return {"inner": {"x": x.clone()}, "labels": labels}
    return {"x": x, "labels": labels, "id": "a"}


def same(ours: Any, theirs: Any) -> None:
    assert type(ours) is type(theirs)
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        for key in theirs:
            same(ours[key], theirs[key])
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs)
        for mine, their in zip(ours, theirs, strict=True):
            same(mine, their)
    elif isinstance(theirs, torch.Tensor):
        torch.testing.assert_close(ours, theirs.detach())
    else:
        assert ours == theirs


@pytest.mark.parametrize("loss", [popping, nested, clearing, with_loss])
def test_a_dict_ends_as_the_loss_leaves_it(loss: Callable[..., Any]) -> None:
    torch.manual_seed(0)
    theirs = nn.Linear(3, 2)
    ours = copy.deepcopy(theirs)
    one, other = (optim.SGD(m.parameters(), lr=0.1) for m in (theirs, ours))
    step = hagane.compile(loss, other)
    for size in (4, 3, 4):
        x, labels = torch.randn(size, 3), torch.randint(0, 2, (size,))
        expected, found = made(loss, x, labels), made(loss, x, labels)
        one.zero_grad()
        value = loss(theirs, expected)
        value.backward()
        one.step()
        torch.testing.assert_close(step(ours, found), value.detach())
        same(found, expected)
        assert loss is not nested or found["again"] is found["inner"]
    assert len(step._programs) == 1
    same(list(ours.parameters()), list(theirs.parameters()))


def appending(module: Any, x: Any, log: Any, holder: Any) -> Any:
    out = module(x)
    log.append(out.mean())
    holder.last = out
    holder.count += 1
    return out.square().mean()


class Holder:
    def __init__(self) -> None:
        self.count = 1
        self.last: Any = None


def test_lists_and_objects_end_as_the_loss_leaves_them() -> None:
    module = nn.Linear(3, 2)
    step = hagane.compile(appending, optim.SGD(module.parameters(), lr=0.1))
    x, log, holder = torch.randn(4, 3), list[Any](), Holder()
    expected = module(x).detach()
    step(module, x, log, holder)
    assert holder.count == 2
    torch.testing.assert_close(holder.last, expected)
    torch.testing.assert_close(log, [expected.mean()])


def writing(module: Any, x: Any, target: Any) -> Any:
    x.add_(1.0)
    return functional.mse_loss(module(x), target)


def test_memory_that_is_written_belongs_to_one_argument() -> None:
    module = nn.Linear(3, 3)
    step = hagane.compile(writing, optim.SGD(module.parameters(), lr=0.1))
    both = torch.zeros(4, 6)
    with pytest.raises(InvalidArgument, match="into its argument 'x', which shares memory with 't"):
        step(module, both[:3, :3], both[1:, 3:])
    step(module, both[:2, :3], both[2:, :3])  # other rows
    assert both[:2, :3].eq(1).all()
    assert both[2:].eq(0).all()


def popping_arrays(model: Any, batch: Any) -> Any:
    labels = batch.pop("t")
    batch["scores"] = model(batch["x"])
    return hagane.functions.softmax_cross_entropy(batch["scores"], labels)


def test_a_dict_of_arrays_ends_as_the_loss_of_a_link_leaves_it() -> None:
    link = hagane.links.Linear(3, 2)
    x, t = np.ones((4, 3), "f"), np.zeros(4, "i")
    expected = link(x).array
    step = hagane.compile(popping_arrays, hagane.optimizers.SGD(0.1).setup(link))
    batch = {"x": x, "t": t}
    step(link, batch)
    assert list(batch) == ["x", "scores"]
    np.testing.assert_allclose(batch["scores"].array, expected, rtol=1e-5)


def signed(module: Any, x: Any, sign: Any) -> Any:
    return module(x).mean() * torch.copysign(torch.ones(()), torch.tensor(sign))


def test_zeros_of_both_signs_are_two_arguments() -> None:
    module = nn.Linear(3, 2)
    step = hagane.compile(signed, optim.SGD(module.parameters(), lr=0.0))
    x = torch.ones(2, 3)
    first, second = step(module, x, 0.0), step(module, x, -0.0)
    assert first == -second != 0
