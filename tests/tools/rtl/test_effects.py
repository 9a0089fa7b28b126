"""Expressions that change variables, arguments of other widths, actions of assertions, patterns."""

from __future__ import annotations

from pathlib import Path

import pytest

from hagane.errors import InvalidArgument
from hagane.tools.rtl import read_sources
from hagane.tools.rtl.circuit.elaborate import find_top
from hagane.tools.rtl.circuit.simulate import Simulator
from hagane.tools.rtl.cover import load
from hagane.tools.rtl.errors import UnsupportedDesign


def run(folder: Path, body: str, rows: list[int]) -> list[dict[str, int]]:
    """Return the signals before each edge of a module with an input ``a`` and a clock."""
    source = folder / "m.sv"
    source.write_text(f"module m(input clk, input [3:0] a);\n{body}\nendmodule\n")
    _, model = load(read_sources([source], "m"))
    simulator = Simulator(model, {})
    state, found = simulator.start(), []
    for value in rows:
        cycle = simulator.cycle(state, {"clk": 1, "a": value})
        found.append(dict(zip(simulator.signal_names, cycle.signals, strict=True)))
        state = cycle.after
    return found


COUNTING = "int n = 0;\nfunction int bump(input int by); n += by; return n; endfunction\n"


@pytest.mark.parametrize(
    ("statement", "counts"),
    [
        ("if (bump(1) > 1) r <= 1;", [0, 1, 2]),
        ("if (bump(1) == 9 || bump(1) == 9) r <= 1;", [0, 2, 4]),
        ("if (a == 0 && bump(1) == 1) r <= 1;", [0, 0, 0]),
        ("r <= bump(3) > 5 ? bump(1) : 0;", [0, 3, 7]),
        ("case (bump(2)) 2: r <= 1; default: r <= 2; endcase", [0, 2, 4]),
    ],
)
def test_a_condition_that_changes_variables_does_so_once(
    tmp_path: Path, statement: str, counts: list[int]
) -> None:
    body = f"{COUNTING}int r;\nalways @(posedge clk) begin {statement} end"
    assert [row["n"] for row in run(tmp_path, body, [5, 5, 5])] == counts


@pytest.mark.parametrize("statement", ["v[bump(1)] += 2;", "v[bump(1)]++;"])
def test_an_index_that_changes_variables_is_refused_where_it_would_count_twice(
    tmp_path: Path, statement: str
) -> None:
    body = f"{COUNTING}int v[4];\nalways @(posedge clk) begin {statement} end"
    with pytest.raises(UnsupportedDesign, match=r"m.sv:5:\d+: an index that changes variables"):
        run(tmp_path, body, [0])


def test_arguments_have_the_width_of_what_they_are_connected_to(tmp_path: Path) -> None:
    body = (
        "reg [11:0] r; reg signed [3:0] z; reg [7:0] q; reg [3:0] y;\n"
        "task f(output [31:0] o, inout signed [7:0] i); o = 32'hfffff123; i = i - 1; endtask\n"
        "always @(posedge clk) begin z = a; f(r, z); f(q, y); y = a; end"
    )
    row = run(tmp_path, body, [9, 9])[1]
    assert (row["r"], row["z"], row["q"]) == (0x123, 8, 0x23)


def test_actions_of_assertions_take_place_or_are_refused(tmp_path: Path) -> None:
    body = "int n = 0;\nalways @(posedge clk) begin assert (a < 5) else n++; end"
    assert [row["n"] for row in run(tmp_path, body, [9, 3, 9, 9])] == [0, 1, 1, 2]
    body = "int n = 0;\nassert property (@(posedge clk) a == 0) else n++;"
    with pytest.raises(UnsupportedDesign, match=r"m.sv:3:\d+: a property's action that changes"):
        run(tmp_path, body, [0])


def test_replicated_patterns_have_all_their_elements(tmp_path: Path) -> None:
    body = (
        "logic [7:0] n[2][3] = '{'{1, 2, 3}, '{3{8'd4}}};\nlogic [3:0] t[4]; logic [7:0] q, o;\n"
        "logic [3:0] w;\n"
        "always_comb begin t = '{2{a, 4'd1}}; q = t[2]; o = n[1][2]; w = '{4{1'b1}}; end"
    )
    row = run(tmp_path, body, [6, 6])[1]
    assert (row["q"], row["t[3]"], row["o"], row["w"]) == (6, 1, 4, 15)


def test_texts_of_any_bytes_are_numbers(tmp_path: Path) -> None:
    body = 'logic [23:0] t;\nalways_comb t = "\\xe9\\x80A";'
    assert run(tmp_path, body, [0])[0]["t"] == 0xE98041


def test_variables_that_keep_their_values_between_calls_are_refused(tmp_path: Path) -> None:
    body = (
        "function int add(int by);\n int sum = 1;\n sum += by;\n return sum;\nendfunction\n"
        "int r;\nalways @(posedge clk) r <= add(a);"
    )
    with pytest.raises(UnsupportedDesign, match=r"m.sv:3:\d+: 'sum', which gets its initial value"):
        run(tmp_path, body, [1])
    automatic = body.replace("function int", "function automatic int")
    assert [row["r"] for row in run(tmp_path, automatic, [1, 2, 3])] == [0, 2, 3]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (
            "int r;\nalways @(posedge clk) if (a == 1) r = 5;\nalways @(posedge clk) r <= 7;",
            r"m.sv:4:\d+: 'r' is written here and by the one at .*m.sv:3:\d+, by = in one of both",
        ),
        (
            "reg [3:0] f, g, h;\nalways @* f = a;\nalways @(f, g) begin h = g; g = f; end",
            r"m.sv:4:\d+: 'g', which the process waits for, is read before it is written there",
        ),
        (
            "int r;\nalways @(posedge clk) if (a == 0) r <= 1; else r = 2;",
            r"m.sv:3:\d+: 'r' is assigned by = and by <= in one process",
        ),
        (
            'import "DPI-C" function int f(input int a);\nint r;\nalways @(posedge clk) r <= f(a);',
            r"m.sv:4:\d+: 'f', a function in C \(DPI\)",
        ),
    ],
)
def test_writes_that_meet_and_functions_in_c_are_refused(
    tmp_path: Path, body: str, told: str
) -> None:
    with pytest.raises(UnsupportedDesign, match=told):
        run(tmp_path, body, [0])


