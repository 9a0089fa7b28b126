"""Sizes that vary from call to call, wherever the batch lies, and those of one."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn, optim
from torch.nn import functional

import hagane
from tests.training.test_programs import compare


class Reader(nn.Module):
    """Reads sequences whose first axis is time."""

    def __init__(self) -> None:
        super().__init__()
        self.reader, self.last = nn.GRU(3, 4), nn.Linear(4, 2)

    def forward(self, x: Any) -> Any:
        return self.last(self.reader(x)[0][-1])


def labelled(module: Any, x: Any, labels: Any) -> Any:
    return functional.cross_entropy(module(x), labels)


def joined(module: Any, x: Any, edges: Any) -> Any:
    return (edges @ module(x)).tanh().square().mean()


def overlaid(module: Any, x: Any, labels: Any) -> Any:
    x = x.clone()
    x[range(x.shape[0]), labels] = x.max()
    return module(x)[range(len(x)), 0].square().mean()


def convolved(module: Any, x: Any, edges: Any) -> Any:
    return torch.sparse.mm(edges, torch.spmm(edges, module(x))).tanh().square().mean()


def squeezed(module: Any, x: Any, wanted: Any) -> Any:
    return functional.mse_loss(module(x).squeeze(), wanted.squeeze())


def compiled(caplog: pytest.LogCaptureFixture, module: nn.Module, loss: Any, batches: Any) -> int:
    """Compare steps with PyTorch's, and return how many programs they took."""
    counted: list[int] = []
    before = hagane.compile

    def noted(*given: Any) -> Any:
        step = before(*given)
        counted.append(0)
        programs = step._programs

        def run(*arguments: Any) -> Any:
            result = step(*arguments)
            counted[-1] = len(programs)
            return result

        return run

    with pytest.MonkeyPatch.context() as patched, caplog.at_level(logging.WARNING):
        patched.setattr(hagane, "compile", noted)
        compare(module, loss, batches)
    return counted[-1]


@pytest.mark.long
@pytest.mark.parametrize(
    ("module", "loss", "batch", "programs"),
    [  # without a batch along all first axes the first size is compiled for too
        (Reader, labelled, lambda n: (torch.randn(5, n, 3), torch.randint(2, (n,))), 2),
        (lambda: nn.Linear(3, 2), joined, lambda n: (torch.randn(n, 3), torch.rand(n, n)), 1),
        (lambda: nn.Linear(3, 2), convolved, lambda n: (torch.randn(n, 3), torch.rand(n, n)), 1),
        (lambda: nn.Linear(3, 2), overlaid, lambda n: (torch.randn(n, 3), torch.arange(n) % 3), 1),
        (lambda: nn.Linear(4, 2), joined, lambda n: (torch.randn(n, 4), torch.rand(n, n)), 2),
    ],
    ids=["time first", "pairs", "graphs", "ranges", "pairs of as many as there are features"],
)
def test_a_batch_along_another_axis_is_compiled_for_once(
    module: Callable[[], nn.Module],
    loss: Any,
    batch: Callable[[int], Any],
    programs: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    torch.manual_seed(0)
    batches = [batch(count) for count in (4, 2, 3, 9)]
    assert compiled(caplog, module(), loss, batches) == programs


@pytest.mark.parametrize("first", [4, 1])
def test_a_batch_of_one_that_a_loss_squeezes_is_compiled_for_by_itself(
    first: int, caplog: pytest.LogCaptureFixture
) -> None:
    torch.manual_seed(0)
    batches = [(torch.randn(n, 3), torch.randn(n)) for n in (first, 1, 3, 1, 9)]
    assert compiled(caplog, nn.Linear(3, 1), squeezed, batches) == 2


def scaled(module: Any, x: Any, factor: Any) -> Any:
    return (factor * module(x)).square().mean()


def test_a_program_of_open_numbers_that_fails_is_told(caplog: pytest.LogCaptureFixture) -> None:
    module = nn.Linear(3, 2)
    step = hagane.compile(scaled, optim.SGD(module.parameters(), 0.1))
    step(module, torch.ones(2, 3), 1.5)
    compiler = step._compile

    def failing(module: Any, given: Any, sizes: Any, free: Any) -> Any:
        if free:
            raise ZeroDivisionError("of the compiler")
        return compiler(module, given, sizes, free)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(step, "_compile", failing)
        step(module, torch.ones(2, 3), 2.5)
    assert (
        "numbers of the arguments stay fixed, as a program that takes factor as inputs fails: "
        "ZeroDivisionError('of the compiler')"
    ) in caplog.text
