from __future__ import annotations

import importlib

import pytest

pytest.importorskip("pyslang", reason="pyslang is not installed (extra 'rtl')")
pytest.importorskip("z3", reason="z3-solver is not installed (extra 'rtl')")


@pytest.fixture
def no_simulator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the replay out, for tests of the search alone."""
    module = importlib.import_module("hagane.tools.rtl.cover")
    monkeypatch.setattr(module, "find_verilator", lambda: None)
    monkeypatch.setattr(module, "find_icarus", lambda: None)


@pytest.fixture
def verilator() -> str:
    from hagane.tools.rtl.replay.verilator import find_verilator

    command = find_verilator()
    if command is None:
        pytest.skip("Verilator is not installed (package 'verilator')")
    return command
