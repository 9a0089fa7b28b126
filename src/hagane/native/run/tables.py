"""Kernels, inputs and outputs as the rows that ``native/c/tables.h`` describes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hagane.native.kernels.control import (
    LIKELY_ITERATIONS,
    NONE,
    Branch,
    Extent,
    Found,
    Loop,
    changing_names,
    extents,
    grows,
)
from hagane.native.kernels.kernel import AnyKernel
from hagane.native.kernels.sizes import names_of_sizes
from hagane.native.kernels.tensor import Border, Buffer, Kind
from hagane.native.ready.rows import INDICES, RECORDS, TYPES, PartRows, Row
from hagane.native.run.compiled import Port
from hagane.native.run.numbers import SizeTable
from hagane.symbolic import Dim, Expr, line_in, symbol, symbols_of

# HGT_ARENA and so on.
_KINDS = {
    kind: number
    for number, kind in enumerate(
        (Kind.ARENA, Kind.BORDERED, Kind.WEIGHT, Kind.INPUT, Kind.OUTPUT, Kind.MOVING)
    )
}
_BORDER_AXES = 4
_MOST_LIKELY = 1 << 30


class _Writer:
    def __init__(
        self,
        kernels: Sequence[AnyKernel],
        inputs: Sequence[Port],
        outputs: Sequence[Port],
        equal: Sequence[tuple[Dim, Dim]],
    ):
        self._kernels, self._ports, self._equal = kernels, (inputs, outputs), equal
        self._controls = [kernel.control for kernel in kernels]
        shapes = [shape for _, shape, _ in (*inputs, *outputs)]
        self._changing = changing_names(self._controls)
        names = names_of_sizes(kernels, shapes, equal)
        self.size = SizeTable(sorted(names - self._changing.keys()), self._changing)
        self._buffers: dict[Buffer, int] = {}
        self.weights: list[Buffer] = []
        self._inputs = {buffer: i for i, (buffer, _, _) in enumerate(inputs)}
        self._outputs = {buffer: i for i, (buffer, _, _) in enumerate(outputs)}
        self.tables: dict[str, list[Row]] = {name: [] for name in (*RECORDS, *INDICES)}
        self._border_places: dict[tuple[Border, ...], tuple[int, int]] = {}

    def _add(self, table: str, rows: Iterable[Row]) -> tuple[int, int]:
        """Append rows to a table; return the first one's index, and how many."""
        into = self.tables[table]
        start = len(into)
        into += rows
        return start, len(into) - start

    def _list(self, table: str, numbers: Iterable[int]) -> tuple[int, int]:
        return self._add(table, ([number] for number in numbers))

    def _sizes(self, table: str, dims: Iterable[Dim]) -> tuple[int, int]:
        return self._list(table, map(self.size, dims))

    def _buffer(self, buffer: Buffer, kernel: int) -> int:
        """Return the index of a buffer that a kernel reads or writes."""
        index = self._buffers.get(buffer)
        if index is not None:
            self.tables["buffers"][index][3] = kernel
            return index
        index = self._buffers[buffer] = len(self._buffers)
        kind, at = buffer.kind, 0
        if kind is Kind.WEIGHT:
            at = len(self.weights)
            self.weights.append(buffer)
        elif kind is not Kind.MOVING and buffer in self._inputs:
            kind, at = Kind.INPUT, self._inputs[buffer]
        elif kind is not Kind.MOVING and buffer in self._outputs:
            kind, at = Kind.OUTPUT, self._outputs[buffer]
        border = self._borders(buffer.border)
        # The numbers of an iteration of a loop are computed by the kernel behind it.
        row = [_KINDS[kind], self.size(buffer.bytes), kernel, kernel, at, *border]
        self.tables["buffers"].append(row)
        return index

    def _borders(self, borders: tuple[Border, ...]) -> tuple[int, int]:
        if borders not in self._border_places:
            rows = []
            for each in borders:
                padding = [0] * (_BORDER_AXES - len(each.axes))
                numbers = (each.start, each.planes, each.step, each.plane, each.first, each.run)
                row = [*map(self.size, (*numbers, each.fill)), len(each.axes)]
                row += [self.size(count) for count, _ in each.axes] + padding
                row += [self.size(step) for _, step in each.axes] + padding
                rows.append(row)
            self._border_places[borders] = self._add("borders", rows)
        return self._border_places[borders]

    def kernels(self) -> None:
        """Write the kernels, but for the time that they take."""
        for index, kernel in enumerate(self._kernels):
            pointers = self._add(
                "pointers",
                (
                    [self._buffer(each.buffer, index), self.size(each.offset)]
                    for each in kernel.pointers
                ),
            )
            sizes = self._sizes("sizes", kernel.sizes)
            failing = self._sizes("failure_sizes", kernel.failure_sizes)
            is_open = bool(symbols_of(kernel.tasks) & self._changing.keys())
            row = [*pointers, *sizes, self.size(kernel.tasks), self.size(kernel.scratch)]
            row += [*failing, int(kernel.control is None), int(is_open), 0]
            self.tables["kernels"].append(row)

    def work(self) -> None:
        """Write the time that kernels take."""
        for kernel, row in zip(self._kernels, self.tables["kernels"], strict=True):
            row[-1] = self.size(
                kernel.work if isinstance(kernel.work, Expr) else round(kernel.work)
            )

    def controls(self) -> None:
        """Write loops, branches and sizes that are found; those around others come first."""
        for begin, extent in sorted(extents(self._controls).items()):
            control = self._controls[begin]
            if isinstance(control, Branch):
                row = [begin, 0, extent.otherwise, extent.end, 1, NONE, NONE, NONE]
                row += [control.condition, NONE, *[0] * 12, NONE, 0, 0]
                self.tables["controls"].append(row)
            else:
                assert isinstance(control, Loop | Found)
                self._loop(begin, extent, control)

    def _loop(self, begin: int, extent: Extent, loop: Loop | Found) -> None:
        index, size = self._buffer_of, self.size
        likely = 1
        row = [NONE] * 5
        carried: tuple[int, int] = 0, 0
        if isinstance(loop, Loop):
            carried = self._add(
                "carried",
                (
                    [
                        *(index(value.before), index(value.after)),
                        *(value.start, value.first, value.second, size(value.size)),
                        NONE if value.grown is None else size(value.grown),
                        NONE if value.result is None else self._outputs[value.result],
                        self._sizes("dims", value.shape)[0],
                        len(value.shape),
                    ]
                    for value in loop.carried
                ),
            )
            likely = loop.iterations if isinstance(loop.iterations, int) else LIKELY_ITERATIONS
            iterations = NONE if loop.iterations is None else size(loop.iterations)
            row = [iterations, loop.limit, loop.going, loop.condition, loop.count]
        scanned = self._add(
            "scanned",
            (
                [
                    *(index(part.slice), part.base, size(part.start), size(part.step)),
                    NONE if part.result is None else self._outputs[part.result],
                ]
                for part in loop.scanned
            ),
        )
        kind = 1 if isinstance(loop, Loop) else 2
        row = [begin, kind, extent.otherwise, extent.end, max(1, min(likely, _MOST_LIKELY)), *row]
        row += [*carried, *scanned]
        changing = loop.changing
        if changing is None:
            self.tables["controls"].append([*row, *[0] * 8, NONE, 0, 0])
            return
        names = self._add(
            "changing", ([size(symbol(name)), size(after)] for name, _, after in changing.names)
        )
        dims = self._sizes("control_dims", changing.dims)
        moved = self._list("moved", map(index, changing.temporaries))
        row += [1, *names, *dims, index(changing.numbers), *moved, size(changing.scratch)]
        found: tuple[int, int] = 0, 0
        if isinstance(loop, Found):
            found = self._add(
                "found",
                (
                    [
                        *(self._outputs[buffer], changing.temporaries.index(buffer)),
                        *(self._sizes("dims", shape)[0], len(shape)),
                    ]
                    for buffer, shape in loop.results
                    if buffer in self._outputs
                ),
            )
        self.tables["controls"].append([*row, *found])

    def _buffer_of(self, buffer: Buffer) -> int:
        """Return the index of a buffer that loops move; of one that no kernel reads too."""
        if buffer not in self._buffers:
            self._buffers[buffer] = len(self._buffers)
            size = self.size(buffer.bytes)
            self.tables["buffers"].append([_KINDS[Kind.MOVING], size, 0, 0, 0, 0, 0])
        return self._buffers[buffer]

    def ports(self, growing: Sequence[bool]) -> None:
        """Write inputs and outputs, and the sizes that inputs tell."""
        flags = ([False] * len(self._ports[0]), growing)
        for name, ports, grown in zip(("inputs", "outputs"), self._ports, flags, strict=True):
            for (buffer, shape, dtype), each in zip(ports, grown, strict=True):
                dims = self._sizes("dims", shape)[0]
                place = self._buffers.get(buffer, NONE)
                kind = TYPES.get(dtype.name, 0)
                self.tables[name].append([place, kind, len(shape), dims, int(each)])
        self._list("equal", (self.size(dim) for pair in self._equal for dim in pair))
        for i, (_, shape, _) in enumerate(self._ports[0]):
            for axis, dim in enumerate(shape):
                for text in sorted(symbols_of(dim)):
                    line = line_in(dim, text)
                    if text in self.size.symbols and line is not None:
                        row = [i, axis, self.size.names[text], *map(self.size, line)]
                        self.tables["named"].append(row)

    def write(self) -> PartRows:
        """Return everything."""
        _, outputs = self._ports
        self.kernels()
        self.controls()
        found = grows(self._controls)
        growing = tuple(buffer in found for buffer, _, _ in outputs)
        self.ports(growing)
        exact = len(self.size.formulas)
        self.work()
        tables = ("kernels", "pointers", "buffers", "controls", "inputs", "outputs", "named")
        counts = {name: len(self.tables[name]) for name in tables}
        counts["equal"] = len(self._equal)
        counts |= {
            "numbers": len(self.size),
            "symbols": len(self.size.symbols),
            "sizes": len(self.tables["sizes"]),
            "begin": self.size.n_begin,
            "exact": exact,
            "formulas": len(self.size.formulas),
        }
        return PartRows(
            self.tables,
            self.size.formulas,
            self.size.constants,
            self.weights,
            self.size.symbols,
            tuple(self.size.names),
            counts,
            growing,
        )


def part_rows(
    kernels: Sequence[AnyKernel],
    inputs: Sequence[Port] = (),
    outputs: Sequence[Port] = (),
    equal: Sequence[tuple[Dim, Dim]] = (),
) -> PartRows:
    """Return the tables of a part.

    Args:
        kernels: In order.
        inputs: Of the part.
        outputs: Of the part.
        equal: Sizes that kernels take for equal.
    """
    return _Writer(kernels, inputs, outputs, equal).write()
