"""What a loss changes besides parameters and buffers: attributes of modules, its arguments."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.errors import InvalidArgument
from hagane.frontends.capture.capture import Captured
from hagane.frontends.capture.interface.rebuilding import content_changes, rebuilt
from hagane.frontends.capture.interface.state import Attribute
from hagane.frontends.capture.interface.structure import Change, Constant, Leaf
from hagane.nn.autograd.variable import Variable
from hagane.ops.definition import Array
from hagane.training.step.arguments import Given

_NUMBERS: Mapping[str, Callable[[Any], Any]] = {"int": int, "float": float, "bool": bool}


class ChangedState:
    """The attributes that a loss changes: tensors and numbers, lists of them, known values.

    A tensor whose memory the loss writes stays, and takes its new content; another attribute is
    set to a new tensor or value.

    Args:
        state: The attributes, with the structures of their new values.
        modules: Those that may have them, if they hold tensors and numbers.
        inputs: The names of the graph's inputs.
        trained: The parameters that the optimizer changes, by identity.

    Raises:
        InvalidArgument: One is such a parameter, or another one that is set anew, or is set to an
            object, or is of no module; it is named.
    """

    def __init__(
        self,
        state: Sequence[tuple[Attribute, Any]],
        modules: Sequence[Any],
        inputs: Collection[str] = (),
        trained: Set[int] = frozenset(),
    ):
        import torch

        owners = {id(module) for module in modules}
        self._set: list[tuple[Attribute, Any]] = []
        self._read: list[tuple[Attribute, object]] = []
        self._known: list[tuple[Attribute, Any]] = []
        for attribute, structure in state:
            now = attribute.now()
            if isinstance(structure, Constant):
                self._known.append((attribute, structure.value))
                continue
            parts = [*_leaves(structure)]
            known = all(
                isinstance(part, Leaf) and (part.kind == "torch.Tensor" or part.kind in _NUMBERS)
                for part in parts
            )
            if id(now) in trained:
                raise InvalidArgument(
                    f"step: the loss changes the parameter '{attribute.path}' of a "
                    f"{type(attribute.owner).__name__}, which the optimizer trains, and a compiled "
                    "step does not: change it between steps"
                )
            is_new = isinstance(now, torch.nn.Parameter) and not attribute.in_place
            if id(attribute.owner) not in owners or is_new or not known:
                raise InvalidArgument(
                    f"step: the loss changes '{attribute.path}' of a "
                    f"{type(attribute.owner).__name__}, which a compiled step does not: return it "
                    "from the module and change it between steps"
                )
            self._set.append((attribute, structure))
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

        def made(result: Array, kind: str) -> Any:
            return _NUMBERS[kind](result) if kind in _NUMBERS else tensor(np.array(result))

        for attribute, structure in self._set:
            found = {leaf.name: results.pop(leaf.name) for leaf in _leaves(structure)}
            if attribute.in_place:
                attribute.now().copy_(tensor(found[structure.name]))
            else:
                now = rebuilt(structure, found, made, {})
                setattr(attribute.owner, attribute.name, now)


def _leaves(structure: Any) -> Iterator[Any]:
    """Yield the parts of an attribute's new value, of which lists and tuples hold several."""
    if isinstance(structure, list | tuple):
        for part in structure:
            yield from _leaves(part)
    elif not isinstance(structure, Constant):
        yield structure


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


class ChangedArguments:
    """The changes of a loss to its arguments.

    Args:
        changes: As capture found them.

    Attributes:
        written: The paths of the tensors into whose memory the loss writes.
    """

    def __init__(self, changes: Sequence[Change]):
        self.written = frozenset(path for change in changes for path in change.written)
        self._content = [c for c in changes if c.attributes or c.items is not None]

    def check(self, given: Given) -> None:
        """Fail if memory that the loss writes belongs to another argument, too.

        Raises:
            InvalidArgument: It does; both are named.
        """
        for path in self.written:
            for other, leaf in given.leaves.items():
                if other != path and _overlap(given.leaves[path], leaf):
                    raise InvalidArgument(
                        f"step: the loss writes into its argument '{path}', which shares memory "
                        f"with '{other}': pass a copy of one of them"
                    )

    def numbers(self, given: Given, inputs: Collection[str]) -> dict[str, Array]:
        """Return the numbers that the loss changes, which are inputs, by name."""
        return {n: np.asarray(x) for n, x in given.numbers.items() if n in inputs}

    def apply(self, given: Given, results: Mapping[str, Array]) -> None:
        """Change dicts, lists and objects of the caller as the loss would have.

        Args:
            given: The arguments of the call.
            results: The outputs of the graph by name; they are copied.
        """
        steps = [
            step
            for change in self._content
            for step in content_changes(
                change, given.objects[change.path], results, value_of, given.objects
            )
        ]
        for step in steps:
            step()


def value_of(array: Array, kind: str) -> Any:
    """Return a copy of an output as a value of a kind, as capture names it."""
    if kind in ("int", "float", "bool"):
        return np.asarray(array).item()
    if kind == "numbers":
        return np.asarray(array).tolist()
    copy = np.array(array)
    if kind == "torch.Tensor":
        torch = sys.modules["torch"]
        if copy.dtype == ir.DataType.BFLOAT16.numpy():
            return torch.from_numpy(copy.view(np.int16)).view(torch.bfloat16)
        return torch.from_numpy(copy)
    if kind == "numpy.generic":
        return copy[()]
    return copy if kind == "numpy.ndarray" else Variable(copy)


def _overlap(a: Any, b: Any) -> bool:
    mine, other = _extent(a), _extent(b)
    return mine is not None and other is not None and mine[0] < other[1] and other[0] < mine[1]


def _extent(leaf: Any) -> tuple[int, int] | None:
    """Return the addresses between which the elements of an array or a tensor lie."""
    if 0 in leaf.shape:
        return None
    if hasattr(leaf, "untyped_storage"):  # (strides of tensors are never negative)
        last = sum((n - 1) * step for n, step in zip(leaf.shape, leaf.stride(), strict=True))
        return leaf.data_ptr(), leaf.data_ptr() + (last + 1) * leaf.element_size()
    low, high = np.lib.array_utils.byte_bounds(np.asarray(leaf))
    return int(low), int(high)


__all__ = ["ChangedArguments", "ChangedState", "read_state", "value_of"]
