"""Captures: a function or model, interpreted into a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.errors import CaptureError
from hagane.frontends.capture.emitter import GraphEmitter
from hagane.frontends.capture.loops import Graph
from hagane.frontends.capture.roots import root_of
from hagane.frontends.python.enter.check import DeepRecursion, call_with, given_values
from hagane.frontends.python.enter.interpreter import Interpreter
from hagane.frontends.python.interpret.emit import Training
from hagane.frontends.python.interpret.tables import Tables
from hagane.frontends.python.report.findings import CheckError, Report
from hagane.frontends.python.values.values import (
    Class,
    DictRef,
    Instance,
    ListRef,
    Many,
    Real,
    Tensor,
    Truth,
    Unknown,
    Value,
)
from hagane.graph.names import separate_names
from hagane.symbolic import Expr


@dataclass(frozen=True, slots=True)
class Captured:
    """A captured program.

    Attributes:
        graph: Its graph; names are set, nothing in it is unused.
        report: What the interpretation found: assumptions and notices.
        structure: How its outputs make up what the program returns: a tuple, list or dict of
            structures, the name of an output, or a plain value in a :class:`Constant`.
        names: The names of the initializers of real arrays, by the identity of the arrays.
    """

    graph: ir.Graph
    report: Report
    structure: Any
    names: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class Constant:
    """A plain value that the program returns."""

    value: Any


def capture_object(
    found: Any,
    types: Sequence[Any],
    named: Mapping[str, Any],
    tables: Tables,
    training: Training | None = None,
) -> Captured:
    """Return the graph of a call of a real function or model.

    Args:
        found: The function, method or model.
        types: Types of its arguments as text, or examples, by position.
        named: The same by name.
        tables: What names of libraries mean.
        training: Is told of random numbers and of buffers that the program changes, whose new
            content are outputs after those of its result; both are refused if None.

    Raises:
        CaptureError: Some of it cannot become a graph; all of that is listed.
    """
    arguments = [value for value in (*types, *named.values()) if not isinstance(value, str)]
    for one in (found, *arguments):
        _refuse_hooks(one)
    names = array_names(found)
    interpreter = Interpreter(Path.cwd(), tables, partial(Graph, names))
    assert isinstance(interpreter.emit, GraphEmitter)
    interpreter.emit.training = training
    report = interpreter.collector.report
    with DeepRecursion():
        try:
            root = root_of(interpreter, found, types, named)
            for name, value in (*zip(root.arguments(), types, strict=False), *named.items()):
                for key, path in array_names(value).items():
                    names.setdefault(key, _joined(name, path))
            given = given_values(interpreter, root.function, root.bound, types, named)
            call_with(interpreter, root.value, root.function, root.bound, given)
        except CheckError as error:
            raise CaptureError([error.message]) from None
        _refuse_doubts(report)
        try:
            structure = _outputs(interpreter, report.result, "")
        except CheckError as error:
            raise CaptureError([*_told(report), f"the result: {error.message}"]) from None
        for name, new in ({} if training is None else training.updates).items():
            _output(interpreter.emit, new, f"{name}.new")
    interpreter.knowledge.close()
    graph = interpreter.emit.root.graph
    prune(graph)
    separate_names(graph)
    return Captured(graph, report, structure, names)


def _refuse_hooks(found: Any) -> None:
    """Refuse modules whose calls run more than their source says."""
    owner = getattr(found, "__self__", found)
    function = getattr(found, "__func__", found)
    owners = [owner]
    if hasattr(function, "__globals__"):
        names = function.__code__.co_names
        owners += [function.__globals__[n] for n in names if n in function.__globals__]
    problems = []
    for one in owners:
        if not hasattr(type(one), "named_modules"):
            continue
        for path, module in one.named_modules():
            hooks = {**module._forward_pre_hooks, **module._forward_hooks}
            problems += [
                f"the module '{path or type(module).__name__}' has a forward hook "
                f"({getattr(hook, '__qualname__', type(hook).__name__)}), which is not followed; "
                "remove it first"
                for hook in hooks.values()
            ]
    if problems:
        raise CaptureError(problems)


def _refuse_doubts(report: Report) -> None:
    problems = [
        f"{problem.place.file}:{problem.place.line}: {problem.message}" for problem in report.errors
    ]
    if not problems and report.unknown:
        problems = _told(report)
    if not report.checked:
        problems += [note.message for note in report.notices]
    if problems:
        raise CaptureError(list(dict.fromkeys(problems)))


def _told(report: Report) -> list[str]:
    return [
        f"{note.place.file}:{note.place.line}: {note.message}" if note.place else note.message
        for note in report.unknown
    ]


# Outputs.


def _outputs(core: Interpreter, value: Value, path: str) -> Any:
    """Make outputs of a result, called by their paths, and return its structure."""
    value = core.settle(value)
    emit = core.emit
    assert isinstance(emit, GraphEmitter)
    if isinstance(value, Tensor):
        return _output(emit, value, path)
    if isinstance(value, ListRef):
        content = core.heap[value]
        if isinstance(content, Many):
            if content.stacked is None:
                raise CheckError("capture", "a list whose length the data decide is returned")
            return _output(emit, content.stacked, path)
        return [_outputs(core, item, _joined(path, i)) for i, item in enumerate(content)]
    if isinstance(value, tuple):
        names = getattr(value, "names", None) or range(len(value))
        return tuple(
            _outputs(core, item, _joined(path, name))
            for name, item in zip(names, value, strict=True)
        )
    if isinstance(value, DictRef) and isinstance(core.heap[value], dict):
        return {k: _outputs(core, v, _joined(path, k)) for k, v in core.heap[value].items()}
    if isinstance(value, Instance) and isinstance(value.cls, Class) and value.cls.fields:
        content = core.heap[value]
        return {
            name: _outputs(core, content[name], _joined(path, name))
            for name, _ in value.cls.fields
            if content.get(name) is not None
        }
    if isinstance(value, Expr):
        return _output(emit, emit.size(value), path)
    if isinstance(value, Real):
        return _output(emit, emit.real_tensor(value), path)
    if isinstance(value, Truth):
        return _output(emit, emit.as_scalar(value, "bool"), path)
    if isinstance(value, Unknown):
        raise CheckError("capture", value.reason)
    if value is None or isinstance(value, str):
        return Constant(value)
    if isinstance(value, bool | int | float):
        dtype = {bool: np.bool_, int: np.int64, float: np.float64}[type(value)]
        return _output(emit, emit.constant(np.array(value, dtype)), path)
    raise CheckError("capture", f"{core.show(value)} is no tensor, number or container of such")


def _joined(path: str, name: object) -> str:
    return f"{path}.{name}" if path else str(name)


def _output(emit: GraphEmitter, tensor: Tensor, path: str) -> str:
    emit.label = path or "output"
    with emit.at(emit.root):
        made = emit.op("Identity", tensor)
    made.value.name = path or "output"
    emit.root.graph.outputs.append(made.value)
    return str(made.value.name)


# Names of arrays.


def array_names(found: Any) -> dict[int, str]:
    """Return the paths of arrays that an object holds, by their identity."""
    names: dict[int, str] = {}
    seen: set[int] = set()

    def walk(value: Any, path: str, depth: int) -> None:
        if depth > 8 or id(value) in seen:
            return
        if _is_array(value):
            names.setdefault(id(value), path)
            return
        seen.add(id(value))
        if isinstance(value, dict):
            items = [(k, v) for k, v in value.items() if isinstance(k, str | int)]
        elif isinstance(value, list | tuple):
            items = list(enumerate(value))
        else:
            items = list(getattr(value, "__dict__", {}).items())
        for name, item in items:
            inner = path if name in ("_parameters", "_buffers", "_modules") else _joined(path, name)
            walk(item, inner, depth + 1)

    owner = getattr(found, "__self__", found)
    if hasattr(owner, "named_parameters"):
        for name, array in (*owner.named_parameters(), *owner.named_buffers()):
            names.setdefault(id(array), name)
    function = getattr(found, "__func__", found)
    if hasattr(function, "__code__"):
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=False)
        for name, cell in cells:
            walk(cell.cell_contents, name, 0)
        for name in function.__code__.co_names:
            if name in function.__globals__:
                value = function.__globals__[name]
                if _is_array(value) or isinstance(value, dict | list | tuple):
                    walk(value, name, 6)
    if owner is not found or not hasattr(function, "__code__"):
        walk(owner, "", 0)
    return names


def _is_array(value: Any) -> bool:
    return hasattr(value, "dtype") and hasattr(value, "shape") and hasattr(value, "__array__")


# What nothing needs.


def prune(graph: ir.Graph) -> None:
    """Remove nodes and initializers that no output needs, in subgraphs too."""
    changed = True
    while changed:
        changed = _prune_once(graph)


def _prune_once(graph: ir.Graph) -> bool:
    changed = False
    for node in reversed(list(graph)):
        if all(not out.uses() and not out.is_graph_output() for out in node.outputs):
            for inner in _bodies(node):
                _empty(inner)
            graph.remove(node, safe=True)
            changed = True
            continue
        for inner in _bodies(node):
            changed |= _prune_once(inner)
        if node.op_type == "If":
            changed |= _prune_outputs(node)
    for name, value in list(graph.initializers.items()):
        if not value.uses() and not value.is_graph_input() and not value.is_graph_output():
            del graph.initializers[name]
    return changed


def _prune_outputs(node: ir.Node) -> bool:
    """Remove the outputs of a branch that nobody reads; one is left."""
    wanted = [i for i, out in enumerate(node.outputs) if out.uses() or out.is_graph_output()]
    if len(wanted) == len(node.outputs):
        return False
    for inner in _bodies(node):
        inner.outputs[:] = [inner.outputs[i] for i in wanted]
    for place, index in enumerate(wanted):
        if place != index:
            kept, free = node.outputs[index], node.outputs[place]
            free.type, free.shape = kept.type, kept.shape
            ir.convenience.replace_all_uses_with(kept, free, replace_graph_outputs=True)
    node.resize_outputs(len(wanted))
    return True


def _empty(graph: ir.Graph) -> None:
    """Let go of what a subgraph reads."""
    graph.outputs.clear()
    for node in reversed(list(graph)):
        for inner in _bodies(node):
            _empty(inner)
        graph.remove(node, safe=True)


def _bodies(node: ir.Node) -> list[ir.Graph]:
    return [
        attribute.as_graph()
        for attribute in node.attributes.values()
        if attribute.type == ir.AttributeType.GRAPH
    ]


__all__ = ["Captured", "Constant", "array_names", "capture_object"]
