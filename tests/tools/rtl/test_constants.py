"""Constants of the elaboration: real parameters, and blocks at the start that they decide."""

from __future__ import annotations

from pathlib import Path

import pytest

from hagane.symbolic.term import FALSE
from hagane.tools.rtl.circuit.elaborate import read_sources
from hagane.tools.rtl.circuit.simulate import Simulator
from hagane.tools.rtl.cover import load
from hagane.tools.rtl.errors import UnsupportedDesign

TEXT = """\
module m #(parameter P = 125000/6.4, parameter CHECKED = 0) (
  input logic clk, input logic [3:0] a, output logic [15:0] q, output logic [15:0] z);
  localparam real R = 2.5;
  initial begin
    if (CHECKED) begin
      $display("never");
    end
  end
  assign z = int'(R) + a;
  always_ff @(posedge clk) q <= P;
endmodule
"""


def test_a_real_parameter_is_rounded_where_it_is_assigned(tmp_path: Path) -> None:
    (tmp_path / "m.sv").write_text(TEXT)
    _, model = load(read_sources([tmp_path / "m.sv"], "m"))
    simulator = Simulator(model, {})
    last = simulator.run_all([({"a": 0}, {"a": 4})])[0][-1]
    signals = dict(zip(simulator.signal_names, last.signals, strict=True))
    assert (signals["q"], signals["z"]) == (19531, 7)


def test_a_branch_that_a_parameter_excludes_at_the_start_is_never_met(tmp_path: Path) -> None:
    (tmp_path / "m.sv").write_text(TEXT)
    _, model = load(read_sources([tmp_path / "m.sv"], "m"))
    found = {key.label: term for key, term in model.points.items() if key.position.line == 5}
    assert found["if"] is FALSE


def test_a_real_number_that_is_computed_is_refused_by_place(tmp_path: Path) -> None:
    text = TEXT.replace("int'(R) + a", "a * 1.5")
    (tmp_path / "m.sv").write_text(text)
    with pytest.raises(UnsupportedDesign, match=r"m\.sv:9:"):
        load(read_sources([tmp_path / "m.sv"], "m"))
