"""A simulator that is built while the search still runs: its bench reads the rows from a file."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from hagane.tools.rtl.circuit.cycle import CycleModel
from hagane.tools.rtl.circuit.elaborate import Sources
from hagane.tools.rtl.circuit.ports import Port
from hagane.tools.rtl.circuit.simulate import Test
from hagane.tools.rtl.errors import SimulatorError
from hagane.tools.rtl.replay.icarus import compile_words, icarus_version
from hagane.tools.rtl.replay.staged import keep_runtime, runtime_key, staged_words
from hagane.tools.rtl.replay.testbench import (
    clock_declarations,
    instantiate,
    one_cycle,
    packed,
)
from hagane.tools.rtl.replay.verilator import (
    Run,
    call_simulator,
    errors_of,
    read_coverage,
    simulator_environment,
    verilator_version,
    write_main,
)

_ROWS = "rows.hex"


def write_player(
    model: CycleModel, ports: Sequence[Port], top: str, parameters: Mapping[str, str]
) -> str:
    """Return a bench ``tb`` that applies the rows of a file, as those of a test set are applied."""
    width = max(1, sum(item.width for item in model.inputs))
    out_width = max(1, sum(term.width for term in model.outputs.values()))
    lines = [
        "`timescale 1ns/1ns",
        "/* verilator coverage_off */",
        "module tb;",
        *clock_declarations(model),
        f"  reg [{width - 1}:0] stimulus;",
        f"  wire [{out_width - 1}:0] response;",
        "  integer row = -1;",
        "  /* verilator tracing_off */",
        f"  reg [{width - 1}:0] upcoming;",
        "  integer file, got;",
        "  /* verilator tracing_on */",
        *instantiate(model, ports, top, parameters),
        "  always @(posedge hagane_clock) begin",
        "    stimulus <= upcoming;",
        "    row <= row + 1;",
        "  end",
        "  initial begin",
        f'    file = $fopen("{_ROWS}", "r");',
        '    $dumpfile("tb.vcd");',
        "    $dumpvars(0, tb);",
        '    got = $fscanf(file, "%h", upcoming);',
        "    #1 stimulus = upcoming;",
        "    while (got == 1) begin",
        *(f"      {line}" for line in one_cycle(model)),
        '      got = $fscanf(file, "%h", upcoming);',
        "    end",
        *(f"    {line}" for line in one_cycle(model)),
        "    $finish;",
        "  end",
        "endmodule",
        "",
    ]
    return "\n".join(lines)


def rows_text(model: CycleModel, tests: Sequence[Test]) -> str:
    """Return the rows of tests, one after the other, for the file that the bench reads."""
    return "".join(f"{packed(model, row):x}\n" for test in tests for row in test)


class Player:
    """A simulator under construction in a folder; ``run`` waits for it.

    Args:
        kind: ``verilator`` or ``icarus``.
        command: Its commands.
        sources: The circuit.
        bench: The text of :func:`write_player`.
        folder: Where it works; made here.
    """

    def __init__(
        self, kind: str, command: Sequence[str], sources: Sources, bench: str, folder: Path
    ):
        self._kind, self._command, self._folder = kind, tuple(command), folder
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "tb.sv"
        path.write_text(bench, encoding="utf-8")
        self._runtime = ""
        if kind == "verilator":
            write_main(folder)
            self._runtime = runtime_key(self._command[0])
            words = staged_words(self._command[0], sources, path, folder, self._runtime)
        else:
            words = compile_words(self._command[0], sources, path, folder / "tb.vvp")
        with (folder / "build.log").open("w") as log:
            self._process = subprocess.Popen(
                words, cwd=folder, env=simulator_environment(), stdin=subprocess.DEVNULL,
                stdout=log, stderr=subprocess.STDOUT, process_group=0,
            )  # fmt: skip

    def close(self) -> None:
        """End a construction that still goes on."""
        if self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def run(self, model: CycleModel, tests: Sequence[Test], seconds: float) -> Run:
        """Apply tests and return the results.

        Raises:
            SimulatorError: It could not be built or did not end within ``seconds``, or failed.
        """
        stop = time.monotonic() + seconds
        name = "Verilator" if self._kind == "verilator" else "Icarus"
        try:
            status = self._process.wait(timeout=max(0.1, seconds))
        except subprocess.TimeoutExpired:
            self.close()
            raise SimulatorError(
                f"{name} was not built within the time (--seconds gives more)"
            ) from None
        if status != 0:
            said = (self._folder / "build.log").read_text(errors="replace")
            raise SimulatorError(f"{name} does not take the circuit:\n{errors_of(said)}")
        if self._runtime:
            keep_runtime(self._runtime, self._folder / "obj")
            self._runtime = ""
        for name, path in model.files.items():
            (self._folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, self._folder / name)
        (self._folder / _ROWS).write_text(rows_text(model, tests), encoding="utf-8")
        if self._kind == "verilator":
            words = [str(self._folder / "obj" / "Vtb")]
        else:
            words = [self._command[1], str(self._folder / "tb.vvp")]
        left = max(1.0, stop - time.monotonic())
        output = call_simulator(words, self._folder, "the replay failed", left)
        waves = self._folder / "tb.vcd"
        if self._kind == "verilator":
            lines = read_coverage(self._folder / "coverage.dat")
            return Run(verilator_version(self._command[0], self._folder), lines, waves, output)
        return Run(
            icarus_version(self._command[0], self._folder), {}, waves, output, counts_lines=False
        )