def test_of_two_processes_that_write_the_same_bits_the_later_one_counts(tmp_path: Path) -> None:
    body = (
        "reg [7:0] mem[0:3];\n"
        "always @(posedge clk) if (a[0]) mem[a[3:2]][3:0] <= 5; else mem[3] <= 8'h77;\n"
        "always @(posedge clk) if (a[1]) mem[a[3:2]] <= 8'h90 + a;"
    )
    rows = run(tmp_path, body, [0b0001, 0b0100, 0b0110, 0b0111, 0b1010, 0b1001, 0])
    found = [tuple(row[f"mem[{i}]"] for i in range(4)) for row in rows]
    assert found == [  # as in Verilator
        (0, 0, 0, 0), (5, 0, 0, 0), (5, 0, 0, 0x77), (5, 0x96, 0, 0x77), (5, 0x97, 0, 0x77),
        (5, 0x97, 0x9A, 0x77), (5, 0x97, 0x95, 0x77),
    ]  # fmt: skip
    source = tmp_path / "m.sv"
    _, model = load(read_sources([source], "m"))
    assert any("'mem' is written here and by the one at" in notice for notice in model.notices)


def test_variables_of_files_and_packages_keep_their_values(tmp_path: Path) -> None:
    source = tmp_path / "m.sv"
    source.write_text(
        "bit [3:0] n = 3;\npackage p; int sum = 1; endpackage\n"
        "module m(input clk, input [3:0] a, output reg [3:0] q);\n"
        "always @(posedge clk) begin p::sum <= p::sum + a; q <= n + p::sum; end\nstart s();\n"
        "endmodule\nprogram start; initial n = 4; endprogram\n"
    )
    _, model = load(read_sources([source], "m"))
    simulator = Simulator(model, {})
    state, found = simulator.start(), []
    for value in (2, 1, 0):
        cycle = simulator.cycle(state, {"clk": 1, "a": value})
        found.append(dict(zip(simulator.signal_names, cycle.signals, strict=True)))
        state = cycle.after
    assert [row["q"] for row in found] == [0, 5, 7]
    assert all("sum" not in row for row in found)


def test_sources_without_a_module_that_stands_alone_are_told_by_line(tmp_path: Path) -> None:
    source = tmp_path / "m.sv"
    source.write_text("\nmodule m #(parameter P)(input a); endmodule\n")
    with pytest.raises(InvalidArgument, match=r"define the module m \(.*m.sv:2\); name a module"):
        find_top(read_sources([source], "m"))


def test_processes_that_write_other_bits_are_taken(tmp_path: Path) -> None:
    body = (
        "reg [1:0] r = 0;\nalways @(posedge clk) r[1] <= ~r[1];\n"
        "always @(posedge clk) if (a == 1) r[0] <= 1;"
    )
    assert [row["r"] for row in run(tmp_path, body, [1, 0, 0])] == [0, 3, 1]


def test_properties_of_a_generate_loop_have_registers_of_their_own(tmp_path: Path) -> None:
    source = tmp_path / "m.sv"
    source.write_text(
        "module m(input clk, input [3:0] a);\nreg [3:0] b;\nalways @(posedge clk) b <= a;\n"
        "for (genvar i = 0; i < 4; i++) begin\n"
        "assert property (@(posedge clk) a[i] |=> b[i]);\nend\nendmodule\n"
    )
    _, model = load(read_sources([source], "m"))
    simulator = Simulator(model, {str(key): term for key, term in model.asserts.items()})
    state = simulator.start()
    for value in (1, 2, 4, 8, 15, 0, 5):
        cycle = simulator.cycle(state, {"clk": 1, "a": value})
        assert not any(cycle.violations)
        state = cycle.after


def test_methods_of_enumerations_go_by_the_order_of_their_members(tmp_path: Path) -> None:
    body = (
        "typedef enum logic [3:0] {A = 1, B = 4, C = 2, D = 7} letter; letter e;\n"
        "logic [3:0] n, p, third, ends; logic [2:0] many;\n"
        "always_comb begin e = letter'(a); n = e.next(); p = e.prev; third = e.next(3);\n"
        "ends = e.first() + e.last(); many = e.num(); end"
    )
    rows = run(tmp_path, body, [1, 4, 2, 7, 5])
    assert [(row["n"], row["p"], row["third"]) for row in rows] == [
        (4, 7, 7), (2, 1, 1), (7, 4, 4), (1, 2, 2), (0, 0, 0),
    ]  # fmt: skip
    assert {(row["ends"], row["many"]) for row in rows} == {(8, 4)}
    with pytest.raises(UnsupportedDesign, match=r"m.sv:3:\d+: .*system function name"):
        run(tmp_path, 'typedef enum {A, B} t; t e;\nalways_comb if (e.name() == "A") e = B;', [0])
