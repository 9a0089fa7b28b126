"""A type rule's view of one node."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, Protocol

import numpy as np
import onnx_ir as ir

from hagane.errors import TypeInferenceError
from hagane.graph.types import Shape, TensorType, Type
from hagane.graph.verify import describe
from hagane.ops.definition import Array, OpDef
from hagane.ops.values import texts_of
from hagane.symbolic import Dim, Expr, definitely_different, maximum


class RankUnknown(Exception):  # control flow, never seen outside
    """A rule asked for the shape of a tensor whose rank is not known."""


class Judge(Protocol):
    """Decides whether two dimensions differ."""

    def differ(self, left: Dim, right: Dim) -> bool:
        """Whether some sizes make ``left`` and ``right`` different, as far as that matters here."""
        ...

    def clash(self, left: Dim, right: Dim) -> bool:
        """Whether some sizes keep the two from broadcasting: different, and neither 1."""
        ...

    def wider(self, left: Dim, right: Dim) -> Dim:
        """Return the size of two that broadcast."""
        ...


class _Lenient:
    """Dimensions differ where cheap rules show that they always do: files promise too little."""

    def differ(self, left: Dim, right: Dim) -> bool:
        return definitely_different(left, right)

    clash = differ

    def wider(self, left: Dim, right: Dim) -> Dim:
        # Valid shapes have equal sizes or a 1 here, so the larger one is the result.
        return maximum(left, right)


class InferContext:
    """One node, with the types and known values of its inputs.

    Args:
        node: The node.
        op: Its operator.
        types: The type of each input; None for an absent one.
        values: The known value of each input, or None. Elements of an object array may be
            dimensions (``Expr``).
        attributes: Attributes with their defaults filled in.
        fresh: Makes a dimension that nothing is known about.
        infer_graph: Infers a subgraph from the types and values of its inputs and returns the
            types and values of its outputs.
        parameter_names: The operator's names of its inputs.
        judge: Says whether two dimensions differ.
    """

    def __init__(
        self,
        node: ir.Node,
        op: OpDef,
        types: Sequence[Type | None],
        values: Sequence[Array | None],
        attributes: dict[str, Any],
        fresh: Callable[[str], Expr],
        infer_graph: Callable[..., tuple[list[Type | None], list[Array | None]]],
        parameter_names: Sequence[str],
        judge: Judge | None = None,
    ):
        self.node = node
        self.op = op
        self.attributes = attributes
        self.n_inputs = len(types)
        self.n_outputs = len(node.outputs)
        self.infer_graph = infer_graph
        self._types = types
        self._values = values
        self._fresh = fresh
        self._names = parameter_names
        self._judge = judge or _Lenient()

    def has(self, index: int) -> bool:
        """Whether input ``index`` is present."""
        return index < self.n_inputs and self._types[index] is not None

    def type(self, index: int) -> Type:
        """Return the type of input ``index``."""
        found = self._types[index]
        if found is None:
            raise RankUnknown
        return found

    def tensor(self, index: int) -> TensorType:
        """Return the type of input ``index``, which has to be a tensor."""
        found = self.type(index)
        if not isinstance(found, TensorType):
            self.fail(f"expected a tensor as input '{self.name(index)}', got {found}")
        return found

    def dtype(self, index: int) -> ir.DataType:
        """Return the element type of input ``index``."""
        return self.tensor(index).dtype

    def shape(self, index: int, rank: int | None = None) -> Shape:
        """Return the shape of input ``index``, which has to have ``rank`` axes if given."""
        found = self.tensor(index)
        if found.shape is None:
            raise RankUnknown
        if rank is not None and len(found.shape) != rank:
            self.fail(f"expected input '{self.name(index)}' to have {rank} axes, got {found}")
        return found.shape

    def known_rank(self, index: int) -> int | None:
        """Return the number of axes of input ``index`` if it is known."""
        found = self._types[index]
        if isinstance(found, TensorType) and found.shape is not None:
            return len(found.shape)
        return None

    def data(self, index: int) -> Array | None:
        """Return the value of input ``index`` if it is known; it may hold dimensions."""
        return self._values[index] if index < self.n_inputs else None

    def constant(self, index: int) -> Array | None:
        """Return the value of input ``index`` if it is known and holds plain numbers."""
        value = self.data(index)
        return None if value is None or value.dtype == object else value

    def ints(self, index: int) -> tuple[int, ...] | None:
        """Return the plain integers of input ``index`` if all are known."""
        value = self.constant(index)
        return None if value is None else tuple(int(item) for item in value.ravel())

    def dims(self, index: int) -> tuple[Dim, ...] | None:
        """Return the elements of input ``index`` as dimensions, if known.

        If only the number of elements is known, each is a dimension of its own.
        """
        value = self.data(index)
        if value is not None:
            return tuple(item if isinstance(item, Expr) else int(item) for item in value.ravel())
        found = self._types[index]
        if isinstance(found, TensorType) and found.shape is not None and len(found.shape) == 1:
            length = found.shape[0]
            if isinstance(length, int) and length <= 64:
                return tuple(self.fresh() for _ in range(length))
        return None

    def attr(self, name: str, default: Any = None) -> Any:
        """Return the attribute ``name``, its schema's default, or ``default``."""
        return self.attributes.get(name, default)

    def name(self, index: int) -> str:
        """Return the operator's name of input ``index``."""
        return self._names[min(index, len(self._names) - 1)] if self._names else str(index)

    def fresh(self, label: str = "") -> Expr:
        """Return a dimension that nothing is known about."""
        return self._fresh(label or self.op.name.lower())

    def axis(self, axis: int, rank: int, what: str = "axis") -> int:
        """Return ``axis`` counted from the front, checked against ``rank``."""
        if not -rank <= axis < rank:
            self.fail(f"{what}={axis} is out of range for {rank} axes: {self.inputs_text()}")
        return axis % rank

    def unify(self, left: Dim, right: Dim, message: str) -> Dim:
        """Return the better known of two dimensions that have to be equal.

        Fails with ``message`` when they cannot be equal.
        """
        if self.differ(left, right):
            self.fail(f"{message}; got {self.inputs_text()}")
        return right if isinstance(right, int) else left

    def fit(self, index: int, *shapes: Sequence[Dim | None]) -> None:
        """Fail unless input ``index`` has one of some shapes, if it is there and its rank is known.

        Of several shapes, the first one of its rank counts; an axis of None may have any size.
        """
        if not self.has(index) or self.known_rank(index) is None:
            return
        found = self.shape(index)
        texts = [", ".join("?" if d is None else str(d) for d in shape) for shape in shapes]
        wanted = " or ".join(f"[{text}]" for text in texts)
        message = f"expected '{self.name(index)}' of the shape {wanted}"
        for shape in shapes:
            if len(shape) == len(found):
                for left, right in zip(found, shape, strict=True):
                    if right is not None:
                        self.unify(left, right, message)
                return
        self.fail(f"{message}, got {self.inputs_text()}")

    def one_or(self, index: int, axis: int, size: Dim) -> Dim | None:
        """Return what an axis may be for ``fit``: 1 or a size, None where it is open."""
        found = self.shape(index)[axis]
        return None if isinstance(found, Expr) and found != size else 1 if found == 1 else size

    def differ(self, left: Dim, right: Dim) -> bool:
        """Whether two dimensions that have to be equal are not."""
        return self._judge.differ(left, right)

    def broadcast(self, *shapes: Shape) -> Shape:
        """Return the shape that ``shapes`` broadcast to, by NumPy's rule."""
        rank = max((len(shape) for shape in shapes), default=0)
        result: list[Dim] = []
        for axis in range(-rank, 0):
            dims = [shape[axis] for shape in shapes if len(shape) >= -axis]
            result.append(self._broadcast_dims(dims, axis))
        return tuple(result)

    def _broadcast_dims(self, dims: Sequence[Dim], axis: int) -> Dim:
        result: Dim = 1
        for dim in dims:
            if dim == result or dim == 1:
                continue
            if result == 1:
                result = dim
            elif self._judge.clash(result, dim):
                self.fail(
                    f"cannot broadcast {self.inputs_text()}: axis {axis} has sizes "
                    f"{' and '.join(str(d) for d in dims)}, expected equal sizes or 1"
                )
            elif isinstance(dim, int):
                result = dim
            elif isinstance(result, Expr):
                result = self._judge.wider(result, dim)
        return result

    def inputs_text(self) -> str:
        """Return the present inputs with their types, for messages."""
        return ", ".join(
            f"{self.name(i)}: {found}" for i, found in enumerate(self._types) if found is not None
        )

    def fail(self, message: str) -> NoReturn:
        """Raise an error about this node."""
        raise TypeInferenceError(f"{describe(self.node)}: {message}")


