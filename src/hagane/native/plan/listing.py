"""Generated code for people to read: C and machine code of kernels, headed by their nodes."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

import onnx_ir as ir

from hagane.errors import InvalidArgument
from hagane.graph.walk import all_nodes
from hagane.native.kernels.control import Branch, Loop
from hagane.native.kernels.indent import indented
from hagane.native.kernels.kernel import Kernel
from hagane.native.kernels.recorder import name_of
from hagane.native.kernels.tensor import Kind
from hagane.native.lowering.state import Lowering
from hagane.native.run.disassemble import disassemble
from hagane.native.run.engine import function_names, kernel_name
from hagane.ops.inference import GraphTypes

# So many near names are offered for a wrong one.
_MOST_NEAR = 5


def c_listing(parts: Sequence[Lowering], node: str | None = None) -> str:
    """Return the C of kernels in the order in which they run, each headed by its nodes.

    Args:
        parts: Lowered and not compiled yet.
        node: The name of a node whose kernels are wanted, or of a value that it computes; all if
            None.

    Raises:
        InvalidArgument: No kernel computes such a node.
    """
    found = _chosen(parts, node)
    functions = function_names([kernel for _, kernel in found])
    lines: list[str] = []
    printed: set[str] = set()
    for low, kernel in found:
        lines += ["", *_comment(_heading(low, kernel))]
        if kernel.code:
            name = kernel_name(kernel.code)
            if name in printed:
                lines.append(f"/* the function {functions[name]} above */")
            else:
                lines += indented(kernel.code.replace("KERNEL", functions[name])).splitlines()
            printed.add(name)
    return "\n".join([*_comment(_introduction(parts)), *lines]) + "\n"


def assembly_listing(parts: Sequence[Lowering], node: str | None = None) -> str:
    """Return the machine code of kernels, each headed by its nodes; compiles them.

    Arguments and errors are those of ``c_listing``.

    Raises:
        NoCompiler: There is no C compiler on this machine.
    """
    found = _chosen(parts, node)
    functions = function_names([kernel for _, kernel in found])
    kernels = list({k.code: k for _, k in found if k.code}.values())
    texts = disassemble(kernels, parts[0].facts.level, functions) if kernels else {}
    lines: list[str] = []
    printed: set[str] = set()
    for low, kernel in found:
        lines += ["", *(f"# {line}" for line in _heading(low, kernel))]
        if kernel.code:
            name = kernel_name(kernel.code)
            same = f"# the function {functions[name]} above"
            lines += [same] if name in printed else texts[name].splitlines()
            printed.add(name)
    return "\n".join([*(f"# {line}" for line in _introduction(parts)), *lines]) + "\n"


def _chosen(parts: Sequence[Lowering], node: str | None) -> list[tuple[Lowering, Kernel]]:
    found = [(low, kernel) for low in parts for kernel in low.recorder.kernels]
    if node is None:
        return found
    wanted = {node}
    for each in all_nodes(each for low in parts for each in low.facts.nodes):
        wanted |= {name_of(each) for value in each.outputs if value.name == node}
    chosen = [(low, kernel) for low, kernel in found if wanted.intersection(kernel.nodes)]
    if chosen:
        return chosen
    names = list(dict.fromkeys(name for _, kernel in found for name in kernel.nodes))
    near = difflib.get_close_matches(node, names, _MOST_NEAR, 0.4)
    like = ", ".join(f"'{_printable(name)}'" for name in near or names[:_MOST_NEAR])
    raise InvalidArgument(
        f"no kernel computes a node '{_printable(node)}'; near names: {like or 'none'}. Passes may "
        "have merged it into another node: `hagane inspect MODEL --passes` tells"
    )


def _introduction(parts: Sequence[Lowering]) -> list[str]:
    if not parts:
        return ["No node of this model is compiled."]
    facts = parts[0].facts
    count = sum(bool(kernel.code) for low in parts for kernel in low.recorder.kernels)
    return [
        f"{count} kernels for {facts.level.name}, {facts.threads} threads.",
        "P: addresses of the values that a kernel reads and writes; D: sizes known only at run time;",
        "q: which of its tasks to do. vf is a vector of VL floats; v_ functions: native/c/vector.h.",
    ]


def _heading(low: Lowering, kernel: Kernel) -> Iterator[str]:
    """Yield a kernel's nodes, operands and results."""
    yield _printable(kernel.label)
    if isinstance(kernel.control, Loop | Branch):
        yield "the engine runs the kernels that follow, up to the end of its body"
        return
    for node in _nodes(low, kernel):
        yield f"  {_types_of(node, low.facts.types)}"
    if not kernel.code:
        return
    for number, pointer in enumerate(kernel.pointers):
        buffer = pointer.buffer
        verb = "writes" if pointer.written else "reads"
        name = "packed weights" if buffer.kind is Kind.WEIGHT else f"'{_printable(buffer.name)}'"
        yield f"  P[{number}] {verb} {name}, {_printable(str(buffer.bytes))} bytes"
    for number, size in enumerate(kernel.sizes):
        yield f"  D[{number}] = {_printable(str(size))}"
    yield f"  tasks: {_printable(str(kernel.tasks))}"


def _nodes(low: Lowering, kernel: Kernel) -> Iterator[ir.Node]:
    for node in all_nodes(sorted(low.facts.nodes, key=lambda each: str(each.name))):
        if name_of(node) in kernel.nodes:
            yield node


def _types_of(node: ir.Node, types: GraphTypes) -> str:
    def told(values: Sequence[ir.Value | None]) -> str:
        return ", ".join(
            "-" if value is None else f"{_printable(str(value.name))} {types.types.get(value)}"
            for value in values
        )

    return (
        f"{node.op_type} '{_printable(name_of(node))}': {told(node.inputs)} -> {told(node.outputs)}"
    )


def _comment(lines: Iterator[str] | Sequence[str]) -> list[str]:
    first, *others = lines
    if not others:
        return [f"/* {first} */"]
    return [f"/* {first}", *(f" * {line}" for line in others[:-1]), f" * {others[-1]} */"]


def _printable(text: str) -> str:
    """Return a name without line ends and ends of comments."""
    shown = "".join(mark if mark.isprintable() else repr(mark)[1:-1] for mark in text)
    return shown.replace("*/", "* /").replace("/*", "/ *")
