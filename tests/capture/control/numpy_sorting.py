"""Sorting, searching and two pointers over arrays."""

# mypy: ignore-errors

import numpy as np

from .program import Program, floats, lister, real, whole

PROGRAMS: list[Program] = []
program = lister(PROGRAMS)


@program(real(3, 1, 2), real(1), floats(7), real(1, 1, 0, 5, 4), x="float32[n]")
def bubble_sort(x):
    y = x.copy()
    n = len(y)
    for i in range(n):
        swapped = False
        for j in range(n - 1 - i):
            if y[j] > y[j + 1]:
                low = y[j + 1]
                y[j + 1] = y[j]
                y[j] = low
                swapped = True
        if not swapped:
            break
    return y


@program(real(3, 1, 2), real(1), floats(6, seed=3), x="float32[n]")
def insertion_sort(x):
    y = x.copy()
    for i in range(1, y.shape[0]):
        key = y[i]
        j = i - 1
        while j >= 0 and y[j] > key:
            y[j + 1] = y[j]
            j -= 1
        y[j + 1] = key
    return y


@program(real(3, 1, 2), real(1), floats(6, seed=4), x="float32[n]")
def selection_sort(x):
    rest = x.copy()
    out = []
    for _ in range(len(x)):
        k = np.argmin(rest)
        out.append(rest[k])
        rest[k] = 1e30
    return np.stack(out)


@program(
    (whole(1, 3, 5, 7), 5), (whole(1, 3, 5, 7), 4), (whole(2), 9), (whole(1, 2, 3), 1),
    x="int64[n]", wanted="int",
)  # fmt: skip
def binary_search(x, wanted):
    low, high = 0, len(x) - 1
    while low <= high:
        middle = (low + high) // 2
        if x[middle] == wanted:
            return middle
        if x[middle] < wanted:
            low = middle + 1
        else:
            high = middle - 1
    return -1


@program((real(1, 4, 6), real(2, 3)), (real(1), real(5)), (real(7, 8), real(1)),
         a="float32[n]", b="float32[m]")  # fmt: skip
def merge_sorted(a, b):
    out = np.zeros(len(a) + len(b), dtype=np.float32)
    i = j = k = 0
    while i < len(a) and j < len(b):
        if a[i] <= b[j]:
            out[k] = a[i]
            i += 1
        else:
            out[k] = b[j]
            j += 1
        k += 1
    while i < len(a):
        out[k] = a[i]
        i += 1
        k += 1
    while j < len(b):
        out[k] = b[j]
        j += 1
        k += 1
    return out


@program((whole(1, 2, 4, 7), 9), (whole(1, 2, 4, 7), 100), (whole(1, 2), 0), (whole(3, 5), 8),
         x="int64[n]", total="int")  # fmt: skip
def two_sum(x, total):
    i, j = 0, len(x) - 1
    while i < j:
        s = int(x[i]) + int(x[j])
        if s == total:
            return i, j
        elif s < total:
            i += 1
        else:
            j -= 1
    return -1, -1


@program((floats(8), 3), (floats(5, seed=1), 1), x="float32[n]", k="int")
def top_k(x, k):
    kept = []
    y = x.copy()
    for _ in range(k):
        best = 0
        for i in range(1, len(y)):
            if y[i] > y[best]:
                best = i
        kept.append(best)
        y[best] = -np.inf
    return kept


@program(whole(3, 3, 1, 3), whole(1, 2, 3), whole(5, 5), x="int64[n]")
def majority(x):
    count = 0
    candidate = -1
    for v in x:
        if count == 0:
            candidate = int(v)
        count += 1 if v == candidate else -1
    times = 0
    for v in x:
        if v == candidate:
            times += 1
    return candidate if times > len(x) // 2 else -1


@program(whole(1, 1, 2, 3, 3, 3), whole(4), whole(1, 2), x="int64[n]")
def run_lengths(x):
    values, counts = [], []
    i = 0
    while i < len(x):
        j = i
        while j < len(x) and x[j] == x[i]:
            j += 1
        values.append(int(x[i]))
        counts.append(j - i)
        i = j
    return np.array(values), np.array(counts)


@program(whole(2, 0, 2, 1, 1, 0), whole(1), whole(0, 2), x="int64[n]")
def dutch_flag(x):
    y = np.copy(x)
    low, here, high = 0, 0, len(y) - 1
    while here <= high:
        v = y[here]
        if v == 0:
            y[here] = y[low]
            y[low] = 0
            low += 1
            here += 1
        elif v == 1:
            here += 1
        else:
            y[here] = y[high]
            y[high] = 2
            high -= 1
    return y
