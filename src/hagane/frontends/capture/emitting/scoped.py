"""Operators as nodes of the scope that the path lies in, and values seen from other scopes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.capture.emitting.described import Described
from hagane.frontends.capture.emitting.effects import Effects
from hagane.frontends.capture.emitting.growth import Began
from hagane.frontends.capture.emitting.scope import Scope
from hagane.frontends.capture.emitting.scope_nodes import ScopeNodes
from hagane.frontends.python.values.memory import (
    COMPLEX,
    Lazy,
    Written,
    base_of,
    memory_of,
    own,
    share,
    written_since,
)  # fmt: skip
from hagane.frontends.python.values.values import (
    Kinds,
    Many,
    Place,
    Tensor,
)
from hagane.graph.places import note_place
from hagane.graph.types import Shape, TensorType, Type, to_ir_shape, to_ir_type
from hagane.ops.builder import Call, node_of
from hagane.ops.builder.nodes import Shown
from hagane.ops.definition import Array
from hagane.ops.gradient.marks import is_stopped
from hagane.ops.inference import GraphTypes
from hagane.ops.registry import find, operators
from hagane.symbolic.questions import Knowledge
from hagane.symbolic.term import Term

_GRAPHS = (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)


class ScopedEmitter(Effects):
    """Makes nodes where the path of the interpretation lies.

    Args:
        knowledge: The facts of sizes, and the path.
        assume: Told of assumptions.
        place: Says where in the source the interpretation is.
        calls: Says which calls led there, the innermost first.
        names: Names of real arrays, by their identity.
    """

    builds = True
    literal = True

    def __init__(
        self,
        knowledge: Knowledge,
        assume: Callable[[str], None],
        place: Callable[[], Place | None],
        calls: Callable[[], Sequence[Place]],
        names: dict[int, str],
    ):
        super().__init__(knowledge, assume)
        self.place, self.calls = place, calls
        self._only_types = False
        self.compares = False  # whether claims about sizes of inputs are compared in the run
        self.asserts = False  # whether it fails where an assertion about data does
        self.names = names
        self.described: Callable[[Many], Described]  # the items of a list for a result
        self.given: dict[str, Callable[[Tensor], None]] = {}  # notes on arguments, by their name
        self.types = GraphTypes()
        self.numbers: dict[str, Tensor] = {}  # integers that the data decide, by name
        self.most: dict[str, int] = {}  # what their amounts never exceed, where that is known
        self.needed: list[ir.Value] = []  # where the runs need the number that is made now
        self.began: dict[str, Began] = {}  # how those got there that loops have handed on
        self.kinds: dict[str, Kinds] = {}  # the types that some of them have on other paths
        self.truths: dict[str, Tensor] = {}  # truth values, likewise
        self.sizes: dict[str, Shown] = {}
        self.shared: dict[object, ir.Value] = {}  # small constants by content
        self.homes: dict[ir.Value, Scope] = {}
        self._places: dict[ir.Value, Scope] = {}  # where the program makes known content
        self._born: dict[ir.Value, int] = {}
        self.stale = False  # whether a value was marked as one that may have been written since
        self._lazy: list[Lazy] = []  # code interpreted now that may be run later
        self.raises: dict[str, None] = {}  # errors that the data decide, in words
        self.trained_here: list[Tensor] = []  # tensors that the program lets have gradients
        self.unraised: list[ir.Value] = []  # false, of loops that fail where they raise one
        self._late: set[ir.Value] = set()  # memory that may be read later than it seems
        self.written: Callable[[], Written] = frozenset  # memory that the path has written
        self._contents: dict[ir.Value, tuple[Any, Callable[[], Array]]] = {}
        self._real: dict[int, tuple[Any, ir.Value]] = {}
        self._pairs: dict[int, tuple[Any, Any]] = {}  # complex arrays and their memory as pairs
        self._given_pairs: dict[ir.Value, Tensor] = {}  # the inputs that complex arguments are
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

    def at_root(self) -> AbstractContextManager[None]:
        """Add nodes in front of all branches and loops inside the block."""
        return self.at(self.root)

    def settle_home(self, node: ir.Node) -> None:
        """Note where a node's outputs lie, and from where in the source it came."""
        scope = next(s for s in self.scope.chain() if s.graph is node.graph)
        for value in node.outputs:
            self.add_home(value, scope)
        place = self.place()
        if place is not None:
            calls = [f"{call.file}:{call.line}" for call in self.calls()]
            note_place(node, f"{place.file}:{place.line}:{place.column}", calls)

    def add_home(self, value: ir.Value, scope: Scope) -> None:
        """Note where a value lies."""
        self.homes[value] = scope
        self._born[value] = len(self._born)

    def born(self, value: ir.Value) -> int:
        """Return how many values there were before one."""
        return self._born.get(value, -1)

    def made_so_far(self) -> int:
        """Return how many values there are."""
        return len(self._born)

    @contextmanager
    def lazily(self) -> Iterator[None]:
        """Note that the program may run the code of the block later."""
        lazy = Lazy(self.made_so_far())
        self._lazy.append(lazy)
        try:
            yield
        finally:
            self._lazy.pop()
            self._late |= lazy.read

    def late(self) -> frozenset[ir.Value]:
        """Return the memory that lazy code may read after it seems to have."""
        return frozenset(self._late)

    def forget_late(self, before: frozenset[ir.Value]) -> None:
        """Note that all lazy code since ``before``, a result of ``late``, has run to its end."""
        self._late = set(before)

    def handed(self, value: Any) -> None:
        """Note that lazy code has given out a value."""
        if isinstance(value, Tensor) and self._lazy:
            self._lazy[-1].handed.update(memory_of(value.value))
        elif isinstance(value, tuple):
            for item in value:
                self.handed(item)

    def is_late(self, value: ir.Value) -> bool:
        """Whether the program may read or write the memory of a value in another order."""
        memory = memory_of(value)
        outside = any(
            memory & lazy.handed or any(self.born(base) < lazy.since for base in memory)
            for lazy in self._lazy
        )
        return outside or bool(memory & self._late)

    def leaves_loop(self, value: ir.Value) -> bool:
        """Whether a value lies outside of the loop of the graph that is being made."""
        known = self.root if value in self._contents else self._places.get(value, self.root)
        home = self.homes.get(value, known)
        inner = self.scope.chain()
        loops = [s for s in inner if s.condition is None and s.parent is not None]
        return bool(loops) and not home.is_within(loops[0])

    def visible(self, value: ir.Value, scope: Scope | None = None) -> ir.Value:
        """Return the stand-in of a value in a scope; branches and loops hand theirs out."""
        scope = self.scope if scope is None else scope
        while value in self.homes and not scope.is_within(self.homes[value]):
            home = self.homes[value]
            if home.owner is None:
                self.fail(
                    "capture",
                    "what a function computes on the way back is read on the way forward, or kept "
                    "after the call; keep what the way forward computes",
                )
                raise AssertionError
            inner, value = value, home.owner.export(value, home)
            share(value, (inner,))
        return value

    # The values of nodes.

    @contextmanager
    def types_only(self) -> Iterator[None]:
        """Ask for types inside the block: values made there compute nothing."""
        before, self._only_types = self._only_types, True
        try:
            yield
        finally:
            self._only_types = before

    def value_of(self, tensor: Tensor) -> ir.Value:
        """Return the graph value that stands for a tensor where the next node lies.

        Raises:
            CheckError: Nothing in the graph computes it, or its content is written since.
        """
        value = tensor.value
        if not self._only_types:
            for lazy in self._lazy:
                lazy.read |= memory_of(value)
            place = written_since(value, self.born(value), self.written(), stale=self.stale)
            if place is not None:
                self.fail(
                    "capture",
                    f"the operation in place at {place} changes a tensor that shares its memory "
                    "with this one, which is read later; make a new tensor there, as in x = x + y "
                    "for x += y",
                )
        return self.standing_for(tensor)

    def standing_for(self, tensor: Tensor) -> ir.Value:
        """Return the graph value of a tensor as it was made.

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

    def base_of(self, tensor: Tensor) -> ir.Value:
        """Return the value whose memory a tensor has, of the graph too for the program's arrays."""
        known = tensor.value in self._contents
        return self._initializer(tensor.value) if known else base_of(tensor.value)

    def _cast(self, value: ir.Value, dtype: ir.DataType) -> ir.Value:
        return self.scope.nodes._node("Cast", value, to=int(dtype))

    def _initializer(self, value: ir.Value) -> ir.Value:
        found, content = self._contents[value]
        if id(found) not in self._real:
            name = self.names.get(id(found), "array")
            self._real[id(found)] = found, self.root.nodes.initializer(content(), name)
        return self._real[id(found)][1]

    def keep(self, tensor: Tensor, found: Any, content: Callable[[], Array]) -> None:
        """Take note of the real array behind a tensor."""
        self._contents[tensor.value] = found, content

    def object_of(self, tensor: Tensor) -> Any:
        """Return the real object behind a tensor; None if there is none."""
        return self._contents.get(tensor.value, (None, None))[0]

    def objects(self) -> dict[ir.Value, int]:
        """Return the identities of the real arrays behind initializers."""
        return {value: id(found) for found, value in self._real.values()}

    def may_be_trained(self, tensor: Tensor) -> bool:
        """Whether a parameter may be among the tensors that one is computed from."""
        trained = {made for found, made in self._real.values()
                   if getattr(found, "requires_grad", False)}  # fmt: skip
        seen: set[ir.Value | None] = {None}
        waiting: list[ir.Value | None] = [tensor.value]
        while waiting:
            value = waiting.pop()
            if value in trained:
                return True
            node = None if value is None or value in seen else value.producer()
            seen.add(value)
            if node is not None:
                if any(a.type in _GRAPHS for a in node.attributes.values()):
                    return True  # a branch or loop may read any
                waiting.extend(node.inputs)
        return False

    def gradients_from(self, tensor: Tensor) -> tuple[list[Any], bool]:
        """Return the trained arrays whose gradients a tensor has, and whether that is all.

        Of inputs, and of what branches and loops read, only the run knows whether they have any.
        """
        real = {made: found for found, made in self._real.values()}
        known = {value: found for value, (found, _) in self._contents.items()} | real
        found, closed = [], True
        seen: set[ir.Value | None] = {None}
        waiting: list[ir.Value | None] = [tensor.value]
        while waiting:
            value = waiting.pop()
            if value is None or value in seen:
                continue
            seen.add(value)
            node, dtype = value.producer(), value.dtype
            if value in known:
                found += [known[value]] if getattr(known[value], "requires_grad", False) else []
            elif node is None:
                held = value.meta.get("hagane.held")  # state that the call changes
                closed &= value.is_initializer() or (
                    held is not None and not getattr(held, "requires_grad", False)
                )
            elif any(a.type in _GRAPHS for a in node.attributes.values()):
                closed = False
            elif not is_stopped(node) and (dtype is None or dtype.is_floating_point()):
                waiting.extend(node.inputs)
        return found, closed

    def real_pair(self, tensor: Tensor) -> Tensor | None:
        """Return the input or real array that has a complex tensor's parts in a last axis of 2."""
        if tensor.value in self._given_pairs:
            return self._given_pairs[tensor.value]
        if tensor.value not in self._contents or tensor.shape is None:
            return None
        found, _ = self._contents[tensor.value]
        if id(found) not in self._pairs:
            pairs = pairs_of(found)
            self.names[id(pairs)] = self.names.get(id(found), "array")
            self._pairs[id(found)] = found, pairs
        pairs = self._pairs[id(found)][1]
        made = self.new(COMPLEX[tensor.dtype], (*tensor.shape, 2), kind=tensor.kind)
        self.keep(made, pairs, lambda: np.asarray(pairs))
        return made

    def name_of(self, tensor: Tensor) -> str:
        """Return the name of the real array behind a tensor; empty if there is none."""
        found, _ = self._contents.get(tensor.value, (None, None))
        return self.names.get(id(found), "")

    def _named(self, tensor: Tensor) -> str:
        """Return the name of the real array behind a tensor, given now if it had none."""
        found, _ = self._contents[tensor.value]
        if id(found) not in self.names:
            self.names[id(found)] = f"buffer.{len(self.names)}"
            if id(found) in self._real:
                self._real[id(found)][1].name = self.names[id(found)]
        return self.names[id(found)]

    def is_kept(self, tensor: Tensor) -> bool:
        """Whether a real array is behind a tensor."""
        return tensor.value in self._contents

    def settle(self, tensor: Tensor) -> Tensor:
        """Return a tensor with known content that is no number of the program."""
        identity = operators()["", "Identity"]
        node = node_of(identity, [ir.Value()], {}, 1)  # not in the graph
        tensor.value = node.outputs[0]
        own(tensor.value)
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

    @contextmanager
    def inside(self, graph: ir.Graph) -> Iterator[None]:
        """Let nodes of the block belong to a body, which is a scope of its own."""
        with self.at(self.open_scope(graph, self.scope)):
            yield

    def body_input(self, graph: ir.Graph, type_: Type | None) -> Tensor:
        """Return a new input of the body that the path lies in."""
        made = super().body_input(graph, type_)
        self.set_type(made.value, type_)
        self.add_home(made.value, self.scope)
        self.scope.nodes.note_sizes(made.value)
        return made

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
        node = self.nodes.pop()
        self._places[made.value] = self.scope
        for place in range(len(node.inputs)):  # it reads nothing
            node.replace_input_with(place, None)
        label = f"'{self.label}': " if self.label else ""
        self._reasons[made.value] = (
            f"{label}only the type of its result is known ({name}), no operators that compute it"
        )
        return made

    def explain(self, tensor: Tensor, reason: str) -> None:
        """Say why nothing computes a tensor of which only the type is known."""
        named = not self.label or reason.startswith(f"'{self.label}'")
        self._reasons[tensor.value] = reason if named else f"'{self.label}': {reason}"

    def again(
        self,
        value: ir.Value,
        old: ir.Value,
        new: ir.Value,
        known: dict[ir.Value, ir.Value] | None = None,
    ) -> ir.Value:
        """Return a view of one value as the same view of another one.

        Args:
            value: The view.
            old: Of which it is one.
            new: Of which it shall be one.
            known: Views that are made already, and takes others: views of views share them.

        Raises:
            CheckError: It is a view of something else.
        """
        known = {} if known is None else known
        if value is old:
            return new
        if value in known:
            return known[value]
        node = value.producer()
        first = None if node is None else node.inputs[0]
        if node is None or first is None:
            self.fail("capture", "a part of a tensor changes in place whose whole is not known; "
                      "make a new tensor")  # fmt: skip
        rest = [self.visible(item) for item in node.inputs[1:] if item is not None]
        attributes = {a.name: a.value for a in node.attributes.values()}
        source = self.visible(self.again(first, old, new, known))
        call = Call(find(node), (source, *rest), attributes)
        for before, made in zip(
            node.outputs, self.scope.nodes.apply(call, len(node.outputs)), strict=True
        ):
            type_ = self.types.types[before]
            is_kept = node.op_type != "BitCast"  # other views have the element type of the whole
            if isinstance(type_, TensorType) and source.type is not None and is_kept:
                type_ = TensorType(source.type.dtype, type_.shape)
            self.set_type(made, type_)
            self.add_home(made, self.scope)
            known[before] = made
        return known[value]

    def show_sizes(self, tensor: Tensor, shape: Shape) -> None:
        """Give a tensor the sizes that the reader knows, which can be computed from it then."""
        super().show_sizes(tensor, shape)
        self.set_type(tensor.value, TensorType(tensor.dtype, shape))
        self.scope.nodes.note_sizes(tensor.value)

    def add_input(self, tensor: Tensor, name: str) -> None:
        """Make a tensor an input of the graph."""
        value = tensor.value
        part = COMPLEX.get(tensor.dtype)
        if part is not None:
            if tensor.shape is None:
                self.fail("input", f"'{name}' is complex, and how many axes it has is not known")
            real = self.new(part, (*(tensor.shape or ()), 2), kind=tensor.kind)
            self._given_pairs[value] = real
            self.add_input(real, name)
            return
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


def pairs_of(array: Any) -> Any:
    """Return a complex array of PyTorch or NumPy as pairs of numbers in the same memory."""
    if isinstance(array, np.ndarray | np.generic):
        return np.ascontiguousarray(array).view(array.real.dtype).reshape(*array.shape, 2)
    return sys.modules["torch"].view_as_real(array.detach().resolve_conj())
