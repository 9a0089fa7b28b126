"""Sizes of a part as numbers by index, and C that computes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hagane.symbolic import C_FLOOR, Dim, Expr, c_text, symbols_of

# The function that the others use.
FLOOR = C_FLOOR.replace("NAME", "hgb_floor")


class SizeTable:
    """Sizes, each of which has one index.

    Args:
        symbols: Names whose sizes the inputs of the part tell.
        changing: Names whose sizes differ between iterations, and the first value of each.
    """

    def __init__(self, symbols: Sequence[str], changing: Mapping[str, Dim]):
        self.symbols = tuple(symbols)
        self.names = {name: i for i, name in enumerate((*symbols, *changing))}
        self._changing = dict(changing)
        self._indices: dict[tuple[bool, Dim], int] = {}
        self._dims: list[Dim] = []

    def __call__(self, dim: Dim) -> int:
        """Return the index of a size."""
        if isinstance(dim, Expr) and str(dim) in self.names and symbols_of(dim) == {str(dim)}:
            return self.names[str(dim)]
        key = (isinstance(dim, Expr), dim if isinstance(dim, Expr) else int(dim))
        if key not in self._indices:
            self._indices[key] = len(self.names) + len(self._dims)
            self._dims.append(dim)
        return self._indices[key]

    def __len__(self) -> int:
        return len(self.names) + len(self._dims)

    def constants(self) -> list[int]:
        """Return all numbers, 0 for those that a run tells."""
        known = [0 if isinstance(dim, Expr) else int(dim) for dim in self._dims]
        return [0] * len(self.names) + known

    def functions(self, name: str) -> str:
        """Return two C functions: the first values of changing sizes, and all that follow."""
        begin = [
            f"n[{self.names[symbol]}] = {self._text(start)};"
            for symbol, start in self._changing.items()
        ]
        first = len(self.names)
        compute = [
            f"n[{first + i}] = {self._text(dim)};"
            for i, dim in enumerate(self._dims)
            if isinstance(dim, Expr)
        ]
        return "".join(
            f"static void {name}_{what}(int64_t *n) {{\n  (void)n;\n"
            + "".join(f"  {line}\n" for line in lines)
            + "}\n"
            for what, lines in (("begin", begin), ("compute", compute))
        )

    def _text(self, dim: Dim) -> str:
        return c_text(dim, lambda name: f"n[{self.names[name]}]", "hgb_floor")
