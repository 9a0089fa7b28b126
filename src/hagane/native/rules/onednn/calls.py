"""Layers that oneDNN computes, where that was measured to be faster: the common parts.

A task is a piece of the layer that fits the second-level cache of the thread that runs it: oneDNN
computes it into the thread's scratch memory, and the epilogue brings it to its place from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from hagane.machine import best_level
from hagane.native.c import c_source
from hagane.native.kernels.kernel import Body
from hagane.native.kernels.packing import Packing, padded_rows
from hagane.native.kernels.recorder import LIBRARY, label_of
from hagane.native.kernels.tensor import Buffer
from hagane.native.lowering.choices import BY_RULE, Choice
from hagane.native.lowering.state import Lowering
from hagane.native.rules.onednn import binding
from hagane.native.rules.onednn.operations import Operation
from hagane.ops.definition import Array

Load = Callable[[str], str]
# Bytes of weights, and of the rest, that a task may touch and find again in the second-level cache.
WEIGHTS_BYTES = 640 << 10
PIECE_BYTES = 1 << 20
# Where parts of scratch memory and of packed weights begin.
ALIGNED = 128
# Operations a nanosecond that decide whether a layer is worth a second thread.
FLOPS_PER_NS = 100.0
# oneDNN's kernels compute this many rows, and output channels, at a time.
ROWS, COLUMNS = 16, 64


def usable(low: Lowering) -> bool:
    """Whether oneDNN can be called by the kernels of a model.

    It always takes the best instructions of the processor, so those have to be allowed.
    """
    return low.facts.level == best_level() and binding.obstacle() is None


def chosen(low: Lowering, key: str) -> Choice | None:
    """Return the choice for a layer if it is oneDNN, and that can be used."""
    choice = low.facts.choices.get(key, BY_RULE)
    return choice if choice.library == "onednn" and usable(low) else None


@dataclass(frozen=True, slots=True)
class Split:
    """An axis in pieces of equal length, but for the last one, which may be shorter."""

    total: int
    length: int

    @property
    def count(self) -> int:
        """How many pieces."""
        return -(-self.total // self.length)

    @property
    def lengths(self) -> tuple[int, ...]:
        """The lengths that occur: of all pieces but the last, and of the last if it differs."""
        rest = self.total - (self.count - 1) * self.length
        return (rest,) if self.count == 1 or rest == self.length else (self.length, rest)

    def number(self, index: str) -> str:
        """Return C text of the place in ``lengths`` of a piece's length."""
        return "0" if len(self.lengths) == 1 else f"({index} + 1 == {self.count})"

    def size(self, index: str) -> str:
        """Return C text of a piece's length."""
        if len(self.lengths) == 1:
            return str(self.lengths[0])
        return f"hg_min({self.length}, {self.total} - {index} * {self.length})"


