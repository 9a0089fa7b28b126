"""Attributes of modules that a loss changes: inputs and outputs of a step besides parameters."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hagane.errors import InvalidArgument
from hagane.frontends.capture.capture import Captured
from hagane.frontends.capture.interface.state import Attribute
from hagane.frontends.capture.interface.structure import Constant, Leaf
from hagane.ops.definition import Array

_NUMBERS: Mapping[str, Callable[[Any], Any]] = {"int": int, "float": float, "bool": bool}


class ChangedState:
    """The attributes that a loss changes: tensors and numbers, and what it sets to known values.

    A tensor whose memory the loss writes stays, and takes its new content; another attribute is
    set to a new tensor or value.

    Args:
        state: The attributes, with the structures of their new values.
        modules: Those that may have them, if they are tensors and numbers.
        inputs: The names of the graph's inputs.

    Raises:
        InvalidArgument: One is a parameter, or is set to an object, or is of no module; it is
            named.
    """

    def __init__(
        self,
        state: Sequence[tuple[Attribute, Any]],
        modules: Sequence[Any],
        inputs: Collection[str] = (),
    ):
        import torch

        owners = {id(module) for module in modules}
        self._set: list[tuple[Attribute, str]] = []
        self._read: list[tuple[Attribute, object]] = []
        self._known: list[tuple[Attribute, Any]] = []
        for attribute, structure in state:
            now = attribute.now()
            if isinstance(structure, Constant):
                self._known.append((attribute, structure.value))
                continue
            kind = structure.kind if isinstance(structure, Leaf) else ""
            known = kind == "torch.Tensor" or kind in _NUMBERS
            if (
                id(attribute.owner) not in owners
                or isinstance(now, torch.nn.Parameter)
                or not known
            ):
                raise InvalidArgument(
                    f"step: the loss changes '{attribute.path}' of a "
                    f"{type(attribute.owner).__name__}, which a compiled step does not: return it "
                    "from the module and change it between steps"
                )
            self._set.append((attribute, kind))
            if attribute.path in inputs:
                self._read.append((attribute, _type(now)))

    def broken(self) -> str:
        """Return the attribute whose type is no longer the one that was compiled for, if any."""
        for attribute, kind in self._read:
            if _type(attribute.now()) != kind:
                return f"the type of '{attribute.path}' changed"
        return ""

    def feed(self, view: Callable[[Any], Array]) -> dict[str, Array]:
        """Return the content of the attributes that the loss reads, by the names of the graph.

        Args:
            view: Returns the memory of a tensor.
        """
        found = {}
        for attribute, _ in self._read:
            now = attribute.now()
            found[attribute.path] = view(now) if hasattr(now, "_version") else np.asarray(now)
        return found

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the attributes that the loss reads, by the names of the graph."""
        return {a.path: tuple(getattr(a.now(), "shape", ())) for a, _ in self._read}

    def take(self, results: dict[str, Array], tensor: Callable[[Array], Any]) -> None:
        """Set attributes to their new values, and take these from the results of a step.

        Args:
            results: By the names of the graph.
            tensor: Returns an array's memory as a tensor.
        """
        for attribute, value in self._known:
            setattr(attribute.owner, attribute.name, value)
        for attribute, kind in self._set:
            result = results.pop(f"{attribute.path}.new")
            if attribute.in_place:
                attribute.now().copy_(tensor(result))
            elif kind in _NUMBERS:
                setattr(attribute.owner, attribute.name, _NUMBERS[kind](result))
            else:
                setattr(attribute.owner, attribute.name, tensor(np.array(result)))


def read_state(captured: Captured) -> Captured:
    """Return a capture whose attributes count as read only where its graph needs their old value.

    Args:
        captured: Its graph loses the inputs that nothing needs.
    """
    graph = captured.graph
    unused = {
        str(value.name): value
        for value in graph.inputs
        if not value.uses() and not any(value is output for output in graph.outputs)
    }
    state = []
    for attribute, structure in captured.state:
        if attribute.path in unused:
            graph.inputs.remove(unused[attribute.path])
            attribute = replace(attribute, is_read=False)
        state.append((attribute, structure))
    return replace(captured, state=tuple(state))


def _type(value: Any) -> object:
    if hasattr(value, "_version"):
        return value.dtype, tuple(value.shape)
    return type(value)


__all__ = ["ChangedState", "read_state"]
