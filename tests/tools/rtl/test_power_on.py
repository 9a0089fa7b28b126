"""Registers that begin with any value: proofs and covered points hold for all of them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from hagane.tools.rtl import Budget, cover
from hagane.tools.rtl.circuit.cycle import CycleModel
from hagane.tools.rtl.circuit.drivers import PREVIOUS
from hagane.tools.rtl.circuit.elaborate import read_sources
from hagane.tools.rtl.circuit.simulate import Bit, Simulator
from hagane.tools.rtl.cover import load
from hagane.tools.rtl.proofs.circuit import Circuit
from hagane.tools.rtl.proofs.unknowns import Unknowns, after_prologue
from hagane.tools.rtl.search.search import toggle_goals

from .random_modules import together, written
from .test_language import DESIGNS, random_tests

POWERED = read_sources([DESIGNS / "powered.sv"], "powered")


def test_what_has_no_value_at_the_start_is_known() -> None:
    _, model = load(POWERED)
    names = {name.removeprefix(PREVIOUS) for name in model.unset}
    memory = {f"mem[{k}]" for k in range(4)}
    assert names == {"turn", "lock", "q", "hit", "state"} | memory


def test_a_reset_gives_values_to_its_own_registers() -> None:
    _, model = load(POWERED)
    circuit = Circuit(model)
    bits = iter(after_prologue(circuit, ({"rst_n": 0}, {"rst_n": 0})))
    found = {name: [next(bits) for _ in part] for name, part in circuit.state.items()}
    assert found[PREVIOUS + "state"] == [0, 0]
    assert found[PREVIOUS + "turn"] == [None]
    assert found[PREVIOUS + "count"] == [0, 0]  # from 1, after three cycles


def starts(model: CycleModel, draw: random.Random) -> Mapping[str, int]:
    """Return a start: what it sets, and random numbers for the rest."""
    return {
        name: draw.getrandbits(term.width) if name in model.unset else model.initial[name]
        for name, term in model.state.items()
    }


@pytest.mark.parametrize("seed", [3, pytest.param(17, marks=pytest.mark.long)])
def test_certain_bits_are_those_of_runs_from_all_starts(seed: int, tmp_path: Path) -> None:
    text = together([seed, seed + 1, seed + 2])
    text = text.replace("initial for", "if (0) initial for").replace("(!rst_n)", "(rst_n === 0)")
    _, model = load(written(text, "top", tmp_path))
    assert model.unset
    simulator, draw = Simulator(model, {}), random.Random(seed)
    circuit = Circuit(model)
    goals = toggle_goals(model)
    unknowns = Unknowns(circuit, goals)
    rows = random_tests(simulator, 12, seed)[0]
    runs = [dict(starts(model, draw)) for _ in range(20)]
    known = 0
    for row in rows:
        unknowns.met.clear()
        unknowns.row(row)
        cycles = [simulator.cycle(state, row) for state in runs]
        runs = [dict(cycle.after) for cycle in cycles]
        for cycle in cycles:
            values = dict(zip(simulator.signal_names, cycle.signals, strict=True))
            for goal in unknowns.met:
                assert isinstance(goal, Bit)
                known += 1
                assert values[goal.signal] >> goal.index & 1 == goal.value
    assert known


@pytest.mark.long
@pytest.mark.usefixtures("verilator")
def test_points_that_hang_on_the_start_are_neither_covered_nor_dead() -> None:
    result = cover(POWERED, Budget(40.0), any_start=True)
    assert "9 registers and elements of memories begin with any value" in result.notices
    assert result.defects == []
    status = {(item.kind, item.where.rpartition("/")[2]): item for item in result.statuses}
    assert status["branch", "powered.sv:22:5 true"].status == "dead"  # of two states
    assert status["branch", "powered.sv:23:10 true"].status == "unknown"
    assert status["toggle", "turn"].why == "met or not by the values that registers begin with"
    for bit in range(4):
        assert status["toggle", f"q[{bit}]"].status == "covered"
    open_ = {place[1] for place, item in status.items() if item.status == "unknown"}
    assert {place.partition(":")[0] for place in open_} == {
        "turn", "hit", "lock[0]", "lock[1]", "lock[2]", "powered.sv"
    }  # fmt: skip
