"""Loop, Scan and If whose bodies have kernels throughout: control is the engine's.

Values that a loop carries keep their shapes; where they change from turn to turn, the body is a
program of its own that the runtime calls once a turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import onnx_ir as ir

from hagane.native.control import NONE, Branch, Carried, Control, Loop, Mark, Scanned
from hagane.native.kernel import Kernel, Pointer
from hagane.native.lowering import AT_RUN_TIME, Lowering, NotNative, Rule
from hagane.native.reads import captured, fold_constants, with_nested
from hagane.native.segment import names_of_sizes
from hagane.native.tensor import Buffer, Kind, Tensor, row_major
from hagane.ops.control.loop import hands_on, is_true
from hagane.ops.definition import Array
from hagane.ops.inference import GraphTypes
from hagane.ops.values import tensor_to_array
from hagane.symbolic import Dim, Expr, product, symbols_of


@dataclass
class _Pointers:
    """The pointers of a loop or branch."""

    found: list[Pointer] = field(default_factory=list)

    def add(self, tensor: Tensor, *, written: bool = False) -> int:
        """Add a pointer to a tensor's first element and return its number."""
        at = tensor.offset * tensor.dtype.itemsize
        self.found.append(Pointer(tensor.buffer, at, written))
        return len(self.found) - 1


class _Body:
    """A body on its way to kernels.

    Args:
        low: The state of the graph around it.
        graph: The body.
        given: Inputs of the body that are constant.
    """

    def __init__(
        self, low: Lowering, graph: ir.Graph, given: Mapping[ir.Value, Array] | None = None
    ):
        self.outer, self.graph = low, graph
        known = dict(low.constants)
        for value in graph.initializers.values():
            if value.const_value is not None:
                known[value] = tensor_to_array(value.const_value)
        known.update(given or {})
        folded = fold_constants(list(graph), known)
        known.update(folded)
        self.nodes = [node for node in graph if not all(value in folded for value in node.outputs)]
        self.low = low.body(self.nodes, known)
        self.captured: list[Tensor] = []
        for value in dict.fromkeys(captured(graph)):
            if self.low.constant(value) is None:
                tensor = low.plain(value)
                self.captured.append(tensor)
                self.low.lowered[value] = tensor

    def lower(self, wanted: Sequence[tuple[ir.Value, Tensor]], visible: Iterable[ir.Value]) -> None:
        """Make the kernels that compute outputs where they are wanted.

        Args:
            wanted: Outputs and their places.
            visible: Values outside whose sizes are known when the part begins.

        Raises:
            NotNative: Some node has no kernel.
        """
        from hagane.native.members import lower_nodes

        low = self.low
        low.outputs = frozenset(value for value, _ in wanted)
        for value, place in wanted:
            producer = value.producer()
            own = producer in low.nodes and value not in low.constants
            if own and value not in low.places and place.contiguous:
                low.places[value] = place
        for node, reason in lower_nodes(low, self.nodes).items():
            if reason == AT_RUN_TIME:
                raise NotNative(AT_RUN_TIME)
            raise NotNative(f"{node.op_type} in its body: {reason}")
        for value, place in wanted:
            found = low.plain(value)
            if found.buffer is not place.buffer or not found.contiguous:
                low.copy(found, place)
        assert not low.inputs, "a body reads nothing that its outer graph does not hold"
        self._check_sizes(visible)

    def _check_sizes(self, visible: Iterable[ir.Value]) -> None:
        types = self.outer.types
        pairs = [pair for node in with_nested(self.nodes) for pair in types.assumed.get(node, ())]
        names = names_of_sizes(self.low.kernels, [], pairs)
        for value in (*visible, *captured(self.graph)):
            names -= {name for dim in _sizes(types, value) for name in symbols_of(dim)}
        if names & types.invented:
            raise NotNative("a size in its body is known only when it runs")


def _sizes(types: GraphTypes, value: ir.Value) -> Iterator[Dim]:
    yield from getattr(types.types.get(value), "shape", None) or ()
    content = types.values.get(value)
    if content is not None and content.dtype == object:
        yield from (item for item in content.reshape(-1) if isinstance(item, Expr))


