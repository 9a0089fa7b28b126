"""Lists and objects of which the data decide the one that is meant: changed in place, and read."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

import hagane
from hagane.errors import CaptureError


@dataclass
class Particle:
    place: int
    weight: float


def row_of_a_table(x: np.ndarray) -> Any:
    table = [[0] * 4 for _ in range(len(x))]
    for i in range(len(x)):
        for j in range(4):
            above = table[i - 1][j] if i > 0 else 1
            table[i][j] = i * j + above + int(x[i, 0])
    return table[-1][3]


def rows_by_name(x: np.ndarray) -> Any:
    table = [[0, 0] for _ in range(len(x))]
    for i in range(len(x)):
        row, before = table[i], table[i - 1]
        row[0] = before[1] + 1
        row[1] = row[0] + before[0] + int(x[i, 1])
    return sum(row[1] for row in table)


def item_of_three(x: np.ndarray) -> Any:
    rows = [[0, 0], [1, 1], [2, 2]]
    place = len(x) % 3
    rows[place][1] = 4
    rows[place - 1][0] = 7
    return rows[0][1] + 5 * rows[1][1] + 25 * rows[2][1] + 125 * rows[2][0]


def one_item_three_times(x: np.ndarray) -> Any:
    rows = [[0, 0]] * 3
    rows[len(x) % 3][1] = 4
    return rows[0][1] + rows[1][1] + rows[2][1]


def two_names_of_items(x: np.ndarray) -> Any:
    registers = [[0, 1], [2, 3]]
    total = 0
    for i in range(len(x)):
        row = registers[x[i, 0] % 2]
        other = registers[1 - x[i, 0] % 2]
        row[0] += 1
        other[1] += row[0]
        total += other[1]
    return total, registers[0][0] + 10 * registers[0][1] + 100 * registers[1][0]


def appended_then_changed(x: np.ndarray) -> Any:
    rows = []
    for i in range(len(x)):
        row = [0, i]
        rows.append(row)
        row[1] += 3
    total = 0
    for row in rows:
        total = total * 2 + row[1]
    return total


def last_item(x: np.ndarray) -> Any:
    rows = []
    for i in range(len(x)):
        rows.append([i, i])
    last = rows[-1]
    last[0] = 77
    return rows[-1][0] + last[0]


def fields_of_items(x: np.ndarray) -> Any:
    items = [Particle(i, 0.5) for i in range(len(x))]
    for item in items:
        item.place += int(x[item.place, 0])
    items[0].weight = 2.0
    total = 0.0
    for item in items:
        total = total * 2 + item.place + item.weight
    return total


def keys_of_items(x: np.ndarray) -> Any:
    items = []
    for i in range(len(x)):
        items.append({"n": i, "v": x[i, 0]})
    for item in items:
        item["n"] = item["n"] * 3 + 1
    return sum(item["n"] for item in items)


def one_of_two_lists(x: np.ndarray) -> Any:
    a, b = [0, 0], [1, 1]
    row = a if x[0, 0] > 1 else b
    row[0] = 9
    a[1] = 5
    return a[0] * 100 + b[0] * 10 + row[1]


def longer_by_one(x: np.ndarray) -> Any:
    a, b = [0, 0], [1, 1, 1]
    if x[0, 0] > 1:  # noqa: SIM108 - the other form of a choice
        row = a
    else:
        row = b
    row.append(4)
    return len(a) * 10 + len(b)


def one_of_two_dictionaries(x: np.ndarray) -> Any:
    a, b = {"k": 0}, {"k": 1}
    row = a if x[0, 0] > 1 else b
    row["k"] = 9
    return a["k"] * 10 + b["k"]


def one_of_two_objects(x: np.ndarray) -> Any:
    a, b = Particle(0, 0.5), Particle(1, 0.5)
    row = a if x[0, 0] > 1 else b
    row.place = 9
    return a.place * 10 + b.place


def parted(x: np.ndarray) -> Any:
    left, right = [], []
    for i in range(len(x)):
        (left if x[i, 0] > 1 else right).append(int(x[i, 1]))
    return len(left) * 100 + sum(left) * 10 + sum(right)


def two_in_turn(x: np.ndarray) -> Any:
    now, before = [0, 0], [5, 5]
    for i in range(len(x)):
        before = now
        now = [i, int(x[i, 0])]
        before[0] += 2
    return before[0] + now[1]


def board(x: np.ndarray) -> Any:
    cells = [[0, 0, 0], [0, 0, 0], [0, 0, 0]]
    player = winner = 0
    for i in range(len(x)):
        row, column = int(x[i, 0]), int(x[i, 1])
        if cells[row][column] == 0 and winner == 0:
            cells[row][column] = player + 1
            for k in range(3):
                if cells[k][0] == cells[k][1] == cells[k][2] != 0:
                    winner = cells[k][0]
            player = 1 - player
    return winner, cells[0][0] + 3 * cells[1][1] + 9 * cells[2][2] + 27 * cells[0][1]


PROGRAMS = [
    row_of_a_table, rows_by_name, item_of_three, one_item_three_times, two_names_of_items,
    appended_then_changed, last_item, fields_of_items, keys_of_items, one_of_two_lists,
    longer_by_one, one_of_two_dictionaries, one_of_two_objects, parted, two_in_turn, board,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_the_container_that_is_meant_is_changed(program: Any) -> None:
    session = hagane.InferenceSession(hagane.capture(program, "int64[n, 2]"))
    rng = np.random.default_rng(0)
    for count in (1, 2, 3, 6, 9):
        x = rng.integers(0, 3, (count, 2))
        found = session.run(None, {"x": x})
        expected = program(x.copy())
        expected = expected if isinstance(expected, tuple) else (expected,)
        assert [float(part) for part in found] == [float(part) for part in expected], count


def one_list_in_another_many_times(x: np.ndarray) -> Any:
    row, rows = [0, 0], []
    for i in range(len(x)):
        if x[i, 0] > 1:
            row = [i, i]
        row[1] += 1
        rows.append(row)
    total = 0
    for one in rows:
        total = total * 2 + one[1]
    return total


def a_name_for_what_a_loop_changes(x: np.ndarray) -> Any:
    now, before = [0, 0], [5, 5]
    for _ in range(len(x)):
        now[1] += 1
        before = now
    now[1] += 4
    return before[1]


@pytest.mark.parametrize(
    "program", [one_list_in_another_many_times, a_name_for_what_a_loop_changes]
)
def test_a_container_that_may_have_been_changed_is_not_read(program: Any) -> None:
    with pytest.raises(CaptureError, match="after a change in place of another one, and the data"):
        hagane.capture(program, "int64[n, 2]")


def an_array_that_may_be_another(x: np.ndarray) -> Any:
    a, b = np.zeros(3), np.ones(3)
    row = a if x.sum() > 0 else b
    row[0] = 9
    return a[0] * 10 + b[0]


def test_an_array_of_known_content_that_may_have_been_changed_is_not_read() -> None:
    with pytest.raises(CaptureError, match=r"a\[0\]: the operation in place at .* changes a tens"):
        hagane.capture(an_array_that_may_be_another, "int64[n, 2]")


def truth_as_a_number(x: np.ndarray) -> Any:
    total = 0
    for i in range(len(x)):
        total += (i == 2) * 5 + x[i, 0]
    return total + (len(x) == 3) * 7


def rows_in_another_order(x: np.ndarray) -> Any:
    rows = [[int(x[i, 0]), int(x[i, 1])] for i in range(len(x))]
    for i in range(len(x)):
        for j in range(len(x) - 1 - i):
            if rows[j][0] > rows[j + 1][0]:
                rows[j], rows[j + 1] = rows[j + 1], rows[j]
    total = 0
    for row in rows:
        total = (total * 5 + row[0]) * 5 + row[1]
    return total


def push(stack: list[list[int]], value: int) -> None:
    stack[-1].append(value)


def changed_by_a_function(x: np.ndarray) -> Any:
    stack = [[]]
    for i in range(len(x)):
        if x[i, 0] == 0:
            stack.append([])
        push(stack, int(x[i, 1]))
    total = 0
    for level in stack:
        total = total * 3 + sum(level) + len(level)
    return total


@pytest.mark.parametrize(
    "program", [truth_as_a_number, rows_in_another_order, changed_by_a_function]
)
def test_items_that_are_exchanged_and_handed_on(program: Any) -> None:
    test_the_container_that_is_meant_is_changed(program)


class Chosen(torch.nn.Module):
    """Keeps modules in a set and as keys, as code that moves some of them does."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(3, 3) for _ in range(3)])

    def forward(self, x: Any) -> Any:
        first = set(self.layers[:2])
        places = {layer: place for place, layer in enumerate(self.layers)}
        for layer in self.layers:
            if layer in first:
                x = layer(x)
            x = x + places[layer]
        return x * len(first)


