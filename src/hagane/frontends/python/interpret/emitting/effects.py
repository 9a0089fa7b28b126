"""Effects of a program in training besides its result: new contents of buffers, random numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir

from hagane.frontends.python.values.values import Tensor
from hagane.graph.types import Shape
from hagane.symbolic import Dim


@dataclass(frozen=True, slots=True)
class Noise:
    """Random numbers that the caller of a graph draws.

    Attributes:
        name: Of the input.
        kind: The function of PyTorch that draws them, or the method in place.
        dtype: Their element type.
        shape: Their sizes, by those of the arguments.
        bounds: The arguments of the function before the shape, or of the method.
    """

    name: str
    kind: str
    dtype: ir.DataType
    shape: Shape
    bounds: tuple[Dim | float, ...]


@dataclass(slots=True)
class Training:
    """The effects of a program in training besides its result.

    Attributes:
        updates: The new content of buffers that it changes, by their names.
        counted: How often a layer that counts its batches runs, by the identity of the real one.
        seed: Two numbers of type uint32 that random numbers follow from, once some are drawn.
        draws: How many arrays of random numbers are drawn.
        masks: Inputs for the factors of dropout, with the share that is dropped, and for
            normal numbers, with None, where the caller draws them; None where they follow from
            the seed.
        noises: Arrays of random numbers that the caller draws, in the order of the program; None
            where the program may draw none.
        models: Objects among the arguments whose attributes the program may change, by name.
        moved: How many values there were after the first change of each buffer, by the identity of
            the real one.
        written: Whether buffers are written where they lie, as attributes are, because the program
            reads them again.
    """

    updates: dict[str, Tensor] = field(default_factory=dict)
    counted: Counter[int] = field(default_factory=Counter)
    seed: Tensor | None = None
    draws: int = 0
    masks: list[tuple[Tensor, float | None]] | None = None
    noises: list[Noise] | None = None
    models: Mapping[str, Any] = field(default_factory=dict)
    moved: dict[int, int] = field(default_factory=dict)
    written: bool = False

    def begin(self) -> None:
        """Forget earlier reports."""
        self.updates.clear()
        self.counted.clear()
        self.moved.clear()
        self.seed, self.draws = None, 0
        if self.masks is not None:
            self.masks.clear()
        if self.noises is not None:
            self.noises.clear()
