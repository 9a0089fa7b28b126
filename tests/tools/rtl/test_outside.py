"""Points settled outside of a search: by existing tests, by waivers, and when time is up."""

from __future__ import annotations

import importlib
import json
import time
from pathlib import Path

import pytest

from hagane.cli import main
from hagane.errors import InvalidArgument
from hagane.tools.rtl import Budget, cover, read_sources
from hagane.tools.rtl.circuit.design import Design
from hagane.tools.rtl.circuit.simulate import Bit
from hagane.tools.rtl.cover import load
from hagane.tools.rtl.merged import covered_elsewhere
from hagane.tools.rtl.waivers import read_waivers

CIRCUIT = """module m(input logic clk, rst, input logic [3:0] a, output logic [3:0] y);
  always_ff @(posedge clk)
    if (rst) y <= 0;
    else if (a == 7) y <= 1;
    else y <= a & 4'b0111;
endmodule
"""


def written(tmp_path: Path) -> Path:
    path = tmp_path / "m.sv"
    path.write_text(CIRCUIT)
    return path


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    with pytest.raises(SystemExit) as exit_:
        main(["rtl", "cover", *words, "--top", "m", "--seconds", "300", "--json"])
    assert exit_.value.code == 0
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


@pytest.mark.usefixtures("no_simulator")
def test_json_lists_dead_points_with_their_proofs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = answer(capsys, str(written(tmp_path)))
    dead = found["dead"]
    assert isinstance(dead, list)
    (item,) = (item for item in dead if item["where"] == "y[3]")
    assert item["kind"] == "toggle"
    assert item["why"].startswith("always 0: ")
    assert item["cycles"] is None
    points = found["points"]
    assert isinstance(points, dict)
    assert len(dead) == sum(row["dead"] for row in points.values())


@pytest.mark.usefixtures("no_simulator")
def test_waived_points_are_counted_apart_and_an_unused_waiver_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    waivers = tmp_path / "waivers.toml"
    waivers.write_text(
        '[[waive]]\nkind = "toggle"\nwhere = "y[[]*"\nreason = "seen on the board"\n'
        '[[waive]]\nwhere = "m.sv:4:* true"\nreason = "a is never 7"\n'
        '[[waive]]\nwhere = "nothing"\nreason = "a leftover"\n'
    )
    found = answer(capsys, str(written(tmp_path)), "--waive", str(waivers))
    waived = {(item["kind"], item["why"]) for item in found["waived"]}  # type: ignore[attr-defined]
    assert waived == {
        ("toggle", "seen on the board"), ("branch", "a is never 7"), ("condition", "a is never 7"),
    }  # fmt: skip
    assert found["points"]["toggle"]["waived"] == 4  # type: ignore[index]
    assert "the waiver of * 'nothing' fits no point" in found["notices"]  # type: ignore[operator]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[waive]]\nwhere = "x"\n', "waiver 1 of 'x' has no reason"),
        ('[[waive]]\nreason = "x"\n', "waiver 1: expected 'where', 'reason' and perhaps 'kind'"),
        ("[other]\n", r"expected tables \[\[waive\]\], got \['other'\]"),
        ("x = ", "no TOML"),
    ],
)
def test_a_file_that_waives_nothing_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "w.toml"
    path.write_text(text)
    with pytest.raises(InvalidArgument, match=said):
        read_waivers(path)


UCIS = """<?xml version="1.0"?>
<UCIS xmlns="http://www.w3.org/2001/XMLSchema-instance" ucisVersion="1.0">
 <sourceFiles fileName="rtl/m.sv" id="1"/>
 <instanceCoverages name="bench.dut" key="0" moduleName="m">
  <toggleCoverage>
   <toggleObject name="y"><toggleBit name="y[1]">
     <toggle from="0" to="1"><bin><contents coverageCount="3"/></bin></toggle>
     <toggle from="1" to="0"><bin><contents coverageCount="2"/></bin></toggle>
    </toggleBit><toggleBit name="y[2]">
     <toggle from="0" to="1"><bin><contents coverageCount="1"/></bin></toggle>
     <toggle from="1" to="0"><bin><contents coverageCount="0"/></bin></toggle>
    </toggleBit></toggleObject>
  </toggleCoverage>
  <blockCoverage><statement><id file="1" line="4" inlineCount="1"/>
    <bin><contents coverageCount="5"/></bin></statement>
   <statement><id file="1" line="5" inlineCount="1"/>
    <bin><contents coverageCount="0"/></bin></statement></blockCoverage>
  <branchCoverage><statement><id file="1" line="4" inlineCount="1"/>
   <branch><id file="1" line="4" inlineCount="1"/>
    <branchBin alias="true"><contents coverageCount="1"/></branchBin></branch></statement>
  </branchCoverage>
 </instanceCoverages>
</UCIS>
"""


def test_ucis_points_are_matched_by_instance_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "cov.xml"
    path.write_text(UCIS)
    _, model = load(read_sources([written(tmp_path)], "m"))
    found = covered_elsewhere([path], model, "m")
    assert {goal for goal in found if isinstance(goal, Bit)} == {
        Bit("y", 1, 0), Bit("y", 1, 1),
    }  # fmt: skip
    others = {(g.kind, g.position.line, g.label) for g in found if not isinstance(g, Bit)}  # type: ignore[union-attr]
    assert others == {("statement", 4, "assignment"), ("branch", 4, "true")}
    assert set(found.values()) == {"cov.xml"}


