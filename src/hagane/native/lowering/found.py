"""Sizes that kernels find in the data, and values computed of them while a program runs.

A rule whose result has a size that no shape of an input tells writes the kernel that finds it, and
says by ``find_sizes`` where the number lies. From then on the size is a name like any other: kernels
behind it take it as an argument. When all kernels of a part or body are there, ``settle`` collects the
numbers that follow from each find (arguments, offsets, tasks, bytes), and writes the kernel that
computes them; the engine calls it and brings the numbers to where they are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

import onnx_ir as ir

from hagane.graph.types import TensorType
from hagane.graph.walk import read_values
from hagane.native.kernels.control import (
    Branch,
    ChangingSizes,
    Found,
    Loop,
    Mark,
    Scanned,
    changing_names,
)
from hagane.native.kernels.formula import FLOOR, Formulas
from hagane.native.kernels.kernel import Body, Kernel, Pointer
from hagane.native.kernels.recorder import Recorder, label_of
from hagane.native.kernels.sizes import dims_of
from hagane.native.kernels.tensor import Buffer, Kind, Tensor
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering
from hagane.native.ready.context import BY_REFERENCE
from hagane.ops.inference import GraphTypes
from hagane.symbolic import Dim, Expr, line_in, maximum, symbol, symbols_of

# Nanoseconds of a kernel whose sizes nobody knows yet.
_LIKELY_WORK = 65536.0
# Operators whose kernels want a border around an image, which is cleared before a run.
_BORDERED = frozenset(
    ("", name)
    for name in ("AveragePool", "Conv", "ConvInteger", "ConvTranspose", "MaxPool", "QLinearConv")
)
_NO_MEMORY = "there is no memory for values of sizes that were found, the largest {value:,} bytes"


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Where a kernel leaves a number: an element of an int64 tensor."""

    tensor: Tensor
    index: int


def find_sizes(low: Lowering, node: ir.Node, found: Sequence[tuple[Dim, Place]]) -> None:
    """Take numbers that a kernel has left for sizes.

    A size without unknown names has to equal its number, or the reference kernels compute the part.

    Args:
        low: The state of lowering.
        node: The node whose result has the sizes.
        found: Sizes, each an unknown name or a multiple of one by a known size, and numbers.

    Raises:
        NotNative: A size is another expression of unknown names.
    """
    names: dict[str, tuple[Place, Dim]] = {}
    checks: list[tuple[Dim, Place]] = []
    for dim, place in found:
        unknown = symbols_of(dim) - low.facts.given - low.found - names.keys()
        factor: Dim = 0
        if unknown:
            name, factor = _multiple(dim, unknown)
            names[name] = place, factor
        if factor != 1:
            checks.append((dim, place))
    low.found |= names.keys()
    low.finders.setdefault(node, set()).update(names)
    tensors = list(dict.fromkeys(place.tensor for _, place in found))
    control = Found(
        tuple(names), tuple((dim, *_at(place, tensors)) for dim, place in checks),
        tuple((factor, *_at(place, tensors)) for place, factor in names.values()),
        ChangingSizes((), (), Buffer("sizes found", 0, Kind.MOVING), (), 0), (), (),
    )  # fmt: skip
    pointers = tuple(
        Pointer(tensor.buffer, tensor.offset * tensor.dtype.itemsize, False) for tensor in tensors
    )
    label = label_of(node)
    low.recorder.kernels.append(
        Kernel(label, "", pointers, (), 0, failure=_NO_MEMORY, control=control)
    )


def _at(place: Place, tensors: Sequence[Tensor]) -> tuple[int, int]:
    return tensors.index(place.tensor), place.index


def _multiple(dim: Dim, unknown: frozenset[str]) -> tuple[str, Dim]:
    """Return the unknown name in a size, and the known size that it is multiplied by."""
    if isinstance(dim, Expr) and len(unknown) == 1 and len(dim.terms) == 1:
        (name,) = unknown
        ((monomial, coefficient),) = dim.terms.items()
        rest = tuple((atom, power) for atom, power in monomial if atom.head != name)
        own = [power for atom, power in monomial if atom.is_symbol and atom.head == name]
        if own == [1] and not any(name in symbols_of(Expr({((a, p),): 1})) for a, p in rest):
            factor = Expr({rest: coefficient}) if rest else int(coefficient)
            return name, factor
    raise NotNative(f"a size '{dim}' that only the data tell")


