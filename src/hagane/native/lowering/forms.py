"""Where values lie, and the layouts in which each is at hand: plain, blocked, pairs, quads, packed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.elementwise_loops import emit_copy, emit_elementwise
from hagane.native.kernels.expression import Expression, Leaf, stored
from hagane.native.kernels.kernel import C_TYPES, Body
from hagane.native.kernels.recorder import Recorder, labelled
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
from hagane.native.layouts.blocks import emit_block, emit_unblock
from hagane.native.layouts.image_kernels import emit_image
from hagane.native.layouts.pairs import Paired, from_pairs, new_paired, to_pairs
from hagane.native.layouts.quads import Quads, from_quads, new_quads
from hagane.native.layouts.rows import Product, Rows
from hagane.native.layouts.shorts import Shorts, from_shorts, new_shorts
from hagane.native.lowering.facts import AT_RUN_TIME, Facts, NotNative, sizes_content
from hagane.native.tiles.tile import Words
from hagane.ops.definition import Array
from hagane.symbolic import Dim, Expr, product


@dataclass(frozen=True, slots=True)
class Lazy:
    """An elementwise value that is computed where it is used, or stored when that is not once.

    Attributes:
        expression: Its content.
        dtype: Its element type.
        shape: Its shape.
        blocked: Whether its operands are blocked images.
        nodes: The nodes that it computes, in order.
    """

    expression: Expression
    dtype: np.dtype[Any]
    shape: tuple[Dim, ...]
    blocked: bool
    nodes: tuple[ir.Node, ...] = ()

    @property
    def operators(self) -> str:
        """The operators that it computes, as labels have them."""
        return "+".join(node.op_type for node in self.nodes)


Lowered: TypeAlias = "Tensor | Blocked | Lazy"
NO_PADS: Pads = (0, 0, 0, 0)


@dataclass
class Forms:
    """The layouts in which values of one segment or body are at hand.

    ``forms[value] = place`` notes where a value lies; the methods return it in the layout that a
    kernel wants, and append the kernel that brings it there.

    Attributes:
        facts: Types, constants and readers of the values.
        recorder: Takes kernels that change layouts.
        inner: Whether this is the body of a loop or branch.
        wanted_pads: The zero border that convolutions want around an image.
        inputs: Memory of values that the segment reads.
        results: Memory of its outputs.
        places: Where outputs of a body are to lie.
        grown: Outputs of loops whose shape is known when they have ended; their shapes before that.
        quads: Images of bytes that lie in blocks, whether or not they lie elsewhere too.
        shorts: The same as 16-bit numbers.
        short_rows: Left sides of products as 16-bit numbers, by the zero point that was taken off.
        planes: The zero borders of plain images that have them.
        packed: Left sides of products that lie in blocks of columns.
        products: Products, by where they lie, that could be stored in another layout.
        rounded: Left sides of products that lie in row-major order, rounded to bfloat16.
    """

    facts: Facts
    recorder: Recorder
    inner: bool = False
    wanted_pads: Mapping[ir.Value, Pads] = field(default_factory=dict)
    inputs: dict[ir.Value, Buffer] = field(default_factory=dict)
    results: dict[ir.Value, Buffer] = field(default_factory=dict)
    places: dict[ir.Value, Tensor] = field(default_factory=dict)
    grown: dict[ir.Value, tuple[Dim, ...]] = field(default_factory=dict)
    quads: dict[ir.Value, Quads] = field(default_factory=dict)
    shorts: dict[ir.Value, Shorts] = field(default_factory=dict)
    short_rows: dict[tuple[ir.Value, int | ir.Value | None], Shorts] = field(default_factory=dict)
    planes: dict[Buffer, Pads] = field(default_factory=dict)
    packed: dict[tuple[ir.Value, Words], Rows] = field(default_factory=dict)
    products: dict[Buffer, Product] = field(default_factory=dict)
    rounded: dict[ir.Value, Tensor] = field(default_factory=dict)
    _placed: dict[ir.Value, Lowered] = field(default_factory=dict)
    _blocked: dict[ir.Value, Blocked] = field(default_factory=dict)
    _paired: dict[ir.Value, Paired] = field(default_factory=dict)

    # ---- where a value lies ----

    def __setitem__(self, value: ir.Value, place: Lowered | Paired | Quads | Shorts) -> None:
        """Note where a value lies; one in pairs, quads or shorts has no other form yet."""
        if isinstance(place, Quads):
            self.quads[value] = place
        elif isinstance(place, Shorts):
            self.shorts[value] = place
        elif isinstance(place, Paired):
            self._paired[value] = place
        else:
            self._placed[value] = place

    def found(self, value: ir.Value | None) -> Lowered | None:
        """Return where a value was put, or the expression that was held back, if it was."""
        return None if value is None else self._placed.get(value)

    def is_placed(self, value: ir.Value) -> bool:
        """Whether a value was computed by a kernel, or held back."""
        return value in self._placed or value in self._paired

    def only_paired(self, value: ir.Value) -> Paired | None:
        """Return an image that lies in pairs and nowhere else."""
        return None if value in self._placed else self._paired.get(value)

    def get(self, value: ir.Value | None) -> Lowered:
        """Return a value in the form in which it is at hand."""
        if value is None:
            raise NotNative("an absent input")
        if value not in self._placed:
            self._placed[value] = self._first_form(value)
        return self._placed[value]

    def _first_form(self, value: ir.Value) -> Lowered:
        if value in self.quads:
            return from_quads(self.recorder, self.quads[value], self.result(value))
        if value in self.shorts:
            return from_shorts(self.recorder, self.shorts[value], self.result(value))
        if value in self._paired:
            source = self._paired[value]
            target = self.new_blocked(value, source.shape)
            from_pairs(self.recorder, str(value.name), source, target)
            return target
        array = self.facts.constant(value)
        content = sizes_content(self.facts.types, value)
        if array is None and content is not None:
            return self._sizes(value, content)
        if array is not None:
            if array.dtype.name not in C_TYPES:
                raise NotNative(f"element type {array.dtype}")
            return self.recorder.constant(value, array)
        dtype, shape = self.facts.dtype(value), self.facts.shape(value)
        buffer = Buffer(str(value.name), product(shape) * dtype.itemsize, Kind.INPUT)
        self.inputs[value] = buffer
        return Tensor(buffer, dtype, shape, row_major(shape))

    def _sizes(self, value: ir.Value, content: Array) -> Tensor:
        """Return a value made of sizes that are known at run time."""
        facts, recorder = self.facts, self.recorder
        target = recorder.new(str(value.name), facts.dtype(value), facts.shape(value))
        body = Body()
        out = body.pointer(target, written=True)
        for i, item in enumerate(content.reshape(-1)):
            number = body.size(item if isinstance(item, Expr) else int(item))
            body.add(f"{out}[{i}] = {stored(target.dtype, number)};")
        recorder.emit(f"sizes '{value.name}'", body, 1)
        return target

    # ---- fresh memory ----

    def result(self, value: ir.Value) -> Tensor:
        """Return fresh contiguous memory for a value, where the caller gets it if it is one."""
        dtype, shape = self.facts.dtype(value), self.facts.shape(value)
        if value in self.places and value not in self.results:
            self.results[value] = self.places[value].buffer
            return self.places[value]
        if value in self.facts.outputs and value not in self.results and not self.inner:
            buffer = Buffer(str(value.name), product(shape) * dtype.itemsize, Kind.OUTPUT)
            self.results[value] = buffer
            return Tensor(buffer, dtype, shape, row_major(shape))
        return self.recorder.new(str(value.name), dtype, shape)

    def forget_results(self, values: Sequence[ir.Value]) -> None:
        """Take back the memory of results that a rule asked for before it gave up."""
        for value in values:
            if value not in self._placed:
                self.results.pop(value, None)

    def new_blocked(self, value: ir.Value, shape: Sequence[Dim]) -> Blocked:
        """Return fresh memory for an image in blocks, with the border that its readers want."""
        if not isinstance(shape[1], int):
            raise NotNative(AT_RUN_TIME)
        pads = self.wanted_pads.get(value, NO_PADS)
        lanes = self.facts.level.lanes
        floats = blocked_floats(shape, lanes, pads)
        buffer = Buffer(str(value.name), floats * 4, Kind.ARENA)
        image = Blocked(buffer, tuple(shape), lanes, pads)
        keep_border(image.view(), image.plane_stride)
        return image

    def new_paired(self, value: ir.Value, shape: tuple[Dim, ...]) -> Paired:
        """Return fresh memory for an image in pairs, with the border that its readers want."""
        pads, facts = self.wanted_pads.get(value, NO_PADS), self.facts
        return new_paired(str(value.name), shape, pads, facts.words, facts.level)

    def new_quads(self, value: ir.Value, zero: int) -> Quads:
        """Return fresh memory for an image of bytes, with the border that its readers want."""
        pads, facts = self.wanted_pads.get(value, NO_PADS), self.facts
        shape, dtype = facts.shape(value), facts.dtype(value)
        if not isinstance(shape[1], int):
            raise NotNative(AT_RUN_TIME)
        return new_quads(str(value.name), shape, dtype, zero, pads, facts.level)

    def new_shorts(self, value: ir.Value, shape: Sequence[Dim], zero: int) -> Shorts:
        """Return fresh memory for an image of 16-bit numbers, with the border that its readers want.

        Args:
            value: Bytes.
            shape: ``(N, C, H, W)``.
            zero: Their zero point, which is taken off.
        """
        if not isinstance(shape[1], int):
            raise NotNative(AT_RUN_TIME)
        pads, facts = self.wanted_pads.get(value, NO_PADS), self.facts
        return new_shorts(str(value.name), shape, facts.dtype(value), zero, pads, facts.level)

    # ---- a value in the form that a kernel wants ----

    def stored(self, value: ir.Value | None) -> Tensor | Blocked:
        """Return a value that lies in memory; a lazy one is computed now."""
        found = self.get(value)
        if isinstance(found, Lazy):
            assert value is not None
            found = self.store(value, found)
            self._placed[value] = found
        return found

    def plain(self, value: ir.Value | None) -> Tensor:
        """Return a value as a strided tensor of its own shape."""
        found = self.stored(value)
        if isinstance(found, Blocked):
            assert value is not None
            found = self._unblock(value, found)
            self._placed[value] = found
        return found

    def contiguous(self, value: ir.Value | None) -> Tensor:
        """Return a value in row-major order without gaps."""
        found = self.plain(value)
        if not found.contiguous:
            assert value is not None
            target = self.recorder.new(str(value.name), found.dtype, found.shape)
            found = emit_copy(self.recorder, found, target)
            self._placed[value] = found
        return found

    def blocked(self, value: ir.Value | None) -> Blocked:
        """Return an image in blocks of channels."""
        found = self.stored(value)
        if isinstance(found, Blocked):
            return found
        assert value is not None
        if value not in self._blocked:
            target = self.new_blocked(value, self.facts.shape(value))
            emit_block(self.recorder, found, target)
            self._blocked[value] = target
        return self._blocked[value]

    def paired(self, value: ir.Value) -> Paired:
        """Return an image in blocks of pairs of bfloat16."""
        if value not in self._paired:
            source = self.blocked(value)
            target = self.new_paired(value, source.shape)
            to_pairs(self.recorder, str(value.name), source, target)
            self._paired[value] = target
        return self._paired[value]

    def image(self, value: ir.Value) -> Blocked | Paired:
        """Return an image in blocks, of pairs if it lies in these already."""
        return self._paired[value] if value in self._paired else self.blocked(value)

    def store(self, value: ir.Value, lazy: Lazy) -> Tensor | Blocked:
        """Compute a lazy value into memory of its own."""
        producer = value.producer()
        label = lazy.operators if producer is None else labelled(lazy.operators, producer)
        if lazy.blocked:
            image = self.new_blocked(value, lazy.shape)
            emit_image(self.recorder, label, lazy.expression, image.view(), nodes=lazy.nodes)
            return image
        result = self.result(value)
        emit_elementwise(self.recorder, label, lazy.expression, result, nodes=lazy.nodes)
        return result

    def _unblock(self, value: ir.Value, source: Blocked) -> Tensor:
        """Bring an image in blocks into row-major order."""
        one_pixel = source.rows * source.columns == 1 and not any(source.pads)
        whole = source.shape[1] == source.blocks * source.lanes
        if one_pixel and whole and value not in self.facts.outputs:
            return Tensor(source.buffer, source.dtype, source.shape, row_major(source.shape))
        target = self.result(value)
        emit_unblock(self.recorder, source, target)
        return target


def operand(found: Lowered) -> Expression:
    """Return a value as an operand of an elementwise expression."""
    if isinstance(found, Lazy):
        return found.expression
    return Leaf(found.view() if isinstance(found, Blocked) else found)
