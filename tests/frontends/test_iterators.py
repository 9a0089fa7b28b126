"""Iterators, copies and containers changed at open places: what CPython does, the checker knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from hagane.checking import Request, check_source
from hagane.frontends.python.report.findings import Note, Report
from hagane.frontends.python.report.render import render_text
from hagane.frontends.python.values.values import Place

from .checking import check_text

KNOWN = [
    "list(itertools.islice([1, 2, 3, 4, 5], 1, None, 2))",
    "list(itertools.islice(itertools.count(4), 3))",
    "list(itertools.islice(itertools.cycle([1, 2]), 1, 5))",
    "(lambda it: (list(itertools.islice(it, 2)), list(it)))(iter([1, 2, 3, 4]))",
    "list(itertools.repeat(7, 3))",
    "list(zip([1, 2], itertools.repeat(5)))",
    "list(itertools.zip_longest([1, 2], [3], fillvalue=0))",
    "list(itertools.starmap(pow, [(2, 3), (3, 2)]))",
    "[list(one) for one in itertools.tee(iter([1, 2]), 3)]",
    "list(itertools.takewhile(lambda n: n < 3, [1, 2, 3, 1]))",
    "list(itertools.dropwhile(lambda n: n < 3, [1, 2, 3, 1]))",
    "list(itertools.filterfalse(lambda n: n % 2, range(6)))",
    "list(itertools.compress([1, 2, 3], [1, 0, 1, 1]))",
    "[(k, list(g)) for k, g in itertools.groupby([1, 1, 2, 1])]",
    "[(k, list(g)) for k, g in itertools.groupby('aAb', key=str.upper)]",
    "list(itertools.accumulate([1, 2, 3], initial=10))",
    "(lambda it: next(it) + 10 * next(it) + 100 * next(it))(itertools.cycle([1, 2]))",
    "(lambda s: (copy.copy(s).add(3), s))({1, 2})[1]",
    "(lambda q: (q.append(3), list(q))[1])(copy.copy(collections.deque([1, 2], maxlen=2)))",
]


@pytest.mark.parametrize("expression", KNOWN)
def test_an_iterator_gives_what_it_gives_in_python(expression: str, tmp_path: Path) -> None:
    scope: dict[str, object] = {}
    exec("import itertools, collections, copy", scope)
    expected = eval(expression, scope)
    source = f"""
import itertools, collections, copy
def f(x):
    assert {expression} == {expected!r}
    return x
"""
    report = check_text(tmp_path, source, {"x": "float32[b, 7]"})
    assert report.exit_code == 0, (report.errors, report.unknown, report.notices)


def test_a_part_of_a_loader_takes_its_batches_one_by_one(tmp_path: Path) -> None:
    report = _script(
        tmp_path,
        """
import itertools
import torch
from torch.utils.data import DataLoader, TensorDataset
loader = DataLoader(TensorDataset(torch.zeros(40, 3)), batch_size=4)
for (x,) in itertools.islice(loader, 2):
    y = x @ torch.zeros(5, 1)
""",
    )
    assert [e.place.line for e in report.errors] == [6]


def test_a_deep_copy_keeps_what_is_shared_inside(tmp_path: Path) -> None:
    report = _script(
        tmp_path,
        """
import copy
shared = [1]
held = {"a": shared, "b": shared}
made = copy.deepcopy(held)
made["a"].append(2)
assert len(made["b"]) == 2 and len(held["b"]) == 1
""",
    )
    assert report.exit_code == 0, report.errors


def test_a_hook_of_a_deep_copy_belongs_to_the_copy(tmp_path: Path) -> None:
    report = _script(
        tmp_path,
        """
import copy
import torch
from torch import nn
class Watched(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)
        self.seen = {}
        self.fc.register_forward_hook(self.keep)
    def keep(self, module, inputs, output):
        self.seen[inputs[0].device] = output
    def forward(self, x):
        self.fc(x)
        return self.seen[x.device]
first = Watched()
other = copy.deepcopy(first)
other(torch.zeros(2, 3)) @ torch.zeros(4, 1)
assert len(other.seen) == 1 and len(first.seen) == 0
""",
    )
    assert report.exit_code == 0, (report.errors, report.unknown)


def test_an_item_set_at_an_open_key_tells_nothing_of_others(tmp_path: Path) -> None:
    report = _script(
        tmp_path,
        """
import torch
held = {"x": torch.zeros(4, 4)}
held[int(torch.randint(0, 3, (1,)))] = torch.zeros(2, 2)
held["x"] @ torch.zeros(4, 1)
held.clear()
assert not held
""",
    )
    assert report.exit_code == 2
    assert not report.errors


def test_a_logger_needs_no_torch(tmp_path: Path) -> None:
    report = _script(
        tmp_path,
        """
import logging
log = logging.getLogger(__name__)
log.info("start %d", 3)
""",
    )
    assert report.exit_code == 0, report.notices


def test_a_keyword_that_a_function_does_not_take_is_no_failure_of_the_checker(
    tmp_path: Path,
) -> None:
    report = _script(tmp_path, "x = sorted([2, 1], reversed=True)\ny = zip([1], stict=True)\n")
    assert not any("checker itself" in note.message for note in report.notices)


def test_a_call_with_too_many_combinations_of_open_values_ends(tmp_path: Path) -> None:
    report = _script(
        tmp_path,
        """
import random
import torch
class Graph:
    def __init__(self, n, name):
        self.y = torch.zeros(n) if n % 2 else torch.zeros(n, 1)
graphs = [Graph(n, str(n)) for n in range(1, 11)]
torch.cat([random.choice(graphs).y for _ in range(12)])
""",
    )
    assert report.exit_code == 2
    assert any("too many combinations" in note.message for note in report.unknown)


def test_assumptions_that_differ_in_drawn_values_are_printed_once() -> None:
    report = Report()
    place = Place("a.py", 3, 1, 3, 9)
    report.assumptions += [Note(place, f"item_{n} + 8 <= 90 (bound of a slice)") for n in range(9)]
    report.assumptions.append(Note(place, "b <= 90"))
    lines = [line for line in render_text(report) if "assumed" in line]
    assert lines == [
        "a.py:3:1: assumed: item_0 + 8 <= 90 (bound of a slice), and 8 like it",
        "a.py:3:1: assumed: b <= 90",
    ]


def _script(folder: Path, source: str) -> Report:
    path = folder / "script.py"
    path.write_text(source.lstrip("\n"), encoding="utf-8")
    return check_source(Request(path, "__main__"))
