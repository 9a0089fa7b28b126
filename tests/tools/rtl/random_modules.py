"""Random modules of the synthesisable language, each with the same ports, below one top module.

Run: ``python -m tests.tools.rtl.random_modules FIRST LAST [--at-once N]`` compares the modules of
these seeds with Verilator on random rows, signal by signal, and prints each that differs.

Nothing that a module computes depends on x: quotients are by odd numbers, selects are in range but
for writes to a bit, every register has a reset, memories have numbers from the start.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hagane.errors import HaganeError
from hagane.tools.rtl.circuit.elaborate import Sources, read_sources
from hagane.tools.rtl.cover import load
from hagane.tools.rtl.errors import SimulatorError

PORTS = {
    "a": (8, True), "b": (5, False), "c": (12, True), "d": (1, False), "e": (33, False),
    "f": (64, True), "g": (3, False), "h": (70, False),
}  # fmt: skip
_HEAD = "input logic clk, input logic rst_n, input logic srst, " + ", ".join(
    f"input logic {'signed ' if signed else ''}[{width - 1}:0] {name}"
    for name, (width, signed) in PORTS.items()
)
_UNARY = ("~", "-", "+", "!", "&", "|", "^", "~&", "~|", "~^")
_BINARY = (
    "+", "-", "*", "&", "|", "^", "~^", "&&", "||", "==", "!=", "<", "<=", ">", ">=", "===", "!==",
)  # fmt: skip


class Module:
    """Draws one module; ``known`` are the names that an expression may read, with their widths."""

    def __init__(self, seed: int):
        self.draw = random.Random(seed)
        self.name = f"m{seed}"
        self.known: dict[str, int] = {name: width for name, (width, _) in PORTS.items()}
        self.tables: dict[str, tuple[int, int]] = {}
        self.memories: dict[str, tuple[int, int]] = {}
        self.functions: list[tuple[str, int]] = []
        self.body: list[str] = []
        self.width: dict[str, int] = {}
        self.count = 0

    def fresh(self, stem: str) -> str:
        """Return a name that nothing has yet."""
        self.count += 1
        return f"{stem}{self.count}"

    def below(self, number: int) -> int:
        """Return a number from 0 to below ``number``."""
        return self.draw.randrange(number)

    def literal(self) -> str:
        """Return a sized or unsized constant."""
        width = self.draw.choice((1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 31, 32, 33, 40, 64, 65))
        number = self.draw.choice(
            (0, 1, (1 << width) - 1, 1 << (width - 1), self.draw.getrandbits(width))
        )
        kind = self.draw.choice(("d", "h", "b", "sd", "sh", "o"))
        form = {"d": "d", "h": "x", "b": "b", "o": "o"}[kind[-1]]
        if self.below(8) == 0:
            return self.draw.choice(("'0", "'1", "7", "-3", "0", "1"))
        return f"{width}'{kind}{number:{form}}"

    def vector(self) -> tuple[str, int]:
        """Return a name of more than one bit, and its width."""
        return self.draw.choice([item for item in self.known.items() if item[1] > 1])

    def index(self, size: int, depth: int) -> str:
        """Return an expression that is below ``size``, a power of two."""
        width = max(1, size.bit_length() - 1)
        if size == 1:
            return "0"
        # A cast keeps the sign, a concatenation has none.
        return f"{{{width}'({self.expression(depth - 1)})}}"

    def select(self, depth: int) -> str:
        """Return a part of a vector, at a fixed or a drawn place."""
        name, width = self.vector()
        way = self.below(6)
        if way == 0:
            high = self.below(width)
            return f"{name}[{high}:{self.below(high + 1)}]"
        if way == 1:
            return f"{name}[{self.below(width)}]"
        room = 1 << ((width.bit_length() - 1) - (1 if width & (width - 1) == 0 else 0))
        room = max(1, min(room, width - 1))
        room = 1 << (room.bit_length() - 1)
        if way in (2, 3):
            return f"{name}[{self.index(room, depth)}]"
        size = 1 + self.below(width - room + 1)
        if way == 4:
            return f"{name}[{self.index(room, depth)} +: {size}]"
        if room == 1:
            return f"{name}[{size - 1} -: {size}]"
        bits = room.bit_length() - 1
        return f"{name}[(32'({self.index(room, depth)}) + {size - 1}) -: {size}]" if bits else name

    def leaf(self, depth: int) -> str:
        """Return a name, a constant, a part of a vector, an element of a memory."""
        way = self.below(10)
        if way < 5:
            return self.draw.choice(list(self.known))
        if way < 7:
            return self.literal()
        if way == 7 and self.memories:
            name, (_, size) = self.draw.choice(list(self.memories.items()))
            return f"{name}[{self.index(size, depth)}]"
        if way == 8 and self.tables:
            name, (_, size) = self.draw.choice(list(self.tables.items()))
            return f"{name}[{self.index(size, depth)}]"
        return self.select(depth)

    def expression(self, depth: int = 3) -> str:
        """Return an expression of at most ``depth`` levels."""
        if depth <= 0 or self.below(5) == 0:
            return self.leaf(depth)
        d = depth - 1
        way = self.below(22)
        if way < 2:
            return f"({self.draw.choice(_UNARY)}({self.expression(d)}))"
        if way < 8:
            return f"({self.expression(d)} {self.draw.choice(_BINARY)} {self.expression(d)})"
        if way < 10:
            amount = self.draw.choice((self.expression(d), f"{self.below(70)}", self.leaf(0)))
            shift = self.draw.choice(("<<", ">>", "<<<", ">>>"))
            return f"({self.expression(d)} {shift} {amount})"
        if way == 10:
            ones = self.draw.choice(("1'b1", "2'sd1", "8'h01"))
            divide = self.draw.choice("/%")
            return f"({self.expression(d)} {divide} (({self.expression(d)}) | {ones}))"
        if way < 13:
            return f"({self.expression(d)} ? {self.expression(d)} : {self.expression(d)})"
        if way == 13:
            parts = ", ".join(f"({self.sized(d)})" for _ in range(1 + self.below(3)))
            return f"{{{parts}}}"
        if way == 14:
            return f"{{{1 + self.below(4)}{{{self.sized(0)}}}}}"
        if way == 15:
            cast = self.draw.choice(("$signed", "$unsigned", "signed'", "unsigned'"))
            return f"{cast}({self.expression(d)})"
        if way == 16:
            return f"{1 + self.below(40)}'({self.expression(d)})"
        if way == 17:
            call = self.draw.choice(("$countones", "$onehot", "$onehot0", "$clog2", "$bits"))
            return f"{call}({self.sized(d)})"
        if way == 18:
            low, high = sorted((self.below(256), self.below(256)))
            items = [f"[{low}:{high}]", self.literal(), self.literal()]
            self.draw.shuffle(items)
            kept = ", ".join(items[: 1 + self.below(3)])
            return f"({self.sized(0)} inside {{{kept}}})"
        if way == 19 and self.functions:
            name, arguments = self.draw.choice(self.functions)
            return f"{name}({', '.join(self.expression(d) for _ in range(arguments))})"
        if way == 20:
            if self.below(2):
                two = self.draw.choice(("2", "4'd2", "34'sd2"))
                return f"({two} ** {self.index(64, d)})"
            return f"({self.expression(d)} ** {self.below(4)})"
        width = 1 + self.below(12)
        compare = self.draw.choice(("==?", "!=?"))
        return f"({width}'({self.expression(d)}) {compare} {self.wild(width)})"

    def sized(self, depth: int) -> str:
        """Return an expression whose width does not hang on its surroundings."""
        return (
            f"{1 + self.below(20)}'({self.expression(depth)})"
            if self.below(3)
            else (self.draw.choice(list(self.known)))
        )

    def wild(self, width: int) -> str:
        """Return a pattern with bits that do not count."""
        return f"{width}'b" + "".join(self.draw.choice("01??") for _ in range(width))

    def target(self, names: Sequence[str]) -> str:
        """Return a variable, or a part of it, to write."""
        name = self.draw.choice(list(names))
        width = self.known[name]
        way = self.below(8)
        if way < 4 or width == 1:
            return name
        if way == 4:
            high = self.below(width)
            return f"{name}[{high}:{self.below(high + 1)}]"
        if way == 5:
            # Verilator drops the upper bits of a wide index, and the sign of a narrow one.
            return (
                f"{name}[{{8'({self.expression(1)})}}]"
                if self.below(3) == 0
                else (f"{name}[{self.below(width)}]")
            )
        size = 1 + self.below(min(width, 6))
        if way == 6:
            return f"{name}[{self.index(1 << (width.bit_length() - 1), 1)} +: {size}]"
        if len(names) > 1:
            other = self.draw.choice([item for item in names if item != name])
            return f"{{{name}, {other}}}"
        return f"{name}[{self.below(width - size + 1)} +: {size}]"

    def statement(self, names: Sequence[str], how: str, depth: int, loops: int = 0) -> list[str]:
        """Return a statement that writes some of ``names`` by ``=`` or ``<=``."""
        way = self.below(14) if depth > 0 else self.below(5)
        inner = depth - 1

        def block(indent: str = "  ") -> list[str]:
            lines = [
                line
                for _ in range(1 + self.below(2))
                for line in self.statement(names, how, inner, loops)
            ]
            return ["begin", *(indent + line for line in lines), "end"]

        if way < 5:
            target = self.target(names)
            if how == "=" and self.below(6) == 0 and not target.startswith("{"):
                step = self.draw.choice(("+=", "-=", "^=", "|=", "<<=", ">>=", "*="))
                return [f"{target} {step} {self.expression(2)};"]
            return [f"{target} {how} {self.expression(3)};"]
        if way < 8:
            lines = [f"if ({self.expression(2)}) {block()[0]}"]
            lines += block()[1:]
            if self.below(2):
                lines[-1] += f" else if ({self.expression(1)}) begin"
                lines += block()[1:]
            if self.below(2):
                lines[-1] += " else begin"
                lines += block()[1:]
            return lines
        if way < 11:
            return self.case(names, how, inner, loops)
        if way == 11 and how == "=":
            i = self.fresh("i")
            rounds = 1 + self.below(6)
            head = self.draw.choice((
                f"for (int {i} = 0; {i} < {rounds}; {i}++) begin",
                f"for (int {i} = {rounds - 1}; {i} >= 0; {i}--) begin",
                f"for (int unsigned {i} = 1; {i} <= {rounds}; {i} += 2) begin",
            ))  # fmt: skip
            self.known[i] = 32
            lines = [head]
            if self.below(3) == 0:
                leave = self.draw.choice(("break", "continue"))
                lines.append(f"  if ({self.expression(1)}) {leave};")
            lines += ["  " + line for line in self.statement(names, how, inner, loops + 1)]
            del self.known[i]
            return [*lines, "end"]
        if way == 12 and how == "=":
            lines = [f"repeat ({1 + self.below(4)}) begin"]
            lines += ["  " + line for line in self.statement(names, how, inner, loops + 1)]
            return [*lines, "end"]
        width = 1 + self.below(20)
        local = self.fresh("t")
        lines = [
            "begin",
            f"  automatic logic {self.draw.choice(('', 'signed '))}[{width - 1}:0] {local}"
            f" = {self.expression(2)};",
        ]
        self.known[local] = width
        lines += ["  " + line for line in self.statement(names, how, inner, loops)]
        del self.known[local]
        return [*lines, "end"]

    def case(self, names: Sequence[str], how: str, depth: int, loops: int) -> list[str]:
        """Return a case statement."""
        word = self.draw.choice(("case", "case", "casez", "case_inside", "priority casez"))
        subject = self.draw.choice((self.sized(1), self.leaf(0), "1'b1"))
        tail = " inside" if word == "case_inside" else ""
        lines = [f"{word.replace('_inside', '')} ({subject}){tail}"]
        for _ in range(1 + self.below(3)):
            labels = []
            for _ in range(1 + self.below(2)):
                if word == "case_inside" and self.below(2):
                    low, high = sorted((self.below(64), self.below(64)))
                    labels.append(f"[{low}:{high}]")
                elif "casez" in word and self.below(2):
                    labels.append(self.wild(1 + self.below(12)))
                elif subject == "1'b1" and word != "case_inside":
                    labels.append(f"|({self.sized(1)})")
                else:
                    fixed = word == "case_inside" or self.below(3)
                    labels.append(self.literal() if fixed else self.sized(0))
            lines.append(f"  {', '.join(labels)}: begin")
            lines += ["    " + line for line in self.statement(names, how, depth, loops)]
            lines.append("  end")
        if self.below(3) or "priority" in word:
            lines.append("  default: begin")
            lines += ["    " + line for line in self.statement(names, how, depth, loops)]
            lines.append("  end")
        return [*lines, "endcase"]

    def combinational(self) -> None:
        """Add a process without state: each variable has a value first."""
        names = self.plain(1 + self.below(3))
        head = self.draw.choice(("always_comb begin", "always @* begin", "always @(*) begin"))
        lines = [head, *(f"  {name} = {self.expression(3)};" for name in names)]
        self.known.update(self.widths(names))
        for _ in range(1 + self.below(4)):
            lines += ["  " + line for line in self.statement(names, "=", 2)]
        self.body += [*lines, "end"]

    def plain(self, count: int) -> list[str]:
        """Declare variables that no expression reads yet; return their names."""
        names = []
        for _ in range(count):
            name = self.fresh("v")
            width = self.draw.choice((1, 2, 3, 4, 7, 8, 9, 13, 16, 20, 31, 32, 33, 40, 64, 67))
            sign = self.draw.choice(("", "signed "))
            self.body.append(f"logic {sign}[{width - 1}:0] {name};")
            self.width[name] = width
            names.append(name)
        return names

    def widths(self, names: Sequence[str]) -> dict[str, int]:
        """Return the widths of variables."""
        return {name: self.width[name] for name in names}

    def clocked(self) -> None:
        """Add registers, reset by ``rst_n`` at any time or by ``srst`` at the clock."""
        names = self.plain(1 + self.below(3))
        asynchronous = self.below(2)
        edge = "posedge clk or negedge rst_n" if asynchronous else "posedge clk"
        word = self.draw.choice(("always_ff", "always"))
        self.known.update(self.widths(names))
        lines = [f"{word} @({edge})", f"  if ({'!rst_n' if asynchronous else 'srst'}) begin"]
        lines += [f"    {name} <= {self.literal()};" for name in names]
        lines.append("  end else begin")
        for _ in range(1 + self.below(4)):
            lines += ["    " + line for line in self.statement(names, "<=", 2)]
        self.body += [*lines, "  end"]

    def assigns(self) -> None:
        """Add continuous assignments, one of them by parts."""
        for name in self.plain(1 + self.below(3)):
            width = self.width[name]
            cut = self.below(width)
            if cut and self.below(3) == 0:
                self.body.append(f"assign {name}[{width - 1}:{cut}] = {self.expression(3)};")
                self.body.append(f"assign {name}[{cut - 1}:0] = {self.expression(3)};")
            else:
                self.body.append(f"assign {name} = {self.expression(4)};")
            self.known[name] = width

    def memory(self) -> None:
        """Add a memory with a port to write and, maybe, a registered port to read."""
        name, width, size = self.fresh("mem"), 1 + self.below(24), self.draw.choice((2, 4, 8, 16))
        sign = self.draw.choice(("", "signed "))
        i, ends = self.fresh("i"), self.draw.choice((f"0:{size - 1}", str(size)))
        self.body += [
            f"logic {sign}[{width - 1}:0] {name} [{ends}];",
            f"initial for (int {i} = 0; {i} < {size}; {i}++) {name}[{i}] = {self.literal()};",
            "always_ff @(posedge clk)",
            f"  if ({self.expression(2)}) {name}[{self.index(size, 2)}] <= {self.expression(2)};",
        ]
        self.memories[name] = (width, size)

    def function(self) -> None:
        """Add a function of expressions and statements."""
        name, count = self.fresh("fn"), 1 + self.below(3)
        kept = dict(self.known), dict(self.memories), dict(self.tables), list(self.functions)
        width = self.draw.choice((1, 4, 8, 16, 32, 37))
        formals = {
            self.fresh("p"): self.draw.choice((1, 3, 8, 17, 40) if n else (3, 8, 33))
            for n in range(count)
        }
        result = self.fresh("r")
        self.known = {**formals, result: width}
        self.width.update(self.known)
        self.memories, self.tables, self.functions = {}, {}, []
        ports = ", ".join(
            f"input logic {self.draw.choice(('', 'signed '))}[{w - 1}:0] {p}"
            for p, w in formals.items()
        )
        sign = self.draw.choice(("", "signed "))
        lines = [f"function automatic logic {sign}[{width - 1}:0] {name}({ports});"]
        lines.append(f"  logic {sign}[{width - 1}:0] {result};")
        lines.append(f"  {result} = {self.expression(2)};")
        for _ in range(1 + self.below(3)):
            lines += ["  " + line for line in self.statement([result], "=", 2)]
            if self.below(3) == 0:
                lines.append(f"  if ({self.expression(1)}) return {self.expression(1)};")
        self.body += [*lines, f"  return {result};", "endfunction"]
        self.known, self.memories, self.tables, self.functions = kept
        self.functions.append((name, count))

    def generated(self) -> None:
        """Add a vector whose bits or lanes come from a generate loop."""
        name, lanes, width = self.fresh("w"), self.draw.choice((2, 4, 8)), 1 + self.below(8)
        label = self.fresh("gen")
        self.body += [
            f"logic [{lanes * width - 1}:0] {name};",
            f"for (genvar k = 0; k < {lanes}; k++) begin : {label}",
            f"  if (k % 2 == {self.below(2)}) begin : one",
            f"    assign {name}[k * {width} +: {width}] = ({self.expression(2)}) + k;",
            "  end else begin : other",
            f"    assign {name}[k * {width} +: {width}] = {self.expression(2)};",
            "  end",
            "end",
        ]
        self.known[name] = lanes * width

    def table(self) -> None:
        """Add a packed array of lanes that is written in parts."""
        name, lanes, width = self.fresh("tb"), self.draw.choice((2, 4, 8)), 1 + self.below(9)
        ends = self.draw.choice((f"{lanes - 1}:0", f"0:{lanes - 1}"))
        self.body += [
            f"logic [{ends}][{width - 1}:0] {name};",
            "always_comb begin",
            f"  {name} = {self.expression(3)};",
            f"  {name}[{self.index(lanes, 2)}] = {self.expression(2)};",
            f"  {name}[{self.index(lanes, 1)}][{self.below(width)}] = {self.expression(1)};",
            "end",
        ]
        self.tables[name] = (width, lanes)

    def turned(self) -> None:
        """Add a vector in the opposite order, by bits or by groups of them."""
        name, (other, width) = self.fresh("z"), self.vector()
        size = self.draw.choice(("", "1", "2", "3", "8"))
        way = self.draw.choice(("<<", "<<", ">>"))
        self.body += [
            f"logic [{width - 1}:0] {name};",
            f"assign {name} = {{{way}{size}{{{other}}}}};",
        ]
        self.known[name] = width

    def record(self) -> None:
        """Add a packed struct, its fields written one by one."""
        name, type_ = self.fresh("st"), self.fresh("type")
        widths = [1 + self.below(17) for _ in range(3)]
        fields = " ".join(
            f"logic {self.draw.choice(('', 'signed '))}[{w - 1}:0] f{n};"
            for n, w in enumerate(widths)
        )
        self.body += [
            f"typedef struct packed {{ {fields} }} {type_};",
            f"{type_} {name};",
            "always_comb begin",
            f"  {name} = {self.expression(3)};",
            f"  {name}.f{self.below(3)} = {self.expression(2)};",
            f"  if ({self.expression(2)}) {name}.f{self.below(3)} += {self.expression(1)};",
            "end",
        ]
        self.known[name] = sum(widths)
        for n, w in enumerate(widths):
            self.known[f"{name}.f{n}"] = w

    def machine(self) -> None:
        """Add a state machine over an enumeration."""
        type_, now, then = self.fresh("state"), self.fresh("s"), self.fresh("n")
        names = [self.fresh("S") for _ in range(3 + self.below(3))]
        self.body += [
            f"typedef enum logic [2:0] {{{', '.join(names)}}} {type_};",
            f"{type_} {now}, {then};",
            "always_comb begin",
            f"  {then} = {now};",
            f"  unique case ({now})",
        ]
        for name in names[: 1 + self.below(len(names))]:
            self.body.append(
                f"    {name}: if ({self.expression(2)}) {then} = {self.draw.choice(names)};"
                f" else if ({self.expression(1)}) {then} = {self.draw.choice(names)};"
            )
        self.body += [
            f"    default: {then} = {self.draw.choice(names)};", "  endcase", "end",
            "always_ff @(posedge clk or negedge rst_n)",
            f"  if (!rst_n) {now} <= {names[0]}; else {now} <= {then};",
        ]  # fmt: skip
        self.known[now] = self.known[then] = 3

    def text(self) -> str:
        """Return the module."""
        makers = (
            self.combinational, self.combinational, self.clocked, self.clocked, self.assigns,
            self.assigns, self.memory, self.function, self.generated, self.table, self.record,
            self.machine, self.turned,
        )  # fmt: skip
        for _ in range(3 + self.below(5)):
            self.draw.choice(makers)()
        width = 32
        result = " ^ ".join(f"32'({name})" for name in list(self.known)[len(PORTS) :][-6:]) or "0"
        lines = "\n".join("  " + line for line in self.body)
        return (
            f"module {self.name}({_HEAD}, output logic [{width - 1}:0] y);\n{lines}\n"
            f"  assign y = {result};\nendmodule\n"
        )


def module(seed: int) -> str:
    """Return the text of the module ``m{seed}``."""
    return Module(seed).text()


def together(seeds: Sequence[int]) -> str:
    """Return modules and ``top``, which has one of each."""
    wires = ", ".join(f".{name}" for name in ("clk", "rst_n", "srst", *PORTS))
    outputs = ", ".join(f"output logic [31:0] y{seed}" for seed in seeds)
    inner = "\n".join(f"  m{seed} u{seed} ({wires}, .y(y{seed}));" for seed in seeds)
    texts = "\n".join(module(seed) for seed in seeds)
    return f"{texts}\nmodule top({_HEAD}, {outputs});\n{inner}\nendmodule\n"


def written(text: str, top: str, folder: Path) -> Sources:
    """Write a text in a folder; return it as sources."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{top}.sv").write_text(text)
    return read_sources([folder / f"{top}.sv"], top)


