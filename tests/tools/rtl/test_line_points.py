"""Line points of simulators find their places in the model."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hagane.tools.rtl.circuit.elaborate import Position, elaborate, read_sources
from hagane.tools.rtl.circuit.simulate import Simulator
from hagane.tools.rtl.cover import load
from hagane.tools.rtl.judge import NOT_OURS
from hagane.tools.rtl.replay.replay import line_points
from hagane.tools.rtl.replay.verilator import LinePoint, Run
from hagane.tools.rtl.result import Status
from hagane.tools.rtl.uncalled import settle_uncalled

TEXT = """\
`define P(a, b) ((a) ? x + (b) : y)
module m #(parameter W = 0) (
  input logic a, b, c, input logic [7:0] x, y, output logic [7:0] o, p, q, r, s, t, u);
  typedef struct packed { logic [3:0] h; logic [3:0] l; } st_t;
  st_t st; assign st = x;
  assign o = a ? (W ? x : y) >> 2 : (W ? x : y);
  assign p = a ? x :
             {8{1'b0}};
  assign q = a ? (b ? x + y : y) : c ? {2{x[3:0]}} : 8'd4;
  assign r = a ? `P(b, y) : b ? x & y : `P(c, x);
  assign s = a ? st.h : b ? $unsigned(x) : c ? x[3] : y;
  assign t = `P(a, b ? x : y);
  assign u = `P(b, y) - (c ? x : y) + (a ? y : x);
endmodule
"""


def test_choices_are_found_where_later_verilators_count_them(tmp_path: Path) -> None:
    file = tmp_path / "m.sv"
    file.write_text(TEXT)
    _, model = load(read_sources([file], "m"))
    keys = list(model.points)
    # Verilator counts both outcomes at the operator of the first operand, one column apart. Behind
    # a macro its columns are those of the expanded text.
    expected = {
        (6, 30): (6, 14),
        (6, 42): (6, 38),
        (7, 18): (7, 14),
        (9, 21): (9, 14),
        (9, 25): (9, 19),
        (9, 42): (9, 36),
        (10, 23): (10, 14),
        (10, 27): (10, 18),
        (10, 46): (10, 29),
        (10, 61): (10, 41),
        (11, 21): (11, 14),
        (11, 39): (11, 25),
        (11, 49): (11, 44),
        # Two choices in one use of a macro, one of them in its argument; one of three is counted.
        (12, 20): None,
        (12, 26): None,
        (13, 37): None,
    }
    points = {
        (place, outcome): LinePoint(
            Position(str(file), place[0], place[1] + behind), f"cond_{outcome}", ""
        )
        for place in expected
        for behind, outcome in ((0, "then"), (1, "else"))
    }
    run = Run("Verilator", dict.fromkeys(points.values(), 1), tmp_path / "none.vcd", "")
    matched, missing = line_points(Simulator(model, {}), run)
    assert len(missing) == 6
    for (place, outcome), point in points.items():
        found = [keys[index] for index in matched[point]]
        wanted = expected[place]
        label = {"then": "?: true", "else": "?: false"}[outcome]
        assert [(key.position.line, key.position.column, key.label) for key in found] == (
            [(*wanted, label)] if wanted else []
        ), place


IDLE = """\
module m(input logic clk, input logic [3:0] a, output logic [3:0] y);
  function automatic logic [3:0] leaf(input logic [3:0] b); return b == 2; endfunction
  function automatic logic [3:0] used(input logic [3:0] b); return leaf(~b); endfunction
  function automatic logic [3:0] idle(input logic [3:0] b); return deep(b); endfunction
  function automatic logic [3:0] deep(input logic [3:0] b); return b; endfunction
  function automatic int width(input int n); return n < 9 ? 3 : 4; endfunction
  localparam int W = width(9);
  task t(input logic [3:0] b); if (b == 2) $display("x"); endtask
  always_ff @(posedge clk) y <= used(a) + 4'(W);
  property same; @(posedge clk) a == 1 |=> y != 9; endproperty
  assert property (same);
endmodule
"""


def test_lines_of_functions_that_no_process_calls_and_of_properties_are_dead(
    tmp_path: Path,
) -> None:
    file = tmp_path / "m.sv"
    file.write_text(IDLE)
    places = (
        "2:61 block",
        "4:61 block",
        "5:61 block",
        "6:46 block",
        "8:32 if",
        "9:3 block",
        "10:3 block",
    )
    statuses = [
        Status(
            "line",
            f"{file}:{place}",
            "unknown",
            None,
            NOT_OURS,
            file=str(file),
            line=int(place.partition(":")[0]),
        )
        for place in places
    ]
    result: Any = SimpleNamespace(statuses=statuses)
    settle_uncalled(result, elaborate(read_sources([file], "m")))
    assert [(item.status, item.why) for item in result.statuses] == [
        ("unknown", NOT_OURS),
        ("dead", "no process calls 'idle'"),
        ("dead", "no process calls 'deep'"),
        ("dead", "no process calls 'width'"),
        ("dead", "no process calls 't'"),
        ("unknown", NOT_OURS),
        ("dead", "'same' is looked at by assertions alone"),
    ]
