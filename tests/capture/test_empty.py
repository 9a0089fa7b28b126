"""Sizes of 0, and sizes that are too small for a program, in graphs of open sizes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F  # noqa: N812

import hagane
from hagane.errors import HaganeError


def first_or(x: Any) -> Any:
    """Return early where nothing is there."""
    if len(x) == 0:
        return -1.0
    return float(x[0] + x.sum())


def wrapped(x: Any) -> Any:
    """Change the kind of a number in a loop's first iteration."""
    a = 1
    for v in x:
        a = (a + v) % 7
    return a


def counted(x: Any) -> Any:
    """Leave a loop at once where nothing is there."""
    k = 0
    while k < x.shape[0]:
        k += 1
        if x[k - 1] > 2:
            break
    return k


def chosen(x: Any) -> Any:
    """Ask in an expression."""
    return x.max() if len(x) else x.sum() + 5


def nested(x: Any) -> Any:
    """Ask within a loop."""
    total = x.sum()
    for _ in range(3):
        total = total + (1 if x.shape[0] else 10)
    return total


@pytest.mark.parametrize("program", [first_or, wrapped, counted, chosen, nested])
@pytest.mark.parametrize("engine", ["native", "reference"])
def test_arrays_may_be_empty_where_the_program_asks(
    program: Callable[[Any], Any], engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HAGANE_ENGINE", engine)
    session = hagane.InferenceSession(hagane.capture(program, "float32[n]"))
    for n in (0, 1, 4):
        x = np.arange(1, n + 1, dtype=np.float32)
        np.testing.assert_allclose(session.run(None, {"x": x})[0], program(x), rtol=1e-6)


def other_kinds(x: Any) -> Any:
    """Return other numbers of results, which one graph cannot."""
    if len(x) == 0:
        return x, x
    return x * 2


def test_a_graph_fails_for_empty_arrays_whose_path_it_cannot_have() -> None:
    session = hagane.InferenceSession(hagane.capture(other_kinds, "float32[n]"))
    x = np.ones(3, np.float32)
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], x * 2)
    with pytest.raises(HaganeError, match="sizes: expected n >= 1"):
        session.run(None, {"x": np.ones(0, np.float32)})


def reflected(x: Any) -> Any:
    """Pad by more than one element."""
    return F.pad(x, (2, 2), mode="reflect")


def pooled(x: Any) -> Any:
    """Pool twice, of which the second needs the larger size."""
    return F.max_pool1d(F.max_pool1d(x, 2), 2).sum()


def unfolded(x: Any) -> Any:
    """Return windows of three."""
    return x.unfold(2, 3, 1)


def narrowed(x: Any) -> Any:
    """Return elements 1 to 3."""
    return x.narrow(2, 1, 2) * 1.0


@pytest.mark.parametrize(
    ("program", "least", "told"),
    [
        (reflected, 3, r"expected n - 2 >= 1 \(size n minus the padding of 2\)"),
        (pooled, 4, "expected .* >= 1 .output of F.max_pool1d"),
        (unfolded, 3, "expected n - 3 >= 0"),
        (narrowed, 3, "expected 3 <= n"),
    ],
)
def test_sizes_that_are_too_small_fail_in_the_run(
    program: Callable[[Any], Any], least: int, told: str
) -> None:
    session = hagane.InferenceSession(hagane.capture(program, "float32[1, 2, n]"))
    for n in (least, least + 3):
        x = np.arange(2 * n, dtype=np.float32).reshape(1, 2, n)
        np.testing.assert_allclose(session.run(None, {"x": x})[0], program(torch.tensor(x)))
    x = np.ones((1, 2, least - 1), np.float32)
    with pytest.raises(RuntimeError):
        program(torch.tensor(x))
    with pytest.raises(HaganeError, match=told):
        session.run(None, {"x": x})


def either_size(x: Any, y: Any) -> Any:
    """Ask for two sizes at once."""
    if len(x) and len(y):
        return x.sum() + y.sum()
    return x.sum() - 1


def first_size(x: Any, y: Any) -> Any:
    """Return the first size that is not 0."""
    return x.shape[0] or y.shape[0]


@pytest.mark.parametrize("program", [either_size, first_size])
def test_sizes_of_0_are_followed_through_and_and_or(program: Callable[[Any, Any], Any]) -> None:
    model = hagane.capture(program, "float32[n]", "float32[m]")
    session = hagane.InferenceSession(model)
    for sizes in ((2, 3), (0, 3), (3, 0), (0, 0)):
        x, y = (np.arange(1, n + 1, dtype=np.float32) for n in sizes)
        np.testing.assert_allclose(session.run(None, {"x": x, "y": y})[0], program(x, y))
