"""Loops: followed turn by turn where the turns are few, summarised where sizes decide them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hagane.checking import Request, check_source
from hagane.frontends.libraries.registry import LibraryTables
from hagane.frontends.python.enter.check import interpret
from hagane.symbolic.questions import Knowledge

from .checking import check_text

X = {"x": "float32[b, 7]", "n": "n"}

# (body of a function of x and a number of turns n, what it returns)
SUMMARIES = [
    ("l = []\nfor i in range(n):\n    l.append(x)\nreturn len(l), l[0].shape",
     "(int(n), (int(b), int(7)))"),
    ("l = [x]\nfor i in range(n):\n    l.append(x)\nreturn torch.stack(l)",
     "torch.Tensor(dtype=float32, shape=(n + 1, b, 7))"),
    ("y = x\nfor i in range(n):\n    y = torch.cat([y, x[:, :5]], 1)\nreturn y",
     "torch.Tensor(dtype=float32, shape=(b, 5*n + 7))"),
    ("k = 1\nfor i in range(n):\n    k += 5\nreturn k", "int(5*n + 1)"),
    ("k = 1\nfor i in range(2, n + 2):\n    k = i\nreturn k", "int(n + 1)"),
    ("h = None\nfor i in range(n):\n    h = x if h is None else h + x\nreturn h",
     "torch.Tensor(dtype=float32, shape=(b, 7))"),
    ("s = 0.0\nfor i in range(n):\n    s = s + x.sum()\nreturn s",
     "torch.Tensor(dtype=float32, shape=())"),
    ("return torch.stack([x[0] for _ in range(n)])", "torch.Tensor(dtype=float32, shape=(n, 7))"),
    ("return [t.shape[0] for t in x]", "[int(7), ... (b of them)]"),
    ("l = list(x)\nreturn torch.stack(l).shape", "(int(b), int(7))"),
    ("a = []\nfor i, t in enumerate(x):\n    a.append(t * i)\nreturn torch.stack(a, 1)",
     "torch.Tensor(dtype=float32, shape=(7, b))"),
    ("a, c = [], []\nfor u, v in zip(x, x):\n    a.append(u)\n    c += [v, v]\nreturn len(a), len(c)",
     "(int(b), int(2*b))"),
    ("y = x\nfor i in range(n):\n    if i % 2:\n        continue\n    y = y + 1\nreturn y",
     "torch.Tensor(dtype=float32, shape=(b, 7))"),
    ("h = x\nfor i in range(n):\n    h, c = torch.tanh(h), h.sum(1)\nreturn h, c",
     "(torch.Tensor(dtype=float32, shape=(b, 7)), torch.Tensor(dtype=float32, shape=(b,)))"),
    ("y = x[:0]\nfor i in range(n):\n    y = torch.cat([y, x])\nreturn y.shape[0]", "int(b*n)"),
    ("c = [[] for _ in range(2)]\nfor i in range(n):\n    c[0].append(x)\nreturn len(c[0]), len(c[1])",
     "(int(n), int(0))"),
    ("d = {'k': []}\nfor i in range(n):\n    d['k'].append(i)\nreturn len(d['k'])", "int(n)"),
    ("p = None\nfor i in range(n):\n    p = [x, x] if p is None else [torch.cat([q, x]) for q in p]\n"
     "return p[0].shape[0]", "int(b*n)"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "expected"), SUMMARIES, ids=range(len(SUMMARIES)))
def test_a_loop_over_sizes_is_summarised(tmp_path: Path, body: str, expected: str) -> None:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    report = check_text(tmp_path, f"def f(x, n):\n{lines}\n", X)
    assert report.errors == []
    assert report.returned == expected


@pytest.mark.parametrize(("body", "expected"), SUMMARIES, ids=range(len(SUMMARIES)))
def test_a_summary_says_what_turns_one_by_one_say(tmp_path: Path, body: str, expected: str) -> None:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    source = f"def f(x, n):\n{lines}\n"
    for turns in (1, 4):
        report = check_text(tmp_path, source, {"x": "float32[3, 7]", "n": str(turns)})
        assert report.errors == []
        folder = tmp_path / "sizes"
        folder.mkdir(exist_ok=True)
        summary = check_text(folder, source, X, sizes={"b": 3, "n": turns})
        assert _numbers(str(summary.returned)) == _numbers(str(report.returned)), expected


def _numbers(printed: str) -> str:
    """The printed type without formulas, repeated items written out."""
    formula = r"(\d+) \((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
    text = re.sub(formula, r"\1", printed)
    return re.sub(
        r"\[(.*?), \.\.\. \((\d+) of them\)\]",
        lambda found: f"[{', '.join([found[1]] * int(found[2]))}]",
        text,
    )


def test_a_while_loop_counts_its_turns(tmp_path: Path) -> None:
    source = """
    def f(x, n):
        outs, width = [], 1
        while width < n:
            outs.append(x)
            width += 5
        return torch.stack(outs), width
    """
    report = check_text(tmp_path, source, X)
    assert report.errors == []
    assert report.returned == "(torch.Tensor(dtype=float32, shape=(k, b, 7)), int(5*k + 1))"
    known = check_text(tmp_path, source, {"x": "float32[b, 7]", "n": "12"})
    assert known.returned == "(torch.Tensor(dtype=float32, shape=(3, b, 7)), int(16))"


def test_a_break_joins_the_states_of_all_turns(tmp_path: Path) -> None:
    source = """
    def f(x, n):
        for i in range(n):
            x = x * 2
            if x.sum() > 3:
                break
        return x
    """
    report = check_text(tmp_path, source, X)
    assert report.errors == []
    assert report.returned == "torch.Tensor(dtype=float32, shape=(b, 7))"


def test_an_error_that_only_later_turns_make_is_found(tmp_path: Path) -> None:
    source = """
    def f(x, n):
        y = x
        for i in range(n):
            y = y + x
            y = torch.cat([y, x[:, :1]], 1)
        return y
    """
    report = check_text(tmp_path, source, X)
    assert [p.code for p in report.errors] == ["shape-mismatch"]
    assert "y + x" in report.errors[0].text


def test_a_size_that_follows_no_rule_is_widened_and_not_invented(tmp_path: Path) -> None:
    source = """
    def f(x, n):
        k = 1
        for i in range(n):
            k = k * 2 + i
        return x.new_zeros(k)
    """
    report = check_text(tmp_path, source, X)
    assert report.errors == []
    assert "None" in str(report.returned) or "if" in str(report.returned)
    (notice,) = report.notices
    assert "a size that this loop changes follows no rule that is known" in notice.message


def test_lists_that_grow_at_either_end_keep_their_length_through_slices(tmp_path: Path) -> None:
    source = """
    from collections import deque
    def f(x, n):
        kept = []
        for i in range(n):
            kept.append(x[i % 7])
        back = deque([x[0]])
        for row in kept[::-1]:
            back.appendleft(row)
        return len(back), len(kept[::3]), len(kept[1::2]), torch.stack(list(back))
    """
    report = check_text(tmp_path, source, {"x": "float32[8, 7]", "n": "n"})
    assert report.exit_code == 0, (report.errors, report.unknown)
    lengths = "int(n + 1), int(ceil(n / 3)), int(ceil(max(0, n - min(1, n)) / 2))"
    assert report.returned == (f"({lengths}, torch.Tensor(dtype=float32, shape=(n + 1, 7)))")


def test_a_set_that_a_loop_fills_stays_a_set(tmp_path: Path) -> None:
    source = """
    def f(x, n):
        seen = set()
        for i in range(n):
            if i not in seen:
                seen.add(i)
        return x
    """
    report = check_text(tmp_path, source, X)
    assert report.checked
    assert report.errors == []
    assert report.returned == "torch.Tensor(dtype=float32, shape=(b, 7))"


def _nested(depth: int) -> str:
    lines = ["def f(x, n):", "    lists = []"]
    for level in range(depth):
        lines.append("    " * (level + 1) + f"for i{level} in range(n):")
    inner = "    " * (depth + 1)
    lines += [f"{inner}lists.append(x)", f"{inner}x = torch.tanh(x) + len(lists)"]
    return "\n".join([*lines, "    return x"])


def test_loops_inside_loops_take_few_turns_each(tmp_path: Path) -> None:
    def steps(depth: int) -> int:
        file = tmp_path / "program.py"
        file.write_text(f"import torch\n{_nested(depth)}\n")
        done = interpret(Request(file, "f", X), Knowledge(), LibraryTables())
        assert done.collector.report.errors == []
        return done.steps

    assert steps(3) < 4.5 * steps(2)


def test_a_check_ends_where_its_time_does_and_says_where(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(f"import torch\n{_nested(4)}\n")
    report = check_source(Request(file, "f", X, seconds=0.0))
    assert report.exit_code == 2
    (notice,) = report.notices
    assert "the analysis took more than 0 s of computing and ended here" in notice.message
    assert "check a part of the program by itself" in notice.message
    assert notice.place is not None
    assert notice.place.file == str(file)


@pytest.mark.parametrize("item", ["i % 3", "random.randint(0, 3)", "x[0].argmax().item()",
    "random.randint(0, 3) if random.random() < 0.5 else x[0].argmax().item()"])  # fmt: skip
@pytest.mark.parametrize("make", ["torch.tensor", "np.array"])
def test_rows_of_a_list_of_open_length_make_a_table(item: str, make: str, tmp_path: Path) -> None:
    source = f"""
import random
import numpy as np
def f(x):
    rows = []
    for i in range(x.shape[0]):
        rows.append([{item}])
    return {make}(rows)
"""
    report = check_text(tmp_path, source, {"x": "float32[b, 7]"})
    assert report.exit_code == 0, (report.errors, report.unknown)
    assert report.returned is not None
    assert "dtype=int64" in report.returned
    assert report.returned.endswith(", 1))")


def test_rows_whose_types_the_data_decide_are_unknown(tmp_path: Path) -> None:
    source = """
import random
def f(x):
    return torch.tensor([[1.5 if random.random() < 0.3 else 2] for _ in range(x.shape[0])])
"""
    report = check_text(tmp_path, source, {"x": "float32[b, 7]"})
    assert report.exit_code == 2
    assert not report.errors
