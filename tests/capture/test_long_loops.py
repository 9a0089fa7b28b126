"""Loops over many known items are a Loop of the graph; short ones, and known ones, are not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hagane

ROWS = 30


def nodes_of(graph: Any) -> int:
    return sum(1 for _ in graph.graph.all_nodes())


def operators_of(graph: Any) -> Counter[str]:
    return Counter(node.op_type for node in graph.graph.all_nodes())


def compare(program: Callable[..., Any], *arguments: np.ndarray) -> Any:
    graph = hagane.capture(program, *arguments)
    names = [value.name for value in graph.graph.inputs]
    got = hagane.InferenceSession(graph).run(None, dict(zip(names, arguments, strict=True)))
    expected = program(*arguments)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for value, right in zip(got, expected, strict=True):
        np.testing.assert_allclose(value, right, rtol=1e-9)
    return graph


def table(a: Any, b: Any) -> Any:
    best = np.zeros((len(a) + 1, len(b) + 1), np.int64)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            if a[i - 1] == b[j - 1]:
                best[i, j] = best[i - 1, j - 1] + 1
            else:
                best[i, j] = max(best[i - 1, j], best[i, j - 1])
    return best[len(a), len(b)]


def table_of_lists(a: Any, b: Any) -> Any:
    best = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            if a[i - 1] == b[j - 1]:
                best[i][j] = best[i - 1][j - 1] + 1
            else:
                best[i][j] = max(best[i - 1][j], best[i][j - 1])
    return best[len(a)][len(b)]


@pytest.mark.parametrize("program", [table, table_of_lists])
def test_a_table_of_many_rows_is_a_loop_in_a_loop(program: Any) -> None:
    a, b = np.random.default_rng(0).integers(0, 4, (2, ROWS))
    graph = compare(program, a, b)
    assert operators_of(graph)["Loop"] == 2
    assert nodes_of(graph) < 80


def walk(a: Any) -> Any:
    best, steps = 0.0, 0.0
    for i in range(400):
        if a[i] > best:
            best = best + a[i] * i
        else:
            steps += 1.5
    return best, steps, i


def test_iterations_with_branches_are_a_loop_and_its_name_keeps_its_last_item() -> None:
    graph = compare(walk, np.random.default_rng(0).standard_normal(400))
    assert operators_of(graph)["Loop"] == 1
    assert nodes_of(graph) < 40


def differences(a: Any) -> Any:
    before = None
    total = 0.0
    for i in range(300):
        if before is not None:
            total = total + (a[i] - before if a[i] > before else 0.25)
        before = a[i]
    return total


def test_a_first_iteration_that_differs_is_one_for_itself() -> None:
    graph = compare(differences, np.random.default_rng(0).standard_normal(300))
    assert operators_of(graph)["Loop"] == 1
    assert nodes_of(graph) < 60


def checksum(data: Any) -> Any:
    entries = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ 0xEDB88320 if value & 1 else value >> 1
        entries.append(value)
    lookup, found = np.array(entries), 0xFFFFFFFF
    for byte in data:
        found = lookup[(found ^ byte) & 0xFF] ^ (found >> 8)
    return found ^ 0xFFFFFFFF


def test_a_table_that_the_data_do_not_change_is_a_constant() -> None:
    graph = compare(checksum, np.arange(12))
    assert "Loop" not in operators_of(graph)


def counted(a: Any) -> Any:
    size, parts = 0, []
    for i in range(40):
        size += 2
        parts.append(a[i] * 2 if a[i] > 0 else a[i] - 1)
    return np.stack(parts).reshape(8, 5), np.zeros(size)


def test_sizes_and_lengths_that_the_program_knows_stay_known() -> None:
    graph = compare(counted, np.random.default_rng(0).standard_normal(40))
    assert [list(value.shape) for value in graph.graph.outputs] == [[8, 5], [80]]
    assert "Loop" not in operators_of(graph)


def searched(a: Any) -> Any:
    for i in range(100):
        if a[i] > 2:
            break
    else:
        return -1.0
    return a[i] + i


@pytest.mark.parametrize("place", [0, 57, 99, None])
def test_a_search_ends_where_python_ends_it(place: int | None) -> None:
    a = np.zeros(100)
    if place is not None:
        a[place] = 3.0
    compare(searched, a)


def written(a: Any) -> Any:
    first = [0.0] * 50
    other = first
    for i in range(50):
        if a[i] > 0:
            other[i] = a[i]
        else:
            first[49 - i] += 1.0
    return np.array(first), np.array(other)


@pytest.mark.long
def test_a_list_of_two_names_is_one_list_behind_a_long_loop() -> None:
    compare(written, np.random.default_rng(3).standard_normal(50))


def pairs(x: Any) -> Any:
    total = 0
    for a in range(6):
        for b in range(6):
            if x[a] == x[b] + 1 or x[a] > x[b]:
                total += a * b
            else:
                continue
    return total


def test_a_counter_of_many_conditions_has_a_short_name() -> None:
    compare(pairs, np.random.default_rng(0).integers(0, 6, 6))


def product(a: Any, b: Any) -> Any:
    out = np.zeros((20, 20))
    for i in range(20):
        for j in range(20):
            total = 0.0
            for k in range(20):
                total += a[i, k] * b[k, j]
            out[i, j] = total
    return out


def test_what_an_attempt_of_an_inner_loop_met_is_no_error_of_the_outer_one() -> None:
    a, b = np.random.default_rng(0).standard_normal((2, 20, 20))
    assert nodes_of(compare(product, a, b)) < 60


def guarded(x: Any) -> Any:
    parts = [x]
    try:
        for i in range(30):
            if len(parts) != i + 1:
                raise ValueError("a part is missing")
            parts.append(parts[i] * 0.5 + 1)
    except ValueError:
        return x * 0
    return np.stack(parts)


def test_an_iteration_that_only_fails_as_a_trial_raises_nothing() -> None:
    graph = compare(guarded, np.random.default_rng(0).standard_normal(3))
    assert list(graph.graph.outputs[0].shape) == [31, 3]
