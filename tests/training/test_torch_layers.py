"""Layers of PyTorch that draw channels or keep statistics, in compiled steps."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn, optim

from hagane.training.step import TorchStep


class Layered(nn.Module):
    """A layer behind a product with parameters, whose gradients show its factors."""

    def __init__(self, layer: nn.Module, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.layer, self.weight = layer, nn.Parameter(torch.ones(shape))

    def forward(self, x: Any) -> Any:
        return self.layer(x * self.weight)


def total(module: Any) -> Any:
    return module.layer(module.weight).sum()


def squared(module: Any) -> Any:
    return (module.layer(module.weight) ** 2).mean()


def squares(module: Any, x: Any) -> Any:
    return (module(x) ** 2).mean() + (module(x * 0.5) * x).mean()


def gradients(layer: nn.Module, shape: tuple[int, ...]) -> Any:
    """Return the factors of dropout, which are the gradient of the sum: one step of rate 1."""
    module = Layered(layer, shape)
    step = TorchStep(total, optim.SGD(module.parameters(), 1.0))
    torch.manual_seed(0)
    step(module)
    return 1 - module.weight.detach()


@pytest.mark.parametrize(
    ("layer", "shape", "first"),
    [
        (nn.Dropout1d(0.25), (60, 40, 5), 2),
        (nn.Dropout1d(0.25), (2400, 5), 1),
        (nn.Dropout2d(0.25), (60, 40, 3, 2), 2),
        (nn.Dropout3d(0.25), (60, 40, 2, 2, 2), 2),
    ],
)
def test_dropout_of_channels_drops_them_whole(
    layer: nn.Module, shape: tuple[int, ...], first: int
) -> None:
    found = gradients(layer, shape).flatten(first)
    assert (found == found[..., :1]).all()
    one = found[..., 0]
    torch.testing.assert_close(one[one != 0], torch.full_like(one[one != 0], 4 / 3))
    assert abs(float((one == 0).float().mean()) - 0.25) < 0.04


@pytest.mark.parametrize(
    ("layer", "whole"), [(nn.AlphaDropout(0.3), False), (nn.FeatureAlphaDropout(0.3), True)]
)
def test_alpha_dropout_keeps_mean_and_variance(layer: nn.Module, whole: bool) -> None:
    factors = gradients(layer, (150, 160, 3))
    assert bool((factors == factors[..., :1]).all()) == whole
    assert abs(float((factors == 0).float().mean()) - 0.3) < 0.02
    scale = 1 / ((1.7580993408473766**2 * 0.3 + 1) * 0.7) ** 0.5  # as PyTorch computes it
    kept = factors[factors != 0]
    torch.testing.assert_close(kept, torch.full_like(kept, scale))
    module = Layered(layer, (150, 160, 3))
    step = TorchStep(squared, optim.SGD(module.parameters(), 0.0))
    with torch.no_grad():
        module.weight.normal_()
    assert abs(float(step(module)) - 1) < 0.05


KINDS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "dropout1d": (lambda: nn.Dropout1d(0.0), (3, 4, 5)),
    "dropout3d": (lambda: nn.Dropout3d(0.5).eval(), (3, 4, 2, 3, 2)),
    "alpha": (lambda: nn.AlphaDropout(0.0), (3, 4)),
    "instance": (lambda: nn.InstanceNorm2d(4, track_running_stats=True), (3, 4, 3, 5)),
    "instance, affine": (
        lambda: nn.InstanceNorm1d(4, momentum=0.3, affine=True, track_running_stats=True),
        (3, 4, 5),
    ),
    "instance, no momentum": (
        lambda: nn.InstanceNorm1d(4, momentum=None, track_running_stats=True),
        (3, 4, 5),
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_layers_and_their_statistics_are_those_of_pytorch(kind: str) -> None:
    make, shape = KINDS[kind]
    torch.manual_seed(0)
    theirs = Layered(make(), shape[1:]).double()
    ours = copy.deepcopy(theirs)
    one, other = (optim.SGD(m.parameters(), 0.1) for m in (theirs, ours))
    step = TorchStep(squares, other)  # (calls the layer twice)
    for number in range(4):
        x = torch.randn(*shape).double()
        if number == 3:
            theirs.eval()
            ours.eval()
        one.zero_grad()
        loss = squares(theirs, x)
        loss.backward()
        one.step()
        torch.testing.assert_close(step(ours, x), loss.detach())
        for name, value in theirs.state_dict().items():
            torch.testing.assert_close(ours.state_dict()[name], value)
    assert len(step._programs) == 2


def _stays_equal(module: Any, loss: Any, batches: Any) -> None:
    """Compare compiled steps, the second in evaluation mode, with those of PyTorch."""
    other = copy.deepcopy(module)
    ours, theirs = (torch.optim.SGD(one.parameters(), lr=0.1) for one in (module, other))
    step = TorchStep(loss, ours)
    for number, batch in enumerate(batches):
        for one in (module, other):
            one.train(number != 1)
        theirs.zero_grad()
        wanted = loss(other, *batch)
        wanted.backward()
        theirs.step()
        torch.testing.assert_close(step(module, *batch), wanted.detach())
        torch.testing.assert_close(module.state_dict(), other.state_dict())


def test_running_means_over_all_batches_move_by_their_count() -> None:
    torch.manual_seed(0)
    norm = nn.BatchNorm1d(4, momentum=None)
    module = nn.Sequential(nn.Linear(5, 4), norm, nn.Tanh(), nn.Linear(4, 4), norm)  # moves twice
    batches = [(torch.randn(6, 5),) for _ in range(4)]
    _stays_equal(module.double(), lambda m, x: m(x).square().mean() + m(x).sum(),
                 [(x.double(),) for (x,) in batches])  # fmt: skip
    assert int(norm.num_batches_tracked) == 12


@pytest.mark.filterwarnings("ignore:LSTM with projections")
def test_projected_lstms_train() -> None:
    def loss(module: Any, x: Any, h: Any, c: Any) -> Any:
        y, (a, b) = module(x, (h, c))
        return y.square().mean() + 0.1 * a.sum() + b.mean()

    torch.manual_seed(0)
    module = nn.LSTM(5, 6, num_layers=2, bidirectional=True, proj_size=3, bias=False)
    sizes = ((7, 3, 5), (4, 3, 3), (4, 3, 6))
    _stays_equal(module, loss, [[torch.randn(size) for size in sizes] for _ in range(3)])


def attended(module: Any, x: Any) -> Any:
    y = nn.functional.scaled_dot_product_attention(x, x, module.weight, dropout_p=0.25)
    return (y * torch.eye(40)).sum()


def test_dropout_of_attention_drops_weights_and_scales_the_others() -> None:
    module = nn.Module()
    module.weight = nn.Parameter(torch.eye(40))
    step = TorchStep(attended, optim.SGD(module.parameters(), 1.0))
    torch.manual_seed(0)
    step(module, torch.zeros(40, 3))
    weights = (torch.eye(40) - module.weight.detach()).T * 40 * 0.75
    kept = weights > 0.5
    assert 0.70 < kept.float().mean() < 0.80
    assert torch.allclose(weights, kept.float(), atol=1e-4)


class Weighted(nn.Module):
    """Attention in heads that keeps its last weights."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, dropout=0.25, batch_first=True)
        self.register_buffer("last", torch.zeros(3, 2, 30, 30))

    def forward(self, x: Any) -> Any:
        y, self.last = self.attention(x, x, x, average_attn_weights=False)
        return y


