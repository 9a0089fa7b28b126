"""The plan of a compiled step, as it is shown: values kept, work done again, bytes, times."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from hagane.native.kernels.kernel import Kernel
from hagane.native.kernels.tensor import Kind
from hagane.runtime.options import SessionOptions
from hagane.runtime.pipeline import build, read
from hagane.runtime.settings import settings_of
from hagane.training.step.memory.budget import (
    MemoryChoice,
    StepMemory,
    kernels_of,
    numbers_of,
    planned_bytes,
)
from hagane.training.step.memory.byte_counts import bytes_of_results
from hagane.training.step.memory.stages import Forward, forward_of, seconds_of_work

_logger = logging.getLogger("hagane.training")
# Nodes of the optimizer's updates, by how ``step_program`` names them; of copies, by ``recompute``.
_UPDATE, _AGAIN = "update", ".again"


@dataclass(frozen=True, slots=True)
class PlannedStage:
    """A stage of the way forward.

    Attributes:
        last: The node that ends it.
        nodes: How many it has.
        seconds: Estimated from the work of its kernels.
        output: Bytes that cross its end.
        kept: Bytes that its values take until the way back, as planned.
        again: How often nodes of it are computed again.
    """

    last: str
    nodes: int
    seconds: float
    output: int
    kept: int
    again: int


@dataclass(frozen=True, slots=True)
class StepPlan:
    """The plan of a step for one set of sizes.

    Attributes:
        memory: Planned bytes.
        budget: Bytes that were allowed, or None.
        sizes: The numbers of the sizes that vary, by name.
        stages: The way forward.
        kept: Bytes of the values that wait for the way back, by the node that makes them, the
            largest first.
        seconds: Estimated from the work of kernels: of ``forward``, ``again``, ``back``,
            ``update``.
    """

    memory: StepMemory
    budget: int | None
    sizes: Mapping[str, int]
    stages: tuple[PlannedStage, ...]
    kept: Mapping[str, int]
    seconds: Mapping[str, float]

    def as_dict(self) -> dict[str, Any]:
        """Return the same by name, ready for JSON."""
        return {
            **self.memory.as_dict(),
            "budget": self.budget,
            "sizes": dict(self.sizes),
            "kept": dict(self.kept),
            "seconds": dict(self.seconds),
            "stages": [
                {name: getattr(stage, name) for name in PlannedStage.__slots__}
                for stage in self.stages
            ],
        }


def plan_of(
    model: ir.Model,
    sizes: Mapping[str, int],
    states: int,
    budget: int | None,
    choice: MemoryChoice | None,
    options: SessionOptions | None,
) -> StepPlan:
    """Return the plan of a step; nothing is compiled.

    Args:
        model: The step; not changed.
        sizes: Numbers of its named sizes.
        states: Bytes of tensors that the optimizer does not have yet.
        budget: Bytes that a step may take.
        choice: Of the values that are computed again.
        options: Of the session that would run it.
    """
    settings = settings_of(options or SessionOptions(), _logger)
    found = read(model.clone(), settings)
    built = build(found.model, found.types, settings, ready=False)
    kernels, number = kernels_of(built), numbers_of(sizes)
    forward = forward_of(built.model.graph, kernels, number)
    memory = StepMemory(
        run=planned_bytes(built, sizes),
        results=bytes_of_results(model.graph, sizes),
        states=states,
        nodes=len(model.graph) if choice is None else choice.nodes,
        saved=0 if choice is None else choice.everything - choice.arena,
        again=() if choice is None else choice.again,
        stages=len(forward.stages),
    )
    kept = _kept(kernels, forward, number)
    makers = {str(v.name): _name(v) for node in forward.nodes for v in node.outputs}
    return StepPlan(
        memory,
        budget,
        sizes,
        tuple(_stages(forward, kept, memory.again)),
        _by_maker(kept, makers),
        _seconds(kernels, forward, number),
    )


def _kept(kernels: Sequence[Kernel], forward: Forward, number: Any) -> dict[str, int]:
    """Return the bytes in the arena that kernels of the way forward write and later ones read."""
    inside = {str(node.name) for node in forward.nodes}
    found: dict[str, int] = {}
    made = set()
    for kernel in kernels:
        forth = any(name in inside for name in kernel.nodes)
        for pointer in kernel.pointers:
            buffer = pointer.buffer
            if buffer.kind not in (Kind.ARENA, Kind.BORDERED):
                continue
            if forth:
                made.add(buffer)
            elif buffer in made:
                found[buffer.name] = number(buffer.bytes)
    return found


def _name(value: ir.Value) -> str:
    """Return the name of the node that makes a value, with the number of the output from 1 on."""
    node, index = value.producer(), value.index()
    assert node is not None
    return str(node.name) if not index else f"{node.name}:{index}"


def _by_maker(kept: Mapping[str, int], makers: Mapping[str, str]) -> dict[str, int]:
    """Return the same by the names of the nodes, the largest first."""
    found: dict[str, int] = {}
    for name, size in sorted(kept.items(), key=lambda item: -item[1]):
        maker = makers.get(name, name)
        found[maker] = found.get(maker, 0) + size
    return found


def _stages(forward: Forward, kept: Mapping[str, int], again: Sequence[str]) -> list[PlannedStage]:
    nodes: list[list[ir.Node]] = [[] for _ in forward.stages]
    for node in forward.nodes:
        nodes[forward.stage_of[node]].append(node)
    repeated = Counter(name.split(_AGAIN)[0] for name in again)
    return [
        PlannedStage(
            str(own[-1].name) if own else "",
            len(own),
            stage.seconds,
            int(stage.output),
            sum(kept.get(str(value.name), 0) for node in own for value in node.outputs),
            sum(repeated[str(node.name)] for node in own),
        )
        for stage, own in zip(forward.stages, nodes, strict=True)
    ]


def _seconds(kernels: Sequence[Kernel], forward: Forward, number: Any) -> dict[str, float]:
    inside = {str(node.name) for node in forward.nodes}
    found = dict.fromkeys(("forward", "again", "back", "update"), 0.0)
    for kernel in kernels:
        share = seconds_of_work(kernel, number) / max(1, len(kernel.nodes))
        for name in kernel.nodes or ("",):
            if name in inside:
                part = "forward"
            elif _AGAIN in name:
                part = "again"
            else:
                part = "update" if name.startswith(_UPDATE) else "back"
            found[part] += share
    return found


__all__ = ["PlannedStage", "StepPlan", "plan_of"]
