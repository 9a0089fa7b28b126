"""Packed sequences of PyTorch."""

from __future__ import annotations

from functools import partial
from typing import Any

import onnx_ir as ir

from hagane.frontends.libraries.computing import built
from hagane.frontends.libraries.torch.operands import INT64, need_tensor, shape_of
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.objects import Computed, Instance
from hagane.frontends.python.values.values import (
    Library,
    Many,
    Tensor,
    Value,
)
from hagane.ops.builder import dtype_of, op
from hagane.ops.functions.numbers.elementary import transpose, unsqueeze
from hagane.ops.functions.tensors.padding import padded_around
from hagane.ops.functions.tensors.positions import positions_along
from hagane.symbolic import Dim, definitely_equal, maximum

_PACKED = "torch.nn.utils.rnn.PackedSequence"


@TORCH.layer("nn.utils.rnn.PackedSequence")
class PackedSequence:
    """Sequences of different lengths, kept here as the padded tensor they came from."""


@TORCH.function("nn.utils.rnn.pack_padded_sequence")
def pack_padded_sequence(
    t: Core, input: Value, lengths: Value, batch_first: Value = False, enforce_sorted: Value = True
) -> Instance:
    """Return padded sequences, packed."""
    x = need_tensor(t, input, "input")
    shape = shape_of(t, x)
    if len(shape) < 2:
        t.fail("rank", f"expected (length, batch, ...), got {t.show(x)}", x)
    batch = shape[0 if batch_first else 1]
    count = _count(t, lengths)
    if count is not None and t.emit.differ(count, batch):
        t.fail("shape-mismatch", f"expected one length a sequence ({batch}), got {count}", x)
    return packed(t, x, lengths, bool(batch_first), bool(enforce_sorted))


def _count(t: Core, lengths: Value) -> Dim | None:
    if isinstance(lengths, Tensor):
        return shape_of(t, lengths, 1, "lengths")[0]
    if isinstance(lengths, Many):
        return lengths.length
    return len(lengths) if isinstance(lengths, list | tuple) else None


def packed(t: Core, x: Tensor, lengths: Value, batch_first: bool, enforce_sorted: bool) -> Instance:
    """Return a packed sequence; its data has one row an element of a sequence."""
    feature = shape_of(t, x)[2:]
    content = {
        "padded": x,
        "lengths": t.wrap(lengths),
        "first": batch_first,
        "sorted": enforce_sorted,
    }
    if t.emit.builds:
        content["data"] = Computed(partial(_rows, t, x, lengths, batch_first, enforce_sorted))
        for name in ("batch_sizes", "sorted_indices", "unsorted_indices"):
            content[name] = Computed(partial(_refuse, name))
    else:
        content |= {
            "data": t.emit.typed("Pack", [x], x.dtype, (t.emit.fresh("packed"), *feature)),
            "batch_sizes": t.emit.new(INT64, (t.emit.fresh("steps"),)),
            "sorted_indices": None, "unsorted_indices": None,
        }  # fmt: skip
    return Instance(t.heap.new(content), Library(_PACKED))


def _rows(t: Core, x: Tensor, lengths: Value, batch_first: bool, enforce_sorted: bool) -> Value:
    """Return the rows of a packed sequence: step by step, those of the longest sequences first."""
    counts = counts_of(t, lengths)
    if batch_first:
        x = t.call_library("torch.transpose", [x, 0, 1])
    if not enforce_sorted:
        _, order = t.call_library("torch.sort", [counts, -1, True])
        counts = t.call_library("torch.index_select", [counts, 0, order])
        x = t.call_library("torch.index_select", [x, 1, order])

    def seen(x: Any, counts: Any) -> Any:
        return op("Less", unsqueeze(positions_along(x, 0), [1]), unsqueeze(counts, [0]))

    steps, batch = shape_of(t, x)[:2]
    mask = built(t, (ir.DataType.BOOL, (steps, batch)), seen, x, counts)
    return t.item(x, mask)


def _refuse(name: str) -> Value:
    raise CheckError(
        "capture",
        f"'{name}' of a packed sequence is not captured: unpack it by "
        "torch.nn.utils.rnn.pad_packed_sequence, and mask the padding",
    )


def counts_of(t: Core, lengths: Value) -> Tensor:
    """Return the lengths of sequences as a tensor, int64 (batch,)."""
    given = t.unwrap(lengths)
    found = given if isinstance(given, Tensor) else t.call_library("torch.tensor", [given])
    return found if found.dtype == INT64 else t.call(t.attribute(found, "long"), [], {})


@TORCH.function("nn.utils.rnn.pad_packed_sequence")
def pad_packed_sequence(
    t: Core, sequence: Value, batch_first: Value = False, padding_value: Value = 0.0,
    total_length: Value = None,
) -> Value:  # fmt: skip
    """Return packed sequences padded again, and their lengths."""
    if not isinstance(sequence, Instance):
        t.fail("type", f"expected a packed sequence, got {t.show(sequence)}")
    content = t.heap[sequence]
    x, lengths = content["padded"], t.unwrap(content["lengths"])
    shape = list(shape_of(t, x))
    if content["first"]:
        shape[0], shape[1] = shape[1], shape[0]
    steps = _longest(t, lengths, shape[0]) if total_length is None else total_length
    if (
        t.emit.builds
        and not isinstance(total_length, int | None)
        and not definitely_equal(total_length, shape[0])
    ):
        raise CheckError(
            "capture",
            f"expected a known number or the steps of the padded tensor ({shape[0]}) as "
            f"total_length, got {total_length}",
        )
    batch = shape[1]
    lead = (batch, steps) if batch_first else (steps, batch)
    if not t.emit.builds:
        padded = t.emit.typed("Pad", [x], x.dtype, (*lead, *shape[2:]))
        known = isinstance(lengths, Tensor)
        counts = lengths if known else t.call_library("torch.tensor", [lengths])
        return (padded, t.emit.on(counts, "cpu"))
    counts = counts_of(t, lengths)

    def unpacked(x: Any, counts: Any) -> Any:
        by_step = transpose(x, [1, 0, *range(2, len(shape))]) if content["first"] else x
        if isinstance(steps, int) and total_length is not None:
            room = [0] * len(shape) + [steps] + [0] * (len(shape) - 1)
            by_step = op("Slice", padded_around(by_step, room, 0, "constant"), [0], [steps], [0])
        elif total_length is None:
            longest = op("ReduceMax", counts, keepdims=1)
            by_step = op("Slice", by_step, [0], longest, [0])
        place = [1, *range(2, len(shape))]
        seen = op("Less", unsqueeze(positions_along(by_step, 0), place),
                  unsqueeze(counts, [0, *range(2, len(shape))]))  # fmt: skip
        made = op("Where", seen, by_step, op("Cast", padding_value, to=dtype_of(x)))
        return transpose(made, [1, 0, *range(2, len(shape))]) if batch_first else made

    padded = built(t, (x.dtype, (*lead, *shape[2:])), unpacked, x, counts)
    return (padded, t.emit.on(counts, "cpu"))


def _longest(t: Core, lengths: Value, steps: Dim) -> Dim:
    if isinstance(lengths, Many):
        return (
            lengths.element if not isinstance(lengths.element, Tensor) else t.emit.fresh("longest")
        )
    if (
        isinstance(lengths, list | tuple)
        and lengths
        and not any(isinstance(n, Tensor) for n in lengths)
    ):
        return maximum(*lengths)
    del steps
    return t.emit.fresh("longest")
