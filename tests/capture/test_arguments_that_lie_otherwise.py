"""Writes into views that are copies where an argument does not lie in the order of its axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import hagane


def sum_reshaped(x: Any) -> Any:
    y = x + 1
    y.reshape(-1)[0] = 9
    return y


def copy_reshaped(x: Any) -> Any:
    y = x.clone() if isinstance(x, torch.Tensor) else x.copy("K")
    z = y.reshape(-1)
    z[0] = 9
    return y


def changed_then_raveled(x: Any) -> Any:
    y = x * 2
    y += 1
    z = y.ravel()
    z[0] = 9
    return y


def argument_reshaped(x: Any) -> Any:
    z = x.reshape(-1)
    z[0] = 9
    return x


def in_a_loop(x: Any) -> Any:
    for _ in range(len(x)):
        x = x + 1
    z = x.reshape(-1)
    z[0] = 9
    return x


def transposed(kind: str) -> Any:
    x = np.arange(9, dtype=np.float32).reshape(3, 3)
    return torch.tensor(x).t() if kind == "torch" else x.T


PROGRAMS = [sum_reshaped, copy_reshaped, changed_then_raveled, argument_reshaped, in_a_loop]


@pytest.mark.filterwarnings("ignore::hagane.CompileNotice")
@pytest.mark.parametrize("kind", ["torch", "numpy"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_turned_arguments_give_copies(program: Any, kind: str) -> None:
    compiled = hagane.compile(program)
    straight = [transposed(kind).T + 0 for _ in range(4)]
    for one, other in (straight[:2], straight[2:], (transposed(kind), transposed(kind))):
        np.testing.assert_array_equal(compiled(one), program(other))
        np.testing.assert_array_equal(one, other)
    assert len(compiled.captures) == 1


def test_the_call_is_told_of() -> None:
    compiled = hagane.compile(sum_reshaped)
    with pytest.warns(hagane.CompileNotice, match=r"'x' is not contiguous, and the program calls"):
        compiled(transposed("torch"))


@pytest.mark.filterwarnings("error")
def test_turned_arguments_that_no_view_is_written_of_have_a_graph() -> None:
    def flattened(x: Any) -> Any:
        return torch.nn.functional.relu(x + 1, inplace=True).flatten() + x.reshape(-1)

    compiled = hagane.compile(flattened)
    found = compiled(transposed("torch"))
    np.testing.assert_array_equal(found, flattened(transposed("torch")))
    assert len(compiled.captures) == 1
