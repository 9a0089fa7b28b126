"""Parts of a program as C data: the tables that ``c/tables.h`` describes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hagane.native.kernels.control import (
    LIKELY_ITERATIONS,
    Branch,
    Extent,
    Loop,
    changing_names,
    extents,
    grows,
)
from hagane.native.kernels.kernel import Call
from hagane.native.kernels.sizes import names_of_sizes
from hagane.native.kernels.tensor import Border, Buffer, Kind
from hagane.native.run.compiled import Compiled, Port
from hagane.native.run.memory import Numbers, plan_memory
from hagane.ship.numbers import SizeTable
from hagane.symbolic import Expr, symbol, symbols_of

# ONNX's TensorProto.DataType of element types by name.
TYPES = {
    "float32": 1,
    "uint8": 2,
    "int8": 3,
    "uint16": 4,
    "int16": 5,
    "int32": 6,
    "int64": 7,
    "bool": 9,
    "float16": 10,
    "float64": 11,
    "uint32": 12,
    "uint64": 13,
    "bfloat16": 16,
}
_KINDS = {
    Kind.ARENA: "HGB_ARENA",
    Kind.BORDERED: "HGB_BORDERED",
    Kind.WEIGHT: "HGB_WEIGHT",
    Kind.INPUT: "HGB_INPUT",
    Kind.OUTPUT: "HGB_OUTPUT",
    Kind.MOVING: "HGB_MOVING",
}
_BORDER_AXES = 4
NONE = -1
_MOST_LIKELY = 1 << 30


def c_string(text: str) -> str:
    """Return a C string literal of a text."""
    parts = []
    for byte in text.encode("utf-8", "surrogatepass"):
        plain = 32 <= byte < 127 and byte not in b'"\\?'
        parts.append(chr(byte) if plain else f"\\{byte:03o}")
    return f'"{"".join(parts)}"'


def array_of(ctype: str, name: str, items: Iterable[object]) -> str:
    """Return a static C array, of one zero if it has no element."""
    found = [str(item) for item in items]
    zero = "{0}" if ctype.startswith("hgb_") else "0"
    lines = ",\n  ".join(found or [zero])
    return f"static const {ctype} {name}[] = {{\n  {lines}\n}};\n"


@dataclass(frozen=True, slots=True)
class PartTable:
    """A part as C.

    Attributes:
        text: Functions and data.
        name: Of the table.
        outputs: Whether each output grows while a loop runs.
    """

    text: str
    name: str
    outputs: tuple[bool, ...]


class _Rows:
    """The rows of one table, as they come."""

    def __init__(self) -> None:
        self.rows: list[str] = []

    def add(self, rows: Iterable[object]) -> tuple[int, int]:
        """Append rows; return the first one's index, and how many."""
        start = len(self.rows)
        self.rows += [_row(row) for row in rows]
        return start, len(self.rows) - start


def _row(row: object) -> str:
    if isinstance(row, tuple | list):
        return "{" + ", ".join(_row(item) for item in row) + "}"
    return str(row)