def summed(module: Any, x: Any) -> Any:
    return module(x).sum()


def test_dropout_of_attention_in_heads_shows_in_its_weights_and_its_result() -> None:
    torch.manual_seed(0)
    module = Weighted()
    other, x = copy.deepcopy(module), torch.randn(3, 30, 8)
    step = TorchStep(summed, optim.SGD(module.parameters(), 0.1))
    loss = step(module, x)
    first = module.last.clone()
    whole = other.eval().attention(x, x, x, average_attn_weights=False)[1].detach()
    assert 0.70 < (first > 0).float().mean() < 0.80
    assert torch.allclose(first, torch.where(first > 0, whole / 0.75, 0.0), atol=1e-5)
    values = nn.functional.linear(
        x, other.attention.in_proj_weight[16:], other.attention.in_proj_bias[16:]
    )
    heads = first @ values.reshape(3, 30, 2, 4).transpose(1, 2)
    y = other.attention.out_proj(heads.transpose(1, 2).reshape(3, 30, 8)).detach()
    assert float(loss) == pytest.approx(float(y.sum()), abs=1e-3)
    step(module, x)
    assert not torch.equal(first > 0, module.last > 0)


def test_transformers_train_with_their_default_dropout() -> None:
    torch.manual_seed(0)
    module = nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
    step = TorchStep(
        lambda module, x: (module(x, x) - 1).square().mean(), optim.Adam(module.parameters(), 0.02)
    )
    losses = [float(step(module, torch.ones(4, 5, 8))) for _ in range(20)]
    assert losses[-1] < 0.5 * losses[0]


