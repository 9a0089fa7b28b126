"""The search and the command around it, without a simulator where that is enough."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.console import Console

from hagane.cli import main
from hagane.symbolic.smt import Answer, Solver
from hagane.symbolic.term import Term, postorder
from hagane.tools.rtl import Budget, cover, read_sources
from hagane.tools.rtl.replay.icarus import find_icarus

from .test_language import replayed

DESIGNS = Path(__file__).parent / "designs"
FACTORS = 5 * 0xFFFFFFFB  # beyond 32 bits, so that no factor is 1

LOOPS = """
module m(input [2:0] s, input [7:0] a, b, output reg [7:0] x, y, z, output reg [3:0] n);
  integer i;
  always_comb begin
    casex (s) 3'b1x0: x = a; 3'b0?1: x = b; default: x = a ^ b; endcase
    priority case (1'b1) s[0]: y = a + 8'd1; s[1]: y = b + 8'd2; default: y = 8'd0; endcase
    if (s == 3) z = a & b; else if (s == 4) z = a | b; else z = ~a;
    n = 0;
    i = 0;
    while (i < 8) begin if (!a[i]) n = n + 1; i = i + 1; end
    i = 0;
    while (i < 8 && !b[i]) begin z = z + 1; i = i + 1; end
    for (i = 0; i < 8 && a[i]; i = i + 1) n = n ^ i;
    repeat (3) y = {y[6:0], y[7]};
    i = 0;
    do begin z = z + b; i = i + 3; end while (i < 6);
  end
endmodule
"""


@pytest.mark.skipif(find_icarus() is None, reason="Icarus is not installed (package 'iverilog')")
def test_cases_with_wildcards_and_loops_of_every_kind_are_as_in_icarus(tmp_path: Path) -> None:
    path = tmp_path / "loops.sv"
    path.write_text(LOOPS)
    replay, run = replayed(read_sources([path], "m"), 300, tmp_path, "icarus")
    assert replay.differences == ()
    assert replay.compared >= 7
    assert "PASSED" in run.output


@pytest.mark.usefixtures("no_simulator")
def test_a_factor_is_made_concrete_where_a_product_is_too_hard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.sv"
    path.write_text(
        "module m(input logic [31:0] a, b, output logic hit);\n"
        f"  assign hit = 64'(a) * 64'(b) == 64'd{FACTORS};\n"
        "endmodule\n"
    )
    right = Solver.check
    too_hard = []

    def check(self: Solver, terms: Sequence[Term] = (), *, seconds: float = 5.0) -> Answer:
        if any(_is_product(node) for node in postorder(terms)):
            too_hard.append(seconds)
            return Answer("unknown", reason="too hard")
        return right(self, terms, seconds=seconds)

    monkeypatch.setattr(Solver, "check", check)
    result = cover(read_sources([path], "m"), Budget(300.0))
    assert too_hard
    found = [test[-1] for test in result.found.tests if test[-1]["a"] * test[-1]["b"] == FACTORS]
    assert found[0]["b"] == 5
    assert result.found.unknown == {}


def _is_product(node: Term) -> bool:
    return node.op == "mul" and not any(factor.is_const for factor in node.args)


@pytest.mark.usefixtures("no_simulator")
def test_an_unknown_value_is_taken_as_zero_and_a_notice_says_so(tmp_path: Path) -> None:
    path = tmp_path / "m.sv"
    path.write_text(
        "module m(input logic [1:0] s, output logic [3:0] y);\n"
        "  always_comb case (s) 0: y = 4'b1x0z; default: y = 4'd3; endcase\n"
        "endmodule\n"
    )
    result = cover(read_sources([path], "m"), Budget(300.0))
    assert f"{path}:2:31: x or z taken as 0 (two-state values)" in result.notices
    assert str(result.model.signals["y"]).count("4'h8") == 1


@pytest.mark.usefixtures("no_simulator")
def test_folders_macros_and_parameters_come_from_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "headers").mkdir()
    (tmp_path / "headers" / "width.svh").write_text("`define W 6\n")
    path = tmp_path / "m.sv"
    path.write_text(
        '`include "width.svh"\n'
        "module m #(parameter N = 1) (input logic [`W-1:0] a, output logic [`EXTRA-1:0] y,\n"
        "                             output logic [N-1:0] z);\n"
        "  assign y = `EXTRA'(a);\n  assign z = N'(a);\nendmodule\n"
    )
    words = ["rtl", "cover", str(path), "--top", "m", "--seconds", "5", "--json"]
    words += ["-I", str(tmp_path / "headers"), "-D", "EXTRA=3", "-G", "N=2"]
    with pytest.raises(SystemExit) as exit_:
        main(words)
    assert exit_.value.code == 0
    assert json.loads(capsys.readouterr().out)["points"]["toggle"]["total"] == 6 + 3 + 2


@pytest.mark.usefixtures("no_simulator")
def test_a_bar_on_a_terminal_shows_covered_dead_and_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    said = Terminal()
    monkeypatch.setattr("sys.stderr", said)
    monkeypatch.setattr(
        "rich.console.Console",
        lambda **_: Console(file=said, force_terminal=True, width=120),
    )
    with pytest.raises(SystemExit):
        main(
            ["rtl", "cover", str(DESIGNS / "lock.sv"), "--top", "lock", "--seconds", "3", "--json"]
        )
    shown = said.getvalue()
    assert "covered, " in shown
    assert " dead, " in shown
    assert " unknown" in shown


@pytest.mark.usefixtures("no_simulator")
def test_the_same_seed_gives_the_same_tests() -> None:
    sources = read_sources([DESIGNS / "lane.sv"], "lane")
    first, second = (cover(sources, Budget(300.0), seed=3).csv for _ in range(2))
    assert first == second