def compared(seeds: Sequence[int], rows: int) -> tuple[list[str], list[str]]:
    """Compare modules with Verilator; return the differences, and why it does not take some.

    Where Verilator does not take the modules at once, the halves are tried.
    """
    from .test_language import replayed

    with tempfile.TemporaryDirectory(prefix="hagane-test-") as name:
        folder = Path(name)
        sources = written(together(seeds), "top", folder)
        try:
            replay, run = replayed(sources, rows, folder, "verilator", seed=seeds[0])
        except SimulatorError as error:
            middle = len(seeds) // 2
            if not middle:
                return [], [f"m{seeds[0]}: {str(error)[:300]}"]
            first, second = compared(seeds[:middle], rows), compared(seeds[middle:], rows)
            return first[0] + second[0], first[1] + second[1]
    differences = [str(difference) for difference in replay.differences]
    if replay.compared < len(seeds):
        differences.append(f"only {replay.compared} signals are in the waves")
    if ("PASSED" in run.output) == bool(differences):
        differences.append(f"the bench says {run.output[-300:]!r}")
    return differences, []


def main() -> None:
    """Compare the modules of some seeds with Verilator."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    parser.add_argument("--at-once", type=int, default=20)
    parser.add_argument("--rows", type=int, default=150)
    asked = parser.parse_args()
    for start in range(asked.first, asked.last, asked.at_once):
        seeds = []
        with tempfile.TemporaryDirectory() as name:
            for seed in range(start, min(start + asked.at_once, asked.last)):
                try:
                    load(written(module(seed), f"m{seed}", Path(name)))
                    seeds.append(seed)
                except HaganeError as error:
                    print(f"m{seed}: {type(error).__name__}: {str(error)[:300]}", flush=True)
        differences, untaken = compared(seeds, asked.rows)
        print(f"{start}: {len(seeds)} modules, {len(differences)} differences", flush=True)
        for line in (*differences[:10], *untaken):
            print("  ", line, flush=True)


if __name__ == "__main__":
    main()
