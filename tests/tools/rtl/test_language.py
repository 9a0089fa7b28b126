"""hagane's evaluator against simulators, on random rows."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from hagane.errors import InvalidArgument
from hagane.symbolic.term import FALSE
from hagane.tools.rtl.circuit.elaborate import Sources, read_sources
from hagane.tools.rtl.circuit.simulate import Simulator, Test
from hagane.tools.rtl.cover import load
from hagane.tools.rtl.errors import UnsupportedDesign
from hagane.tools.rtl.replay.icarus import find_icarus, run_icarus
from hagane.tools.rtl.replay.replay import Replay, read_waves
from hagane.tools.rtl.replay.testbench import write_testbench
from hagane.tools.rtl.replay.verilator import Run, find_verilator, run_verilator

DESIGNS = Path(__file__).parent / "designs"
EXAMPLES = Path(__file__).parents[3] / "examples" / "rtl"


def random_tests(simulator: Simulator, rows: int, seed: int) -> list[Test]:
    generator = random.Random(seed)
    resets = {reset.name: reset.active for reset in simulator.model.resets}
    test = []
    for number in range(rows):
        row = {item.name: generator.getrandbits(item.width) for item in simulator.model.inputs}
        row.update({n: active if number < 2 else 1 - active for n, active in resets.items()})
        test.append(row)
    return [tuple(test)]


def replayed(
    sources: Sources, rows: int, folder: Path, simulator_name: str, *, seed: int = 7
) -> tuple[Replay, Run]:
    design, model = load(sources)
    simulator = Simulator(model, {})
    tests = random_tests(simulator, rows, seed)
    runs = simulator.run_all(tests)
    bench = folder / "tb.sv"
    text = write_testbench(model, design.ports, sources.top, simulator, tests, runs, {})
    bench.write_text(text)
    if simulator_name == "icarus":
        commands = find_icarus()
        assert commands is not None
        run = run_icarus(commands, sources, bench, folder)
    else:
        command = find_verilator()
        assert command is not None
        run = run_verilator(command, sources, bench, folder)
    return read_waves(run, simulator, tests, runs), run


@pytest.mark.usefixtures("verilator")
def test_every_signal_is_as_in_verilator_on_random_rows(tmp_path: Path) -> None:
    sources = read_sources([DESIGNS / "language.sv"], "language")
    replay, run = replayed(sources, 400, tmp_path, "verilator")
    assert replay.differences == ()
    assert replay.compared >= 20
    assert "PASSED" in run.output


@pytest.mark.skipif(find_icarus() is None, reason="Icarus is not installed (package 'iverilog')")
@pytest.mark.parametrize("name", ["fifo", "arbiter", "divider", "uart_tx", "lock"])
def test_sequential_circuits_are_as_in_icarus_on_random_rows(name: str, tmp_path: Path) -> None:
    replay, run = replayed(read_sources([DESIGNS / f"{name}.sv"], name), 300, tmp_path, "icarus")
    assert replay.differences == ()
    assert replay.compared >= 5
    assert "PASSED" in run.output


@pytest.mark.skipif(find_icarus() is None, reason="Icarus is not installed (package 'iverilog')")
def test_the_requantiser_is_as_in_icarus_on_random_rows(tmp_path: Path) -> None:
    sources = read_sources([EXAMPLES / "requant.sv"], "requant")
    replay, _ = replayed(sources, 300, tmp_path, "icarus")
    assert replay.differences == ()


GATES = """
module gates(input a, b, c, input [3:0] x, output y, z, p, q, r, output [3:0] v);
  wire w, n;
  and g1(w, a, b, c);
  nor (y, w, c);
  not (z, p, a);
  xnor (q, a, b);
  nand (n, a, c, b);
  buf (r, n);
  or (unused, n, q);
  xor each[3:0] (v, x, {4{a}});
