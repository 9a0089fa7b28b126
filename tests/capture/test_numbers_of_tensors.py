"""Content of tensors as lists of numbers, parts whose lengths the data tell, lists as results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
import torch

import hagane
from hagane.errors import HaganeError

LENGTHS = ([2, 3, 1], [6], [1, 1, 2, 2])


def means_of_parts(x, lengths):
    found, at = [], 0
    for n in lengths.tolist():
        found.append(x[at : at + n].mean(0))
        at += n
    return torch.stack(found)


def means_of_split(x, lengths):
    return torch.stack([part.mean(0) for part in torch.split(x, lengths.tolist())])


def sums_of_products_of_lengths(x, lengths):
    shapes = torch.stack([lengths, torch.ones_like(lengths)], 1)
    return torch.stack([part.sum(0) for part in x.split([h * w for h, w in shapes])])


def sums_of_columns(x, lengths):
    parts = x.t().split_with_sizes(lengths.tolist(), dim=1)
    return torch.stack([p.sum(1) / n for p, n in zip(parts, lengths.tolist(), strict=True)])


def ends_of_split(x, lengths):
    parts = torch.split(x, lengths.tolist())
    return parts[0], parts[-1], len(parts)


def numbers(x, lengths):
    held = lengths.tolist()
    return sum(held), max(held), held.index(held[-1]), 2 in held, len(held)


def nested(x, lengths):
    total = 0.0
    for row in x.tolist():
        for value in row:
            total += value
    return total


def truths(x, lengths):
    total = 0
    for n, positive in zip(lengths.tolist(), (x[:, 0] > 0).tolist(), strict=False):
        if positive:
            total += n
    return total, (x > 100).any().item()


def again_tensors(x, lengths):
    return torch.tensor(lengths.tolist()) * 2, torch.tensor(x[:, 1].tolist())


PROGRAMS = (
    means_of_parts, means_of_split, sums_of_products_of_lengths, sums_of_columns,
    ends_of_split, numbers, nested, truths, again_tensors,
)  # fmt: skip


def flat(value: Any) -> list[np.ndarray]:
    if isinstance(value, list | tuple):
        return [part for item in value for part in flat(item)]
    return [np.asarray(value)]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_content_as_lists_of_numbers(program: Callable[..., Any]) -> None:
    """One graph for any number of lengths, beside PyTorch."""
    types = hagane.Shaped["float32[n, 3]"], hagane.Shaped["int64[k]"]
    proto = ir.to_proto(hagane.capture(program, *types)).SerializeToString()
    session = hagane.InferenceSession(proto)
    for place, lengths in enumerate(LENGTHS):
        given = {"x": torch.from_numpy(_drawn(place)), "lengths": torch.tensor(lengths)}
        feed = {item.name: given[item.name].numpy() for item in session.get_inputs()}
        for got, want in zip(session.run(None, feed), flat(program(**given)), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
            assert got.shape == want.shape


def _drawn(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((6, 3)).astype(np.float32)


def test_lengths_that_do_not_sum_to_the_axis_fail_in_the_run() -> None:
    types = hagane.Shaped["float32[n, 3]"], hagane.Shaped["int64[k]"]
    proto = ir.to_proto(hagane.capture(means_of_split, *types)).SerializeToString()
    session = hagane.InferenceSession(proto)
    for lengths in ([2, 3], [4, 3]):
        with pytest.raises(HaganeError, match="Reshape"):
            session.run(None, {"x": _drawn(0), "lengths": np.array(lengths)})


def test_lists_are_results_as_lists() -> None:
    """Lists whose length the data decide come back as lists of numbers, and of tensors."""

    def even(lengths):
        return [n for n in lengths.tolist() if n % 2 == 0], [float(n) for n in lengths]

    def kept(x, lengths):
        return [row for row, n in zip(x, lengths.tolist(), strict=True) if n > 1]

    def of_arrays(x):
        return [n for n in x.tolist() if n > 0], [row for row in np.stack([x, -x]) if row[0] > 0]

    program, arrays = hagane.compile(even, fullgraph=True), hagane.compile(of_arrays)
    for seed in range(3):
        array = _drawn(seed)[:, 0]
        got, want = arrays(array), of_arrays(array)
        assert got[0] == want[0]
        assert [row.tolist() for row in got[1]] == [row.tolist() for row in want[1]]
    rows = hagane.compile(kept, fullgraph=True)
    x = torch.from_numpy(_drawn(1))
    for lengths in ([2, 3, 1, 4, 1, 1], [1] * 6, [6] * 6):
        given = torch.tensor(lengths)
        assert program(given) == even(given)
        got, want = rows(x, given), kept(x, given)
        assert type(got) is list
        assert len(got) == len(want)
        assert all(torch.equal(a, b) for a, b in zip(got, want, strict=True))


def test_truth_values_as_numbers() -> None:
    """``item`` of a truth value is one, ``float`` and ``int`` of it are none."""

    def of_arrays(x):
        some = (x > 0).any()
        return some.item(), float(some), int(some), some.__float__(), some.__int__()

    program = hagane.compile(of_arrays, fullgraph=True)
    for kind in (np.asarray, torch.from_numpy):
        for sign in (1, -1):
            given = kind(sign * np.ones(3, np.float32))
            got, want = program(given), of_arrays(given)
            assert got == want
            assert [type(number) for number in got] == [type(number) for number in want]


def test_gradients_go_through_lists_of_tensors() -> None:
    def kept(x):
        return [2 * row for row in x if row[0] > 0]

    program = hagane.compile(kept)
    for seed in range(3):
        found = []
        for function in (program, kept):
            x = torch.from_numpy(_drawn(seed)).requires_grad_()
            torch.stack(function(x)).square().sum().backward()
            found.append(x.grad)
        assert torch.allclose(*found)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("return {int(n): 1 for n in x}.get(2, 0)", "a dictionary whose keys are not known"),
        ("return dict(zip(x.tolist(), [1, 2, 3])).get(2, 0)", "whose keys are not known"),
        ("return len({int(n) for n in x})", "a set of values that are not known"),
        ("d = {}\n    d.update([(int(x[0]), 1)])\n    return len(d)", "whose keys are not known"),
        ("d = {1: 5, 2: 6}\n    del d[int(x[0])]\n    return sum(d.values())", "not known"),
    ],
)  # fmt: skip
def test_keys_that_the_data_decide_are_refused(body: str, reason: str, tmp_path: Any) -> None:
    """Two of them may be equal, which nobody knows before the run."""
    path = tmp_path / "keyed.py"
    path.write_text(f"def keyed(x):\n    {body}\n")
    space: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), space)
    with pytest.raises(HaganeError, match=reason):
        hagane.capture(space["keyed"], hagane.Shaped["int64[3]"])


def test_an_item_deleted_at_a_place_that_the_data_decide() -> None:
    def shortened(x):
        items = [5, 6, 7, 8]
        del items[int(x[0])]
        return items

    program = hagane.compile(shortened, fullgraph=True)
    for place in (0, 3, 1):
        given = torch.tensor([place])
        assert program(given) == shortened(given)
