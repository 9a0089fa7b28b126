"""Circuits from packages: every point of them is covered or proved dead."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hagane.tools.rtl import Budget, cover, read_sources

sys.path.insert(0, str(Path(__file__).parents[3] / "examples"))

_IBEX = "pythondata-cpu-ibex==0.0.post2937"
_CV32 = "pythondata-cpu-cv32e40x==0.6.0.post161"


def rtl_of(package: str) -> Path:
    from fetch import fetch

    (folder,) = fetch(package).glob("pythondata_cpu_*/system_verilog")
    return folder


@pytest.mark.long
@pytest.mark.fetches
@pytest.mark.usefixtures("verilator")
@pytest.mark.parametrize(
    ("package", "top", "before", "covered", "dead"),
    [
        (_IBEX, "ibex_compressed_decoder", "rtl/ibex_pkg.sv", 50, 6),
        (_CV32, "cv32e40x_b_decoder", "rtl/include/cv32e40x_pkg.sv", 70, 34),
        (_IBEX, "ibex_branch_predict", "rtl/ibex_pkg.sv", 6, 0),
    ],
)
def test_a_circuit_of_a_package_leaves_nothing_unknown(
    package: str, top: str, before: str, covered: int, dead: int
) -> None:
    folder = rtl_of(package)
    include = folder / "vendor/lowrisc_ip/ip/prim/rtl"
    sources = read_sources(
        [folder / before, folder / "rtl" / f"{top}.sv"],
        top,
        [include] if include.is_dir() else [],
        ["SYNTHESIS"],
    )
    result = cover(sources, Budget(300.0))
    counts = result.counts()
    assert {kind: row["unknown"] for kind, row in counts.items()} == dict.fromkeys(counts, 0)
    assert (counts["line"]["covered"], counts["line"]["dead"]) == (covered, dead)
    assert result.defects == []


_LOGIK = "logikbench/benchmarks"


@pytest.mark.long
@pytest.mark.fetches
@pytest.mark.usefixtures("verilator")
@pytest.mark.parametrize(
    ("package", "top", "files", "covered", "dead", "most_cycles"),
    [
        ("libsv==0.2.1", "encoder_8b10b", ["libsv/coders/encoder_8b10b.sv"], 1029, 1, 2000),
        ("libsv==0.2.1", "decoder_8b10b", ["libsv/coders/decoder_8b10b.sv"], 2053, 1, 4000),
        (
            "logikbench==1.0.0",
            "hamming",
            [f"{_LOGIK}/blocks/hamming/rtl/hamming{part}.v" for part in ("", "_enc", "_dec")],
            27,
            0,
            40,
        ),
        (
            "logikbench==1.0.0",
            "requant",
            [f"{_LOGIK}/arithmetic/requant/rtl/requant.v"],
            0,  # it has no lines in a process: branches, statements and toggles count
            0,
            80,
        ),
    ],
)
def test_a_coder_and_the_arithmetic_of_packages_leave_nothing_unknown(
    package: str, top: str, files: list[str], covered: int, dead: int, most_cycles: int
) -> None:
    from fetch import fetch

    folder = fetch(package)
    result = cover(read_sources([folder / file for file in files], top), Budget(300.0))
    counts = result.counts()
    assert {kind: row["unknown"] for kind, row in counts.items()} == dict.fromkeys(counts, 0)
    assert {kind: row["dead_within_cycles"] for kind, row in counts.items()} == dict.fromkeys(
        counts, 0
    )
    assert (counts["line"]["covered"], counts["line"]["dead"]) == (covered, dead)
    assert counts["statement"]["covered"] >= 10
    assert sum(len(test) for test in result.tests) <= most_cycles
    assert result.defects == []
