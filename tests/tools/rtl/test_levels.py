"""Falling edges, and signals that follow the level of a clock."""

from __future__ import annotations

from pathlib import Path

import pytest

from hagane.tools.rtl.circuit.elaborate import Sources, read_sources
from hagane.tools.rtl.circuit.simulate import Simulator
from hagane.tools.rtl.cover import load
from hagane.tools.rtl.errors import UnsupportedDesign
from hagane.tools.rtl.replay.cocotb_tests import write_cocotb
from hagane.tools.rtl.search.search import toggle_goals

from .test_language import replayed

FALLING = """
module m(input logic clk, input logic rst_n, input logic [3:0] d, output logic [3:0] q,
         output logic k);
  logic inverted;
  assign inverted = ~clk;
  always_ff @(posedge inverted or negedge rst_n)
    if (!rst_n) q <= 0; else if (d != 3) q <= q + d;
  assign k = clk & q[0];
endmodule
"""
TWO = """
module m(input logic sclk, input logic clk, input logic data, input logic [3:0] d,
         output logic [3:0] q, output logic [3:0] p);
  always_ff @(negedge sclk) q <= {q[2:0], data};
  always_ff @(posedge clk) if (d == 7) p <= q; else p <= p + d;
endmodule
"""
LATCH = """
module m(input logic clk, input logic en, input logic [1:0] d, output logic [1:0] q,
         output logic [1:0] l, output logic [1:0] s, output logic gate);
  always_latch if (clk) l = d ^ q;
  always_latch if (!clk && en) s = d;
  assign gate = clk & en;
  always_ff @(posedge clk) q <= d + l + s;
endmodule
"""


def written(text: str, folder: Path) -> Sources:
    (folder / "m.sv").write_text(text)
    return read_sources([folder / "m.sv"], "m")


@pytest.mark.usefixtures("verilator")
@pytest.mark.parametrize("text", [FALLING, TWO, LATCH], ids=["falling", "two", "latch"])
def test_values_are_as_in_verilator(text: str, tmp_path: Path) -> None:
    replay, run = replayed(written(text, tmp_path), 80, tmp_path, "verilator")
    assert replay.differences == ()
    assert "PASSED" in run.output


def test_registers_count_at_the_falling_edge(tmp_path: Path) -> None:
    design, model = load(written(FALLING, tmp_path))
    assert (model.clocks, model.falling) == (("clk",), frozenset({"clk"}))
    simulator = Simulator(model, {})
    rows = [{"rst_n": 0, "d": 0}, *({"rst_n": 1, "d": d} for d in (5, 3, 2, 0))]
    (run,) = simulator.run_all([rows])
    at = simulator.signal_names.index("q")
    assert [cycle.signals[at] for cycle in run] == [0, 0, 5, 5, 7]
    text = write_cocotb(model, simulator, [tuple(rows)], [run], "m", wrapped=False)
    assert "CLOCKS = {'clk': 1}" in text
    del design


def test_latches_that_the_clock_opens_take_what_the_row_has(tmp_path: Path) -> None:
    _, model = load(written(LATCH, tmp_path))
    simulator = Simulator(model, {})
    (run,) = simulator.run_all([[{"d": 1, "en": 1}, {"d": 2, "en": 0}, {"d": 3, "en": 1}]])
    names = simulator.signal_names
    found = [dict(zip(names, cycle.signals, strict=True)) for cycle in run]
    for row, cycle in zip((1, 2, 3), found, strict=True):
        assert cycle["l"] == row ^ cycle["q"]
    assert [cycle["s"] for cycle in found] == [1, 1, 3]


def test_what_follows_the_clock_is_not_said_to_be_dead(tmp_path: Path) -> None:
    _, model = load(written(LATCH, tmp_path))
    toggled = {goal.signal for goal in toggle_goals(model)}  # type: ignore[union-attr]
    assert toggled == {"d", "en", "l", "q", "s"}
    assert "no points of toggle coverage, as they follow a clock: gate" in model.notices
    assert not any(key.kind == "branch" for key in model.points)
    assert any("a branch that follows the level of a clock is no point" in n for n in model.notices)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("always_ff @(posedge clk) q <= d & clk;", "reads the level of the clock 'clk' at an edge"),
        ("always_ff @(posedge clk) q <= d; always_ff @(negedge clk) p <= d;",
         "waits for the falling edge of the clock 'clk', others for the other edge"),
    ],
)  # fmt: skip
def test_both_edges_and_levels_in_registers_are_refused(
    body: str, message: str, tmp_path: Path
) -> None:
    text = f"module m(input logic clk, d, output logic q, p); {body} endmodule"
    with pytest.raises(UnsupportedDesign, match=message):
        load(written(text, tmp_path))
