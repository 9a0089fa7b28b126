"""Memory and matrix tiles of the engine's tests."""

from __future__ import annotations

import pytest

from hagane.native.run import context
from hagane.native.run.engine import Engine, Memory
from tests.native.emulated_tiles import emulate_tiles, may_emulate_tiles


class _Used(Memory):
    """Memory that nobody cleared: what is read before it is written is not a number."""

    def __init__(self, engine: Engine, size: int):
        super().__init__(engine, size)
        self.fill(0, size, 0xFF)


context.Memory = _Used  # type: ignore[attr-defined]


@pytest.fixture(scope="session", autouse=True)
def _tiles() -> None:
    """After pytest has set signal handlers of its own, which would end the process."""
    if may_emulate_tiles():
        emulate_tiles()
