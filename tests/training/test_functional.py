"""Losses that transform functions, call modules with other parameters or compute parts again."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn
from torch.func import functional_call, grad, grad_and_value, vmap
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils.checkpoint import checkpoint_sequential

import hagane
from tests.training.test_programs import compare


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))


def scaled(module: Any, x: Any, y: Any) -> Any:
    parameters = {name: 1.1 * p for name, p in module.named_parameters()}
    return functional.mse_loss(functional_call(module, parameters, (x,)), y)


def adapted(module: Any, x: Any, y: Any) -> Any:
    parameters = dict(module.named_parameters())

    def inner(found: Any) -> Any:
        return functional.mse_loss(functional_call(module, found, (x[:2],)), y[:2])

    slopes = grad(inner)(parameters)
    quick = {name: p - 0.1 * slopes[name] for name, p in parameters.items()}
    return functional.mse_loss(functional_call(module, quick, (x,)), y)


def with_slopes(module: Any, x: Any, y: Any) -> Any:
    def error(a: Any, b: Any, scale: Any) -> Any:
        miss = (module(a) - scale * b).square().mean()
        return miss, miss.detach()

    (by_a, by_b), (value, beside) = grad_and_value(error, (0, 1), has_aux=True)(x, y, 2.0)
    return value + beside + by_a.square().sum() + by_b.square().sum()


def in_segments(module: Any, x: Any, y: Any) -> Any:
    return functional.mse_loss(checkpoint_sequential(module, 2, x, use_reentrant=False), y)


@pytest.mark.parametrize("loss", [scaled, adapted, with_slopes, in_segments])
def test_transformed_functions_train_as_in_pytorch(loss: Any) -> None:
    module = network()
    compare(module, loss, [(torch.randn(n, 2), torch.randn(n, 1)) for n in (4, 3, 5)])


class Shifted(nn.Module):
    """A layer with running statistics."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Linear(2, 3), nn.BatchNorm1d(3)

    def forward(self, x: Any) -> Any:
        return self.norm(self.first(x))


def with_statistics(module: Any, x: Any) -> Any:
    parameters = {name: 2 * p for name, p in module.named_parameters()}
    return functional_call(module, parameters, (x,)).tanh().mean()


def test_running_statistics_move_in_calls_with_other_parameters() -> None:
    import copy

    torch.manual_seed(1)
    module = Shifted()
    other = copy.deepcopy(module)
    batches = [(torch.randn(5, 2),) for _ in range(3)]
    for batch in batches:
        with_statistics(other, *batch)
    step = hagane.compile(with_statistics, torch.optim.SGD(module.parameters(), lr=0.0))
    for batch in batches:
        step(module, *batch)
    for name, wanted in other.named_buffers():
        torch.testing.assert_close(module.get_buffer(name), wanted)


class Tagger(nn.Module):
    """Tells a class for each element of a sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.reader = nn.LSTM(3, 4, batch_first=True, bidirectional=True)
        self.last = nn.Linear(8, 2)


def tagged(module: Any, x: Any, counts: Any, labels: Any) -> Any:
    rows = pack_padded_sequence(x, counts, batch_first=True, enforce_sorted=False)
    wanted = pack_padded_sequence(labels, counts, batch_first=True, enforce_sorted=False)
    found, _ = module.reader(rows)
    weights = torch.arange(wanted.data.shape[0]) % 3  # they tell the order of the rows
    errors = functional.cross_entropy(module.last(found.data), wanted.data, reduction="none")
    return (weights * errors).mean()


@pytest.mark.long
def test_rows_of_packed_sequences_have_pytorchs_order() -> None:
    torch.manual_seed(2)
    batches = [
        (torch.randn(n, 5, 3), torch.tensor(counts), torch.randint(2, (n, 5)))
        for n, counts in ((4, [2, 5, 1, 5]), (3, [1, 4, 3]), (1, [2]))
    ]
    compare(Tagger(), tagged, batches)


def mapped(module: Any, x: Any, y: Any) -> Any:
    return vmap(lambda a, b: functional.mse_loss(module(a), b))(x, y).mean()


def test_mapped_losses_are_trained() -> None:
    batches = [(torch.randn(n, 2), torch.randn(n, 1)) for n in (4, 4, 3)]
    compare(network(), mapped, batches)


def windows(module: Any, x: Any) -> Any:
    rows = module(x).transpose(0, 1)
    first, second = rows.stride()
    return (rows.as_strided((2, 3), (first, second)) * torch.arange(6).view(2, 3)).sum().tanh()


def test_strides_of_turned_tensors_are_those_of_their_memory() -> None:
    torch.manual_seed(3)
    compare(nn.Linear(2, 4), windows, [(torch.randn(6, 2),) for _ in range(2)])