def test_coverage_without_the_top_module_or_in_no_known_form_is_refused(tmp_path: Path) -> None:
    _, model = load(read_sources([written(tmp_path)], "m"))
    path = tmp_path / "cov.xml"
    path.write_text(UCIS.replace('moduleName="m"', 'moduleName="other"'))
    with pytest.raises(InvalidArgument, match="it has no instance of module 'm'"):
        covered_elsewhere([path], model, "m")
    path.write_text("line,count\n")
    with pytest.raises(InvalidArgument, match="expected a coverage.dat of Verilator or UCIS XML"):
        covered_elsewhere([path], model, "m")
    with pytest.raises(InvalidArgument, match="there is no such file"):
        covered_elsewhere([tmp_path / "none.dat"], model, "m")


def entry(count: int, **fields: object) -> str:
    text = "".join(f"\x01{key}\x02{value}" for key, value in fields.items())
    return f"C '{text}' {count}\n"


@pytest.mark.usefixtures("no_simulator")
def test_points_of_a_coverage_dat_are_covered_and_not_sought(tmp_path: Path) -> None:
    source = written(tmp_path)
    common = {"f": source, "n": 5, "h": "TOP.bench.dut"}
    path = tmp_path / "coverage.dat"
    path.write_text(
        "# SystemC::Coverage-3\n"
        + entry(9, page="v_branch/m", l=4, o="if", **common)
        + entry(0, page="v_branch/m", l=4, o="else", **common)
        + entry(2, page="v_toggle/m", l=1, o="y[0]", **common)
        + entry(0, page="v_toggle/m", l=1, o="y[1]", **common)
    )
    result = cover(read_sources([source], "m"), Budget(300.0), covered=[path])
    by_file = {item.where.rpartition("/")[2] for item in result.statuses if "by cover" in item.why}
    assert by_file == {"m.sv:4:10 if", "y[0]"}
    assert not any(goal in result.found.covered for goal in (Bit("y", 0, 0), Bit("y", 0, 1)))
    assert Bit("y", 1, 1) in result.found.covered


@pytest.mark.usefixtures("no_simulator")
def test_points_of_one_line_are_told_apart_by_their_columns(tmp_path: Path) -> None:
    text = """module m(input logic clk, output logic [1:0] s);
  always_ff @(posedge clk) case (s) 0: s <= 1; 1: s <= 2; 2: s <= 0; default: s <= 3; endcase
endmodule
"""
    source = tmp_path / "m.sv"
    source.write_text(text)
    _, model = load(read_sources([source], "m"))
    line = text.splitlines()[1]
    columns = [line.index(f" {item}:") + len(item) + 2 for item in ("0", "1", "2", "default")]
    path = tmp_path / "coverage.dat"
    head, common = "# SystemC::Coverage-3\n", {"f": source, "l": 2, "h": "TOP.m", "o": "case"}
    path.write_text(
        head
        + "".join(
            entry(count, page="v_line/m", n=column, **common)
            for column, count in zip(columns, (9, 4, 0, 0), strict=True)
        )
    )
    found = covered_elsewhere([path], model, "m")
    assert [key.position.column for key in found if not isinstance(key, Bit)] == columns[:2]
    result = cover(read_sources([source], "m"), Budget(300.0, 4), covered=[path])
    by_file = {item.where.split(":")[-1] for item in result.statuses if "by cover" in item.why}
    assert by_file == {f"{column} case" for column in columns[:2]}  # all four were


def test_several_statements_of_a_line_need_as_many_counts_without_columns(tmp_path: Path) -> None:
    source = tmp_path / "m.sv"
    source.write_text(CIRCUIT.replace("y <= 1;", "begin y <= 1; y[0] <= 0; end"))
    _, model = load(read_sources([source], "m"))
    path = tmp_path / "cov.xml"
    path.write_text(UCIS)
    found = covered_elsewhere([path], model, "m")
    assert {key.kind for key in found if not isinstance(key, Bit)} == {"branch"}


@pytest.mark.usefixtures("verilator")
def test_a_circuit_that_is_not_read_in_time_still_gets_the_simulators_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module("hagane.tools.rtl.cover")

    def endless(design: Design) -> None:
        while True:
            time.sleep(0.001)

    monkeypatch.setattr(module, "build_model", endless)
    monkeypatch.setattr(module, "_MODEL", 0.001)
    result = cover(read_sources([written(tmp_path)], "m"), Budget(300.0))
    assert any("was not read within the time (--seconds 300)" in text for text in result.notices)
    lines = result.counts()["line"]
    assert lines["covered"] == lines["total"] > 3


MACROS = """`define STEP(q, d, l, c) \\
  always_ff @(posedge clk or negedge rst_n) \\
    if (!rst_n) q <= 0; else if (c) q <= 0; else if (l) q <= d;
module m(input logic clk, rst_n, a, l, c, output logic q, output logic [1:0] r);
  `STEP(q, a, l, c)
  logic again;
  always_comb begin
    again = a;
    r = 0;
    if (l) begin
      if (again) r = 1;
      again = 1;
    end
    if (again) r = r + 2;
  end
endmodule
"""


@pytest.mark.usefixtures("verilator")
def test_chains_in_macros_and_conditions_written_afterwards_agree_with_verilator(
    tmp_path: Path,
) -> None:
    path = tmp_path / "m.sv"
    path.write_text(MACROS)
    result = cover(read_sources([path], "m"), Budget(300.0))
    assert result.defects == []
    assert sum(row["unknown"] for row in result.counts().values()) == 0
    assert result.model.overwritten
