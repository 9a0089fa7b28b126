"""Compiled lexers: C source in, NumPy arrays of tokens out."""

from __future__ import annotations

import ctypes
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hagane.errors import InvalidArgument
from hagane.lexgen.c_toolchain import load_library
from hagane.lexgen.errors import SpecificationError

Arrays: TypeAlias = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]

_STACK = 65_536
_CHUNK = 1 << 24
_LIMIT = (1 << 31) - 16


class NativeLexer:
    """A compiled lexer, as ``hagane.lexgen.emitting.emit_c`` writes it.

    Raises:
        NoCompiler: There is no C compiler.
    """

    def __init__(self, source: str):
        self._function = load_library(source).hagane_lex
        self._function.restype = ctypes.c_int64
        self._function.argtypes = [
            ctypes.c_char_p,
            ctypes.c_int64,
            *[ctypes.c_void_p] * 2,
            ctypes.c_int64,
            *[ctypes.c_void_p] * 3,
            ctypes.c_int64,
        ]
        self._kind_type = np.dtype(np.uint16 if "uint16_t kind_t" in source else np.uint8)

    def tokenize(self, data: bytes) -> Arrays:
        """Return the tokens of UTF-8 text as arrays (kinds, starts, ends); offsets are of bytes.

        Raises:
            InvalidArgument: The data are not bytes, or 2 GiB or more.
            SpecificationError: Start conditions were pushed 65,536 deep.
        """
        if isinstance(data, str):
            raise InvalidArgument("tokenize_arrays: expected bytes, got str; pass text.encode()")
        data = bytes(data)
        if len(data) > _LIMIT:
            raise InvalidArgument(
                f"tokenize_arrays: expected at most {_LIMIT} bytes, got {len(data)}; pass the text "
                "in parts"
            )
        state = np.array([0, 0, 0, -1, 0], np.int64)
        stack = np.empty(_STACK, np.int32)
        parts: list[Arrays] = []
        while True:
            # Memory that is never touched costs nothing, so the first guess is generous.
            capacity = min(len(data) - int(state[0]) + 2, _CHUNK)
            room = capacity + 64  # for the actions of the end of the input
            kinds = np.empty(room, self._kind_type)
            starts, ends = np.empty(room, np.int32), np.empty(room, np.int32)
            state[4] = 0
            count = self._function(
                data,
                len(data),
                state.ctypes.data,
                stack.ctypes.data,
                _STACK,
                kinds.ctypes.data,
                starts.ctypes.data,
                ends.ctypes.data,
                capacity,
            )
            if count == -2:
                raise MemoryError("tokenize_arrays: no memory to find a trailing context")
            if count < 0:
                raise SpecificationError(
                    f"tokenize_arrays: start conditions were pushed more than {_STACK} deep "
                    "without a pop"
                )
            part = kinds[:count], starts[:count], ends[:count]
            if state[4] and parts:
                # An error goes on over the seam of two calls.
                parts[-1][2][-1] = part[2][0]
                part = kinds[1:count], starts[1:count], ends[1:count]
            parts.append(part)
            if state[0] >= len(data):
                break
        if len(parts) == 1:
            return parts[0]
        joined = [np.concatenate(column) for column in zip(*parts, strict=True)]
        return joined[0], joined[1], joined[2]
