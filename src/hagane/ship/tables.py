"""Parts of a program as C data: the tables that ``native/c/tables.h`` describes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hagane.native.kernels.kernel import Call
from hagane.native.ready.rows import COUNTS, INDICES, RECORDS
from hagane.native.run.compiled import Compiled
from hagane.native.run.tables import part_rows

_BORDER = 8  # numbers of a border before its two lists of four
_RECORDS = {
    "kernels": "hgt_kernel",
    "pointers": "hgt_pointer",
    "buffers": "hgt_buffer",
    "borders": "hgt_border",
    "controls": "hgt_control",
    "inputs": "hgt_port",
    "outputs": "hgt_port",
}


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
    zero = "{0}" if ctype.startswith("hg") and ctype != "hg_kernel" else "0"
    lines = ",\n  ".join(found or [zero])
    return f"static const {ctype} {name}[] = {{\n  {lines}\n}};\n"


@dataclass(frozen=True, slots=True)
class PartText:
    """A part as C.

    Attributes:
        text: The data.
        name: Of the table.
        outputs: Whether the size of each output is known after a run alone.
    """

    text: str
    name: str
    outputs: tuple[bool, ...]


def _row(table: str, row: Sequence[int]) -> str:
    if table in INDICES:
        return str(row[0])
    items = [str(number) for number in row]
    if table == "borders":
        lists = items[_BORDER : _BORDER + 4], items[_BORDER + 4 :]
        items = [*items[:_BORDER], *("{" + ", ".join(each) + "}" for each in lists)]
    return "{" + ", ".join(items) + "}"


def part_table(
    name: str,
    compiled: Compiled,
    places: Mapping[int, int],
    function: Callable[[str], str],
) -> PartText:
    """Return a part as C.

    Args:
        name: Of the table; the names of its parts begin with it.
        compiled: The part.
        places: Where each packed weight lies, by the identity of its buffer.
        function: From the symbol of a kernel to the name of its C function.
    """
    kernels = compiled.kernels
    rows = part_rows(kernels, compiled.inputs, compiled.outputs, compiled.equal)
    functions = ("0" if kernel.symbol is None else function(kernel.symbol) for kernel in kernels)
    arrays: dict[str, tuple[str, Iterable[object]]] = {
        "functions": ("hg_kernel", functions),
        "labels": ("char *const", (c_string(kernel.label) for kernel in kernels)),
        "failures": ("char *const", (c_string(kernel.failure) for kernel in kernels)),
    }
    for table in (*RECORDS, *INDICES):
        kind = "int32_t" if table in INDICES else _RECORDS.get(table, f"hgt_{table}")
        arrays[table] = kind, [_row(table, row) for row in rows.rows[table]]
    arrays["formulas"] = "hgt_formula", (_row("formulas", row) for row in rows.formulas)
    arrays["constants"] = "int64_t", (f"{number}L" for number in rows.constants)
    arrays["weights"] = "int64_t", (f"{places[id(buffer)]}L" for buffer in rows.weights)
    text = [array_of(kind, f"{name}_{key}", items) for key, (kind, items) in arrays.items()]
    fields = {key: f"{name}_{key}" for key in arrays}
    fields |= {f"n_{key}": str(rows.counts[key]) for key in COUNTS}
    listed = ",\n  ".join(f".{key} = {value}" for key, value in fields.items())
    text.append(f"static const hgt_part {name} = {{\n  {listed}\n}};\n")
    return PartText("".join(text), name, rows.growing)


def declarations(calls: Sequence[Call], function: Callable[[str], str]) -> str:
    """Return declarations of the C functions of kernels."""
    names = sorted({function(call.symbol) for call in calls if call.symbol is not None})
    arguments = "char *const *, const int64_t *, int64_t, const hg_thread *"
    return "".join(f"void {name}({arguments});\n" for name in names)
