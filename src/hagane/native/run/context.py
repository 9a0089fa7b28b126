"""Runs of a compiled part that Python leads: arrays in, arrays out."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hagane.errors import KernelError
from hagane.native.ready.context import Context
from hagane.native.ready.extension import load_extension

if TYPE_CHECKING:
    from hagane.native.run.loaded import Loaded
    from hagane.ops.definition import Array


class Spent(NamedTuple):
    """The time of a kernel in one run: kernels of a loop run often.

    ``flops`` are the operations of all its runs.
    """

    nanoseconds: int
    runs: int
    flops: float


class Running(Context):
    """Memory and call tables for one run at a time, and the run."""

    segment: Loaded

    def __init__(self, segment: Loaded, shapes: tuple[tuple[int, ...], ...]):
        super().__init__(segment, shapes)
        self._extension = load_extension()
        self._entry = segment.engine.address("hg_run")

    @property
    def output_shapes(self) -> list[tuple[int, ...]]:
        """The shape of each output, as far as inputs tell it."""
        found = []
        for number, (_, shape, _) in enumerate(self.segment.outputs):
            sizes = np.zeros(len(shape) + 1, np.int64)
            self.segment.engine.shape(self.fitted.address, number, sizes.ctypes.data)
            found.append(tuple(map(int, sizes[:-1])))
        return found

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """Return the outputs; only one thread may do so at a time."""
        growing = self.segment.table.rows.growing
        results = [
            self._new_output(number, (0,) if growing[number] else shape)
            for number, shape in enumerate(self.output_shapes)
        ]
        starts = _addresses(arrays), _addresses(results)
        self.segment.engine.point(self.fitted.address, *(each.ctypes.data for each in starts))
        failed = self._run()
        if failed >= 0:
            self.fail(failed)
        for number, grown in enumerate(growing):
            if grown:
                results[number] = self._grown(number)
        return results

    def _run(self) -> int:
        """Run the program and return the kernel that failed, or -1; a signal may end it."""
        if self._extension is None:  # Ctrl-C then waits until the last loop has ended
            return int(self.segment.engine.run(self.program, None, None))
        return int(self._extension.run(self._entry, self.program))

    def _grown(self, number: int) -> Array:
        """Return an output that grew while loops ran, or whose sizes were found."""
        sizes = np.zeros(len(self.segment.outputs[number][1]) + 1, np.int64)
        start = self.segment.engine.grown(self.fitted.address, number, sizes.ctypes.data)
        made = self._new_output(number, tuple(map(int, sizes[:-1])))
        if made.nbytes:
            assert start, self.segment.outputs[number]
            ctypes.memmove(made.ctypes.data, start, made.nbytes)
        return made

    def _new_output(self, number: int, shape: tuple[int, ...]) -> Array:
        buffer, _, dtype = self.segment.outputs[number]
        try:
            return self.segment.pool.empty(shape, dtype)
        except MemoryError:
            raise  # the session names the node
        except ValueError as error:
            label = next(
                kernel.label
                for kernel in self.segment.kernels
                if any(pointer.buffer is buffer for pointer in kernel.pointers)
            )
            raise KernelError(f"{label} failed: {error}") from error

    def watch(self, arrays: Sequence[Array], times: list[Spent], stop: Array | None) -> list[Array]:
        """Run once, append the time of each kernel to ``times``, return the outputs.

        Args:
            arrays: One an input.
            times: Is added to.
            stop: One number; once it is not 0, loops make no other iteration.
        """
        engine, program = self.segment.engine, self.program
        count = len(self.segment.kernels)
        table = np.zeros((2, count), np.int64)
        engine.watch(program, table.ctypes.data, None if stop is None else stop.ctypes.data)
        try:
            return self.run(arrays)
        finally:
            engine.watch(program, None, None)
            sizes = self.fitted.sizes()
            for kernel, (taken, runs) in zip(self.segment.kernels, table.T, strict=True):
                flops = _operations(kernel.flops, sizes) * int(runs)
                times.append(Spent(int(taken), int(runs), flops))


def _operations(work: Any, sizes: dict[str, int]) -> float:
    from hagane.symbolic import number_of

    return float(work) if isinstance(work, int | float) else number_of(work, sizes)


def _addresses(arrays: Sequence[Array]) -> np.ndarray:
    return np.array([*(array.ctypes.data for array in arrays), 0], np.int64)
