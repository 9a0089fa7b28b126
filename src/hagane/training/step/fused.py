"""Updates of many parameters in one pass over each, in C that is made of the optimizer's rule.

A rule over the builder becomes the body of one loop: parameter, states and gradient are read once,
new values are written in their place. Hyperparameters come in as numbers, so that the code of a
rule is the same for all of them, and kept in the cache of compiled code.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import pairwise
from pathlib import Path

import onnx_ir as ir

from hagane.machine import CodeCache, NoCompiler, best_level, find_compiler
from hagane.ops.definition import Array
from hagane.passes.edit import attributes_of

_FLAGS = ("-O3", "-std=gnu11", "-fPIC", "-w", "-fno-math-errno")
_REALS = {ir.DataType.FLOAT: "float", ir.DataType.DOUBLE: "double"}
# As in fused.c.
_MOST_ARRAYS, _MOST_NUMBERS = 6, 16
_JOB = struct.Struct(f"=qqq{_MOST_ARRAYS}Q{_MOST_NUMBERS}d")
_FORMS = {
    "Add": "{0} + {1}",
    "Sub": "{0} - {1}",
    "Mul": "{0} * {1}",
    "Div": "{0} / {1}",
    "Neg": "-{0}",
    "Identity": "{0}",
    "Greater": "{0} > {1}",
    "Where": "{0} ? {1} : {2}",
    # (A number that is none wins, as in ONNX.)
    "Max": "{0} > {1} || {0} != {0} ? {0} : {1}",
    "Abs": "{0} < 0 ? -{0} : {0}",
}


@dataclass(frozen=True, slots=True)
class Body:
    """An update of elements in C.

    Attributes:
        text: The function of it, but for its name.
        arrays: The arrays that it changes by the names of the graph, then the gradient.
        scalars: The numbers of a step that it takes, by the names of the graph's inputs.
        constants: Those behind them, which stay.
    """

    text: str
    arrays: tuple[str, ...]
    scalars: tuple[str, ...]
    constants: tuple[float, ...]


def body_of(graph: ir.Graph, arrays: Sequence[str], gradient: str) -> Body | None:
    """Return the update of one parameter as C; None where it has operators or types without one.

    Args:
        graph: The update: an input for each array and number, an output ``<name>.new`` for each
            array.
        arrays: The parameter and its states.
        gradient: The name of the gradient.
    """
    dtype = next(value.dtype for value in graph.inputs if value.name == gradient)
    if dtype not in _REALS or len(arrays) >= _MOST_ARRAYS:
        return None
    real = _REALS[dtype]
    names: dict[ir.Value, str] = {}
    scalars: list[str] = []
    constants: list[float] = []
    lines: list[str] = []
    places = {name: f"a{i}" for i, name in enumerate((*arrays, gradient))}
    for value in graph.inputs:
        if value.name in places:
            names[value] = f"{places[str(value.name)]}[i]"
        else:
            names[value] = f"one->numbers[{len(scalars)}]"
            scalars.append(str(value.name))

    def named(value: ir.Value) -> str | None:
        if value in names:
            return names[value]
        kept = value.const_value
        if kept is None or kept.size != 1 or kept.dtype != dtype:
            return None
        constants.append(float(kept.numpy().reshape(())))
        return f"({real})one->numbers[{len(scalars) + len(constants) - 1}]"

    for node in graph:
        given = [None if value is None else named(value) for value in node.inputs]
        form = _FORMS.get(node.op_type)
        if node.op_type == "Sqrt":
            form = "sqrtf({0})" if real == "float" else "sqrt({0})"
        if node.op_type == "Cast" and attributes_of(node)["to"] == int(dtype):
            form = f"({real})({{0}})"
        if node.op_type == "Constant":
            found = attributes_of(node).get("value")
            if found is None or found.size != 1:
                return None
            constants.append(float(found.numpy().reshape(())))
            given, form = [f"({real})one->numbers[{len(scalars) + len(constants) - 1}]"], "{0}"
        if form is None or node.domain or None in given or len(node.outputs) != 1:
            return None
        kind = "int" if node.op_type == "Greater" else real
        names[node.outputs[0]] = f"v{len(lines)}"
        lines.append(f"const {kind} v{len(lines)} = {form.format(*given)};")
    if len(scalars) + len(constants) > _MOST_NUMBERS:
        return None
    results = {str(value.name): names[value] for value in graph.outputs}
    pointers = [f"{real} *restrict a{i} = ({real} *)one->arrays[{i}] + at;"
                for i in range(len(places))]  # fmt: skip
    writes = [f"a{i}[i] = {results[f'{name}.new']};" for i, name in enumerate(arrays)]
    loop = ["for (int64_t i = 0; i < n; i++) {", *lines, *writes, "}"]
    text = "\n".join(["(int64_t n, int64_t at, const job *one) {", *pointers, *loop, "}"])
    return Body(text, (*arrays, gradient), tuple(scalars), tuple(constants))


class FusedUpdates:
    """Compiled updates.

    Args:
        bodies: One for each kind.
        threads: How many share the elements.

    Raises:
        NoCompiler: There is no C compiler.
        OSError: The code cannot be built or loaded.
    """

    def __init__(self, bodies: Sequence[Body], threads: int):
        self._bodies = tuple(bodies)
        self._threads = threads
        self._jobs: list[bytes] = []
        self._run = _compiled(tuple(body.text for body in bodies)).hg_follow
        self._run.argtypes = [ctypes.c_int64, ctypes.c_char_p, ctypes.c_int64]
        self._run.restype = None

    def add(self, kind: int, arrays: Sequence[Array], scalars: Mapping[str, Array]) -> bool:
        """Note the update of a parameter; return whether its arrays lie as C wants them.

        Args:
            kind: The number of its body.
            arrays: Those of the body.
            scalars: The numbers of this step by name.
        """
        first, body = arrays[0], self._bodies[kind]
        for array in arrays:
            flags = array.flags
            plain = flags.c_contiguous and flags.aligned
            if not plain or array.dtype != first.dtype or array.size != first.size:
                return False
        addresses = [array.__array_interface__["data"][0] for array in arrays]
        if any(b - a < first.nbytes for a, b in pairwise(sorted(addresses))):
            return False
        addresses += [0] * (_MOST_ARRAYS - len(addresses))
        numbers = [float(scalars[name]) for name in body.scalars]
        numbers += body.constants
        numbers += [0.0] * (_MOST_NUMBERS - len(numbers))
        self._jobs.append(_JOB.pack(kind, first.size, first.itemsize, *addresses, *numbers))
        return True

    def run(self) -> None:
        """Do the updates that were noted, in place."""
        jobs, self._jobs = self._jobs, []
        if jobs:
            self._run(len(jobs), b"".join(jobs), self._threads)


def _compiled(texts: tuple[str, ...]) -> ctypes.CDLL:
    frame = (resources.files("hagane.training.step") / "fused.c").read_text(encoding="utf-8")
    functions = [f"static void update{i}{text}" for i, text in enumerate(texts)]
    table = ", ".join(f"update{i}" for i in range(len(texts)))
    source = frame.replace("/* UPDATES */", "\n".join(functions)).replace("/* TABLE */", table)
    compiler = find_compiler()
    flags = (*_FLAGS, *best_level().flags)
    key = "\0".join((source, *flags, *compiler.command, compiler.version))

    def make(folder: Path) -> Path:
        written = folder / "fused.c"
        written.write_text(source, encoding="utf-8")
        library = folder / "fused.so"
        compiler.build([written], library, flags, libraries=("-lm", "-lpthread"))
        return library

    return CodeCache("native").load(key, make, lambda path: ctypes.CDLL(str(path)))


__all__ = ["Body", "FusedUpdates", "NoCompiler", "body_of"]
