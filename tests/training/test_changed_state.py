"""Steps of losses that change buffers and attributes, and of parameters that others compute."""

from __future__ import annotations

import copy
import types
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn, optim
from torch.nn.utils import parametrizations, parametrize
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import hagane
from hagane.errors import CaptureError, InvalidArgument


def loss_of(module: Any, *given: Any) -> Any:
    return module(*given).square().mean()


def trained(module: Any, given: Any, loss: Any = loss_of, steps: int = 4) -> tuple[Any, Any, Any]:
    """Train copies of a module in both ways; return them, and the compiled step."""
    theirs, ours = module.double(), copy.deepcopy(module).double()
    one, other = (optim.Adam(m.parameters(), 0.01) for m in (theirs, ours))
    step = hagane.compile(loss, other)
    for number in range(steps):
        arguments = given(number)
        one.zero_grad()
        wanted = loss(theirs, *arguments)
        wanted.backward()
        one.step()
        torch.testing.assert_close(step(ours, *arguments), wanted.detach(), rtol=1e-9, atol=0)
    found, expected = ours.state_dict(), theirs.state_dict()
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-8, atol=1e-10, msg=name)
    return theirs, ours, step


class Averaging(nn.Module):
    """Keeps a moving mean, a count, its last result, and a number of calls."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.layer, self.calls, self.last = nn.Linear(3, 3), 0, None

    def forward(self, x: Any) -> Any:
        if self.training:
            with torch.no_grad():
                self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
                self.count += 1
        self.calls += 1
        self.last = self.layer(x - self.mean)
        return self.last


def with_last(module: Any, x: Any) -> Any:
    return module(x).square().mean() + 0.1 * module[0].last.abs().mean()


def test_buffers_and_attributes_that_a_loss_changes_are_changed() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(Averaging(), nn.Tanh(), Averaging())
    theirs, ours, step = trained(module, lambda n: [torch.randn(4 + n, 3).double()], with_last)
    assert len(step._programs) == 1
    for mine, their in ((ours[0], theirs[0]), (ours[2], theirs[2])):
        assert mine.calls == their.calls == 4
        torch.testing.assert_close(mine.last, their.last.detach(), rtol=1e-8, atol=1e-10)
    ours.eval()
    before = ours[0].mean.clone()
    step(ours, torch.randn(4, 3).double())
    assert torch.equal(ours[0].mean, before)
    assert ours[0].calls == 5


class Replacing(nn.Module):
    """Sets a buffer to a new tensor, and keeps a sum of its first results."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("average", torch.zeros(3))
        self.layer, self.sum = nn.Linear(3, 3), torch.zeros(3, dtype=torch.float64)

    def forward(self, x: Any) -> Any:
        y = self.layer(x)
        self.average = 0.9 * self.average + 0.1 * y.detach().mean(0)
        self.sum = self.sum + y.detach()[0]
        return y - self.average


@pytest.mark.parametrize("options", [{}, {"accumulate": 2}])
def test_attributes_are_set_to_new_tensors(options: Any) -> None:
    torch.manual_seed(0)
    theirs = Replacing().double()
    ours = copy.deepcopy(theirs)
    held = ours.average
    step = hagane.compile(loss_of, optim.SGD(ours.parameters(), 0.0), **options)
    for size in (4, 6, 5):
        x = torch.randn(size, 3).double()
        torch.testing.assert_close(step(ours, x), loss_of(theirs, x).detach())
    torch.testing.assert_close(ours.average, theirs.average)
    torch.testing.assert_close(ours.sum, theirs.sum)
    assert bool((held == 0).all())
    assert "average" in ours.state_dict()


