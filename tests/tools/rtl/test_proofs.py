"""Proofs that a point is dead: what a wrong one would say is live in these circuits."""

from __future__ import annotations

from pathlib import Path

import pytest

from hagane.tools.rtl import Budget, cover, read_sources
from hagane.tools.rtl.search.search import Found


def search(tmp_path: Path, text: str, *assertions: str, cycles: int = 6) -> Found:
    path = tmp_path / "m.sv"
    path.write_text(text)
    result = cover(read_sources([path], "m"), Budget(300.0, cycles), assertions=assertions)
    return result.found


def standing(found: Found, label: str) -> tuple[str, int | None]:
    """Return how the goal whose description has ``label`` stands, and a proof's cycles."""
    for goal in found.covered:
        if label in str(goal):
            return "covered", None
    for goal, dead in found.dead.items():
        if label in str(goal):
            return "dead", dead.cycles
    (goal,) = (goal for goal in found.unknown if label in str(goal))
    return "unknown", None


STRAP = """
module m(input logic clk, rst_n, input logic [1:0] strap, output logic hit);
  logic [1:0] mode;
  always_ff @(posedge clk or negedge rst_n) if (!rst_n) mode <= strap; else mode <= mode;
  assign hit = mode == 2;
endmodule
"""


def test_what_only_another_asynchronous_reset_reaches_is_not_dead(
    tmp_path: Path, no_simulator: None
) -> None:
    del no_simulator
    found = search(tmp_path, STRAP, "mode != 2")
    assert standing(found, "mode != 2") == ("covered", None)


BOOT = """
module m(input logic clk, output logic booted);
  logic boot = 1'b1;
  always_ff @(posedge clk) boot <= 1'b0;
  assign booted = !boot;
endmodule
"""


def test_what_holds_only_before_the_first_row_is_unknown_and_not_dead(
    tmp_path: Path, no_simulator: None
) -> None:
    del no_simulator
    found = search(tmp_path, BOOT, "!boot")
    assert standing(found, "!boot") == ("unknown", None)


# From 0 the count runs 0, 1, 2, 3 and stays; 7 has no way in.
LATE = """
module m(input logic clk, rst_n, output logic [2:0] count);
  always_ff @(posedge clk or negedge rst_n)
    if (!rst_n) count <= 0;
    else if (count == 7) count <= 7;
    else if (count < 3) count <= count + 1;
endmodule
"""


def test_an_induction_does_not_reach_back_further_than_its_base(
    tmp_path: Path, no_simulator: None
) -> None:
    del no_simulator
    for cycles in (1, 2, 6):
        found = search(tmp_path, LATE, "count != 3", "count != 7", cycles=cycles)
        assert standing(found, "count != 3")[0] == "covered"
        assert standing(found, "count != 7") == ("dead", None)


# The count takes all its values, in an order that no loop of constant steps has: six cycles of
# look-ahead prove nothing for good.
SLOW = """
module m(input logic clk, rst_n, stop, output logic flag);
  logic [39:0] count;
  always_ff @(posedge clk or negedge rst_n)
    if (!rst_n) count <= 0; else if (stop) count <= 0; else count <= 40'd5 * count + 1;
  assign flag = count == 40'd800000000000;
endmodule
"""


@pytest.mark.long
def test_a_point_beyond_the_look_ahead_is_dead_within_those_cycles_only(
    tmp_path: Path, no_simulator: None
) -> None:
    del no_simulator
    found = search(tmp_path, SLOW, "!flag")
    assert standing(found, "!flag") == ("dead", 6)
