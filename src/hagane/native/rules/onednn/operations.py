"""Products and convolutions of oneDNN, made to run on the one thread that calls them.

They take scratch memory from the caller, so that any thread of a session may run them.
"""

from __future__ import annotations

import contextlib
import ctypes
import weakref
from functools import lru_cache

import numpy as np

from hagane.native.rules.onednn import binding
from hagane.native.rules.onednn.binding import Handle, OneDnn, OneDnnError, dims
from hagane.ops.definition import Array

# Constants of the C interface.
_IN_ORDER, _INFERENCE, _DIRECT, _UNIMPLEMENTED = 1, 96, 1, 3
_BFLOAT16, _FLOAT32 = 2, 3
_IMPLEMENTATION, _SOURCE, _WEIGHTS, _RESULT, _SCRATCHPAD = 8, 129, 131, 133, 136
_REORDER_FROM, _REORDER_TO = 1, 17
# Operations that are kept for layers of equal sizes.
_KEPT = 256


class _Argument(ctypes.Structure):
    _fields_ = (("argument", ctypes.c_int), ("memory", Handle))


class Operation:
    """A product or convolution of fixed sizes.

    Attributes:
        library: Its maker.
        implementation: oneDNN's name of the kernel that it chose.
        weights_bytes: Bytes of packed weights.
        scratch_bytes: Bytes of scratch memory for a call.
    """

    def __init__(self, library: OneDnn, description: Handle):
        self.library, self._description = library, description
        weakref.finalize(self, library.call, "primitive_desc_destroy", description).atexit = False
        name = ctypes.c_char_p()
        library.call("primitive_desc_query", description, _IMPLEMENTATION, 0, ctypes.byref(name))
        self.implementation = (name.value or b"").decode()
        self._weights = library.query(description, _WEIGHTS)
        self.weights_bytes = library.size(self._weights)
        self.scratch_bytes = library.size(library.query(description, _SCRATCHPAD))
        self._primitive: Handle | None = None

    def addresses(self) -> list[int]:
        """Return the fields of ``hg_onednn_primitive`` in ``c/onednn.h``; valid with this object."""
        library, description = self.library, self._description
        with library.one_thread():
            if self._primitive is None:
                self._primitive = library.make("primitive_create", description)
                end = weakref.finalize(self, library.call, "primitive_destroy", self._primitive)
                end.atexit = False
        queries = ((_SOURCE, 0), (_WEIGHTS, 0), (_WEIGHTS, 1), (_RESULT, 0), (_SCRATCHPAD, 0))
        described = [library.query(description, what, index) for what, index in queries]
        return [self._primitive.value or 0, *described]

    def pack(self, weights: Array) -> Array:
        """Return float32 weights as bytes in the layout and precision that the operation reads."""
        library = self.library
        made = np.zeros(self.weights_bytes + 64, np.uint8)
        packed = made[-made.ctypes.data % 64 :][: self.weights_bytes]
        weights = np.asarray(weights, np.float32)
        strides = [stride // 4 for stride in weights.strides]
        engine, from_to = library.engine, (_REORDER_FROM, _REORDER_TO)
        with contextlib.ExitStack() as stack:
            stack.enter_context(library.one_thread())
            plain = stack.enter_context(library.described(weights.shape, _FLOAT32, strides))

            def make(kind: str, *arguments: object) -> Handle:
                handle = library.make(f"{kind}_create", *arguments)
                end = "primitive_desc" if kind.endswith("desc") else kind
                stack.callback(library.call, f"{end}_destroy", handle)
                return handle

            places = (plain, engine, self._weights, engine, None)
            reorder = make("primitive", make("reorder_primitive_desc", *places))
            memories = (
                make("memory", plain, engine, weights.ctypes.data),
                make("memory", self._weights, engine, packed.ctypes.data),
            )
            pairs = [
                _Argument(name, memory) for name, memory in zip(from_to, memories, strict=True)
            ]
            arguments = (_Argument * 2)(*pairs)
            stream = make("stream", engine, _IN_ORDER)
            library.call("primitive_execute", reorder, stream, 2, ctypes.addressof(arguments))
        return packed


@lru_cache(maxsize=_KEPT)
def product(rows: int, depth: int, columns: int, half: bool, biased: bool) -> Operation | None:
    """Return ``(rows, depth) × (depth, columns)`` plus a row, or None if oneDNN has no fast form.

    Args:
        rows: Of the left side and the result, which lie in row-major order.
        depth: Columns of the left side.
        columns: Of the weights and the result.
        half: Whether the factors are bfloat16; the row and the result are float32.
        biased: Whether a row is added.
    """
    library, dtype = binding.load(), _BFLOAT16 if half else _FLOAT32
    with contextlib.ExitStack() as stack:
        enter = stack.enter_context
        enter(library.one_thread())
        arrays = (
            enter(library.described((rows, depth), dtype, (depth, 1))),
            enter(library.described((depth, columns), dtype)),
            enter(library.described((1, columns), _FLOAT32, (columns, 1))) if biased else None,
            enter(library.described((rows, columns), _FLOAT32, (columns, 1))),
        )
        return _made("matmul", library.engine, *arrays)


@lru_cache(maxsize=_KEPT)
def convolution(
    source: tuple[int, int, int],
    weights: tuple[int, int, int, int],
    groups: int,
    strides: tuple[int, int],
    dilations: tuple[int, int],
    half: bool,
    biased: bool,
) -> Operation | None:
    """Return a convolution without a border, or None if oneDNN has no fast form of it.

    Args:
        source: Channels, rows and columns of the image, whose channels lie side by side
            (NHWC), as those of the result do.
        weights: ``(out, in / groups, rows, columns)``.
        groups: Of channels.
        strides: Along rows and columns.
        dilations: The same; one for neighbouring taps.
        half: Whether the factors are bfloat16; bias and result are float32.
        biased: Whether a number is added to each channel.
    """
    library, dtype = binding.load(), _BFLOAT16 if half else _FLOAT32
    out, depth, *taps = weights
    size = [
        (have - (tap - 1) * dilation - 1) // stride + 1
        for have, tap, stride, dilation in zip(source[1:], taps, strides, dilations, strict=True)
    ]
    kernel = (out, depth, *taps) if groups == 1 else (groups, out // groups, depth, *taps)

    def image(channels: int, rows: int, columns: int, dtype: int) -> Handle:
        whole = channels * rows * columns
        lies = (whole, 1, columns * channels, channels)
        return enter(library.described((1, channels, rows, columns), dtype, lies))

    with contextlib.ExitStack() as stack:
        enter = stack.enter_context
        enter(library.one_thread())
        arrays = (
            image(*source, dtype),
            enter(library.described(kernel, dtype)),
            enter(library.described((out,), _FLOAT32, (1,))) if biased else None,
            image(out, size[0], size[1], _FLOAT32),
        )
        gaps = dims([dilation - 1 for dilation in dilations])
        window = (dims(strides), gaps, dims((0, 0)), dims((0, 0)))
        kinds = (library.engine, _INFERENCE, _DIRECT)
        return _made("convolution_forward", *kinds, *arrays, *window)


def _made(kind: str, *arguments: object) -> Operation | None:
    library = binding.load()
    try:
        description = library.make(f"{kind}_primitive_desc_create", *arguments, library.attributes)
    except OneDnnError as error:
        if error.status != _UNIMPLEMENTED:
            raise
        return None
    made = Operation(library, description)
    return None if made.implementation.startswith("ref") else made
