"""Parameters shared with PyTorch."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import hagane as chainer
import hagane.functions as F  # noqa: N812
import hagane.links as L  # noqa: N812
from hagane.errors import InvalidArgument


class Net(chainer.Chain):
    def __init__(self, channels: int | None = 2) -> None:
        super().__init__()
        with self.init_scope():
            self.conv = L.Convolution2D(channels, 4, 3)
            self.bn = L.BatchNormalization(4, eps=1e-5)
            self.out = L.Linear(None if channels is None else 60, 3)

    def forward(self, x: Any) -> Any:
        return self.out(F.relu(self.bn(self.conv(x))))


class TorchNet(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(2, 4, 3)
        self.bn = torch.nn.BatchNorm2d(4)
        self.out = torch.nn.Linear(60, 3)

    def forward(self, x: Any) -> Any:
        return self.out(torch.relu(self.bn(self.conv(x))).flatten(1))


X = np.random.RandomState(0).standard_normal((3, 2, 7, 5)).astype("f")
T = np.array([0, 2, 1], "i")


@pytest.mark.parametrize("channels", [2, None], ids=["sizes", "sizes from the first input"])
def test_a_module_and_a_link_on_one_memory_train_each_other(channels: int | None) -> None:
    torch.manual_seed(0)
    module = TorchNet()
    link = Net(channels).from_torch(module)
    assert link.conv.W.array.ctypes.data == module.conv.weight.data_ptr()
    for update in ("torch", "hagane", "torch"):
        with chainer.using_config("train", False):
            ours = link(X).array
        theirs = module.eval()(torch.from_numpy(X)).detach().numpy()
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
        if update == "torch":
            optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
            loss = torch.nn.functional.cross_entropy(
                module.train()(torch.from_numpy(X)), torch.from_numpy(T).long()
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        else:
            chainer.optimizers.Adam().setup(link).update(
                lambda: F.softmax_cross_entropy(link(X), T)
            )
    assert link.bn.avg_mean.ctypes.data == module.bn.running_mean.data_ptr()
    assert np.abs(link.bn.avg_mean).max() > 0


def test_a_link_becomes_the_memory_of_a_module() -> None:
    link = Net()
    module = TorchNet()
    module.load_state_dict(link.to_torch(), assign=True)
    with torch.no_grad():
        module.conv.weight.mul_(2.0)
        module.bn.running_var.fill_(3.0)
    np.testing.assert_array_equal(link.conv.W.array, module.conv.weight.detach().numpy())
    np.testing.assert_array_equal(link.bn.avg_var, np.full(4, 3, "f"))
    link.out.b.array[...] = 7
    assert module.out.bias.tolist() == [7, 7, 7]


@pytest.mark.parametrize(("kind", "cells"), [("LSTM", 2), ("GRU", 1), ("RNN", 1)])
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("forth", [True, False])
def test_gates_in_one_piece_are_shared_in_rows(
    kind: str, cells: int, both: bool, forth: bool
) -> None:
    torch.manual_seed(1)
    module = getattr(torch.nn, kind)(3, 5, num_layers=2, bidirectional=both)
    name = f"NStep{'Bi' if both else ''}{kind}{'Tanh' if kind == 'RNN' else ''}"
    link = getattr(L, name)(2, 3, 5, 0.0)
    if forth:
        link.from_torch(module)
    else:
        module.load_state_dict(link.to_torch(), assign=True)
        kept = {key: tensor.data_ptr() for key, tensor in link.to_torch().items()}
        assert kept == {key: tensor.data_ptr() for key, tensor in module.state_dict().items()}
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(1.5)
    xs = [np.random.RandomState(n).standard_normal((n, 3)).astype("f") for n in (4, 2, 1)]
    result = link(*[None] * cells, xs)
    packed = torch.nn.utils.rnn.pack_sequence([torch.from_numpy(x) for x in xs])
    wanted, states = module(packed)
    outputs = torch.nn.utils.rnn.unpack_sequence(wanted)
    for ours, theirs in zip(result[-1], outputs, strict=True):
        np.testing.assert_allclose(ours.array, theirs.detach().numpy(), rtol=1e-4, atol=1e-5)
    last = states[0] if cells == 2 else states
    np.testing.assert_allclose(result[0].array, last.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_projections_of_attention_are_shared_in_rows() -> None:
    module = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    link = L.MultiHeadAttention(8, 2).from_torch(module)
    with torch.no_grad():
        module.in_proj_bias.uniform_(-1, 1)
    x = np.random.RandomState(0).standard_normal((3, 5, 8)).astype("f")
    wanted = module(*[torch.from_numpy(x)] * 3)[0].detach().numpy()
    np.testing.assert_allclose(link(x).array, wanted, rtol=1e-4, atol=1e-5)


def test_a_bilinear_weight_is_shared_with_its_axes_permuted() -> None:
    module = torch.nn.Bilinear(3, 4, 5, bias=False)
    link = L.Bilinear(3, 4, 5, nobias=True).from_torch(module)
    with torch.no_grad():
        module.weight.add_(1)
    a, b = X[0, :1, :2, :3].reshape(2, 3), X[1, 0, :2, :4].reshape(2, 4)
    wanted = module(torch.from_numpy(a), torch.from_numpy(b)).detach().numpy()
    np.testing.assert_allclose(link(a, b).array, wanted, rtol=1e-4)
    assert link.to_torch()["weight"].data_ptr() == module.weight.data_ptr()


def test_names_that_differ_are_mapped_by_link_or_by_parameter() -> None:
    module = torch.nn.ModuleDict(
        {"features": torch.nn.Sequential(torch.nn.Linear(3, 4)), "head": torch.nn.Linear(4, 2)}
    )
    link = chainer.Chain(body=chainer.Chain(l1=L.Linear(3, 4)), last=L.Linear(4, 2))
    names = {"/body": "features", "/body/l1": "features.0", "last/W": "head.weight"}
    link.from_torch(module, names={**names, "last": "head"})
    assert link.body.l1.W.array.ctypes.data == module["features"][0].weight.data_ptr()
    assert sorted(link.to_torch({**names, "last": "head"})) == sorted(module.state_dict())


def test_all_that_does_not_fit_is_listed_and_the_link_is_as_it_was() -> None:
    class Wrong(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = torch.nn.Conv2d(2, 5, 3, bias=False)
            self.bn = torch.nn.BatchNorm2d(4, dtype=torch.float64)
            self.extra = torch.nn.Linear(1, 1)
            self.out = torch.nn.Linear(3, 60, bias=False)
            self.out.weight.data = self.out.weight.data.T

    link = Net()
    before = {path: p.array for path, p in link.namedparams()}
    with pytest.raises(InvalidArgument) as caught:
        link.from_torch(Wrong())
    lines = str(caught.value).split("\n")
    assert lines[0] == "the tensors do not fit the link:"
    assert lines[-1] == "names={'/path': 'name'} maps names that differ"
    assert sorted(lines[1:-1]) == [
        "  'extra.bias': the link has no such parameter",
        "  'extra.weight': the link has no such parameter",
        "  /bn/avg_mean from 'bn.running_mean': expected float32, got float64",
        "  /bn/avg_var from 'bn.running_var': expected float32, got float64",
        "  /bn/beta from 'bn.bias': expected float32, got float64",
        "  /bn/gamma from 'bn.weight': expected float32, got float64",
        "  /conv/W from 'conv.weight': expected shape (4, 2, 3, 3), got (5, 2, 3, 3)",
        "  /conv/b: there is no tensor 'conv.bias'",
        "  /out/W from 'out.weight': expected a tensor whose elements lie in order without gaps",
        "  /out/b: there is no tensor 'out.bias'",
    ]
    assert all(p.array is before[path] for path, p in link.namedparams())
    link.from_torch({"out.weight": torch.zeros(3, 60), "other": torch.zeros(1)}, strict=False)
    assert not link.out.W.array.any()


def test_bfloat16_and_arrays_of_numpy_are_shared_too() -> None:
    tensor = torch.ones(2, 3, dtype=torch.bfloat16)
    link = L.Linear(None, 2, nobias=True).from_torch({"weight": tensor})
    tensor[0, 0] = 5
    assert link.W.array.dtype == ml_dtypes.bfloat16
    assert link.W.array[0, 0] == 5
    array = np.zeros((2, 3), "f")
    assert L.Linear(3, 2, nobias=True).from_torch({"weight": array}).W.array is array


def test_a_link_without_arrays_says_which() -> None:
    with pytest.raises(InvalidArgument) as caught:
        Net(None).to_torch()
    assert str(caught.value) == (
        "these parameters have no array yet; call the link on an input first:\n  /conv/W\n  /out/W"
    )