def outputs_that_end_a_part(node: ir.Node, types: GraphTypes) -> Sequence[ir.Value]:
    """Return the results of a node that finds sizes of images; kernels of these begin a new part."""
    made = _names(node.outputs, types) & types.invented
    if node.graph is None or not (made := made - _names(node.inputs, types)):
        return ()
    before = True
    for other in node.graph:
        if other is node:
            before = False
        elif before:
            made -= _names(other.outputs, types)  # which has found them
            if not made:
                return ()
        elif (other.domain, other.op_type) in _BORDERED and _names(other.inputs, types) & made:
            return node.outputs
    return ()


def _names(values: Sequence[ir.Value | None], types: GraphTypes) -> set[str]:
    """Return the names in the shapes of values."""
    found = (types.types.get(value) for value in values if value is not None)
    shapes = [each.shape for each in found if isinstance(each, TensorType) and each.shape]
    return {name for shape in shapes for dim in shape for name in symbols_of(dim)}


def values_read(nodes: Sequence[ir.Node]) -> list[ir.Value]:
    """Return the values that nodes of a part read and do not make."""
    made = {value for node in nodes for value in node.outputs}
    return [
        value
        for value in dict.fromkeys(v for node in nodes for v in read_values(node))
        if value not in made
    ]


def given_sizes(graph: ir.Graph, nodes: Sequence[ir.Node], types: GraphTypes) -> frozenset[str]:
    """Return the names of sizes that shapes of values outside of a part give."""
    found = [types.types.get(value) for value in (*values_read(nodes), *graph.inputs)]
    shapes = [each.shape for each in found if isinstance(each, TensorType) and each.shape]
    return frozenset(
        name
        for shape in shapes
        for dim in shape
        for name in symbols_of(dim)
        if line_in(dim, name) is not None
    )


def has_nameless_sizes(graph: ir.Graph, nodes: Sequence[ir.Node], types: GraphTypes) -> bool:
    """Whether sizes of values that a part reads have names that no such size gives."""
    given = given_sizes(graph, nodes, types)
    found = [types.types.get(value) for value in values_read(nodes)]
    shapes = [each.shape for each in found if isinstance(each, TensorType) and each.shape]
    return any(symbols_of(dim) - given for shape in shapes for dim in shape)


def new_size(low: Lowering, value: ir.Value, label: str) -> Expr:
    """Return a name for a number that a kernel will find and that is no size of a result."""
    return symbol(f"{value.name}:{label}")


def settle(
    recorder: Recorder,
    results: Mapping[Buffer, tuple[Dim, ...]] | None = None,
    equal: Sequence[tuple[Dim, Dim]] = (),
    appended: Set[Buffer] = frozenset(),
) -> dict[Buffer, tuple[Dim, ...]]:
    """Bring values computed of found sizes to the kernels that read them.

    Args:
        recorder: The kernels, all of a part or body; changed.
        results: Outputs of the part, and their shapes.
        equal: Sizes that kernels take for equal; otherwise the reference kernels compute the part.
        appended: States of the loop whose body this is, to whose end it adds.

    Returns:
        Outputs whose memory is there only when the sizes are found, and their shapes.

    Raises:
        NotNative: An output's shape depends on a size that is found, and its bytes do not.
    """
    kernels = recorder.kernels
    grown: dict[Buffer, tuple[Dim, ...]] = {}
    # From the last find to the first: the kernels of later ones read sizes of earlier ones.
    for index in reversed(range(len(kernels))):
        control = kernels[index].control
        if isinstance(control, Found) and not control.settled:
            behind = kernels[index + 1 :]
            made = _Settling(kernels[index], control, behind, results or {}, equal, appended)
            kernels[index : index + 1] = made.kernels()
            grown |= made.grown
    return grown