def _moving(like: Tensor, name: str) -> Tensor:
    """Return a contiguous place of a tensor's type and shape that lies elsewhere in each turn."""
    return Tensor(
        Buffer(name, like.size * like.dtype.itemsize, Kind.MOVING),
        like.dtype,
        like.shape,
        row_major(like.shape),
    )


def _same_type(low: Lowering, what: str, *values: ir.Value) -> None:
    first, *others = values
    for other in others:
        if low.dtype(other) != low.dtype(first):
            raise NotNative(f"{what} changes its element type")
        if low.shape(other) != low.shape(first):
            raise NotNative(f"{what} changes its shape from turn to turn")


def _single(low: Lowering, value: ir.Value, dtype: str) -> Tensor:
    """Return a value that has to be one number of a type."""
    _check_single(low, value, dtype)
    return low.contiguous(value)


def _check_single(low: Lowering, value: ir.Value, dtype: str) -> None:
    if low.dtype(value).name != dtype or product(low.shape(value)) != 1:
        raise NotNative(f"'{value.name}' is no single {dtype}")


def _result(low: Lowering, value: ir.Value) -> Tensor:
    """Return where an output of the node goes, also if nobody reads it."""
    if value.name and low.uses(value):
        return low.result(value)
    return low.new(str(value.name), low.dtype(value), low.shape(value))


def _emit(
    low: Lowering,
    node: ir.Node,
    control: Control,
    pointers: Sequence[Pointer],
    failure: str = "",
) -> None:
    label = f"{node.op_type} '{node.name}'"
    low.kernels.append(Kernel(label, "", tuple(pointers), (), 0, failure=failure, control=control))


@dataclass
class _Turns:
    """A Loop or Scan on its way to kernels.

    Attributes:
        low: The state of the graph around it.
        node: The node.
        body: Its body.
        wanted: Outputs of the body and their places.
        states: What is carried in: values around, before a turn, after it, and the results.
    """

    low: Lowering
    node: ir.Node
    body: _Body
    states: Sequence[tuple[ir.Value, ir.Value, ir.Value, ir.Value]]
    pointers: _Pointers = field(default_factory=_Pointers)
    wanted: list[tuple[ir.Value, Tensor]] = field(default_factory=list)
    carried: list[Carried] = field(default_factory=list)
    scanned: list[Scanned] = field(default_factory=list)

    def carry(self) -> None:
        """Give each state its places; one that no turn changes keeps the place that it has."""
        low, inner = self.low, self.body.low
        for start, before, after, result in self.states:
            if hands_on(after) is before:
                if before not in inner.constants:
                    inner.lowered[before] = low.plain(start)
                    self.body.captured.append(low.plain(start))
                low.lowered[result] = low.plain(start)
                continue
            _same_type(low, f"'{before.name}'", start, before, after)
            begin, first = low.contiguous(start), _result(low, result)
            second = low.new(f"{before.name} spare", first.dtype, first.shape)
            old, new = _moving(first, str(before.name)), _moving(first, str(after.name))
            inner.lowered[before] = old
            self.wanted.append((after, new))
            add = self.pointers.add
            size = first.size * first.dtype.itemsize
            self.carried.append(
                Carried(
                    old.buffer,
                    new.buffer,
                    add(begin),
                    add(first, written=True),
                    add(second, written=True),
                    size,
                )
            )
            low.lowered[result] = first

    def slice_of(self, whole: Tensor, axis: int, count: Dim, *, backwards: bool) -> Tensor:
        """Return a slice of a value along an axis; which one, the turn decides."""
        buffer = Buffer(f"slice of {whole.buffer.name}", 0, Kind.MOVING)
        step = whole.strides[axis] * whole.dtype.itemsize
        start = (count - 1) * step if backwards else 0
        base = self.pointers.add(whole, written=True)
        self.scanned.append(Scanned(buffer, base, start, -1 * step if backwards else step))
        return Tensor(
            buffer,
            whole.dtype,
            whole.shape[:axis] + whole.shape[axis + 1 :],
            whole.strides[:axis] + whole.strides[axis + 1 :],
        )

    def finish(self, control: Loop) -> None:
        """Put the body between a kernel that runs it and a mark."""
        low = self.low
        read = (value for value in self.node.inputs if value is not None)
        self.body.lower(self.wanted, read)
        control = replace(control, carried=tuple(self.carried), scanned=tuple(self.scanned))
        kept = [Pointer(tensor.buffer, 0, False) for tensor in self.body.captured]
        pointers = [*self.pointers.found, *kept]
        _emit(low, self.node, control, pointers, "no memory for the results of {value} turns")
        low.kernels += self.body.low.kernels
        # What the next turn reads has to be there still when this one ends.
        _emit(low, self.node, Mark.END, pointers)


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
        constant = low.constant(start)
        if constant is not None and hands_on(after) is before:
            given[before] = constant
    loop = _Turns(low, node, _Body(low, graph, given), states)
    inner, add = loop.body.low, loop.pointers.add
    place = low.new(str(number.name), low.dtype(number), low.shape(number))
    inner.lowered[number], count = place, add(place, written=True)
    begin = NONE
    if going is not None and not is_true(low.constant(going)):
        begin = add(_single(low, going, "bool"))
    condition = NONE
    if not is_true(inner.constant(goes_on)):
        _check_single(low, goes_on, "bool")
        place = low.new(str(goes_on.name), low.dtype(goes_on), low.shape(goes_on))
        loop.wanted.append((goes_on, place))
        condition = add(place, written=True)
    turns = _known_turns(low, limit)
    at = NONE
    if limit is not None and turns is None:
        at = add(_single(low, limit, "int64"))
    loop.carry()
    exact = turns if begin == condition == NONE else None
    for item, result in zip(others[n:], node.outputs[n:], strict=True):
        if result.name and low.uses(result):
            loop.wanted.append((item, _kept(loop, item, result, exact)))
    loop.finish(Loop(turns, at, begin, condition, count, (), ()))


