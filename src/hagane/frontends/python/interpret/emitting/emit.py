"""Operators applied to tensors of the program: nodes are made, and typed by the rules of ``ops/``.

Library tables say everything through this: by its own ``op``, or by functions over the builder,
of which it is an interpreter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
import onnx_ir as ir

from hagane.errors import TypeInferenceError, UnsupportedModel
from hagane.frontends.python.interpret.emitting.bodies import Bodies, traced, types_of
from hagane.frontends.python.interpret.emitting.counts import Counts
from hagane.frontends.python.interpret.emitting.recorded import Recorded
from hagane.frontends.python.interpret.emitting.types_alone import TypesAlone
from hagane.frontends.python.interpret.emitting.writes import Writes
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.content import as_array
from hagane.frontends.python.values.multiples import multiples_told
from hagane.frontends.python.values.pairing import is_meant
from hagane.frontends.python.values.strides import in_order, order_of
from hagane.frontends.python.values.values import (
    Real,
    Tensor,
    Value,
)
from hagane.graph.types import SequenceType, Shape, TensorType, Type, dtype_name
from hagane.ops.builder import Call, interpreting, library_node, node_of, op
from hagane.ops.definition import Array
from hagane.ops.gradient.marks import mark_stopped
from hagane.ops.layout.stopping import STOP
from hagane.ops.node import infer_node
from hagane.ops.values import array_dtype
from hagane.symbolic import Expr
from hagane.symbolic.questions import Knowledge

_ARITHMETIC = frozenset(("Add", "Sub", "Mul", "Div", "Pow"))
Input = Tensor | Array | Sequence[int] | None


class Emitter(TypesAlone):
    """Makes nodes, types them, and judges the claims that their types make about sizes.

    Args:
        knowledge: The facts of sizes.
        assume: Told of assumptions, in words.
    """

    level = 0
    still = False  # whether the program computes without gradients now
    began_still = False  # whether it does from its start
    entered: frozenset[bool] = frozenset()  # how it has said so itself
    ordered: frozenset[ir.Value] = frozenset()  # taken to lie in order where views are written
    own_backward = False  # whether functions of the program have the gradients that it gives them
    without_own = False  # whether there are such functions, and they have none yet
    lacks_own = False  # whether these are missed

    def __init__(self, knowledge: Knowledge, assume: Callable[[str], None]):
        super().__init__(knowledge, assume)
        self.nodes: list[ir.Node] = []
        self.backwards: set[object] = set()  # classes whose backward passes are being followed
        self.tensors: dict[ir.Value, Tensor] = {}
        self.kind = "torch.Tensor"
        self._place: str | None = None  # where results lie, their operands aside
        self.anywhere = "cpu"  # where results of constants lie; empty inside of a function
        self.writes = None if self.builds else Writes()
        self.recorded = None if self.builds else Recorded()
        self._counts = Counts(knowledge, self.tensors, self.fresh)

    # Sizes.

    def count(self, label: str, source: Tensor) -> Expr:
        """Return the size that the content of ``source`` decides, such as how many are not zero."""
        return self._counts.count(label, self._now(source))

    # Tensors.

    def new(
        self,
        dtype: ir.DataType,
        shape: Shape | None,
        *,
        kind: str = "",
        known: Array | None = None,
        device: str = "cpu",
        name: str | None = None,
    ) -> Tensor:
        """Return a tensor that no operator made."""
        value = ir.Value(name=name, type=ir.TensorType(dtype))
        if self.writes is not None:
            self.writes.note_made(value)
        return Tensor(dtype, shape, kind or self.kind, value, self, known, device)

    def constant(self, content: Value, dtype: ir.DataType | None = None) -> Tensor:
        """Return known content as a tensor; nested lists may hold sizes."""
        array = content if isinstance(content, np.ndarray) else as_array(content, dtype)
        if dtype is not None and array.dtype != object:
            array = array.astype(dtype.numpy())
        found = dtype or (ir.DataType.INT64 if array.dtype == object else array_dtype(array))
        made = self.new(found, tuple(array.shape), known=array)
        if array.dtype.kind not in "OSU":  # sizes are computed where a graph is written
            made.value.const_value = ir.tensor(array)
        return made

    def op(
        self,
        name: str,
        *inputs: Input,
        outputs: int = 1,
        domain: str = "",
        kind: str = "",
        device: str | None = None,
        **attributes: Any,
    ) -> Any:
        """Apply an operator; attributes that are None are left to their defaults.

        Returns:
            The output; a tuple where ``outputs`` is more than one.
        """
        tensors = [self._tensor(item) for item in inputs]
        if name in _ARITHMETIC and not self.builds:  # a graph pairs them as the program does
            self._refuse_luck([tensor for tensor in tensors if tensor is not None])
        before, self._place = self._place, device
        try:
            with interpreting(self):
                made = op(name, *tensors, outputs=outputs, domain=domain, **attributes)
        finally:
            self._place = before
        if kind:
            for tensor in (made,) if outputs == 1 else made:
                tensor.kind = kind
        return made

    # The interpreter of the builder.

    def apply(self, call: Call, n_outputs: int) -> Sequence[Tensor]:
        """Record a node, and return its outputs, typed by the rule of the operator."""
        given = [tensor for tensor in call.inputs if tensor is not None]
        place = common_device(given, self.anywhere) if self._place is None else self._place
        kinds = [tensor.kind for tensor in given if not tensor.known_only]
        values = [None if tensor is None else self.value_of(tensor) for tensor in call.inputs]
        bodies: Bodies = {}
        attributes = {
            name: traced(self, call, name, bodies) if callable(item) else item
            for name, item in call.attributes.items()
        }
        node = node_of(call.op, values, attributes, n_outputs, self.label or None)
        made = self._infer(node, call.inputs, types_of(bodies) if bodies else _no_graphs)
        self.record(node, [type_ for type_, _ in made])
        results = [
            self._wrap(value, type_, known, kinds[0] if kinds else self.kind, place)
            for value, (type_, known) in zip(node.outputs, made, strict=True)
        ]
        if self.recorded is not None:
            self.recorded.note(given, node.outputs, still=self.still)
        if call.op.name in _KEEPING_ORDER:
            self._keep_order(given, results[0])
        if self.still and self.training is not None and call.op.name != STOP:
            return [self.stopped(result) for result in results]
        if self.still and self.builds and (self.entered or not self.began_still):
            mark_stopped(node)
        return results

    def _keep_order(self, given: Sequence[Tensor], made: Tensor) -> None:
        """Have a result lie in memory in the order of its first operand of several axes."""
        for x in given:
            if x.shape is None or made.shape is None:
                return
            if sum(size != 1 for size in x.shape) > 1:
                if x.strides is not None and len(x.shape) == len(made.shape):
                    order = order_of(x, self.knowledge.is_nonnegative)
                    made.strides = None if order is None else in_order(made.shape, order)
                return

    def enter(self, *, still: bool) -> None:
        """Compute without gradients, or with them, from here on."""
        self.still = still
        self.entered |= {still}

    def stopped(self, tensor: Tensor) -> Tensor:
        """Return a tensor through which no gradient goes, in graphs."""
        real = tensor.dtype.is_floating_point() and not tensor.known_only
        if not (self.builds or self.training is not None) or not real:
            return tensor
        made: Tensor = self.op(STOP, tensor, domain="hagane", device=tensor.device)
        made.kind, made.strides = tensor.kind, tensor.strides
        return made

    def value_of(self, tensor: Tensor) -> ir.Value:
        """Return the graph value that stands for a tensor where the next node lies."""
        return self._now(tensor)

    def _now(self, tensor: Tensor) -> ir.Value:
        if self.writes is None:
            return tensor.value
        tensor.hold()
        value = self.writes.now(tensor.value)
        self.tensors.setdefault(value, tensor)
        return value

    def record(self, node: ir.Node, types: Sequence[Type | None]) -> None:
        """Keep a node, given the types of its outputs."""
        self.nodes.append(node)

    @contextmanager
    def inside(self, graph: ir.Graph) -> Iterator[None]:
        """Let nodes of the block belong to a body."""
        before, self.nodes = self.nodes, []
        try:
            yield
        finally:
            graph.extend(self.nodes)
            self.nodes = before

    def body_input(self, graph: ir.Graph, type_: Type | None) -> Tensor:
        """Return a new input of a body."""
        value = ir.Value(name=None)
        graph.inputs.append(value)
        return self._wrap(value, type_, None, self.kind, "cpu")

    def scalar(self, value: Tensor, *, whole: bool) -> Value:
        """Return the only element of a tensor, whose content is not known, as a number."""
        if not whole:
            return Real()
        return self._counts.item(self._now(value))

    def settle(self, tensor: Tensor) -> Tensor:
        """Return a tensor with known content that is no number of the program."""
        made: Tensor = self.op("Identity", tensor)
        return made

    def write(self, x: Tensor) -> None:
        """Note that the program has changed the content of a tensor that no graph computes."""
        x.known = None
        if self.writes is not None:
            self.writes.note_written(x)

    def share(self, x: Tensor, *others: Tensor) -> None:
        """Note that a tensor that no graph computes may have the memory of others."""
        if self.writes is not None:
            self.writes.note_shared(x, others)

    def real_tensor(self, value: Value) -> Tensor:
        """Return a number of Python as a scalar of float64, of which only the type is known."""
        del value
        return self.new(ir.DataType.DOUBLE, ())

    def type_of(self, value: Tensor) -> TensorType:
        """Return the type of a tensor."""
        return TensorType(value.dtype, value.shape)

    def content_of(self, value: Tensor) -> Array | None:
        """Return the content of a tensor, if it is known."""
        return value.known

    def typed(
        self, name: str, inputs: Sequence[Tensor], dtype: ir.DataType, shape: Shape | None
    ) -> Tensor:
        """Return the result of an operation of a library that is not taken apart into operators.

        The node lies in the domain ``hagane.library``; its type is given.
        """
        device = common_device(inputs)
        node = library_node(name, [self._now(x) for x in inputs])
        self.nodes.append(node)
        if self.recorded is not None:
            self.recorded.note(inputs, node.outputs, still=self.still)
        kinds = [tensor.kind for tensor in inputs if not tensor.known_only]
        type_ = TensorType(dtype, shape)
        return self._wrap(node.outputs[0], type_, None, kinds[0] if kinds else self.kind, device)

    def like(self, x: Tensor, dtype: ir.DataType) -> Tensor:
        """Return a tensor of the shape and place of ``x`` with another element type."""
        made = self.typed("Cast", [x], dtype, x.shape)
        made.origin = x.origin
        return made

    def on(self, x: Tensor, device: str) -> Tensor:
        """Return ``x`` on another device."""
        if x.device == device:
            return x
        made = replace(x, device=device, parameter=False)
        if x.known_only:
            made.value = ir.Value(type=ir.TensorType(x.dtype))
        return made

    def _infer(
        self, node: ir.Node, tensors: Sequence[Tensor | None], infer_graph: Any
    ) -> list[tuple[Type | None, Array | None]]:
        types = [None if t is None else TensorType(t.dtype, t.shape) for t in tensors]
        values = [None if t is None else t.known for t in tensors]
        self.clear()
        try:
            self.tensors.update({t.value: t for t in tensors if t is not None})
            return infer_node(
                node,
                types,
                values,
                fresh=self.fresh,
                infer_graph=infer_graph,
                judge=self,
            )
        except (TypeInferenceError, UnsupportedModel) as error:
            self.refuse(str(error), [t for t in tensors if t is not None])

    def _tensor(self, item: Input) -> Tensor | None:
        return item if item is None or isinstance(item, Tensor) else self.constant(item)

    def _wrap(
        self, value: ir.Value, type_: Type | None, known: Array | None, kind: str, device: str
    ) -> Tensor:
        if isinstance(type_, SequenceType):
            raise AssertionError("sequences are lists of the program")
        dtype = type_.dtype if isinstance(type_, TensorType) else ir.DataType.UNDEFINED
        shape = type_.shape if isinstance(type_, TensorType) else None
        if self.writes is not None:
            self.writes.note_made(value)
        made = Tensor(dtype, shape, kind, value, self, known, device)
        self.tensors[value] = made
        return made

    # Failures.

    def _refuse_luck(self, tensors: Sequence[Tensor]) -> None:
        """Refuse (n, 1) with (n,): the result (n, n) pairs all elements, which nobody means."""
        if len(tensors) != 2 or tensors[0].shape is None or tensors[1].shape is None:
            return
        low, high = sorted(tensors, key=lambda tensor: tensor.rank)
        assert low.shape is not None
        assert high.shape is not None
        if low.rank and high.rank == low.rank + 1 and high.shape[-1] == 1:
            shared = low.shape[-1]
            alike = isinstance(shared, Expr) and high.shape[:-1] == low.shape
            if alike and not is_meant(high, low, self.tensors):
                first, second = (", ".join(map(str, x.shape or ())) for x in (high, low))
                self.fail(
                    "broadcast",
                    f"the shapes ({first}) and ({second},) broadcast to every pair of elements",
                    high,
                    low,
                    remedy="squeeze(-1) the first, or unsqueeze(-1) the second",
                )

    def refuse(self, message: str, tensors: Sequence[Tensor]) -> NoReturn:
        """Raise an error that a type rule found."""
        code = "shape-mismatch"
        if "element type" in message or "-point" in message or "integer input" in message:
            code = "dtype-mismatch"
        remedy = multiples_told([tensor.shape for tensor in tensors], self.bare)
        raise CheckError(
            code, message, remedy=remedy, tensors=tuple(tensors),
            counterexample=self.counterexample, claim=self.claim,
        ) from None  # fmt: skip


def _no_graphs(*_: Any) -> NoReturn:
    raise AssertionError("no operator with a subgraph is emitted by tables")


# Operators whose results lie in memory as their operands do.
_KEEPING_ORDER = frozenset(
    ("Identity", "Cast", "Relu", "Neg", "Abs", "Exp", "Log", "Sqrt", "Tanh", "Sigmoid", "Erf",
     "LeakyRelu", "Gelu", "Add", "Sub", "Mul", "Div", "Equal", "Greater", "GreaterOrEqual", "Less",
     "LessOrEqual", "And", "Or", "Xor", "Not", "Pow", "Max", "Min", "Sign", "Floor", "Ceil",
     "Round")
)  # fmt: skip


def common_device(tensors: Sequence[Tensor], otherwise: str = "cpu") -> str:
    """Return the device that tensors share; scalars on the CPU go anywhere, as in PyTorch.

    Constants alone lie ``otherwise``.

    Raises:
        CheckError: Two of them lie on different devices.
    """
    found: Tensor | None = None
    for tensor in tensors:
        if not tensor.device or tensor.known_only or _is_free_scalar(tensor):
            continue
        if found is not None and found.device != tensor.device:
            raise CheckError(
                "device-mismatch",
                f"expected all tensors on one device, got one on '{found.device}' "
                f"({dtype_name(found.dtype)}) and one on '{tensor.device}' "
                f"({dtype_name(tensor.dtype)})",
                remedy=f"move one of them, as in .to('{found.device}')",
                tensors=(found, tensor),
            )
        found = found or tensor
    return found.device if found is not None else otherwise


def _is_free_scalar(tensor: Tensor) -> bool:
    return tensor.device == "cpu" and tensor.shape == ()
