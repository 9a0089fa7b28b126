"""Which complex tensors of a program may share their memory; their parts are other tensors."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from hagane.frontends.libraries.memory.writing import tensors_in
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.memory import COMPLEX, share
from hagane.frontends.python.values.values import Tensor


class SharedMemory:
    """The views that the program has taken of complex tensors, and as complex ones."""

    def __init__(self) -> None:
        self._wholes: dict[ir.Value, ir.Value] = {}

    def note(self, whole: Tensor, found: Sequence[Tensor], parts: Sequence[ir.Value]) -> None:
        """Note that tensors may lie in the memory of another one.

        Args:
            whole: The other one.
            found: The tensors.
            parts: The real and imaginary part of ``whole``: written by what is written into
                real tensors among ``found``.
        """
        for view in found:
            if view.value is not whole.value:
                self._wholes[view.value] = self._wholes.get(whole.value, whole.value)
                if view.dtype not in COMPLEX:
                    share(view.value, parts)

    def is_shared(self, core: Core, x: Tensor) -> bool:
        """Whether a complex tensor is a view, or names of the program hold views of it."""
        if x.value in self._wholes:
            return True
        held = [t for content in core.heap.contents.values() for t in tensors_in(content)]
        return any(self._wholes.get(t.value) is x.value for t in held)


__all__ = ["COMPLEX", "SharedMemory"]
