"""A loop or scan on its way to kernels: the places of values that it carries from iteration to iteration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import onnx_ir as ir

from hagane.graph.walk import all_nodes
from hagane.native.kernels.control import NONE, Carried, ChangingSizes, Loop, Mark, Scanned
from hagane.native.kernels.elementwise_loops import emit_copy
from hagane.native.kernels.kernel import Kernel, Pointer
from hagane.native.kernels.tensor import Buffer, Kind, Tensor, row_major
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.found import Place, find_sizes
from hagane.native.lowering.state import Lowering
from hagane.native.rules.control.bodies import BodyKernels, Pointers, emit_control, result_of
from hagane.native.rules.control.changing_sizes import (
    SizesOfIterations,
    are_found,
    names_that_change,
)
from hagane.native.rules.control.limits import most_rows
from hagane.native.rules.control.merged import merged
from hagane.ops.control.growth import growths
from hagane.ops.control.loop import hands_on
from hagane.symbolic import Dim, evaluate, product, symbol, symbols_of

INT64 = np.dtype(np.int64)


def _moving(like: Tensor, name: str) -> Tensor:
    """Return a contiguous place of a tensor's type and shape that moves between iterations."""
    return Tensor(
        Buffer(name, like.size * like.dtype.itemsize, Kind.MOVING),
        like.dtype,
        like.shape,
        row_major(like.shape),
    )


def _same_type(low: Lowering, what: str, *values: ir.Value) -> None:
    first, *others = values
    for other in others:
        if low.facts.dtype(other) != low.facts.dtype(first):
            raise NotNative(f"{what} changes its element type")
        if low.facts.shape(other) != low.facts.shape(first):
            raise NotNative(f"{what} changes its shape between iterations")


