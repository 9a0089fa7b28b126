"""Writes through views: the whole and all other views of it have the new content."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import hagane
from hagane.errors import CaptureError


def flat(x: Any) -> Any:
    y = x.clone()
    v = y.view(-1)
    v[0] = 9.0
    v[-1:] += 1
    v *= 2
    return y, v


def turned(x: Any) -> Any:
    y = x.clone()
    z = y.t()
    z[0] = 5
    z.mul_(2)
    z += 1
    y -= 3
    z.neg_()
    w = z.unsqueeze(0)
    w.add_(1)
    return y, z, w


def detached(x: Any) -> Any:
    y = x.clone()
    d = y.detach()
    d.clamp_(min=0)
    y.data.mul_(2)
    e = y.data
    e += 1
    e *= 3
    return y, d, e


def parts_of_views(x: Any) -> Any:
    y = x.clone()
    z = y.permute(1, 0)
    q = z[0]
    q += 10
    r = y.unsqueeze(1).transpose(0, 2)
    r[..., 0] = 7
    return y, z, q, r


def views_of_views(x: Any) -> Any:
    y = x.clone()
    z = y.t()
    w = z
    z.mul_(2)
    w.add_(1)
    a = y.view(-1)
    b = a.view(x.shape)
    b.mul_(2)
    a.add_(1)
    return y, z, w, a, b


def on_one_path(x: Any) -> Any:
    y = torch.zeros(x.shape[0], x.shape[1])
    rows = y.t()
    for i in range(3):
        rows[0] = rows[0] + i
    y.t().add_(x.t())
    if x.sum() > 0:
        y.t().mul_(2)
    return y, rows


def in_a_loop(x: Any) -> Any:
    whole = x * 2
    total = x.sum()
    while total < 100:
        part = whole.view(-1)
        part += 1
        total = total + part.sum().abs() + 1
    return total, whole


def elements_and_parts(x: Any) -> Any:
    y = x.clone()
    y.diagonal().add_(-1)
    d = y.t().diagonal()
    d.mul_(2)
    y.unbind()[0].zero_()
    last = y.narrow(0, y.shape[0] - 1, 1).select(1, 0)
    last.sub_(4)
    z = y.unsqueeze(0).movedim(0, 2)
    z[0, 0] = 6
    y.T.copy_(y.t().clone() * 3)
    return y, d, last, z


def flattened(x: Any) -> Any:
    y = x.clone()
    y.mul_(2)
    flat = y.reshape(-1)
    flat[::2] = 0
    y.flatten()[:1].add_(5)
    return y, flat


def parts_of_known_content(x: Any) -> Any:
    y = torch.zeros_like(x)
    z = torch.arange(12.0).view(3, 4)
    first, last = y[0], y[:, -1]
    a, b, c = z
    first += x[0]
    last.copy_(x[:, 0])
    torch.mul(z[0], 2, out=b)
    a[0] = x.sum()
    z += 1
    y.t()[0] += 3
    return y, first, last, z, a, b, c


VIEWS = [
    flat, turned, detached, parts_of_views, views_of_views, on_one_path, in_a_loop,
    elements_and_parts, flattened, parts_of_known_content,
]  # fmt: skip


@pytest.mark.parametrize("function", VIEWS, ids=lambda f: f.__name__)
def test_a_view_that_is_written_writes_the_whole(function: Any) -> None:
    session = hagane.InferenceSession(hagane.capture(function, "float32[n, m]"))
    for sizes in ((3, 4), (1, 1)):
        x = np.random.default_rng(sizes).standard_normal(sizes).astype("f")
        found = session.run(None, {"x": x})
        for ours, theirs in zip(found, function(torch.from_numpy(x)), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_parts_of_known_sizes_write_the_whole() -> None:
    def function(x: Any) -> Any:
        y = x.clone()
        low, high = y.chunk(2)
        high.neg_()
        low.t()[1].add_(1)
        first, second = y.split([1, 3], dim=1)
        second.unflatten(1, (3, 1))[:, 2, 0].mul_(4)
        return y, low, high, first, second

    x = np.random.default_rng(1).standard_normal((4, 4)).astype("f")
    session = hagane.InferenceSession(hagane.capture(function, "float32[4, 4]"))
    for ours, theirs in zip(
        session.run(None, {"x": x}), function(torch.from_numpy(x)), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "view",
    [lambda x: np.flip(x, 0), np.rot90, lambda x: np.split(x, 2)[1]],
    ids=["flip", "rot90", "split"],
)
def test_a_view_that_was_written_twice_is_not_read_after_the_whole_changes(view: Any) -> None:
    def function(x: Any) -> Any:
        y = x.copy()
        part = view(y)
        part[0] = 1
        part[1] = 2
        y.fill(3)
        return part

    with pytest.raises(CaptureError, match="changes a tensor that shares its memory"):
        hagane.capture(function, np.zeros((4, 4), np.float32))


def test_views_of_numpy_write_the_whole() -> None:
    def function(x: Any) -> Any:
        y = x.copy()
        q = y.T
        q[0] += 3
        q *= 2
        e = np.expand_dims(y, 0)
        e += 1
        w = y.swapaxes(0, 1)
        w[:, 0] = 0
        return y, q, e, w

    x = np.random.default_rng(0).standard_normal((3, 4)).astype("f")
    model = hagane.capture(function, x, dynamic={"x": ["n", "m"]})
    found = hagane.InferenceSession(model).run(None, {"x": x})
    for ours, theirs in zip(found, function(x), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_reshape_that_may_copy_is_refused_where_it_is_written() -> None:
    def function(x: Any) -> Any:
        y = x.clone()
        y.t().reshape(-1).zero_()
        z = y.t().reshape(-1)
        z.zero_()
        return y

    with pytest.raises(CaptureError, match="changes a tensor that shares its memory"):
        hagane.capture(function, "float32[n, m]")


def transposed_and_reshaped(x: Any) -> Any:
    return x.t().reshape(-1)


def columns_and_flattened(x: Any) -> Any:
    return x[:, 1:].flatten()


def transposed_and_contiguous(x: Any) -> Any:
    return x.t().contiguous()


@pytest.mark.parametrize(
    "copy", [transposed_and_reshaped, columns_and_flattened, transposed_and_contiguous]
)
def test_copies_that_look_like_views_are_not_read_after_a_change(copy: Any) -> None:
    """They are views for some sizes; the graph would compute them of the new content."""

    def function(x: Any) -> Any:
        x = x.clone()
        y = copy(x)
        x += 1
        return y

    with pytest.raises(CaptureError, match="changes a tensor that shares its memory"):
        hagane.capture(function, "float32[n, m]")
    x = torch.arange(24.0).reshape(4, 6)
    assert torch.equal(hagane.compile(function, fullgraph=True)(x), function(x))


def _changed(x: Any) -> Any:
    y = x.reshape(-1)
    y[1] = 9
    return x, y


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x.t() + 1,
        lambda x: torch.zeros_like(x.t()),
        lambda x: x.t().softmax(-1),
        lambda x: x.t().sort().values,
        lambda x: x.t().cumsum(0),
        lambda x: x.t() + torch.ones(6, 4),
        lambda x: x.t()[:, :1] + torch.ones(6, 4),
        lambda x: x.t().contiguous(),
        lambda x: torch.dropout(x.t(), 0.5, train=False),
        lambda x: torch.linalg.inv(x[:, :4] + 9 * torch.eye(4)),
        lambda x: x.t().double(memory_format=torch.contiguous_format),
        lambda x: x[:, 1],
    ],
)
def test_results_lie_in_memory_as_those_of_pytorch(make: Any) -> None:
    """``reshape`` is a view of what lies in order, and a copy of the rest."""

    def function(x: Any) -> Any:
        return _changed(make(x))

    x = torch.arange(24.0).reshape(4, 6)
    made = hagane.compile(function, fullgraph=True)(x)
    for ours, theirs in zip(made, function(x), strict=True):
        torch.testing.assert_close(ours, theirs)
        assert ours.stride() == theirs.stride()


@pytest.mark.parametrize("part", [lambda x: x[:, 0], lambda x: x.diagonal(), lambda x: x[::2, 1]])
def test_ravel_copies_what_has_gaps(part: Any) -> None:
    def function(x: Any) -> Any:
        x = x * 1
        y = part(x).ravel()
        y[0] = 9
        return x, y

    x = torch.arange(24.0).reshape(4, 6)
    made = hagane.compile(function, fullgraph=True)(x)
    for ours, theirs in zip(made, function(x), strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: np.sort(x.T), lambda x: np.cumsum(x.T, 0), lambda x: np.concatenate([x.T, x.T]),
        lambda x: np.pad(x.T, 1), lambda x: x.T + 1, lambda x: x @ x.T, lambda x: x[:, 0],
        lambda x: np.diagonal(x).copy(),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::hagane.CompileNotice")
def test_no_graph_writes_through_a_copy_of_an_array(make: Any) -> None:
    """Where NumPy lays a result as its operand lies, a reshaped one may be a copy."""

    def function(x: Any) -> Any:
        made = make(x)
        y = made.ravel()
        y[1] = 9
        return made, y

    x = np.arange(24.0).reshape(4, 6)
    for ours, theirs in zip(hagane.compile(function)(x), function(x), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def rows_and_reshaped(x: Any) -> Any:
    return x[1:3].reshape(-1)


def product_and_flattened(x: Any) -> Any:
    return x.flatten()


def already_contiguous(x: Any) -> Any:
    return x.view(2, -1).contiguous()


@pytest.mark.parametrize("view", [rows_and_reshaped, product_and_flattened, already_contiguous])
def test_reshaped_tensors_that_lie_in_order_see_changes(view: Any) -> None:
    def function(x: Any) -> Any:
        whole = x.t() @ x
        y = view(whole)
        whole += 1
        return y

    x = np.random.default_rng(0).random((4, 6), np.float32)
    found = hagane.InferenceSession(hagane.capture(function, "float32[4, 6]")).run(None, {"x": x})
    np.testing.assert_allclose(found[0], function(torch.from_numpy(x)).numpy(), rtol=1e-5)


COPIES = [
    lambda x: x.flip(0),
    lambda x: x.roll(1),
    lambda x: x[[0, 1]],
    lambda x: nn.functional.pixel_shuffle(x.view(1, 4, 1, -1), 2),
]


@pytest.mark.parametrize("copy", COPIES)
def test_copies_by_parts_keep_the_content_from_before_a_change(copy: Any) -> None:
    def function(x: Any) -> Any:
        x = x.clone()
        y = copy(x)
        x += 1
        y[0] = 5
        return x, y

    x = np.random.default_rng(0).random((4, 6), np.float32)
    found = hagane.InferenceSession(hagane.capture(function, "float32[4, 6]")).run(None, {"x": x})
    for ours, theirs in zip(found, function(torch.from_numpy(x)), strict=True):
        np.testing.assert_array_equal(ours, theirs.numpy())


def test_a_view_of_a_view_is_written_after_its_whole() -> None:
    def function(x: Any) -> Any:
        x = x.clone()
        turned = x.t()
        again = turned.view_as(turned)
        x[1:, 1:] = 4
        again += 1
        return x, turned, again

    x = np.random.default_rng(0).random((4, 6), np.float32)
    found = hagane.InferenceSession(hagane.capture(function, "float32[4, 6]")).run(None, {"x": x})
    for ours, theirs in zip(found, function(torch.from_numpy(x)), strict=True):
        np.testing.assert_array_equal(ours, theirs.numpy())


def test_a_part_of_known_content_has_what_the_whole_has() -> None:
    def function(x: Any) -> Any:
        x = x.clone()
        x.fill_(3)
        part = x[1:]
        x.mul_(2)
        return x, part

    model = hagane.capture(function, "float32[4, 6]")
    found = hagane.InferenceSession(model).run(None, {"x": np.ones((4, 6), np.float32)})
    assert [array.shape for array in found] == [(4, 6), (3, 6)]
    assert all((array == 6).all() for array in found)


def test_a_number_is_filled_at_an_index_like_one_element() -> None:
    def function(x: Any) -> Any:
        return x.sum().index_fill(0, torch.tensor([0]), 2.0)

    model = hagane.capture(function, "float32[4, 4]")
    (found,) = hagane.InferenceSession(model).run(None, {"x": np.ones((4, 4), np.float32)})
    assert found.shape == ()
    assert found == 2


def test_counters_and_means_that_are_buffers_change_in_place() -> None:
    class Normalised(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mean", torch.zeros(2))
            self.register_buffer("count", torch.tensor(0))

        def forward(self, x: Any) -> Any:
            self.mean.mul_(0.9)
            self.mean.data.add_(x.mean(0), alpha=0.1)
            self.count += 1
            return x - self.mean / (1 - 0.9**self.count)

    ours, theirs = Normalised(), Normalised()
    compiled = hagane.compile(ours.eval(), fullgraph=True)
    with torch.no_grad():
        for seed in range(3):
            x = torch.randn(3, 2, generator=torch.Generator().manual_seed(seed))
            torch.testing.assert_close(compiled(x), theirs(x))
    assert ours.count == 3


def test_a_view_without_a_name_lies_between_two_writes() -> None:
    def function(x: Any) -> Any:
        whole = x * 1
        y = whole.view(x.shape[0] // 2, 2, x.shape[1] * 2, 5).transpose(2, 1)
        first = y[:, :2, :, :3]
        y[:, :2, :, :3] = torch.zeros_like(first).where(first > 0, first)
        y[:, -2:, :, -3:] = 7
        return y, whole

    session = hagane.InferenceSession(hagane.capture(function, "float32[2*b, c, 2, 5]"))
    for b, c in ((1, 2), (3, 4)):
        x = torch.randn(2 * b, c, 2, 5, generator=torch.Generator().manual_seed(b))
        for found, expected in zip(session.run(None, {"x": x.numpy()}), function(x), strict=True):
            np.testing.assert_array_equal(found, expected)
