"""Inputs held for long, assertions whose condition is constant, assertions no simulator parses."""

from __future__ import annotations

from pathlib import Path

import pytest

from hagane.tools.rtl.circuit.elaborate import read_sources
from hagane.tools.rtl.circuit.simulate import Simulator, Violation
from hagane.tools.rtl.compiled.engine import Engine
from hagane.tools.rtl.cover import cover, load
from hagane.tools.rtl.errors import UnsupportedDesign
from hagane.tools.rtl.replay.blanked import without_properties
from hagane.tools.rtl.search.assertions import violations
from hagane.tools.rtl.search.search import Budget, toggle_goals

ALWAYS = """
module m(input clk, rst, a, output reg [1:0] q, output reg x, y);
  always @(posedge clk) if (rst) q <= 0; else q <= q + a;
  always @* begin x = 0; y = 0; case (q) 0: x = 1; 1: y = 1; default: ; endcase end
  always @(posedge clk) if (!rst) assert (!(x && y));
endmodule
"""
PICTURE = """
module m(input clk, rst, ce, output reg [9:0] x, y, output reg vsync);
  always @(posedge clk) if (rst) begin x <= 0; y <= 0; vsync <= 1; end else if (ce) begin
    if (x == 799) begin x <= 0; if (y == 524) y <= 0; else y <= y + 1; end else x <= x + 1;
    vsync <= !(y >= 490 && y < 492);
  end
endmodule
"""
PROPERTIES = """
module m(input clk, rst, req, gnt, output reg [2:0] q);
  default clocking cb @(posedge clk); endclocking
  sequence granted; req ##[1:3] gnt; endsequence
  property answers; disable iff (rst)
    req |-> granted; endproperty
  a: assert property (answers) else $error("late");
  always @(posedge clk) assume property (rst |-> q < 8);
  always @(posedge clk) if (rst) q <= 0; else if (req && gnt) q <= q + 1; else if (q == 5) q <= 0;
  c: cover property (req ##1 !req ##1 gnt);
endmodule
"""
FUNCTION = """
module m(input clk, rst, input [1:0] v, output reg [3:0] q);
  function automatic [3:0] code(input [1:0] d);
    case (d)
      0: code = 3;
      1: code = 6;
      2: code = 11;
      default: code = 15;
    endcase
  endfunction
  always @(posedge clk) if (rst) q <= 0; else q <= code(v);
endmodule
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "m.sv"
    path.write_text(text)
    return path


def test_an_assertion_that_cannot_fail_fails_in_no_row(tmp_path: Path) -> None:
    _, model = load(read_sources([written(tmp_path, ALWAYS)], "m"))
    failing = violations(model, [])
    named = {Violation(name): term for name, term in failing.items()}
    engine = Engine(model, {**model.points, **toggle_goals(model), **named})
    rows = engine.rows([{"rst": 1}, {"a": 1}, {"a": 1}, {"rst": 1}])
    simulator = Simulator(model, failing)
    cycles, _ = engine.trace(rows, engine.warm(rows[0]))
    expected = simulator.run(engine.test(rows))
    assert [cycle.violations for cycle in cycles] == [cycle.violations for cycle in expected]
    assert not any(any(cycle.violations) for cycle in cycles)


def test_the_last_row_of_a_picture_is_reached_by_inputs_that_are_held(tmp_path: Path) -> None:
    sources = read_sources([written(tmp_path, PICTURE)], "m")
    result = cover(sources, Budget(12.0))
    kinds = {status.where.rpartition("/")[2]: status.status for status in result.statuses}
    assert "dead" not in kinds.values()
    far = [s for s in result.statuses if s.status == "reachable" and s.where == "vsync"]
    if result.replayed is not None:  # without a simulator no point counts as covered
        assert [status.cycles for status in far] == [392_004]
        assert "inputs held so long" in far[0].why


def test_sources_keep_all_else_in_its_place_without_properties(tmp_path: Path) -> None:
    path = written(tmp_path, PROPERTIES)
    sources = without_properties(read_sources([path], "m"), tmp_path / "copies")
    (copy,) = sources.files
    head, *lines = copy.read_text().split("\n")
    assert head == f'`line 1 "{path}" 0'
    given = PROPERTIES.split("\n")
    assert [line for line in lines if line.strip()] == [
        line if "assume" not in line else "  always @(posedge clk)" + " " * 32 + ";"
        for line in given
        if line.strip() and not any(w in line for w in ("granted", "property ans", "assert", "c:"))
    ]
    assert lines.index(given[8]) == 8
    plain = read_sources([written(tmp_path, ALWAYS)], "m")
    assert without_properties(plain, tmp_path / "others") == plain


@pytest.mark.usefixtures("verilator")
def test_circuits_whose_properties_no_simulator_parses_are_replayed(tmp_path: Path) -> None:
    result = cover(read_sources([written(tmp_path, PROPERTIES)], "m"), Budget(60.0))
    assert sum(row["unknown"] for row in result.counts().values()) == 0
    assert result.counts()["cover"]["covered"] == 1
    assert [standing.status for standing in result.assertions] == ["violated"]


@pytest.mark.usefixtures("verilator")
def test_items_of_a_case_in_a_function_count_by_the_waves(tmp_path: Path) -> None:
    result = cover(read_sources([written(tmp_path, FUNCTION)], "m"), Budget(60.0))
    assert result.defects == []
    assert sum(row["unknown"] for row in result.counts().values()) == 0


def test_a_clocking_block_with_signals_is_refused_with_its_place(tmp_path: Path) -> None:
    text = PROPERTIES.replace(
        "@(posedge clk); endclocking", "@(posedge clk); input req; endclocking"
    )
    with pytest.raises(UnsupportedDesign, match=r"m.sv:3:20: a clocking block with signals, 'cb'"):
        load(read_sources([written(tmp_path, text)], "m"))
