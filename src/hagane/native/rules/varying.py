"""Weights that are not constant: the kernels of constant ones, on weights packed in each run.

Packing of constant weights only moves them and fills gaps with zeros. Given the numbers of their
places in the place of weights, it makes a table of where each packed element comes from; a kernel
follows that table before the others run. Packing that computes with weights, as Winograd's
algorithm and numbers in pieces do, is left aside.
"""

from __future__ import annotations

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
from hagane.ops.definition import Array

# Floats hold the numbers of so many places.
_MOST_PLACES = 1 << 24
# One task follows so many entries of a table.
_TASK = 4096


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
        table = super().weight(("places", key), Packing(as_is, (places,)), places.nbytes)
        buffer = Buffer(f"packed {self.node.name if self.node else ''}", count, Kind.ARENA)
        target = Tensor(buffer, FLOAT32, (places.size,), (1,))
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
