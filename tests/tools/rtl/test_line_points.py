"""Line points of simulators find their places in the model."""

from __future__ import annotations

from pathlib import Path

from hagane.tools.rtl.circuit.elaborate import Position, read_sources
from hagane.tools.rtl.circuit.simulate import Simulator
from hagane.tools.rtl.cover import load
from hagane.tools.rtl.replay.replay import line_points
from hagane.tools.rtl.replay.verilator import LinePoint, Run

TEXT = """\
module m #(parameter W = 0) (input logic a, b, c, input logic [3:0] d, output logic [3:0] y, z);
  assign y = a ? (b ? d + 4'd1 : d) : c ? d - 4'd1 : 4'd0;
  assign z = W ? d :
             (b ? d : 4'd3);
endmodule
"""


def test_the_operands_of_choices_are_found_where_later_verilators_count_them(
    tmp_path: Path,
) -> None:
    file = tmp_path / "m.sv"
    file.write_text(TEXT)
    _, model = load(read_sources([file], "m"))
    keys = list(model.points)
    # Verilator counts an operand at its operator.
    expected = {
        (2, 21, "cond_then"): (14, "?: true"),
        (2, 25, "cond_then"): (19, "?: true"),
        (2, 34, "cond_else"): (19, "?: false"),
        (2, 41, "cond_else"): (14, "?: false"),
        (2, 45, "cond_then"): (39, "?: true"),
        (2, 54, "cond_else"): (39, "?: false"),
        (3, 18, "cond_then"): (14, "?: true"),
        (3, 19, "cond_else"): (14, "?: false"),
        (4, 19, "cond_then"): (15, "?: true"),
        (4, 23, "cond_else"): (15, "?: false"),
    }
    points = {
        (line, column, label): LinePoint(Position(str(file), line, column), label, "")
        for line, column, label in expected
    }
    run = Run("Verilator", dict.fromkeys(points.values(), 1), tmp_path / "none.vcd", "")
    matched, missing = line_points(Simulator(model, {}), run)
    assert missing == []
    for place, point in points.items():
        found = [keys[index] for index in matched[point]]
        assert [(key.position.column, key.label) for key in found] == [expected[place]], place
