"""The choice of the values that a step computes again to keep its memory within a budget."""

from __future__ import annotations

import gc
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import onnx_ir as ir

from hagane.errors import InvalidArgument
from hagane.graph.types import TensorType
from hagane.native.kernels.kernel import Kernel
from hagane.native.kernels.tensor import Kind
from hagane.native.run.memory import ARENA_SLACK, plan_memory
from hagane.ops import infer_types
from hagane.runtime.backends.native import NativePart
from hagane.runtime.options import SessionOptions
from hagane.runtime.pipeline import PASSED, Built, build, read
from hagane.runtime.settings import Settings, settings_of
from hagane.symbolic.substitute import number_of
from hagane.training.step.memory.byte_counts import bytes_of_program, without_program
from hagane.training.step.memory.chain import Chain, Move
from hagane.training.step.memory.recompute import recompute
from hagane.training.step.memory.stages import Forward, Number, forward_of

# How many schedules are planned to the byte.
_MOST_TRIES = 7
# The engine's addition to the scratch memory of each thread.
_SCRATCH_SLACK = 4096 + 256
# The room behind the last packed weight that reads may touch.
_WEIGHT_SLACK = 1 << 16
# A plan this close below the budget is not improved any more.
_CLOSE = 0.03
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}

_logger = logging.getLogger("hagane.training")


def parse_budget(budget: int | float | str) -> int:
    """Return a number of bytes: ``500_000_000``, ``"500MB"``, ``"1.5 GiB"``.

    Raises:
        InvalidArgument: It is no positive number of bytes.
    """
    if isinstance(budget, str):
        found = re.fullmatch(r"\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s*([a-zA-Z]*)\s*", budget)
        if found is not None and found[2].upper() in _UNITS:
            budget = float(found[1]) * _UNITS[found[2].upper()]
    if isinstance(budget, str | bool) or not budget >= 1 or budget == float("inf"):
        raise InvalidArgument(
            f"memory_budget: expected bytes as a positive number, or as text such as '500MB' or "
            f"'1.5GiB', got {budget!r}"
        )
    return int(budget)


@dataclass(frozen=True, slots=True)
class MemoryChoice:
    """A step's graph that keeps to a budget.

    Attributes:
        model: The graph; no passes may be applied to it any more.
        again: Names of the nodes that are computed again.
        arena: Planned bytes of all that lives during a run, weights in the engine's form included.
        everything: The same, if nothing is computed again.
        stages: How many stages the forward half has.
        seconds: Modelled time of the repeated computations, as a share of the way forward.
        nodes: Of the step as it was given, without those that are computed again.
    """

    model: ir.Model
    again: tuple[str, ...]
    arena: int
    everything: int
    stages: int
    seconds: float
    nodes: int


@dataclass(frozen=True, slots=True)
class StepMemory:
    """The planned bytes of a step beyond those in use before.

    Attributes:
        run: Of values on the way, and of weights in the engine's form.
        results: Of new parameters, buffers and states.
        states: Of tensors that the optimizer did not have yet.
        nodes: Of the step's graph.
        saved: Bytes that computing again saves.
        again: Names of the nodes that are computed again.
        stages: How many stages the forward half was divided into.
    """

    run: int
    results: int
    states: int
    nodes: int
    saved: int
    again: tuple[str, ...]
    stages: int

    @property
    def program(self) -> int:
        """The bytes of the step itself: graph, kernels and tables."""
        planned = self.run + self.results + self.states
        return bytes_of_program(self.nodes, planned, tried=bool(self.again))

    @property
    def predicted(self) -> int:
        """The planned peak."""
        return self.run + self.results + self.states + self.program

    def as_dict(self) -> dict[str, Any]:
        """Return the same by name."""
        return {
            "predicted": self.predicted,
            "run": self.run,
            "results": self.results,
            "states": self.states,
            "program": self.program,
            "everything": self.predicted + self.saved,
            "again": list(self.again),
            "stages": self.stages,
        }