class _Settling:
    """The consequences of one find."""

    def __init__(
        self,
        kernel: Kernel,
        control: Found,
        behind: Sequence[Kernel],
        results: Mapping[Buffer, tuple[Dim, ...]],
        equal: Sequence[tuple[Dim, Dim]],
        appended: Set[Buffer],
    ):
        self.appended = appended
        self.kernel, self.control, self.behind = kernel, control, behind
        self.results, self.equal = results, equal
        self.grown: dict[Buffer, tuple[Dim, ...]] = {}
        self.own = frozenset(control.names)
        self.later = changing_names([each.control for each in behind]).keys()

    def follows(self, dim: Dim) -> bool:
        """Whether a number is known with this find, and not before."""
        names = symbols_of(dim)
        return bool(names & self.own) and not names & self.later

    def kernels(self) -> list[Kernel]:
        """Return the find and the kernel that computes the numbers."""
        pointers = list(self.kernel.pointers)
        temporaries = self._temporaries()
        views = self._views(set(temporaries), pointers)
        # (That of kernels behind later finds follows from these.)
        needs = [each.scratch for each in self.behind if self.follows(each.scratch)]
        scratch = maximum(0, *needs)
        found = [buffer.bytes for buffer in temporaries]
        for each in self.behind:
            if isinstance(each.work, Expr) and symbols_of(each.work) & self.own:
                each.work = _LIKELY_WORK
            if isinstance(each.flops, Expr) and symbols_of(each.flops) & self.own:
                each.flops = 0.0
            found += dims_of(each)
        dims = tuple(dict.fromkeys(dim for dim in (*found, scratch) if self.follows(dim)))
        names = tuple((name, 0, 0) for name in self.control.names)
        changing = replace(
            self.control.changing, names=names, dims=dims, temporaries=temporaries,
            scratch=scratch,
        )  # fmt: skip
        settled = replace(
            self.control, changing=changing, scanned=tuple(views), results=tuple(self.grown.items()),
            settled=True,
        )  # fmt: skip
        sizer = self._sizer(changing)
        # Checked when the sizes of this find are known, and compared in its kernel.
        return [
            replace(self.kernel, control=settled, pointers=tuple(pointers)),
            sizer,
        ]

    def _sizer(self, changing: ChangingSizes) -> Kernel:
        """Return the kernel that computes all numbers."""
        body = Body()
        out = body.raw(changing.numbers, written=True, ctype="int64_t")
        places = [body.raw(p.buffer, ctype="char") for p in self.kernel.pointers]
        for place, pointer in zip(places, self.kernel.pointers, strict=True):
            body.add(
                f"const int64_t *{place}_n = (const int64_t *)({place} + {body.size(pointer.offset)});"
            )
        body.helper(FLOOR)
        news = {name: f"n{i}" for i, name in enumerate(self.control.names)}
        formulas = Formulas(body, news)
        for i, (factor, tensor, at) in enumerate(self.control.factors):
            number = f"p{tensor + 1}_n[{at}]"
            if factor == 1:
                body.add(f"int64_t n{i} = {number};")
                body.add(
                    f"if (n{i} < -hg_found_limit || n{i} > hg_found_limit) {{ hg_fail(thread, n{i}); return; }}"
                )
            else:
                by = formulas.text(factor)
                body.add(f"int64_t f{i} = {by}, n{i} = f{i} == 0 ? 0 : {number} / f{i};")
        for dim, tensor, at in self.control.checks:
            number = f"p{tensor + 1}_n[{at}]"
            text = formulas.text(dim)
            body.add(f"if ({text} != {number}) {{ hg_fail(thread, {number}); return; }}")
        for left, right in self.equal:
            if self.follows(left - right):
                texts = formulas.text(left), formulas.text(right)
                body.add(
                    f"if ({texts[0]} != {texts[1]}) {{ hg_fail(thread, {texts[0]}); return; }}"
                )
        for i, dim in enumerate(changing.dims):
            # Products of sizes that the data tell may be beyond all integers.
            if any(sum(power for _, power in term) > 1 for term in getattr(dim, "terms", ())):
                bound = formulas.bound(dim)
                body.add(f"if ({bound} > 0x1p60) {{ hg_fail(thread, 0); return; }}")
            text = formulas.text(dim)
            body.add(f"{out}[{i}] = {text};")
        for i in range(len(self.control.names)):
            body.add(f"{out}[{len(changing.dims) + i}] = n{i};")
        code = body.code().replace("hg_found_limit", "(1LL << 48)")
        return Kernel(
            self.kernel.label, code, tuple(body.pointers), tuple(body.sizes), 0,
            failure=BY_REFERENCE, name="sizes_found",
        )  # fmt: skip

    def _temporaries(self) -> tuple[Buffer, ...]:
        """Take values of sizes that are found out of the arena, and return them."""
        buffers = dict.fromkeys(p.buffer for each in self.behind for p in each.pointers)
        for buffer, shape in self.results.items():
            if any(self.follows(dim) for dim in shape):
                if self.follows(buffer.bytes):
                    self.grown[buffer] = shape
                elif not symbols_of(buffer.bytes) & self.later:  # else a later find tells them
                    raise NotNative("an output without elements whose shape is found")
        found = [
            buffer
            for buffer in buffers
            if (buffer.kind in (Kind.ARENA, Kind.BORDERED, Kind.OUTPUT) or buffer in self.appended)
            and self.follows(buffer.bytes)
        ]
        for buffer in found:
            if buffer.border:
                raise NotNative("an image whose border has a size that is found")
            buffer.kind = Kind.MOVING
        return tuple(_shared(found, self.behind, {*self.grown, *self.appended}))

    def _views(self, moved: set[Buffer], pointers: list[Pointer]) -> list[Scanned]:
        """Let pointers at offsets that are found go through buffers that move."""
        # (A later find moves a state that is added to, but kernels before it read it where it was.)
        own = {buffer for each in self.behind for buffer in moved_by(each)} - self.appended | moved
        views: dict[Buffer, Buffer] = {}
        scanned: list[Scanned] = []
        for each in self.behind:
            own |= moved_by(each) & self.appended
            changed = list(each.pointers)
            for i, pointer in enumerate(changed):
                if not self.follows(pointer.offset) or pointer.buffer in own:
                    continue
                if pointer.buffer not in views:
                    views[pointer.buffer] = Buffer(f"part of {pointer.buffer.name}", 0, Kind.MOVING)
                    pointers.append(Pointer(pointer.buffer, 0, False))
                    scanned.append(Scanned(views[pointer.buffer], len(pointers) - 1, 0, 0))
                changed[i] = replace(pointer, buffer=views[pointer.buffer])
                kept = Pointer(pointer.buffer, 0, False)
                if kept not in changed:
                    changed.append(kept)  # its memory must not be used for another value yet
            each.pointers = tuple(changed)
        return scanned