@dataclass
class LoopKernels:
    """A Loop or Scan on its way to kernels.

    Attributes:
        low: The state of the graph around it.
        node: The node.
        body: Its body.
        wanted: Outputs of the body and their places.
        states: The values of a state: around, before an iteration, after it, and the results.
        count: Where the number of the iteration lies.
        iterations: How many iterations there are, if that is known before the run.
        filled: Results in memory for as many rows as there may be, of which the run fills the first.
        left: States whose sizes iterations find: which of those carried, the value after an iteration,
            the place before it, and the result.
    """

    low: Lowering
    node: ir.Node
    body: BodyKernels
    states: Sequence[tuple[ir.Value, ir.Value, ir.Value, ir.Value]]
    count: Tensor | None = None
    iterations: Dim | None = None
    pointers: Pointers = field(default_factory=Pointers)
    wanted: list[tuple[ir.Value, Tensor]] = field(default_factory=list)
    carried: list[Carried] = field(default_factory=list)
    scanned: list[Scanned] = field(default_factory=list)
    filled: list[tuple[ir.Value, Tensor]] = field(default_factory=list)
    left: list[tuple[int, ir.Value, Tensor, ir.Value]] = field(default_factory=list)
    sizes: SizesOfIterations | None = None

    def carry(self) -> None:
        """Give each state its places; one that no iteration changes keeps the place that it has."""
        from hagane.native.rules.control.in_place import is_written_in_place  # few models need it

        low, inner = self.low, self.body.low
        self._find_sizes()
        for start, before, after, result in self.states:
            if hands_on(after) is before:
                if before not in inner.facts.constants:
                    inner.forms[before] = low.forms.plain(start)
                    self.body.captured.append(low.forms.plain(start))
                low.forms[result] = low.forms.plain(start)
                continue
            if self.sizes is not None and any(map(self.sizes.differs, low.facts.shape(before))):
                self._carry_growing(start, before, after, result)
                continue
            _same_type(low, f"'{before.name}'", before, after)
            self._check_start(start, before)
            begin, first = low.forms.contiguous(start), result_of(low, result)
            if is_written_in_place(self.body.graph, before, after):
                self._keep(begin, first, before, after)
                low.forms[result] = first
                continue
            second = low.recorder.new(f"{before.name} spare", first.dtype, first.shape)
            old, new = _moving(first, str(before.name)), _moving(first, str(after.name))
            inner.forms[before] = old
            self.wanted.append((after, new))
            add = self.pointers.add
            size = first.size * first.dtype.itemsize
            self.carried.append(
                Carried(
                    old.buffer,
                    new.buffer,
                    add(begin),
                    add(first, written=True),
                    add(second, written=True),
                    size,
                )
            )
            low.forms[result] = first

    def _keep(self, begin: Tensor, place: Tensor, before: ir.Value, after: ir.Value) -> None:
        """Let iterations write a state where it lies."""
        if not begin.is_at(place):
            emit_copy(self.low.recorder, begin, place)
        self.body.low.forms[before] = place
        self.wanted.append((after, place))
        self.pointers.add(place, written=True)

    def _find_sizes(self) -> None:
        """Find the sizes that states grow by; anything else that changes them is refused later."""
        low = self.low
        starts, befores, afters = (
            [low.facts.types.types.get(state[i]) for state in self.states] for i in range(3)
        )
        found = [
            growth
            for growth in growths(starts, befores, afters).values()
            if growth.step != 0 or not self._assumes(growth.start, growth.before)
        ]
        if found and self.count is not None:
            names, left = names_that_change(found, low.facts.types.invented), None
            if are_found(names, low.facts.types.invented) or self._ends_unknown(names):
                left = low.recorder.new("sizes of the next iteration", INT64, (len(names),))
            self.sizes = SizesOfIterations(names, left)

    def _ends_unknown(self, names: Sequence[tuple[str, Dim, Dim]]) -> bool:
        """Whether nodes of a body read a state that grows, and whose last size nothing tells before."""
        low = self.low
        steps = [after - symbol(name) for name, _, after in names]
        if self.iterations is not None and all(isinstance(step, int) for step in steps):
            return False
        changing = {name for name, _, _ in names}
        shapes = [(low.facts.shape(before), result) for _, before, _, result in self.states]
        return low.forms.inner and any(
            low.facts.uses(result) and any(symbols_of(dim) & changing for dim in shape)
            for shape, result in shapes
        )

    def _assumes(self, left: Dim, right: Dim) -> bool:
        """Whether a run compares two sizes, and goes another way if they differ."""
        return (left, right) in self.low.facts.types.assumed.get(self.node, ())

    def _check_start(self, start: ir.Value, before: ir.Value) -> None:
        """Raise ``NotNative`` unless a state begins with the type that it has in all iterations."""
        facts = self.low.facts
        if facts.dtype(start) != facts.dtype(before):
            raise NotNative(f"'{before.name}' changes its element type")
        shapes = facts.shape(start), facts.shape(before)
        if len(shapes[0]) != len(shapes[1]) or any(
            left != right and not self._assumes(left, right)
            for left, right in zip(*shapes, strict=True)
        ):
            raise NotNative(f"'{before.name}' changes its shape between iterations")

    def _carry_growing(
        self, start: ir.Value, before: ir.Value, after: ir.Value, result: ir.Value
    ) -> None:
        """Give a state places that the engine makes larger; its size is known in each iteration."""
        low, sizes, add = self.low, self.sizes, self.pointers.add
        assert sizes is not None
        grown = {name: next_size for name, _, next_size in sizes.names}
        begun = {name: first for name, first, _ in sizes.names}
        shape, dtype = low.facts.shape(before), low.facts.dtype(before)
        for value, names in ((start, begun), (after, grown)):
            wanted = tuple(evaluate(dim, names) for dim in shape)
            if low.facts.dtype(value) != dtype or low.facts.shape(value) != wanted:
                raise NotNative(f"'{before.name}' changes its shape between iterations")
        from hagane.native.rules.control.in_place import is_appended_to  # few models need it

        appended = is_appended_to(self.body.graph, before, after, shape)
        next_shape = low.facts.shape(after)
        size, next_bytes = (product(of) * dtype.itemsize for of in (shape, next_shape))
        buffer = Buffer(str(before.name), size, Kind.MOVING)
        # A state that is only added to has one place for both.
        next_buffer = Buffer(str(after.name), next_bytes, Kind.MOVING)
        old = Tensor(next_buffer if appended else buffer, dtype, shape, row_major(shape))
        new = Tensor(next_buffer, dtype, next_shape, row_major(next_shape))
        self.body.low.forms[before] = old
        begin, first, left = low.forms.contiguous(start), NONE, None
        if sizes.left is not None:
            self.left.append((len(self.carried), after, old, result))
            size, of_any = begin.size * dtype.itemsize, size
            if appended:
                self.body.appended.append((after, new))
            self.carried.append(
                Carried(old.buffer, old.buffer, add(begin), NONE, NONE, size, of_any, None, shape)
            )
            return
        self.wanted.append((after, new))
        if low.facts.uses(result):
            first, left = self._final_place(result, shape)
        size = begin.size * dtype.itemsize
        self.carried.append(
            Carried(
                old.buffer, new.buffer, add(begin), first, NONE, size,
                new.buffer.bytes, left, shape,
            )
        )  # fmt: skip

    def _final_place(self, result: ir.Value, shape: Sequence[Dim]) -> tuple[int, Buffer | None]:
        """Return the pointer to where a growing state ends, or the output that is made of it."""
        low, sizes = self.low, self.sizes
        assert sizes is not None
        steps = [next_size - symbol(name) for name, _, next_size in sizes.names]
        if self.iterations is not None and all(isinstance(step, int) for step in steps):
            final = {
                name: first + step * self.iterations
                for (name, first, _), step in zip(sizes.names, steps, strict=True)
            }
            if low.facts.shape(result) == tuple(evaluate(dim, final) for dim in shape):
                low.forms[result] = place = low.forms.result(result)
                return self.pointers.add(place, written=True), None
        pairs = zip(shape, low.facts.shape(result), strict=True)
        left = tuple(0 if sizes.differs(dim) else final for dim, final in pairs)
        return NONE, _leave(self, result, left)

    def slice_of(self, whole: Tensor, axis: int, count: Dim, *, backwards: bool) -> Tensor:
        """Return a slice of a value along an axis; which one, the iteration decides."""
        buffer = Buffer(f"slice of {whole.buffer.name}", 0, Kind.MOVING)
        step = whole.strides[axis] * whole.dtype.itemsize
        start = (count - 1) * step if backwards else 0
        base = self.pointers.add(whole, written=True)
        self.scanned.append(Scanned(buffer, base, start, -1 * step if backwards else step))
        return Tensor(
            buffer,
            whole.dtype,
            whole.shape[:axis] + whole.shape[axis + 1 :],
            whole.strides[:axis] + whole.strides[axis + 1 :],
        )

    def finish(self, control: Loop) -> None:
        """Put the body between a kernel that runs it and a mark."""
        low = self.low
        read = (value for value in self.node.inputs if value is not None)
        sizes, left = self.sizes, [after for _, after, _, _ in self.left]
        leave = None if sizes is None or sizes.left is None else sizes.leave
        self.body.lower(self.wanted, read, sizes, left, leave)
        kernels, changing = self.body.low.recorder.kernels, None
        if self.sizes is not None:
            kernels, changing = self._with_sizes(self.sizes, kernels)
        else:
            kernels = merged(kernels)
        control = replace(
            control,
            carried=tuple(self.carried),
            scanned=tuple(self.scanned),
            changing=changing,
        )
        kept = [Pointer(tensor.buffer, 0, False) for tensor in self.body.captured]
        pointers = [*self.pointers.found, *kept]
        emit_control(
            low, self.node, control, pointers, "no memory for what {value} iterations leave"
        )
        low.recorder.kernels += kernels
        # Values that the next iteration reads have to outlive this one.
        emit_control(low, self.node, Mark.END, pointers)
        self._find_rows()
        self._find_last_sizes()

    def _find_rows(self) -> None:
        """Take the number of iterations, which the engine leaves, for a size of results."""
        if not self.filled:
            return
        low, count = self.low, self.count
        assert count is not None
        counts = dict.fromkeys(rows.shape[0] for _, rows in self.filled)
        find_sizes(low, self.node, [(dim, Place(count, 0)) for dim in counts])
        for result, rows in self.filled:
            low.forms[result] = rows
            if result in low.facts.outputs:
                place = low.forms.result(result)
                emit_copy(low.recorder, rows, place)
                low.forms[result] = place

    def _find_last_sizes(self) -> None:
        """Take the last sizes of states, which the body has found, for sizes of results."""
        low, sizes = self.low, self.sizes
        used = [(old, result) for _, _, old, result in self.left if low.facts.uses(result)]
        if not used or sizes is None or sizes.left is None:
            return
        numbers: dict[Dim, str] = {}
        places = {name: f"left[{i}]" for i, (name, _, _) in enumerate(sizes.names)}
        for old, result in used:
            for dim, last in zip(old.shape, low.facts.shape(result), strict=True):
                if sizes.differs(dim):
                    (name,) = symbols_of(dim) & places.keys()
                    numbers[last] = f"{places[name]} + {dim - symbol(name)}"
        text = "\n".join(f"found[{i}] = {number};" for i, number in enumerate(numbers.values()))
        from hagane.native.rules.shaping.numbers import found_numbers  # few models need it

        found_numbers(low, self.node, text, list(numbers), reads={"left": sizes.left})
        for old, result in used:
            shape = low.facts.shape(result)
            low.forms[result] = last_value = Tensor(old.buffer, old.dtype, shape, row_major(shape))
            if result in low.facts.outputs:
                place = low.forms.result(result)
                emit_copy(low.recorder, last_value, place)
                low.forms[result] = place

    def _with_sizes(
        self, sizes: SizesOfIterations, kernels: list[Kernel]
    ) -> tuple[list[Kernel], ChangingSizes]:
        """Return the body's kernels behind the one that computes their sizes in each iteration."""
        assert self.count is not None
        sizes.note_later(kernels)
        sizes.weigh(kernels, self.iterations)
        found = self.body.found
        appended = [place.buffer for _, place in self.body.appended]
        known = [buffer for buffer in appended if not symbols_of(buffer.bytes) & found]
        temporaries = sizes.temporaries(kernels, known)
        moving = {*temporaries, *(part.slice for part in self.scanned)}
        moving |= {buffer for value in self.carried for buffer in (value.before, value.after)}
        self.scanned += sizes.rebase(kernels, moving, self.pointers.found)
        made, changing = sizes.kernel(kernels, self.carried, temporaries, self.count)
        if self.left:  # their places are known only now
            places = kernels[-1].pointers[1 : 1 + len(self.left)]
            for (index, _, _, _), place in zip(self.left, places, strict=True):
                number = len(self.pointers.found)
                self.pointers.found.append(place)
                self.carried[index] = replace(self.carried[index], second=number)
        return [made, *kernels], changing


