"""A compiled part of a graph: arrays in, arrays out."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from hagane.errors import KernelError
from hagane.machine import Level, Lock
from hagane.native.engine import Engine, Library, Memory, compile_kernels, kernel_name, load_engine
from hagane.native.kernel import Kernel
from hagane.native.memory import MemoryPlan, Numbers, plan_memory
from hagane.native.outputs import OutputPool
from hagane.native.tensor import Buffer, Kind
from hagane.ops.definition import Array
from hagane.symbolic import Dim, Expr, evaluate, symbols_of

# Kernels of less work than this, in nanoseconds, are not worth a barrier.
_SERIAL_NS = 1500.0
# Programs of less work than this run on one thread.
_SMALL_NS = 40_000.0
# After copying this many bytes of weights, what they were made of is let go.
_SETTLE_BYTES = 8 << 20
# Bytes that reads past the end of a value may touch; the engine adds as much to scratch memory.
_ARENA_SLACK = _SCRATCH_SLACK = 4096


class ShapeMismatch(Exception):
    """Arrays whose shapes are not those that the segment was compiled for."""


class Segment:
    """Kernels with their weights, ready to run.

    Args:
        kernels: In order.
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
        self._addresses = [self.library.address(kernel_name(k.code)) for k in self.kernels]
        self._weights, self._weight_offsets = self._place_weights(settle)
        self._equal = tuple(equal)
        shapes = [shape for _, shape, _ in (*self.inputs, *self.outputs)]
        self._symbols = sorted(names_of_sizes(self.kernels, shapes, self._equal))
        self.may_mismatch = bool(self._symbols)
        self.pool = OutputPool()
        self._free: list[Context] = []
        self._lock = Lock()

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

    def bind_sizes(self, arrays: Sequence[Array]) -> dict[str, int]:
        """Return the sizes of named dimensions that the arrays' shapes give.

        Raises:
            ShapeMismatch: The arrays do not have the shapes that the kernels are for.
        """
        sizes: dict[str, int] = {}
        for array, (_, shape, dtype) in zip(arrays, self.inputs, strict=True):
            if array.ndim != len(shape) or array.dtype != dtype:
                raise ShapeMismatch
            for have, dim in zip(array.shape, shape, strict=True):
                if isinstance(dim, Expr):
                    names = symbols_of(dim)
                    if len(names) == 1 and str(dim) in names:
                        sizes.setdefault(str(dim), have)
        for array, (_, shape, _) in zip(arrays, self.inputs, strict=True):
            for have, dim in zip(array.shape, shape, strict=True):
                if evaluate(dim, sizes) != have:
                    raise ShapeMismatch
        if any(name not in sizes for name in self._symbols):
            raise ShapeMismatch
        if any(evaluate(left, sizes) != evaluate(right, sizes) for left, right in self._equal):
            raise ShapeMismatch
        return sizes

    def memory(self, sizes: Mapping[str, int]) -> tuple[int, int]:
        """Return the bytes of the weights, and of all that one run at a time needs besides.

        Args:
            sizes: Named dimensions of the inputs.
        """
        plan = plan_memory(self.kernels, Numbers(sizes))
        return self._weights.size, plan.size + _ARENA_SLACK + self._scratch(sizes)

    def threads_of_run(self) -> int:
        """Return how many threads a run uses: small programs do with one."""
        work = sum(kernel.work for kernel in self.kernels)
        return min(self.threads, 64) if work > _SMALL_NS else 1

    def _scratch(self, sizes: Mapping[str, int]) -> int:
        return self.threads_of_run() * (self.scratch_of(sizes) + _SCRATCH_SLACK)

    def scratch_of(self, sizes: Mapping[str, int]) -> int:
        """Return the bytes of scratch memory that each thread needs."""
        number = Numbers(sizes)
        return max((number(kernel.scratch) for kernel in self.kernels), default=0) + 256

    def run(self, arrays: Sequence[Array], times: list[int] | None = None) -> list[Array]:
        """Return the outputs for arrays that match the inputs' types.

        Args:
            arrays: One an input.
            times: Is given the nanoseconds of each kernel, if it is a list.

        Raises:
            ShapeMismatch: They do not; nothing was computed.
            KernelError: An index in the data is out of range.
        """
        arrays = [np.asarray(array, order="C") for array in arrays]
        shapes = tuple(array.shape for array in arrays)
        context = self._take(shapes, arrays)
        try:
            return context.run(arrays) if times is None else context.profile(arrays, times)
        finally:
            with self._lock:
                self._free.append(context)

    def context(self, sizes: Mapping[str, int]) -> Context:
        """Return memory and tables of their own for one caller."""
        return Context(self, (), sizes)

    def _take(self, shapes: tuple[tuple[int, ...], ...], arrays: Sequence[Array]) -> Context:
        with self._lock:
            for i, context in enumerate(self._free):
                if context.shapes == shapes and not self._symbols:
                    return self._free.pop(i)
            for i, context in enumerate(self._free):
                if context.shapes == shapes:
                    return self._free.pop(i)
            if len(self._free) > 4:
                self._free.pop(0)
        return Context(self, shapes, self.bind_sizes(arrays))


