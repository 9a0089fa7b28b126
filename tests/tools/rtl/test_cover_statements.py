"""Cover statements of the source as coverage points."""

from __future__ import annotations

import importlib
import subprocess
from pathlib import Path

import pytest

from hagane.tools.rtl import Budget, Result, cover, read_sources, to_json
from hagane.tools.rtl.replay.icarus import find_icarus
from hagane.tools.rtl.replay.verilator import build, find_verilator, read_coverage
from hagane.tools.rtl.report import write_report

IMMEDIATE = """
module m(input logic clk, rst_n, input logic [3:0] a, output logic [3:0] q);
  always_ff @(posedge clk or negedge rst_n)
    if (!rst_n) q <= 0;
    else begin
      q <= q + 2;
      cover (q == 8);
      cover (q[0]) $display("odd");
    end
  always_comb begin
    cover (a == 5);
    cover (a == 6 && a == 7);
    if (a[0]) cover (q == 4 && a != 9);
  end
endmodule
"""
SAMPLED = """
module m(input logic clk, rst_n, input logic [3:0] a, output logic [3:0] q);
  always_ff @(posedge clk or negedge rst_n) if (!rst_n) q <= 0; else q <= q + 2;
  six: cover property (@(posedge clk) q == 6);
  cover property (@(posedge clk) disable iff (!rst_n) q == 2 && a == 1);
  cover property (@(posedge clk) disable iff (!rst_n || a == 1) q == 2 && a == 1);
  property ten; @(posedge clk) q == 10; endproperty
  cover property (ten);
endmodule
"""


def covered(folder: Path, text: str) -> Result:
    path = folder / "circuit.sv"
    path.write_text(text)
    return cover(read_sources([path], "m"), Budget(300.0, 12))


def standing(result: Result) -> dict[int, tuple[str, str]]:
    """Return where the cover points stand, and why, by line."""
    return {s.line: (s.status, s.why) for s in result.statuses if s.kind == "cover"}


@pytest.mark.skipif(find_icarus() is None, reason="Icarus is not installed (package 'iverilog')")
def test_an_immediate_cover_is_reached_by_a_test_or_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module("hagane.tools.rtl.cover")
    monkeypatch.setattr(module, "find_verilator", lambda: None)
    result = covered(tmp_path, IMMEDIATE)
    assert result.simulator is not None
    assert result.simulator.startswith("Icarus")
    found = standing(result)
    assert {line: status for line, (status, _) in found.items()} == {
        7: "covered", 8: "dead", 11: "covered", 12: "dead", 13: "covered",
    }  # fmt: skip
    assert "induction" in found[8][1]
    points = to_json(result)["points"]
    assert isinstance(points, dict)
    assert points["cover"] == {
        "total": 5, "covered": 3, "dead": 2, "reachable": 0, "waived": 0, "unknown": 0,
        "dead_within_cycles": 0,
    }  # fmt: skip
    page = write_report(result)
    assert "<tr><th>cover</th><td>5</td><td>3</td><td>2</td><td>0</td><td>0</td><td>0</td>" in page
    (line,) = [text for text in page.splitlines() if "cover (q == 8);" in text]
    assert "class='covered'" in line
    assert "test 0" in line


@pytest.mark.usefixtures("no_simulator")
def test_a_cover_property_of_one_cycle_is_a_point(tmp_path: Path) -> None:
    found = standing(covered(tmp_path, SAMPLED))
    assert {line: status for line, (status, _) in found.items()} == {
        4: "unknown", 5: "unknown", 6: "dead", 8: "unknown",
    }  # fmt: skip
    assert {why for status, why in found.values() if status == "unknown"} == {
        "no simulator replayed the tests"
    }


@pytest.mark.usefixtures("no_simulator")
def test_a_cover_property_at_a_falling_edge_is_named_as_no_target(tmp_path: Path) -> None:
    result = covered(
        tmp_path,
        "module m(input logic clk, a, b, output logic q);\n"
        "  always_ff @(posedge clk) q <= a;\n"
        "  cover property (@(negedge clk) a);\n"
        "endmodule\n",
    )
    assert standing(result) == {}
    path = tmp_path / "circuit.sv"
    assert (
        f"{path}:3:3: a cover property is not a target: it is not sampled at the rising edge of "
        "one clock, in every cycle"
    ) in "\n".join(result.notices)


@pytest.mark.long
@pytest.mark.usefixtures("verilator")
@pytest.mark.parametrize("text", [IMMEDIATE, SAMPLED])
def test_what_counts_as_covered_is_what_verilator_counts(text: str, tmp_path: Path) -> None:
    result = covered(tmp_path, text)
    assert result.defects == []
    assert all(status != "unknown" for status, _ in standing(result).values())
    command = find_verilator()
    assert command is not None
    bench = tmp_path / "tb.sv"
    bench.write_text(result.testbench)
    sources = read_sources([tmp_path / "circuit.sv"], "m")
    program = build(command, sources, bench, tmp_path / "build", ["--coverage-user"])
    subprocess.run([str(program)], cwd=tmp_path, check=True)
    counts = read_coverage(tmp_path / "coverage.dat", ("v_user/",))
    theirs = {point.position.line: count > 0 for point, count in counts.items()}
    ours = {line: status == "covered" for line, (status, _) in standing(result).items()}
    assert theirs == ours
