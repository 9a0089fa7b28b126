"""Constants with digits that are x or z, beside two-state values: as simulators have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hagane.tools.rtl.circuit.elaborate import Sources, read_sources
from hagane.tools.rtl.circuit.simulate import Simulator
from hagane.tools.rtl.cover import load
from hagane.tools.rtl.replay.icarus import find_icarus

from .test_language import replayed

TEXT = """
module m(input logic clk, input logic [3:0] a,
         output logic e, f, k, n, o, p, r, output logic [2:0] c, d, w);
  logic g, h;  // x in four-state simulators
  localparam logic [3:0] P = 4'b1x11;
  assign e = a === 4'b1x01;
  assign f = a !== 4'b10z1;
  assign g = a == 4'b1x01;
  assign h = a != 4'bx001;
  assign k = P === a;
  assign n = P === 4'b1x11;
  assign o = 4'b1z11 !== P;
  assign p = $isunknown(P) & !$isunknown(a);
  assign r = (a[0] === 1'bx) ? 1'b0 : a[1];
  always_comb case (a) 4'b1x01: c = 1; 4'b10z0: c = 2; 4'd3: c = 3; default: c = 0; endcase
  always_comb casez (a) 4'b1x0?: d = 1; 4'b1?z0: d = 2; 4'bx: d = 4; default: d = 0; endcase
  always_comb casex (a) 4'b1x0?: w = 1; 4'b1?z0: w = 2; 4'bxx11: w = 4; default: w = 0; endcase
endmodule
"""


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    (tmp_path / "m.sv").write_text(TEXT)
    return read_sources([tmp_path / "m.sv"], "m")


def expected(a: int) -> dict[str, int]:
    """Return the outputs: by the tables of IEEE 1800-2017, 11.4.5 and 12.5.1, x at the end as 0."""
    high, second, low = a >> 3, a >> 1 & 1, a & 1
    return {
        "e": 0, "f": 1, "g": 0, "h": int(a & 7 != 1), "k": 0, "n": 1, "o": 1, "p": 1, "r": second,
        "c": 3 if a == 3 else 0,
        "d": 2 if high and not low else 0,
        "w": 1 if high and not second else 2 if high and not low else 4 if second and low else 0,
    }  # fmt: skip


def test_digits_that_are_x_or_z_equal_no_two_state_value(sources: Sources) -> None:
    _, model = load(sources)
    simulator = Simulator(model, {})
    (run,) = simulator.run_all([[{"a": a} for a in range(16)]])
    for a, cycle in enumerate(run):
        signals = dict(zip(simulator.signal_names, cycle.signals, strict=True))
        assert {name: signals[name] for name in expected(a)} == expected(a), a


def test_only_values_are_said_to_be_taken_as_zero(sources: Sources) -> None:
    _, model = load(sources)
    places = [notice.partition(".sv:")[2].partition(" ")[0] for notice in model.notices]
    assert places == ["8:19:", "9:19:"]


@pytest.mark.skipif(find_icarus() is None, reason="Icarus is not installed (package 'iverilog')")
def test_they_are_compared_as_in_icarus(sources: Sources, tmp_path: Path) -> None:
    replay, run = replayed(sources, 60, tmp_path, "icarus")
    assert replay.differences == ()
    assert "PASSED" in run.output
