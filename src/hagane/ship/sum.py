"""The checksum of a build's files; ``c/sum.c`` computes the same."""

from __future__ import annotations

from functools import cache

import numpy as np

from hagane.ops.definition import Array

_WORDS = 512
_MASK = (1 << 64) - 1
# Bytes that are summed at a time; a multiple of a block.
_PIECE = 1 << 22


@cache
def _keys() -> Array:
    found = []
    for i in range(_WORDS):
        z = ((i + 1) * 0x9E3779B97F4A7C15) & _MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        found.append((z ^ (z >> 31)) | 1)
    return np.array(found, np.uint64)


def sum_of(data: bytes) -> str:
    """Return the checksum of some bytes, as 16 hexadecimal digits.

    Words of 64 bits, little-endian and filled up with zeros, in blocks of 512: each word times an
    odd key of its place, summed; the sums are joined in order. It guards against damage alone.
    """
    total = len(data)
    for start in range(0, len(data), _PIECE):
        piece = data[start : start + _PIECE]
        piece += bytes(-len(piece) % (8 * _WORDS))
        words = np.frombuffer(piece, "<u8").reshape(-1, _WORDS)
        for part in (words * _keys()).sum(axis=1, dtype=np.uint64).tolist():
            total = ((total ^ part) * 0xFF51AFD7ED558CCD) & _MASK
            total ^= total >> 32
    return f"{total:016x}"
