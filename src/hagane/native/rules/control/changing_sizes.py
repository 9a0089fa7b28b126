"""Kernels of a loop's body whose sizes differ between iterations.

Such a size is a known function of the sizes in the iteration before: it grows by a number, doubles,
stays below another. The code of kernels takes sizes as arguments in any case; one kernel computes all
sizes that differ from those of the iteration before, and the engine writes them to the places where
they are read: arguments, offsets, tasks, bytes. Where the body finds a size in the data, its last kernel
leaves all of them for the next iteration.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import onnx_ir as ir

from hagane.native.kernels.control import (
    Branch,
    Carried,
    ChangingSizes,
    Found,
    Loop,
    Scanned,
    changing_names,
)
from hagane.native.kernels.formula import FLOOR, Formulas, c_text
from hagane.native.kernels.kernel import Body, Kernel, Pointer
from hagane.native.kernels.tensor import Buffer, Kind, Tensor
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.found import moved_by
from hagane.ops.control.growth import Growth, growths, with_sizes
from hagane.ops.inference import GraphTypes
from hagane.symbolic import Dim, Expr, maximum, number_of, symbol, symbols_of
from hagane.symbolic.substitute import evaluate

# Sizes are taken for those of this iteration, or one before; of values that are not larger by then.
_LIKELY_ITERATION, _LARGE = 64, 1 << 20
# The least time of a kernel for its reads and writes.
_NS_OF_BYTE = 0.1
_ITERATION = "number of the iteration"
_DIFFERS = "a state changes its shape between iterations, in a way that only the data tells"


def names_that_change(
    found: Iterable[Growth], invented: Iterable[str]
) -> tuple[tuple[str, Dim, Dim], ...]:
    """Return the names of sizes that change, their first values, and the next as functions of them.

    Raises:
        NotNative: One name stands for sizes that change in several ways.
    """
    names: dict[str, tuple[Dim, Dim]] = {}
    unknown = set(invented)
    for growth in found:
        own = symbols_of(growth.before) & unknown
        name = next(iter(own), "")
        distance = growth.before - symbol(name) if len(own) == 1 else None
        if not isinstance(distance, int):
            raise NotNative(_DIFFERS)
        begun = growth.start - distance, growth.after - distance
        if names.setdefault(name, begun) != begun:
            raise NotNative(_DIFFERS)
    return tuple((name, start, after) for name, (start, after) in names.items())


def are_found(names: Sequence[tuple[str, Dim, Dim]], invented: Iterable[str]) -> bool:
    """Whether next sizes follow from more than those before: the body finds them."""
    unknown = set(invented) - {name for name, _, _ in names}
    return any(symbols_of(after) & unknown for _, _, after in names)


def finds_sizes(node: ir.Node, types: GraphTypes, known: Mapping[str, Dim]) -> bool:
    """Whether the body of a Loop finds the next sizes of its states in the data.

    Args:
        node: The loop.
        types: Of all values.
        known: Sizes that stand for names.
    """
    body, n = node.attributes["body"].as_graph(), max(0, len(node.inputs) - 2)
    starts, befores, afters = (
        [with_sizes(types.types.get(v), known) if v is not None else None for v in values]
        for values in (node.inputs[2:], body.inputs[2:], body.outputs[1 : 1 + n])
    )
    invented = types.invented - known.keys()
    try:
        names = names_that_change(growths(starts, befores, afters).values(), invented)
    except NotNative:
        return False
    return are_found(names, invented)


class SizesOfIterations:
    """A loop's means to run a body whose sizes differ between iterations.

    Args:
        names: The names of such sizes, their first values, and the next as functions of them.
        left: Where the body leaves the next sizes, an int64 for each, if it finds one in the data.
    """

    def __init__(self, names: Sequence[tuple[str, Dim, Dim]], left: Tensor | None = None):
        self.names, self.left = tuple(names), left
        self._own = {name for name, _, _ in names}
        # Names of sizes that loops in the body change, and that it finds: they are known later.
        self._later: frozenset[str] = frozenset()
        # Sizes that grow by a number: that many times the number of the iteration above the first.
        self._steady: dict[str, Dim] = {}
        for name, start, after in self.names:
            step = after - symbol(name)
            if isinstance(step, int) and step >= 0:
                self._steady[name] = start + step * symbol(_ITERATION)

    def differs(self, dim: Dim) -> bool:
        """Whether a size differs between iterations."""
        return bool(symbols_of(dim) & self._own)

    def _follows(self, dim: Dim) -> bool:
        """Whether a size differs between iterations, and is known before one."""
        return self.differs(dim) and not symbols_of(dim) & self._later

    def note_later(self, kernels: Sequence[Kernel]) -> None:
        """Take note of the sizes that kernels of the body make known."""
        self._later = frozenset(changing_names([kernel.control for kernel in kernels]))

    def check(self, pairs: Iterable[tuple[Dim, Dim]]) -> None:
        """Raise ``NotNative`` if sizes may clash."""
        if any(self._may_differ(left - right) for left, right in pairs):
            raise NotNative("sizes in its body may differ in some iterations")

    def leave(self, values: Sequence[Tensor]) -> Kernel:
        """Return the last kernel of the body, which leaves the next sizes.

        Args:
            values: The states after the iteration, contiguous. They have to stay until the engine takes
                them over: the kernel's last pointers point to them.
        """
        assert self.left is not None
        body = Body()
        out = body.raw(self.left.buffer, written=True, ctype="int64_t")
        for i, (_, _, after) in enumerate(self.names):
            body.add(f"{out}[{i}] = {body.size(after)};")
        at = (value.offset * value.dtype.itemsize for value in values)
        kept = (Pointer(v.buffer, offset, False) for v, offset in zip(values, at, strict=True))
        pointers = (*body.pointers, *kept)
        return Kernel("sizes of the next iteration", body.code(), pointers, tuple(body.sizes), 1)

    def _may_differ(self, distance: Dim) -> bool:
        """Whether two sizes, of which this is the distance, may differ in some iteration only."""
        return self.differs(distance) and evaluate(distance, self._steady) != 0

    def weigh(self, kernels: Sequence[Kernel], iterations: Dim | None) -> None:
        """Estimate the time of kernels whose sizes differ, for those of an iteration in the middle.

        Rules take open sizes for large; a value that begins empty is small in most iterations, and the
        threads would wait for each other longer than one takes for all.
        """
        middle = (
            min(iterations // 2, _LIKELY_ITERATION)
            if isinstance(iterations, int)
            else _LIKELY_ITERATION
        )
        sizes = {name: start for name, start, _ in self.names if isinstance(start, int)}
        if len(sizes) < len(self.names) or self.left is not None:
            return
        with contextlib.suppress(KeyError):  # a size that only the caller knows
            for _ in range(middle):
                if max(sizes.values()) > _LARGE:
                    return
                sizes = {name: number_of(after, sizes) for name, _, after in self.names}
            for kernel in kernels:
                if any(map(self.differs, (*kernel.sizes, kernel.tasks))):
                    kernel.flops = 0.0  # it differs too
                    buffers = dict.fromkeys(pointer.buffer for pointer in kernel.pointers)
                    read = sum(number_of(buffer.bytes, sizes) for buffer in buffers)
                    most = math.inf if isinstance(kernel.work, Expr) else kernel.work
                    kernel.work = min(most, _NS_OF_BYTE * read)

    def temporaries(
        self, kernels: Sequence[Kernel], appended: Sequence[Buffer] = ()
    ) -> tuple[Buffer, ...]:
        """Take values of no fixed size out of the arena, and return them.

        Args:
            kernels: Of the body.
            appended: States to whose end iterations add a number of elements that is known before.
        """
        found = dict.fromkeys(
            pointer.buffer
            for kernel in kernels
            for pointer in kernel.pointers
            if pointer.buffer.kind in (Kind.ARENA, Kind.BORDERED)
            and self._follows(pointer.buffer.bytes)
        )
        for buffer in found:
            if buffer.border:
                raise NotNative("an image within a border whose size differs between iterations")
            buffer.kind = Kind.MOVING
        return (*found, *appended)

    def rebase(
        self, kernels: Sequence[Kernel], moving: Iterable[Buffer], pointers: list[Pointer]
    ) -> list[Scanned]:
        """Let pointers at offsets that differ go through buffers that move, and return these.

        Args:
            kernels: Of the body; changed in place.
            moving: Buffers that this loop moves already.
            pointers: The loop's; more are added.
        """
        own = {*moving, *(buffer for kernel in kernels for buffer in moved_by(kernel))}
        views: dict[Buffer, Buffer] = {}
        scanned: list[Scanned] = []
        for kernel in kernels:
            changed = list(kernel.pointers)
            for i, pointer in enumerate(changed):
                if not self._follows(pointer.offset) or pointer.buffer in own:
                    continue
                if pointer.buffer not in views:
                    view = Buffer(f"part of {pointer.buffer.name}", 0, Kind.MOVING)
                    views[pointer.buffer] = view
                    pointers.append(Pointer(pointer.buffer, 0, True))
                    scanned.append(Scanned(view, len(pointers) - 1, 0, 0))
                changed[i] = replace(pointer, buffer=views[pointer.buffer])
            kernel.pointers = tuple(changed)
        return scanned

    def kernel(
        self,
        kernels: Sequence[Kernel],
        carried: Sequence[Carried],
        temporaries: Sequence[Buffer],
        count: Tensor,
    ) -> tuple[Kernel, ChangingSizes]:
        """Return the kernel that computes all numbers that differ, and their uses.

        Args:
            kernels: Of the body.
            carried: The loop's states.
            temporaries: The result of ``temporaries``.
            count: Where the number of the iteration lies.
        """
        needs = [
            kernel.scratch for kernel in kernels if not symbols_of(kernel.scratch) & self._later
        ]
        scratch = maximum(*needs) if needs else 0
        found = [value.grown for value in carried if value.grown is not None]
        found += [buffer.bytes for buffer in temporaries]
        for kernel in kernels:
            found += [*kernel.sizes, kernel.tasks, *(p.offset for p in kernel.pointers)]
            if isinstance(kernel.control, Loop | Branch | Found):
                found += kernel.control.dims()
        dims = tuple(dict.fromkeys(dim for dim in (*found, scratch) if self._follows(dim)))
        numbers = Buffer("sizes of an iteration", 8 * (len(dims) + len(self.names)), Kind.MOVING)
        body = Body()
        out = body.raw(numbers, written=True, ctype="int64_t")
        iteration = body.raw(count.buffer, ctype="int64_t")
        body.helper(FLOOR)
        olds = {name: f"o{i}" for i, (name, _, _) in enumerate(self.names)}
        news = {name: f"n{i}" for i, (name, _, _) in enumerate(self.names)}
        last = [f"{out}[{len(dims) + i}]" for i in range(len(self.names))]
        left = (
            "" if self.left is None else body.raw(self.left.buffer, written=True, ctype="int64_t")
        )
        for old, place in zip(olds.values(), last, strict=True):
            body.add(f"const int64_t {old} = {place};")
        for i, ((name, start, after), place) in enumerate(zip(self.names, last, strict=True)):
            begun = body.size(start)
            then = f"{left}[{i}]" if left else c_text(after, body, olds)
            body.add(
                f"const int64_t {news[name]} = {place} = *{iteration} == 0 ? {begun} : {then};"
            )
            if left:  # what the loop leaves if there is no iteration
                body.add(f"{left}[{i}] = {news[name]};")
        formulas = Formulas(body, news)
        for i, dim in enumerate(dims):
            text = formulas.text(dim)
            body.add(f"{out}[{i}] = {text};")
        label = "sizes of an iteration"
        made = Kernel(label, body.code(), tuple(body.pointers), tuple(body.sizes), 0)
        names = self.names
        if left:
            names = tuple((name, start, symbol(name)) for name, start, _ in names)
        return made, ChangingSizes(names, dims, numbers, tuple(temporaries), scratch)
