"""Arguments of compiled steps: trees of tensors, defaults, and those that no step can take."""

from __future__ import annotations

import copy
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch import Tensor, nn, optim

import hagane
import hagane.functions as F  # noqa: N812
from hagane.errors import InvalidArgument


@dataclass
class Pair:
    x: Any
    t: Any


Named = namedtuple("Named", "x t")


def of_items(module: Any, batch: Any) -> Any:
    return (module(batch["x"]) - batch["t"]).square().mean()


def of_attributes(module: Any, batch: Any) -> Any:
    return (module(batch.x) - batch.t).square().mean()


def of_places(module: Any, batch: Any) -> Any:
    return (module(batch[0]) - batch[1]).square().mean()


def of_arrays(module: Any, batch: Any) -> Any:
    return (module(torch.from_numpy(batch[0])) - torch.from_numpy(batch[1])).square().mean()


def with_defaults(module: Any, batch: Any, scale: Any = 2.0, *, shift: float = 0.5) -> Any:
    return of_places(module, batch) * scale + shift


def written(module: Any, batch: Any) -> Any:
    batch[0].add_(1)
    return of_places(module, batch)


FORMS: dict[str, tuple[Callable[..., Any], Callable[[Tensor, Tensor], Any]]] = {
    "dict": (of_items, lambda x, t: {"x": x, "t": t}),
    "ordered dict": (of_items, lambda x, t: OrderedDict(x=x, t=t)),
    "object": (of_attributes, Pair),
    "named tuple": (of_attributes, Named),
    "tuple": (of_places, lambda x, t: (x, t)),
    "list": (of_places, lambda x, t: [x, t]),
    "arrays": (of_arrays, lambda x, t: (x.numpy(), t.numpy())),
    "defaults": (with_defaults, lambda x, t: (x, t)),
    "written": (written, lambda x, t: (x, t)),
}


def batch_of(number: int, size: int) -> tuple[Tensor, Tensor]:
    """Return a batch that is printed as every other: in the middle alone it is another."""
    x, t = torch.ones(size, 3), torch.ones(size, 2)
    x[10:30] = number
    return x, t


@pytest.mark.parametrize("form", FORMS)
def test_tensors_in_arguments_are_read_anew_in_each_call_by_one_program(form: str) -> None:
    loss, made = FORMS[form]
    torch.manual_seed(0)
    module = nn.Linear(3, 2)
    other = copy.deepcopy(module)
    ours, theirs = (optim.SGD(m.parameters(), lr=0.01) for m in (module, other))
    step = hagane.compile(loss, ours)
    for number, size in enumerate((1000, 1000, 700)):
        batch, again = made(*batch_of(number, size)), made(*batch_of(number, size))
        found = step(module, batch)
        theirs.zero_grad()
        wanted = loss(other, again)
        wanted.backward()
        theirs.step()
        torch.testing.assert_close(found, wanted.detach())
        if form == "written":
            torch.testing.assert_close(batch[0], again[0])
    for mine, one in zip(module.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(mine, one)
    assert len(step._programs) == 1


def of_link(link: Any, batch: Any, scale: float = 1.0) -> Any:
    return F.mean((link(batch["x"]) - batch["t"]) ** 2) * scale


@pytest.mark.parametrize("kind", [np.asarray, hagane.Variable])
def test_arrays_in_arguments_of_links_are_read_anew(kind: Any) -> None:
    found = []
    for compiled in (True, False):
        np.random.seed(0)
        link = hagane.links.Linear(3, 2)
        optimizer = hagane.optimizers.SGD(0.01).setup(link)
        step = hagane.compile(of_link, optimizer)
        for number in range(2):
            x, t = (kind(part.numpy()) for part in batch_of(number, 1000))
            if compiled:
                step(link, {"x": x, "t": t})
            else:
                optimizer.update(of_link, link, {"x": x, "t": t})
        found.append([p.array for p in link.params()])
    for mine, one in zip(*found, strict=True):
        # Means of two thousand numbers, of which eager ones have the error.
        np.testing.assert_allclose(mine, one, rtol=1e-5, atol=2e-7)


def of_many(module: Any, *batch: Any) -> Any:
    return of_places(module, batch)


def of_named(module: Any, batch: Any, *, scale: Any) -> Any:
    return of_places(module, batch) * scale


def weighted(module: Any, x: Any, *terms: Any, scale: Any = 0.5, **more: Any) -> Any:
    y = module(x)
    total = scale * y.square().mean()
    for term in terms:
        total = total + (y - term).abs().mean()
    return total + more["shift"] * y.mean() if more else total


def test_arguments_are_passed_by_name_and_in_any_number() -> None:
    torch.manual_seed(0)
    theirs = nn.Linear(3, 2)
    ours = copy.deepcopy(theirs)
    one, other = (optim.SGD(module.parameters(), lr=0.1) for module in (theirs, ours))
    step = hagane.compile(weighted, other)
    x, terms = torch.randn(4, 3), [torch.randn(4, 2) for _ in range(2)]
    calls: list[tuple[list[Any], dict[str, Any]]] = [
        ([x, *terms], {}),
        ([x, terms[0]], {"scale": torch.tensor(2.0)}),
        ([x], {"shift": torch.tensor(0.3)}),
        ([], {"x": x}),
    ]
    for given, named in (*calls, *calls):
        one.zero_grad()
        loss = weighted(theirs, *given, **named)
        loss.backward()
        one.step()
        torch.testing.assert_close(step(ours, *given, **named), loss.detach())
    assert len(step._programs) == len(calls)
    for mine, their in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, their)


