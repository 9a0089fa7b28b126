"""The test set as a plain SystemVerilog test bench, which checks the outputs, and as CSV.

The bench is plain enough for Icarus and for Verilator without its timing options' races: inputs
change by non-blocking assignments at the rising edge, as registers do, so that every row of the
test set is one settled state of the circuit.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence

from hagane.tools.rtl.circuit.cycle import CycleModel
from hagane.tools.rtl.circuit.ports import Port, bundles
from hagane.tools.rtl.circuit.simulate import Cycle, Simulator, Test
from hagane.tools.rtl.circuit.values import Array, Layout, Packed, leaves, parts


def write_csv(model: CycleModel, tests: Sequence[Test]) -> str:
    """Return ``test``, ``cycle`` and one column per input; a row per cycle, in hexadecimal."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = [item.name for item in model.inputs]
    writer.writerow(["test", "cycle", *names])
    for number, test in enumerate(tests):
        for cycle, row in enumerate(test):
            writer.writerow([number, cycle, *(f"0x{row.get(name, 0):x}" for name in names)])
    return text.getvalue()


def write_testbench(
    model: CycleModel,
    ports: Sequence[Port],
    top: str,
    simulator: Simulator,
    tests: Sequence[Test],
    runs: Sequence[Sequence[Cycle]],
    parameters: Mapping[str, str],
) -> str:
    """Return a test bench ``tb`` that applies ``tests`` and compares the outputs with ``runs``."""
    outputs = list(model.outputs)
    in_width = max(1, sum(item.width for item in model.inputs))
    widths = {name: term.width for name, term in model.outputs.items()}
    out_width = max(1, sum(widths.values()))
    rows = sum(len(test) for test in tests)
    lines = [
        "// Written by hagane rtl: a test bench that applies a test set and checks every output.",
        "`timescale 1ns/1ns",
        "/* verilator coverage_off */",
        "module tb;",
        f"  localparam ROWS = {rows};",
        *clock_declarations(model),
        f"  reg [{in_width - 1}:0] stimulus;",
        f"  wire [{out_width - 1}:0] response;",
        "  integer row = -1;",
        "  integer mismatches = 0;",
        "  /* verilator tracing_off */",
        f"  reg [{in_width - 1}:0] stimuli [0:ROWS];",
        f"  reg [{out_width - 1}:0] expected [0:ROWS];",
        "  /* verilator tracing_on */",
        "",
    ]
    lines += instantiate(model, ports, top, parameters)
    lines += ["", *_clocking(model, bool(outputs)), "  initial begin"]
    at = 0
    for number, (test, cycles) in enumerate(zip(tests, runs, strict=True)):
        lines.append(f"    // test {number}")
        for row, cycle in zip(test, cycles, strict=True):
            signals = dict(zip(simulator.signal_names, cycle.signals, strict=True))
            number_out = 0
            for name in outputs:
                number_out = number_out << widths[name] | signals[name]
            lines.append(
                f"    stimuli[{at}] = {in_width}'h{packed(model, row):x}; "
                f"expected[{at}] = {out_width}'h{number_out:x};"
            )
            at += 1
    last = tests[-1][-1] if tests else {}
    lines += [
        f"    stimuli[ROWS] = {in_width}'h{packed(model, last):x}; expected[ROWS] = 0;",
        "  end",
        "endmodule",
        "",
    ]
    return "\n".join(lines)


def instantiate(
    model: CycleModel, ports: Sequence[Port], top: str, parameters: Mapping[str, str]
) -> list[str]:
    """Return the circuit as ``dut``, between the bench's ``stimulus`` and ``response``."""
    slices = slices_of((item.name, item.width) for item in model.inputs)
    out_slices = slices_of((name, term.width) for name, term in model.outputs.items())
    lines, connections = [], []
    for name, members in bundles(ports).items():
        lines += _interface(name, members, slices, out_slices, model)
        connections.append(f"    .{_written(name)}({_written('port_' + name)})")
    for port in ports:
        where = slices if port.direction == "In" else out_slices
        if not port.interface:
            lines += _declare(port, where, model)
            connections.append(f"    .{_written(port.name)}({_actual(port, model)})")
    values = ", ".join(f".{name}({value})" for name, value in parameters.items())
    lines.append(f"  {top}{f' #({values})' if values else ''} dut (")
    lines.append(",\n".join(connections))
    return [*lines, "  );"]


def clock_declarations(model: CycleModel) -> list[str]:
    """Return the bench's own clock, and those of a circuit that has several."""
    several = f"  reg [{len(model.ticks) - 1}:0] hagane_clocks = 0;"
    return ["  reg hagane_clock = 1'b0;", *([several] if model.ticks else [])]


def one_cycle(model: CycleModel) -> list[str]:
    """Return the statements that let the clocks rise and fall: of several those of the row."""
    if not model.ticks:
        return ["#5 hagane_clock = 1'b1;", "#5 hagane_clock = 1'b0;"]
    width = max(1, sum(item.width for item in model.inputs))
    # In one moment, before anything that waits for one of them goes on.
    return [
        f"#5 hagane_clocks = stimulus[{width - 1}:{width - len(model.ticks)}];",
        "hagane_clock = 1'b1;",
        "#5 hagane_clocks = 0;",
        "hagane_clock = 1'b0;",
    ]


