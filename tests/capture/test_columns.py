"""``zip(*rows)`` of rows whose number the data decide, and lists of parts of pictures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import hagane

from .test_programs import compare


def columns_of_a_tensor(x: Any) -> Any:
    parts = [*zip(*x, strict=True)]
    return torch.stack(parts[0]) + torch.stack(parts[2])


def columns_of_tuples(x: Any) -> Any:
    first, second, total = zip(*[(row, row * 2, row.sum()) for row in x], strict=True)
    return torch.stack(first) + torch.stack(second), torch.stack(total)


def places(x: Any) -> Any:
    count = torch.arange(x.shape[0])
    rows, columns = zip(*torch.stack([count, count % 3], 1), strict=True)
    y = x + 0
    y[rows, columns] = 5.0
    return y, x[rows, columns]


def corners(x: Any) -> Any:
    pictures = [x[i, :, None] * row[None, : i + 1] for i, row in enumerate(x)]
    stacked = [torch.stack([p, p * 2]) for p in pictures]
    return torch.cat([p.flatten(1).T for p in stacked], dim=0)


def chunks_of_an_open_number(x: Any) -> Any:
    batches = x.chunk(int(np.ceil(x.shape[0] / 4)))
    single = torch.stack([part.sum() for part in x.chunk(x.shape[0])])
    drawn = x.chunk(x[:, 0].argmax() + 1)
    sums = torch.stack([part.sum() for part in drawn])
    return torch.cat([part - part.mean(0) for part in batches]), single, drawn[-1], sums


@pytest.mark.parametrize("program", [chunks_of_an_open_number])
def test_chunks_whose_number_sizes_decide(program: Callable[..., Any]) -> None:
    graph = hagane.capture(program, "float32[n, 3]")
    compare(program, graph, [torch.randn(rows, 3) for rows in (1, 4, 5, 9)])


@pytest.mark.parametrize("program", [columns_of_a_tensor, columns_of_tuples, places, corners])
def test_columns_and_parts(program: Callable[..., Any]) -> None:
    compare(
        program,
        hagane.capture(program, "float32[n, 3]"),
        [torch.randn(rows, 3) for rows in (2, 3)],
    )


def test_the_number_of_draws_may_be_a_tensor() -> None:
    def drawn(x: Any) -> Any:
        return torch.multinomial(x, x.shape[0] * 2 + x.argmax(), replacement=True)

    report = hagane.check(drawn, x="float32[n]")
    assert not report.errors
    assert "int64" in str(report.returned)