def empty_tuples_in_lists(x: np.ndarray) -> Any:
    found: list[list[Any]] = [[] for _ in range(len(x) + 1)]
    found[0].append(())
    for i in range(1, len(x) + 1):
        for _ in found[i - 1]:
            found[i].append((x[i - 1],))
    return found[1]


def test_lists_of_tuples_of_several_lengths_are_refused() -> None:
    with pytest.raises(CaptureError, match=r"would hold the items of \[\(\), \.\.\.\] and \[\("):
        hagane.capture(empty_tuples_in_lists, "float32[n]")


def test_modules_in_sets_and_as_keys() -> None:
    model = Chosen().eval()
    report = hagane.check(model, x="float32[n, 3]")
    assert not report.errors
    assert not report.unknown
    x = torch.randn(2, 3)
    session = hagane.InferenceSession(hagane.capture(model, x="float32[n, 3]"))
    np.testing.assert_allclose(
        session.run(None, {"x": x.numpy()})[0], model(x).detach(), rtol=1e-5, atol=1e-5
    )


class Kind(enum.Enum):
    """Which branch an object takes."""

    DOUBLED = enum.auto()
    TRIPLED = enum.auto()


class Factor:
    """Multiplies by what a member of an enumeration says."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind

    def __call__(self, x: Any) -> Any:
        if self.kind == Kind.DOUBLED:
            return x * 2
        return x * 3 if self.kind is Kind.TRIPLED else x * 0


@pytest.mark.parametrize(("kind", "factor"), [(Kind.DOUBLED, 2), (Kind.TRIPLED, 3)])
def test_a_member_in_an_attribute_is_that_of_its_enumeration(kind: Kind, factor: int) -> None:
    session = hagane.InferenceSession(hagane.capture(Factor(kind), np.ones(3)))
    np.testing.assert_array_equal(session.run(None, {"x": np.ones(3)})[0], [factor] * 3)
