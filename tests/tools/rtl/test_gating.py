"""Gated clocks: registers move in the rows whose edge a latch and a gate let through."""

from __future__ import annotations

from pathlib import Path

import pytest

from hagane.tools.rtl.circuit.drivers import PREVIOUS
from hagane.tools.rtl.circuit.elaborate import Sources, read_sources
from hagane.tools.rtl.circuit.simulate import Simulator
from hagane.tools.rtl.cover import load
from hagane.tools.rtl.errors import UnsupportedDesign
from hagane.tools.rtl.replay.icarus import find_icarus

from .test_language import replayed

_PORTS = "input logic clk, input logic [3:0] en, d, output logic [3:0] q, r, output logic o"
_START = "initial begin q = 0; r = 0; end"
_GATES = {
    "a latch and an and": "logic g, l; always_latch if (!clk) l = en[0]; assign g = clk & l;",
    "enabled by a register": "logic g, l; always_latch if (!clk) l = r[0]; assign g = clk & l;",
    "a latch written at once": "logic g, l; always_latch if (!clk) l <= en[1]; assign g = l & clk;",
    "a chosen clock": "logic g, l; always_latch if (!clk) l = en[0]; assign g = l ? clk : 1'b0;",
    "gate behind gate": (
        "logic g, h, l, k; always_latch if (!clk) begin l = en[0]; k = d[0]; end "
        "assign h = clk & l; assign g = h & k;"
    ),
}
_FALLING = "logic g, l; always_latch if (clk) l = en[0] ^ q[0]; assign g = ~(~clk & l);"


def sources(folder: Path, body: str, edge: str = "posedge") -> Sources:
    path = folder / "m.sv"
    path.write_text(
        f"module m({_PORTS});\n  {body}\n  {_START}\n  assign o = g;\n"
        f"  always_ff @({edge} g) if (d[3]) q <= q + d; else q <= d;\n"
        f"  always_ff @({edge} clk) r <= r ^ q;\nendmodule\n"
    )
    return read_sources([path], "m")


@pytest.mark.parametrize("body", _GATES.values(), ids=_GATES)
def test_a_register_moves_where_the_gate_was_open_before_the_edge(
    body: str, tmp_path: Path
) -> None:
    _, model = load(sources(tmp_path, body))
    assert model.clocks == ("clk",)
    simulator = Simulator(model, {})
    state = {**dict.fromkeys(model.state, 0), PREVIOUS + "q": 2, PREVIOUS + "r": 1}
    opened = simulator.cycle(state, {"en": 3, "d": 5}).after
    assert (opened[PREVIOUS + "q"], opened[PREVIOUS + "r"]) == (5, 3)
    shut = simulator.cycle({**state, PREVIOUS + "r": 0}, {"en": 0, "d": 5}).after
    assert (shut[PREVIOUS + "q"], shut[PREVIOUS + "r"]) == (2, 2)


def test_points_behind_a_gate_count_where_it_is_open(tmp_path: Path) -> None:
    _, model = load(sources(tmp_path, _GATES["a latch and an and"]))
    simulator = Simulator(model, {})
    state = dict.fromkeys(model.state, 0)

    def statements(**row: int) -> set[int]:
        met = simulator.cycle(state, row).points
        return {
            key.position.line
            for key, found in zip(simulator.point_keys, met, strict=True)
            if found and key.kind == "statement"
        }

    assert {5, 6} & statements(en=1, d=1) == {5, 6}
    assert {5, 6} & statements(en=0, d=1) == {6}


@pytest.mark.skipif(find_icarus() is None, reason="Icarus is not installed (package 'iverilog')")
@pytest.mark.parametrize(
    ("body", "edge"),
    [*((body, "posedge") for body in _GATES.values()), (_FALLING, "negedge")],
    ids=[*_GATES, "falling edges"],
)
def test_gated_registers_are_as_in_icarus_on_random_rows(
    body: str, edge: str, tmp_path: Path
) -> None:
    replay, run = replayed(sources(tmp_path, body, edge), 200, tmp_path, "icarus")
    assert replay.differences == ()
    assert "PASSED" in run.output


@pytest.mark.parametrize(
    "body",
    [
        "logic g; assign g = clk & en[0];",
        "logic g; assign g = clk & r[0];",
        "logic g; assign g = clk ^ en[0];",
        "logic g, l; always_latch if (clk) l = en[0]; assign g = clk & l;",
        "logic g; always_ff @(posedge clk) g <= ~g;",
    ],
    ids=["an input", "a register", "either edge", "an open latch", "a divided clock"],
)
def test_a_gate_that_may_change_while_the_clock_is_active_is_refused(
    body: str, tmp_path: Path
) -> None:
    with pytest.raises(
        UnsupportedDesign, match=r"waits for 'g', .* in a latch that is closed while the clock is"
    ):
        load(sources(tmp_path, body))
