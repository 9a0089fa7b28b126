"""Programs with branches and loops, and the inputs that take all their paths."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

Inputs = list[tuple[Any, ...]]


def straight(x: Tensor) -> Tensor:
    return torch.relu(x @ x.transpose(0, 1))


def either(x: Tensor) -> Tensor:
    if x.sum() > 0:  # noqa: SIM108
        y = torch.exp(x)
    else:
        y = x.abs()
    return torch.tanh(y)


def early(x: Tensor) -> Tensor:
    if x.sum() > 0:
        return torch.exp(x)
    if x.mean() < -1:
        return x.abs()
    return torch.tanh(x)


def left_inside(x: Tensor) -> Tensor:
    if x.sum() > 0:
        if x.max() > 2:
            return torch.exp(x)
        y = torch.tanh(x)
    else:
        y = x.abs()
    return torch.relu(y)


def both_true(x: Tensor) -> Tensor:
    if x.sum() > 0 and x.max() < 2:
        return torch.exp(x)
    return torch.tanh(x) if x.min() < -1 or x.max() > 3 else x.abs()


def counted(x: Tensor) -> tuple[Tensor, int]:
    n = 0
    while x.abs().sum() < 100:
        x = torch.cat([x, x])
        n = n + 1
    return x, n


def doubled(x: Tensor) -> Tensor:
    while x.abs().sum() < 100:
        x = torch.cat([x, x])
    return x


def rows(x: Tensor) -> Tensor:
    total = torch.relu(x[0])
    for row in x:
        total = torch.maximum(total, row) if False else torch.tanh(total @ torch.outer(row, row))
    return total


def until_negative(x: Tensor) -> Tensor:
    kept = torch.exp(x[0])
    for row in x:
        if row.sum() < 0:
            break
        kept = torch.tanh(kept)
    return kept


def first_negative(x: Tensor) -> Tensor:
    for row in x:
        if row.sum() < 0:
            return torch.exp(row)
    return torch.tanh(x[0])


def skipping(x: Tensor) -> Tensor:
    y = x[0]
    for row in x:
        if row.sum() < 0:
            continue
        y = torch.sub(row, y)
    else:
        y = torch.tanh(y)
    return y


def place(x: Tensor) -> tuple[int, int]:
    best, seen = -1, 0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            seen = seen + 1
            if x[i, j] > 1.0:
                best = i * 10 + j
                break
    return best, seen


def halving(x: Tensor) -> Tensor:
    while True:
        x = torch.tanh(x)
        if x.abs().max() < 0.5:
            break
    return x


def floored(x: Tensor) -> tuple[int, int, float]:
    n = int(x.sum())
    return n // 3, n % 3, float(x.sum()) / 2


def stacked(x: Tensor) -> Tensor:
    made = []
    state = torch.tanh(x[0])
    for row in x:
        state = torch.tanh(torch.sub(row, state))
        made.append(state)
    return torch.stack(made)


def comprehended(x: Tensor) -> Tensor:
    return torch.stack([torch.exp(row).sum() for row in x])


def collatz(x: Tensor) -> int:
    n, steps = int(x.abs().sum()) + 1, 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def greatest_divisor(x: Tensor) -> int:
    a, b = int(x.abs().max() * 10) + 12, 18
    while b:
        a, b = b, a % b
    return a


def other_list(x: Tensor) -> tuple[int, int]:
    made = [2, 2]
    if x.sum() > 0:
        if x.max() > 2:
            made.append(5)
        else:
            made = [*made, 7]
    return len(made), made[-1]


def below_zero(x: Tensor) -> tuple[int, ...]:
    n = int(x.sum() * 3)
    return abs(n), max(0, n), min(n, 5), len([1, 2] * n)


def indices(x: Tensor) -> tuple[Tensor, int]:
    places = []
    for i in range(x.shape[0]):
        places.append(i * i)
    last = places[-1]
    return torch.exp(x), last + len(places)


def changed_in_place(x: Tensor) -> Tensor:
    y = torch.exp(x)
    y += x
    return y


def changed_under_two_names(x: Tensor) -> tuple[Tensor, ...]:
    y = torch.exp(x) - 1.5
    kept = [y, y * 2]
    z = y
    z += x
    y.mul_(2)
    w = nn.functional.relu(y, inplace=True) + z
    return y, z, *kept, w


def seen_through_views(x: Tensor) -> tuple[Tensor, Tensor]:
    y = torch.exp(x)
    first, turned = y[0:1], y.t()
    y += 1
    y[:, 0] = x[:, 1]
    return first, turned


def changed_in_branches_and_loops(x: Tensor) -> Tensor:
    y = torch.exp(x)
    if x.sum() > 0:
        y.mul_(2)
    for row in x:
        y.add_(row.sum())
    return y


def changed_by_a_function(x: Tensor) -> tuple[Tensor, Tensor]:
    def inner(v: Tensor) -> Tensor:
        v.add_(1)
        return v * 2

    y = torch.exp(x)
    z = inner(y)
    return y, z


def popped(x: Tensor) -> Tensor:
    kept = [x, x + 1, x + 2]
    kept.pop()
    kept.insert(0, x * 3)
    return sum(kept)


def paired(x: Tensor) -> Tensor:
    for a, b in zip(x, reversed(x), strict=True):
        x = x + a * b
    for number, row in enumerate(x):
        x = torch.tanh(x + number * row)
    return x


def nested(x: Tensor) -> dict[str, Any]:
    return {"logits": torch.exp(x), "hidden": [torch.tanh(x), x.sum()], "none": None}


def items(x: Tensor) -> tuple[Tensor, ...]:
    return x[1:, ::2], x[:, -1], x[x > 0], x[..., None], x[-1], x[:, [0, 2]]


def above(x: Tensor) -> tuple[Tensor, ...]:
    kept = x[x > 0]
    order = kept.argsort(descending=True)
    return kept[order], kept + torch.arange(kept.shape[0]), torch.zeros(len(kept), 2)


def batched(x: Tensor) -> Tensor:
    if x.shape[0] > 3:
        return torch.exp(x)
    return torch.tanh(x)


def functions(x: Tensor) -> Tensor:
    def inner(y: Tensor, depth: int) -> Tensor:
        return y if depth == 0 else inner(torch.tanh(y), depth - 1)

    if x.sum() > 0:
        return inner(x, 3)
    return inner(x, 1)


class Gated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Linear(3, 4)
        self.up = nn.Sequential(nn.ReLU(), nn.Linear(4, 3))

    def forward(self, x: Tensor) -> Tensor:
        y = self.up(self.down(x))
        for row in x:
            y = torch.tanh(self.up(self.down(y)))
            if row.sum() > 0.5:
                return torch.exp(y)
        return y


def positive(seed: int = 0) -> Tensor:
    return torch.rand(2, 3, generator=torch.Generator().manual_seed(seed)) + 0.1


def mixed(rows: int, seed: int = 0) -> Tensor:
    return torch.randn(rows, 3, generator=torch.Generator().manual_seed(seed))


INPUTS = [
    positive(), positive() * 4, -positive() - 2, -positive() * 0.1, mixed(1), mixed(4), mixed(9, 3)
]  # fmt: skip
PROGRAMS: list[Any] = [
    straight, either, early, left_inside, both_true, doubled, counted, until_negative,
    first_negative, skipping, place, halving, floored, stacked, comprehended, collatz,
    greatest_divisor, other_list, below_zero, indices, seen_through_views,
    changed_in_place, changed_under_two_names,
    changed_in_branches_and_loops, changed_by_a_function, popped, paired, nested,
    items, above, batched, functions,
]  # fmt: skip
TYPE = "float32[rows, 3]"
__all__ = ["INPUTS", "PROGRAMS", "TYPE", "Gated", "np"]
