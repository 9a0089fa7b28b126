"""A compiled part in this process: arrays in, arrays out."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from hagane.errors import InvalidArgument
from hagane.machine import Lock
from hagane.native.kernels.control import Loop
from hagane.native.kernels.tensor import Buffer
from hagane.native.ready.context import Fitted, ShapeMismatch
from hagane.native.ready.mapped import (
    Engine,
    Library,
    Mapped,
    Memory,
    Packed,
    WeightStore,
    open_engine,
    open_library,
)
from hagane.native.ready.outputs import OutputPool
from hagane.native.ready.rows import PartTable
from hagane.native.run.compiled import Compiled, Weight, sources_of, with_arrays
from hagane.native.run.context import Running, Spent
from hagane.native.run.memory import ARENA_SLACK, Measured, measured
from hagane.native.run.shared import keys_of
from hagane.native.run.tables import part_rows

if TYPE_CHECKING:
    from hagane.ops.definition import Array

# After copying this many bytes of weights, their sources are let go.
_SETTLE_BYTES = 8 << 20
# The engine adds as much to scratch memory.
_SCRATCH_SLACK = 4096
# Sizes that only a run tells, where their memory is asked for before: the first that layers take.
_TRIED = tuple(2**power for power in range(11))
# Contexts that are kept for runs to come.
_MOST_FREE = 5


class Loaded:
    """A process's hold on a compiled part: code mapped, weights packed, memory for runs.

    Args:
        compiled: The part to load.
        settle: Called now and then while weights are copied, to let go of pages that were read.
        library: The kernels' code, if it is mapped already.
        engine: The engine, if it is mapped already.
        keep_sources: Keep the arrays that weights are packed from, for ``replace``.
        weights: The weights, if they are packed already.
        store: Where other programs of the session find weights, and left theirs.
        elsewhere: Weights of other programs that this one reads, if ``weights`` are its own.
        marks: Those of the weights that are packed already, by which others find them.
    """

    def __init__(
        self,
        compiled: Compiled,
        settle: Callable[[], None] = lambda: None,
        *,
        library: Library | None = None,
        engine: Engine | None = None,
        keep_sources: bool = False,
        weights: Mapped | None = None,
        store: WeightStore | None = None,
        elsewhere: Mapping[Buffer, Packed] | None = None,
        marks: Mapping[Buffer, str] | None = None,
    ):
        self.kernels = compiled.kernels
        self.inputs, self.outputs = compiled.inputs, compiled.outputs
        self.engine: Engine = engine or open_engine(compiled.engine)
        self.library: Library = library or open_library(compiled.library)
        self.threads = compiled.threads
        self._addresses = [
            None if kernel.symbol is None else self.library.address(kernel.symbol)
            for kernel in self.kernels
        ]
        self.controls = [kernel.control for kernel in self.kernels]
        # A loop whose iterations nobody knows may take any time.
        self.is_endless = any(
            isinstance(each, Loop) and not isinstance(each.iterations, int)
            for each in self.controls
        )
        kept = None if keep_sources or weights is not None else store
        self.store = WeightStore() if store is None else store
        self.marks: dict[Buffer, str] = dict(marks or {})
        own, size = self._share(compiled, kept)
        self._packed.update(elsewhere or {})
        self._weights = weights or Memory(self.engine, size)
        self._addresses_of_weights = {
            buffer: packed.address for buffer, packed in self._packed.items()
        }
        for weight in own:
            self._addresses_of_weights[weight.buffer] = self._weights.address + weight.offset
        self._owners = [weight.buffer.owner for weight in compiled.weights]
        if weights is None:
            self._pack(own, [source.array for source in compiled.sources], settle)
        self._offer(own)
        # Code and packed weights as they are, for other processes (`kept.py`).
        self.plain = replace(compiled, weights=tuple(own), weight_bytes=size, sources=())
        self.is_whole = not self.buffers_elsewhere()
        self._compiled = compiled if keep_sources else None
        rows = part_rows(self.kernels, self.inputs, self.outputs, compiled.equal)
        functions = [address or 0 for address in self._addresses]
        weights_of_rows = [self._addresses_of_weights[buffer] for buffer in rows.weights]
        self.table = PartTable(rows, functions, weights_of_rows)
        self.may_mismatch = bool(rows.symbols)
        self.pool = OutputPool()
        self.takes = [(len(shape), dtype) for _, shape, dtype in self.inputs]
        self.gives = [dtype for _, _, dtype in self.outputs]
        self._free: list[Running] = []
        self._lock = Lock()

    def buffers_elsewhere(self) -> list[Buffer]:
        """Return the weights that lie with other programs."""
        own = {weight.buffer for weight in self.plain.weights}
        return [buffer for buffer in self._packed if buffer not in own]

    def packed(self) -> memoryview:
        """Return the bytes of all packed weights."""
        size = self._weights.size
        return memoryview((ctypes.c_char * size).from_address(self._weights.address)).cast("B")

    def _share(self, compiled: Compiled, store: WeightStore | None) -> tuple[list[Weight], int]:
        """Note the weights that others packed; return the rest, where they lie, and their bytes."""
        self._packed: dict[Buffer, Packed] = {}
        if store is None:
            return list(compiled.weights), compiled.weight_bytes
        own: list[Weight] = []
        top = shared = 0
        for weight, key in zip(
            compiled.weights, keys_of(compiled.weights, compiled.sources), strict=True
        ):
            found = store.get(key)
            if key is not None:
                self.marks[weight.buffer] = key
            size = -(-(int(weight.buffer.bytes) + 64) // 64) * 64
            if found is not None:
                self._packed[weight.buffer] = found
                shared += size
                continue
            own.append(replace(weight, offset=top))
            top += size
        return own, compiled.weight_bytes - shared

    def _offer(self, own: Sequence[Weight]) -> None:
        """Offer the weights that lie here to others."""
        for weight in own:
            if weight.buffer in self.marks:
                packed = Packed(self._weights, self._weights.address + weight.offset)
                self._packed[weight.buffer] = packed
                self.store.put(self.marks[weight.buffer], packed)

    def replace(self, arrays: Mapping[str, Array]) -> None:
        """Pack weights anew from other arrays; nothing is compiled. No run may go on meanwhile.

        Args:
            arrays: By the names of the constants that they take the place of, each of the same
                shape and element type.

        Raises:
            InvalidArgument: There is no such weight, kernels depend on its content, or an array
                does not fit.
        """
        compiled = self._compiled
        if compiled is None:
            raise InvalidArgument(
                "replace: the arrays that weights are packed from were let go of; load the part "
                "with keep_sources=True"
            )
        numbers = {source.name: i for i, source in enumerate(compiled.sources) if source.name}
        sources = list(compiled.sources)
        for name, array in arrays.items():
            number = numbers.get(name)
            if number is None:
                known = ", ".join(sorted(numbers)) or "none"
                raise InvalidArgument(f"replace: no weight is packed from '{name}', but: {known}")
            old = sources[number]
            if not old.may_change:
                raise InvalidArgument(
                    f"replace '{name}': kernels, or weights that are computed ahead, depend on its "
                    f"content; compile the part anew, or make '{name}' an input"
                )
            if array.shape != old.array.shape or array.dtype != old.array.dtype:
                raise InvalidArgument(
                    f"replace '{name}': expected {old.array.dtype}{list(old.array.shape)}, "
                    f"got {array.dtype}{list(array.shape)}"
                )
            sources[number] = replace(old, array=np.array(array, order="C"))
        changed = {numbers[name] for name in arrays}
        weights = [w for w in compiled.weights if sources_of(w.packing) & changed]
        self._compiled = replace(compiled, sources=tuple(sources))
        self._pack(weights, [source.array for source in sources], lambda: None)

    def _pack(
        self, weights: Sequence[Weight], sources: Sequence[Array], settle: Callable[[], None]
    ) -> None:
        """Bring weights into the form that kernels read."""
        since = 0
        for weight in weights:
            size = int(weight.buffer.bytes)
            end, limit = weight.offset, max(_SETTLE_BYTES, size // 4)
            for piece in with_arrays(weight.packing, sources).pieces():
                data = np.ascontiguousarray(piece)
                assert end + data.nbytes <= weight.offset + size, weight.buffer.name
                ctypes.memmove(self._weights.address + end, data.ctypes.data, data.nbytes)
                end += data.nbytes
                since += data.nbytes
                if since > limit:
                    settle()
                    since = 0
        settle()

    def memory(self, sizes: Mapping[str, int]) -> tuple[int, int]:
        """Return the bytes of the weights, and of all that one run at a time needs besides.

        Args:
            sizes: Named dimensions of the inputs. Those that only a run tells count as 1, or as
                the least power of two that layers take (a kernel may be wider than 1).

        Raises:
            MemoryError: Sizes are beyond any memory.
        """
        told = any(name not in sizes for name in self.table.symbols)
        failed: list[MemoryError] = []
        for size in _TRIED if told else _TRIED[:1]:
            try:
                found = self.measured({name: sizes.get(name, size) for name in self.table.symbols})
                break
            except MemoryError as error:
                failed.append(error)
        else:
            raise failed[0]
        scratch = found.threads * (found.scratch + _SCRATCH_SLACK)
        return self._weights.size, found.values + ARENA_SLACK + scratch

    def measured(self, sizes: Mapping[str, int]) -> Measured:
        """Return the memory of runs of some sizes, by named dimensions of the inputs."""
        return measured(Fitted(self.engine, self.table, self.threads), sizes)

    def run(
        self,
        arrays: Sequence[Array],
        times: list[Spent] | None = None,
        stop: Array | None = None,
    ) -> list[Array]:
        """Return the outputs for arrays that match the inputs' types.

        Args:
            arrays: One an input.
            times: Is given the time of each kernel, if it is a list.
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

    def _take(self, shapes: tuple[tuple[int, ...], ...], arrays: Sequence[Array]) -> Running:
        for array, (_, shape, dtype) in zip(arrays, self.inputs, strict=True):
            if array.ndim != len(shape) or array.dtype != dtype:
                raise ShapeMismatch
        with self._lock:
            for i, context in enumerate(self._free):
                if context.shapes == shapes:
                    return self._free.pop(i)
            last = self._free.pop(0) if len(self._free) >= _MOST_FREE else None
        if last is None:
            return Running(self, shapes)
        # Shapes that change from run to run would otherwise cost a context each.
        last.fit(shapes)
        return last
