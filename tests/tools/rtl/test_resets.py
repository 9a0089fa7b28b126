"""Asynchronous resets act on the registers of their processes, before the clock."""

from __future__ import annotations

import random

from hagane.tools.rtl.circuit.elaborate import read_sources
from hagane.tools.rtl.circuit.simulate import Simulator
from hagane.tools.rtl.compiled.engine import Engine
from hagane.tools.rtl.cover import load
from hagane.tools.rtl.proofs.circuit import Circuit, Unrolled
from hagane.tools.rtl.proofs.sat import Sat
from hagane.tools.rtl.search.search import toggle_goals

from .test_language import DESIGNS


def by_hand(rows: list[dict[str, int]]) -> list[dict[str, int]]:
    """Return the signals of ``mixed_resets`` in each row, the first applied once before."""
    state = {"rounds": 0, "sum": 0, "late": 0, "seen": 0}
    found = []
    for number, row in enumerate([rows[0], *rows]):
        if number and not row["rst_n"]:
            state["sum"] = 0
        if number:
            found.append(dict(state))
        state = {
            "rounds": (state["rounds"] + 1) % 256,
            "sum": (state["sum"] + row["a"]) % 16 if row["rst_n"] else 0,
            "late": state["sum"],
            "seen": state["seen"] | 1 << state["sum"] % 8,
        }
    return found


def test_a_reset_leaves_registers_of_other_processes_to_the_clock() -> None:
    _, model = load(read_sources([DESIGNS / "mixed_resets.sv"], "mixed_resets"))
    draw = random.Random(3)
    rows = [{"rst_n": draw.randrange(2), "a": draw.randrange(16)} for _ in range(60)]
    expected = by_hand(rows)
    simulator = Simulator(model, {})
    engine = Engine(model, toggle_goals(model))
    compiled, _ = engine.trace(engine.rows(rows), engine.warm(engine.rows(rows)[0]))
    for cycles in (simulator.run_all([tuple(rows)])[0], compiled):
        for cycle, wanted in zip(cycles, expected, strict=True):
            signals = dict(zip(simulator.signal_names, cycle.signals, strict=True))
            assert {name: signals[name] for name in wanted} == wanted


def test_a_reset_in_a_proof_leaves_registers_of_other_processes_to_the_clock() -> None:
    _, model = load(read_sources([DESIGNS / "mixed_resets.sv"], "mixed_resets"))
    circuit = Circuit(model)
    unrolled = Unrolled(circuit, circuit.values(model.initial), resets_open=True)
    sat = Sat(unrolled.gates)
    try:
        # After three cycles three rounds are counted, whatever the reset did.
        rounds = unrolled.at(3, circuit.state["@rounds"])
        sat.require([bit ^ (3 >> at & 1) for at, bit in enumerate(rounds)])
        assert sat.check([], seconds=60.0) is False
    finally:
        sat.close()
