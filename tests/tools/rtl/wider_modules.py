"""Random modules of what libraries of circuits use beside :mod:`.random_modules`.

Several clocks, resets of both levels, tasks, interfaces with modports, parameters that are types,
arrays of records, assignment patterns, packed arrays of two dimensions, loops of all kinds.

Run: ``python -m tests.tools.rtl.wider_modules FIRST LAST [--icarus]`` compares each with Verilator
(and Icarus, where that takes it) on random rows, in which resets come at any time.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hagane.errors import HaganeError
from hagane.tools.rtl.circuit.elaborate import Sources, read_sources
from hagane.tools.rtl.circuit.simulate import Simulator, Test
from hagane.tools.rtl.cover import load
from hagane.tools.rtl.errors import SimulatorError
from hagane.tools.rtl.replay.icarus import find_icarus, run_icarus
from hagane.tools.rtl.replay.replay import read_waves
from hagane.tools.rtl.replay.testbench import write_testbench
from hagane.tools.rtl.replay.verilator import find_verilator, run_verilator

from .random_modules import PORTS, Module

_CONTROLS = ("clk", "clk2", "rst_n", "srst", "high")
_HEAD = ", ".join((
    *(f"input logic {name}" for name in _CONTROLS),
    *(
        f"input logic {'signed ' if signed else ''}[{width - 1}:0] {name}"
        for name, (width, signed) in PORTS.items()
    ),
))  # fmt: skip


class Wider(Module):
    """Draws one module of the wider language."""

    def __init__(self, seed: int):
        super().__init__(seed)
        self.outside: list[str] = []
        self.tasks: list[tuple[str, int, int]] = []

    def target(self, names: Sequence[str]) -> str:
        """Return a variable or a part to write; indices have as many bits as the width needs."""
        text = super().target(names)
        # Verilator drops upper bits of an index, where the language drops the write.
        return text if "{8'(" not in text else self.draw.choice(list(names))

    def literal(self) -> str:
        """Return a constant that Verilator 5.006 takes in every place."""
        while True:
            text = super().literal()
            if not text.startswith(("-", "64'", "65'", "40'")):
                return text

    def registers(self) -> None:
        """Add registers at either clock, reset by any of the resets."""
        names = self.plain(1 + self.below(3))
        clock = self.draw.choice(("clk", "clk2"))
        edge, active = self.draw.choice((
            (f"posedge {clock} or negedge rst_n", "!rst_n"), (f"posedge {clock}", "srst"),
            (f"posedge {clock} or posedge high", "high"), (f"posedge {clock}", "~rst_n"),
        ))  # fmt: skip
        self.known.update(self.widths(names))
        lines = [f"always_ff @({edge})", f"  if ({active}) begin"]
        lines += [f"    {name} <= {self.literal()};" for name in names]
        lines.append("  end else begin")
        for _ in range(1 + self.below(3)):
            lines += ["    " + line for line in self.statement(names, "<=", 2)]
        self.body += [*lines, "  end"]

    def task(self) -> None:
        """Add a task, and a process that calls it."""
        name, a, y, z = (self.fresh(stem) for stem in ("tk", "ta", "ty", "tz"))
        wide, out = self.draw.choice((4, 9, 17)), self.draw.choice((5, 8, 33))
        kept = dict(self.known), dict(self.memories), dict(self.tables), list(self.functions)
        self.known = {a: wide, y: out, z: out}
        self.width.update(self.known)
        self.memories, self.tables, self.functions = {}, {}, []
        sign = self.draw.choice(("", "signed "))
        lines = [
            f"task automatic {name}(input logic {sign}[{wide - 1}:0] {a}, output logic "
            f"[{out - 1}:0] {y}, inout logic {sign}[{out - 1}:0] {z});",
            f"  {y} = {a};",
        ]
        for _ in range(1 + self.below(3)):
            lines += ["  " + line for line in self.statement([y, z], "=", 2)]
        self.known, self.memories, self.tables, self.functions = kept
        first, second = (self.fresh("v") for _ in range(2))
        for variable in (first, second):
            self.body.append(f"logic [{out - 1}:0] {variable};")
        self.body += [
            *lines, "endtask", "always_comb begin", f"  {second} = {self.expression(2)};",
            f"  {name}({self.expression(2)}, {first}, {second});", "end",
        ]  # fmt: skip
        self.known.update({first: out, second: out})

    def bus(self) -> None:
        """Add an interface, a module behind its modport, and the wires to both."""
        stem = self.fresh(f"{self.name}_")
        width = self.draw.choice((3, 8, 14))
        default = self.draw.choice((4, width))
        clock = self.draw.choice(("clk", "clk2"))
        self.outside += [
            f"interface bus_{stem} #(parameter int W = {default}) (input logic ck);",
            "  logic [W-1:0] data; logic valid; logic ready; logic [W:0] sum;",
            "  modport give (output data, valid, input ready, sum);",
            "  modport take (input ck, data, valid, output ready, sum);",
            "endinterface",
            f"module sink_{stem} #(parameter type T = logic [3:0]) (bus_{stem}.take b, "
            "input logic rst_n, output T q);",
            "  typedef struct packed { T last; logic full; } held_t;",
            "  held_t held;",
            "  always_ff @(posedge b.ck or negedge rst_n)",
            "    if (!rst_n) held <= '{default: '0};",
            "    else if (b.valid && b.ready) held <= '{last: T'(b.data), full: ~held.full};",
            "  assign b.ready = ~held.full | b.valid;",
            "  assign b.sum = b.data + held.last;",
            "  assign q = held.last;",
            "endmodule",
        ]
        i, q = self.fresh("bi"), self.fresh("v")
        size = self.draw.choice((2, width, 19))
        t = self.draw.choice((f"logic [{size - 1}:0]", f"logic signed [{size - 1}:0]"))
        self.body += [
            f"bus_{stem} #(.W({width})) {i} (.ck({clock}));",
            f"{t} {q};",
            f"sink_{stem} #(.T({t})) k{i} (.b({i}), .rst_n, .q({q}));",
            f"assign {i}.data = {self.expression(3)};",
            f"assign {i}.valid = {self.sized(2)};",
        ]
        self.known.update({q: size, f"{i}.sum": width + 1, f"{i}.ready": 1})

    def records(self) -> None:
        """Add an array of packed records, written by loops and patterns, read by an index."""
        name, type_, out = self.fresh("ar"), self.fresh("rec"), self.fresh("v")
        one, two, size = 1 + self.below(7), 1 + self.below(9), self.draw.choice((2, 4, 8))
        clock = self.draw.choice(("clk", "clk2"))
        loop = self.draw.choice((
            f"foreach ({name}[k])", f"for (int k = 0; k < {size}; k++)",
        ))  # fmt: skip
        self.body += [
            f"typedef struct packed "
            f"{{ logic [{one - 1}:0] x; logic signed [{two - 1}:0] y; }} {type_};",
            f"{type_} {name} [{size}];",
            f"{type_} {out};",
            f"always_ff @(posedge {clock} or negedge rst_n)",
            "  if (!rst_n) begin",
            f"    {loop} {name}[k] <= '{{x: '1, default: '0}};",
            "  end else begin",
            f"    if ({self.expression(1)}) {name}[{self.index(size, 1)}].x <= "
            f"{self.expression(2)};",
            f"    {name}[{self.index(size, 1)}] <= '{{y: {two}'({self.expression(2)}), x: '0}};",
            "  end",
            f"assign {out} = {name}[{self.index(size, 2)}];",
        ]
        self.known.update({out: one + two, f"{out}.x": one, f"{out}.y": two})

    def planes(self) -> None:
        """Add a packed array of two dimensions with parts of parts."""
        name, out = self.fresh("pl"), self.fresh("v")
        rows, lanes, bits = self.draw.choice((2, 4)), self.draw.choice((2, 3, 4)), 1 + self.below(6)
        at = self.below(rows)
        self.body += [
            f"logic [{rows - 1}:0][{lanes - 1}:0][{bits - 1}:0] {name};",
            f"logic [{lanes * bits - 1}:0] {out};",
            "always_comb begin",
            f"  {name} = {self.expression(3)};",
            f"  {name}[{self.index(rows, 1)}][{self.below(lanes)}] = {self.expression(2)};",
            f"  {name}[{at}][{lanes - 1}:{self.below(lanes)}] = {self.expression(2)};",
            f"  {name}[{self.index(rows, 1)}][{self.below(lanes)}][{self.below(bits)}] ^= 1'b1;",
            f"  {out} = {name}[{self.index(rows, 1)}];",
            "end",
        ]
        self.known.update({name: rows * lanes * bits, out: lanes * bits})

    def looped(self) -> None:
        """Add loops by while, do and repeat, with variables of the process."""
        total, count = self.fresh("v"), self.fresh("n")
        width, most = self.draw.choice((4, 9, 20)), 2 + self.below(5)
        step = self.draw.choice((f"{total} + {self.sized(1)}", f"{{{total}, {self.sized(0)}}}"))
        head, tail = self.draw.choice((
            (f"while ({count} < {most}) begin", "end"),
            ("do begin", f"end while ({count} < {most});"),
        ))  # fmt: skip
        self.body += [
            f"logic [{width - 1}:0] {total};",
            f"always_comb begin : lp{count}",
            f"  int {count}; {count} = 0;",
            f"  {total} = {self.expression(1)};",
            f"  {head}",
            f"    {count}++;",
            f"    if ({self.sized(1)} > {count}) {total} = {step}; else {total} -= {count};",
            f"  {tail}",
            "end",
        ]
        self.known[total] = width

    def union(self) -> None:
        """Add a packed union of a vector and a record."""
        name, type_ = self.fresh("un"), self.fresh("ut")
        one, two = 1 + self.below(9), 1 + self.below(9)
        self.body += [
            f"typedef union packed {{ logic [{one + two - 1}:0] all; "
            f"struct packed {{ logic signed [{one - 1}:0] a; logic [{two - 1}:0] b; }} p; "
            f"}} {type_};",
            f"{type_} {name};",
            "always_comb begin",
            f"  {name}.all = {self.expression(3)};",
            f"  if ({self.expression(1)}) {name}.p.a = {self.expression(2)};",
            f"  unique0 if ({self.sized(0)} == 0) {name}.p.b += 1; else if ({name}.p.a < 0) "
            f"{name}.p.b = {self.expression(1)};",
            "end",
        ]
        self.known.update({f"{name}.all": one + two, f"{name}.p.a": one, f"{name}.p.b": two})

    def several(self) -> None:
        """Add instances of a module in a generate loop, with case and if inside."""
        stem = self.fresh(f"{self.name}_")
        bits, lanes = 1 + self.below(6), self.draw.choice((2, 3, 4))
        self.outside += [
            f"module cell_{stem} #(parameter int N = 0, parameter int B = 4) (input logic ck, "
            f"input "
            "logic rst_n, input logic [B-1:0] x, output logic [B-1:0] y);",
            "  localparam int L = B > 1 ? $clog2(B) : 1;",
            "  if (N == 0) begin : g0 assign y = x + B'(L); end",
            "  else case (N % 3)",
            "    1: begin : g1 always_ff @(posedge ck or negedge rst_n) if (!rst_n) y <= '1; "
            "else y <= x ^ y; end",
            "    default: begin : g2 for (genvar k = 0; k < B; k++) assign y[k] = x[B-1-k] ^ "
            "(k % 2 == 1); end",
            "  endcase",
            "endmodule",
        ]  # fmt: skip
        name, label = self.fresh("v"), self.fresh("gen")
        source = self.fresh("v")
        self.body += [
            f"logic [{lanes * bits - 1}:0] {name}, {source};",
            f"assign {source} = {self.expression(3)};",
            f"for (genvar k = 0; k < {lanes}; k++) begin : {label}",
            f"  cell_{stem} #(.N(k), .B({bits})) c (.ck({self.draw.choice(('clk', 'clk2'))}), "
            f".rst_n, "
            f".x({source}[k*{bits} +: {bits}]), .y({name}[k*{bits} +: {bits}]));",
            "end",
        ]
        self.known.update({name: lanes * bits, source: lanes * bits})

    def text(self) -> str:
        """Return the module with those below it."""
        makers = (
            self.registers, self.registers, self.task, self.bus, self.records, self.planes,
            self.looped, self.union, self.several, self.function, self.combinational, self.machine,
        )  # fmt: skip
        for _ in range(4 + self.below(5)):
            self.draw.choice(makers)()
        result = " ^ ".join(f"32'({name})" for name in list(self.known)[len(PORTS) :][-8:]) or "0"
        lines = "\n".join("  " + line for line in self.body)
        return (
            "\n".join(self.outside) + f"\nmodule {self.name}({_HEAD}, output logic [31:0] y);\n"
            f"{lines}\n  assign y = {result};\nendmodule\n"
        )


def wider(seed: int) -> str:
    """Return the text of the module ``m{seed}`` and of those below it."""
    return Wider(seed).text()


def rows_of(simulator: Simulator, count: int, seed: int) -> Test:
    """Return random rows in which a reset is active in one of sixteen."""
    draw = random.Random(seed)
    resets = {reset.name: reset.active for reset in simulator.model.resets}
    made = []
    for number in range(count):
        row = {item.name: draw.getrandbits(item.width) for item in simulator.model.inputs}
        for name, active in resets.items():
            row[name] = active if number < 2 or draw.randrange(16) == 0 else 1 - active
        if number < 2:
            row.update(dict.fromkeys(simulator.model.ticks, 1))
        made.append(row)
    return tuple(made)


def compared(
    sources: Sources, rows: int, folder: Path, seed: int, simulator_name: str = "verilator"
) -> list[str]:
    """Return the differences between the model and a simulator on random rows.

    Raises:
        SimulatorError: The simulator does not take the module.
    """
    design, model = load(sources)
    simulator = Simulator(model, {})
    tests = [rows_of(simulator, rows, seed)]
    runs = simulator.run_all(tests)
    bench = folder / f"tb_{simulator_name}.sv"
    bench.write_text(write_testbench(model, design.ports, sources.top, simulator, tests, runs, {}))
    if simulator_name == "icarus":
        commands = find_icarus()
        assert commands is not None
        run = run_icarus(commands, sources, bench, folder, 30.0)
    else:
        command = find_verilator()
        assert command is not None
        run = run_verilator(command, sources, bench, folder)
    return [str(each) for each in read_waves(run, simulator, tests, runs).differences]


def main() -> None:
    """Compare the modules of some seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    parser.add_argument("--icarus", action="store_true")
    parser.add_argument("--rows", type=int, default=120)
    asked = parser.parse_args()
    for seed in range(asked.first, asked.last):
        with tempfile.TemporaryDirectory(prefix="hagane-test-") as name:
            folder = Path(name)
            (folder / f"m{seed}.sv").write_text(wider(seed))
            sources = read_sources([folder / f"m{seed}.sv"], f"m{seed}")
            for which in ("icarus", "verilator") if asked.icarus else ("verilator",):
                try:
                    found = compared(sources, asked.rows, folder, seed, which)
                    print(
                        f"m{seed} {which}: {len(found)} differences",
                        *found[:3],
                        sep="\n  ",
                        flush=True,
                    )
                except SimulatorError as error:
                    print(f"m{seed} {which} does not take it: {str(error)[:300]}", flush=True)
                except HaganeError as error:
                    print(f"m{seed}: {type(error).__name__}: {str(error)[:400]}", flush=True)
                    break


if __name__ == "__main__":
    main()
