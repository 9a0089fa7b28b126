"""The packed weights of a build as one file."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hagane.native.run.compiled import Compiled, Weight, sources_of, with_arrays
from hagane.ops.definition import Array

# Kernels may read whole vectors, and ahead, past the end of the last weight.
_SLACK = 65536
_ALIGNMENT = 64
# Bytes that are written at a time, from a multiple of as many on: the system then keeps them on
# pages of 2 MiB, which programs that map them read faster than small ones.
_BLOCK = 8 << 20


class WeightFile:
    """Packed weights and constants, one after the other; equal ones of equal origin lie once.

    Args:
        path: Where to write them.
    """

    def __init__(self, path: Path):
        self._path = path
        self._file = path.open("wb", buffering=0)
        self._waiting = bytearray()
        self._places: dict[object, int] = {}
        self._parts = 0
        self.bytes = 0

    def add_part(self, compiled: Compiled) -> dict[int, int]:
        """Add the weights of a part; return where each lies, by the identity of its buffer."""
        sources = [source.array for source in compiled.sources]
        digests: dict[int, object] = {}
        for number, source in enumerate(compiled.sources):
            # Results of several arrays may be equal by chance: other weights of the
            # same structure shall lie at the same places.
            origin = source.name or (self._parts, number)
            content = hashlib.sha256(np.ascontiguousarray(source.array).tobytes()).digest()
            digests[number] = origin, content
        self._parts += 1
        return {
            id(weight.buffer): self._add_weight(weight, sources, digests)
            for weight in compiled.weights
        }

    def _add_weight(
        self, weight: Weight, sources: Sequence[Array], digests: dict[int, object]
    ) -> int:
        packing = weight.packing
        origin = tuple(digests[number] for number in sorted(sources_of(packing)))
        size = int(weight.buffer.bytes)
        key = packing.function.__name__, repr(packing.arguments), origin, size
        if key not in self._places:
            content = [np.ascontiguousarray(p) for p in with_arrays(packing, sources).pieces()]
            self._places[key] = self._write(content, size + _ALIGNMENT)
        return self._places[key]

    def add(self, array: Array) -> int:
        """Add an array; return where it lies."""
        content = np.ascontiguousarray(array)
        key = "constant", content.tobytes()
        if key not in self._places:
            self._places[key] = self._write([content], content.nbytes)
        return self._places[key]

    def _write(self, content: Sequence[Array], size: int) -> int:
        start = self.bytes
        for piece in content:
            self._put(piece.tobytes())
            size -= piece.nbytes
            self.bytes += piece.nbytes
        padding = max(0, size) + -(self.bytes + max(0, size)) % _ALIGNMENT
        self._put(bytes(padding))
        self.bytes += padding
        return start

    def _put(self, content: bytes) -> None:
        self._waiting += content
        while len(self._waiting) >= _BLOCK:
            self._write_block()

    def _write_block(self) -> None:
        with memoryview(self._waiting) as waiting:
            done = self._file.write(waiting[:_BLOCK])
        del self._waiting[:done]

    def close(self) -> None:
        """Write the bytes that kernels may read past the end, and close the file."""
        self._put(bytes(_SLACK))
        self.bytes += _SLACK
        while self._waiting:
            self._write_block()
        self._file.close()
