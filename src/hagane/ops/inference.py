"""Walk a graph once and give every value its type, and its content where that is known.

Values that hold dimensions are computed along with the types (``Shape`` → ``Gather`` → ``Concat``
→ ``Reshape``), so shapes that a model computes for itself resolve to expressions over the sizes
of its inputs.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import onnx_ir as ir

from hagane.errors import TypeInferenceError, UnsupportedModel
from hagane.graph.types import (
    DECLARED,
    OptionalType,
    SequenceType,
    Shape,
    TensorType,
    Type,
    dtype_name,
    from_ir_shape,
    to_ir_shape,
    to_ir_type,
)
from hagane.graph.verify import describe
from hagane.graph.walk import all_graphs
from hagane.ops.bounds import fits
from hagane.ops.control.growth import CHANGING
from hagane.ops.definition import Array
from hagane.ops.node import MAX_KNOWN_ELEMENTS, infer_node
from hagane.ops.registry import unsupported_nodes
from hagane.ops.values import tensor_to_array
from hagane.symbolic import (
    Dim,
    Expr,
    definitely_different,
    evaluate,
    maximum,
    parse_dim,
    symbol,
    symbols_of,
)


@dataclass
class GraphTypes:
    """The results of inference.

    Attributes:
        types: The type of each value; missing where nothing is known.
        values: The content of each value that is known; object arrays hold dimensions.
        invented: Names of dimensions that no input determines, such as NonZero's count.
        assumed: Sizes that a node needs to be equal, and that are not shown to be. Two that meet
            in a broadcast are among them: its type holds if they are, too, where one is 1.
        broadcast: Those among them that meet in a broadcast, and nowhere else in the node.
        needed: Sizes of inputs that have to be equal for operators that passes may write in others.
    """

    types: dict[ir.Value, Type] = field(default_factory=dict)
    values: dict[ir.Value, Array] = field(default_factory=dict)
    invented: set[str] = field(default_factory=set)
    assumed: dict[ir.Node, tuple[tuple[Dim, Dim], ...]] = field(default_factory=dict)
    broadcast: dict[ir.Node, tuple[tuple[Dim, Dim], ...]] = field(default_factory=dict)
    needed: set[tuple[Dim, Dim]] = field(default_factory=set)

    def need(self, nodes: Iterable[ir.Node], pairs: Collection[tuple[Dim, Dim]]) -> None:
        """Let the first of some nodes need sizes to be equal, beside those that it needs anyway."""
        for node in nodes:
            self.assumed[node] = (*self.assumed.get(node, ()), *pairs)
            return


def infer_types(
    model: ir.Model,
    *,
    sizes: Mapping[str, int] | None = None,
    shapes: Mapping[str, Sequence[Dim | str]] | None = None,
    lenient: bool = False,
) -> GraphTypes:
    """Return the types of all values of a legalised ``model`` and write them into its graph.

    Args:
        model: A model in current form; shapes and types of its values are updated in place.
        sizes: Values for named dimensions of the inputs.
        shapes: Shapes of inputs by name, in place of the declared ones.
        lenient: Leave the types of a subgraph unknown where they do not fit: a branch that inputs
            of these shapes do not take may be wrong for them.

    Raises:
        UnsupportedModel: Some operators have no definition; all are listed.
        TypeInferenceError: A node's inputs do not fit its operator.
    """
    problems = unsupported_nodes(model.graph)
    if problems:
        raise UnsupportedModel(problems)
    walker = _Walker(GraphTypes(), lenient)
    for value in model.graph.inputs:
        walker.result.types.update(
            _declared_input(value, sizes or {}, (shapes or {}).get(str(value.name)))
        )
        if not fits(walker.result.types.get(value)):
            raise TypeInferenceError(
                f"input '{value.name}': expected sizes of a tensor that memory holds, got "
                f"{walker.result.types[value]}"
            )
    walker.shown = _names_in(walker.result)
    walker.graph(model.graph)
    write_types(walker.result)
    return walker.result


@dataclass(frozen=True, slots=True)
class Declared:
    """Element types, and shapes where they count, that a file declares of the results of nodes."""

    dtypes: dict[ir.Value, ir.DataType] = field(default_factory=dict)
    shapes: dict[ir.Value, ir.Shape] = field(default_factory=dict)


def read_declared(model: ir.Model, *, shapes: bool = False) -> Declared:
    """Return what a file declares of the results of its nodes.

    Args:
        model: As it was loaded.
        shapes: Whether shapes count: files often say of them what an exporter took them for.
    """
    found = Declared()
    for graph in all_graphs(model.graph):
        for value in (value for node in graph for value in node.outputs):
            if isinstance(value.type, ir.TensorType):
                if value.type.dtype != ir.DataType.UNDEFINED:
                    found.dtypes[value] = value.type.dtype
                if shapes and value.shape is not None:
                    found.shapes[value] = value.shape
    return found


def compare_declared(declared: Declared, found: GraphTypes) -> None:
    """Raise unless what a file declares of the results of its nodes is what inference found.

    Raises:
        TypeInferenceError: A result is of another element type, or has another shape.
    """
    for value, dtype in declared.dtypes.items():
        type_ = found.types.get(value)
        if isinstance(type_, TensorType) and type_.dtype not in (dtype, ir.DataType.UNDEFINED):
            raise TypeInferenceError(
                f"{_maker(value)}: output '{value.name}' is declared {dtype_name(dtype)}, but it "
                f"is {type_}; correct the file's declaration, or leave it out"
            )
    for value, shape in declared.shapes.items():
        type_, dims = found.types.get(value), from_ir_shape(shape) or ()
        if not isinstance(type_, TensorType) or type_.shape is None:
            continue
        if len(dims) != len(type_.shape) or any(
            isinstance(own, int) and isinstance(dim, int) and own != dim
            for own, dim in zip(type_.shape, dims, strict=True)
        ):
            told = ", ".join("?" if dim is None else str(dim) for dim in dims)
            raise TypeInferenceError(
                f"{_maker(value)}: output '{value.name}' is declared with the shape [{told}], but "
                f"it is {type_} (session.strict_shape_type_inference is 1)"
            )


def _maker(value: ir.Value) -> str:
    node = value.producer()
    return "a node" if node is None else describe(node)


def infer_added(node: ir.Node, types: GraphTypes) -> None:
    """Type a node that was added to a graph whose other values ``types`` knows.

    Raises:
        UnsupportedModel: Its operator has no definition.
        TypeInferenceError: Its inputs do not fit its operator.
    """
    walker = _Walker(types, lenient=False)
    walker.added(node)
    for value in node.outputs:
        if value in types.types:
            _write_type(value, types.types[value])


def infer_given(
    nodes: Sequence[ir.Node], types: GraphTypes, given: Mapping[ir.Value, Type]
) -> GraphTypes:
    """Return what would be known if some values had other types; the graph stays as it is.

    Args:
        nodes: The nodes that depend on these, in order.
        types: The results of inference.
        given: The other types.

    Raises:
        TypeInferenceError: A node's inputs do not fit its operator.
    """
    tried = replace(
        types, types={**types.types, **given}, values=dict(types.values),
        invented=set(types.invented), assumed=dict(types.assumed), broadcast=dict(types.broadcast),
    )  # fmt: skip
    walker = _Walker(tried, lenient=False)
    for node in nodes:
        walker.added(node)
    return tried


def _declared_input(
    value: ir.Value, sizes: Mapping[str, int], given: Sequence[Dim | str] | None
) -> dict[ir.Value, Type]:
    shape = from_ir_shape(value.shape)
    if given is not None:
        shape = tuple(parse_dim(dim) if isinstance(dim, str) else dim for dim in given)
    if shape is not None:
        shape = tuple(
            evaluate(symbol(f"{value.name}_{axis}") if dim is None else dim, sizes)
            for axis, dim in enumerate(shape)
        )
    found = value.meta.get(DECLARED) or declared_type(value.type, shape)
    return {} if found is None else {value: found}


def declared_type(type_: ir.TypeProtocol | None, shape: Shape | None) -> Type | None:
    """Return the type that a graph value declares; ``shape`` is that of its tensors."""
    if isinstance(type_, ir.SequenceType):
        return SequenceType(declared_type(type_.elem_type, shape))
    if isinstance(type_, ir.OptionalType):
        return OptionalType(declared_type(type_.elem_type, shape))
    if isinstance(type_, ir.TensorType) and type_.dtype != ir.DataType.UNDEFINED:
        return TensorType(type_.dtype, shape)
    return None


# Operators whose results are those of bodies; new sizes of all others are told by data.
_BODIES = frozenset({"If", "Loop", "Scan"})


class _Assuming:
    """Notes unproved equalities."""

    def __init__(self) -> None:
        self.pairs: dict[tuple[Dim, Dim], bool] = {}  # and whether they may broadcast

    def differ(self, left: Dim, right: Dim) -> bool:
        if definitely_different(left, right):
            return True
        self.pairs[left, right] = False
        return False

    def clash(self, left: Dim, right: Dim) -> bool:
        if definitely_different(left, 1) and definitely_different(right, 1):
            return self.differ(left, right)
        self.pairs.setdefault((left, right), True)
        return False

    def wider(self, left: Dim, right: Dim) -> Dim:
        return maximum(left, right)


class _Walker:
    def __init__(self, result: GraphTypes, lenient: bool):
        self.result = result
        self.lenient = lenient
        self.shown: frozenset[str] | None = None  # names of sizes that inputs have, once needed
        self._numbers = itertools.count()
        self._counted: set[str] = set()  # names of sizes that only data tell

    def graph(self, graph: ir.Graph) -> None:
        for value in graph.initializers.values():
            self.initializer(value)
        for node in graph:
            try:
                self.node(node)
            except RecursionError:
                raise TypeInferenceError(f"{describe(node)}: graph nested too deeply") from None

    def subgraph(
        self, graph: ir.Graph, types: Sequence[Type | None], values: Sequence[Array | None]
    ) -> tuple[list[Type | None], list[Array | None]]:
        for value, type_, known in zip(graph.inputs, types, values, strict=False):
            self._assign(value, type_, known)
        try:
            self.graph(graph)
        except TypeInferenceError:
            if not self.lenient:
                raise
        return (
            [self.result.types.get(value) for value in graph.outputs],
            [self.result.values.get(value) for value in graph.outputs],
        )

    def _assign(self, value: ir.Value, type_: Type | None, known: Array | None) -> None:
        self.result.types.pop(value, None)
        self.result.values.pop(value, None)
        if known is not None:
            self.result.values[value] = known
            if isinstance(type_, TensorType):  # NonZero gives a name to what content may tell
                type_ = TensorType(type_.dtype, known.shape)
        if type_ is not None:
            self.result.types[value] = type_

    def initializer(self, value: ir.Value) -> None:
        tensor = value.const_value
        if tensor is None:
            return
        shape = tuple(int(str(dim)) for dim in tensor.shape)
        self.result.types[value] = TensorType(tensor.dtype, shape)
        if tensor.size <= MAX_KNOWN_ELEMENTS:
            self.result.values[value] = tensor_to_array(tensor)

    def _fresh(self, label: str) -> Expr:
        name = f"{label}_{next(self._numbers)}"
        while name in self.result.invented:
            name = f"{label}_{next(self._numbers)}"
        self.result.invented.add(name)
        return symbol(name)

    def added(self, node: ir.Node) -> None:
        """Type a node that may read constants that were added, too."""
        for value in node.inputs:
            if value is not None and value not in self.result.types:
                self.initializer(value)  # if it is one
        self.node(node)

    def node(self, node: ir.Node) -> None:
        types = [None if v is None else self.result.types.get(v) for v in node.inputs]
        values = [None if v is None else self.result.values.get(v) for v in node.inputs]
        judge = _Assuming()
        found = infer_node(
            node, types, values, fresh=self._fresh, infer_graph=self.subgraph, judge=judge
        )
        self.result.assumed[node] = tuple(judge.pairs)
        self.result.broadcast[node] = tuple(pair for pair, may in judge.pairs.items() if may)
        if node.op_type not in _BODIES:
            self._counted |= {
                str(dim)
                for inferred, _ in found
                for dim in getattr(inferred, "shape", None) or ()
                if isinstance(dim, Expr)
            }
        for output, (inferred, value) in zip(node.outputs, found, strict=True):
            self._assign(output, self._merge_declared(inferred, output), value)

    def _merge_declared(self, inferred: Type | None, value: ir.Value) -> Type | None:
        """Fill unknown parts of an inferred type from the file's declaration of the value.

        A declared name that no input has tells nothing: exporters name sizes that are one size
        differently in each value, and different ones alike.
        """
        declared = from_ir_shape(value.shape)
        if inferred is None:
            return declared_type(value.type, self._named(value, declared))
        if not isinstance(inferred, TensorType) or declared is None:
            return inferred
        if inferred.shape is None:  # the number of sizes is believed, they are told by data
            return TensorType(inferred.dtype, self._named(value, [None] * len(declared)))
        if len(inferred.shape) != len(declared):
            return inferred
        merged = tuple(
            other if other is not None and self._is_invented(dim) and self._is_shown(other) else dim
            for dim, other in zip(inferred.shape, declared, strict=True)
        )
        found = TensorType(inferred.dtype, merged)
        return found if fits(found) else inferred

    def _named(self, value: ir.Value, dims: Sequence[Dim | None] | None) -> Shape | None:
        if dims is None:
            return None
        return tuple(
            self._fresh(f"{value.name}_{axis}") if dim is None else dim
            for axis, dim in enumerate(dims)
        )

    def _is_shown(self, dim: Dim) -> bool:
        if isinstance(dim, int):
            return True
        if self.shown is None:
            self.shown = _names_in(self.result) - self.result.invented
        return symbols_of(dim) <= self.shown

    def _is_invented(self, dim: Dim) -> bool:
        # One name cannot stand for a size that differs from iteration to iteration, and of sizes
        # that data tell, files declare those of the data that an exporter had: a Reshape to
        # sizes that are fed has these.
        name = str(dim)
        changes = name.startswith(f"{CHANGING}_") or name in self._counted
        return isinstance(dim, Expr) and name in self.result.invented and not changes


def _names_in(result: GraphTypes) -> frozenset[str]:
    """Return the names of sizes in all types of tensors."""
    shapes = [getattr(type_, "shape", None) or () for type_ in result.types.values()]
    return frozenset(name for shape in shapes for dim in shape for name in symbols_of(dim))


def write_types(result: GraphTypes) -> None:
    """Write the types that inference found into the values of the graph."""
    for value, type_ in result.types.items():
        _write_type(value, type_)


def _write_type(value: ir.Value, type_: Type) -> None:
    value.type = to_ir_type(type_)
    inner = type_
    while isinstance(inner, SequenceType | OptionalType) and inner.element is not None:
        inner = inner.element
    value.shape = to_ir_shape(inner.shape) if isinstance(inner, TensorType) else None