class Appending(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.weight = nn.Linear(3, 1), nn.Parameter(torch.ones(3))

    def forward(self, x: Any) -> Any:
        with torch.no_grad():
            self.weight.clamp_(0, 1)
        return self.layer(x * self.weight)


def test_parameters_that_a_loss_changes_are_named() -> None:
    module = Appending()
    step = hagane.compile(loss_of, optim.SGD(module.parameters(), 0.1))
    with pytest.raises((InvalidArgument, CaptureError), match="weight|in place"):
        step(module, torch.randn(2, 3))


class Symmetric(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.triu() + x.triu(1).transpose(-1, -2)


class Doubled(nn.Module):
    def forward(self, x: Any) -> Any:
        return 2 * x.tanh()


def symmetric() -> Any:
    made = nn.Linear(4, 4)
    parametrize.register_parametrization(made, "weight", Symmetric())
    parametrize.register_parametrization(made, "weight", Doubled())
    parametrize.register_parametrization(made, "bias", Doubled())
    return made


LAYERS = {
    "weight_norm": lambda: parametrizations.weight_norm(nn.Linear(4, 4)),
    "orthogonal": lambda: nn.Sequential(
        nn.Linear(4, 6), parametrizations.orthogonal(nn.Linear(6, 4))
    ),
    "weight_norm of all": lambda: parametrizations.weight_norm(nn.Linear(4, 4), dim=None),
    "spectral_norm": lambda: parametrizations.spectral_norm(nn.Linear(4, 4), n_power_iterations=2),
    "own": symmetric,
}


@pytest.mark.parametrize("name", LAYERS)
def test_parameters_that_others_compute_are_trained(name: str) -> None:
    torch.manual_seed(0)
    module = nn.Sequential(LAYERS[name](), nn.Tanh(), nn.Linear(4, 2))
    trained(module, lambda n: [torch.randn(3, 4).double()])


def test_spectral_norms_move_at_each_call_of_one_expression() -> None:
    def loss(module: Any, real: Any, made: Any) -> Any:
        return (1 - module(real)).relu().mean() + (1 + module(made)).relu().mean()

    torch.manual_seed(0)
    module = nn.Sequential(parametrizations.spectral_norm(nn.Linear(4, 3)), nn.Linear(3, 1))
    _, ours, step = trained(module, lambda n: [torch.randn(3, 4).double() for _ in "ab"], loss)
    ours.eval()
    before = copy.deepcopy(ours[0].parametrizations.weight[0].state_dict())
    step(ours, torch.randn(3, 4).double(), torch.randn(3, 4).double())
    after = ours[0].parametrizations.weight[0].state_dict()
    assert all(torch.equal(after[name], value) for name, value in before.items())


@pytest.mark.long
def test_weights_of_convolutions_that_others_compute_are_trained() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(
        parametrizations.weight_norm(nn.Conv1d(2, 3, 3)),
        nn.Tanh(),
        parametrizations.spectral_norm(nn.ConvTranspose1d(3, 2, 3)),
        parametrizations.weight_norm(nn.Conv1d(2, 2, 1), dim=1),
    )
    trained(module, lambda n: [torch.randn(3, 2, 8).double()])


class Packed(nn.Module):
    """Reads sequences of their own lengths."""

    def __init__(self, kind: Any, *, batch_first: bool, **options: Any):
        super().__init__()
        self.first = batch_first
        self.layer = kind(3, 4, batch_first=batch_first, **options)

    def forward(self, x: Any, lengths: Any) -> Any:
        x = x if self.first else x.transpose(0, 1)
        packed = pack_padded_sequence(x, lengths, batch_first=self.first, enforce_sorted=False)
        y, last = self.layer(packed)
        y, counts = pad_packed_sequence(y, batch_first=self.first, padding_value=0.5)
        last = torch.cat(last, 2) if isinstance(last, tuple) else last
        return y.square().sum() + last.sum((0, 2)) * counts


def sequences(number: int) -> list[Any]:
    lengths = torch.randint(1, 6, (4,))
    lengths[number % 4] = 6 - number % 2
    lengths = lengths.int() if number % 2 else lengths
    return [torch.randn(4, 6, 3).double(), lengths]


PACKED = [
    pytest.param(nn.LSTM, True, {"bidirectional": True}, marks=pytest.mark.long),
    pytest.param(nn.LSTM, True, {"bidirectional": True, "num_layers": 2, "proj_size": 2}),
    pytest.param(nn.GRU, False, {"num_layers": 2}, marks=pytest.mark.long),
    pytest.param(nn.RNN, True, {"nonlinearity": "relu"}, marks=pytest.mark.long),
]


@pytest.mark.filterwarnings("ignore:LSTM with projections")
@pytest.mark.parametrize(("kind", "batch_first", "options"), PACKED)
def test_packed_sequences_are_trained(kind: Any, batch_first: bool, options: Any) -> None:
    torch.manual_seed(0)
    module = Packed(kind, batch_first=batch_first, **options)
    _, _, step = trained(module, sequences)
    assert len(step._programs) == 2  # for either type of lengths


def test_the_sizes_of_steps_of_a_packed_sequence_are_refused_by_name() -> None:
    def loss(module: Any, x: Any, lengths: Any) -> Any:
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return module(x).square().mean() / packed.batch_sizes[0]

    module = nn.Linear(3, 2)
    step = hagane.compile(loss, optim.SGD(module.parameters(), 0.1))
    with pytest.raises(
        CaptureError, match="'batch_sizes' of a packed sequence is not captured: un"
    ):
        step(module, torch.randn(4, 6, 3), torch.tensor([6, 2, 1, 3]))


@pytest.mark.long
def test_masks_that_hide_later_positions_follow_the_length() -> None:
    def loss(module: Any, x: Any) -> Any:
        mask = nn.Transformer.generate_square_subsequent_mask(x.size(1), dtype=x.dtype)
        return module(x, x, x, attn_mask=mask, need_weights=False)[0].square().mean()

    torch.manual_seed(0)
    module = nn.MultiheadAttention(4, 2, batch_first=True)
    trained(module, lambda n: [torch.randn(2, 3 + n, 4).double()], loss)


class Warming(nn.Module):
    """Attributes that change their kind: number to tensor, None to text, text to text."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.extra: Any = 0.0
        self.mean: Any = None
        self.mode: Any = None

    def forward(self, x: Any) -> Any:
        y = self.layer(x)
        now = y.detach().mean(0)
        self.mean = now if self.mean is None else 0.9 * self.mean + 0.1 * now
        self.extra = y.abs().mean()
        if self.mode == "warm":
            y, self.mode = 2 * y, "hot"
        elif self.mode is None:
            self.mode = "warm"
        return y - self.mean


def test_attributes_may_change_their_kind() -> None:
    def loss(module: Any, x: Any) -> Any:
        return module(x).square().mean() + module.extra

    torch.manual_seed(0)
    theirs, ours, _ = trained(Warming(), lambda _: [torch.randn(4, 3).double()], loss)
    assert (ours.mode, theirs.mode) == ("hot", "hot")
    torch.testing.assert_close(ours.mean, theirs.mean)
    torch.testing.assert_close(ours.extra, theirs.extra.detach())


def test_forward_hooks_are_followed_while_they_are_there() -> None:
    torch.manual_seed(0)
    theirs = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()
    ours = copy.deepcopy(theirs)
    handles = [
        (
            each[1].register_forward_hook(lambda _, given, result: result * given[0]),
            each[0].register_forward_pre_hook(lambda _, given: (given[0] + 1,)),
        )
        for each in (theirs, ours)
    ]
    step = hagane.compile(loss_of, optim.SGD(ours.parameters(), 0.0))
    for call in range(3):
        x = torch.randn(4, 3).double()
        torch.testing.assert_close(step(ours, x), loss_of(theirs, x).detach())
        for pair in handles:
            if call < 2:
                pair[call].remove()


class Counted(nn.BatchNorm2d):
    """A batch norm of a library's own, which counts its calls itself."""

    def forward(self, x: Any) -> Any:
        if self.training:
            self.num_batches_tracked.add_(1)
        return nn.functional.batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, self.training,
            self.momentum, self.eps,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "momentum"), [(nn.BatchNorm2d, 0.1), (nn.BatchNorm2d, None), (Counted, 0.1)]
)
def test_batches_are_counted_once(kind: Any, momentum: float | None) -> None:
    def loss(module: Any, x: Any) -> Any:
        return module(x).pow(2).mean()

    eager = nn.Sequential(nn.Conv2d(3, 2, 1), kind(2, momentum=momentum))
    compiled = copy.deepcopy(eager)
    steps = [torch.optim.SGD(m.parameters(), 0.1) for m in (eager, compiled)]
    step = hagane.compile(loss, steps[1])
    for _ in range(3):
        x = torch.randn(4, 3, 5, 5)
        steps[0].zero_grad()
        loss(eager, x).backward()
        steps[0].step()
        step(compiled, x)
        for one, other in zip(eager.buffers(), compiled.buffers(), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


class _Shared(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.BatchNorm1d(3), nn.BatchNorm1d(3)
        self.other.running_mean = self.one.running_mean
        self.last = nn.BatchNorm1d(3)


def _by_layers_and_functions(module: Any, x: Any) -> Any:
    h = module.other(module.one(module.one(x)) * 2)
    last = module.last
    h = nn.functional.batch_norm(h, last.running_mean, last.running_var, last.weight, None, True)
    return h.square().sum() + h.pow(3).sum()


def test_layers_count_their_own_calls_and_functions_count_none() -> None:
    torch.manual_seed(0)
    theirs = _Shared()
    ours, x = copy.deepcopy(theirs), torch.randn(4, 3)
    _by_layers_and_functions(theirs, x)
    hagane.compile(_by_layers_and_functions, torch.optim.SGD(ours.parameters(), lr=0.0))(ours, x)
    for (name, mine), their in zip(ours.named_buffers(), theirs.buffers(), strict=True):
        torch.testing.assert_close(mine, their, msg=name)
    assert (int(ours.one.num_batches_tracked), int(ours.last.num_batches_tracked)) == (2, 0)


_calls = types.SimpleNamespace(count=0)


def _counting(module: Any, x: Any) -> Any:
    _calls.count += 1
    return module(x).mean()


def test_attributes_that_no_graph_sets_are_named() -> None:
    module = nn.Linear(3, 2)
    step = hagane.compile(_counting, torch.optim.SGD(module.parameters(), lr=0.1))
    with pytest.raises(CaptureError, match="'count' of .* is set, which no graph"):
        step(module, torch.ones(2, 3))
    assert _calls.count == 0


class Turning(nn.Module):
    """Keeps tables of angles as a pair and a list, and makes larger ones for longer inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.tables, self.powers = nn.Linear(3, 3), None, None

    def forward(self, x: Any) -> Any:
        size = x.shape[1]
        if self.tables is None or size > self.tables[0].shape[0]:
            angles = torch.arange(size).double()[:, None] * 0.1
            self.tables, self.powers = (angles.cos(), angles.sin()), [angles, 2]
        cos, sin = (table[:size] for table in self.tables)
        return self.layer(x) * cos + x * sin


def test_a_loss_makes_pairs_and_lists_of_tensors_that_its_module_keeps() -> None:
    torch.manual_seed(0)
    theirs, ours, _ = trained(Turning(), lambda n: [torch.randn(2, 4 + n, 3).double()], steps=2)
    assert type(ours.tables) is tuple
    assert type(ours.powers) is list
    assert ours.powers[1] == 2
    for mine, their in zip(ours.tables, theirs.tables, strict=True):
        torch.testing.assert_close(mine, their)


def test_compiled_modules_keep_pairs_of_tensors_too() -> None:
    torch.manual_seed(0)
    theirs = Turning().double()
    ours = copy.deepcopy(theirs)
    run = hagane.compile(ours)

    def agrees(size: int) -> None:
        x = torch.randn(2, size, 3).double()
        torch.testing.assert_close(run(x), theirs(x))
        torch.testing.assert_close(ours.tables, theirs.tables)

    with torch.no_grad():
        agrees(3)
        for size in (5, 4):
            with pytest.warns(hagane.CompileNotice, match="captured anew"):
                agrees(size)


class Asking(nn.Module):
    """Asks of tensors whether they are trained, and of a buffer for its gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))
        self.layer = nn.Linear(3, 3)
        self.layer.bias.requires_grad_(False)

    def forward(self, x: Any) -> Any:
        z = self.layer(x)
        if self.mean.grad is not None:
            return z * 0
        self.mean.data.lerp_(z.mean(0).detach(), 0.5)
        moved = (
            self.mean.requires_grad
            or self.layer.bias.requires_grad
            or z.sign().long().float().requires_grad
        )
        trained = z.requires_grad and not z.detach().requires_grad
        return z * (2 if trained else 1) * (5 if moved else 1) + self.mean


