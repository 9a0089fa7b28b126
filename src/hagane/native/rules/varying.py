"""Weights that are not constant: the kernels of constant ones, on weights packed in each run.

Packing of constant weights only moves them and fills gaps with zeros. Given the numbers of their
places in the place of weights, it makes a table of where each packed element comes from. Where the
table is a few loops with fixed steps, a kernel goes through these before the others run; otherwise it
follows the table. Winograd's algorithm computes with weights: a kernel transforms them. Other packing
that computes, as that of numbers in pieces, is left aside.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.expression import FLOAT32
from hagane.native.kernels.kernel import Body
from hagane.native.kernels.packing import Packing, as_is
from hagane.native.kernels.recorder import Recorder
from hagane.native.kernels.tensor import Buffer, Kind, Tensor
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.convolution.filtering import transform
from hagane.native.rules.convolution.winograd import pack_points
from hagane.ops.definition import Array

# Floats hold the numbers of so many places.
_MOST_PLACES = 1 << 24
# One task follows so many entries of a table.
_TASK = 4096
# Inputs whose filters one task transforms.
_INPUTS = 16
# A table that is more runs is followed.
_MOST_RUNS = 6


@dataclass
class _Gathering(Recorder):
    """Takes kernels, and has weights gathered from tensors when these run.

    Attributes:
        sources: Tensors that hold the places, one behind the other, numbered from 1 on.
        seen: Whether packed weights hold a place.
    """

    sources: Sequence[Tensor] = ()
    seen: Array = field(default_factory=lambda: np.zeros(1, np.bool_))

    def weight(self, key: Any, packing: Packing, count: int) -> Buffer:
        """Return memory in which the packed weights will lie when later kernels run."""
        if packing.function is pack_points:
            return self._transform(packing.arguments, count)
        flat = np.concatenate([np.asarray(piece).reshape(-1) for piece in packing.pieces()])
        if flat.dtype != np.float32 or flat.nbytes > count:
            raise NotNative("weights that are not constant, packed as other numbers than floats")
        places = np.zeros(count // 4, np.int32)
        with np.errstate(invalid="ignore"):
            places[: flat.size] = flat
        total = sum(int(source.size) for source in self.sources)
        if not np.array_equal(places[: flat.size], flat) or not places.min(initial=0) >= 0:
            raise NotNative("weights that are not constant, with which packing computes")
        if places.max(initial=0) > total:
            raise NotNative("weights that are not constant, with which packing computes")
        self.seen[places] = True
        buffer = Buffer(f"packed {self.node.name if self.node else ''}", count, Kind.ARENA)
        target = Tensor(buffer, FLOAT32, (places.size,), (1,))
        runs = runs_of(places)
        if runs is not None and all(self._source(run) is not None for run in runs):
            for run in runs:
                self._copy(run, target)
            return buffer
        table = super().weight(("places", key), Packing(as_is, (places,)), places.nbytes)
        body = Body()
        at, to = body.raw(table, ctype="int32_t"), body.pointer(target, written=True)
        found, start = "0.f", 0
        for source in self.sources:
            name, end = body.pointer(source), start + int(source.size)
            found = f"p > {start} && p <= {end} ? {name}[p - {start + 1}] : {found}"
            start = end
        body.add(
            f"int64_t end = hg_min({places.size}, (q + 1) * {_TASK});",
            f"for (int64_t i = q * {_TASK}; i < end; i++) {{",
            f"int64_t p = {at}[i];",
            f"{to}[i] = {found};",
            "}",
        )
        tasks = -(-places.size // _TASK)
        self.emit("pack weights", body, tasks, work=float(places.size), name="pack_weights")
        return buffer

    def _transform(self, arguments: Sequence[Any], count: int) -> Buffer:
        """Append the kernel that transforms filters to the points of Winograd's algorithm.

        Args:
            arguments: Those of ``pack_points``, places in the place of weights.
            count: Bytes of the result.
        """
        places, (rows, columns), sizes, level = arguments
        lanes, (outs, inputs, *_) = level.lanes, places.shape
        places = places.reshape(outs, inputs, len(rows[0]), len(columns[0]))
        first, steps = _steps_of(places)
        self.seen[places.astype(np.int64)] = True
        run = Run(0, first, tuple(zip(places.shape, steps, strict=True)))
        found = self._source(run)
        source, start = (None, 0) if found is None else found
        if source is None:
            raise NotNative("weights that are not constant, of several tensors")
        buffer = Buffer(f"packed {self.node.name if self.node else ''}", count, Kind.ARENA)
        target = Tensor(buffer, FLOAT32, (count // 4,), (1,))
        # Where the outputs of each block lie, and how far apart those of two inputs are.
        begins, apart, at = [], [], 0
        for blocks in sizes:
            begins += [at + block * lanes for block in range(blocks)]
            apart += [blocks * lanes] * blocks
            at += blocks * lanes * inputs
        body = Body()
        s, d = body.pointer(source, offset=start), body.pointer(target, written=True)
        out, input_, row, column = steps
        body.add(
            f"static const int64_t begins[] = {{{', '.join(map(str, begins))}}};",
            f"static const int64_t apart[] = {{{', '.join(map(str, apart))}}};",
            f"const int64_t block = q % {len(begins)}, first = q / {len(begins)} * {_INPUTS};",
            f"const int64_t n = hg_min({lanes}, {outs} - block * {lanes});",
            f"for (int64_t c = first; c < hg_min({inputs}, first + {_INPUTS}); c++) {{",
            f"const float *s = {s} + block * {lanes * out}L + c * {input_}L;",
            f"float *d = {d} + begins[block] + c * apart[block];",
        )
        for x in range(len(columns[0])):
            taps = [f"t{y}_{x}" for y in range(len(rows[0]))]
            body.add(
                *(f"vf {name} = v_load_strided(s + {y * row + x * column}L, {out}L, n);"
                  for y, name in enumerate(taps)),
                *transform(rows, taps, [f"e{a}_{x}" for a in range(len(rows))]),
            )  # fmt: skip
        for a in range(len(rows)):
            names = [f"e{a}_{x}" for x in range(len(columns[0]))]
            made = [f"f{a}_{b}" for b in range(len(columns))]
            body.add(*transform(columns, names, made))
            for b, name in enumerate(made):
                body.add(f"v_store(d + {(a * len(columns) + b) * at}L, {name});")
        body.add("}")
        tasks = len(begins) * -(-inputs // _INPUTS)
        self.emit("pack weights", body, tasks, work=places.size * 2.0, name="transform_weights")
        return buffer

    def _source(self, run: Run) -> tuple[Tensor | None, int] | None:
        """Return the tensor that a run reads and where it begins there; None if it reads several."""
        reach = [(count - 1) * step for count, step in run.loops]
        low = run.first + sum(min(0, way) for way in reach)
        high = run.first + sum(max(0, way) for way in reach)
        if low == high == 0:
            return None, 0
        start = 0
        for source in self.sources:
            if start < low and high <= start + int(source.size):
                return source, run.first - start - 1
            start += int(source.size)
        return None

    def _copy(self, run: Run, target: Tensor) -> None:
        """Append the kernel that copies a run, a task for some turns of its outer loops."""
        found = self._source(run)
        assert found is not None
        source, first = found
        body = Body()
        to = body.pointer(target, written=True, offset=run.at)
        if source is None:
            body.add(f"memset({to}, 0, {run.size} * sizeof(float));")
            self.emit("pack weights", body, 1, work=float(run.size) / 8, name="clear_weights")
            return
        inner, left = 0, 1
        while inner < len(run.loops) - 1 and left * run.loops[inner][0] <= _TASK:
            left *= run.loops[inner][0]
            inner += 1
        outer = run.loops[inner:]
        body.add(f"const float *s = {body.pointer(source, offset=first)};", "int64_t rest = q;")
        for count, step in outer:
            body.add(f"s += rest % {count} * {step}; rest /= {count};")
        body.add(f"float *d = {to} + q * {left};")
        offset = "0"
        for number, (count, step) in reversed(list(enumerate(run.loops[:inner]))):
            body.add(f"for (int64_t i{number} = 0; i{number} < {count}; i{number}++)")
            offset += f" + i{number} * {step}"
        body.add(f"*d++ = s[{offset}];")
        self.emit("pack weights", body, run.size // left, work=run.size * 0.5, name="pack_weights")


def _steps_of(places: Array) -> tuple[int, list[int]]:
    """Return the first place of filters, and the steps along their axes.

    Raises:
        NotNative: They do not lie in steps.
    """
    whole = places.astype(np.int64)
    first = int(whole.reshape(-1)[0])
    steps = [
        int(whole[tuple(int(i == axis) for i in range(whole.ndim))]) - first if size > 1 else 0
        for axis, size in enumerate(whole.shape)
    ]
    offsets = [np.arange(size) * step for size, step in zip(whole.shape, steps, strict=True)]
    if not np.array_equal(first + sum(np.ix_(*offsets)), whole):
        raise NotNative("weights that are not constant, with which packing computes")
    return first, steps


@dataclass(frozen=True, slots=True)
class Run:
    """Packed elements that follow one another, and whose places are those of nested loops.

    Attributes:
        at: The first of them.
        first: The place of that one; that of gaps is 0.
        loops: The turns of each loop and the step from one to the next, the inner loops first.
    """

    at: int
    first: int
    loops: tuple[tuple[int, int], ...]

    @property
    def size(self) -> int:
        """How many elements it has."""
        return math.prod(count for count, _ in self.loops)


def runs_of(places: Array) -> list[Run] | None:
    """Return a table of places as a few runs; None where these are too many.

    Args:
        places: Numbers of places, one a packed element.
    """
    found: list[Run] = []
    at = 0
    while at < places.size:
        if len(found) == _MOST_RUNS:
            return None
        run = _longest(places, at)
        found.append(run)
        at += run.size
    return found


def _longest(places: Array, at: int) -> Run:
    """Return the run that begins at an element: each loop takes as many turns as fit."""
    loops: list[tuple[int, int]] = []
    size = 1
    while (turns := (places.size - at) // size) > 1:
        lines = places[at : at + turns * size].reshape(turns, size)
        step = int(lines[1, 0]) - int(lines[0, 0])
        # The beginnings of turns tell of most loops; the rest of them has to agree.
        steady = np.diff(lines[:, 0]) != step
        turns = int(steady.argmax()) + 1 if steady.any() else turns
        ways = np.arange(turns, dtype=np.int64)[:, None] * step
        equal = (lines[:turns] - ways == lines[0]).all(axis=1)
        turns = turns if equal.all() else int((~equal).argmax())
        if turns < 2:
            break
        loops.append((turns, step))
        size *= turns
    return Run(at, int(places[at]), tuple(loops) or ((1, 0),))


def lower_varying(
    low: Lowering, node: ir.Node, rule: Rule, weights: Mapping[ir.Value, Tensor | None]
) -> None:
    """Lower a node by the rule for constant weights, which are packed when its kernels run.

    Args:
        low: The state.
        node: The node.
        rule: The rule, which takes weights from the constants alone.
        weights: All weights of the node, with each a tensor to read in its place, or None. One
            with a shorter last axis stands for its beginning, before zeros.

    Raises:
        NotNative: The rule packs weights in another way than by moving them.
    """
    sources: list[Tensor] = []
    places: dict[ir.Value, Array] = {}
    count = 0
    for value, given in weights.items():
        shape = low.facts.fixed_shape(value)
        source = low.forms.contiguous(value) if given is None else given
        if not low.facts.is_float(value):
            raise NotNative(f"element type {low.facts.dtype(value)}")
        size = int(source.size)
        if count + size > _MOST_PLACES:
            raise NotNative("weights that are not constant, of too many elements")
        numbers = np.arange(count + 1, count + size + 1, dtype=np.float32)
        places[value] = np.zeros(shape, np.float32)
        sizes = tuple(dim for dim in source.shape if isinstance(dim, int))
        places[value][..., : sizes[-1]] = numbers.reshape(sizes)
        sources.append(source)
        count += size
    facts = replace(
        low.facts,
        constants={**low.facts.constants, **places},
        direct_only=True,
        varying=True,
        pairs=False,
        choices={},
    )
    recorder = _Gathering(
        low.recorder.level,
        low.recorder.kernels,
        low.recorder.node,
        low.recorder._weights,
        sources,
        np.zeros(count + 1, np.bool_),
    )
    rule(replace(low, facts=facts, recorder=recorder), node)
    if not recorder.seen[1:].all():
        raise NotNative("weights that are not constant, with which packing computes")
