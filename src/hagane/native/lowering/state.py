"""Nodes to kernels: the state that all lowering rules share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import onnx_ir as ir

from hagane.graph.types import TensorType
from hagane.machine import Level
from hagane.native.kernels.expression import Expression, Leaf
from hagane.native.kernels.kernel import C_TYPES, Body, Kernel
from hagane.native.kernels.tensor import (
    Blocked,
    Buffer,
    Kind,
    Pads,
    Tensor,
    blocked_floats,
    keep_border,
    row_major,
)
from hagane.native.layouts.pairs import Paired, from_pairs, to_pairs
from hagane.native.layouts.quads import Quads, from_quads
from hagane.native.lowering.choices import Choices
from hagane.native.tiles.tile import Words
from hagane.ops.context import known_attributes
from hagane.ops.definition import Array
from hagane.ops.inference import GraphTypes
from hagane.ops.registry import schema_of
from hagane.symbolic import Dim, Expr, product

if TYPE_CHECKING:
    from hagane.native.rules.products.packed import Product, Rows

# Why a node is not native yet: it will be, once the sizes of the inputs are known.
AT_RUN_TIME = "a size is known only at run time"


class NotNative(Exception):
    """A node that has no native kernel as it stands; the message says why."""


@dataclass(frozen=True, slots=True)
class Lazy:
    """An elementwise value that is computed where it is used, or stored when that is not once.

    ``shape`` is that of the value; ``blocked`` is set where its operands are blocked images;
    ``operators`` names what it computes.
    """

    expression: Expression
    dtype: np.dtype[Any]
    shape: tuple[Dim, ...]
    blocked: bool
    operators: tuple[str, ...] = ()


Lowered: TypeAlias = "Tensor | Blocked | Lazy"
Rule: TypeAlias = "Callable[[Lowering, ir.Node], None]"


@dataclass
class Lowering:
    """Kernels of one segment as they come about.

    Attributes:
        level: Vector instructions to generate for.
        types: Types and known contents of the graph's values.
        constants: Arrays of initializers.
        outputs: Values that others read after the segment.
        threads: How many threads the kernels will be shared between.
        pairs: Whether products may be computed in bfloat16.
        choices: Forms of kernels that were found to be fastest.
        direct_only: Whether convolutions are computed as they are defined.
        wanted_pads: The zero border that convolutions want around an image.
        kernels: The result, in order.
        quads: Images of bytes that lie in blocks, whether or not they lie elsewhere too.
        planes: The zero borders of plain images that have them.
        packed: Left sides of products that lie in blocks of columns.
        products: Products, by where they lie, that could be stored in another form.
        rounded: Left sides of products that lie in row-major order, rounded to bfloat16.
        inner: Whether this is the body of a loop or branch.
        places: Where outputs of a body are to lie.
        grown: Outputs of loops whose shape is known when they have ended, and what to begin with.
    """

    level: Level
    types: GraphTypes
    constants: Mapping[ir.Value, Array]
    outputs: frozenset[ir.Value]
    threads: int = 1
    pairs: bool = False
    choices: Choices = field(default_factory=dict)
    direct_only: bool = False
    wanted_pads: Mapping[ir.Value, Pads] = field(default_factory=dict)
    kernels: list[Kernel] = field(default_factory=list)
    lowered: dict[ir.Value, Lowered] = field(default_factory=dict)
    done: set[ir.Node] = field(default_factory=set)
    inputs: dict[ir.Value, Buffer] = field(default_factory=dict)
    results: dict[ir.Value, Buffer] = field(default_factory=dict)
    nodes: frozenset[ir.Node] = frozenset()
    inner: bool = False
    places: dict[ir.Value, Tensor] = field(default_factory=dict)
    grown: dict[ir.Value, tuple[Dim, ...]] = field(default_factory=dict)
    _weights: dict[Any, Buffer] = field(default_factory=dict)
    _blocked: dict[ir.Value, Blocked] = field(default_factory=dict)
    _paired: dict[ir.Value, Paired] = field(default_factory=dict)
    quads: dict[ir.Value, Quads] = field(default_factory=dict)
    planes: dict[Buffer, Pads] = field(default_factory=dict)
    packed: dict[tuple[ir.Value, Words], Rows] = field(default_factory=dict)
    products: dict[Buffer, Product] = field(default_factory=dict)
    rounded: dict[ir.Value, Tensor] = field(default_factory=dict)

    @property
    def words(self) -> Words:
        """What products of floats are computed on, where tiles or pairs are at hand."""
        if self.pairs:
            return Words.PAIR
        return Words.TRIPLE if self.level.tiles else Words.FLOAT

    # ---- what is known of a value ----

    def type(self, value: ir.Value | None) -> TensorType:
        """Return the type of a tensor whose rank is known."""
        found = None if value is None else self.types.types.get(value)
        if not isinstance(found, TensorType) or found.shape is None:
            raise NotNative("an input or output is no tensor of known rank")
        return found

    def shape(self, value: ir.Value | None) -> tuple[Dim, ...]:
        """Return the dimensions of a value."""
        shape = self.type(value).shape
        assert shape is not None
        return shape

    def fixed_shape(self, value: ir.Value | None) -> tuple[int, ...]:
        """Return the dimensions of a value whose sizes are all numbers."""
        shape = self.shape(value)
        if not all(isinstance(dim, int) for dim in shape):
            raise NotNative(AT_RUN_TIME)
        return tuple(int(dim) for dim in shape)

    def dtype(self, value: ir.Value | None) -> np.dtype[Any]:
        """Return the element type of a value, if kernels can hold it."""
        dtype = self.type(value).dtype
        try:
            found = np.dtype(dtype.numpy())
        except TypeError:
            raise NotNative(f"element type {dtype.name}") from None
        if found.name not in C_TYPES:
            raise NotNative(f"element type {dtype.name}")
        return found

    def constant(self, value: ir.Value | None) -> Array | None:
        """Return the content of a value that the model fixes."""
        if value is None:
            return None
        if value in self.constants:
            return self.constants[value]
        known = self.types.values.get(value)
        if known is None or known.dtype == object:
            return None
        return known.reshape(self.fixed_shape(value))

    def is_float(self, value: ir.Value | None) -> bool:
        """Whether a value is float32."""
        return self.dtype(value) == np.float32

    def uses(self, value: ir.Value) -> int:
        """Return how often a value is read, by nodes and as an output of the segment."""
        return len(value.uses()) + (value in self.outputs)

    def only_use(self, value: ir.Value) -> ir.Node | None:
        """Return the one node of this segment that reads a value, if nothing else does."""
        if self.uses(value) != 1 or value in self.outputs:
            return None
        (use,) = value.uses()
        node = use.node
        # (Rules look for readers among operators of ONNX, by their names.)
        waits = node in self.nodes and node not in self.done and node.domain == ""
        return node if waits else None

    def attributes(self, node: ir.Node) -> dict[str, Any]:
        """Return a node's attributes, defaults filled in."""
        return known_attributes(node, schema_of(node).defaults)

    # ---- memory ----

    def weight(self, key: Any, make: Callable[[], Array | Iterable[Array]], count: int) -> Buffer:
        """Return the buffer of packed weights; equal keys share one.

        Args:
            key: What the content depends on.
            make: Returns the content, or its pieces in order, when its place is known.
            count: Bytes.
        """
        if key not in self._weights:
            self._weights[key] = Buffer(str(key), count, Kind.WEIGHT, make)
        return self._weights[key]

    def constant_tensor(self, value: ir.Value | None, array: Array) -> Tensor:
        """Return a constant as a tensor in the weights' memory."""
        kept = np.asarray(array, order="C")
        buffer = self.weight((id(value), kept.shape, kept.dtype.name), lambda: kept, kept.nbytes)
        return Tensor(buffer, kept.dtype, kept.shape, row_major(kept.shape))

    def new(self, name: str, dtype: np.dtype[Any], shape: Sequence[Dim]) -> Tensor:
        """Return fresh contiguous memory that lives for a part of the run."""
        buffer = Buffer(name, product(shape) * dtype.itemsize, Kind.ARENA)
        return Tensor(buffer, dtype, tuple(shape), row_major(shape))

    def result(self, value: ir.Value) -> Tensor:
        """Return fresh contiguous memory for a value, where the caller gets it if it is one."""
        dtype, shape = self.dtype(value), self.shape(value)
        if value in self.places and value not in self.results:
            self.results[value] = self.places[value].buffer
            return self.places[value]
        if value in self.outputs and value not in self.results and not self.inner:
            buffer = Buffer(str(value.name), product(shape) * dtype.itemsize, Kind.OUTPUT)
            self.results[value] = buffer
            return Tensor(buffer, dtype, shape, row_major(shape))
        return self.new(str(value.name), dtype, shape)

    def new_blocked(self, value: ir.Value, shape: Sequence[int]) -> Blocked:
        """Return fresh memory for an image in blocks, with the border that its readers want."""
        pads = self.wanted_pads.get(value, (0, 0, 0, 0))
        lanes = self.level.lanes
        floats = blocked_floats(shape, lanes, pads)
        buffer = Buffer(str(value.name), floats * 4, Kind.ARENA)
        image = Blocked(buffer, tuple(shape), lanes, pads)
        keep_border(image.view(), image.plane_stride)
        return image

    # ---- values in the form that a kernel wants ----

    def get(self, value: ir.Value | None) -> Lowered:
        """Return a value in whatever form it has."""
        if value is None:
            raise NotNative("an absent input")
        if value in self.lowered:
            return self.lowered[value]
        if value in self.quads:
            self.lowered[value] = from_quads(self, value, self.quads[value])
            return self.lowered[value]
        if value in self._paired:
            self.lowered[value] = from_pairs(self, value, self._paired[value])
            return self.lowered[value]
        array = self.constant(value)
        content = self.types.values.get(value)
        if array is None and content is not None:
            self.lowered[value] = self._sizes(value, content)
        elif array is not None:
            if array.dtype.name not in C_TYPES:
                raise NotNative(f"element type {array.dtype}")
            self.lowered[value] = self.constant_tensor(value, array)
        else:
            dtype, shape = self.dtype(value), self.shape(value)
            buffer = Buffer(str(value.name), product(shape) * dtype.itemsize, Kind.INPUT)
            self.inputs[value] = buffer
            self.lowered[value] = Tensor(buffer, dtype, shape, row_major(shape))
        return self.lowered[value]

    def _sizes(self, value: ir.Value, content: Array) -> Tensor:
        """Return a value made of sizes that are known at run time."""
        target = self.new(str(value.name), self.dtype(value), self.shape(value))
        body = Body()
        out = body.pointer(target, written=True)
        for i, item in enumerate(content.reshape(-1)):
            body.add(f"{out}[{i}] = {body.size(item if isinstance(item, Expr) else int(item))};")
        self.emit(f"sizes '{value.name}'", body, 1)
        return target

    def stored(self, value: ir.Value | None) -> Tensor | Blocked:
        """Return a value that lies in memory; a lazy one is computed now."""
        found = self.get(value)
        if isinstance(found, Lazy):
            assert value is not None
            found = self.store(value, found)
            self.lowered[value] = found
        return found

    def plain(self, value: ir.Value | None) -> Tensor:
        """Return a value as a strided tensor of its own shape."""
        found = self.stored(value)
        if isinstance(found, Blocked):
            assert value is not None
            found = self.unblock(value, found)
            self.lowered[value] = found
        return found

    def contiguous(self, value: ir.Value | None) -> Tensor:
        """Return a value in row-major order without gaps."""
        found = self.plain(value)
        if not found.contiguous:
            assert value is not None
            found = self.copy(found, self.new(str(value.name), found.dtype, found.shape))
            self.lowered[value] = found
        return found

    def blocked(self, value: ir.Value | None) -> Blocked:
        """Return an image in blocks of channels."""
        found = self.stored(value)
        if isinstance(found, Blocked):
            return found
        assert value is not None
        if value not in self._blocked:
            self._blocked[value] = self.block(value, found)
        return self._blocked[value]

    def paired(self, value: ir.Value) -> Paired:
        """Return an image in blocks of pairs of bfloat16."""
        if value not in self._paired:
            self._paired[value] = to_pairs(self, value, self.blocked(value))
        return self._paired[value]

    def is_placed(self, value: ir.Value) -> bool:
        """Whether a value was computed by a kernel, or held back."""
        return value in self.lowered or value in self._paired

    def only_paired(self, value: ir.Value) -> Paired | None:
        """Return an image that lies in pairs and nowhere else."""
        return None if value in self.lowered else self._paired.get(value)

    def image(self, value: ir.Value) -> Blocked | Paired:
        """Return an image in blocks, of pairs if it lies in these already."""
        return self._paired[value] if value in self._paired else self.blocked(value)

    def keep_image(self, value: ir.Value, image: Blocked | Paired | Quads) -> None:
        """Note where a value lies; one in pairs or quads has no other form."""
        if isinstance(image, Quads):
            self.quads[value] = image
        elif isinstance(image, Paired):
            self._paired[value] = image
        else:
            self.lowered[value] = image

    # ---- kernels ----

    def emit(
        self,
        node: ir.Node | str,
        body: Body,
        tasks: Dim,
        *,
        work: float = 0.0,
        flops: float = 0.0,
        scratch: Dim = 0,
        failure: str = "",
        failure_sizes: tuple[Dim, ...] = (),
        followers: Sequence[str] = (),
    ) -> None:
        """Append a kernel."""
        if isinstance(node, ir.Node):
            node = f"{'+'.join((node.op_type, *followers))} '{node.name}'"
        label = node
        self.kernels.append(
            Kernel(
                label,
                body.code(),
                tuple(body.pointers),
                tuple(body.sizes),
                tasks,
                work,
                flops,
                scratch or body.scratch,
                failure,
                failure_sizes,
            )
        )

    def store(self, value: ir.Value, lazy: Lazy) -> Tensor | Blocked:
        """Compute a lazy value into memory of its own."""
        from hagane.native.kernels.elementwise_loops import emit_elementwise
        from hagane.native.layouts.image_kernels import emit_image

        producer = value.producer()
        name = "" if producer is None else f" '{producer.name}'"
        label = "+".join(lazy.operators) + name
        if lazy.blocked:
            shape = tuple(int(dim) for dim in lazy.shape)
            target = self.new_blocked(value, shape)
            emit_image(self, label, lazy.expression, target.view())
            return target
        result = self.result(value)
        emit_elementwise(self, label, lazy.expression, result)
        return result

    def copy(self, source: Tensor, target: Tensor) -> Tensor:
        """Copy elements between two layouts of one shape."""
        from hagane.native.kernels.elementwise_loops import emit_elementwise

        emit_elementwise(self, f"copy '{source.buffer.name}'", Leaf(source), target)
        return target

    def block(self, value: ir.Value, source: Tensor) -> Blocked:
        """Bring a plain image into blocks."""
        from hagane.native.layouts.blocks import emit_block

        target = self.new_blocked(value, self.fixed_shape(value))
        emit_block(self, source, target)
        return target

    def unblock(self, value: ir.Value, source: Blocked) -> Tensor:
        """Bring an image in blocks into row-major order."""
        from hagane.native.layouts.blocks import emit_unblock

        one_pixel = source.rows * source.columns == 1 and not any(source.pads)
        if one_pixel and source.shape[1] % source.lanes == 0 and value not in self.outputs:
            return Tensor(source.buffer, source.dtype, source.shape, row_major(source.shape))
        target = self.result(value)
        emit_unblock(self, source, target)
        return target

    def finish(self) -> None:
        """Bring every output of the segment into memory that the caller gets."""
        for value in sorted(self.outputs, key=lambda v: str(v.name)):
            found = self.plain(value)
            if found.buffer is self.results.get(value) and found.contiguous:
                continue
            self.copy(found, self.result(value))

    # ---- bodies ----

    def body(self, nodes: Sequence[ir.Node], known: Mapping[ir.Value, Array]) -> Lowering:
        """Return the state for the body of one of the nodes.

        Args:
            nodes: The body's.
            known: All constants that it reads, those of outer graphs included.
        """
        return replace(
            self,
            constants=known,
            outputs=frozenset(),
            wanted_pads={},
            kernels=[],
            lowered={},
            done=set(),
            inputs={},
            results={},
            nodes=frozenset(nodes),
            inner=True,
            places={},
            _blocked={},
            _paired={},
            quads={},
            packed={},
            products={},
            rounded={},
        )


def operand(found: Lowered) -> Expression:
    """Return a value as an operand of an elementwise expression."""
    if isinstance(found, Lazy):
        return found.expression
    return Leaf(found.view() if isinstance(found, Blocked) else found)
