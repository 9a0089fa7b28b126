"""Concurrent assertions and covers over several cycles, beside all words that they may read."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path

import pytest

from hagane.tools.rtl import Budget, cover, read_sources
from hagane.tools.rtl.circuit.cycle import CycleModel
from hagane.tools.rtl.circuit.simulate import Simulator
from hagane.tools.rtl.cover import load
from hagane.tools.rtl.search.assertions import violations

ROWS = 14
ANY = "1"
Words = Sequence[Sequence[str]]


def gap(low: int, high: int = ROWS) -> list[list[str]]:
    return [[ANY] * count for count in range(low, high + 1)]


def joined(*parts: Words) -> list[list[str]]:
    return [[letter for part in word for letter in part] for word in product(*parts)]


GO = [["!b"] * i + ["b"] + ["!b"] * j + ["b"] for i in range(ROWS) for j in range(ROWS - i)]
ONE = [["a"]]
# The property, its clock aside; the words of the left side, the cycles between, those of the right.
PROPERTIES: list[tuple[str, Words, int, Words]] = [
    ("a |-> b", ONE, 0, [["b"]]),
    ("a |=> b", ONE, 1, [["b"]]),
    ("a ##1 b |-> ##[1:3] c", [["a", "b"]], 0, joined(gap(1, 3), [["c"]])),
    ("a ##[0:2] b |=> c ##1 c", [["a & b"], *joined(ONE, gap(0, 1), [["b"]])], 1, [["c", "c"]]),
    ("a[*2:3] |-> b or c", [["a"] * 2, ["a"] * 3], 0, [["b"], ["c"]]),
    ("a |-> (b ##1 c) or (c ##2 b)", ONE, 0, [["b", "c"], ["c", ANY, "b"]]),
    ("a |=> b[*0:2] ##1 c", ONE, 1, [["b"] * n + ["c"] for n in range(3)]),
    ("a |-> (b ##1 b) and (c ##2 c)", ONE, 0, [["b & c", "b", "c"]]),
    ("a |-> (b ##2 b) intersect (c[*2:4])", ONE, 0, [["b & c", "c", "b & c"]]),
    ("a |-> c throughout b[->2]", ONE, 0, [[f"c & {x}" for x in word] for word in GO]),
    ("a |-> (b ##1 c) within (c[*3])", ONE, 0, [["b & c", "c", "c"], ["c", "b & c", "c"]]),
    ("a |-> b until c", ONE, 0, [["b & !c"] * n + ["c"] for n in range(ROWS)]),
    ("a |-> b until_with c", ONE, 0, [["b & !c"] * n + ["b & c"] for n in range(ROWS)]),
    ("a |-> nexttime b", ONE, 1, [["b"]]),
    ("a |-> ##[1:$] b ##1 c", ONE, 0, joined(gap(1), [["b", "c"]])),
    ("a |-> b |=> c", [["a & b"]], 1, [["c"]]),
    ("b[=1] ##1 a |-> c", [["!b"] * i + ["b"] + ["!b"] * j + ["a"]
                           for i in range(ROWS) for j in range(ROWS - i)], 0, [["c"]]),
    ("a |-> first_match(##[0:2] b)", ONE, 0, joined(gap(0, 2), [["b"]])),
    ("$rose(a) |-> $past(b) || $stable(c)", [["a & !pa"]], 0, [["pb | (c == pc)"]]),
    ("a |=> $past(b, 2)", ONE, 1, [["ppb"]]),
    ("always (a |-> b)", ONE, 0, [["b"]]),
]  # fmt: skip


def true(letter: str, row: Mapping[str, int]) -> bool:
    return bool(eval(letter.replace("!", "1 - "), {}, dict(row)) & 1)


def with_past(rows: Sequence[Mapping[str, int]]) -> list[dict[str, int]]:
    found = []
    for at, row in enumerate(rows):
        before = rows[at - 1] if at else dict.fromkeys("abc", 0)
        second = rows[at - 2] if at > 1 else dict.fromkeys("abc", 0)
        old = {f"p{k}": before[k] for k in "abc"} | {f"pp{k}": second[k] for k in "abc"}
        found.append({**row, **old})
    return found


def reads(word: Sequence[str], rows: Sequence[Mapping[str, int]], start: int, count: int) -> bool:
    return all(true(word[k], rows[start + k]) for k in range(count))


def matches(words: Words, rows: Sequence[Mapping[str, int]], start: int) -> set[int]:
    """Return the cycles on which some word from a start is met."""
    return {
        start + len(word) - 1
        for word in words
        if start + len(word) <= len(rows) and reads(word, rows, start, len(word))
    }


def failure(words: Words, rows: Sequence[Mapping[str, int]], start: int) -> int | None:
    """Return the cycle on which no word can be met any more."""
    ends = matches(words, rows, start)
    for at in range(start, len(rows)):
        if at in ends:
            return None
        count = at - start + 1
        if not any(len(word) > count and reads(word, rows, start, count) for word in words):
            return at
    return None


def expected(case: tuple[str, Words, int, Words], rows: Sequence[Mapping[str, int]]) -> set[int]:
    _, left, delay, right = case
    starts = {end + delay for start in range(len(rows)) for end in matches(left, rows, start)}
    failing = {failure(right, rows, start) for start in starts if start < len(rows)}
    return {at for at in failing if at is not None}


def module(properties: Sequence[str], kind: str = "assert") -> str:
    lines = [f"  {kind} property (@(posedge clk) {text});" for text in properties]
    return "\n".join(["module m(input logic clk, a, b, c);", *lines, "endmodule", ""])


def model_of(folder: Path, text: str) -> CycleModel:
    path = folder / "m.sv"
    path.write_text(text)
    return load(read_sources([path], "m"))[1]


def traces(count: int) -> list[list[dict[str, int]]]:
    rng = random.Random(7)
    shares = [[rng.choice([0.3, 0.5, 0.8]) for _ in "abc"] for _ in range(count)]
    return [
        [{k: int(rng.random() < p) for k, p in zip("abc", share, strict=True)} for _ in range(ROWS)]
        for share in shares
    ]


def seen(model: CycleModel, rows: Sequence[Mapping[str, int]]) -> list[set[int]]:
    """Return for each assertion, in the order of the text, the cycles on which it fails."""
    failing = violations(model, [])
    simulator = Simulator(model, failing)
    state, found = simulator.start(), [set() for _ in failing]
    for at, row in enumerate(rows):
        cycle = simulator.cycle(state, row)
        state = cycle.after
        for number, failed in enumerate(cycle.violations):
            if failed:
                found[number].add(at)
    return found


def test_properties_fail_on_the_cycles_on_which_no_word_of_theirs_is_left(tmp_path: Path) -> None:
    model = model_of(tmp_path, module([text for text, *_ in PROPERTIES]))
    assert len(model.asserts) == len(PROPERTIES), model.notices
    failures = 0
    for rows in traces(25):
        past = with_past(rows)
        for case, found in zip(PROPERTIES, seen(model, rows), strict=True):
            assert found == expected(case, past), (case[0], rows)
            failures += len(found)
    assert failures > 500


def test_a_negated_sequence_fails_where_it_is_met(tmp_path: Path) -> None:
    model = model_of(tmp_path, module(["not (a[*2] ##1 b)"]))
    for rows in traces(20):
        ends = {end for start in range(ROWS) for end in matches([["a", "a", "b"]], rows, start)}
        assert seen(model, rows) == [ends]


def test_attempts_end_where_they_are_disabled(tmp_path: Path) -> None:
    model = model_of(tmp_path, module(["disable iff (c) a |=> b ##1 b"]))
    for rows in traces(20):
        failing = set()
        for start in range(ROWS):
            at = failure([["b", "b"]], rows, start + 1) if rows[start]["a"] else None
            if at is not None and not any(rows[k]["c"] for k in range(start, at + 1)):
                failing.add(at)
        assert seen(model, rows) == [failing]


@pytest.mark.usefixtures("no_simulator")
def test_a_property_that_always_holds_is_proved(tmp_path: Path) -> None:
    path = tmp_path / "m.sv"
    path.write_text(
        "module m(input logic clk, rst_n, push, pop, output logic [2:0] n);\n"
        "  always_ff @(posedge clk or negedge rst_n)\n"
        "    if (!rst_n) n <= 0;\n"
        "    else if (push && !pop && n < 4) n <= n + 1;\n"
        "    else if (pop && !push && n > 0) n <= n - 1;\n"
        "  default disable iff (!rst_n);\n"
        "  assert property (@(posedge clk) n == 4 && push && !pop |=> n == 4);\n"
        "  assert property (@(posedge clk) n == 2 && push && !pop |=> n == 2);\n"
        "  cover property (@(posedge clk) n == 3 ##1 n == 4 ##1 n == 3);\n"
        "  cover property (@(posedge clk) n == 1 ##1 n == 3);\n"
        "endmodule\n"
    )
    result = cover(read_sources([path], "m"), Budget(60.0, 12))
    first, second = result.assertions
    assert first.status == "proved", first
    assert (second.status, second.why) == ("unknown", "no simulator replayed it")
    points = {s.line: (s.status, s.why) for s in result.statuses if s.kind == "cover"}
    assert points[9] == ("unknown", "no simulator replayed the tests")
    assert points[10][0] == "dead"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("s_eventually a", "Unary SEventually in a property"),
        ("strong(##[1:$] a)", "StrongWeak in a property"),
        ("a[*0:1] |-> b", "a sequence that may be empty"),
        ("a |-> ##[300:400] b", "a sequence of more than 256 cycles"),
        ("a |-> $past(b, 1, c)", "$past with a gate or a clock"),
    ],
)
def test_what_is_not_followed_is_named_by_place(text: str, why: str, tmp_path: Path) -> None:
    model = model_of(tmp_path, module([text]))
    assert model.asserts == {}
    (notice,) = model.notices
    assert notice.endswith(f"m.sv:2:3: a concurrent assertion is not a target: {why}"), notice


def test_covers_of_sequences_are_points_on_the_cycles_of_their_ends(tmp_path: Path) -> None:
    model = model_of(tmp_path, module(["a ##1 !a ##1 a", "a |=> b"], "cover"))
    simulator = Simulator(model, {})
    for rows in traces(10):
        state, found = simulator.start(), [set[int](), set[int]()]
        for at, row in enumerate(rows):
            cycle = simulator.cycle(state, row)
            state = cycle.after
            for number, met in enumerate(cycle.points):
                if met:
                    found[number].add(at)
        words = [[["a", "!a", "a"]], [["a", "b"]]]
        assert found == [{e for s in range(ROWS) for e in matches(w, rows, s)} for w in words]


@pytest.mark.long
@pytest.mark.usefixtures("verilator")
def test_a_broken_property_is_replayed_in_verilator_with_all_else(tmp_path: Path) -> None:
    path = tmp_path / "m.sv"
    path.write_text(
        "module m(input logic clk, rst_n, push, output logic [1:0] n);\n"
        "  always_ff @(posedge clk or negedge rst_n)\n"
        "    if (!rst_n) n <= 0; else if (push) n <= n + 1;\n"
        "  assert property (@(posedge clk) disable iff (!rst_n) n == 2 && push |=> n == 2);\n"
        "  assert property (@(posedge clk) disable iff (!rst_n) n == 1 && push |=> n == 2);\n"
        "  cover property (@(posedge clk) disable iff (!rst_n) $past(n) == 3 && n == 0);\n"
        "endmodule\n"
    )
    result = cover(read_sources([path], "m"), Budget(300.0, 12))
    assert result.defects == []
    assert [each.status for each in result.assertions] == ["violated", "proved"]
    assert {s.status for s in result.statuses} == {"covered"}
