"""Negative indices of functions that count from the front alone are errors, as in PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

import hagane
from hagane.errors import CaptureError, KernelError

X = torch.arange(12.0).reshape(3, 4)
W = torch.arange(20.0).reshape(5, 4)


def embedding(i: Any) -> Any:
    return functional.embedding(i, W)


def bag(i: Any) -> Any:
    return functional.embedding_bag(i[None], W)


def gather(i: Any) -> Any:
    return torch.gather(X, 0, i[:, None])


def select(i: Any) -> Any:
    return torch.index_select(X, 0, i)


def scatter(i: Any) -> Any:
    return X.scatter(0, i[:, None], 1.5)


def scatter_add(i: Any) -> Any:
    return X.scatter_add(0, i[:, None], X)


def scatter_reduce(i: Any) -> Any:
    return X.scatter_reduce(0, i[:, None], X, "prod")


def index_add(i: Any) -> Any:
    return X.index_add(0, i, X)


def index_copy(i: Any) -> Any:
    return X.index_copy(0, i, X)


def index_reduce(i: Any) -> Any:
    return X.index_reduce(0, i, X, "amax")


def one_hot(i: Any) -> Any:
    return functional.one_hot(i, 3)


def one_hot_of_all(i: Any) -> Any:
    return functional.one_hot(i)


def bincount(i: Any) -> Any:
    return torch.bincount(i, minlength=3)


FUNCTIONS = (
    embedding, bag, gather, select, scatter, scatter_add, scatter_reduce, index_add, index_copy,
    index_reduce, one_hot, one_hot_of_all, bincount,
)  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.filterwarnings("ignore:index_reduce")
def test_negative_indices_are_errors(function: Any) -> None:
    session = hagane.InferenceSession(hagane.capture(function, "int64[3]"))
    there = torch.tensor([1, 2, 0])
    (found,) = session.run(None, {"i": there.numpy()})
    np.testing.assert_allclose(found, function(there).numpy())
    for index in (-1, -2, -3):
        lacking = torch.tensor([1, index, 0])
        with pytest.raises((IndexError, RuntimeError)):
            function(lacking)
        with pytest.raises(KernelError, match="index"):
            session.run(None, {"i": lacking.numpy()})


@pytest.mark.parametrize("index", [-4, 3])
def test_places_beyond_the_classes_are_errors(index: int) -> None:
    session = hagane.InferenceSession(hagane.capture(one_hot, "int64[3]"))
    lacking = torch.tensor([1, index, 0])
    with pytest.raises(RuntimeError, match="Class values"):
        one_hot(lacking)
    with pytest.raises(KernelError, match="index"):
        session.run(None, {"i": lacking.numpy()})


def compiled_embedding(i: Any) -> Any:
    return functional.embedding(i, W)


def test_compiled_calls_raise_the_error_of_pytorch() -> None:
    compiled = hagane.compile(compiled_embedding)
    there = torch.tensor([[1, 4]])
    assert torch.equal(compiled(there), compiled_embedding(there))
    with pytest.raises(IndexError, match="index out of range in self"):
        compiled(torch.tensor([[1, -1]]))


def known(x: Any) -> Any:
    return x.index_select(0, torch.tensor([0, -1]))


def test_a_known_negative_index_is_told() -> None:
    with pytest.raises(CaptureError, match="expected indices of 0 or more, got -1"):
        hagane.capture(known, "float32[3, 4]")
    report = hagane.check(known, "float32[3, 4]")
    assert "expected indices of 0 or more, got -1" in report.errors[0].message


def places(x: Any) -> Any:
    return functional.embedding(x.argmax(1), W)


def test_places_that_are_there_are_not_compared() -> None:
    graph = hagane.capture(places, "float32[n, 5]")
    assert [node.op_type for node in graph.graph] == ["ArgMax", "Gather"]