def split(total: int, most: int, unit: int) -> Split:
    """Return near-equal pieces of at most ``most``, but of one ``unit`` at least.

    Each is a multiple of the unit, but for the last one.
    """
    units = max(1, most // unit)
    pieces = -(-total // (units * unit))
    length = -(-total // (pieces * unit)) * unit
    return Split(total, min(total, length))


def aligned(count: int) -> int:
    """Return bytes rounded up to where the next part may begin."""
    return -(-count // ALIGNED) * ALIGNED


def label(node: ir.Node, followers: Sequence[ir.Node]) -> str:
    """Return the name of a kernel in profiles and messages."""
    return label_of(node, *followers) + LIBRARY


FAILURE = "it returned status {value}"


def declare_calls(
    low: Lowering, body: Body, node: ir.Node, operations: Sequence[Operation]
) -> None:
    """Give a kernel the addresses of oneDNN's functions and of some operations."""
    library = operations[0].library
    words = len(library.functions())
    body.helper(c_source("onednn.h"))
    packing = Packing(addresses_of, (tuple(operations),))
    table = low.recorder.weight(("onednn", id(node)), packing, 8 * (words + 6 * len(operations)))
    table.owner = tuple(operations)
    start = body.raw(table, ctype="char")
    body.add(
        f"const hg_onednn *library = (const hg_onednn *){start};",
        f"const hg_onednn_primitive *primitives = "
        f"(const hg_onednn_primitive *)({start} + {8 * words});",
        f"char *scratch = (char *)(((uintptr_t)thread->scratch + {ALIGNED - 1}) & -{ALIGNED}L);",
    )


def call(which: str, source: str, weights: str, bias: str, result: str, scratch: str) -> str:
    """Return C text that runs one of the operations declared, and notes it if that fails."""
    return (
        f"{{ int status = hg_onednn_run(library, primitives + {which}, {source}, {weights}, "
        f"{bias}, {result}, {scratch}); if (status) hg_fail(thread, status); }}"
    )


def packed(
    low: Lowering,
    node: ir.Node,
    pieces: Split,
    operations: Sequence[Operation],
    weights: Array,
    axis: int,
    groups: int = 1,
) -> tuple[Buffer, int]:
    """Return weights in oneDNN's layout, a piece of the output channels after the other.

    Args:
        low: Takes the weights.
        node: The layer.
        pieces: Of the output channels.
        operations: One for each length of a piece.
        weights: Of all output channels.
        axis: Along which these lie.
        groups: Groups of channels; an axis of their own comes first if there are several.

    Returns:
        The buffer, and the bytes from one piece to the next.
    """
    step = max(aligned(operation.weights_bytes) for operation in operations)
    packing = Packing(pack_pieces, (tuple(operations), weights, axis, groups, pieces, step))
    return low.recorder.weight(("onednn weights", id(node)), packing, step * pieces.count), step


def bias_of(low: Lowering, node: ir.Node, bias: Array | None) -> Buffer | None:
    """Return the numbers that are added, one a column or channel, if there are any."""
    if bias is None:
        return None
    packing = Packing(padded_rows, ((bias,), bias.size, "float32"))
    return low.recorder.weight(("onednn bias", id(node)), packing, bias.size * 4)


def tasks_wanted(threads: int, flops: float) -> int:
    """Return how many tasks a layer should have: large ones may end at different times."""
    if threads == 1:
        return 1
    return threads * (4 if flops > 4e8 * threads else 2 if flops > 1e8 * threads else 1)


def loop_over_vectors(count: str, target: str, store: str, value: Callable[[Load], str]) -> str:
    """Return C text of a loop over ``j`` that stores ``count`` numbers from ``target`` on.

    Args:
        count: C text of how many.
        target: C text of the first one's place.
        store: The C function that stores a vector.
        value: Returns C text of a vector, given how to load one.
    """
    whole = value(lambda place: f"v_load({place} + j)")
    part = value(lambda place: f"v_load_n({place} + j, {count} - j)")
    return (
        f"{{ int64_t j = 0; for (; j + VL <= {count}; j += VL) {store}({target} + j, {whole}); "
        f"if (j < {count}) {store}_n({target} + j, {part}, {count} - j); }}"
    )


def addresses_of(operations: Sequence[Operation]) -> Array:
    """Return the addresses of oneDNN's functions in this process, and of some operations."""
    each = [word for operation in operations for word in operation.addresses()]
    return np.array([*operations[0].library.functions(), *each], np.uint64)


def pack_pieces(
    operations: Sequence[Operation],
    weights: Array,
    axis: int,
    groups: int,
    pieces: Split,
    step: int,
) -> Iterator[Array]:
    """Yield weights in oneDNN's layout, ``step`` bytes for each piece of the output channels."""
    for piece in range(pieces.count):
        first = piece * pieces.length
        part = weights[(slice(None),) * axis + (slice(first, first + pieces.length),)]
        if groups > 1:
            part = np.ascontiguousarray(part).reshape(groups, -1, *part.shape[1:])
        content = operations[-1 if piece + 1 == pieces.count else 0].pack(part)
        yield content
        yield np.zeros(step - content.nbytes, np.uint8)
