"""Proofs together, and loops taken many times, against all states of small circuits."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path

import pytest

from hagane.tools.rtl import Budget, cover, read_sources
from hagane.tools.rtl.circuit.simulate import Bit, Simulator, goals_of
from hagane.tools.rtl.cover import load
from hagane.tools.rtl.search.search import Search, toggle_goals


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "m.sv"
    path.write_text(text)
    return path


def machine(seed: int) -> str:
    """Return a random circuit of three small registers, one of which only resets can free."""
    source = random.Random(seed)

    def term() -> str:
        return source.choice(
            ["a", "b", "c", "i", "3'd1", "3'd5", "(a ^ b)", "(b + 3'd1)", "(c & i)", "(a | 3'd2)"]
        )

    lines = [
        f"      if ({term()} {source.choice(['==', '<', '!='])} {term()}) {name} <= {term()};"
        f" else {name} <= {term()};"
        for name in "abc"
    ]
    body = "\n".join(lines)
    return (
        "module m(input logic clk, rst, input logic [2:0] i, output logic [2:0] a, b, c);\n"
        "  always_ff @(posedge clk)\n"
        "    if (rst) begin a <= 0; b <= 3'd2; c <= 3'd7; end\n"
        f"    else begin\n{body}\n    end\nendmodule\n"
    )


@pytest.mark.parametrize("seed", range(6))
def test_what_is_settled_is_what_all_reachable_states_show(seed: int, tmp_path: Path) -> None:
    _, model = load(read_sources([written(tmp_path, machine(seed))], "m"))
    simulator = Simulator(model, {})
    goals = {**model.points, **toggle_goals(model)}
    search = Search(model, simulator, goals, Budget(300.0, 8, vectors=50_000), seed)
    found = search.run()
    search.finish()
    rows = [{"rst": rst, "i": i} for rst, i in product((0, 1), range(8))]
    state = simulator.after_prologue(search.prologue)
    met = goals_of(simulator, simulator.run(search.prologue))
    seen, pending = {tuple(state.items())}, [state]
    while pending:
        state = pending.pop()
        for row in rows:
            cycle = simulator.cycle(state, row)
            met |= goals_of(simulator, [cycle])
            if tuple(cycle.after.items()) not in seen:
                seen.add(tuple(cycle.after.items()))
                pending.append(cycle.after)
    assert set(found.covered) == met & goals.keys()
    assert {goal for goal, dead in found.dead.items() if dead.cycles is None} == goals.keys() - met
    assert found.unknown == {}


# The two registers are each other's only excuse: neither is dead without the other.
PAIR = """
module m(input logic clk, rst, i, output logic a, b, hit);
  always_ff @(posedge clk)
    if (rst) begin a <= 0; b <= 0; end else begin a <= b & i; b <= a & i; end
  always_comb if (a) hit = 1; else hit = 0;
endmodule
"""


@pytest.mark.usefixtures("no_simulator")
def test_conditions_that_need_each_other_are_proved_together(tmp_path: Path) -> None:
    result = cover(read_sources([written(tmp_path, PAIR)], "m"), Budget(300.0, 4))
    dead = {str(goal): proof for goal, proof in result.found.dead.items()}
    assert any("branch" in name and "true" in name for name in dead)
    assert all(proof.cycles is None for proof in dead.values())
    assert any("together with" in proof.why for proof in dead.values())


TIMER = """
module m(input logic clk, rst, run, output logic alarm);
  logic [47:0] count;
  always_ff @(posedge clk) if (rst) count <= 0; else if (run) count <= count + 1;
  always_comb if (count == 48'd123456789012345) alarm = 1; else alarm = 0;
endmodule
"""


@pytest.mark.usefixtures("no_simulator")
def test_a_counter_of_48_bits_is_reached_by_a_loop_and_not_covered(tmp_path: Path) -> None:
    result = cover(read_sources([written(tmp_path, TIMER)], "m"), Budget(300.0, 6))
    counts = result.counts()
    assert sum(row["unknown"] for row in counts.values()) > 0  # nothing was replayed
    found = result.found
    assert found.unknown == {}
    assert all(proof.cycles is None for proof in found.dead.values())
    (cycles,) = {
        cycles for goal, cycles in found.reachable.items() if getattr(goal, "label", "") == "true"
    }
    # Two rows of reset and one that shows it, beside the count itself.
    assert 123456789012345 <= cycles <= 123456789012345 + 200
    assert any("by a proved loop" in s.why for s in result.statuses if s.status == "reachable")


LIMITED = """
module m(input logic clk, rst, input logic [3:0] sel, output logic [19:0] c);
  always_ff @(posedge clk)
    if (rst) c <= 0;
    else if (c < (sel == 13 ? 20'd900000 : sel == 12 ? 20'd500 : 20'd100)) c <= c + 1;
endmodule
"""


@pytest.mark.long
@pytest.mark.usefixtures("no_simulator")
def test_a_loop_is_tried_with_other_held_inputs_that_let_it_go_on(tmp_path: Path) -> None:
    result = cover(read_sources([written(tmp_path, LIMITED)], "m"), Budget(300.0, 6))
    assert result.found.reachable[Bit("c", 19, 1)] > 2**19  # it was dead within so many cycles
    assert all(proof.cycles is None for proof in result.found.dead.values())
