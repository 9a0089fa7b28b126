"""The native engine as a backend: kernels in C, of as many nodes together as can be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import onnx_ir as ir

from hagane.graph.types import TensorType
from hagane.graph.walk import has_bodies
from hagane.native import (
    AT_RUN_TIME,
    HALVES,
    Caller,
    Compiled,
    Draft,
    Loaded,
    Mark,
    Spent,
    Target,
    WeightStore,
    draft_nodes,
    entry_of,
    grown_outputs,
    has_rule,
    make_frame,
    widen_halves,
)
from hagane.native.kernels.recorder import label_parts
from hagane.native.lowering.found import outputs_that_end_a_part
from hagane.native.ready.context import Refused
from hagane.native.ready.context import ShapeMismatch as NotTheShapes
from hagane.ops.definition import Array
from hagane.ops.inference import GraphTypes
from hagane.runtime.device import CPU, Device, Value
from hagane.runtime.port import Memory, Part, Planned, Refusal, Region, ShapeMismatch, Timed, Watch
from hagane.runtime.tuned import Tuning


class NativePart(Part):
    """Nodes whose kernels are compiled together."""

    backend = "native"

    def __init__(self, nodes: tuple[ir.Node, ...], draft: Draft, store: WeightStore | None = None):
        self.nodes = nodes
        self._store = store
        self.inputs, self.outputs = draft.inputs, draft.outputs
        self.varies = draft.varies
        self._draft: Draft | None = draft
        self._segment: Loaded | None = None
        self._call: Caller | None = None

    @classmethod
    def of(cls, nodes: tuple[ir.Node, ...], loaded: Loaded) -> NativePart:
        """Return nodes whose kernels are loaded already."""
        made = cls.__new__(cls)
        made.nodes, made.varies = nodes, False
        made.inputs = made.outputs = ()
        made._store, made._draft, made._segment = loaded.store, None, loaded
        made._call = None
        return made

    @property
    def segment(self) -> Loaded:
        """The compiled kernels."""
        assert self._segment is not None, "open the part first"
        return self._segment

    def compile(self, *, replaceable: bool = False) -> Compiled:
        """Return the part as data, for files and other processes; before it is opened.

        Args:
            replaceable: Find out which constants may be replaced later.

        Raises:
            NoCompiler: The part cannot be compiled on this machine.
        """
        return self.draft.compile(replaceable=replaceable)

    @property
    def draft(self) -> Draft:
        """The kernels before they are compiled."""
        assert self._draft is not None, "an open part has let go of it"
        return self._draft

    def open(self, settle: Callable[[], None]) -> None:
        """Compile the kernels and pack their weights."""
        if self._draft is not None:
            self._segment = self._draft.load(settle, store=self._store)
            self._draft = None  # weights as they were, and the whole state of lowering

    def run(self, values: Sequence[Value], watch: Watch | None = None) -> list[Value]:
        """Return the outputs."""
        try:
            if watch is None:
                found: list[Value] | None = self.direct()(list(values))
                return self.segment.run(values) if found is None else found
            return self._watched(values, watch)
        except (NotTheShapes, Refused):
            raise ShapeMismatch from None

    def direct(self) -> Caller:
        """Return the entry in C."""
        # (It must not lead back to the part: see `fit` in `session.py`.)
        if self._call is None:
            self._call = entry_of(self.segment) or _no_way
        return self._call

    def _watched(self, values: Sequence[Value], watch: Watch) -> list[Value]:
        times: list[Spent] = []
        results = self.segment.run(values, times, watch.observer.stop)
        for kernel, spent in zip(self.segment.kernels, times, strict=True):
            if isinstance(kernel.control, Mark):
                continue
            operator, name, place = label_parts(kernel.label)
            timed = Timed(operator, name, spent.nanoseconds, spent.flops, place)
            watch.records.append(timed)
        return results

    def memory(self, sizes: Mapping[str, int]) -> Memory:
        """Return the bytes of packed weights, and of arena and scratch memory."""
        return Memory(*self.segment.memory(sizes))

    def frame(
        self,
        arrays: Sequence[Array],
        own: Sequence[int],
        order: Sequence[int],
        owner: object,
        full: bool,
        lease: int,
        *,
        general: bool,
    ) -> tuple[Any, ...] | None:
        """Return the arguments of the C function that checks a feed and runs the kernels."""
        return make_frame(self.segment, arrays, own, order, owner, full, lease, general=general)


def _no_way(arrays: Sequence[Array]) -> None:
    """Return that Python has to lead the run."""


@dataclass(frozen=True)
class NativeBackend:
    """Takes nodes that have native kernels.

    Attributes:
        target: The machine that kernels are generated for.
        tuning: How forms of kernels are measured; they are chosen by rule if None.
        store: Packed weights that the programs of a session share.
    """

    target: Target
    tuning: Tuning | None = None
    store: WeightStore = field(default_factory=WeightStore, compare=False)
    name: str = field(default="native", init=False)
    provider: str = field(default="CPUExecutionProvider", init=False)
    device: Device = field(default=CPU, init=False)

    def adapt(self, graph: ir.Graph, types: GraphTypes) -> NativeBackend:
        """Widen 16-bit floats where kernels compute in float32; measure layers, if it is to."""
        if any(isinstance(t, TensorType) and t.dtype in HALVES for t in types.types.values()):
            widen_halves(graph, types)
        if self.tuning is None:
            return self
        choices = self.tuning.choices(graph, types, self.target)
        return replace(self, target=replace(self.target, choices=choices))

    def claims(self, node: ir.Node, types: GraphTypes) -> bool:
        """Whether there is a rule for the operator, or its results are known."""
        return has_rule(node, types)

    def late(self, node: ir.Node, types: GraphTypes) -> Sequence[ir.Value]:
        """Return outputs whose size is known when a loop has ended."""
        grown = grown_outputs(node, types) if has_bodies(node) else ()
        return [*grown, *outputs_that_end_a_part(node, types)]

    def plan(self, region: Region) -> Planned:
        """Generate the kernels of a region."""
        draft, refused = draft_nodes(
            region.graph,
            region.nodes,
            region.outputs,
            region.types,
            region.constants,
            self.target,
        )
        if refused:
            reasons = {node: Refusal(text, text == AT_RUN_TIME) for node, text in refused.items()}
            return Planned((), reasons)
        # Nobody reads the values of a region without outputs.
        return Planned((NativePart(region.nodes, draft, self.store),) if draft.outputs else ())
