"""Random numbers of a loss, which PyTorch draws in each call and the graph takes as inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx_ir as ir

from hagane.errors import InvalidArgument
from hagane.frontends.python.interpret.emitting.effects import Noise
from hagane.graph.types import dtype_name
from hagane.symbolic import Expr, number_of, symbols_of


class NoiseSource:
    """Draws the random numbers of a call in the order of the program.

    Those that the graph has no use for are drawn too: the numbers behind them are those that the
    program would get.

    Args:
        noises: The numbers.
        graph: The graph that takes them.

    Raises:
        InvalidArgument: Their sizes follow from the data.
    """

    def __init__(self, noises: Sequence[Noise], graph: ir.Graph):
        self._noises = tuple(noises)
        drawn = {noise.name for noise in noises}
        told = {
            str(dim.value)
            for value in graph.inputs
            if value.name not in drawn
            for dim in value.shape or ()
            if isinstance(dim, ir.SymbolicDim)
        }
        for noise in noises:
            dims = (*noise.shape, *(b for b in noise.bounds if isinstance(b, Expr)))
            unknown = sorted({name for dim in dims for name in symbols_of(dim)} - told)
            if unknown:
                raise InvalidArgument(
                    f"step: 'torch.{noise.kind}' has a size that only the data tell "
                    f"({', '.join(unknown)}): draw the numbers outside and pass them in"
                )

    @property
    def draws(self) -> bool:
        """Whether a call draws any."""
        return bool(self._noises)

    def shapes(self, sizes: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the inputs, by the sizes of a call."""
        return {
            noise.name: tuple(number_of(dim, sizes) for dim in noise.shape)
            for noise in self._noises
        }

    def draw(self, sizes: Mapping[str, int]) -> dict[str, Any]:
        """Return the tensors of a call, by the sizes of it."""
        import torch

        shapes, found = self.shapes(sizes), dict[str, Any]()
        for noise in self._noises:
            dtype = getattr(torch, dtype_name(noise.dtype))
            shape = shapes[noise.name]
            if noise.kind.endswith("_"):
                made = torch.empty(shape, dtype=dtype)
                found[noise.name] = getattr(made, noise.kind)(*self._bounds(noise, sizes))
                continue
            function: Callable[..., Any] = getattr(torch, noise.kind)
            if noise.kind == "randperm":
                found[noise.name] = function(*shape, dtype=dtype)
                continue
            found[noise.name] = function(*self._bounds(noise, sizes), shape, dtype=dtype)
        return found

    @staticmethod
    def _bounds(noise: Noise, sizes: Mapping[str, int]) -> list[float]:
        """Return the other arguments of what draws some numbers."""
        return [
            number_of(bound, sizes) if isinstance(bound, Expr) else bound for bound in noise.bounds
        ]