def moved_by(kernel: Kernel) -> set[Buffer]:
    """Return the buffers whose places a kernel without code decides."""
    control = kernel.control
    found: set[Buffer] = set()
    if isinstance(control, Loop | Found):
        found |= {part.slice for part in control.scanned}
        if control.changing is not None:
            found |= set(control.changing.temporaries)
    if isinstance(control, Loop):
        found |= {buffer for value in control.carried for buffer in (value.before, value.after)}
    return found


def _shared(
    found: Sequence[Buffer], kernels: Sequence[Kernel], results: Set[Buffer]
) -> list[Buffer]:
    """Let values that live one after the other use one piece of memory, as large as the largest."""
    first: dict[Buffer, int] = {}
    last: dict[Buffer, int] = {}
    fixed = set(results)
    for index, kernel in enumerate(kernels):
        for pointer in kernel.pointers:
            first.setdefault(pointer.buffer, index)
            last[pointer.buffer] = index
        if kernel.control is not None and not isinstance(kernel.control, Mark | Branch):
            fixed |= {pointer.buffer for pointer in kernel.pointers}
    rooms: list[tuple[Buffer, int]] = []
    moved: dict[Buffer, Buffer] = {}
    for buffer in sorted(found, key=lambda each: first[each]):
        free = [
            i for i, (_, end) in enumerate(rooms) if end < first[buffer] and buffer not in fixed
        ]
        if buffer in fixed or not free:
            rooms.append((buffer, last[buffer] if buffer not in fixed else len(kernels)))
            continue
        same = [i for i in free if rooms[i][0].bytes == buffer.bytes]
        at = (same or free)[0]
        room, _ = rooms[at]
        room.bytes = maximum(room.bytes, buffer.bytes)
        moved[buffer] = room
        rooms[at] = room, last[buffer]
    for kernel in kernels:
        if any(pointer.buffer in moved for pointer in kernel.pointers):
            kernel.pointers = tuple(
                replace(p, buffer=moved.get(p.buffer, p.buffer)) for p in kernel.pointers
            )
    return [room for room, _ in rooms]
