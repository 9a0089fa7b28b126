"""Programs of a step by what its loss reads besides arguments: flags, caches, sizes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn, optim

import hagane
from hagane.errors import CaptureError
from hagane.training.step.modules.step import TorchStep


def compare(
    module: nn.Module,
    loss: Callable[..., Any],
    batches: Sequence[Sequence[Any]],
    before: Callable[[Any, int], None] = lambda module, number: None,
) -> None:
    """Do the same steps in PyTorch and compiled, and compare losses and parameters."""
    theirs, ours = module.double(), copy.deepcopy(module).double()
    one, other = (optim.SGD(m.parameters(), 0.1, momentum=0.5) for m in (theirs, ours))
    step = hagane.compile(loss, other)
    for number, batch in enumerate(batches):
        before(theirs, number)
        before(ours, number)
        one.zero_grad()
        wanted = loss(theirs, *batch)
        wanted.backward()
        one.step()
        torch.testing.assert_close(step(ours, *batch), wanted.detach(), rtol=1e-9, atol=0)
    for mine, their in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, their, rtol=1e-8, atol=1e-10)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets an item for each program that a step compiles."""
    found, real = list[int](), TorchStep._compile

    def counted(*given: Any) -> Any:
        found.append(len(found))
        return real(*given)

    monkeypatch.setattr(TorchStep, "_compile", counted)
    return found


class Turned(nn.Module):
    """Trains one of two layers, as a flag tells."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right, self.scale = nn.Linear(3, 3), nn.Linear(3, 3), 1
        self.is_left = True

    def forward(self, x: Any) -> Any:
        return (self.left if self.is_left else self.right)(x) * self.scale


def mean_square(module: Any, x: Any) -> Any:
    return module(x).square().mean()


def test_values_that_come_again_find_their_programs(compiled: list[int]) -> None:
    def turn(module: Any, number: int) -> None:
        module.is_left = number % 2 == 0

    torch.manual_seed(0)
    compare(Turned(), mean_square, [[torch.randn(4, 3).double()] for _ in range(8)], turn)
    assert len(compiled) == 2


def test_of_many_values_the_latest_four_have_programs(compiled: list[int]) -> None:
    values = [0, 1, 2, 3, 4, 3, 2, 1, 0]

    def turn(module: Any, number: int) -> None:
        module.scale = values[number]

    torch.manual_seed(0)
    compare(Turned(), mean_square, [[torch.randn(4, 3).double()] for _ in values], turn)
    assert len(compiled) == 6


class Masked(nn.Module):
    """Attends to what came before, by a mask that is kept until another length comes."""

    def __init__(self) -> None:
        super().__init__()
        self.attention, self.mask = nn.MultiheadAttention(4, 2), None
        self.words, self.scores = nn.Embedding(5, 4), nn.Linear(4, 5)

    def forward(self, words: Any) -> Any:
        if self.mask is None or self.mask.size(0) != len(words):
            self.mask = torch.log(torch.tril(torch.ones(len(words), len(words))))
        x = self.words(words)
        return self.scores(self.attention(x, x, x, attn_mask=self.mask, need_weights=False)[0])


def test_a_mask_that_is_kept_for_a_length_is_made_anew_for_others() -> None:
    def loss(module: Any, words: Any, following: Any) -> Any:
        return nn.functional.cross_entropy(module(words).view(-1, 5), following)

    torch.manual_seed(0)
    text = torch.randint(5, (40, 2))
    compare(
        Masked(), loss, [(text[i : i + n], text[i + 1 : i + n + 1].view(-1))
                         for i, n in ((0, 6), (6, 6), (12, 3), (15, 6), (21, 6))],
    )  # fmt: skip


def test_sizes_that_fit_in_no_form_are_told_as_those_of_the_call() -> None:
    def loss(module: Any, x: Any, y: Any) -> Any:
        return (module(x).view(-1) - y).square().mean()

    module = nn.Linear(3, 2)
    step = hagane.compile(loss, optim.SGD(module.parameters(), 0.1))
    step(module, torch.randn(4, 3), torch.randn(8))
    with pytest.raises(CaptureError, match=r"axis -1 has sizes 10 and 9"):
        step(module, torch.randn(5, 3), torch.randn(9))


class Words(nn.Module):
    """Scores for each word of a text."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.scores = nn.Embedding(5, 4), nn.Linear(4, 5)

    def forward(self, words: Any) -> Any:
        return self.scores(torch.tanh(self.words(words)))


def next_words(module: Any, words: Any, following: Any) -> Any:
    return nn.functional.cross_entropy(module(words).view(-1, 5), following)


@pytest.mark.parametrize(
    ("sizes", "attempts"),  # of which each but the first is made after one that is refused
    [
        ([(6, 2), (6, 2), (3, 2), (5, 2), (4, 2), (7, 2)], 3),
        ([(6, 2), (6, 4), (3, 4), (5, 3), (4, 2), (7, 4)], 5),
    ],
)
def test_rows_that_are_flattened_need_no_program_for_each_size(
    compiled: list[int], sizes: list[tuple[int, int]], attempts: int
) -> None:
    torch.manual_seed(0)
    texts = [torch.randint(5, (rows + 1, texts)) for rows, texts in sizes]
    compare(Words(), next_words, [(text[:-1], text[1:].reshape(-1)) for text in texts])
    assert len(compiled) == attempts


def kept_as(module: Any, x: Any, kind: str) -> Any:
    y = module(x)
    module.kept = {"mean": y.mean(), "count": 3}.get(kind)
    return y.square().mean()


def test_what_no_call_reads_may_become_none_a_number_or_a_tensor_again() -> None:
    module = nn.Linear(3, 1)
    step = hagane.compile(kept_as, optim.SGD(module.parameters(), 0.1))
    for kind in ("mean", "none", "mean", "count", "none"):
        step(module, torch.ones(2, 3), kind)
        assert type(module.kept) is {"mean": torch.Tensor, "count": int}.get(kind, type(None))
