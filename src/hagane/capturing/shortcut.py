"""The way of a call that is like the one before: the same graph, tensors of the same types."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hagane.capturing.laying import lay_views
from hagane.capturing.leaves import NumberLeaf, TensorLeaf, Tree
from hagane.capturing.results import builder, leaves_of
from hagane.capturing.tensors import array_of, in_parts, returned, wants_gradients
from hagane.capturing.variables import wants_way_back
from hagane.capturing.variant import Variant
from hagane.errors import KernelError

MISSED = object()


class Shortcut:
    """Runs a graph for calls whose arguments are tensors of the types and shapes of one call.

    All other calls miss it; so do those for which an assumption of the graph no longer holds.

    Args:
        variant: The graph; it changes no attributes and no arguments.
        leaves: The arguments of the call, all of which were given by position.
    """

    def __init__(self, variant: Variant, leaves: Sequence[TensorLeaf | NumberLeaf]):
        assert variant.captured is not None
        self._variant = variant
        self._captured = variant.captured
        self._expected = [
            (leaf.path, type(leaf.value), leaf.value.dtype, leaf.value.shape)
            for leaf in leaves
            if isinstance(leaf, TensorLeaf)
        ]
        self._parameters = variant.parameters
        self._layout = variant.asks_layout or bool(variant.ordered)
        self._gradients = variant.asks_gradients
        self._torch = any(leaf.kind == "torch.Tensor" for leaf in leaves)  # type: ignore[union-attr]
        # Modes of PyTorch, such as autocast, mean nothing to arrays and functions of NumPy.
        self.is_plain = not (self._torch or variant.asks_torch)
        self._default = _default_dtype()
        self._names = [str(value.name) for value in self._captured.graph.outputs]
        self._build = builder(self._captured.structure, self._names, returned)

    @staticmethod
    def of(
        variant: Variant, tree: Mapping[str, Tree], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Shortcut | None:
        """Return the shortcut for calls like this one; None if it is too involved."""
        captured = variant.captured
        leaves = list(tree.values())
        if captured is None or captured.state or captured.changes or kwargs:
            return None
        if captured.trained or captured.records:
            return None
        asks = variant.reads.compares or variant.reads.lacks
        if asks or any(x.path for x in leaves_of(captured.structure)):
            return None
        if len(leaves) != len(args) or not all(isinstance(leaf, TensorLeaf) for leaf in leaves):
            return None
        if any(type(arg).__name__ not in ("Tensor", "ndarray") for arg in args):
            return None
        return Shortcut(variant, leaves)

    def _is_odd(self, tensor: Any) -> bool:
        """Whether a question of the program about a tensor has another answer than it had."""
        if self._gradients and tensor.requires_grad:
            return True
        return self._layout and bool(not tensor.is_contiguous() or tensor.storage_offset())

    def run(self, args: Sequence[Any]) -> Any:
        """Return the result of a call, ``MISSED`` where it has to take the long way."""
        if len(args) != len(self._expected) or _default_dtype() is not self._default:
            return MISSED
        feeds: dict[str, Any] = {}
        for arg, (path, kind, dtype, shape) in zip(args, self._expected, strict=True):
            if type(arg) is not kind or arg.dtype != dtype or arg.shape != shape:
                return MISSED
            if kind is np.ndarray:
                if self._layout and not arg.flags.c_contiguous:
                    return MISSED
                feeds[path] = in_parts(arg)
            elif self._is_odd(arg):
                return MISSED
            elif arg.is_cpu and arg.layout is sys.modules["torch"].strided:
                feeds[path] = array_of(arg)
            else:
                return MISSED
        variant = self._variant
        tensors = (*args, *self._parameters) if self._torch else self._parameters
        if tensors and wants_gradients(tensors):
            return MISSED
        if variant.variables and wants_way_back(variant.variables):
            return MISSED
        sessions = variant.sessions
        assert sessions is not None
        now = sessions.marks()
        if variant.broken(weights_rest=sessions.are_seen(now)):
            return MISSED
        try:
            found = sessions.run(feeds, now)
        except KernelError:
            return MISSED
        views = self._captured.views
        if views:
            made = dict(zip(self._names, found, strict=True))
            lay_views(views, feeds, made, dict(zip(feeds, args, strict=True)))
            found = [*made.values()]
        return self._build(found)


def _default_dtype() -> Any:
    torch = sys.modules.get("torch")
    return None if torch is None else torch.get_default_dtype()


__all__ = ["MISSED", "Shortcut"]
