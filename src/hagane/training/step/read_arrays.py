"""Reads of a step besides its arguments: arrays that become inputs, and reads to compare."""

from __future__ import annotations

from collections.abc import Collection, Set
from typing import Any

import numpy as np

from hagane.frontends.capture.capture import Captured
from hagane.frontends.capture.emitting.scoped import pairs_of
from hagane.frontends.capture.interface.guards import Guards
from hagane.frontends.capture.interface.reads import ContentRead, NameRead, Read


def read_arrays(captured: Captured, own: Set[int], moved: Collection[str]) -> dict[str, Any]:
    """Return the arrays whose content the step takes anew in each call, by the names of its graph.

    Arrays of whose content the program decides something are not among them: guards compare these.

    Args:
        captured: The loss.
        own: The arrays of link or module, by identity.
        moved: The names of buffers that a call changes.
    """
    compared = {
        id(read.found)
        for read in captured.reads.reads
        if isinstance(read, ContentRead) and read.kind in ("array", "bits")
    }
    return {
        str(value.name): found
        for key, (found, value) in captured.weights.items()
        if key not in own and (key not in compared or str(value.name) in moved)
    }


def plain_array(found: Any) -> Any:
    """Return the content of an array as inputs have it: complex numbers as pairs."""
    array = getattr(found, "array", found)
    if isinstance(array, np.ndarray):
        return pairs_of(array) if array.dtype.kind == "c" else np.asarray(array, order="C")
    return pairs_of(array) if array.is_complex() else array


def guards_of(captured: Captured, moved: Collection[str]) -> Guards:
    """Return the comparison of what the loss read with the present.

    Args:
        captured: The loss.
        moved: The names of buffers that a call changes.
    """
    inputs = {value.name for value in captured.graph.inputs}
    free = [a for a, _ in captured.state if a.path in inputs or not a.is_read]
    names = {(id(held), a.name) for a in free for held in a.namespaces()}
    anew = {key for key, (_, value) in captured.weights.items() if str(value.name) in moved}
    anew |= {id(a.now()) for a in free}
    reads = [read for read in captured.reads.reads if not _is_given(read, names, anew)]
    return Guards(reads, (), captured.reads.modules, captured.reads.tensors)


def _is_given(read: Read, names: Set[tuple[int, str]], anew: Set[int]) -> bool:
    if isinstance(read, NameRead):
        return (id(read.names), read.name) in names
    content = isinstance(read, ContentRead) and read.kind in ("array", "bits")
    return content and id(read.found) in anew


__all__ = ["guards_of", "plain_array", "read_arrays"]
