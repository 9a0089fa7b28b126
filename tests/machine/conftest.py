"""Each test starts as a process does: no notice given, no temporary folder made."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hagane.machine.notices._given", set())
    monkeypatch.setattr("hagane.machine.folder._temporary", {})
    monkeypatch.setattr("hagane.machine.cache._written", {})
