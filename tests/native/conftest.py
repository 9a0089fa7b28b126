"""Memory and matrix tiles of the engine's tests, and the share of them that ``make test`` runs."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from zlib import crc32

import pytest

from hagane.native.run import context
from hagane.native.run.engine import Engine, Memory
from tests.native.emulated_tiles import emulate_tiles, may_emulate_tiles

_HERE = Path(__file__).parent
_FEW = 8


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


@pytest.hookimpl(tryfirst=True)  # before the marks choose
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark two of three cases of each test with more than eight as long, by their names' hash."""
    tables: dict[tuple[Path, str], list[pytest.Item]] = defaultdict(list)
    for item in items:
        if _HERE in item.path.parents and isinstance(item, pytest.Function):
            tables[item.path, item.originalname].append(item)
    for cases in tables.values():
        if len(cases) > _FEW:
            for case in cases:
                if crc32(case.name.encode()) % 3:
                    case.add_marker(pytest.mark.long)
