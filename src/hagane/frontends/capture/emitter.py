"""Operators as nodes of a graph with branches and loops."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.errors import TypeInferenceError
from hagane.frontends.capture.scope import Branch, Scope
from hagane.frontends.capture.terms import as_value
from hagane.frontends.python.interpret.emit import Emitter
from hagane.frontends.python.values.values import Place, Real, Tensor, Truth, Value
from hagane.graph.types import Shape, TensorType, Type, to_ir_shape, to_ir_type
from hagane.ops.builder import Nodes, node_of
from hagane.ops.definition import Array
from hagane.ops.inference import GraphTypes
from hagane.ops.registry import operators
from hagane.symbolic import Dim, Expr
from hagane.symbolic.logic import negate
from hagane.symbolic.questions import Knowledge, denominator
from hagane.symbolic.term import BOOL, Term, variable

_REAL = {
    ast.Add: "Add", ast.Sub: "Sub", ast.Mult: "Mul", ast.Div: "Div", ast.Pow: "Pow",
}  # fmt: skip
_COMPARE = {
    ast.Eq: "Equal", ast.Lt: "Less", ast.LtE: "LessOrEqual", ast.Gt: "Greater",
    ast.GtE: "GreaterOrEqual",
}  # fmt: skip


# Constants under these names are shared; others are arrays of the program.
_SHARED = ("constant", "axis 0", "filler", "shape")


class ScopeNodes(Nodes):
    """Nodes of one scope; names of sizes are found in all of them."""

    emitter: GraphEmitter

    def note_sizes(self, value: ir.Value) -> None:
        super().note_sizes(value)
        for name, found in self._sizes.items():
            self.emitter.sizes.setdefault(name, found)

    def _named(self, name: str) -> ir.Value:
        emitter = self.emitter
        if name in emitter.numbers:
            return emitter.visible(emitter.value_of(emitter.numbers[name]))
        if name in emitter.knowledge.joined:
            found = emitter.knowledge.joined[name]
            condition = as_value(emitter, found.condition)
            sides = self.size(found.yes), self.size(found.no)
            return self._node("Where", condition, *sides)
        if name not in emitter.sizes:
            raise TypeInferenceError(
                f"the number '{name}' is not known when the graph runs: no input has an axis of "
                "this size, and no operator computes it"
            )
        value, axis = emitter.sizes[name]
        shape = self._node("Shape", emitter.visible(value), start=axis, end=axis + 1)
        return self._node("Squeeze", shape, self.initializer(np.array([0]), "axis 0"))

    def initializer(self, content: Array, name: str) -> ir.Value:
        """Return an initializer of the main graph; small constants are there once."""
        emitter = self.emitter
        if self is not emitter.root.nodes:
            return emitter.root.nodes.initializer(content, name)
        content = np.asarray(content)
        shared = name in _SHARED or name.startswith("size ")
        key = (content.dtype.str, content.shape, content.tobytes()) if content.size <= 16 else None
        if key is not None and shared and key in emitter.shared:
            return emitter.shared[key]
        made = super().initializer(content, name.replace(" ", "_"))
        emitter.add_home(made, emitter.root)
        if key is not None and shared:
            emitter.shared[key] = made
        return made

    def insert(self, node: ir.Node) -> None:
        """Put a node into the scope."""
        super().insert(node)
        self.emitter.settle_home(node)


class GraphEmitter(Emitter):
    """Makes nodes where the path of the interpretation lies.

    Args:
        knowledge: What is known of sizes, and the path.
        assume: Told of what had to be assumed.
        place: Says where in the source the interpretation is.
        names: Names of real arrays, by their identity.
    """

    builds = True

    def __init__(
        self,
        knowledge: Knowledge,
        assume: Callable[[str], None],
        place: Callable[[], Place | None],
        names: dict[int, str],
    ):
        super().__init__(knowledge, assume)
        self.place = place
        self._only_types = False
        self.names = names
        self.types = GraphTypes()
        self.numbers: dict[str, Tensor] = {}  # integers that the data decide, by name
        self.truths: dict[str, Tensor] = {}  # truth values, likewise
        self.sizes: dict[str, tuple[ir.Value, int]] = {}
        self.shared: dict[object, ir.Value] = {}  # small constants by content
        self.homes: dict[ir.Value, Scope] = {}
        self._born: dict[ir.Value, int] = {}
        self._contents: dict[ir.Value, tuple[Any, Callable[[], Array]]] = {}
        self._real: dict[int, tuple[Any, ir.Value]] = {}
        self._reasons: dict[ir.Value, str] = {}
        self.root = self.open_scope(ir.Graph([], [], nodes=[], name="captured"))
        knowledge.path = knowledge.path.within(self.root)

    # Scopes.

    @property
    def scope(self) -> Scope:
        """Where the next node lies."""
        found = self.knowledge.path.scope
        return found if found is not None else self.root

    def open_scope(
        self, graph: ir.Graph, parent: Scope | None = None, condition: Term | None = None
    ) -> Scope:
        """Return a scope for a graph."""
        nodes = ScopeNodes.__new__(ScopeNodes)
        nodes.emitter = self
        outer = None if parent is None else parent.nodes
        nodes.__init__(graph, self.types, outer=outer)  # type: ignore[misc]
        return Scope(nodes, parent, condition=condition)

    @contextmanager
    def at(self, scope: Scope) -> Iterator[None]:
        """Add nodes to another scope inside the block."""
        before = self.knowledge.path
        self.knowledge.path = before.within(scope)
        try:
            yield
        finally:
            self.knowledge.path = before

    def settle_home(self, node: ir.Node) -> None:
        """Note where a node's outputs lie, and from where in the source it came."""
        scope = next(s for s in self.scope.chain() if s.graph is node.graph)
        for value in node.outputs:
            self.add_home(value, scope)
        place = self.place()
        if place is not None:
            node.metadata_props["hagane.place"] = f"{place.file}:{place.line}:{place.column}"

    def add_home(self, value: ir.Value, scope: Scope) -> None:
        """Note where a value lies."""
        self.homes[value] = scope
        self._born[value] = len(self._born)

    def visible(self, value: ir.Value, scope: Scope | None = None) -> ir.Value:
        """Return what stands for a value in a scope; branches and loops hand theirs out."""
        scope = self.scope if scope is None else scope
        while value in self.homes and not scope.is_within(self.homes[value]):
            home = self.homes[value]
            assert home.owner is not None
            value = home.owner.export(value, home)
        return value

    # The values of nodes.

    @contextmanager
    def types_only(self) -> Iterator[None]:
        """Ask for types inside the block: what is made there computes nothing."""
        before, self._only_types = self._only_types, True
        try:
            yield
        finally:
            self._only_types = before

    def value_of(self, tensor: Tensor) -> ir.Value:
        """Return the graph value that stands for a tensor where the next node lies.

        Raises:
            CheckError: Nothing in the graph computes it.
        """
        value = tensor.value
        if self._only_types:
            return value
        if value in self.homes:
            return self.visible(value)
        if value in self._contents:
            return self._initializer(value)
        if tensor.known is not None:
            made = self.scope.nodes.constant(tensor.known)
            return made if made.dtype == tensor.dtype else self._cast(made, tensor.dtype)
        self.fail(
            "capture",
            self._reasons.get(value, "a tensor that no operator of the graph computes"),
        )
        raise AssertionError

    def _cast(self, value: ir.Value, dtype: ir.DataType) -> ir.Value:
        return self.scope.nodes._node("Cast", value, to=int(dtype))

    def _initializer(self, value: ir.Value) -> ir.Value:
        found, content = self._contents[value]
        if id(found) not in self._real:
            name = self.names.get(id(found), "constant")
            self._real[id(found)] = found, self.root.nodes.initializer(content(), name)
        return self._real[id(found)][1]

    def keep(self, tensor: Tensor, found: Any, content: Callable[[], Array]) -> None:
        """Take note of the real array behind a tensor."""
        self._contents[tensor.value] = found, content

    def settle(self, tensor: Tensor) -> Tensor:
        """Return a tensor with known content that is no number of the program."""
        identity = operators()["", "Identity"]
        node = node_of(identity, [ir.Value()], {}, 1)  # not in the graph
        tensor.value = node.outputs[0]
        return tensor

    def record(self, node: ir.Node, types: Sequence[Type | None]) -> None:
        """Put a node into the current scope."""
        if self._only_types:
            return
        for value, type_ in zip(node.outputs, types, strict=True):
            self.set_type(value, type_)
        node.name = None
        self.scope.nodes.insert(node)
        for value in node.outputs:
            self.scope.nodes.note_sizes(value)

    def set_type(self, value: ir.Value, type_: Type | None) -> None:
        """Note the type of a value."""
        if type_ is None:
            return
        self.types.types[value] = type_
        if isinstance(type_, TensorType) and type_.dtype == ir.DataType.UNDEFINED:
            return
        value.type = to_ir_type(type_)
        value.shape = to_ir_shape(type_.shape) if isinstance(type_, TensorType) else None

    def typed(
        self, name: str, inputs: Sequence[Tensor], dtype: ir.DataType, shape: Shape | None
    ) -> Tensor:
        """Return the result of an operation of which only the type is known."""
        made = super().typed(name, inputs, dtype, shape)
        self.nodes.pop()
        label = f"'{self.label}': " if self.label else ""
        self._reasons[made.value] = (
            f"{label}only the type of its result is known ({name}), no operators that compute it"
        )
        return made

    def show_sizes(self, tensor: Tensor, shape: Shape) -> None:
        """Give a tensor the sizes that the reader knows, which can be computed from it then."""
        super().show_sizes(tensor, shape)
        self.set_type(tensor.value, TensorType(tensor.dtype, shape))
        self.scope.nodes.note_sizes(tensor.value)

    def add_input(self, tensor: Tensor, name: str) -> None:
        """Make a tensor an input of the graph."""
        value = tensor.value
        value.name = name
        self.set_type(value, TensorType(tensor.dtype, tensor.shape))
        self.root.graph.inputs.append(value)
        self.add_home(value, self.root)
        self.root.nodes.note_sizes(value)

    def tensor(self, value: ir.Value, kind: str = "") -> Tensor:
        """Return a graph value as a tensor of the program."""
        type_ = self.types.types.get(value)
        assert isinstance(type_, TensorType)
        return self._wrap(value, type_, None, kind or self.kind, "cpu")

    # Numbers and truth values that the data decide.

    def number(self, x: Tensor, label: str) -> Expr:
        """Return the only element of a tensor of integers as a number."""
        whole = x if x.dtype == ir.DataType.INT64 else self.op("Cast", x, to=ir.DataType.INT64)
        scalar = whole if whole.shape == () else self.op("Reshape", whole, np.array([], np.int64))
        made = self.fresh(label)
        self.knowledge.lowest[str(made)] = None
        self.numbers[str(made)] = scalar
        return made

    def truth(self, x: Tensor, name: str) -> Term:
        """Return the truth of the only element of a tensor."""
        cast = x if x.dtype == ir.DataType.BOOL else self.op("Cast", x, to=ir.DataType.BOOL)
        scalar = cast if cast.shape == () else self.op("Reshape", cast, np.array([], np.int64))
        self.truths[name] = scalar
        return variable(name, BOOL)

    def real(self, x: Tensor) -> Real:
        """Return the only element of a tensor as a float of Python."""
        wide = x if x.dtype == ir.DataType.DOUBLE else self.op("Cast", x, to=ir.DataType.DOUBLE)
        scalar = wide if wide.shape == () else self.op("Reshape", wide, np.array([], np.int64))
        return Real(None, scalar)

    def real_tensor(self, value: Value) -> Tensor:
        """Return a number of Python as a scalar of float64."""
        if isinstance(value, Real):
            if value.tensor is not None:
                return value.tensor
            if value.formula is None:
                self.fail("capture", "a number that no operator of the graph computes")
            scale = denominator(value.formula)
            whole = self.size(value.formula * scale)
            return self.op("Div", self._wide(whole), np.array(scale, np.float64))  # type: ignore[no-any-return]
        if isinstance(value, Expr):
            return self._wide(self.size(value))
        if isinstance(value, Truth):
            return self._wide(self.tensor(as_value(self, value.term)))
        return self.constant(np.array(value, np.float64))

    def real_scalar(self, value: Real) -> Tensor | None:
        """Return a float that is not known as a tensor without axes."""
        return self.real_tensor(value)

    def truth_scalar(self, value: Truth) -> Tensor | None:
        """Return a truth value that is not known as a tensor without axes."""
        return self.as_scalar(value, "bool")

    def _wide(self, x: Tensor) -> Tensor:
        return self.op("Cast", x, to=ir.DataType.DOUBLE)  # type: ignore[no-any-return]

    def real_operation(self, kind: type[ast.operator], left: Value, right: Value) -> Real:
        """Return an operation of Python on numbers of which one is a float of the data."""
        a, b = self.real_tensor(left), self.real_tensor(right)
        if kind is ast.FloorDiv:
            return Real(None, self.op("Floor", self.op("Div", a, b)))
        if kind is ast.Mod:
            whole = self.op("Floor", self.op("Div", a, b))
            return Real(None, self.op("Sub", a, self.op("Mul", whole, b)))
        if kind not in _REAL:
            self.fail("capture", "an operation on floats that the data decide")
        return Real(None, self.op(_REAL[kind], a, b))

    def real_comparison(self, kind: type[ast.cmpop], left: Value, right: Value) -> Tensor:
        """Return a comparison of numbers of which one is a float of the data."""
        a, b = self.real_tensor(left), self.real_tensor(right)
        if kind is ast.NotEq:
            return self.op("Not", self.op("Equal", a, b))  # type: ignore[no-any-return]
        if kind not in _COMPARE:
            self.fail("capture", "a comparison of floats that the data decide")
        return self.op(_COMPARE[kind], a, b)  # type: ignore[no-any-return]

    def size(self, dim: Dim) -> Tensor:
        """Return a size as a tensor."""
        return self.tensor(self.scope.nodes.size(dim))

    # Branches.

    def branch(self, condition: Term) -> Branch:
        """Return a new branch in the current scope."""
        scope = self.scope
        value = as_value(self, condition)
        graphs = [ir.Graph([], [], nodes=[], name=name) for name in ("then", "else")]
        bodies = dict(zip(("then_branch", "else_branch"), graphs, strict=True))
        node = node_of(operators()["", "If"], [value], bodies, 0)
        made = Branch(
            node, scope, condition, len(self._born), self._output, self._filler, self._same
        )
        made.yes = self.open_scope(graphs[0], scope, condition)
        made.no = self.open_scope(graphs[1], scope)
        made.no.condition = negate(condition)
        made.yes.owner = made.no.owner = made
        scope.nodes.insert(node)
        scope.branches[condition] = made
        return made

    def _output(self, made: ir.Value, yes: ir.Value, no: ir.Value, scope: Scope) -> None:
        a, b = self.types.types.get(yes), self.types.types.get(no)
        assert isinstance(a, TensorType)
        shape = a.shape
        if isinstance(b, TensorType) and a.shape is not None and b.shape is not None:
            if len(a.shape) != len(b.shape):
                shape = None
            elif a.shape != b.shape:
                shape = tuple(
                    x if x == y else self.fresh("size")
                    for x, y in zip(a.shape, b.shape, strict=True)
                )
        self.set_type(made, TensorType(a.dtype, shape))
        self.add_home(made, scope)
        scope.nodes.note_sizes(made)

    def _filler(self, like: ir.Value, scope: Scope) -> ir.Value:
        """Return a value of the type of another one, of which nothing depends."""
        type_ = self.types.types[like]
        assert isinstance(type_, TensorType)
        shape = tuple(dim if isinstance(dim, int) else 1 for dim in type_.shape or ())
        dtype = type_.dtype.numpy()
        with self.at(scope):
            if dtype.kind in "OSU":
                content = np.full(shape, "", dtype=object)
                return scope.nodes.initializer(content, "filler")
            return self.value_of(
                self.op(
                    "ConstantOfShape",
                    np.array(shape, np.int64),
                    value=ir.tensor(np.zeros(1, dtype)),
                )
            )

    def _same(self, value: ir.Value, scope: Scope) -> ir.Value:
        """Return a value that lies in a scope and is no other output of it."""
        is_free = self.homes.get(value) is scope and value not in scope.graph.outputs
        if is_free and value.producer() is not None:
            return value
        with self.at(scope):
            return scope.nodes._node("Identity", self.visible(value))

    def own(self, value: ir.Value, scope: Scope) -> ir.Value:
        """Return a value as the next output of a scope."""
        return self._same(value, scope)

    def zeros(self, type_: TensorType) -> ir.Value:
        """Return a tensor that nothing depends on."""
        shape = tuple(dim if isinstance(dim, int) else 1 for dim in type_.shape or ())
        return self.root.nodes.initializer(np.zeros(shape, type_.dtype.numpy()), "filler")

    def as_scalar(self, value: Value, kind: str) -> Tensor:
        """Return a number of Python as a scalar: ``int``, ``bool`` or ``float``."""
        if kind == "float":
            return self.real_tensor(value)
        if kind == "int":
            return self.size(value)
        if isinstance(value, Truth):
            return self.tensor(as_value(self, value.term))
        return self.constant(np.array(bool(value)))

    def new_truth(self) -> str:
        """Return a name for a truth value that is not taken."""
        return f"?state {len(self.truths)} {next(self._numbers)}"

    # Attempts.

    def scratch_scope(self) -> Scope:
        """Return a scope that is thrown away."""
        return self.open_scope(ir.Graph([], [], nodes=[], name="scratch"), self.scope)

    def marked(self) -> tuple[Any, ...]:
        """Return what :meth:`back_to` goes back to."""
        kept = (self.numbers, self.truths, self.sizes, self._counts, self._keys, self._computations)
        return tuple(dict(one) for one in kept)

    def back_to(self, mark: tuple[Any, ...]) -> None:
        """Forget the names of what was made since."""
        names = (
            self.numbers,
            self.truths,
            self.sizes,
            self._counts,
            self._keys,
            self._computations,
        )
        for one, before in zip(names, mark, strict=True):
            one.clear()  # type: ignore[attr-defined]
            one.update(before)  # type: ignore[attr-defined]

    def choose(self, condition: Term, yes: Tensor, no: Tensor, shape: Shape | None) -> Tensor:
        """Return what is one tensor where a condition holds, and another one elsewhere."""
        scope = self.scope
        branch = scope.branches.get(condition)
        if branch is None or not (
            self._reaches(yes.value, branch, branch.yes)
            and self._reaches(no.value, branch, branch.no)
        ):
            branch = self.branch(condition)
        sides = []
        for tensor, side in ((yes, branch.yes), (no, branch.no)):
            with self.at(side):
                sides.append(self.value_of(tensor))
        value = branch.pair(*sides)
        self.set_type(value, TensorType(yes.dtype, shape))
        scope.nodes.note_sizes(value)
        kind = yes.kind
        device = yes.device if yes.device == no.device else ""
        made = self._wrap(value, TensorType(yes.dtype, shape), None, kind, device)
        made.origin = yes.origin
        return made

    def _reaches(self, value: ir.Value, branch: Branch, side: Scope) -> bool:
        """Whether a side of a branch that is there already may use a value."""
        home = self.homes.get(value)
        if home is None:
            return True
        if home.is_within(side):
            return True
        return self._born[value] < branch.since and not (
            home.is_within(branch.yes) or home.is_within(branch.no)
        )


__all__ = ["GraphEmitter"]
