"""Variables in expressions: arithmetic, indices, and methods that are functions."""

from __future__ import annotations

from typing import Any

_COMPARED = "Variables cannot be compared; compare their arrays: x.array {} y.array"


class Operand:
    """Python's operators on variables, each a function of the library."""

    def reshape(self, *shape: Any) -> Any:
        """Return it with other sizes."""
        wanted: Any = shape
        from hagane.nn.functions.array import reshape

        if len(shape) == 1 and (shape[0] is None or isinstance(shape[0], tuple | list)):
            wanted = shape[0]
        return reshape(self, wanted)

    def transpose(self, *axes: Any) -> Any:
        """Return it with its axes permuted, by default reversed."""
        from hagane.nn.functions.array import transpose

        if not axes:
            return transpose(self)
        order: Any = axes
        if len(axes) == 1 and (isinstance(axes[0], tuple | list) or axes[0] is None):
            order = axes[0]
        return transpose(self, order)

    def mean(self, axis: Any = None, *, weights: Any = None, keepdims: bool = False) -> Any:
        """Return the weighted mean over axes."""
        from hagane.nn.functions.math import average

        return average(self, axis, weights, keepdims)

    def __getitem__(self: Any, index: Any) -> Any:
        from hagane.nn.functions.array import get_item

        if type(index) is int and self.ndim and not -len(self) <= index < len(self):
            raise IndexError(f"index {index} is out of bounds for axis 0 of size {len(self)}")
        return get_item(self, index)

    def _arithmetic(self, name: str, *operands: Any) -> Any:
        from hagane.nn.functions import arithmetic

        return getattr(arithmetic, name)(*operands)

    def __neg__(self) -> Any:
        return self._arithmetic("neg", self)

    def __abs__(self) -> Any:
        return self._arithmetic("absolute", self)

    def __add__(self, other: Any) -> Any:
        return self._arithmetic("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return self._arithmetic("add", self, other)

    def __sub__(self, other: Any) -> Any:
        return self._arithmetic("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self._arithmetic("rsub", self, other)

    def __mul__(self, other: Any) -> Any:
        return self._arithmetic("mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return self._arithmetic("mul", self, other)

    def __truediv__(self, other: Any) -> Any:
        return self._arithmetic("div", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._arithmetic("rdiv", self, other)

    def __floordiv__(self, other: Any) -> Any:
        return self._arithmetic("floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._arithmetic("rfloordiv", self, other)

    def __pow__(self, other: Any) -> Any:
        return self._arithmetic("pow", self, other)

    def __rpow__(self, other: Any) -> Any:
        return self._arithmetic("rpow", self, other)

    def __matmul__(self, other: Any) -> Any:
        return self._arithmetic("multiply_matrices", self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return self._arithmetic("multiply_matrices_reversed", self, other)

    def __lt__(self, other: object) -> bool:
        raise NotImplementedError(_COMPARED.format("<"))

    def __le__(self, other: object) -> bool:
        raise NotImplementedError(_COMPARED.format("<="))

    def __eq__(self, other: object) -> bool:
        raise NotImplementedError(_COMPARED.format("=="))

    def __ne__(self, other: object) -> bool:
        raise NotImplementedError(_COMPARED.format("!="))

    def __gt__(self, other: object) -> bool:
        raise NotImplementedError(_COMPARED.format(">"))

    def __ge__(self, other: object) -> bool:
        raise NotImplementedError(_COMPARED.format(">="))

    def __bool__(self) -> bool:
        raise NotImplementedError("a Variable has no truth value; ask its array: bool(x.array)")

    __hash__ = object.__hash__
