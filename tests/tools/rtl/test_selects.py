"""Writes to parts of parts of packed arrays, at fixed and at drawn places."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from hagane.tools.rtl.circuit.elaborate import read_sources
from hagane.tools.rtl.circuit.simulate import Simulator
from hagane.tools.rtl.cover import load

MODULE = """
module parts (
  input logic [23:0] d, input logic [1:0] i, input logic [1:0] j, output logic [23:0] y
);
  logic [3:0][2:0][1:0] p;
  always_comb begin
    p = d;
    {write};
  end
  assign y = p;
endmodule
"""

# A write, and the lowest bit and the number of bits that it goes to, by i and j; None: none.
WRITES = {
    "p[i][1][1] = 1'b1": lambda i, j: (6 * i + 3, 1),
    "p[i][2:1] = 4'hf": lambda i, j: (6 * i + 2, 4),
    "p[1][j] = 2'd3": lambda i, j: (6 + 2 * j, 2) if j < 3 else None,
    "p[i][j] = 2'd3": lambda i, j: (6 * i + 2 * j, 2) if j < 3 else None,
    "p[2][j][0] = 1'b1": lambda i, j: (12 + 2 * j, 1) if j < 3 else None,
    "p[3][1][i] = 1'b1": lambda i, j: (20 + i, 1) if i < 2 else None,
    "p[i][j][i] = 1'b1": lambda i, j: (6 * i + 2 * j + i, 1) if i < 2 and j < 3 else None,
    "p[i][0][j[0]] = 1'b1": lambda i, j: (6 * i + j % 2, 1),
}


@pytest.mark.parametrize("write", WRITES)
def test_a_part_of_a_part_is_written_and_nothing_beside_it(write: str, tmp_path: Path) -> None:
    path = tmp_path / "parts.sv"
    path.write_text(MODULE.replace("{write}", write))
    _, model = load(read_sources([path], "parts"))
    simulator, draw = Simulator(model, {}), random.Random(5)
    at = simulator.signal_names.index("y")
    for i in range(4):
        for j in range(4):
            d = draw.getrandbits(24)
            place = WRITES[write](i, j)
            ones = 0 if place is None else ((1 << place[1]) - 1) << place[0]
            row = {"d": d, "i": i, "j": j}
            assert simulator.cycle({}, row).signals[at] == d | ones


CASES = """
module cases (input logic signed [7:0] v, output logic [1:0] mixed, output logic [1:0] same);
  always_comb case (v) 9'd1: mixed = 1; 9'sd511: mixed = 2; default: mixed = 3; endcase
  always_comb case (v) 9'sd1: same = 1; 9'sd511: same = 2; default: same = 3; endcase
endmodule
"""


def test_one_unsigned_item_makes_all_of_a_case_unsigned(tmp_path: Path) -> None:
    # Icarus agrees; Verilator extends each item by its own sign.
    path = tmp_path / "cases.sv"
    path.write_text(CASES)
    _, model = load(read_sources([path], "cases"))
    simulator = Simulator(model, {})
    mixed, same = (simulator.signal_names.index(name) for name in ("mixed", "same"))
    found = {}
    for v in (0xFF, 1, 2):
        values = simulator.cycle({}, {"v": v}).signals
        found[v] = values[mixed], values[same]
    assert found == {0xFF: (3, 2), 1: (1, 1), 2: (3, 3)}