def kept_place(loop: LoopKernels, item: ir.Value, result: ir.Value) -> Tensor:
    """Return the place of one iteration's part of a result."""
    low = loop.low
    shape, whole = low.facts.shape(item), low.facts.shape(result)
    differs = loop.sizes is not None and any(map(loop.sizes.differs, shape))
    if differs or low.facts.dtype(item) != low.facts.dtype(result) or shape != whole[1:]:
        raise NotNative(f"'{item.name}' changes its type between iterations")
    if loop.iterations is not None and whole[0] == loop.iterations:
        low.forms[result] = low.forms.result(result)
        return loop.slice_of(low.forms.plain(result), 0, loop.iterations, backwards=False)
    most = most_rows(loop.node, result, low.facts.types, inner=low.forms.inner)
    if most is not None:
        rows = low.recorder.new(f"rows of {result.name}", low.facts.dtype(result), (most, *shape))
        loop.filled.append((result, replace(rows, shape=whole)))
        return loop.slice_of(rows, 0, most, backwards=False)
    dtype, grown = low.facts.dtype(result), None
    buffer = Buffer(f"slice of {result.name}", 0, Kind.MOVING)
    if _is_only_left(low, result):
        grown = _leave(loop, result, (0, *whole[1:]))
    elif low.facts.uses(result):
        # When the loop has ended, the pointers to a slice point to all of them.
        loop.filled.append((result, Tensor(buffer, dtype, whole, row_major(whole))))
    step = product(shape) * dtype.itemsize
    loop.scanned.append(Scanned(buffer, NONE, 0, step, grown))
    return Tensor(buffer, dtype, shape, row_major(shape))


def _is_only_left(low: Lowering, result: ir.Value) -> bool:
    """Whether a loop of the main graph makes an output that no other node of the part reads."""
    readers = {use.node for use in result.uses()}
    is_output = result in low.facts.outputs and not low.forms.inner
    return is_output and not readers & set(all_nodes(low.facts.nodes))


def _leave(loop: LoopKernels, result: ir.Value, before: tuple[Dim, ...]) -> Buffer:
    """Return the buffer of an output that is made when the loop has ended; ``before``, its shape."""
    low = loop.low
    if not _is_only_left(low, result):
        raise NotNative("the number of its iterations is known only when it ends")
    grown = Buffer(str(result.name), 0, Kind.OUTPUT)
    low.forms.results[result] = grown
    low.forms.grown[result] = before
    low.forms[result] = Tensor(
        grown, low.facts.dtype(result), low.facts.shape(result), row_major(low.facts.shape(result))
    )
    loop.pointers.found.append(Pointer(grown, 0, True))
    return grown
