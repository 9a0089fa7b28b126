"""Sizes that operators of other domains need to be equal, where only the inputs of a run tell.

Passes write such operators in others, which may take sizes that the operator does not: a sum
broadcasts where it has one bias for each column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from hagane.errors import InvalidFeed
from hagane.graph.types import Shape, TensorType
from hagane.graph.verify import describe
from hagane.graph.walk import all_nodes
from hagane.ops import GraphTypes
from hagane.ops.definition import RuntimeValue
from hagane.symbolic import Dim, evaluate, symbol, symbols_of


@dataclass(frozen=True, slots=True)
class Needed:
    """Pairs of sizes.

    Attributes:
        shapes: Of the model's inputs, None for one that is no tensor of a known rank.
        pairs: Each with the node that needs it.
    """

    shapes: tuple[Shape | None, ...]
    pairs: dict[tuple[Dim, Dim], str]

    @classmethod
    def of(cls, model: ir.Model, types: GraphTypes) -> Needed:
        """Return those of a model before passes change it, and note them in its types."""
        found = [types.types.get(value) for value in model.graph.inputs]
        shapes = tuple(type_.shape if isinstance(type_, TensorType) else None for type_ in found)
        given = {name for shape in shapes for dim in shape or () for name in symbols_of(dim)}
        pairs = {
            pair: describe(node)
            for node in all_nodes(model.graph)
            if node.domain not in ("", "ai.onnx.ml", "hagane")
            for pair in types.assumed.get(node, ())
            if pair not in types.broadcast.get(node, ())
            and all(symbols_of(dim) <= given for dim in pair)
        }
        types.needed = set(pairs)
        return cls(shapes, pairs)

    def check(self, arguments: Sequence[RuntimeValue]) -> None:
        """Compare the sizes of a run.

        Args:
            arguments: A value for each input.

        Raises:
            InvalidFeed: Two differ.
        """
        if not self.pairs:
            return
        sizes: dict[str, Dim] = {}
        for shape, value in zip(self.shapes, arguments, strict=True):
            if shape is None or not isinstance(value, np.ndarray) or value.ndim != len(shape):
                continue
            for dim, size in zip(shape, value.shape, strict=True):
                if dim == symbol(str(dim)):
                    sizes.setdefault(str(dim), size)
        for (left, right), node in self.pairs.items():
            numbers = evaluate(left, sizes), evaluate(right, sizes)
            if all(isinstance(one, int) for one in numbers) and numbers[0] != numbers[1]:
                raise InvalidFeed(
                    f"{node}: expected inputs for which {left} and {right} are one size, got "
                    f"{numbers[0]} and {numbers[1]}"
                )