def known_attributes(node: ir.Node, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return a node's attributes as plain values, with ``defaults`` for the absent ones."""
    values = dict(defaults)
    for name, attribute in node.attributes.items():
        try:
            values[name] = _attribute_value(attribute)
        except (AssertionError, ValueError) as error:  # the element type is not that of the content
            raise TypeInferenceError(
                f"{describe(node)}: attribute '{name}': expected a whole tensor, got a damaged "
                f"one: {error}"
            ) from error
    return values


def _attribute_value(attribute: ir.Attr) -> Any:
    if attribute.type == ir.AttributeType.TENSOR:
        return _tensor_value(attribute.value)  # (`as_tensor` asks for each member of the protocol)
    if attribute.type == ir.AttributeType.TENSORS:
        return tuple(map(_tensor_value, attribute.as_tensors()))
    if attribute.type in (
        ir.AttributeType.INTS,
        ir.AttributeType.FLOATS,
        ir.AttributeType.STRINGS,
    ):
        return tuple(attribute.value)
    return attribute.value


def _tensor_value(tensor: ir.TensorProtocol) -> Array:
    return texts_of(tensor) if tensor.dtype == ir.DataType.STRING else tensor.numpy()


def as_data(value: Array, dtype: ir.DataType) -> Array:
    """Return an array of dimensions, as plain numbers where it holds no expression."""
    if value.dtype != object or dtype == ir.DataType.STRING:
        return value
    if any(isinstance(item, Expr) for item in value.ravel()):
        return value
    return np.asarray(value.tolist()).astype(dtype.numpy()).reshape(value.shape)