class _PartWriter:
    def __init__(
        self,
        compiled: Compiled,
        places: Mapping[int, int],
        function: Callable[[str], str],
    ):
        self._compiled, self._places, self._function = compiled, places, function
        kernels = compiled.kernels
        self._controls = [kernel.control for kernel in kernels]
        self._extents = extents(self._controls)
        self._growing = grows(self._controls)
        shapes = [shape for _, shape, _ in (*compiled.inputs, *compiled.outputs)]
        changing = changing_names(self._controls)
        names = names_of_sizes(kernels, shapes, compiled.equal)
        self.size = SizeTable(sorted(names - changing.keys()), changing)
        self._buffers: dict[Buffer, int] = {}
        self._buffer_rows: list[list[object]] = []
        self._inputs = {buffer: i for i, (buffer, _, _) in enumerate(compiled.inputs)}
        self._outputs = {buffer: i for i, (buffer, _, _) in enumerate(compiled.outputs)}
        self.tables = {
            name: _Rows()
            for name in (
                *("kernels", "pointers", "borders", "controls", "carried", "scanned", "changing"),
                *("sizes", "failure_sizes", "dims", "control_dims", "moved", "equal"),
            )
        }
        self._border_places: dict[tuple[Border, ...], tuple[int, int]] = {}
        self._cleared = self._cleared_borders()

    def _cleared_borders(self) -> frozenset[Buffer]:
        """Return the buffers whose borders every run sets, where sizes are numbers."""
        if self.size.symbols or changing_names(self._controls):
            return frozenset()
        kernels = self._compiled.kernels
        plan = plan_memory(kernels, Numbers({}))
        cleared = {clearing.border for clearing in plan.cleared}
        return frozenset(
            buffer for buffer in plan.offsets if any(each in cleared for each in buffer.border)
        )

    def _buffer(self, buffer: Buffer, kernel: int) -> int:
        """Return the index of a buffer that a kernel reads or writes."""
        if buffer in self._buffers:
            index = self._buffers[buffer]
            self._buffer_rows[index][3] = kernel
            return index
        index = self._buffers[buffer] = len(self._buffer_rows)
        kind, at = buffer.kind, 0
        if kind is Kind.WEIGHT:
            at = self._places[id(buffer)]
        elif kind is not Kind.MOVING and buffer in self._inputs:
            kind, at = Kind.INPUT, self._inputs[buffer]
        elif kind is not Kind.MOVING and buffer in self._outputs:
            kind, at = Kind.OUTPUT, self._outputs[buffer]
        border, borders = self._borders(buffer.border)
        cleared = int(buffer in self._cleared)
        # What an iteration of a loop needs is computed by the kernel behind it.
        size = self.size(buffer.bytes)
        self._buffer_rows.append([_KINDS[kind], size, kernel, kernel, at, border, borders, cleared])
        return index

    def _borders(self, borders: tuple[Border, ...]) -> tuple[int, int]:
        if borders not in self._border_places:
            rows = []
            for each in borders:
                axes = [(self.size(count), self.size(step)) for count, step in each.axes]
                axes += [(0, 0)] * (_BORDER_AXES - len(axes))
                numbers = (each.start, each.planes, each.step, each.plane, each.first, each.run)
                rows.append(
                    (
                        *map(self.size, (*numbers, each.fill)),
                        len(each.axes),
                        [count for count, _ in axes],
                        [step for _, step in axes],
                    )
                )
            self._border_places[borders] = self.tables["borders"].add(rows)
        return self._border_places[borders]

    def kernels(self) -> None:
        """Write the kernels."""
        for index, kernel in enumerate(self._compiled.kernels):
            pointers = self.tables["pointers"].add(
                (self._buffer(each.buffer, index), self.size(each.offset))
                for each in kernel.pointers
            )
            sizes = self.tables["sizes"].add(self.size(dim) for dim in kernel.sizes)
            failing = self.tables["failure_sizes"].add(
                self.size(dim) for dim in kernel.failure_sizes
            )
            work = kernel.work if isinstance(kernel.work, Expr) else round(kernel.work)
            self.tables["kernels"].add(
                [
                    (
                        "0" if kernel.symbol is None else self._function(kernel.symbol),
                        c_string(kernel.label),
                        c_string(kernel.failure),
                        *pointers,
                        *sizes,
                        self.size(kernel.tasks),
                        self.size(kernel.scratch),
                        *failing,
                        self.size(work),
                    )
                ]
            )

    def controls(self) -> None:
        """Write loops and branches; those around others come first."""
        for begin, extent in sorted(self._extents.items()):
            control = self._controls[begin]
            assert isinstance(control, Loop | Branch)
            if isinstance(control, Branch):
                row = [
                    begin,
                    0,
                    extent.otherwise,
                    extent.end,
                    1,
                    NONE,
                    NONE,
                    NONE,
                    control.condition,
                ]
                self.tables["controls"].add([(*row, NONE, *(0,) * 12, NONE)])
            else:
                self._loop(begin, extent, control)

    def _loop(self, begin: int, extent: Extent, loop: Loop) -> None:
        def index(buffer: Buffer) -> int:
            return self._buffer_of(buffer)

        carried = self.tables["carried"].add(
            (
                *(index(value.before), index(value.after)),
                *(value.start, value.first, value.second, self.size(value.size)),
                NONE if value.grown is None else self.size(value.grown),
                NONE if value.result is None else self._outputs[value.result],
                self.tables["dims"].add(self.size(dim) for dim in value.shape)[0],
                len(value.shape),
            )
            for value in loop.carried
        )
        scanned = self.tables["scanned"].add(
            (
                *(index(part.slice), part.base, self.size(part.start), self.size(part.step)),
                NONE if part.result is None else self._outputs[part.result],
            )
            for part in loop.scanned
        )
        iterations = NONE if loop.iterations is None else self.size(loop.iterations)
        likely = loop.iterations if isinstance(loop.iterations, int) else LIKELY_ITERATIONS
        row = [begin, 1, extent.otherwise, extent.end, max(1, min(likely, _MOST_LIKELY))]
        row += [iterations, loop.limit, loop.going, loop.condition, loop.count, *carried, *scanned]
        changing = loop.changing
        if changing is None:
            row += [0] * 8 + [NONE]
        else:
            names = self.tables["changing"].add(
                (self.size(symbol(name)), self.size(after)) for name, _, after in changing.names
            )
            dims = self.tables["control_dims"].add(self.size(dim) for dim in changing.dims)
            moved = self.tables["moved"].add(index(each) for each in changing.temporaries)
            row += [1, *names, *dims, index(changing.numbers), *moved]
            row += [self.size(changing.scratch)]
        self.tables["controls"].add([tuple(row)])

    def _buffer_of(self, buffer: Buffer) -> int:
        """Return the index of a buffer that loops move; of one that no kernel reads too."""
        if buffer not in self._buffers:
            self._buffers[buffer] = len(self._buffer_rows)
            size = self.size(buffer.bytes)
            self._buffer_rows.append([_KINDS[Kind.MOVING], size, 0, 0, 0, 0, 0, 0])
        return self._buffers[buffer]

    def port(self, port: Port, *, grows: bool = False) -> tuple[int, ...]:
        """Return the row of an input or output."""
        buffer, shape, dtype = port
        dims = self.tables["dims"].add(self.size(dim) for dim in shape)[0]
        return self._buffers.get(buffer, NONE), TYPES[dtype.name], len(shape), dims, int(grows)

    def table(self, name: str) -> PartTable:
        """Return everything as C."""
        compiled = self._compiled
        self.kernels()
        self.controls()
        outputs = tuple(buffer in self._growing for buffer, _, _ in compiled.outputs)
        ports = {
            "inputs": [_row(self.port(each)) for each in compiled.inputs],
            "outputs": [
                _row(self.port(each, grows=grown))
                for each, grown in zip(compiled.outputs, outputs, strict=True)
            ],
        }
        equal = [(self.size(left), self.size(right)) for left, right in compiled.equal]
        self.tables["equal"].add(number for pair in equal for number in pair)
        named = [
            _row((i, axis, self.size.names[text], distance))
            for i, (_, shape, _) in enumerate(compiled.inputs)
            for axis, dim in enumerate(shape)
            for text in sorted(symbols_of(dim))
            if text in self.size.symbols and isinstance(distance := dim - symbol(text), int)
        ]
        types = dict.fromkeys(self.tables, "int32_t")
        types |= dict.fromkeys(("inputs", "outputs"), "hgb_port")
        for key in ("kernel", "pointer", "border", "control"):
            types[f"{key}s"] = f"hgb_{key}"
        for key in ("carried", "scanned", "changing"):
            types[key] = f"hgb_{key}"
        rows = {key: table.rows for key, table in self.tables.items()} | ports
        text = [self.size.functions(name)]
        text += [array_of(types[key], f"{name}_{key}", items) for key, items in rows.items()]
        text += [
            array_of("hgb_buffer", f"{name}_buffers", map(_row, self._buffer_rows)),
            array_of("hgb_named", f"{name}_named", named),
            array_of("int64_t", f"{name}_constants", (f"{n}L" for n in self.size.constants())),
        ]
        fields = {key: f"{name}_{key}" for key in (*rows, "buffers", "named", "constants")}
        fields |= {"begin": f"{name}_begin", "compute": f"{name}_compute"}
        counts = {
            "kernels": len(compiled.kernels),
            "pointers": len(self.tables["pointers"].rows),
            "buffers": len(self._buffer_rows),
            "controls": len(self.tables["controls"].rows),
            "inputs": len(compiled.inputs),
            "outputs": len(compiled.outputs),
            "named": len(named),
            "equal": len(compiled.equal),
            "numbers": len(self.size),
            "symbols": len(self.size.symbols),
            "sizes": len(self.tables["sizes"].rows),
        }
        fields |= {f"n_{key}": str(count) for key, count in counts.items()}
        listed = ",\n  ".join(f".{key} = {value}" for key, value in fields.items())
        text.append(f"static const hgb_part {name} = {{\n  {listed}\n}};\n")
        return PartTable("".join(text), name, outputs)


def part_table(
    name: str,
    compiled: Compiled,
    places: Mapping[int, int],
    function: Callable[[str], str],
) -> PartTable:
    """Return a part as C.

    Args:
        name: Of the table; what belongs to it begins with it.
        compiled: The part.
        places: Where each packed weight lies, by the identity of its buffer.
        function: From the symbol of a kernel to the name of its C function.
    """
    return _PartWriter(compiled, places, function).table(name)


def declarations(calls: Sequence[Call], function: Callable[[str], str]) -> str:
    """Return declarations of the C functions of kernels."""
    names = sorted({function(call.symbol) for call in calls if call.symbol is not None})
    arguments = "char *const *, const int64_t *, int64_t, const hg_thread *"
    return "".join(f"void {name}({arguments});\n" for name in names)
