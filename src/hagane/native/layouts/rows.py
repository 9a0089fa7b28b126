"""Rows of a matrix in blocks of columns, as tiles read the left side of a product."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import onnx_ir as ir

from hagane.native.kernels.expression import Expression
from hagane.native.kernels.tensor import Tensor
from hagane.native.tiles.tile import Words
from hagane.symbolic import Dim


@dataclass(frozen=True, slots=True)
class Rows:
    """The left side of a product, as tiles read it; sizes count 32-bit words.

    Attributes:
        tensor: Its memory.
        count: Rows.
        words: Words of one row.
        step: From one row to the next.
        plane: From one block of words to the next.
        kept: The content of a word; of numbers in pieces, ``words`` counts those of one piece.
    """

    tensor: Tensor
    count: Dim
    words: int
    step: int
    plane: Dim
    kept: Words


@dataclass(frozen=True, slots=True)
class Product:
    """A product that is lowered, and may yet be lowered to something else.

    Attributes:
        value: Its result.
        index: Its kernel's place in the list.
        columns: Of the result.
        again: Appends a kernel that stores a function of the result in blocks of rows.
    """

    value: ir.Value
    index: int
    columns: int
    again: Callable[[Rows, Expression | None], None]