def _wire(clock: str, model: CycleModel) -> str:
    """Return the signal of the bench that drives a clock."""
    sign = "~" if clock in model.falling else ""
    if not model.ticks:
        return f"{sign}hagane_clock"
    return f"{sign}hagane_clocks[{len(model.ticks) - 1 - model.ticks.index(clock)}]"


def _clocking(model: CycleModel, checked: bool) -> list[str]:
    compare = [
        "  // Outputs are compared in the middle of each cycle, behind those that follow a clock.",
        "  always @(negedge hagane_clock) #1",
        "    if (row >= 0 && row < ROWS && response !== expected[row]) begin",
        "      mismatches = mismatches + 1;",
        '      $display("MISMATCH row %0d: expected %h, got %h", row, expected[row], response);',
        "    end",
        "",
    ]
    return [
        "  // Inputs change as registers do; the first row is applied once before it counts.",
        "  always @(posedge hagane_clock) begin",
        "    stimulus <= stimuli[row + 1];",
        "    row <= row + 1;",
        "  end",
        "",
        *(compare if checked else []),
        "  initial begin",
        '    if ($test$plusargs("vcd")) begin',
        '      $dumpfile("tb.vcd");',
        "      $dumpvars(0, tb);",
        "    end",
        "    #1 stimulus = stimuli[0];",
        "    repeat (ROWS + 1) begin",
        *(f"      {line}" for line in one_cycle(model)),
        "    end",
        '    if (mismatches == 0) $display("PASSED");',
        '    else $display("FAILED: %0d rows differ", mismatches);',
        "    $finish;",
        "  end",
        "",
    ]


def slices_of(items: Iterable[tuple[str, int]]) -> dict[str, str]:
    """Return where each of the named bit vectors lies in one vector, the first highest."""
    items = list(items)
    total = sum(width for _, width in items)
    found = {}
    for name, width in items:
        total -= width
        found[name] = f"[{total + width - 1}:{total}]"
    return found


def packed(model: CycleModel, row: Mapping[str, int]) -> int:
    """Return a row's inputs as one number, the first input highest."""
    number = 0
    for item in model.inputs:
        number = number << item.width | row.get(item.name, 0)
    return number


def _name(port: Port) -> str:
    return _written(f"port_{port.name}")


def _written(name: str) -> str:
    """Return a name as the language writes it: escaped, with a space behind, where need be."""
    return name if re.fullmatch(r"[A-Za-z_][\w$]*", name) else f"\\{name} "


def _interface(
    name: str,
    members: Sequence[Port],
    inputs: Mapping[str, str],
    outputs: Mapping[str, str],
    model: CycleModel,
) -> list[str]:
    """Return the interface that a port of the circuit is connected to, and its driver."""
    own, assigns = [], []
    for port in members:
        if port.name in model.clocks:
            there = _wire(port.name, model)
        elif port.direction == "In":
            there = f"stimulus{inputs[port.name]}"
        else:
            there = f"response{outputs[port.name]}"
        member = port.name.partition(".")[2]
        if port.own:
            own.append(f".{member}({there})")
        elif port.direction == "In":
            value = f"{port.cast}'({there})" if port.cast else there
            assigns.append(f"  assign port_{port.name} = {value};")
        else:
            assigns.append(f"  assign {there} = port_{port.name};")
    return [f"  {members[0].interface} port_{name} ({', '.join(own)});", *assigns]


def _declare(port: Port, slices: Mapping[str, str], model: CycleModel) -> list[str]:
    layout = port.variable.layout
    name = _name(port)
    if port.name in model.clocks:
        return []
    if isinstance(layout, Packed):
        kind = "wire"
        if port.direction == "In":
            return [f"  {kind} [{layout.width - 1}:0] {name} = stimulus{slices[port.name]};"]
        if port.name not in slices:
            return [f"  wire [{layout.width - 1}:0] {name};"]
        return [
            f"  wire [{layout.width - 1}:0] {name};",
            f"  assign response{slices[port.name]} = {name};",
        ]
    element, dims = _dimensions(layout)
    lines = [f"  wire [{element.width - 1}:0] {name} {dims};"]
    for leaf, _ in leaves("", layout):
        part = slices.get(port.name + leaf)
        if part is None:
            continue
        if port.direction == "In":
            lines.append(f"  assign {name}{leaf} = stimulus{part};")
        else:
            lines.append(f"  assign response{part} = {name}{leaf};")
    return lines


def _dimensions(layout: Layout) -> tuple[Packed, str]:
    dims = ""
    while isinstance(layout, Array):
        dims += f"[{layout.left}:{layout.right}]"
        layout = layout.element
    if not isinstance(layout, Packed):
        # Ports that are unpacked structs are refused before.
        raise AssertionError(f"a port with parts {list(parts(layout))}")
    return layout, dims


def _actual(port: Port, model: CycleModel) -> str:
    if port.name in model.clocks:
        return _wire(port.name, model)
    if port.cast and port.direction == "In":
        return f"{port.cast}'({_name(port)})"
    return _name(port)
