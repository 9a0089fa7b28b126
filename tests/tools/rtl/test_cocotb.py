"""The written cocotb tests, run by cocotb; it is installed beside, not required."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from hagane.tools.rtl import Budget, Result, cover, read_sources
from hagane.tools.rtl.replay.icarus import find_icarus
from hagane.tools.rtl.replay.verilator import find_verilator

DESIGNS = Path(__file__).parent / "designs"

# Ports that cocotb does not reach by a name: arrays, an escaped name; and an enumeration.
ODD_PORTS = r"""
typedef enum logic [1:0] {IDLE, LEFT, RIGHT} way;
module odd(input logic clk, input way go, input logic [3:0] a [0:2], input logic \b[1] ,
           output logic [3:0] y [1:0], output way last);
  always_ff @(posedge clk) last <= go;
  always_comb begin
    y[0] = a[0] ^ a[2];
    y[1] = a[1];
    if (go == LEFT && \b[1] ) y[1] = a[0] + 4'd1;
    if (last == RIGHT) y[0] = 4'hf;
  end
endmodule
"""


def play(
    result: Result, source: Path, folder: Path, simulator: str, change: Callable[[str], str]
) -> object:
    """Run the cocotb tests of a result, changed; return how many ran and how many failed."""
    runner_of = pytest.importorskip("cocotb_tools.runner", reason="cocotb is not installed")
    (folder / "test_it.py").write_text(change(result.cocotb))
    sources, top = [source], result.top
    if result.ports:
        top = f"{top}_ports"
        sources.append(folder / f"{top}.sv")
        sources[-1].write_text(result.ports)
    runner = runner_of.get_runner(simulator)
    options = ["-g2012"] if simulator == "icarus" else ["-Wno-fatal"]
    build = folder / "build"
    runner.build(sources=sources, hdl_toplevel=top, build_dir=build, build_args=options)
    results = runner.test(hdl_toplevel=top, test_module="test_it", test_dir=folder, build_dir=build)
    return runner_of.get_results(results)


def same(text: str) -> str:
    return text


def wrong(text: str) -> str:
    return text.replace("assert got == value", "assert got != value")


@pytest.fixture
def recent_verilator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put on PATH a Verilator that cocotb takes: 5.036 or later."""
    command = find_verilator()
    if command is None:
        pytest.skip("Verilator is not installed (package 'verilator')")
    monkeypatch.delenv("VERILATOR_ROOT", raising=False)
    said = subprocess.run(
        [command, "--version"], capture_output=True, text=True, check=False
    ).stdout
    version = re.search(r"Verilator (\d+)\.(\d+)", said)
    if version is not None and (int(version[1]), int(version[2])) < (5, 36):
        pytest.skip(f"cocotb takes Verilator 5.036 or later, not {version[0]}")
    monkeypatch.setenv("PATH", str(Path(command).parent), prepend=os.pathsep)


@pytest.mark.usefixtures("no_simulator")
@pytest.mark.skipif(find_icarus() is None, reason="Icarus is not installed (package 'iverilog')")
@pytest.mark.parametrize("right", [True, False])
def test_cocotb_passes_the_circuit_and_fails_a_wrong_one(
    right: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = DESIGNS / "lock.sv"
    result = cover(read_sources([source], "lock"), Budget(300.0, 8))
    assert result.ports == ""
    if right:
        assert play(result, source, tmp_path, "icarus", same) == (1, 0)
        return
    # Under pytest the runner leaves by this when a test failed.
    with pytest.raises(SystemExit):
        play(result, source, tmp_path, "icarus", wrong)
    assert "Failed 1 of 1 tests" in caplog.text


@pytest.mark.long
@pytest.mark.usefixtures("no_simulator")
@pytest.mark.skipif(find_icarus() is None, reason="Icarus is not installed (package 'iverilog')")
@pytest.mark.parametrize("name", ["fifo", "divider", "uart_tx", "arbiter"])
def test_cocotb_passes_more_circuits(name: str, tmp_path: Path) -> None:
    source = DESIGNS / f"{name}.sv"
    result = cover(read_sources([source], name), Budget(300.0, 8))
    assert play(result, source, tmp_path, "icarus", same) == (1, 0)


@pytest.mark.long
@pytest.mark.usefixtures("no_simulator", "recent_verilator")
@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("top", ["box", "odd"])
def test_cocotb_drives_interfaces_and_arrays_through_a_module_around_them(
    top: str, right: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = DESIGNS / "bus.sv"
    if top == "odd":
        source = tmp_path / "odd.sv"
        source.write_text(ODD_PORTS)
    result = cover(read_sources([source], top), Budget(300.0, 8))
    assert f"module {top}_ports (" in result.ports
    if right:
        assert play(result, source, tmp_path, "verilator", same) == (1, 0)
        return
    with pytest.raises(SystemExit):
        play(result, source, tmp_path, "verilator", wrong)
    assert "Failed 1 of 1 tests" in caplog.text


@pytest.mark.usefixtures("no_simulator")
def test_the_module_around_an_interface_names_what_it_is_for() -> None:
    result = cover(read_sources([DESIGNS / "bus.sv"], "box"), Budget(300.0, 4))
    assert "the top level is box_ports, of box_ports.sv" in result.cocotb
    assert "  bus port_b (.clk(hagane_clock), .rst_n(stimulus[10:10]));" in result.ports
    compile(result.cocotb, "test_box.py", "exec")
