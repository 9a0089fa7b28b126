"""Circuits with several clocks: each row says which of them rise."""

from __future__ import annotations

from pathlib import Path

import pytest

from hagane.tools.rtl.circuit.drivers import PREVIOUS
from hagane.tools.rtl.circuit.elaborate import read_sources
from hagane.tools.rtl.circuit.simulate import Simulator
from hagane.tools.rtl.cover import load
from hagane.tools.rtl.replay.cocotb_tests import write_cocotb
from hagane.tools.rtl.replay.icarus import find_icarus
from hagane.tools.rtl.replay.testbench import write_csv

from .test_language import DESIGNS, random_tests, replayed

CROSSING = read_sources([DESIGNS / "crossing.sv"], "crossing")


def test_registers_move_with_their_own_clock_alone() -> None:
    _, model = load(CROSSING)
    assert model.ticks == ("clk_a", "clk_b")
    simulator = Simulator(model, {})
    state = dict.fromkeys(model.state, 0)
    row = {"rst_n": 1, "go": 1, "d": 5}
    after = simulator.cycle(state, {**row, "clk_a": 1}).after
    assert (after[PREVIOUS + "held"], after[PREVIOUS + "flag"], after[PREVIOUS + "first"]) == (
        5,
        1,
        0,
    )
    after = simulator.cycle(after, {**row, "d": 9, "clk_b": 1}).after
    assert (after[PREVIOUS + "held"], after[PREVIOUS + "flag"], after[PREVIOUS + "first"]) == (
        5,
        1,
        1,
    )
    assert simulator.cycle(after, row).after == after


def test_lines_of_a_process_count_where_its_clock_rises() -> None:
    _, model = load(CROSSING)
    simulator = Simulator(model, {})
    state = dict.fromkeys(model.state, 0)

    def lines(**row: int) -> set[int]:
        points = simulator.cycle(state, {"rst_n": 1, "go": 1, **row}).points
        return {k.position.line for k, met in zip(simulator.point_keys, points, strict=True) if met}

    assert lines() == {34}  # the assignment without a clock
    assert {18, 28} & lines(clk_a=1) == {18}
    assert {18, 28} & lines(clk_b=1) == {28}


@pytest.mark.skipif(find_icarus() is None, reason="Icarus is not installed (package 'iverilog')")
def test_two_clocks_are_as_in_icarus_on_random_rows(tmp_path: Path) -> None:
    replay, run = replayed(CROSSING, 300, tmp_path, "icarus")
    assert replay.differences == ()
    assert "PASSED" in run.output


@pytest.mark.usefixtures("verilator")
@pytest.mark.long
def test_two_clocks_are_as_in_verilator_on_random_rows(tmp_path: Path) -> None:
    replay, run = replayed(CROSSING, 300, tmp_path, "verilator")
    assert replay.differences == ()
    assert "PASSED" in run.output


def test_the_tests_for_others_name_the_clocks_that_rise() -> None:
    _, model = load(CROSSING)
    simulator = Simulator(model, {})
    tests = random_tests(simulator, 3, 1)
    assert write_csv(model, tests).startswith("test,cycle,clk_a,clk_b,rst_n,go,d\n")
    text = write_cocotb(
        model, simulator, tests, simulator.run_all(tests), "crossing", wrapped=False
    )
    assert "CLOCKS = {'clk_a': 0, 'clk_b': 0}  #" in text
    assert "\nTICKS = 2" in text
    assert "INPUTS = {'rst_n': 1, 'go': 1, 'd': 4}" in text
