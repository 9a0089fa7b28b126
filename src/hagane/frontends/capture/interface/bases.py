"""Where the outputs of a graph lie in memory: in arguments, tensors of the program, each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import combinations

import numpy as np
import onnx_ir as ir

from hagane.frontends.capture.emitting.emitter import GraphEmitter
from hagane.frontends.capture.interface.outputs import held_tensor
from hagane.frontends.capture.interface.state import Stateful
from hagane.frontends.capture.interface.views import Needs, View, view_of, wholes_of
from hagane.frontends.python.enter.interpreter import Interpreter
from hagane.frontends.python.values.memory import COMPLEX
from hagane.frontends.python.values.strides import in_order, order_of
from hagane.frontends.python.values.values import Tensor
from hagane.ops.builder import interpreting, op
from hagane.symbolic import definitely_equal


def output_views(core: Interpreter) -> dict[str, View]:
    """Return how outputs lie in the memory of others, of arguments or of tensors that are held.

    Outputs come first that others lie in. What is needed to lay them becomes further outputs:
    bounds that a run decides, and tensors that several outputs are parts of.
    """
    observer, emit = core.observer, core.emit
    assert isinstance(observer, Stateful)
    assert isinstance(emit, GraphEmitter)
    arguments, needs = observer.arguments, Needs()
    bases = {value: View(path) for value, path in arguments.bases().items()}
    for real, value in core.lifted.values():
        if isinstance(value, Tensor) and str(value.value.name) not in observer.state_inputs:
            bases.setdefault(value.value, View(held=real))
    bases |= {value: View(held=real) for real, value in emit._real.values()}
    own = {n: t for t, n in arguments.outputs.values() if not _is_there(core, t)}
    made = {name: view_of(tensor, bases, needs) for name, tensor in own.items()}
    rest = {name: tensor for name, tensor in own.items() if made[name] is None}
    for root in _shared(emit, rest):
        name = _added(emit, root)
        inside = {root: View(output=name, base_kind="torch.Tensor")}
        made |= {n: view for n, t in rest.items() if (view := view_of(t, inside, needs))}
        rest = {n: t for n, t in rest.items() if made[n] is None}
    places = {t.value: View(output=n, base_kind=_kind(t)) for n, t in rest.items()}
    whole = {
        value: view
        for value, view in places.items()
        if view_of(
            rest[view.output], {v: p for v, p in places.items() if v is not value}, Needs()
        ) is None
    }  # fmt: skip
    made |= {n: view_of(t, whole, needs) for n, t in rest.items() if t.value not in whole}
    laid = {name: _laid(core, name, t) for name, t in rest.items() if made[name] is None}
    found = {n: view for n, view in (*laid.items(), *made.items()) if view is not None}
    for value in needs.names:
        needs.names[value] = _added(emit, value)
    return found


def _laid(core: Interpreter, name: str, tensor: Tensor) -> View | None:
    """Let the graph give an output with its axes as they lie in memory; None where they do."""
    emit = core.emit
    assert isinstance(emit, GraphEmitter)
    order = order_of(tensor, core.knowledge.is_nonnegative)
    written = name.endswith(".new")
    if order is None or tensor.kind != "torch.Tensor" or written or tensor.dtype in COMPLEX:
        return None
    assert tensor.shape is not None
    assert tensor.strides is not None
    if not all(map(definitely_equal, tensor.strides, in_order(tensor.shape, order))):
        return None
    place = [str(value.name) for value in emit.root.graph.outputs].index(name)
    emit.root.graph.outputs[place].name = None
    with emit.at(emit.root):
        made = emit.op("Transpose", tensor, perm=list(order)).value
    made.name = name
    emit.root.graph.outputs[place] = made
    return View(output=name, axes=tuple(order.index(axis) for axis in range(len(order))))


def _is_there(core: Interpreter, tensor: Tensor) -> bool:
    """Whether a result is a tensor of the caller or of the running Python itself."""
    assert isinstance(core.observer, Stateful)
    is_argument = bool(core.observer.arguments.path_of_tensor(tensor))
    return is_argument or held_tensor(core, tensor) is not None


def _kind(tensor: Tensor) -> str:
    return f"complex {tensor.kind}" if tensor.dtype in COMPLEX else tensor.kind


def _shared(emit: GraphEmitter, rest: Mapping[str, Tensor]) -> list[ir.Value]:
    """Return the tensors, no outputs themselves, in which outputs lie that have common elements."""
    groups: defaultdict[ir.Value, list[tuple[Tensor, ir.Value]]] = defaultdict(list)
    values = {tensor.value for tensor in rest.values()}
    for tensor in rest.values():
        *views, root = wholes_of(tensor)
        is_plain = tensor.kind == "torch.Tensor" and tensor.dtype not in COMPLEX
        if root not in values and is_plain and root.producer():
            groups[root].append((tensor, views[-1]))
    return [
        root
        for root, members in groups.items()
        if any(_overlap(root, a, b) for a, b in combinations(members, 2))
    ]


def _overlap(root: ir.Value, a: tuple[Tensor, ir.Value], b: tuple[Tensor, ir.Value]) -> bool:
    """Whether two views of a tensor may have elements in common."""
    one, other = a[1].producer(), b[1].producer()
    if one is other and a[1] is not b[1]:  # parts of one Split
        return False
    base, needs = {root: View()}, Needs()
    views = [view_of(tensor, base, needs) for tensor, _ in (a, b)]
    sizes = [root.shape, *(tensor.shape for tensor, _ in (a, b))]
    known = [tuple(n for n in shape if isinstance(n, int)) for shape in sizes if shape is not None]
    if needs.names or [len(s) for s in known] != [len(s or ()) for s in sizes]:
        return True
    memory = np.zeros(known[0], np.bool_)
    first, second = [
        None if view is None else view.cut(memory, shape, {})
        for view, shape in zip(views, known[1:], strict=True)
    ]
    if first is None or second is None:
        return False
    first[...] = True
    return bool(second.any())


def _added(emit: GraphEmitter, value: ir.Value) -> str:
    """Make a value an output that is no part of the result, and return its name."""
    graph = emit.root.graph
    taken = {value.name for value in (*graph.inputs, *graph.outputs)}
    name = next(name for i in range(len(taken) + 1) if (name := f"memory.{i}") not in taken)
    with emit.at_root(), interpreting(emit.root.nodes):
        made: ir.Value = op("Identity", emit.visible(value))
    made.name = name
    graph.outputs.append(made)
    return name


__all__ = ["output_views"]
