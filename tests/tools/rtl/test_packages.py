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
    result = cover(sources, Budget(60.0))
    counts = result.counts()
    assert {kind: row["unknown"] for kind, row in counts.items()} == dict.fromkeys(counts, 0)
    assert (counts["line"]["covered"], counts["line"]["dead"]) == (covered, dead)
    assert result.defects == []
