"""Combinational logic is settled bit by bit: chains are no loops, and loops are named."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from hagane.tools.rtl import Budget, UnsupportedDesign, cover, read_sources
from hagane.tools.rtl.circuit.cycle import CycleModel
from hagane.tools.rtl.cover import load
from hagane.tools.rtl.replay.icarus import find_icarus

from .test_language import replayed

sys.path.insert(0, str(Path(__file__).parents[3] / "examples"))


def written(folder: Path, text: str) -> Path:
    path = folder / "circuit.sv"
    path.write_text(text)
    return path


def model_of(folder: Path, text: str) -> CycleModel:
    return load(read_sources([written(folder, text)], "m"))[1]


def refused(folder: Path, text: str) -> str:
    with pytest.raises(UnsupportedDesign) as caught:
        model_of(folder, text)
    (problem,) = caught.value.problems
    return problem.replace(str(folder / "circuit.sv"), "F")


RIPPLE = """
module m(input logic [15:0] a, b, input logic cin, output logic [15:0] s, output logic cout);
  logic [16:0] c;
  assign c[16:1] = (a & b) | (c[15:0] & (a ^ b));
  assign s = a ^ b ^ c[15:0];
  assign c[0] = cin;
  assign cout = c[16];
endmodule
"""
GENERATED = """
module m #(parameter N = 24) (input logic [N-1:0] a, output logic [N-1:0] y, input logic [3:0] k,
                              output logic [3:0] last);
  logic [3:0] stage [0:N];
  logic [2*N-1:0] flat;
  for (genvar i = N - 1; i >= 0; i--) begin : g
    wire [3:0] doubled = {stage[i][2:0], stage[i][3]};
    step u (.x(doubled), .bit_i(a[i]), .prior(flat[2*i +: 2]), .y(stage[i+1]));
    assign y[i] = stage[i+1][0] ^ flat[2*i + 1];
    if (i > 0) assign flat[2*i +: 2] = flat[2*i - 2 +: 2] + 2'd1;
    else assign flat[1:0] = k[1:0];
  end
  assign stage[0] = k;
  assign last = stage[N];