def _kept(loop: _Turns, item: ir.Value, result: ir.Value, turns: Dim | None) -> Tensor:
    """Return the place of one turn's part of a result."""
    low = loop.low
    shape, whole = low.shape(item), low.shape(result)
    if low.dtype(item) != low.dtype(result) or shape != whole[1:]:
        raise NotNative(f"'{item.name}' changes its type from turn to turn")
    if turns is not None and whole[0] == turns:
        low.lowered[result] = low.result(result)
        return loop.slice_of(low.plain(result), 0, turns, backwards=False)
    readers = {use.node for use in result.uses()}
    if result not in low.outputs or low.inner or readers & set(with_nested(low.nodes)):
        raise NotNative("the number of its turns is known only when it ends")
    dtype = low.dtype(result)
    grown = Buffer(str(result.name), 0, Kind.OUTPUT)
    low.results[result] = grown
    low.grown.add(result)
    low.lowered[result] = Tensor(grown, dtype, whole, row_major(whole))
    buffer = Buffer(f"slice of {result.name}", 0, Kind.MOVING)
    step = product(shape) * dtype.itemsize
    loop.scanned.append(Scanned(buffer, NONE, 0, step, grown))
    loop.pointers.found.append(Pointer(grown, 0, True))
    return Tensor(buffer, dtype, shape, row_major(shape))


def _known_turns(low: Lowering, limit: ir.Value | None) -> Dim | None:
    """Return the limit of a Loop, if it is known before the run and not negative."""
    if limit is None:
        return None
    content = low.constant(limit)
    if content is None:
        content = low.types.values.get(limit)
    if content is None or content.size != 1:
        return None
    turns = content.reshape(-1)[0]
    if isinstance(turns, Expr):
        return turns if {str(turns)} == set(symbols_of(turns)) else None
    return int(turns) if turns >= 0 else None


