"""Lists, tuples, dicts, generators and functions over tensors."""

# mypy: ignore-errors

from collections import namedtuple

import numpy as np
import torch

from .program import Program, floats, lister, whole

PROGRAMS: list[Program] = []
program = lister(PROGRAMS)
ROWS = [(floats(4, 3),), (floats(1, 3),), (floats(6, 3, seed=7),)]
Point = namedtuple("Point", ["x", "count"])


@program(*ROWS, (floats(2, 3, seed=3),), x="float32[n, 3]")
def kept_rows(x):
    kept = []
    for row in x:
        if row.sum() > 0:
            kept.append(row)
    if len(kept) == 0:
        return x[0]
    return torch.stack(kept).mean(0)


@program(*ROWS, x="float32[n, 3]")
def filtered(x):
    return [row.sum() for row in x if row[0] > 0], sum(1 for row in x if row[1] > 0)


@program(*ROWS, x="float32[n, 3]")
def dict_state(x):
    state = {"sum": torch.zeros(3), "count": 0}
    for row in x:
        if row.max() > 0.5:
            state["sum"] = state["sum"] + row
            state["count"] += 1
    return state


@program(*ROWS, x="float32[n, 3]")
def dict_by_parity(x):
    sums = {0: torch.zeros(3), 1: torch.zeros(3)}
    for i in range(3):
        sums[i % 2] = sums[i % 2] + x[:, i].sum()
    best = None
    for key, value in sums.items():
        if best is None or value[0] > sums[best][0]:
            best = key
    return sums[0], sums[1], best


@program(*ROWS, x="float32[n, 3]")
def named_state(x):
    p = Point(x[0], 0)
    for row in x:
        if row.sum() > p.x.sum():
            p = Point(row, p.count + 1)
    return p


@program(*ROWS, x="float32[n, 3]")
def generator_sums(x):
    def rows():
        for row in x:
            yield row * 2

    total = torch.zeros(3)
    for row in rows():
        total = total + row
    return total


@program(*ROWS, x="float32[n, 3]")
def any_and_all(x):
    return any(row.sum() > 1 for row in x), all(row[0] > -1 for row in x)


@program(*ROWS, x="float32[n, 3]")
def greatest_row(x):
    rows = [row for row in x]
    best = max(rows, key=lambda row: row.sum())
    least = min(float(row[0]) for row in x)
    return best, least


@program(*ROWS, x="float32[n, 3]")
def sorted_sums(x):
    sums = [float(row.sum()) for row in x]
    sums.sort()
    return sums, sorted(sums, reverse=True)[0]


@program(*ROWS, x="float32[n, 3]")
def stack_and_index(x):
    kept = []
    for i in range(x.shape[0]):
        kept.append(x[i] * i)
    middle = kept[len(kept) // 2]
    first, last = kept[0], kept[-1]
    kept[0] = last
    return middle, first, sum(kept), kept[1:]


@program((floats(4, 3), 2), (floats(2, 3), 5), x="float32[n, 3]", depth="int")
def static_recursion(x, depth):
    def tree(y, level):
        if level == 0:
            return y
        return tree(torch.tanh(y), level - 1) + tree(y * 0.5, level - 1)

    return tree(x, 3) * depth


@program(*ROWS, (floats(2, 3, shift=-6),), x="float32[n, 3]")
def choices(x):
    s = x.sum()
    sign = 1 if s > 0 else -1
    y = x if s > 0 and x.max() > 1 else -x
    z = y * sign if not (s < -1 or y.min() > 0) else y + sign
    return z, sign, (s > 0) is (sign == 1)


@program(*ROWS, x="float32[n, 3]")
def pairs(x):
    close = []
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            d = (x[i] - x[j]).pow(2).sum()
            if d < 4:
                close.append((i, j, d))
    if not close:
        return 0, x.sum()
    return len(close), close[0][2] + close[-1][0]


@program(*ROWS, (floats(4, 3, seed=8),), x="float32[n, 3]")
def nested_exits(x):
    found = (-1, -1)
    for i in range(x.shape[0]):
        if x[i].sum() < -3:
            continue
        for j in range(x.shape[1]):
            if x[i, j] > 0.8:
                found = (i, j)
                break
        else:
            continue
        break
    return found


@program((floats(6, 4),), (floats(1, 4),), boxes="float32[n, 4]")
def suppression(boxes):
    order = boxes[:, 0].argsort(descending=True)
    kept = []
    alive = torch.ones(len(boxes), dtype=torch.bool)
    for i in order:
        if not alive[i]:
            continue
        kept.append(i)
        gap = (boxes - boxes[i]).abs().sum(1)
        alive = alive & (gap > 2.5)
    return torch.stack(kept)


@program((floats(8, 2), 2), (np.ones((4, 2), np.float32), 2), x="float32[n, 2]", k="int")
def k_means(x, k):
    centres = x[:2]
    for step in range(10):
        near = torch.cdist(x, centres).argmin(1)
        new = []
        for c in range(2):
            mask = near == c
            if mask.any():
                new.append(x[mask].mean(0))
            else:
                new.append(centres[c])
        moved = torch.stack(new)
        if torch.allclose(moved, centres):
            break
        centres = moved
    return centres, k


@program(
    (floats(3, 3), whole(2, 0, 1)), (floats(1, 3), whole(0)), x="float32[n, 3]", order="int64[n]"
)
def scattered(x, order):
    out = torch.zeros_like(x)
    for i, k in enumerate(order):
        out[k] = x[i]
        if x[i].sum() > 0:
            out[k, 1:] += 1.0
    return out


@program(*ROWS, x="float32[n, 3]")
def counted_words(x):
    counts = [0, 0, 0]
    for row in x:
        counts[int(row.argmax())] += 1
    return counts


@program(*ROWS, (floats(2, 3, shift=-6),), x="float32[n, 3]")
def try_steps(x):
    y = x
    tries = 0
    while (y < 0).any():
        if tries == 3:
            return y, False
        y = torch.where(y < 0, -y - 0.5, y)
        tries += 1
    return y, True
