"""``hagane inspect``: a model's inputs, outputs, weights and costs."""

from __future__ import annotations

import json
import logging
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import onnx_ir as ir
import typer

from hagane.cli.feeds import parse_pair
from hagane.cli.inspect_training import lines_of, planned
from hagane.cli.listing import code_of
from hagane.cli.terminal.progress import working
from hagane.cli.terminal.width import fitted, terminal_width
from hagane.errors import InvalidArgument
from hagane.graph import to_text
from hagane.graph.draw import to_svg
from hagane.graph.page import to_html
from hagane.graph.places import line_of, place_of, short
from hagane.graph.types import TensorType, Type
from hagane.graph.walk import all_graphs, all_nodes
from hagane.machine.whole_files import write_whole
from hagane.ops import GraphTypes
from hagane.ops.cost import flops
from hagane.passes import LACKING, PASSES, Change
from hagane.passes.edit import name_of
from hagane.runtime import SessionOptions
from hagane.runtime.backends.reference import constant_output
from hagane.runtime.pipeline import Built, build, read, simplify
from hagane.runtime.settings import settings_of
from hagane.symbolic import Dim, symbols_of

# So many nodes are named for each pass; ``--json`` names all.
_MOST_NAMES = 4


def command(
    model: Annotated[Path, typer.Argument(help="The ONNX model; with --training, FILE.py:make.")],
    shape: Annotated[
        list[str] | None,
        typer.Option(help="NAME=batch,3,224,224: sizes or names for the axes of an input."),
    ] = None,
    passes: Annotated[
        bool, typer.Option("--passes", help="Show the changes of each graph pass.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    values: Annotated[bool, typer.Option("--values", help="List the type of every value.")] = False,
    text: Annotated[
        bool, typer.Option("--text", help="Print the graph as text, in its current form.")
    ] = False,
    graph: Annotated[
        Path | None,
        typer.Option(help="Draw the graph into this file: .svg, or .html with blocks that open."),
    ] = None,
    node: Annotated[
        str | None, typer.Argument(help="With --c or --asm: the node whose code is wanted.")
    ] = None,
    c: Annotated[bool, typer.Option("--c", help="Print the C of the kernels.")] = False,
    asm: Annotated[
        bool, typer.Option("--asm", help="Print the machine code of the kernels.")
    ] = False,
    training: Annotated[
        bool,
        typer.Option("--training", help="Show the plan of the training step of a Python file."),
    ] = False,
    memory_budget: Annotated[
        str | None, typer.Option(help="With --training: bytes the step may take, as 500MB.")
    ] = None,
) -> None:
    """Show inputs, outputs, operators, parameters, arithmetic and shapes of a model.

    With --training, FILE.py:make returns a trainer, or a compiled step and its arguments: shown are
    the predicted peak, the values kept and computed again, and estimated times.
    """
    if memory_budget is not None and not training:
        raise InvalidArgument("--memory-budget: expected --training with it")
    if training:
        if shape or passes or values or text or graph or node or c or asm:
            raise InvalidArgument("--training: expected --memory-budget and --json alone with it")
        plan = planned(str(model), memory_budget)
        lines = [json.dumps(plan.as_dict(), indent=1)] if as_json else lines_of(plan)
        for line in lines if as_json else fitted(lines, terminal_width()):
            print(line)
        return
    if node is not None and not (c or asm):
        raise InvalidArgument(f"the node '{node}' is asked for: expected --c or --asm with it")
    options = SessionOptions()
    settings = settings_of(options, logging.getLogger("hagane.runtime"))
    settings = replace(settings, shapes=_shapes(shape or []))
    with working(f"reading {model.name}"):
        found = read(model, settings)
        loaded, types = found.model, found.types
    changes: list[Change] = []
    places = _places(loaded)
    if passes:
        types, changes = simplify(loaded, types)
    if graph is not None:
        drawn = to_html(loaded) if graph.suffix in (".html", ".htm") else to_svg(loaded)
        write_whole(graph, drawn)
    if text:
        print(to_text(loaded))
        return
    if c or asm:
        built = build(loaded, types, settings, ready=False)
        print(code_of(built, node, machine_code=asm), end="")
        return
    report = describe_model(loaded, types, found.opsets)
    report.update(describe_session(build(loaded, types, settings, ready=False)))
    if passes:
        report["passes"] = {change.name: list(change.nodes) for change in changes}
    if places:
        report["places"] = places
    if as_json:
        print(json.dumps(report, indent=1))
    else:
        for line in fitted(_pass_lines(changes, places) if passes else (), terminal_width()):
            print(line)
        _show(report, values)
        if graph is not None:
            print(f"drawing: {graph}")


def _places(model: ir.Model) -> dict[str, str]:
    """Return where in a program's source nodes came from, by their names."""
    return {name_of(node): place_of(node) for node in all_nodes(model.graph) if place_of(node)}


def _pass_lines(changes: Sequence[Change], places: Mapping[str, str]) -> Iterator[str]:
    """Yield the effects of each pass, with the names of the first nodes that it changed.

    Args:
        changes: The passes with the nodes that they changed.
        places: Where in a program's source nodes came from, by name.
    """
    for change in changes:
        yield f"{change.name} {change.count}: {change.effect}"
        if change.nodes:
            more = change.count - _MOST_NAMES
            told = (
                f"{name} ({short(places[name].split(', ')[0])})" if name in places else name
                for name in change.nodes[:_MOST_NAMES]
            )
            yield f"  {', '.join(told)}" + (f" and {more} more" if more > 0 else "")
    for one in PASSES:
        if one.makes in LACKING:
            yield f"{one.name} not applied: {one.makes} has no native kernel yet"


def _shapes(texts: list[str]) -> dict[str, list[Dim | str]]:
    shapes: dict[str, list[Dim | str]] = {}
    for item in texts:
        name, value = parse_pair(item, "--shape")
        if not value.strip():
            raise InvalidArgument(f"--shape {name}: expected sizes or names separated by commas")
        shapes[name] = [
            int(dim) if dim.strip().isdecimal() else dim.strip() for dim in value.split(",")
        ]
    return shapes


def describe_model(model: ir.Model, types: GraphTypes, opsets: Mapping[str, int]) -> dict[str, Any]:
    """Return the facts of a graph for ``hagane inspect``, ready for JSON."""
    nodes = list(all_nodes(model.graph))
    costs = [flops(node, types.types) for node in nodes]
    known = [cost for cost in costs if cost is not None]
    total: Dim = 0
    for cost in known:
        total = total + cost
    weights = list(_weights(model.graph))
    computed = [value for node in nodes for value in node.outputs if value.name and value.uses()]
    return {
        "opsets": {domain or "ai.onnx": version for domain, version in opsets.items()},
        "inputs": [
            _value(value, types)
            for value in model.graph.inputs
            if value.name not in model.graph.initializers
        ],
        "outputs": [_value(value, types) for value in model.graph.outputs],
        "operators": dict(sorted(Counter(_name(node) for node in nodes).items())),
        "nodes": len(nodes),
        "parameters": sum(int(weight.size) for weight in weights),
        "parameter_bytes": sum(int(weight.nbytes) for weight in weights),
        "flops": total if isinstance(total, int) else str(total),
        "flops_unknown_nodes": len(costs) - len(known),
        "activation_bytes": _bytes(computed, types),
        "dimensions": sorted(_free(model, types)),
        "unresolved": [str(value.name) for value in computed if not _is_resolved(value, types)],
        "values": {str(value.name): str(types.types.get(value)) for value in computed},
    }


def describe_session(built: Built) -> dict[str, Any]:
    """Return a session's plan of a model, ready for JSON.

    Returns:
        ``engines``: how many nodes each backend computes, after the passes.
        ``no_native_kernel``: the operators that run on reference kernels, with the reasons.
    """
    left = built.on_reference()
    placed: Counter[str] = Counter()
    for part in built.program.parts():
        placed[part.backend] += len(part.nodes)
    return {
        "engines": {name: count for name, count in placed.items() if count},
        "no_native_kernel": sorted({f"{_at(node)}: {left[node].reason}" for node in left}),
    }


def _at(node: ir.Node) -> str:
    """Return an operator, with its place where the model was captured."""
    place = line_of(node)
    return f"{_name(node)} ({short(place)})" if place else _name(node)


def _weights(graph: ir.Graph) -> Iterator[ir.TensorProtocol]:
    """Yield the tensors of initializers and Constant nodes, those of bodies included."""
    for each in all_graphs(graph):
        for value in each.initializers.values():
            if value.const_value is not None:
                yield value.const_value
        for node in each:
            if (node.domain, node.op_type) == ("", "Constant"):
                yield ir.tensor(constant_output(node))


def _name(node: ir.Node) -> str:
    return f"{node.domain}.{node.op_type}" if node.domain else node.op_type


def _value(value: ir.Value, types: GraphTypes) -> dict[str, Any]:
    found = types.types.get(value)
    shape = found.shape if isinstance(found, TensorType) else None
    return {
        "name": str(value.name),
        "type": str(found),
        "shape": None if shape is None else [d if isinstance(d, int) else str(d) for d in shape],
    }


def _bytes(values: list[ir.Value], types: GraphTypes) -> int | str:
    """Return the size of all intermediate tensors together."""
    total: Dim = 0
    for value in values:
        found = types.types.get(value)
        if isinstance(found, TensorType) and found.shape is not None:
            size: Dim = 1
            for dim in found.shape:
                size = size * dim
            if found.dtype != ir.DataType.STRING:
                total = total + size * max(1, int(found.dtype.itemsize))
    return total if isinstance(total, int) else str(total)


def _free(model: ir.Model, types: GraphTypes) -> set[str]:
    names: set[str] = set()
    for value in model.graph.inputs:
        names |= _symbols(types.types.get(value))
    return names


def _symbols(type_: Type | None) -> set[str]:
    if not isinstance(type_, TensorType):
        return set()
    return {name for dim in type_.shape or () for name in symbols_of(dim)}


def _is_resolved(value: ir.Value, types: GraphTypes) -> bool:
    """Whether the value's sizes follow from those of the model's inputs."""
    found = types.types.get(value)
    if not isinstance(found, TensorType):
        return found is not None
    return found.shape is not None and not _symbols(found) & types.invented


def _show(report: dict[str, Any], values: bool) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    for kind in ("inputs", "outputs"):
        for item in report[kind]:
            _folded(console, f"[bold]{kind[:-1]}[/]  {escape(item['name'])}: ", item["type"])
    facts = {
        "opsets": ", ".join(f"{domain} {v}" for domain, v in report["opsets"].items()),
        "nodes": report["nodes"],
        "parameters": f"{report['parameters']:,} ({report['parameter_bytes'] / 1e6:.1f} MB)",
        "arithmetic": _scaled(report["flops"], "FLOP"),
        "activations": _scaled(report["activation_bytes"], "B"),
        "dimensions": ", ".join(report["dimensions"]) or "all fixed",
        "unresolved shapes": ", ".join(report["unresolved"][:8]) or "none",
        "computed by": ", ".join(f"{name} {count}" for name, count in report["engines"].items()),
        "without native kernel": "; ".join(report["no_native_kernel"]) or "none",
    }
    for name, fact in facts.items():
        _folded(console, f"[bold]{name}[/]  ", str(fact))
    table = Table("operator", "count", box=None)
    for name, count in sorted(report["operators"].items(), key=lambda item: -item[1]):
        table.add_row(escape(name), str(count))
    console.print(table)
    if values:
        for name, found in report["values"].items():
            _folded(console, f"{escape(name)}: ", found)


def _folded(console: Any, title: str, text: str) -> None:
    """Print a title and a text behind it; on a terminal, folded and set in below the title."""
    from rich.markup import escape
    from rich.text import Text

    width, before = terminal_width(), Text.from_markup(title)
    room = (width or sys.maxsize) - 4
    if width is not None and before.cell_len > width // 2:  # a long name has lines of its own
        for part in before.wrap(console, width, overflow="fold"):
            console.print(part, soft_wrap=True)
        rest = textwrap.wrap(text, room, break_on_hyphens=False)
    else:
        first, *rest = textwrap.wrap(
            text,
            room,
            initial_indent=" " * max(0, before.cell_len - 4),
            break_on_hyphens=False,
        ) or [""]
        console.print(f"{title}{escape(first.strip())}", soft_wrap=True)
    for line in rest:
        console.print(f"    {escape(line)}", soft_wrap=True)


def _scaled(amount: int | str, unit: str) -> str:
    if isinstance(amount, str):
        return f"{amount} {unit}"
    for factor, prefix in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k")):
        if amount >= factor:
            return f"{amount / factor:.2f} {prefix}{unit}"
    return f"{amount} {unit}"