def grown_outputs(node: ir.Node, types: GraphTypes) -> Sequence[ir.Value]:
    """Return the outputs of a Loop whose first size may be known only when it has ended."""
    if node.op_type != "Loop" or node.domain not in ("", "ai.onnx"):
        return ()
    return [
        value
        for value in node.outputs[max(0, len(node.inputs) - 2) :]
        if not isinstance(next(_sizes(types, value), None), int)
    ]


def lower_scan(low: Lowering, node: ir.Node) -> None:
    """Lower a Scan: its slices are read and written where the whole lies."""
    attributes = low.attributes(node)
    graph = node.attributes["body"].as_graph()
    n_scanned = int(attributes["num_scan_inputs"])
    inputs = [value for value in node.inputs if value is not None]
    n = len(inputs) - n_scanned
    states = list(
        zip(inputs[:n], graph.inputs[:n], graph.outputs[:n], node.outputs[:n], strict=True)
    )
    given = {}
    for start, before, after, _ in states:
        constant = low.constant(start)
        if constant is not None and hands_on(after) is before:
            given[before] = constant
    scan = _Turns(low, node, _Body(low, graph, given), states)
    axes = attributes.get("scan_input_axes") or (0,) * n_scanned
    backwards = attributes.get("scan_input_directions") or (0,) * n_scanned
    turns: Dim = 0
    for value, part, axis, reverse in zip(
        inputs[n:], graph.inputs[n:], axes, backwards, strict=True
    ):
        whole = low.plain(value)
        axis %= len(whole.shape)
        turns = whole.shape[axis]
        scan.body.low.lowered[part] = scan.slice_of(whole, axis, turns, backwards=bool(reverse))
    scan.carry()
    n_results = len(node.outputs) - n
    axes = attributes.get("scan_output_axes") or (0,) * n_results
    backwards = attributes.get("scan_output_directions") or (0,) * n_results
    for item, result, axis, reverse in zip(
        graph.outputs[n:], node.outputs[n:], axes, backwards, strict=True
    ):
        if not (result.name and low.uses(result)):
            continue
        low.lowered[result] = target = low.result(result)
        axis %= len(target.shape)
        if low.shape(item) != target.shape[:axis] + target.shape[axis + 1 :]:
            raise NotNative(f"'{item.name}' changes its shape from turn to turn")
        place = scan.slice_of(target, axis, turns, backwards=bool(reverse))
        scan.wanted.append((item, place))
    scan.finish(Loop(turns, NONE, NONE, NONE, NONE, (), ()))


def lower_if(low: Lowering, node: ir.Node) -> None:
    """Lower an If: the kernels of both branches are there, and the condition picks."""
    graphs = [node.attributes[name].as_graph() for name in ("then_branch", "else_branch")]
    (condition,) = node.inputs
    if condition is None:
        raise NotNative("an absent condition")
    known = low.constant(condition)
    if known is not None:
        graphs = [graphs[0 if is_true(known) else 1]]
    bodies = [_Body(low, graph) for graph in graphs]
    targets = [_result(low, value) for value in node.outputs]
    for body in bodies:
        for found, value in zip(body.graph.outputs, node.outputs, strict=True):
            if low.dtype(found) != low.dtype(value) or low.shape(found) != low.shape(value):
                raise NotNative("its branches give different shapes")
        body.lower(list(zip(body.graph.outputs, targets, strict=True)), ())
    for value, target in zip(node.outputs, targets, strict=True):
        low.lowered[value] = target
    if known is not None:
        low.kernels += bodies[0].low.kernels
        return
    pointers = _Pointers()
    branch = Branch(pointers.add(_single(low, condition, "bool")))
    for target in targets:
        pointers.add(target, written=True)
    _emit(low, node, branch, pointers.found)
    low.kernels += bodies[0].low.kernels
    _emit(low, node, Mark.OTHERWISE, ())
    low.kernels += bodies[1].low.kernels
    _emit(low, node, Mark.END, ())


RULES: dict[str, Rule] = {"Loop": lower_loop, "Scan": lower_scan, "If": lower_if}
