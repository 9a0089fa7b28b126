"""The description of a program: an operator or a function, or the gradient of one, on open sizes.

Sizes that are equal in a call share a name, so that the consequences of that are known when the
program is made; sizes of 1, along which operators repeat elements, are numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand of a program.

    Attributes:
        dtype: Its element type, as NumPy calls it.
        dims: Numbers, and names of sizes that differ from run to run.
        content: The bytes of a constant.
    """

    dtype: str
    dims: tuple[int | str, ...]
    content: bytes | None = None

    def array(self) -> Any:
        """Return the constant, or None."""
        if self.content is None:
            return None
        return np.frombuffer(self.content, self.dtype).reshape(self.dims)


@dataclass(frozen=True, slots=True)
class Order:
    """The computation of a program.

    Attributes:
        kind: An operator, or a function over the builder.
        place: The operator's domain, or the function's module.
        name: Of operator or function.
        attributes: By name; those of a function are its named arguments.
        operands: None for an absent one.
        n_outputs: Of the call.
        given: For a gradient: whether each output has one; empty for the call itself.
        targets: For a gradient: the operands by which.
    """

    kind: Literal["operator", "function"]
    place: str
    name: str
    attributes: tuple[tuple[str, Any], ...]
    operands: tuple[Operand | None, ...]
    n_outputs: int
    given: tuple[bool, ...] = ()
    targets: tuple[int, ...] = ()


def is_exact(attributes: Iterable[tuple[str, Any]], arrays: Iterable[Any]) -> bool:
    """Whether attributes keep their numbers in a model, whose attributes are of 32 bits.

    Beside arrays of 64 bits another number would show.
    """
    inexact = any(type(item) is float and float(np.float32(item)) != item for _, item in attributes)
    return not (inexact and any(x is not None and x.dtype.char == "d" for x in arrays))


def operands_of(
    arrays: Sequence[Any], constants: Sequence[int] = (), fixed: Sequence[Sequence[int] | None] = ()
) -> tuple[Operand | None, ...]:
    """Return the operands that arrays are.

    Args:
        arrays: The arrays, None for an absent one.
        constants: Which of them are part of the program.
        fixed: For each, the axes whose sizes are numbers in the program; None for all.
    """
    names: dict[int, str] = {}
    found: list[Operand | None] = []
    for place, array in enumerate(arrays):
        if array is None:
            found.append(None)
            continue
        if place in constants:
            found.append(Operand(array.dtype.name, array.shape, array.tobytes()))
            continue
        own = fixed[place] if place < len(fixed) else ()
        dims = tuple(
            size
            if size == 1 or own is None or axis in own
            else names.setdefault(size, f"n{len(names)}")
            for axis, size in enumerate(array.shape)
        )
        found.append(Operand(array.dtype.name, dims))
    return tuple(found)
