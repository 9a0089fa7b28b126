"""The body of a loop, scan or branch on its way to kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import onnx_ir as ir

from hagane.graph.walk import all_nodes, captured
from hagane.native.kernels.control import (
    Control,
    changing_names,
)
from hagane.native.kernels.elementwise_loops import emit_copy
from hagane.native.kernels.kernel import Kernel, Pointer
from hagane.native.kernels.recorder import label_of
from hagane.native.kernels.sizes import names_of_sizes
from hagane.native.kernels.tensor import Tensor, row_major
from hagane.native.lowering.facts import AT_RUN_TIME, NotNative
from hagane.native.lowering.found import settle
from hagane.native.lowering.state import Lowering
from hagane.native.rules.control.changing_sizes import (
    SizesOfIterations,
)
from hagane.ops.definition import Array
from hagane.ops.folding import fold_nodes
from hagane.ops.inference import GraphTypes
from hagane.ops.values import tensor_to_array
from hagane.symbolic import Dim, Expr, product, symbols_of

# Operators that change some elements of their first input.
WRITERS = frozenset({"ScatterND", "ScatterElements"})
# Operators whose result has the elements of their input in the same order.
_SAME_ELEMENTS = frozenset({"Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})


@dataclass
class Pointers:
    """The pointers of a loop or branch."""

    found: list[Pointer] = field(default_factory=list)

    def add(self, tensor: Tensor, *, written: bool = False) -> int:
        """Add a pointer to a tensor's first element and return its number."""
        at = tensor.offset * tensor.dtype.itemsize
        self.found.append(Pointer(tensor.buffer, at, written))
        return len(self.found) - 1


class BodyKernels:
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
        known = dict(low.facts.constants)
        for value in graph.initializers.values():
            if value.const_value is not None:
                known[value] = tensor_to_array(value.const_value)
        known.update(given or {})
        folded = fold_nodes(list(graph), known, low.facts.types.types)
        known.update(folded)
        self.nodes = [node for node in graph if not all(value in folded for value in node.outputs)]
        self.low = low.for_body(self.nodes, known)
        shapes = [dims_of(low.facts.types, value) for value in graph.inputs]
        self.low.facts.given |= {name for shape in shapes for d in shape for name in symbols_of(d)}
        self.captured: list[Tensor] = []
        # States to whose end an iteration adds, and their places behind it; and the sizes it finds.
        self.appended: list[tuple[ir.Value, Tensor]] = []
        self.found: frozenset[str] = frozenset()
        for value in dict.fromkeys(captured(graph)):
            if self.low.facts.constant(value) is None:
                tensor = low.forms.plain(value)
                self.captured.append(tensor)
                self.low.forms[value] = tensor

    def lower(
        self,
        wanted: Sequence[tuple[ir.Value, Tensor]],
        visible: Iterable[ir.Value],
        sizes: SizesOfIterations | None = None,
        left: Sequence[ir.Value] = (),
        leave: Callable[[Sequence[Tensor]], Kernel] | None = None,
    ) -> list[Tensor]:
        """Make the kernels that compute outputs; return where those are that stay.

        Args:
            wanted: Outputs and their places.
            visible: Values outside whose sizes are known when the part begins.
            sizes: Sizes that differ between iterations.
            left: Outputs that stay where their kernels leave them.
            leave: Makes the last kernel of these; its pointers behind the first point to them.

        Raises:
            NotNative: Some node has no kernel.
        """
        low = self.low
        low.facts.outputs = frozenset((*(value for value, _ in wanted), *left))
        for value, place in (*wanted, *self.appended):
            if place.contiguous:
                self._put(value, place)
        for node, reason in low.lower_nodes(low, self.nodes).items():
            if reason == AT_RUN_TIME:
                raise NotNative(AT_RUN_TIME)
            raise NotNative(f"{node.op_type} in its body: {reason}")
        # The memory of results is there before the body runs.
        late = low.found - self.outer.found
        if any(symbols_of(dim) & late for _, place in wanted for dim in place.shape):
            raise NotNative("a size of its results is found in its body")
        for value, place in wanted:
            found = low.forms.plain(value)
            if found.buffer is not place.buffer or not found.contiguous:
                emit_copy(low.recorder, found, place)
        assert not low.forms.inputs, "a body reads nothing that its outer graph does not hold"
        stay = [self._stays(value) for value in left]
        for value, place in self.appended:
            assert low.forms.contiguous(value).is_at(place), value
        if leave is not None:
            low.recorder.kernels.append(leave(stay))
        appended = {place.buffer for _, place in self.appended}
        settle(low.recorder, equal=self._pairs(), appended=appended)
        self.found = frozenset(low.found - self.outer.found)
        self.outer.found |= low.found
        self._check_sizes(visible, sizes)
        if leave is None:
            return stay
        # Values of found sizes share memory since: the last kernel knows in which each lies.
        places = low.recorder.kernels[-1].pointers[1 : 1 + len(stay)]
        return [replace(one, buffer=p.buffer) for one, p in zip(stay, places, strict=True)]

    def _stays(self, value: ir.Value) -> Tensor:
        """Return the contiguous values of an output, at a place that is known behind the body."""
        low = self.low
        found = low.forms.contiguous(value)
        if not symbols_of(found.offset) & (low.found - self.outer.found):
            return found
        made = low.recorder.new(f"{value.name} left", found.dtype, found.shape)
        emit_copy(low.recorder, found, made)
        return made

    def _put(self, value: ir.Value | None, place: Tensor) -> None:
        """Let the node that computes a value write it where it is wanted, also in another shape."""
        low = self.low
        while value is not None and value not in low.facts.constants:
            producer = value.producer()
            if producer not in low.facts.nodes or value in low.forms.places:
                return
            low.forms.places[value] = place
            if producer.op_type in WRITERS and self._is_there(producer.inputs[0], place):
                value = producer.inputs[0]
                continue
            if producer.domain != "" or producer.op_type not in _SAME_ELEMENTS:
                return
            value = producer.inputs[0]
            if value is not None:
                shape = low.facts.shape(value)
                place = replace(place, shape=shape, strides=row_major(shape))

    def _is_there(self, value: ir.Value | None, place: Tensor) -> bool:
        """Whether a chain of writes in place begins with a value that lies at a place."""
        while value is not None and value.producer() in self.low.facts.nodes:
            producer = value.producer()
            if producer is None or producer.op_type not in WRITERS:
                return False
            value = producer.inputs[0]
        held = self.low.forms.found(value)
        return isinstance(held, Tensor) and held.is_at(place)

    def _pairs(self) -> list[tuple[Dim, Dim]]:
        """Return the sizes that kernels take for equal."""
        return [pair for node in all_nodes(self.nodes) for pair in self.low.equal_sizes(node)]

    def _check_sizes(self, visible: Iterable[ir.Value], sizes: SizesOfIterations | None) -> None:
        types = self.outer.facts.types
        pairs = self._pairs()
        names = names_of_sizes(self.low.recorder.kernels, [], pairs) - self.outer.found
        names -= changing_names([kernel.control for kernel in self.low.recorder.kernels]).keys()
        for value in (*visible, *captured(self.graph)):
            names -= {name for dim in sizes_in(types, value) for name in symbols_of(dim)}
        if sizes is not None:
            names -= {name for name, _, _ in sizes.names}
            sizes.check(pairs)
        if names & types.invented:
            raise NotNative("a size in its body is known only when it runs")