endmodule
"""


@pytest.mark.skipif(find_icarus() is None, reason="Icarus is not installed (package 'iverilog')")
def test_gates_are_as_in_icarus_on_random_rows(tmp_path: Path) -> None:
    path = tmp_path / "gates.v"
    path.write_text(GATES)
    replay, run = replayed(read_sources([path], "gates"), 200, tmp_path, "icarus")
    assert replay.differences == ()
    assert replay.compared >= 12
    assert "PASSED" in run.output


CASES = """
module cases(input [2:0] s, a, output reg [2:0] x, y, z);
  always_comb begin
    case (s)
      0, 1: x = 1;
      1, 2: x = 2;
      7: x = 3;
      default: x = 4;
    endcase
    case (s)
      3: y = 1;
      a: y = 2;
      3: y = 3;
      5, 6: y = 4;
      default: y = 5;
    endcase
    case (s[0])
      1'b0: z = 1;
      1'b1: z = a;
      default: z = 7;
    endcase
  end
endmodule
"""


@pytest.mark.skipif(find_icarus() is None, reason="Icarus is not installed (package 'iverilog')")
def test_case_items_that_repeat_or_vary_are_as_in_icarus(tmp_path: Path) -> None:
    path = tmp_path / "cases.sv"
    path.write_text(CASES)
    sources = read_sources([path], "cases")
    replay, run = replayed(sources, 300, tmp_path, "icarus")
    assert replay.differences == ()
    assert "PASSED" in run.output
    _, model = load(sources)
    arms = {key.position.line: term for key, term in model.points.items() if key.label == "item"}
    # The second 3, and the default beside both values of a bit, are never taken.
    assert {line for line, term in arms.items() if term is FALSE} == {13, 20}


@pytest.mark.parametrize("which", ["icarus", "verilator"])
def test_delays_of_nonblocking_assignments_are_ignored(tmp_path: Path, which: str) -> None:
    if (find_icarus() if which == "icarus" else find_verilator()) is None:
        pytest.skip(f"{which} is not installed")
    path = tmp_path / "m.sv"
    path.write_text(
        "module m(input logic clk, rst_n, input logic [3:0] d, output logic [3:0] q, p, s);\n"
        "  always @(posedge clk or negedge rst_n) if (!rst_n) q <= #1 3; else q <= #1 q + d;\n"
        "  always @(posedge clk) begin p <= #(2) d; s = d; s = s + 1; end\n"
        "endmodule\n"
    )
    sources = read_sources([path], "m")
    _, model = load(sources)
    assert any(":2:54: the delay of an assignment is ignored" in each for each in model.notices)
    found, _ = replayed(sources, 60, tmp_path, which)
    assert found.differences == ()


def test_other_delays_inside_processes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.sv"
    path.write_text(
        "module m(input logic clk, d, output logic q);\n"
        "  always @(posedge clk) q = #1 d;\n"
        "endmodule\n"
    )
    with pytest.raises(UnsupportedDesign, match=r"m\.sv:2:25: an assignment with a delay"):
        load(read_sources([path], "m"))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("(input c, inout d); assign d = c ? 1'bz : 1'b0;",
         "1:25: top-level port 'd' of direction InOut; give what is driven, its enable and what"),
        ("(input c, output q); real r; assign q = c;",
         r"1:35: 'r' of type real \(it belongs in a test bench; a circuit has bits"),
        ("(input c, output reg q); always @(posedge c) #5 q <= 1;",
         "1:54: a delay or an event inside a process .* `q <= #1 d` .* are ignored"),
        ("(input c, a, output q); tri1 t; bufif1 (t, a, c); assign q = t;",
         "1:38: net 't' of type tri1 .*write a choice: `enable"),
        ("(input c, output reg q, r); always @(posedge c) q <= 1; always @(negedge c) r <= 1;",
         "the clock 'c', others for the other edge .*an input"),
    ],
)  # fmt: skip
def test_what_is_refused_comes_with_its_place_and_remedy(
    tmp_path: Path, body: str, said: str
) -> None:
    path = tmp_path / "m.sv"
    path.write_text(f"module m{body} endmodule\n")
    with pytest.raises(UnsupportedDesign, match=said):
        load(read_sources([path], "m"))


def test_a_link_in_a_circle_is_no_source(tmp_path: Path) -> None:
    (tmp_path / "round.sv").symlink_to("round.sv")
    with pytest.raises(InvalidArgument, match=r"there is no file '.*round\.sv'"):
        load(read_sources([tmp_path / "round.sv"], "top"))