def within_budget(
    model: ir.Model,
    sizes: Mapping[str, int],
    budget: int,
    beside: int,
    options: SessionOptions | None,
) -> MemoryChoice:
    """Return a step's graph whose planned memory stays within a budget.

    Args:
        model: The step; changed in place.
        sizes: Numbers of its named sizes.
        budget: Bytes for a run, beyond those in use before.
        beside: Bytes of these that results and states take.
        options: Of the session.

    Raises:
        InvalidArgument: The budget cannot be met; the message has the least that can.
    """
    settings = settings_of(options or SessionOptions(), _logger)
    nodes = len(model.graph)
    opened = read(model, settings)
    built = build(opened.model, opened.types, settings, ready=False)
    whole = planned_bytes(built, sizes)
    base = built.model
    base.metadata_props[PASSED] = "1"
    if whole + beside <= without_program(nodes, budget):
        return MemoryChoice(base, (), whole, whole, 0, 0.0, nodes)
    forward, chain = _chain(base, built, sizes)
    del opened, built  # kernels take several times the memory of the graph

    def planned(pieces: int) -> int:
        return _planned_with(base, settings, sizes, forward, chain.schedule(pieces))

    room = without_program(nodes, budget, tried=True)
    found = _pieces_within(room - beside, whole, chain, planned)
    if found.arena + beside > room:
        needed, all_kept = (
            planned + bytes_of_program(nodes, planned, tried=tried)
            for planned, tried in ((found.arena + beside, True), (whole + beside, False))
        )
        raise InvalidArgument(
            f"memory_budget of {budget:,} bytes: the step needs {needed:,} bytes at "
            f"least ({all_kept:,} if nothing is computed again, {beside:,} of them for "
            "results and states of the optimizer); give it as much, or a smaller batch"
        )
    types = infer_types(base, lenient=True)
    again = recompute(base.graph, types, forward, chain.schedule(found.pieces))
    forth = sum(stage.seconds for stage in forward.stages)
    more = (chain.seconds(found.pieces) - chain.seconds(chain.most)) / max(forth, 1e-12)
    return MemoryChoice(
        base, tuple(again), found.arena, whole, len(forward.stages), max(0.0, more), nodes
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Try:
    """A schedule that was planned: its pieces of memory, and the bytes that it takes."""

    pieces: int
    arena: int


def _pieces_within(budget: int, whole: int, chain: Chain, planned: Callable[[int], int]) -> _Try:
    """Return the schedule with the most memory that keeps to a budget; the least if none does.

    Planned bytes grow about in proportion to the pieces of the chain, so that two or three tries
    are enough where bisection would take seven.

    Args:
        budget: Bytes.
        whole: Bytes of the schedule that computes nothing again.
        chain: Tells which numbers of pieces there are.
        planned: Returns the bytes of the schedule in some pieces.
    """
    aim = budget * (1 - _CLOSE / 2)
    low, high = _Try(0, 0), _Try(max(chain.least, chain.most), whole)
    below, above = aim, whole - aim  # how far off both are; halved where one stays (Illinois)
    best: _Try | None = None
    for _ in range(_MOST_TRIES):
        guess = low.pieces + round((high.pieces - low.pieces) * below / (below + above))
        pieces = max(chain.least, low.pieces + 1, min(guess, high.pieces - 1))
        if pieces >= high.pieces:
            break
        now = _Try(pieces, planned(pieces))
        if now.arena > budget:
            below = below / 2 if above != whole - aim else below
            high, above = now, now.arena - aim
            continue
        above = above / 2 if best is not None else above
        low, below, best = now, max(aim - now.arena, 0.0), now
        if now.arena > budget * (1 - _CLOSE):
            break
    if best is not None:
        return best
    # The model of the chain is not exact: a little more may turn out to be less.
    step = (max(chain.least, chain.most) - chain.least) // 8
    least = high
    for pieces in dict.fromkeys(chain.least + step * i for i in range(4)):
        if pieces != least.pieces:
            least = min(least, _Try(pieces, planned(pieces)), key=lambda each: each.arena)
        if least.arena <= budget:
            break
    return least


def _chain(model: ir.Model, built: Built, sizes: Mapping[str, int]) -> tuple[Forward, Chain]:
    forward = forward_of(model.graph, kernels_of(built), numbers_of(sizes))
    return forward, Chain(forward.stages, forward.new)


def kernels_of(built: Built) -> list[Kernel]:
    """Return the engine's kernels in their order."""
    kernels: list[Kernel] = []
    for part in built.program.parts("native"):
        assert isinstance(part, NativePart)
        kernels += part.draft.low.recorder.kernels
    return kernels


def _planned_with(
    base: ir.Model,
    settings: Settings,
    sizes: Mapping[str, int],
    forward: Forward,
    moves: Sequence[Move],
) -> int:
    """Return the bytes of a schedule as the engine plans them; the graph stays as it is."""
    model = base.clone()
    types = infer_types(model, lenient=True)
    recompute(model.graph, types, _in_clone(base, model, forward), moves)
    built = build(model, types, settings, ready=False)
    found = planned_bytes(built, sizes)
    del built, model, types
    gc.collect()  # the next try takes the same memory, rather than more
    return found


def _in_clone(base: ir.Model, clone: ir.Model, forward: Forward) -> Forward:
    """Return the same division of a copy of the graph."""
    nodes = dict(zip(base.graph, clone.graph, strict=True))
    values = {
        old: new
        for one, other in nodes.items()
        for old, new in zip(one.outputs, other.outputs, strict=True)
    }
    return Forward(
        tuple(nodes[node] for node in forward.nodes),
        forward.stages,
        forward.new,
        {nodes[node]: stage for node, stage in forward.stage_of.items()},
        frozenset(values[value] for value in forward.kept),
        frozenset(values[value] for value in forward.read_back),
    )


def planned_bytes(built: Built, sizes: Mapping[str, int]) -> int:
    """Return the bytes that one run takes: arenas, scratch memory, packed weights, values between.

    Exact where all parts are native; temporaries of reference kernels are not counted.
    """
    total = 0
    for part in built.program.parts("native"):
        assert isinstance(part, NativePart)
        total += _of_kernels(part.draft.low.recorder.kernels, part.draft.low.facts.threads, sizes)
    return total + _between(built, sizes)


def numbers_of(sizes: Mapping[str, int]) -> Number:
    """Return a function that gives sizes their numbers."""
    return cache(lambda dim: number_of(dim, sizes))


def _of_kernels(kernels: Sequence[Kernel], threads: int, sizes: Mapping[str, int]) -> int:
    number = numbers_of(sizes)
    arena = plan_memory(kernels, sizes).size + ARENA_SLACK
    scratch = max((number(kernel.scratch) for kernel in kernels), default=0) + _SCRATCH_SLACK
    read = {pointer.buffer for kernel in kernels for pointer in kernel.pointers}
    packed = sum(number(buffer.bytes) + 127 for buffer in read if buffer.kind is Kind.WEIGHT)
    return arena + threads * scratch + packed + _WEIGHT_SLACK


def _between(built: Built, sizes: Mapping[str, int]) -> int:
    """Return the most bytes of values that lie between parts."""
    steps = built.program.steps
    given = set(built.program.inputs) | set(built.program.outputs)
    number = numbers_of(sizes)
    size: dict[int, int] = {}
    for step in steps:
        for slot, value in zip(step.outputs, step.part.outputs, strict=False):
            found = built.types.types.get(value)
            if slot in given or not isinstance(found, TensorType) or found.shape is None:
                continue
            count = found.dtype.itemsize
            for dim in found.shape:
                count *= number(dim)
            size[slot] = int(count)
    now = most = 0
    for step in steps:
        now += sum(size.get(slot, 0) for slot in step.outputs)
        most = max(most, now)
        now -= sum(size.get(slot, 0) for slot in step.release)
    return most


__all__ = [
    "MemoryChoice",
    "StepMemory",
    "kernels_of",
    "numbers_of",
    "parse_budget",
    "planned_bytes",
    "within_budget",
]
