"""PyTorch's functions in place: every name of what they write has their result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

import hagane
from hagane.errors import CaptureError, HaganeError, KernelError
from hagane.graph import to_proto


def compared(x: Any, y: Any, i: Any) -> Any:
    a, b, c, d = x.clone(), x.clone(), i.clone(), x > y
    row = a[0]
    a.gt_(0.5)
    b.logical_and_(y)
    c.le_(1)
    d.ne_(y)
    return row, a, b, c, d


def shifted(x: Any, y: Any, i: Any) -> Any:
    a, b = i.clone(), i + 5
    same = a
    a.bitwise_left_shift_(2)
    b.bitwise_right_shift_(1).bitwise_or_(i)
    return same, b


def called_from_torch(x: Any, y: Any, i: Any) -> Any:
    a, b, c, d = x.clone(), x - 0.5, x - 0.5, x - 0.5
    torch.exp_(a)
    functional.elu_(b[:1], 0.7)
    torch.relu_(c)
    functional.hardtanh_(d, -0.2, 0.3)
    torch.zero_(a[1])
    torch.fill_(a[0], 2.0)
    return a, b, c, d


def products(x: Any, y: Any, i: Any) -> Any:
    a, b, c = x.clone(), x[0].clone(), x[None].clone()
    whole = c[0]
    a.addmm_(x, y, beta=0.5, alpha=2)
    b.addmv_(x, y[1])
    c.baddbmm_(x[None], y[None])
    a.addr_(b, y[2])
    return a, b, whole


def at_places(x: Any, y: Any, i: Any) -> Any:
    a, b, c, d = x.clone(), x.clone(), x.clone(), x.clone()
    a.index_reduce_(1, i[0], y, "amax")
    b.index_put_((i[0], i[1]), y[0], accumulate=True)
    c.index_add_(0, i[0], y, alpha=2).masked_scatter_(x > 0.5, y)
    d.index_put_((i[0],), y, True)
    return a, b, c, d


def diagonals(x: Any, y: Any, i: Any) -> Any:
    a, b, c = torch.cat([x, y]), torch.cat([x, y], 1), torch.cat([x, y, x])
    a.fill_diagonal_(3.0)
    b.fill_diagonal_(-1.0)
    c.fill_diagonal_(2.0, wrap=True)
    return a, b, c


def wider_sources(x: Any, y: Any, i: Any) -> Any:
    a, b = x.clone(), x.half()
    a.mul_(y.double()).add_(i[:1])
    b.add_(y).copy_(a)
    return a, b


pytestmark = pytest.mark.filterwarnings("ignore:index_reduce")
CASES = [compared, shifted, called_from_torch, products, at_places, diagonals, wider_sources]


@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_all_names_have_the_result(function: Callable[..., Any]) -> None:
    torch.manual_seed(0)
    x, y = torch.rand(4, 4), torch.rand(4, 4)
    i = torch.tensor([[0, 2, 1, 2], [3, 3, 0, 3]])
    model = hagane.capture(function, x, y, i)
    session = hagane.InferenceSession(to_proto(model).SerializeToString())
    for step in range(2):
        feeds = {"x": x - step * 0.3, "y": y.flip(0) if step else y, "i": i}
        names = [value.name for value in session.get_inputs()]
        found = session.run(None, {name: feeds[name].numpy() for name in names})
        expected = function(*(value.clone() for value in feeds.values()))
        for ours, theirs in zip(found, expected, strict=True):
            assert ours.dtype == theirs.numpy().dtype
            np.testing.assert_allclose(ours, theirs.numpy(), rtol=2e-3, atol=1e-5)


def test_a_result_that_the_tensor_cannot_hold_is_refused() -> None:
    def into_integers(i: Any, x: Any) -> Any:
        a = i.clone()
        a.mul_(x)
        return a

    with pytest.raises(CaptureError, match="float32 cannot be stored in place .* int64"):
        hagane.capture(into_integers, torch.ones(2, dtype=torch.int64), torch.ones(2))


def test_an_item_of_integers_holds_no_quotient() -> None:
    def halves(i: Any) -> Any:
        a = i.clone()
        a[1:] /= 2
        return a

    with pytest.raises(CaptureError, match="float32 cannot be stored in place .* int64"):
        hagane.capture(halves, torch.ones(3, dtype=torch.int64))


def rows_of_a_result(x: Any) -> Any:
    rows = x * 2
    whole = rows.permute(1, 0)
    for row in rows:
        row -= row.sum() + whole[0, 0]
    return rows, whole


def rows_of_a_view(x: Any) -> Any:
    rows, total = x.permute(1, 0) * 2, torch.zeros(x.shape[0])
    for row in rows:
        row.sub_(total)
        total = total + row
        rows[0] += 1
    return rows, total


@pytest.mark.parametrize("function", [rows_of_a_result, rows_of_a_view])
def test_a_loop_writes_into_the_rows_that_it_takes(function: Callable[..., Any]) -> None:
    session = hagane.InferenceSession(to_proto(hagane.capture(function, x="float32[n, m]")))
    for shape in ((1, 3), (4, 2)):
        x = torch.rand(shape)
        for ours, theirs in zip(session.run(None, {"x": x.numpy()}), function(x), strict=True):
            np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-5, atol=1e-6)


def test_rows_that_a_loop_writes_by_way_of_an_iterator_are_refused() -> None:
    def numbered(x: Any) -> Any:
        total = torch.zeros(x.shape[1])
        for _, row in enumerate(x * 2):
            row -= total
            total = total + row
        return total

    with pytest.raises(CaptureError, match=r"write rows by their numbers: for i in range\(len\(x"):
        hagane.capture(numbered, x="float32[n, m]")


def test_rows_are_stored_at_as_many_places_of_a_mask() -> None:
    def stored(x: Any, mask: Any, rows: Any) -> Any:
        x = x * 2
        x[mask] = rows
        return x

    types = ("float32[batch, seq, 4]", "bool[batch, seq]", "float32[k, 4]")
    report = hagane.check(stored, *types)
    assert (report.errors, report.unknown) == ([], [])
    session = hagane.InferenceSession(hagane.capture(stored, *types))
    x, mask = torch.ones(2, 3, 4), torch.tensor([[True, True, False], [False, True, False]])
    for count in (3, 1):
        rows = torch.rand(count, 4)
        given = {"x": x.numpy(), "mask": mask.numpy(), "rows": rows.numpy()}
        np.testing.assert_array_equal(session.run(None, given)[0], stored(x, mask, rows))
    with pytest.raises(KernelError, match=r"\(2, 4\)"):
        session.run(None, given | {"rows": rows.numpy().repeat(2, 0)})


def test_as_many_values_as_a_mask_has_places_are_stored() -> None:
    """As in PyTorch's tutorial of deep Q-learning, whose values come for the states that go on."""

    def function(mask: Any, values: Any) -> Any:
        found = torch.zeros(len(mask))
        found[mask] = values.max(1).values
        return found

    session = hagane.InferenceSession(hagane.capture(function, "bool[n]", "float32[k, 2]"))
    for rows, count in ((6, 3), (5, 5), (4, 1), (4, 0)):
        mask = torch.arange(rows) < count
        for given in {count, 1}:
            values = torch.randn(given, 2)
            (found,) = session.run(None, {"mask": mask.numpy(), "values": values.numpy()})
            np.testing.assert_array_equal(found, function(mask, values).numpy())
    with pytest.raises(HaganeError, match="shape mismatch"):
        session.run(None, {"mask": np.arange(4) < 2, "values": np.zeros((3, 2), np.float32)})


def test_parameters_and_buffers_that_a_call_makes_share_the_memory_of_their_content() -> None:
    def function(x: Any) -> Any:
        y = x * 2
        parameter, buffer = torch.nn.Parameter(y, requires_grad=False), torch.nn.Buffer(y)
        y.add_(1)
        parameter.data.mul_(3)
        return parameter + 0, buffer + 0, y

    x = torch.rand(3)
    with torch.no_grad():
        found = hagane.compile(function, fullgraph=True)(x)
        torch.testing.assert_close(found, function(x))
