"""``torch.Size``: a tuple of sizes with a class of its own."""

from __future__ import annotations

from typing import Any, SupportsIndex


class Size(tuple[Any, ...]):
    """The sizes of a tensor, as PyTorch gives them; what is added to or cut from it is one too."""

    __slots__ = ()

    def __add__(self, other: Any) -> Size:
        """Return the sizes with others behind them."""
        return Size(tuple.__add__(self, other))

    def __radd__(self, other: Any) -> Size:
        """Return the sizes with others in front of them."""
        return Size(tuple.__add__(tuple(other), self))

    def __mul__(self, times: SupportsIndex) -> Size:
        """Return the sizes several times."""
        return Size(tuple.__mul__(self, times))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        """Return the text that PyTorch has for known sizes."""
        return f"torch.Size([{', '.join(map(repr, self))}])"


__all__ = ["Size"]
