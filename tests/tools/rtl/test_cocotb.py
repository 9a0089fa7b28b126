"""The written cocotb tests, run by cocotb in Icarus; cocotb is installed beside, not required."""

from __future__ import annotations

from pathlib import Path

import pytest

from hagane.tools.rtl import Budget, cover, read_sources
from hagane.tools.rtl.icarus import find_icarus

DESIGNS = Path(__file__).parent / "designs"


@pytest.mark.usefixtures("no_simulator")
@pytest.mark.skipif(find_icarus() is None, reason="Icarus is not installed (package 'iverilog')")
@pytest.mark.parametrize("wrong", [False, True])
def test_cocotb_passes_the_circuit_and_fails_a_wrong_one(
    wrong: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    runner_of = pytest.importorskip("cocotb_tools.runner", reason="cocotb is not installed")
    source = DESIGNS / "lock.sv"
    result = cover(read_sources([source], "lock"), Budget(10.0, 8))
    text = result.cocotb
    if wrong:
        text = text.replace("assert got == value", "assert got == 1 - value")
    (tmp_path / "test_lock.py").write_text(text)
    runner = runner_of.get_runner("icarus")
    build = tmp_path / "build"
    runner.build(sources=[source], hdl_toplevel="lock", build_dir=build, build_args=["-g2012"])

    def play() -> Path:
        results: Path = runner.test(
            hdl_toplevel="lock", test_module="test_lock", test_dir=tmp_path, build_dir=build
        )
        return results

    if wrong:
        # Under pytest the runner leaves by this when a test failed.
        with pytest.raises(SystemExit):
            play()
        assert "Failed 1 of 1 tests" in caplog.text
    else:
        assert runner_of.get_results(play()) == (1, 0)