def names_of_sizes(
    kernels: Sequence[Kernel],
    shapes: Sequence[Sequence[Dim]],
    equal: Sequence[tuple[Dim, Dim]],
) -> set[str]:
    """Return the named sizes that a run of some kernels needs."""
    dims = [
        *(d for k in kernels for d in (*k.sizes, *k.failure_sizes, k.tasks, k.scratch, *_dims(k))),
        *(d for shape in shapes for d in shape),
        *(d for pair in equal for d in pair),
    ]
    return {name for dim in dims for name in symbols_of(dim)}


def _dims(kernel: Kernel) -> list[Dim]:
    return [d for p in kernel.pointers for d in (p.offset, p.buffer.bytes)]


class Context:
    """Memory and call tables for one run at a time, at given shapes."""

    def __init__(
        self, segment: Segment, shapes: tuple[tuple[int, ...], ...], sizes: Mapping[str, int]
    ):
        self.segment, self.shapes, self.sizes = segment, shapes, sizes
        self._number = Numbers(sizes)
        self.plan: MemoryPlan = plan_memory(segment.kernels, self._number)
        engine = segment.engine
        self.arena = Memory(engine, self.plan.size + _ARENA_SLACK)
        for offset, count, byte in self.plan.filled:
            self.arena.fill(offset, count, byte)
        kernels = segment.kernels
        self.program = engine.create(
            len(kernels), segment.threads_of_run(), segment.scratch_of(sizes)
        )
        if not self.program:
            raise MemoryError("the tables of a compiled model")
        self.table = np.zeros(sum(len(k.pointers) for k in kernels) + 1, np.uint64)
        self.numbers = np.zeros(sum(len(k.sizes) for k in kernels) + 1, np.int64)
        inputs = {buffer: i for i, (buffer, _, _) in enumerate(segment.inputs)}
        outputs = {buffer: i for i, (buffer, _, _) in enumerate(segment.outputs)}
        self.input_patches: list[tuple[int, int, int]] = []
        self.output_patches: list[tuple[int, int, int]] = []
        p = d = 0
        for index, kernel in enumerate(kernels):
            p0, d0 = p, d
            for pointer in kernel.pointers:
                offset = self._number(pointer.offset)
                if pointer.buffer in inputs:
                    self.input_patches.append((p, inputs[pointer.buffer], offset))
                elif pointer.buffer in outputs:
                    self.output_patches.append((p, outputs[pointer.buffer], offset))
                elif pointer.buffer.kind is Kind.WEIGHT:
                    base = segment._weights.address + segment._weight_offsets[pointer.buffer]
                    self.table[p] = base + offset
                else:
                    self.table[p] = self.arena.address + self.plan.offsets[pointer.buffer] + offset
                p += 1
            for size in kernel.sizes:
                self.numbers[d] = self._number(size)
                d += 1
            tasks = self._number(kernel.tasks)
            engine.set_phase(
                self.program,
                index,
                segment._addresses[index],
                self.table.ctypes.data + 8 * p0,
                self.numbers.ctypes.data + 8 * d0,
                tasks,
                int(kernel.work < _SERIAL_NS or tasks <= 1),
            )
        self.output_shapes = [
            (tuple(self._number(dim) for dim in shape), dtype)
            for _, shape, dtype in segment.outputs
        ]

    def __del__(self) -> None:
        if getattr(self, "program", None):
            self.segment.engine.destroy(self.program)

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """Return the outputs; only one thread may do so at a time."""
        results = self._new_outputs()
        table = self.table
        starts = [array.ctypes.data for array in arrays]
        for slot, number, offset in self.input_patches:
            table[slot] = starts[number] + offset
        ends = [array.ctypes.data for array in results]
        for slot, number, offset in self.output_patches:
            table[slot] = ends[number] + offset
        failed = self.segment.engine.run(self.program)
        if failed >= 0:
            self.fail(failed)
        return results

    def fail(self, index: int) -> NoReturn:
        """Raise the error that a kernel noted.

        Raises:
            KernelError: Always.
        """
        kernel = self.segment.kernels[index]
        value = self.segment.engine.failure_value(self.program)
        sizes = [self._number(size) for size in kernel.failure_sizes]
        raise KernelError(f"{kernel.label} failed: {kernel.failure.format(*sizes, value=value)}")

    def _new_outputs(self) -> list[Array]:
        results: list[Array] = []
        for number, (shape, dtype) in enumerate(self.output_shapes):
            try:
                results.append(self.segment.pool.empty(shape, dtype))
            except (MemoryError, ValueError) as error:
                buffer = self.segment.outputs[number][0]
                label = next(
                    kernel.label
                    for kernel in self.segment.kernels
                    if any(pointer.buffer is buffer for pointer in kernel.pointers)
                )
                raise KernelError(f"{label} failed: {error}") from error
        return results

    def profile(self, arrays: Sequence[Array], times: list[int]) -> list[Array]:
        """Run once, append the nanoseconds of each kernel to ``times``, return the outputs."""
        stamps = np.zeros(len(self.segment.kernels) + 1, np.int64)
        self.segment.engine.set_stamps(self.program, stamps.ctypes.data)
        try:
            return self.run(arrays)
        finally:
            self.segment.engine.set_stamps(self.program, None)
            times.extend(int(t) for t in np.diff(stamps))
