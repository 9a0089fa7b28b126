"""Memory and tables of one run at a time of a compiled part."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from hagane.errors import KernelError
from hagane.native.kernels.control import Branch, Estimate, Found, Loop, extents
from hagane.native.kernels.kernel import BY_REFERENCE
from hagane.native.kernels.tensor import Buffer, Kind
from hagane.native.run.control_table import ControlTable
from hagane.native.run.engine import Memory
from hagane.native.run.extension import load_extension
from hagane.native.run.memory import ARENA_SLACK, Clearing, MemoryPlan, Numbers, plan_memory
from hagane.symbolic import Dim

if TYPE_CHECKING:
    from hagane.native.run.loaded import Loaded
    from hagane.ops.definition import Array


class Refused(Exception):
    """Data that kernels cannot do with; the reference kernels compute them, or say what is wrong."""


class Spent(NamedTuple):
    """What a kernel took in one run: kernels of a loop run often.

    ``flops`` are the operations of all its runs.
    """

    nanoseconds: int
    runs: int
    flops: float


class Context:
    """Memory and call tables for one run at a time, at given shapes."""

    def __init__(self, segment: Loaded, shapes: tuple[tuple[int, ...], ...], number: Numbers):
        self.segment = segment
        kernels = segment.kernels
        self.table = np.zeros(sum(len(k.pointers) for k in kernels) + 1, np.uint64)
        self.numbers = np.zeros(sum(len(k.sizes) for k in kernels) + 1, np.int64)
        self._starts = self.table.ctypes.data, self.numbers.ctypes.data
        self.arena: Memory | None = None
        self.program: int | None = None
        self._scratch = -1
        self._kind = 0, False  # threads, and whether there is little work
        self._extension = load_extension()
        self._entry = segment.engine.address("hg_run")
        self.fit(shapes, number)

    def fit(self, shapes: tuple[tuple[int, ...], ...], number: Numbers) -> None:
        """Make the tables those for other shapes; memory is kept where it suffices."""
        self.shapes, self._number = shapes, number
        self.plan: MemoryPlan = plan_memory(self.segment.kernels, number)
        engine = self.segment.engine
        if self.arena is None or self.arena.size < self.plan.size + ARENA_SLACK:
            room = self.plan.size + (self.plan.size // 2 if self.arena is not None else 0)
            self.arena = None  # not both at once
            self.arena = Memory(engine, room + ARENA_SLACK)
        for offset, count, byte in self.plan.filled:
            self.arena.fill(offset, count, byte)
        scratch = self.segment.scratch_of(number)
        found = self.segment.estimated(number)
        threads, small = self.segment.threads_of_run(found), self.segment.is_small(found)
        if scratch > self._scratch or (threads, small) != self._kind:
            self._destroy()
            self._kind = threads, small
            self.program = engine.create(len(self.segment.kernels), threads, scratch)
            if not self.program:
                raise MemoryError("the tables of a compiled model")
            if small:
                engine.set_small(self.program)
            self._scratch = scratch
        self._fill_tables(number, self.arena, found)
        self.output_shapes = [
            (tuple(map(number, shape)), dtype) for _, shape, dtype in self.segment.outputs
        ]

    def _fill_tables(self, number: Numbers, arena: Memory, found: Estimate) -> None:
        segment = self.segment
        inputs = {buffer: i for i, (buffer, _, _) in enumerate(segment.inputs)}
        outputs = {buffer: i for i, (buffer, _, _) in enumerate(segment.outputs)}
        self.input_patches: list[tuple[int, int, int]] = []
        self.output_patches: list[tuple[int, int, int]] = []
        moving: dict[Buffer, list[tuple[int, Dim]]] = {}
        table, numbers = self._starts
        set_phase = segment.engine.set_phase
        addresses: list[int] = []
        values: list[int] = []
        changing: list[
            tuple[int, Dim]
        ] = []  # addresses of sizes that may differ between iterations
        for index, kernel in enumerate(segment.kernels):
            p0, d0 = len(addresses), len(values)
            for pointer in kernel.pointers:
                buffer, offset, address = pointer.buffer, number(pointer.offset), 0
                if buffer.kind is Kind.MOVING:
                    place = table + 8 * len(addresses)
                    moving.setdefault(buffer, []).append((place, pointer.offset))
                elif buffer in inputs:
                    self.input_patches.append((len(addresses), inputs[buffer], offset))
                elif buffer in outputs:
                    if buffer not in segment.growing:
                        self.output_patches.append((len(addresses), outputs[buffer], offset))
                elif buffer.kind is Kind.WEIGHT:
                    address = segment.weight_address(buffer) + offset
                else:
                    address = arena.address + self.plan.offsets[buffer] + offset
                addresses.append(address)
            changing += ((numbers + 8 * (d0 + i), dim) for i, dim in enumerate(kernel.sizes))
            values += map(number, kernel.sizes)
            tasks = number(kernel.tasks)
            serial = int(segment.is_serial(index, tasks, number, found))
            set_phase(
                self.program,
                index,
                segment.address(index),
                table + 8 * p0,
                numbers + 8 * d0,
                tasks,
                serial,
            )
        for clearing in self.plan.cleared:
            self._clear(clearing, arena)
        self.table[:-1] = addresses
        self.numbers[:-1] = values
        self._controls = {
            begin: ControlTable(control, begin, extent, moving, number)
            for begin, extent in extents(segment.controls).items()
            if isinstance(control := segment.controls[begin], Loop | Branch | Found)
        }
        changing += (item for made in self._controls.values() for item in made.numbers)
        all_tasks = [(index, kernel.tasks) for index, kernel in enumerate(segment.kernels)]
        for begin, made in self._controls.items():
            made.follow(changing, all_tasks)
            segment.engine.set_control(self.program, begin, made.address)

    def _clear(self, clearing: Clearing, arena: Memory) -> None:
        """Have a phase clear a border."""
        border = clearing.border
        numbers = np.array(
            [
                *(border.planes, border.step, border.plane, border.first, border.run, border.fill),
                *(number for axis in border.axes for number in axis),
            ],
            np.int64,
        )
        start = arena.address + clearing.offset + border.start
        engine, axes = self.segment.engine, len(border.axes)
        if engine.add_border(self.program, clearing.kernel, start, numbers.ctypes.data, axes):
            raise MemoryError("the tables of a compiled model")

    def _destroy(self) -> None:
        if self.program:
            self.segment.engine.destroy(self.program)
        self.program = None

    def __del__(self) -> None:
        if getattr(self, "program", None):
            self._destroy()

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
        failed = self._run()
        if failed >= 0:
            self.fail(failed)
        if self.segment.growing:
            self._take_grown(results)
        return results

    def _run(self) -> int:
        """Run the program and return the kernel that failed, or -1; a signal may end it."""
        if self._extension is None:  # Ctrl-C then waits until the last loop has ended
            return int(self.segment.engine.run(self.program, None, None))
        return int(self._extension.run(self._entry, self.program))

    def _take_grown(self, results: list[Array]) -> None:
        """Put arrays that grew while loops ran in the place of the outputs that stand for them."""
        sizes: dict[str, int] = {}
        for control in self._controls.values():
            if isinstance(control.control, Found):
                sizes |= control.sizes(left=True)
        for number, (buffer, _, dtype) in enumerate(self.segment.outputs):
            for control in self._controls.values():
                found = control.grown(buffer)
                if found is not None:
                    start, dims = found
                    shape: tuple[int, ...] = (control.made, *results[number].shape[1:])
                    if dims is not None:
                        last = self._number.with_sizes(sizes | control.sizes(left=True))
                        shape = tuple(map(last, dims))
                    results[number] = array = self._new_output(number, shape, dtype)
                    if array.nbytes:
                        ctypes.memmove(array.ctypes.data, start, array.nbytes)

    def fail(self, index: int) -> NoReturn:
        """Raise the error that a kernel noted.

        Raises:
            KernelError: The data are at fault.
            Refused: The reference kernel says whether they are.
        """
        kernel = self.segment.kernels[index]
        if kernel.failure == BY_REFERENCE:
            raise Refused(kernel.label)
        value = self.segment.engine.failure_value(self.program)
        names: dict[str, int] = {}
        for control in self._controls.values():
            names |= control.sizes(left=False)
        sizes = [self._number.with_sizes(names)(size) for size in kernel.failure_sizes]
        raise KernelError(f"{kernel.label} failed: {kernel.failure.format(*sizes, value=value)}")

    def _new_outputs(self) -> list[Array]:
        return [
            self._new_output(number, shape, dtype)
            for number, (shape, dtype) in enumerate(self.output_shapes)
        ]

    def _new_output(self, number: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        try:
            return self.segment.pool.empty(shape, dtype)
        except MemoryError:
            raise  # the session names the node
        except ValueError as error:
            buffer = self.segment.outputs[number][0]
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
        engine = self.segment.engine
        count = len(self.segment.kernels)
        table = np.zeros((2, count), np.int64)
        engine.watch(self.program, table.ctypes.data, None if stop is None else stop.ctypes.data)
        try:
            return self.run(arrays)
        finally:
            engine.watch(self.program, None, None)
            for kernel, (taken, runs) in zip(self.segment.kernels, table.T, strict=True):
                flops = self._number.of_work(kernel.flops) * int(runs)
                times.append(Spent(int(taken), int(runs), flops))