def sided(module: Any, x: Any) -> Any:
    y = x * module.weight
    return (module.layer(y) * 3 if x.sum() > 0 else module.layer(y) + y).sum()


def test_dropout_in_branches_that_the_data_decide_is_drawn_in_each() -> None:
    module = Layered(nn.Dropout(0.25), (2400,))
    step = TorchStep(sided, optim.SGD(module.parameters(), 1.0))
    for sign, kept, dropped in ((1.0, 4.0, 0.0), (-1.0, -7 / 3, -1.0)):
        before = module.weight.detach().clone()
        step(module, torch.full((2400,), sign))
        factors = before - module.weight.detach()
        whole = torch.isclose(factors, torch.tensor(kept))
        assert 0.70 < whole.float().mean() < 0.80
        assert torch.allclose(factors[~whole], torch.tensor(dropped), atol=1e-5)


def test_dropout_between_layers_of_an_lstm_is_drawn_anew_in_training() -> None:
    torch.manual_seed(0)
    module = nn.LSTM(5, 6, num_layers=2, dropout=0.5)
    step = TorchStep(
        lambda m, x: m(x)[0].square().mean(), torch.optim.SGD(module.parameters(), lr=0.0)
    )
    x = torch.randn(7, 3, 5)
    assert len({float(step(module, x)) for _ in range(3)}) == 3
    module.eval()
    wanted = module(x)[0].square().mean().detach()
    torch.testing.assert_close(step(module, x), wanted)


def test_first_axes_that_are_equal_by_chance_are_of_fixed_size(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def loss(module: Any, x: Any, w: Any) -> Any:
        return (module(x) @ w).square().mean()

    batches = [(torch.randn(size, 5), torch.randn(3, 2)) for size in (3, 3, 4)]
    _stays_equal(nn.Linear(5, 3), loss, batches)
    assert "each size is compiled anew" in caplog.text


@pytest.mark.parametrize("order", [0.5, -2])
def test_norms_of_low_order_have_no_slope_at_zero(order: float) -> None:
    nets = [nn.Linear(3, 1, bias=False) for _ in range(2)]
    for net in nets:
        net.weight.data = torch.tensor([[0.0, 2.0, -3.0]])
    given = [torch.optim.SGD(net.parameters(), lr=0.1) for net in nets]

    def loss(module: Any) -> Any:
        return torch.linalg.vector_norm(module.weight, order) + module.weight.sum()

    loss(nets[0]).backward()
    given[0].step()
    TorchStep(loss, given[1])(nets[1])
    torch.testing.assert_close(nets[1].weight, nets[0].weight)


class Rare(nn.Module):
    """Classes in clusters, of which a batch has one row, several or none."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.AdaptiveLogSoftmaxWithLoss(5, 9, [3, 6], div_value=2.0)


def test_classes_in_clusters_come_once_often_or_not_at_all() -> None:
    def loss(module: Any, x: Any, y: Any) -> Any:
        made = module.layer(x, y)
        return made.loss + 0.1 * made.output.square().sum() + made[0].mean()

    labels = [torch.tensor(given) for given in ([0, 4, 8], [1, 2, 2], [6, 7, 5], [3, 4, 5])]
    _stays_equal(Rare().double(), loss, [(torch.randn(3, 5).double(), y) for y in labels])


@pytest.mark.parametrize("wrap", [nn.DataParallel, optim.swa_utils.AveragedModel])
def test_modules_around_others_are_followed(wrap: Any) -> None:
    module = wrap(nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4)))
    batches = [(torch.randn(size, 5), torch.randn(size, 4)) for size in (4, 3)]
    _stays_equal(module, lambda m, x, y: (m(x) - y).square().mean(), batches)
