"""Operators as nodes of a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.errors import TypeInferenceError
from hagane.graph.types import TensorType, Type, to_ir_shape
from hagane.graph.walk import PLACE
from hagane.ops.builder.interpreter import Call
from hagane.ops.builder.node import node_of
from hagane.ops.definition import Array
from hagane.ops.inference import GraphTypes, infer_added
from hagane.ops.values import tensor_to_array
from hagane.symbolic import Dim, Expr, line_in, symbols_of


@dataclass(frozen=True, slots=True)
class Shown:
    """An axis of a value that shows a size, as ``factor * size + rest``."""

    value: ir.Value
    axis: int
    factor: int = 1
    rest: int = 0


class Nodes:
    """Nodes that are added to a graph.

    Args:
        graph: The graph, or a subgraph.
        types: The types of its values; the new ones are added.
        before: The node in front of which new ones are inserted; they are appended if None.
        name: The beginning of the nodes' names; the operator's name and a number follow.
        added: Is called with each new node.
        outer: The interpreter of the graph around this one.
        typed: Whether nodes are checked and typed as they come; a graph whose values have no
            types yet takes them as they are.
    """

    level = 0

    def __init__(
        self,
        graph: ir.Graph,
        types: GraphTypes | None = None,
        *,
        before: ir.Node | None = None,
        name: str = "",
        added: Callable[[ir.Node], None] = lambda node: None,
        outer: Nodes | None = None,
        typed: bool = True,
    ):
        self.graph = graph
        self.types = GraphTypes() if types is None else types
        self.before = before
        self.name = name
        self.outer = outer
        self.typed = typed
        self._added = added
        self._numbers: dict[str, int] = {}  # of the last initializers of a name
        self._sizes: dict[str, Shown] = {}
        self._formulas: dict[Dim, ir.Value] = {}
        for value in graph.inputs:
            self.note_sizes(value)

    # ---- the interpreter ----

    def apply(self, call: Call, n_outputs: int) -> Sequence[ir.Value]:
        """Insert a node and return its outputs.

        Raises:
            TypeInferenceError: The operands do not fit the operator.
        """
        attributes = {
            name: self._body(call, name) if callable(item) else item
            for name, item in call.attributes.items()
        }
        name = f"{self.name} {call.op.name}" if self.name else None
        node = node_of(call.op, call.inputs, attributes, n_outputs, name)
        self.insert(node)
        if self.typed:
            infer_added(node, self.types)
            for value in node.outputs:
                self.note_sizes(value)
        return node.outputs

    def insert(self, node: ir.Node) -> None:
        """Put a node where this interpreter puts them, with the place of the one it is for."""
        origin = self._origin()
        if origin is not None and PLACE in origin.metadata_props:
            from hagane.graph.places import copy_place  # of captured models alone

            copy_place(origin, node)
        if self.before is None:
            self.graph.append(node)
        else:
            self.graph.insert_before(self.before, node)
        self._added(node)

    def _origin(self) -> ir.Node | None:
        """Return the node for which nodes are made, if there is one."""
        if self.before is not None or self.outer is None:
            return self.before
        return self.outer._origin()

    def _body(self, call: Call, name: str) -> ir.Graph:
        from hagane.ops.builder.control import trace_body

        return trace_body(self, call, name)

    def constant(self, content: Array) -> ir.Value:
        """Return an initializer, or a value that computes sizes from the shapes of values."""
        if content.dtype == object and any(isinstance(item, Expr) for item in content.flat):
            return self._computed(content)
        if content.dtype == object and not any(isinstance(item, str) for item in content.flat):
            content = content.astype(np.int64)
        return self.initializer(content, f"{self.name} constant".strip())

    def initializer(self, content: Array, name: str) -> ir.Value:
        """Return a new initializer under a name that is free in all graphs around."""
        number = self._numbers.get(name, 0)
        free = f"{name}_{number}" if number else name
        while self._is_taken(free):
            number += 1
            free = f"{name}_{number}"
        self._numbers[name] = number
        tensor = _tensor(np.asarray(content, order="C"), free)
        value = ir.Value(name=free, const_value=tensor)
        value.shape, value.type = ir.Shape(content.shape), ir.TensorType(tensor.dtype)
        self.graph.register_initializer(value)
        self.types.types[value] = TensorType(tensor.dtype, tuple(content.shape))
        self.types.values[value] = content
        return value

    def _is_taken(self, name: str) -> bool:
        if name in self.graph.initializers or any(v.name == name for v in self.graph.inputs):
            return True
        return self.outer is not None and self.outer._is_taken(name)

    def type_of(self, value: ir.Value) -> Type | None:
        """Return a value's type as far as it is known."""
        found = self.types.types.get(value)
        if found is None and value.const_value is not None:
            tensor = value.const_value
            return TensorType(tensor.dtype, tuple(int(str(dim)) for dim in tensor.shape))
        return found

    def content_of(self, value: ir.Value) -> Array | None:
        """Return the content of a value that the graph fixes, or that sizes give."""
        if value.const_value is not None:
            return tensor_to_array(value.const_value)
        return self.types.values.get(value)

    # ---- sizes ----

    def note_sizes(self, value: ir.Value) -> None:
        """Remember which sizes that have names, or are made of names, a value's shape shows."""
        found = self.types.types.get(value)
        if isinstance(found, TensorType):
            for axis, dim in enumerate(found.shape or ()):
                if not isinstance(dim, Expr):
                    continue
                self._sizes.setdefault(str(dim), Shown(value, axis))
                for name in symbols_of(dim):
                    line = line_in(dim, name)
                    if line is not None:
                        self._sizes.setdefault(name, Shown(value, axis, *line))

    def _computed(self, content: Array) -> ir.Value:
        """Return the array whose elements are sizes, computed when the graph runs."""
        flat = [self.size(item) for item in content.flat]
        if content.ndim == 0:
            return flat[0]
        axis = self.initializer(np.array([0]), "axis 0")
        lifted = [self._node("Unsqueeze", item, axis) for item in flat]
        joined = self._node("Concat", *lifted, axis=0)
        if content.ndim > 1:
            shape = self.initializer(np.array(content.shape, np.int64), "shape")
            joined = self._node("Reshape", joined, shape)
        self.types.values[joined] = content
        return joined

    def size(self, dim: Dim) -> ir.Value:
        """Return a size as a scalar of int64, computed from the shapes of values.

        Raises:
            TypeInferenceError: No value shows one of the names in it.
        """
        if dim in self._formulas:
            return self._formulas[dim]
        if not isinstance(dim, Expr):
            made = self.initializer(np.array(dim, np.int64), f"size {dim}")
        else:
            made = self._formula(dim)
            self.types.values[made] = np.array(dim, dtype=object)
        self._formulas[dim] = made
        return made

    def _formula(self, dim: Expr) -> ir.Value:
        # Coefficients may be fractions whose sum is whole.
        whole = lcm(*(Fraction(coefficient).denominator for coefficient in dim.terms.values()))
        total: ir.Value | None = None
        for monomial, coefficient in dim.terms.items():
            factor = int(coefficient * whole)
            term = None if factor == 1 and monomial else self.size(factor)
            for atom, power in monomial:
                value = self._atom(atom)
                for _ in range(power):
                    term = value if term is None else self._node("Mul", term, value)
            assert term is not None
            total = term if total is None else self._node("Add", total, term)
        assert total is not None
        total = self.fitting(dim, whole, total)
        return total if whole == 1 else self._node("Div", total, self.size(whole))

    def fitting(self, dim: Expr, whole: int, value: ir.Value) -> ir.Value:
        """Return a sum of products as it is put into a node: of sizes, it fits into 64 bits."""
        del dim, whole
        return value

    def _atom(self, atom: Any) -> ir.Value:
        if atom.is_symbol:
            return self._named(atom.head)
        whole = Expr({((atom, 1),): 1})
        if self._showing(str(whole)) and not all(map(self._showing, symbols_of(whole))):
            return self._named(str(whole))  # of names that no axis shows alone
        left, *rest = [self.size(argument) for argument in atom.arguments]
        if atom.head in ("mod", "floor"):
            rest = [self.divisor(atom.arguments[1], rest[0])]
        if atom.head == "mod":
            return self._node("Mod", left, rest[0])
        if atom.head == "floor":
            # Div rounds to zero; without its remainder, which has the divisor's sign, it is exact.
            exact = self._node("Sub", left, self._node("Mod", left, rest[0]))
            return self._node("Div", exact, rest[0])
        return self._node("Min" if atom.head == "min" else "Max", left, *rest)

    def divisor(self, dim: Dim | None, value: ir.Value) -> ir.Value:
        """Return a divisor as it is put into a node, given its formula and value: no size is 0."""
        del dim
        return value

    def _named(self, name: str) -> ir.Value:
        found = self._showing(name)
        if found is None:
            raise TypeInferenceError(f"no tensor here has an axis of size '{name}'")
        return self._read(found)

    def _read(self, shown: Shown) -> ir.Value:
        """Return a size from the shape that shows it."""
        shape = self._node("Shape", shown.value, start=shown.axis, end=shown.axis + 1)
        size = self._node("Squeeze", shape, self.initializer(np.array([0]), "axis 0"))
        if shown.rest:
            size = self._node("Sub", size, self.size(shown.rest))
        return size if shown.factor == 1 else self._node("Div", size, self.size(shown.factor))

    def _showing(self, size: str) -> Shown | None:
        """Return the axis of a value that shows a size."""
        outer: Nodes | None = self
        while outer is not None:
            if size in outer._sizes:
                return outer._sizes[size]
            outer = outer.outer
        return None

    def _node(self, name: str, *inputs: ir.Value, **attributes: Any) -> ir.Value:
        from hagane.ops.registry import operators

        return self.apply(Call(operators()["", name], inputs, attributes), 1)[0]


def new_input(name: str, type_: TensorType, types: GraphTypes) -> ir.Value:
    """Return a value that can be an input of a graph."""
    value = ir.Value(name=name, type=ir.TensorType(type_.dtype), shape=to_ir_shape(type_.shape))
    types.types[value] = type_
    return value


def _tensor(array: Array, name: str) -> ir.TensorProtocol:
    """Return an array as a tensor; of ``str`` objects, as one of text."""
    if array.dtype == object:
        texts = [str(item).encode("utf-8", "surrogateescape") for item in array.ravel()]
        return ir.StringTensor(texts, shape=ir.Shape(array.shape), name=name)
    return ir.tensor(array, name=name)
