"""Which named sizes kernels need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hagane.native.kernels.control import Branch, Found, Loop
from hagane.native.kernels.kernel import AnyKernel
from hagane.symbolic import Dim, Expr, symbols_of


def names_of_sizes(
    kernels: Sequence[AnyKernel],
    shapes: Sequence[Sequence[Dim]],
    equal: Sequence[tuple[Dim, Dim]],
) -> set[str]:
    """Return the named sizes that a run of some kernels needs."""
    dims = [
        *(dim for kernel in kernels for dim in dims_of(kernel)),
        *(dim for shape in shapes for dim in shape),
        *(dim for pair in equal for dim in pair),
    ]
    return {name for dim in dims for name in symbols_of(dim)}


def dims_of(kernel: AnyKernel) -> Iterator[Dim]:
    """Yield the sizes of a kernel: its arguments, tasks, places and buffers."""
    yield from (*kernel.sizes, *kernel.failure_sizes, kernel.tasks, kernel.scratch)
    yield from (dim for dim in (kernel.work, kernel.flops) if isinstance(dim, Expr))
    yield from (dim for p in kernel.pointers for dim in (p.offset, p.buffer.bytes))
    yield from (dim for p in kernel.pointers for part in p.buffer.border for dim in part.dims())
    if isinstance(kernel.control, Loop | Branch | Found):
        yield from kernel.control.dims()
