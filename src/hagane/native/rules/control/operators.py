"""Loop, Scan and If whose bodies have kernels throughout: control is the engine's.

Values that a loop carries keep their shapes, or change them as those before an iteration tell, or as the
body finds in the data; where it has no kernels for that, it is a program of its own that the runtime
calls once an iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.control import NONE, Branch, Loop, Mark
from hagane.native.kernels.tensor import row_major
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.control.bodies import (
    BodyKernels,
    Pointers,
    check_single,
    dims_of,
    emit_control,
    result_of,
    single,
)
from hagane.native.rules.control.changing_sizes import finds_sizes
from hagane.native.rules.control.limits import most_rows
from hagane.native.rules.control.loops import LoopKernels, kept_place
from hagane.ops.control.loop import hands_on, is_true
from hagane.ops.inference import GraphTypes
from hagane.symbolic import Dim, Expr, evaluate, symbols_of

if TYPE_CHECKING:
    from hagane.native.rules.control.branches import FoundSizes


def lower_loop(low: Lowering, node: ir.Node) -> None:
    """Lower a Loop."""
    graph = node.attributes["body"].as_graph()
    limit, going, *starts = (*node.inputs, None, None)[: max(2, len(node.inputs))]
    n = len(starts)
    number, begun, *befores = graph.inputs
    goes_on, *others = graph.outputs
    states = [
        (start, before, after, result)
        for start, before, after, result in zip(
            starts, befores, others[:n], node.outputs[:n], strict=True
        )
        if start is not None
    ]
    if len(states) != n:
        raise NotNative("an absent initial value")
    # The body runs only while the condition is true.
    given = {begun: np.array(True)}
    for start, before, after, _ in states:
        constant = low.facts.constant(start)
        if constant is not None and hands_on(after) is before:
            given[before] = constant
    loop = LoopKernels(low, node, BodyKernels(low, graph, given), states)
    inner, add = loop.body.low, loop.pointers.add
    place = low.recorder.new(str(number.name), low.facts.dtype(number), low.facts.shape(number))
    inner.forms[number], count = place, add(place, written=True)
    loop.count, begin = place, NONE
    if going is not None and not is_true(low.facts.constant(going)):
        begin = add(single(low, going, "bool"))
    condition = NONE
    if not is_true(inner.facts.constant(goes_on)):
        check_single(low, goes_on, "bool")
        place = low.recorder.new(
            str(goes_on.name), low.facts.dtype(goes_on), low.facts.shape(goes_on)
        )
        loop.wanted.append((goes_on, place))
        condition = add(place, written=True)
    iterations = _known_iterations(low, limit)
    at = NONE
    if limit is not None and iterations is None:
        at = add(single(low, limit, "int64"))
    loop.iterations = iterations if begin == condition == NONE else None
    loop.carry()
    for item, result in zip(others[n:], node.outputs[n:], strict=True):
        if result.name and low.facts.uses(result):
            loop.wanted.append((item, kept_place(loop, item, result)))
    loop.finish(Loop(iterations, at, begin, condition, count, (), ()))


def _known_iterations(low: Lowering, limit: ir.Value | None) -> Dim | None:
    """Return the limit of a Loop, if it is known before the run and not negative."""
    if limit is None:
        return None
    content = low.facts.constant(limit)
    if content is None:
        content = low.facts.types.values.get(limit)
    if content is None or content.size != 1:
        return None
    iterations = content.reshape(-1)[0]
    if isinstance(iterations, Expr):
        return iterations if {str(iterations)} == set(symbols_of(iterations)) else None
    return int(iterations) if iterations >= 0 else None


def grown_outputs(node: ir.Node, types: GraphTypes) -> Sequence[ir.Value]:
    """Return the outputs of a Loop whose shape may be known only when it has ended."""
    if node.op_type != "Loop" or node.domain not in ("", "ai.onnx"):
        return ()
    n = max(0, len(node.inputs) - 2)
    befores = node.attributes["body"].as_graph().inputs[2:]
    from hagane.native.rules.control.steady_sizes import steady_sizes  # few models need it

    sizes = steady_sizes([node], types).sizes
    found = [
        value
        for value, before in zip(node.outputs[:n], befores, strict=True)
        if not finds_sizes(node, types, sizes)
        and any(
            evaluate(left, sizes) != evaluate(right, sizes) and not isinstance(left, int)
            for left, right in zip(dims_of(types, value), dims_of(types, before), strict=False)
        )
    ]

    graph = node.graph
    inputs = graph.inputs if isinstance(graph, ir.Graph) else ()
    shown = {str(dim) for value in inputs for dim in dims_of(types, value)} - types.invented

    def is_known(count: Dim | None) -> bool:
        """Whether it is a number or a size of an input; a formula may be below 0."""
        return isinstance(count, int) or (
            isinstance(count, Expr) and str(count) in symbols_of(count) & shown
        )

    rest = [
        value
        for value in node.outputs[n:]
        if not is_known(next(iter(dims_of(types, value)), None))
        and most_rows(node, value, types) is None
    ]
    return [*found, *rest]


def lower_scan(low: Lowering, node: ir.Node) -> None:
    """Lower a Scan: its slices are read and written where the whole lies."""
    attributes = low.facts.attributes(node)
    graph = node.attributes["body"].as_graph()
    n_scanned = int(attributes["num_scan_inputs"])
    inputs = [value for value in node.inputs if value is not None]
    n = len(inputs) - n_scanned
    states = list(
        zip(inputs[:n], graph.inputs[:n], graph.outputs[:n], node.outputs[:n], strict=True)
    )
    given = {}
    for start, before, after, _ in states:
        constant = low.facts.constant(start)
        if constant is not None and hands_on(after) is before:
            given[before] = constant
    scan = LoopKernels(low, node, BodyKernels(low, graph, given), states)
    axes = attributes.get("scan_input_axes") or (0,) * n_scanned
    backwards = attributes.get("scan_input_directions") or (0,) * n_scanned
    iterations: Dim = 0
    for value, part, axis, reverse in zip(
        inputs[n:], graph.inputs[n:], axes, backwards, strict=True
    ):
        whole = low.forms.plain(value)
        axis %= len(whole.shape)
        iterations = whole.shape[axis]
        scan.body.low.forms[part] = scan.slice_of(whole, axis, iterations, backwards=bool(reverse))
    scan.carry()
    n_results = len(node.outputs) - n
    axes = attributes.get("scan_output_axes") or (0,) * n_results
    backwards = attributes.get("scan_output_directions") or (0,) * n_results
    for item, result, axis, reverse in zip(
        graph.outputs[n:], node.outputs[n:], axes, backwards, strict=True
    ):
        if not (result.name and low.facts.uses(result)):
            continue
        low.forms[result] = target = low.forms.result(result)
        axis %= len(target.shape)
        if low.facts.shape(item) != target.shape[:axis] + target.shape[axis + 1 :]:
            raise NotNative(f"'{item.name}' changes its shape between iterations")
        place = scan.slice_of(target, axis, iterations, backwards=bool(reverse))
        scan.wanted.append((item, place))
    scan.finish(Loop(iterations, NONE, NONE, NONE, NONE, (), ()))


def lower_if(low: Lowering, node: ir.Node) -> None:
    """Lower an If: the kernels of both branches are there, and the condition picks."""
    graphs = [node.attributes[name].as_graph() for name in ("then_branch", "else_branch")]
    (condition,) = node.inputs
    if condition is None:
        raise NotNative("an absent condition")
    known = low.facts.constant(condition)
    if known is not None:
        graphs = [graphs[0 if is_true(known) else 1]]
    bodies = [BodyKernels(low, graph) for graph in graphs]
    late = _find_sizes_of_branch(low, node, condition, graphs)
    pairs = [
        (value, None if late is not None and late.has(value, low) else result_of(low, value))
        for value in node.outputs
    ]
    targets = [target for _, target in pairs if target is not None]
    left = []
    for number, body in enumerate(bodies):
        wanted, stay = [], []
        for found, (_, target) in zip(body.graph.outputs, pairs, strict=True):
            if target is None:
                stay.append(found)
                continue
            shape = low.facts.shape(found)
            if low.facts.dtype(found) != target.dtype:
                raise NotNative("its branches give different types")
            place = replace(target, shape=shape, strides=row_major(shape))
            wanted.append((found, place if shape != target.shape else target))
        if known is None:
            _compare_within(node, body)
        leave = None if late is None else late.leave(number)
        left.append(body.lower(wanted, (), None, stay, leave))
    for value, target in pairs:
        if target is not None:
            low.forms[value] = target
    if known is not None:
        low.recorder.kernels += bodies[0].low.recorder.kernels
        return
    pointers = Pointers()
    branch = Branch(pointers.add(single(low, condition, "bool")))
    for target in targets:
        pointers.add(target, written=True)
    emit_control(low, node, branch, pointers.found)
    low.recorder.kernels += bodies[0].low.recorder.kernels
    emit_control(low, node, Mark.OTHERWISE, ())
    low.recorder.kernels += bodies[1].low.recorder.kernels
    emit_control(low, node, Mark.END, ())
    if late is not None:
        late.take(low, node, left)


def _compare_within(node: ir.Node, body: BodyKernels) -> None:
    """Let a branch compare the sizes that its nodes take for equal, for the other needs them not.

    A part compares sizes before it runs, those of operands that may broadcast in any case.
    """
    low, pairs = body.low, dict[tuple[Dim, Dim], None]()
    known = low.facts.given | low.found
    for inner in body.nodes:
        found = tuple(low.equal_sizes(inner))
        alone = not low.facts.types.broadcast.get(inner)
        if found and alone and not any(symbols_of(d) - known for pair in found for d in pair):
            pairs.update(dict.fromkeys(found))
            low.compared.add(inner)
    if pairs:
        rights = {f"n{i}": right for i, (_, right) in enumerate(pairs)}
        text = "\n".join(f"found[{i}] = {name};" for i, name in enumerate(rights))
        from hagane.native.rules.shaping.numbers import found_numbers  # few models need it

        found_numbers(low, node, text, [left for left, _ in pairs], reads={}, sizes=rights)


def _find_sizes_of_branch(
    low: Lowering, node: ir.Node, condition: ir.Value, graphs: Sequence[ir.Graph]
) -> FoundSizes | None:
    """Let a kernel tell the sizes of results that the branches give different shapes.

    Returns:
        The sizes, if a branch finds one in the data: they are known behind the branches.

    Raises:
        NotNative: They are no sizes of their own.
    """
    names: dict[Dim, tuple[Dim, ...]] = {}
    for i, value in enumerate(node.outputs):
        shapes = [low.facts.shape(graph.outputs[i]) for graph in graphs]
        wanted = low.facts.shape(value)
        if any(len(shape) != len(wanted) for shape in shapes):
            raise NotNative("its branches give different numbers of axes")
        for dim, *dims in zip(wanted, *shapes, strict=True):
            if any(each != dim for each in dims) and names.setdefault(dim, tuple(dims)) != (*dims,):
                raise NotNative("its branches give different shapes")
    if not names:
        return None
    known = low.facts.given | low.found
    from hagane.native.rules.shaping.numbers import found_numbers  # few models need it

    if len(graphs) == 1 or any(not symbols_of(name) - known for name in names):
        raise NotNative("its branches give different shapes")
    if any(symbols_of(d) - known for dims in names.values() for d in dims):
        from hagane.native.rules.control.branches import FoundSizes

        return FoundSizes.of(low, names)
    sizes = {
        f"{w}{i}": d
        for i, dims in enumerate(names.values())
        for w, d in zip("ab", dims, strict=True)
    }
    text = "\n".join(f"found[{i}] = condition[0] ? a{i} : b{i};" for i in range(len(names)))
    found_numbers(
        low,
        node,
        text,
        list(names),
        reads={"condition": single(low, condition, "bool")},
        sizes=sizes,
    )
    return None


RULES: dict[str, Rule] = {"Loop": lower_loop, "Scan": lower_scan, "If": lower_if}
