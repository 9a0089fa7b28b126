"""Replay in Icarus Verilog, for circuits that it accepts: values only, no line counts."""

from __future__ import annotations

import shutil
from pathlib import Path

from hagane.tools.rtl.circuit.elaborate import Sources
from hagane.tools.rtl.replay.verilator import Run, call_simulator


def find_icarus() -> tuple[str, str] | None:
    """Return the compiler and the runner, or None where Icarus is not installed."""
    compiler, runner = shutil.which("iverilog"), shutil.which("vvp")
    return (compiler, runner) if compiler and runner else None


def run_icarus(
    commands: tuple[str, str],
    sources: Sources,
    testbench: Path,
    folder: Path,
    seconds: float = 120.0,
) -> Run:
    """Compile and run a test bench in ``folder``.

    Raises:
        SimulatorError: Icarus does not take the circuit, or the run fails.
    """
    compiler, runner = commands
    folder.mkdir(parents=True, exist_ok=True)
    binary = folder / "tb.vvp"
    words = compile_words(compiler, sources, testbench, binary)
    call_simulator(words, folder, "Icarus does not take the circuit")
    # Icarus 11 goes round for ever within one moment in some circuits (lane.sv of the tests).
    output = call_simulator([runner, str(binary), "+vcd"], folder, "the replay failed", seconds)
    return Run(icarus_version(compiler, folder), {}, folder / "tb.vcd", output, counts_lines=False)


def compile_words(compiler: str, sources: Sources, testbench: Path, binary: Path) -> list[str]:
    """Return the command that compiles a bench."""
    return [
        compiler,
        "-g2012",
        "-s",
        "tb",
        "-o",
        str(binary),
        *(f"-I{path}" for path in sources.include),
        *(f"-D{define}" for define in sources.defines),
        # First, so that its unit of time is that of sources which name none.
        str(testbench),
        *(str(path) for path in sources.files),
    ]


def icarus_version(compiler: str, folder: Path) -> str:
    """Return the name and version of an Icarus."""
    return " ".join(call_simulator([compiler, "-V"], folder, "Icarus does not start").split()[:4])
