"""Running statistics of normalisations in training: a captured call moves them, as the original."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest
import torch
from torch import nn

import hagane


class Normalised(nn.Module):
    """Normalisations of several kinds, one of them called twice."""

    def __init__(self, momentum: float | None, tracked: bool):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.batch = nn.BatchNorm2d(4, momentum=momentum, track_running_stats=tracked)
        self.sample = nn.InstanceNorm2d(4, affine=True, track_running_stats=True)
        self.rows = nn.BatchNorm1d(4)
        self.line = nn.Linear(4, 4)

    def forward(self, x):
        h = torch.relu(self.sample(self.batch(self.conv(x)))).mean((2, 3))
        return self.rows(self.line(self.rows(h)))


@pytest.mark.parametrize(
    ("momentum", "tracked"), [(0.1, True), (None, True), (0.3, False)], ids=str
)
def test_compiled_modules_move_their_statistics(momentum: float | None, tracked: bool) -> None:
    torch.manual_seed(0)
    model = Normalised(momentum, tracked)
    other = copy.deepcopy(model)
    compiled = hagane.compile(other, fullgraph=True)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of new captures
        for turn, batch in enumerate((4, 4, 5, 4, 6, 4)):
            model.train(turn != 3)
            other.train(turn != 3)
            x = torch.randn(batch, 3, 6, 6)
            torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-4)
            for got, want in zip(other.buffers(), model.buffers(), strict=True):
                torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)


def test_capture_lists_them_as_state() -> None:
    model = hagane.capture(nn.Sequential(nn.BatchNorm1d(3)).train(), "float32[b, 3]")
    names = ["0.running_mean", "0.running_var", "0.num_batches_tracked"]
    assert [value.name for value in model.graph.inputs][1:] == names
    assert [value.name for value in model.graph.outputs][1:] == [f"{n}.new" for n in names]


def test_compiled_links_move_their_statistics_without_new_captures() -> None:
    class Net(hagane.Chain):
        def __init__(self) -> None:
            super().__init__()
            with self.init_scope():
                self.line, self.norm = hagane.links.Linear(3, 3), hagane.links.BatchNormalization(3)

        def forward(self, x):
            return self.norm(self.line(x))

    model = Net()
    other = copy.deepcopy(model)
    compiled = hagane.compile(other, fullgraph=True)
    random = np.random.default_rng(0)
    with hagane.no_backprop_mode():
        for _ in range(4):
            x = random.standard_normal((5, 3)).astype(np.float32)
            np.testing.assert_allclose(compiled(x).array, model(x).array, rtol=1e-4, atol=1e-5)
            for name in ("avg_mean", "avg_var"):
                got, want = getattr(other.norm, name), getattr(model.norm, name)
                np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)
    assert len(compiled.captures) == 1


def test_statistics_that_the_caller_gave_are_outputs() -> None:
    def normalised(x, mean, variance):
        return nn.functional.batch_norm(x, mean, variance, training=True)

    model = hagane.capture(normalised, "float32[4, 3]", "float32[3]", "float32[3]")
    session = hagane.InferenceSession(model)
    x, mean, variance = torch.randn(4, 3), torch.zeros(3), torch.ones(3)
    feeds = {"x": x.numpy(), "mean": mean.numpy().copy(), "variance": variance.numpy().copy()}
    found = session.run(["output", "mean.new", "variance.new"], feeds)
    want = normalised(x, mean, variance)
    for ours, theirs in zip(found, (want, mean, variance), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings("ignore::hagane.CompileNotice")
def test_an_array_of_two_names_changes_for_both() -> None:
    class Sums(hagane.Chain):
        def __init__(self) -> None:
            super().__init__()
            self.total = np.zeros(3, np.float32)
            self.alias = self.total

        def forward(self, x):
            self.total += x.mean(0)
            return self.total * 1, self.alias * 2

    own, other = Sums(), Sums()
    compiled = hagane.compile(other)
    x = np.ones((4, 3), np.float32)
    with pytest.warns(hagane.CompileNotice, match="shares its memory"):
        compiled(x)
    own(x)
    for _ in range(3):
        for got, want in zip(compiled(x), own(x), strict=True):
            np.testing.assert_array_equal(got, want)