def of_a_kind(module: Any, batch: Any, kind: str) -> Any:
    return of_places(module, batch) * len(kind)


def test_many_values_of_plain_arguments_are_told(caplog: pytest.LogCaptureFixture) -> None:
    module = nn.Linear(3, 2)
    step = hagane.compile(of_a_kind, optim.SGD(module.parameters(), lr=0.1))
    for number in range(4):
        step(module, batch_of(0, 50), "x" * number)
    assert "the step is compiled for 4 kinds of arguments" in caplog.text


def test_arguments_that_no_step_can_take_are_named() -> None:
    module = nn.Linear(3, 2)
    optimizer = optim.SGD(module.parameters(), lr=0.1)
    step = hagane.compile(of_named, optimizer)
    with pytest.raises(InvalidArgument, match="a module and batch, scale, got 1 arguments after"):
        step(module, batch_of(0, 50))
    with pytest.raises(InvalidArgument, match="after it, by name other"):
        step(module, batch_of(0, 50), other=1.0)
    step = hagane.compile(with_defaults, optimizer)
    with pytest.raises(
        InvalidArgument, match="expected a module and batch, scale, shift, got 0 arg"
    ):
        step(module)
    with pytest.raises(InvalidArgument, match="got 3 arguments after it"):
        step(module, batch_of(0, 50), 1.0, 2.0)
    step = hagane.compile(of_items, optimizer)
    x, t = torch.ones(2, 3), torch.ones(2, 2)
    with pytest.raises(InvalidArgument, match=r"two parts of the arguments are called 'batch\.1'"):
        step(module, {"x": x, "t": t, 1: x, "1": t})


def nothing(module: Any, x: Any) -> Any:
    module(x)


def several(module: Any, x: Any) -> Any:
    return module(x).mean(), x


def number(module: Any, x: Any) -> Any:
    return module(x).mean().item()


@pytest.mark.parametrize(
    ("loss", "told"),
    [
        (nothing, "return a tensor of one number, got None"),
        (several, "return a tensor of one number, got tuple"),
        (number, r"a number of Python \(float\), through which no gradient goes"),
        (lambda module, x: x.mean(), "any parameter of the optimizer that requires gradients"),
    ],
)
def test_results_that_are_no_loss_are_named(loss: Any, told: str) -> None:
    module = nn.Linear(3, 2)
    step = hagane.compile(loss, optim.SGD(module.parameters(), lr=0.1))
    with pytest.raises(InvalidArgument, match=told):
        step(module, torch.ones(2, 3))


class Weighted(nn.Module):
    """A loss with a weight of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(2.0))

    def forward(self, module: Any, x: Any) -> Any:
        return self.weight * module(x).square().mean()


def test_a_module_is_a_loss_whose_weights_are_trained() -> None:
    module, loss = nn.Linear(3, 2), Weighted()
    optimizer = optim.SGD([*module.parameters(), *loss.parameters()], lr=0.1)
    step = hagane.compile(loss, optimizer)
    found = step(module, torch.ones(2, 3))
    # The gradient by the weight is the loss over the weight.
    torch.testing.assert_close(loss.weight.detach(), 2.0 - 0.1 * found / 2.0)
    with pytest.raises(InvalidArgument, match="got a Linear that takes one argument"):
        hagane.compile(module, optimizer)
