"""A compiled part as data: code, tables, formulas of sizes, recipes of packed weights.

Nothing here belongs to a process: a ``Compiled`` may be kept, written to a file and loaded by others
(``loaded.py``, ``files.py``).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hagane.native.kernels.kernel import Call, Kernel
from hagane.native.kernels.packing import Packing
from hagane.native.kernels.tensor import Buffer, Kind
from hagane.symbolic import Dim

if TYPE_CHECKING:
    from hagane.ops.definition import Array

# Buffer, shape and element type of an input or output.
Port = tuple[Buffer, tuple[Dim, ...], np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class View:
    """An array as a recipe has it: elements of a source, which may lie apart.

    Attributes:
        source: Its number.
        dtype: The element type, by name.
        shape: The sizes.
        strides: Bytes from one element to the next along each axis.
        offset: Bytes from the source's start.
    """

    source: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    def of(self, sources: Sequence[Array]) -> Array:
        """Return the elements of the sources as they are now."""
        memory = sources[self.source].reshape(-1).view(np.uint8)
        return np.ndarray(self.shape, self.dtype, memory, self.offset, self.strides)


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """An array that weights are packed from.

    Attributes:
        name: The value of the graph; empty for an array computed of several.
        array: Its content when the part was compiled, in row-major order.
        may_change: Whether other content leads to the same kernels.
    """

    name: str
    array: Array
    may_change: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Weight:
    """A buffer of packed weights: where it lies among all, and how its content is made."""

    buffer: Buffer
    offset: int
    packing: Packing


@dataclass(frozen=True, slots=True, eq=False)
class Compiled:
    """Kernels that are compiled, and all that is needed to run them.

    Attributes:
        needs: Features of the processor, by the names of ``/proc/cpuinfo``.
        threads: How many threads a run uses at most.
        kernels: In order.
        inputs: The inputs of a run.
        outputs: The outputs of a run.
        equal: Sizes that the kernels take for equal.
        weights: Packed weights; arrays in their recipes are ``View``s of the sources.
        weight_bytes: The bytes of all together.
        sources: The arrays that these are made of.
        library: The kernels' machine code.
        engine: The machine code of the engine that runs them.
    """

    needs: frozenset[str]
    threads: int
    kernels: tuple[Call, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    equal: tuple[tuple[Dim, Dim], ...]
    weights: tuple[Weight, ...]
    weight_bytes: int
    sources: tuple[Source, ...]
    library: Path
    engine: Path


def place_weights(
    kernels: Sequence[Kernel],
    named: Mapping[str, Array],
    may_change: frozenset[str] = frozenset(),
) -> tuple[tuple[Weight, ...], int, tuple[Source, ...]]:
    """Return the weights that kernels read, the bytes of all, and the arrays they are made of.

    Args:
        kernels: In order.
        named: Constants of the graph by name.
        may_change: Names of the constants that may be replaced.
    """
    found = Sources(named, may_change)
    weights: dict[Buffer, Weight] = {}
    top = 0
    for kernel in kernels:
        for pointer in kernel.pointers:
            buffer = pointer.buffer
            if buffer.kind is Kind.WEIGHT and buffer not in weights:
                assert isinstance(buffer.bytes, int)
                assert buffer.packing is not None
                weights[buffer] = Weight(buffer, top, found.without_arrays(buffer.packing))
                top += -(-(buffer.bytes + 64) // 64) * 64
    return tuple(weights.values()), top + 65536, tuple(found.sources)


class Sources:
    """Arrays that recipes are applied to, as they are found: parts of constants, or others."""

    def __init__(self, named: Mapping[str, Array], may_change: frozenset[str]):
        self.sources: list[Source] = []
        self._may_change = may_change
        # By where they begin. A view of a constant with gaps is no part of it.
        plain = [item for item in named.items() if item[1].flags.c_contiguous and item[1].size]
        self._named = sorted(plain, key=lambda item: _start(item[1]))
        self._starts = [_start(array) for _, array in self._named]
        self._numbers: dict[int, int] = {}

    def without_arrays(self, packing: Packing) -> Packing:
        """Return a recipe with views in the place of arrays."""
        return replace(packing, arguments=mapped(packing.arguments, self._view))

    def _view(self, array: Array) -> View:
        name, whole = self._whole(array)
        if not name:
            array = whole = np.ascontiguousarray(array).reshape(array.shape)
        # (Sources are held, so that no other array comes to have the same place.)
        number = self._numbers.setdefault(_start(whole), len(self.sources))
        if number == len(self.sources):
            self.sources.append(Source(name, whole, name in self._may_change))
        elif self.sources[number].array.nbytes < whole.nbytes:
            self.sources[number] = Source(name, whole, name in self._may_change)
        offset = _start(array) - _start(whole)
        return View(number, array.dtype.name, array.shape, array.strides, offset)

    def _whole(self, array: Array) -> tuple[str, Array]:
        """Return the constant that an array looks into, with its name, or the array without."""
        low, high = _bounds(array)
        at = bisect_right(self._starts, low) - 1
        if at >= 0 and array.size:
            name, whole = self._named[at]
            if high <= self._starts[at] + whole.nbytes:
                return name, whole
        return "", array


def _bounds(array: Array) -> tuple[int, int]:
    """Return the address of the first byte of an array, and that behind the last one."""
    low = high = _start(array)
    for size, stride in zip(array.shape, array.strides, strict=True):
        reach = max(size - 1, 0) * stride
        low, high = low + min(reach, 0), high + max(reach, 0)
    return low, high + array.itemsize


def _start(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def with_arrays(packing: Packing, sources: Sequence[Array]) -> Packing:
    """Return a recipe applied to the sources as they are now."""
    return replace(packing, arguments=mapped(packing.arguments, lambda view: view.of(sources)))


def sources_of(packing: Packing) -> frozenset[int]:
    """Return the numbers of the sources that a recipe is applied to."""
    found: set[int] = set()

    def note(view: View) -> View:
        found.add(view.source)
        return view

    mapped(packing.arguments, note)
    return frozenset(found)


def mapped(item: Any, change: Callable[[Any], Any]) -> Any:
    """Return the same arguments with arrays, or views, changed."""
    if isinstance(item, float | int):  # most are: matrices of transforms
        return item
    if isinstance(item, np.ndarray | View):
        return change(item)
    if isinstance(item, tuple | list):
        return tuple(mapped(each, change) for each in item)
    assert not is_dataclass(item) or isinstance(item, type) or _plain(item), item
    return item


def _plain(item: Any) -> bool:
    """Whether a record holds no array."""
    return not any(isinstance(getattr(item, each.name), np.ndarray) for each in fields(item))
