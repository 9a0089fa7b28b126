"""Tables of weighted states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hagane.tools.prob.engines.compiled import Row


@dataclass(slots=True)
class Table:
    """Weights over ``denominator`` for the values of ``names``."""

    names: tuple[str, ...]
    rows: dict[Row, Any]
    denominator: int = 1

    def scaled(self, factor: int) -> None:
        """Multiply weights and denominator."""
        if factor != 1:
            self.rows = {row: weight * factor for row, weight in self.rows.items()}
            self.denominator *= factor