def test_tensors_of_a_step_tell_whether_they_are_trained() -> None:
    torch.manual_seed(0)
    trained(Asking(), lambda n: [torch.randn(2, 3).double()], steps=2)


def test_types_of_tensors_tell_their_module() -> None:
    def loss(module: Any, x: Any) -> Any:
        z = module(x)
        own = type(z).__module__.startswith("torchao.") or z.__class__.__name__ == "Params4bit"
        return z.sum() if own else z.square().mean()

    trained(nn.Linear(3, 2), lambda n: [torch.randn(2, 3).double()], loss, steps=1)


@pytest.mark.parametrize("kind", ["cayley", "matrix_exp", "householder"])
def test_orthogonal_weights_follow_the_map_that_they_name(kind: str) -> None:
    torch.manual_seed(0)
    module = parametrizations.orthogonal(nn.Linear(3, 3), orthogonal_map=kind)
    trained(module, lambda n: [torch.randn(2, 3).double()], steps=2)


class Holder(nn.Module):
    """Its parts lie in a plain module."""

    def __init__(self) -> None:
        super().__init__()
        self.held = nn.Module()
        self.held.layer, self.held.scale = nn.Linear(3, 3), nn.Parameter(torch.ones(3))
        self.held.register_buffer("seen", torch.zeros(()))

    def forward(self, x: Any) -> Any:
        self.held.seen += 1
        names = sum(len(name) for name, _ in self.held.named_parameters())
        return self.held.layer(x) * self.held.scale * self.held.seen + names


def test_a_plain_module_holds_others() -> None:
    trained(Holder(), lambda n: (torch.randn(4 - n % 2, 3).double(),))