endmodule
module step(input logic [3:0] x, input logic bit_i, input logic [1:0] prior, output logic [3:0] y);
  always_comb begin
    y = x + {3'd0, bit_i};
    if (prior == 2) y[3] = ~y[3];
  end
endmodule
"""
CROSSED = """
module m(input logic [7:0] x, output logic [7:0] z);
  typedef struct packed { logic [7:0] a; logic [7:0] b; } pair;
  pair p, q;
  logic [8:0] sum;
  // One vector and one process carry independent data in both directions.
  always_comb begin
    p.a = x + 8'd3;
    p.b = q.b ^ 8'h55;
    sum = {1'b0, q.a} + {1'b0, p.b};
  end
  assign q = {p.a - 8'd1, p.a};
  assign z = {z[6:0], sum[8]} ^ sum[7:0];
endmodule
"""
ADDED = """
module m(input logic [7:0] x, output logic [7:0] z);
  // Carries go up only: the low bits of a sum do not depend on its high ones.
  assign z = {z[6:0], x[0]} + x;
endmodule
"""
MULTIPLEXED = """
module m(input logic s, input logic [3:0] x, y, output logic [3:0] a, b);
  // Either way round, never both: no loop in any state of 's'.
  assign a = s ? b : x;
  assign b = s ? y : a;
endmodule
"""


@pytest.mark.skipif(find_icarus() is None, reason="Icarus is not installed (package 'iverilog')")
@pytest.mark.parametrize("text", [RIPPLE, GENERATED, CROSSED, MULTIPLEXED])
def test_a_chain_that_feeds_itself_bit_by_bit_is_as_in_icarus(text: str, tmp_path: Path) -> None:
    sources = read_sources([written(tmp_path, text)], "m")
    replay, run = replayed(sources, 200, tmp_path, "icarus")
    assert replay.differences == ()
    assert replay.compared >= 4
    assert "PASSED" in run.output


@pytest.mark.long
@pytest.mark.usefixtures("verilator")
def test_a_sum_that_feeds_itself_is_as_in_verilator(tmp_path: Path) -> None:
    sources = read_sources([written(tmp_path, ADDED)], "m")
    replay, run = replayed(sources, 200, tmp_path, "verilator")
    assert replay.differences == ()
    assert replay.compared == 2
    assert "PASSED" in run.output


@pytest.mark.parametrize("text", [RIPPLE, GENERATED, CROSSED, ADDED, MULTIPLEXED])
def test_a_chain_that_feeds_itself_bit_by_bit_holds_no_state(text: str, tmp_path: Path) -> None:
    assert model_of(tmp_path, text).state == {}


@pytest.mark.usefixtures("no_simulator")
def test_every_bit_of_a_ripple_chain_is_reached(tmp_path: Path) -> None:
    result = cover(read_sources([written(tmp_path, RIPPLE)], "m"), Budget(300.0))
    assert result.found.unknown == {}
    assert result.found.dead == {}


def test_a_loop_is_refused_with_its_signals_and_where_they_are_driven(tmp_path: Path) -> None:
    said = refused(
        tmp_path,
        "module m(input logic a, output logic y);\n"
        "  logic p, q, r;\n"
        "  assign p = ~(q & a);\n"
        "  always_comb r = p ^ a;\n"
        "  assign q = ~r;\n"
        "  assign y = p;\n"
        "endmodule\n",
    )
    assert "a combinational loop" in said
    for signal in ("p (F:3:10)", "q (F:5:10)", "r (F:4:3)"):
        assert signal in said
    assert "y (" not in said
    assert said.endswith("depends on itself within a cycle; a register would break it)")


def test_a_loop_through_bits_names_the_bits(tmp_path: Path) -> None:
    said = refused(
        tmp_path,
        "module m(input logic [3:0] a, output logic [3:0] v);\n"
        "  assign v[1:0] = {a[1] ^ v[2], a[0]};\n"
        "  assign v[3:2] = {a[3] & v[0], a[2] + v[1]};\n"
        "endmodule\n",
    )
    assert re.search(r"v\[1\] \(F:2:10\) reads v\[2\] \(F:3:10\) reads v\[1\]", said) or re.search(
        r"v\[2\] \(F:3:10\) reads v\[1\] \(F:2:10\) reads v\[2\]", said
    )
    assert "v[0]" not in said
    assert "v[3]" not in said


def test_a_long_loop_is_cut_short(tmp_path: Path) -> None:
    wires = "".join(f"  wire w{n};\n" for n in range(31))
    wires += "".join(f"  assign w{n} = ~w{(n + 1) % 31};\n" for n in range(31))
    said = refused(tmp_path, f"module m(output logic y);\n{wires}  assign y = w0;\nendmodule\n")
    assert "26 more signals" in said


def test_a_latch_written_as_an_assignment_is_state(tmp_path: Path) -> None:
    model = model_of(
        tmp_path,
        "module m(input logic en, input logic [2:0] d, output logic [2:0] q);\n"
        "  assign q = en ? d : q;\n"
        "endmodule\n",
    )
    assert list(model.state) == ["@q"]


def test_a_constant_port_bounds_a_loop_inside_an_instance(tmp_path: Path) -> None:
    model = model_of(
        tmp_path,
        "module m(input logic [7:0] a, output logic [3:0] n);\n"
        "  logic [3:0] most;\n"
        "  assign most = 4'd5;\n"
        "  inner u (.a, .most({28'd0, most}), .n);\n"
        "endmodule\n"
        "module inner(input logic [7:0] a, input int most, output logic [3:0] n);\n"
        "  always_comb begin n = 0; for (int i = 0; i < most; i++) n += 4'(a[i]); end\n"
        "endmodule\n",
    )
    assert model.state == {}


@pytest.mark.long
@pytest.mark.fetches
def test_the_reed_solomon_decoder_is_no_loop_and_a_cross_coupled_latch_is_one() -> None:
    from fetch import fetch

    blocks = fetch("logikbench==1.0.0") / "logikbench/benchmarks/blocks"
    files = sorted((blocks / "reedsolomon/rtl").glob("*.v"))
    _, model = load(read_sources(files, "reedsolomon"))
    assert len(model.points) > 7000
    files = sorted((blocks / "chiplink/rtl").glob("*.v"))
    with pytest.raises(UnsupportedDesign, match=r"wr_full .* reads .*do_wr .* reads .*wr_full"):
        load(read_sources(files, "chiplink"))
