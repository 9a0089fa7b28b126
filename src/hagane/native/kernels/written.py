"""Kernels whose C is written by hand, over operands of any sizes.

Such a text names its operands, and the sizes that it needs, as it likes; each operand is a pointer to
its first element, each size an ``int64_t``. Element types are in the text where arithmetic is done,
and stand for bits of the same width where elements are only moved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.expression import is_real, loaded, number_type, stored
from hagane.native.kernels.kernel import Body, Work, c_type, work_of
from hagane.native.kernels.recorder import Recorder
from hagane.native.kernels.tensor import Tensor
from hagane.native.ready.context import BY_REFERENCE
from hagane.symbolic import Dim, ceildiv, floordiv, maximum

__all__ = [
    "as_bits",
    "bits_type",
    "coordinates",
    "emit_written",
    "is_real",
    "loaded",
    "number_type",
    "stored",
]

# One task handles about this many steps of a loop.
_TASK_STEPS = 8192


def emit_written(
    recorder: Recorder,
    node: ir.Node | str,
    text: str,
    *,
    reads: Mapping[str, Tensor],
    writes: Mapping[str, Tensor],
    sizes: Mapping[str, Dim] | None = None,
    types: Mapping[str, str] | None = None,
    tasks: Dim | None = None,
    items: Dim | None = None,
    each: Dim = 1,
    cost: float = 1.0,
    work: Work | None = None,
    scratch: Dim = 0,
    helper: str = "",
    failure: str = BY_REFERENCE,
    failure_sizes: tuple[Dim, ...] = (),
    name: str = "",
) -> None:
    """Append a kernel that is written in C.

    Args:
        recorder: Takes it.
        node: The node that it computes.
        text: Its statements; ``q`` is the task. Where there are ``items``, they are done from
            ``first`` up to ``last``.
        reads: Its operands by the names that the text has for them.
        writes: Its results.
        sizes: Numbers that it needs.
        types: The C types that the text has names for, such as ``T``.
        tasks: How many independent pieces it has.
        items: How many equal pieces of work it has, which are shared out; in place of ``tasks``.
        each: Steps of a loop that an item takes.
        cost: Nanoseconds of a step.
        work: Nanoseconds of all of it, where that is not ``cost`` for each step or task.
        scratch: Bytes of memory that each thread needs, ``thread->scratch``.
        helper: Functions before the kernel; ``KERNEL`` in them stands for its name.
        failure: The meaning of ``hg_fail``; the reference kernel says it if not given.
        failure_sizes: Sizes that the failure names.
        name: The C function's, if not to be made of the operator.
    """
    body = Body()
    if helper:
        body.helper(helper)
    for kind, c_name in (types or {}).items():
        body.add(f"typedef {c_name} {kind};")
    for operand, tensor in reads.items():
        _name(body, operand, tensor, written=False)
    for operand, tensor in writes.items():
        _name(body, operand, tensor, written=True)
    for size, dim in (sizes or {}).items():
        body.add(f"const int64_t {size} = {body.size(dim)};")
    steps: Dim = each
    if items is not None:
        share = maximum(1, floordiv(_TASK_STEPS, maximum(1, each)))
        tasks = ceildiv(items, share)
        count = body.size(share)
        body.add(
            f"int64_t first = q * {count}, last = hg_min(first + {count}, {body.size(items)});"
        )
        steps = items * each
    assert tasks is not None
    body.add(*text.strip().splitlines())
    failure = failure if "hg_fail" in text else ""
    recorder.emit(
        node,
        body,
        tasks,
        work=work_of(maximum(steps, tasks), cost) if work is None else work,
        scratch=scratch,
        failure=failure,
        failure_sizes=failure_sizes,
        name=name,
    )


def _name(body: Body, name: str, tensor: Tensor, *, written: bool) -> None:
    pointer = body.pointer(tensor, written=written)
    body.add(f"{'' if written else 'const '}{c_type(tensor.dtype)} *{name} = {pointer};")


_BITS = {1: "uint8_t", 2: "uint16_t", 4: "uint32_t", 8: "uint64_t"}


def as_bits(tensor: Tensor) -> Tensor:
    """Return a tensor whose elements are only moved, as bits of their width."""
    from dataclasses import replace

    return replace(tensor, dtype=np.dtype(f"u{tensor.dtype.itemsize}"))


def bits_type(dtype: np.dtype[Any]) -> str:
    """Return the C type of an element that is only moved."""
    return _BITS[dtype.itemsize]


def coordinates(names: Sequence[str], sizes: Sequence[str], number: str = "left") -> str:
    """Return C text that takes an index of elements in row-major order apart into coordinates.

    Args:
        names: Of the coordinates, which the text declares.
        sizes: C text for the size of each axis.
        number: The index; it is used up.
    """
    lines = []
    for axis in reversed(range(len(names))):
        if axis == 0:
            lines.append(f"int64_t {names[0]} = {number};")
        else:
            lines.append(
                f"int64_t {names[axis]} = {number} % {sizes[axis]}; {number} /= {sizes[axis]};"
            )
    return "\n".join(lines)
