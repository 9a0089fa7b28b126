"""Arguments that a call changes: the outputs of its graph put into the caller's objects."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hagane.capturing.leaves import Obstacle, TensorLeaf
from hagane.capturing.tensors import as_array, returned
from hagane.capturing.variables import is_variable
from hagane.frontends.capture.interface.rebuilding import content_changes
from hagane.frontends.capture.interface.structure import Change


def apply_changes(
    changes: Sequence[Change],
    values: Mapping[str, Any],
    given: Mapping[str, Any],
    tensors: Mapping[str, TensorLeaf],
    known: dict[str, Any] | None = None,
) -> None:
    """Change the arguments of a call as the program would have.

    Args:
        changes: The values that change.
        values: The outputs of the graph by name.
        given: The objects of the caller by path.
        tensors: The tensors of the caller by path.
        known: The tensors that outputs are, as :func:`rebuilt` takes it.
    """
    steps: list[Callable[[], None]] = []  # nothing changes before all new content is there
    for change in changes:
        for path, name in change.written.items():
            steps.append(_writing(tensors[path], values[name]))
            if known is not None:
                known[name] = tensors[path].value
        if change.path not in given:
            continue
        real = given[change.path]
        steps += content_changes(change, real, values, returned, given, known)
    for step in steps:
        step()


def check_apart(
    changes: Sequence[Change], tensors: Sequence[TensorLeaf], held: Sequence[Any] = (),
    state: Sequence[Any] = (),
) -> None:  # fmt: skip
    """Refuse calls in which memory that is written belongs to an argument and something else.

    Args:
        changes: The arguments that are written.
        tensors: All arguments that are tensors.
        held: Tensors that the program finds elsewhere.
        state: Those of them that are written.

    Raises:
        Obstacle: It does.
    """
    written = {path for change in changes for path in change.written}
    for leaf in tensors:
        if leaf.path not in written:
            continue
        for other in tensors:
            if other is not leaf and _share(leaf.value, other.value):
                raise Obstacle(
                    f"'{leaf.path}', which the call writes in place, shares memory with "
                    f"'{other.path}'"
                )
        if any(_share(leaf.value, other) for other in held):
            raise Obstacle(
                f"'{leaf.path}', which the call writes in place, shares memory with a tensor "
                "that the program reads elsewhere"
            )
    for leaf in tensors:
        if any(_share(leaf.value, other) for other in state):
            raise Obstacle(f"'{leaf.path}' shares memory with an attribute that the call writes")


def _share(a: Any, b: Any) -> bool:
    mine, other = _extent(a), _extent(b)
    return mine is not None and other is not None and mine[0] < other[1] and other[0] < mine[1]


def _extent(value: Any) -> tuple[int, int] | None:
    """Return the addresses of an array's elements, or of a tensor's storage; None of others."""
    value = value.array if is_variable(value) else value
    if isinstance(value, np.ndarray):
        ends = [(size - 1) * step for size, step in zip(value.shape, value.strides, strict=True)]
        at = value.__array_interface__["data"][0]
        low, high = sum(min(end, 0) for end in ends), sum(max(end, 0) for end in ends)
        return (at + low, at + high + value.itemsize) if value.size else None
    if hasattr(value, "untyped_storage"):
        storage = value.untyped_storage()
        return storage.data_ptr(), storage.data_ptr() + storage.nbytes()
    return None


def _writing(leaf: TensorLeaf, value: Any) -> Callable[[], None]:
    is_complex = leaf.dtype.startswith("complex")
    if leaf.kind != "torch.Tensor":
        if is_complex:
            return lambda: np.copyto(leaf.value, returned(value, f"complex {leaf.kind}"))
        return lambda: np.copyto(as_array(leaf), value)

    def write() -> None:
        with sys.modules["torch"].no_grad():
            leaf.value.copy_(returned(value, f"complex {leaf.kind}" if is_complex else leaf.kind))

    return write


__all__ = ["apply_changes", "check_apart"]
