"""A compiled part of a graph: arrays in, arrays out."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hagane.machine import Level, Lock
from hagane.native.kernels.control import Branch, Estimate, Loop, changing_names, estimate, grows
from hagane.native.kernels.kernel import Kernel
from hagane.native.kernels.sizes import dims_of, names_of_sizes
from hagane.native.kernels.tensor import Buffer, Kind
from hagane.native.run.context import Context, Spent
from hagane.native.run.engine import (
    Engine,
    Library,
    Memory,
    compile_kernels,
    kernel_name,
    load_engine,
)
from hagane.native.run.memory import ARENA_SLACK, Numbers, SizeCode, plan_memory
from hagane.native.run.outputs import OutputPool
from hagane.ops.definition import Array
from hagane.symbolic import Dim, number_of, symbol, symbols_of

# Kernels of less work than this, in nanoseconds, are not worth a barrier.
_SERIAL_NS = 1500.0
# Programs of less work than this run on one thread; of less than that, only while others are awake.
_TINY_NS, _SMALL_NS = 4_000.0, 40_000.0
# After copying this many bytes of weights, what they were made of is let go.
_SETTLE_BYTES = 8 << 20
# The engine adds as much to scratch memory.
_SCRATCH_SLACK = 4096
# Contexts that are kept for runs to come.
_MOST_FREE = 5


class ShapeMismatch(Exception):
    """Arrays whose shapes are not those that the segment was compiled for."""


class Segment:
    """Kernels with their weights, ready to run.

    Args:
        kernels: In order; their code is let go of once it is compiled.
        inputs: Buffer, shape and element type of each input.
        outputs: The same of each output.
        level: What the kernels were generated for.
        threads: How many threads to use.
        settle: Called now and then while weights are copied, to let go of what was read.
        equal: Sizes that the kernels take for equal.
        library: The kernels' compiled code, if it is there already.
    """

    def __init__(
        self,
        kernels: Sequence[Kernel],
        inputs: Sequence[tuple[Buffer, tuple[Dim, ...], np.dtype[Any]]],
        outputs: Sequence[tuple[Buffer, tuple[Dim, ...], np.dtype[Any]]],
        level: Level,
        threads: int,
        settle: Callable[[], None] = lambda: None,
        equal: Sequence[tuple[Dim, Dim]] = (),
        library: Library | None = None,
    ):
        self.kernels = tuple(kernels)
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.engine: Engine = load_engine()
        self.library: Library = library or compile_kernels(self.kernels, level)
        self.threads = threads
        self._addresses = [
            self.library.address(kernel_name(k.code)) if k.code else None for k in self.kernels
        ]
        for kernel in self.kernels:
            kernel.code = ""  # megabytes, in models of many layers
        self.controls = [kernel.control for kernel in self.kernels]
        self.estimate: Estimate = estimate(
            self.controls, [kernel.work for kernel in self.kernels], _SERIAL_NS
        )
        self.growing = grows(self.controls)
        self._weights, self._weight_offsets = self._place_weights(settle)
        self._equal = tuple(equal)
        shapes = [shape for _, shape, _ in (*self.inputs, *self.outputs)]
        self._changing = changing_names(self.controls)
        names = names_of_sizes(self.kernels, shapes, self._equal)
        self._symbols = sorted(names - self._changing.keys())
        self.may_mismatch = bool(self._symbols)
        outer = (dim for shape in shapes for dim in shape)
        inner = (dim for kernel in self.kernels for dim in dims_of(kernel))
        self.code = SizeCode([*outer, *inner])
        self._named = [
            (number, axis, name, distance)
            for number, (_, shape, _) in enumerate(self.inputs)
            for axis, dim in enumerate(shape)
            for name in symbols_of(dim)
            if isinstance(distance := dim - symbol(name), int)
        ]
        self.pool = OutputPool()
        self._free: list[Context] = []
        self._lock = Lock()

    def weight_address(self, buffer: Buffer) -> int:
        """Return where a packed weight lies."""
        return self._weights.address + self._weight_offsets[buffer]

    def address(self, index: int) -> int | None:
        """Return where the code of a kernel lies, if it has any."""
        return self._addresses[index]

    def is_serial(self, index: int, tasks: int) -> bool:
        """Whether one thread runs a kernel by itself."""
        kernel = self.kernels[index]
        if isinstance(kernel.control, Loop | Branch):
            return index in self.estimate.alone
        return kernel.work < _SERIAL_NS or tasks <= 1

    def _place_weights(self, settle: Callable[[], None]) -> tuple[Memory, dict[Buffer, int]]:
        offsets: dict[Buffer, int] = {}
        top = 0
        for kernel in self.kernels:
            for pointer in kernel.pointers:
                buffer = pointer.buffer
                if buffer.kind is Kind.WEIGHT and buffer not in offsets:
                    assert isinstance(buffer.bytes, int)
                    offsets[buffer] = top
                    top += -(-(buffer.bytes + 64) // 64) * 64
        memory = Memory(self.engine, top + 65536)
        since = 0
        for buffer, offset in offsets.items():
            assert buffer.data is not None
            content = buffer.data()
            end, limit = offset, max(_SETTLE_BYTES, int(buffer.bytes) // 4)
            for piece in [content] if isinstance(content, np.ndarray) else content:
                data = np.ascontiguousarray(piece)
                assert end + data.nbytes <= offset + int(buffer.bytes), buffer.name
                ctypes.memmove(memory.address + end, data.ctypes.data, data.nbytes)
                end += data.nbytes
                since += data.nbytes
                if since > limit:
                    settle()
                    since = 0
            buffer.data = None
        settle()
        return memory, offsets

    def bind_sizes(self, arrays: Sequence[Array]) -> Numbers:
        """Return the numbers of all sizes that the arrays' shapes give.

        Raises:
            ShapeMismatch: The arrays do not have the shapes that the kernels are for.
        """
        sizes: dict[str, int] = {}
        for array, (_, shape, dtype) in zip(arrays, self.inputs, strict=True):
            if array.ndim != len(shape) or array.dtype != dtype:
                raise ShapeMismatch
        for index, axis, name, distance in self._named:
            sizes.setdefault(name, arrays[index].shape[axis] - distance)
        if any(sizes.get(name, -1) < 0 for name in self._symbols):
            raise ShapeMismatch
        number = self._numbers(sizes)
        for array, (_, shape, _) in zip(arrays, self.inputs, strict=True):
            if array.shape != tuple(map(number, shape)):
                raise ShapeMismatch
        if any(number(left) != number(right) for left, right in self._equal):
            raise ShapeMismatch
        return number

    def memory(self, sizes: Mapping[str, int]) -> tuple[int, int]:
        """Return the bytes of the weights, and of all that one run at a time needs besides.

        Args:
            sizes: Named dimensions of the inputs.
        """
        number = self._numbers(sizes)
        scratch = self.threads_of_run() * (self.scratch_of(number) + _SCRATCH_SLACK)
        return self._weights.size, plan_memory(self.kernels, number).size + ARENA_SLACK + scratch

    def threads_of_run(self) -> int:
        """Return how many threads a run uses: tiny programs do with one."""
        return min(self.threads, 64) if self.estimate.shared > _TINY_NS else 1

    @property
    def small(self) -> bool:
        """Whether a run takes less time than to wake a thread."""
        return self.estimate.shared <= _SMALL_NS

    def _numbers(self, sizes: Mapping[str, int]) -> Numbers:
        """Return the numbers of all sizes before the first iteration of any loop."""
        begun = dict(sizes)
        for name, start in self._changing.items():
            begun[name] = number_of(start, begun)
        return Numbers(begun, self.code)

    def scratch_of(self, number: Numbers) -> int:
        """Return the bytes of scratch memory that each thread needs."""
        return max((number(kernel.scratch) for kernel in self.kernels), default=0) + 256

    def run(
        self,
        arrays: Sequence[Array],
        times: list[Spent] | None = None,
        stop: Array | None = None,
    ) -> list[Array]:
        """Return the outputs for arrays that match the inputs' types.

        Args:
            arrays: One an input.
            times: Is given what each kernel took, if it is a list.
            stop: One number; once it is not 0, loops make no other iteration.

        Raises:
            ShapeMismatch: They do not; nothing was computed.
            KernelError: An index in the data is out of range.
        """
        arrays = [np.asarray(array, order="C") for array in arrays]
        shapes = tuple(array.shape for array in arrays)
        context = self._take(shapes, arrays)
        try:
            return context.run(arrays) if times is None else context.watch(arrays, times, stop)
        finally:
            with self._lock:
                self._free.append(context)

    def context(self, sizes: Mapping[str, int]) -> Context:
        """Return memory and tables of their own for one caller."""
        return Context(self, (), self._numbers(sizes))

    def _take(self, shapes: tuple[tuple[int, ...], ...], arrays: Sequence[Array]) -> Context:
        with self._lock:
            for i, context in enumerate(self._free):
                if context.shapes == shapes:
                    return self._free.pop(i)
        number = self.bind_sizes(arrays)
        with self._lock:
            last = self._free.pop(0) if len(self._free) >= _MOST_FREE else None
        if last is None:
            return Context(self, shapes, number)
        # Shapes that change from run to run would otherwise cost a context each.
        last.fit(shapes, number)
        return last