def dims_of(types: GraphTypes, value: ir.Value) -> Sequence[Dim]:
    """Return the shape of a value, none for one of unknown rank."""
    return getattr(types.types.get(value), "shape", None) or ()


def sizes_in(types: GraphTypes, value: ir.Value) -> Iterator[Dim]:
    """Yield the sizes that a value's shape and known content tell."""
    yield from dims_of(types, value)
    content = types.values.get(value)
    if content is not None and content.dtype == object:
        yield from (item for item in content.reshape(-1) if isinstance(item, Expr))


def single(low: Lowering, value: ir.Value, dtype: str) -> Tensor:
    """Return a value that has to be one number of a type."""
    check_single(low, value, dtype)
    return low.forms.contiguous(value)


def check_single(low: Lowering, value: ir.Value, dtype: str) -> None:
    """Raise ``NotNative`` unless a value has to be one number of a type."""
    if low.facts.dtype(value).name != dtype or product(low.facts.shape(value)) != 1:
        raise NotNative(f"'{value.name}' is no single {dtype}")


def result_of(low: Lowering, value: ir.Value) -> Tensor:
    """Return where an output of the node goes, also if nobody reads it."""
    if value.name and low.facts.uses(value):
        return low.forms.result(value)
    return low.recorder.new(str(value.name), low.facts.dtype(value), low.facts.shape(value))


def emit_control(
    low: Lowering,
    node: ir.Node,
    control: Control,
    pointers: Sequence[Pointer],
    failure: str = "",
) -> None:
    """Append a kernel without code."""
    label = label_of(node)
    low.recorder.kernels.append(
        Kernel(label, "", tuple(pointers), (), 0, failure=failure, control=control)
    )
