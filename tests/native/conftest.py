"""Matrix tiles of the engine's tests."""

from __future__ import annotations

import pytest

from tests.native.emulated_tiles import emulate_tiles, may_emulate_tiles


@pytest.fixture(scope="session", autouse=True)
def _tiles() -> None:
    """After pytest has set signal handlers of its own, which would end the process."""
    if may_emulate_tiles():
        emulate_tiles()
