"""Dynamic programming and recurrences over arrays."""

# mypy: ignore-errors

import numpy as np

from .program import Program, floats, lister, whole

PROGRAMS: list[Program] = []
program = lister(PROGRAMS)


@program((whole(1, 2, 3), whole(1, 3)), (whole(5), whole(5)), (whole(1, 2), whole(3, 4, 5)),
         a="int64[n]", b="int64[m]")  # fmt: skip
def edit_distance(a, b):
    n, m = len(a), len(b)
    d = np.zeros((n + 1, m + 1), dtype=np.int64)
    for i in range(n + 1):
        d[i, 0] = i
    for j in range(m + 1):
        d[0, j] = j
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + cost)
    return d[n, m]


@program((whole(1, 2, 3, 2), whole(2, 3, 1)), (whole(5), whole(5)), (whole(1, 2), whole(3, 4)),
         a="int64[n]", b="int64[m]")  # fmt: skip
def longest_common(a, b):
    before = np.zeros(len(b) + 1, dtype=np.int64)
    for x in a:
        row = before.copy()
        for j in range(len(b)):
            if x == b[j]:
                row[j + 1] = before[j] + 1
            else:
                row[j + 1] = max(row[j], before[j + 1])
        before = row
    return int(before[-1])


@program((whole(3, 4, 5), whole(2, 3, 4), 7), (whole(1), whole(5), 4), (whole(5), whole(5), 4),
         value="int64[n]", weight="int64[n]", room="int")  # fmt: skip
def knapsack(value, weight, room):
    best = [0] * (room + 1)
    for v, w in zip(value, weight):
        c = room
        while c >= w:
            best[c] = max(best[c], best[c - int(w)] + int(v))
            c -= 1
    return best[room]


@program((whole(1, 3, 4), 6), (whole(5), 4), (whole(2), 3), coins="int64[n]", amount="int")
def coin_change(coins, amount):
    fewest = np.full(amount + 1, 9999, dtype=np.int64)
    fewest[0] = 0
    for a in range(1, amount + 1):
        for c in coins:
            if c <= a and fewest[a - c] + 1 < fewest[a]:
                fewest[a] = fewest[a - c] + 1
    return -1 if fewest[amount] == 9999 else int(fewest[amount])


@program((floats(4, 3), floats(3, 3, seed=1)), (floats(1, 3), floats(3, 3, seed=2)),
         score="float32[t, k]", step="float32[k, k]")  # fmt: skip
def viterbi(score, step):
    best = score[0]
    back = []
    for t in range(1, len(score)):
        reach = best[:, None] + step
        back.append(np.argmax(reach, axis=0))
        best = np.max(reach, axis=0) + score[t]
    last = int(np.argmax(best))
    path = [last]
    for k in reversed(range(len(back))):
        last = int(back[k][last])
        path.append(last)
    return path[::-1], np.max(best)


@program(0, 1, 7, 20, n="int")
def fibonacci(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


@program(6, 1, 12, n="int")
def pascal(n):
    row = [1]
    for _ in range(n):
        new = [1]
        for i in range(len(row) - 1):
            new.append(row[i] + row[i + 1])
        new.append(1)
        row = new
    return np.array(row)


@program(floats(6), floats(1), -np.abs(floats(4)), x="float32[n]")
def best_run(x):
    best = here = x[0]
    for v in x[1:]:
        here = max(v, here + v)
        best = max(best, here)
    return best


@program(whole(3, 1, 2, 5, 4), whole(1), whole(3, 2, 1), x="int64[n]")
def longest_rise(x):
    length = np.ones(len(x), dtype=np.int64)
    for i in range(len(x)):
        for j in range(i):
            if x[j] < x[i]:
                length[i] = max(length[i], length[j] + 1)
    return length.max()


@program(floats(3, 4), floats(1, 1), floats(4, 2, seed=3), cost="float32[n, m]")
def cheapest_path(cost):
    n, m = cost.shape
    total = cost.copy()
    for i in range(n):
        for j in range(m):
            if i == 0 and j == 0:
                continue
            if i == 0:
                total[i, j] = total[i, j - 1] + cost[i, j]
            elif j == 0:
                total[i, j] = total[i - 1, j] + cost[i, j]
            else:
                total[i, j] = min(total[i - 1, j], total[i, j - 1]) + cost[i, j]
    return total[-1, -1]


@program((floats(5), floats(7, seed=1)), (floats(1), floats(2)), a="float32[n]", b="float32[m]")
def time_warp(a, b):
    n, m = len(a), len(b)
    d = np.full((n + 1, m + 1), np.inf, dtype=np.float32)
    d[0, 0] = 0
    for i in range(n):
        for j in range(m):
            gap = abs(a[i] - b[j])
            d[i + 1, j + 1] = gap + min(d[i, j + 1], d[i + 1, j], d[i, j])
    return d[n, m]


@program(10, 2, 30, n="int")
def primes(n):
    sieve = np.ones(n + 1, dtype=bool)
    sieve[:2] = False
    i = 2
    while i * i <= n:
        if sieve[i]:
            for j in range(i * i, n + 1, i):
                sieve[j] = False
        i += 1
    return sieve.sum()
