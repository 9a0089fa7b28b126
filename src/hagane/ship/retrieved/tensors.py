"""Arrays as ModelRetriever writes them: bytes of an element, sizes, then numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hagane.errors import InvalidModel, NoSuchFile
from hagane.ops.definition import Array

# Elements are floats; their width tells which.
_TYPES = {2: np.float16, 4: np.float32}


def read_tensor(path: Path) -> Array:
    """Return the array of a ``.weights`` or ``.tensor`` file, in float32.

    The first line has the bytes of an element, the second the sizes, separated by commas; the
    elements follow in C order, with the least significant byte first.

    Raises:
        NoSuchFile: There is no such file.
        InvalidModel: It is damaged.
    """
    try:
        data = path.read_bytes()
    except OSError:
        raise NoSuchFile(f"there is no file '{path}', which model.json names") from None
    try:
        width, sizes, content = data.split(b"\n", 2)
        dtype = np.dtype(_TYPES[int(width)])
        shape = tuple(int(size) for size in sizes.split(b",") if size.strip())
        return np.frombuffer(content, dtype).reshape(shape).astype(np.float32)
    except (ValueError, KeyError):
        raise InvalidModel(
            f"'{path}' is damaged: expected a line with 2 or 4 bytes of an element, a line of "
            "sizes, and as many numbers"
        ) from None
