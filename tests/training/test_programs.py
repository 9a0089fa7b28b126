"""Losses of users' programs: steps leave the parameters as PyTorch's own do."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import Tensor, nn, optim
from torch.nn import functional

import hagane


def compare(
    module: nn.Module, loss: Callable[..., Tensor], batches: Sequence[tuple[Tensor, ...]]
) -> None:
    """Do the same steps in PyTorch and compiled, and compare losses and parameters."""
    other = copy.deepcopy(module)
    kinds = [[p for p in one.parameters() if p.requires_grad] for one in (module, other)]
    ours, theirs = (optim.SGD(parameters, lr=0.1) for parameters in kinds)
    step = hagane.compile(loss, ours)
    for batch in batches:
        theirs.zero_grad()
        wanted = loss(other, *batch)
        wanted.backward()
        theirs.step()
        torch.testing.assert_close(step(module, *batch), wanted.detach(), rtol=1e-4, atol=1e-5)
    for mine, one in zip(module.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(mine, one, rtol=1e-4, atol=1e-5)


def enlarged(module: Any, x: Any) -> Any:
    image = functional.interpolate(module(x), scale_factor=2, mode="bilinear")
    return image.square().mean()


def test_images_of_any_number_are_enlarged() -> None:
    torch.manual_seed(0)
    compare(nn.Conv2d(2, 3, 1), enlarged, [(torch.randn(count, 2, 5, 4),) for count in (2, 3)])


def aligned(module: Any, x: Any, labels: Any, times: Any, counts: Any) -> Any:
    scores = functional.log_softmax(module(x), 2)
    return functional.ctc_loss(scores, labels, times, counts)


def test_alignments_that_cannot_be_have_no_gradient() -> None:
    torch.manual_seed(2)
    labels = torch.tensor([[1, 1, 4], [3, 2, 5]])
    given = labels, torch.tensor([9, 7]), torch.tensor([3, 2])
    compare(nn.Linear(4, 6), aligned, [(torch.randn(9, 2, 4), *given) for _ in range(2)])


def aligned_scores(module: Any, x: Any, labels: Any, times: Any, counts: Any) -> Any:
    return functional.ctc_loss(module(x), labels, times, counts, zero_infinity=True)


def test_alignments_of_other_numbers_than_log_softmax_have_the_gradient_of_pytorch() -> None:
    torch.manual_seed(2)
    labels = torch.tensor([[1, 1, 4], [3, 2, 5], [1, 1, 1]])
    given = labels, torch.tensor([9, 7, 3]), torch.tensor([3, 2, 3])
    compare(nn.Linear(4, 6), aligned_scores, [(torch.randn(9, 3, 4), *given) for _ in range(2)])


class Towers(nn.Module):
    """Two towers whose results are compared, at a learned temperature."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(6, 8), nn.Linear(5, 8)
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, x: Any, y: Any) -> Any:
        left, right = (functional.normalize(v, dim=-1) for v in (self.left(x), self.right(y)))
        return self.scale.exp() * left @ right.t()


def contrastive(module: Any, x: Any, y: Any) -> Any:
    scores = module(x, y)
    wanted = torch.arange(scores.shape[0])
    return (
        functional.cross_entropy(scores, wanted) + functional.cross_entropy(scores.t(), wanted)
    ) / 2


def test_pairs_are_told_from_others_and_the_last_batch_is_small() -> None:
    torch.manual_seed(0)
    compare(Towers(), contrastive, [(torch.randn(n, 6), torch.randn(n, 5)) for n in (7, 7, 3)])


class Pupil(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.teacher, self.own = nn.Linear(6, 4), nn.Linear(6, 4)
        self.teacher.requires_grad_(False)


def distilled(module: Any, x: Any, target: Any) -> Any:
    with torch.no_grad():
        soft = functional.softmax(module.teacher(x) / 3, dim=1)
    found = module.own(x)
    near = functional.kl_div(functional.log_softmax(found / 3, dim=1), soft, reduction="batchmean")
    return 9 * near + functional.cross_entropy(found, target, label_smoothing=0.1)


def test_a_frozen_teacher_stays() -> None:
    torch.manual_seed(0)
    batches = [(torch.randn(n, 6), torch.randint(0, 4, (n,))) for n in (8, 3)]
    compare(Pupil(), distilled, batches)


class Twice(nn.Module):
    """A normalisation that is called twice, as a discriminator is."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x: Any) -> Any:
        return self.norm(x) + self.norm(x.square())


def squares(module: Any, x: Any) -> Any:
    return module(x).square().mean()


def test_batches_are_counted_as_often_as_they_are_normalised() -> None:
    module = Twice()
    step = hagane.compile(squares, optim.SGD(module.parameters(), lr=0.1))
    step(module, torch.randn(4, 3))
    step(module, torch.randn(4, 3))
    assert module.norm.num_batches_tracked == 4


def decayed(module: Any, x: Any, y: Any) -> Any:
    return contrastive(module, x, y) + 0.01 * sum(p.square().sum() for p in module.parameters())


def test_a_number_without_axes_is_its_own_sum() -> None:
    torch.manual_seed(0)
    compare(Towers(), decayed, [(torch.randn(5, 6), torch.randn(5, 5)) for _ in range(2)])


def probable(module: Any, x: Any, target: Any) -> Any:
    return functional.binary_cross_entropy(module(x).sigmoid(), target)


def test_probabilities_of_zero_and_one_have_finite_gradients() -> None:
    torch.manual_seed(0)
    x = torch.randn(4, 3) * torch.tensor([[1.0], [1.0], [1e5], [-1e5]])
    compare(nn.Linear(3, 2), probable, [(x, torch.rand(4, 2)) for _ in range(2)])


class Attending(nn.Module):
    """Attention that sees keys besides those it is given."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(6, 2, **options)

    def forward(self, x: Any, hidden: Any) -> Any:
        mask = torch.ones(4, 4, dtype=torch.bool).triu(1)
        return self.attention(x, x.flip(0), x, attn_mask=mask, key_padding_mask=hidden)


def attended(module: Any, x: Any, hidden: Any) -> Any:
    found, weights = module(x, hidden)
    return found.square().mean() + weights.square().sum()


def test_attention_has_trained_keys_and_zeros_in_addition() -> None:
    torch.manual_seed(0)
    module = Attending(add_bias_kv=True, add_zero_attn=True)
    hidden = torch.tensor([[False, False, True, True], [False] * 4])
    compare(module, attended, [(torch.randn(4, 2, 6), hidden)])


class Unpooled(nn.Module):
    """Largest elements of windows, put back where they were."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(2, 1))
        self.pool, self.back = nn.MaxPool1d(2, return_indices=True), nn.MaxUnpool1d(2)

    def forward(self, x: Any) -> Any:
        return self.back(*self.pool(x * self.scale)) * torch.linspace(0, 1, 6)


def margins(module: Any, x: Any, labels: Any) -> Any:
    scores = module(x).flatten(1)
    each = nn.MultiLabelMarginLoss(reduction="none")(scores, labels)
    return each.square().sum() + functional.multilabel_margin_loss(scores[0], labels[0])


def test_margins_count_labels_in_front_of_the_first_negative_one() -> None:
    torch.manual_seed(0)
    labels = torch.full((3, 12), -1)
    labels[0, :4], labels[2, :4] = torch.tensor([2, 0, -1, 3]), torch.tensor([11, 5, 5, 1])
    compare(Unpooled(), margins, [(torch.randn(3, 2, 6), labels)])
