"""The forward half of a step as a chain of stages, with planned bytes and modelled times."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from hagane.graph.walk import has_bodies, read_values
from hagane.native.kernels.kernel import Kernel
from hagane.native.kernels.recorder import name_of
from hagane.native.kernels.tensor import Buffer, Kind
from hagane.ops.registry import find
from hagane.symbolic import Dim
from hagane.training.step.memory.chain import Stage

# Values smaller than this share of all that the way back reads are always kept.
_SMALL = 1 / 2000
_MOST_STAGES = 96
# Operators that read the shape of a value alone.
_SHAPES = ("Shape", "Size")

# Gives a size its number.
Number = Callable[[Dim], int]


@dataclass(frozen=True, slots=True)
class Forward:
    """The forward half of a graph, divided into stages.

    Attributes:
        nodes: Its nodes in order.
        stages: The chain.
        new: Bytes of each stage's output that are new to an earlier input, as ``Chain`` has it.
        stage_of: The number of the stage of each node.
        kept: Values that are never computed again.
        read_back: Values that nodes of the way back read, and that may have to be there again.
    """

    nodes: tuple[ir.Node, ...]
    stages: tuple[Stage, ...]
    new: tuple[tuple[float, ...], ...]
    stage_of: Mapping[ir.Node, int]
    kept: frozenset[ir.Value]
    read_back: frozenset[ir.Value]


def forward_of(graph: ir.Graph, kernels: Sequence[Kernel], number: Number) -> Forward:
    """Divide the nodes that lead to the loss, the graph's first output, into stages.

    Args:
        graph: A step as the passes left it.
        kernels: The engine's kernels of it, for bytes and times.
        number: Gives sizes their numbers.
    """
    nodes = _until_loss(graph)
    inside = set(nodes)
    bytes_of, seconds_of = _planned(kernels, number)
    made = {value for node in nodes for value in node.outputs}
    sizes = {value: bytes_of.get(str(value.name), 0) for value in made}
    sources = _sources(nodes, sizes)
    read_back = frozenset(
        value
        for node in graph
        if node not in inside and node.op_type not in _SHAPES
        for value in read_values(node)
        if value in made
    )
    wanted = {source for value in read_back for source in sources[value]}
    small = _SMALL * sum(sizes[value] for value in wanted)
    kept = {value for value in made if not all(map(_may_repeat, _producer(value)))}
    kept |= {value for value in wanted if sizes[value] <= small}
    kept |= {value for value in graph.outputs if value in made}
    read_back = frozenset(v for v in read_back if not sources[v] <= kept)
    place = {node: i for i, node in enumerate(nodes)}
    last: dict[ir.Value, int] = {}
    for node in nodes:
        if node.op_type in _SHAPES:
            continue
        for value in read_values(node):
            for source in sources.get(value, ()):
                last[source] = max(last.get(source, -1), place[node])
    crossing = _crossing(nodes, sizes, last, place, kept)
    ends = _ends(nodes, sizes, seconds_of, crossing, small)
    found = _divided(nodes, ends, sizes, seconds_of, crossing, last, wanted, kept, read_back)
    back = _back(graph, found, kernels, number, {str(v.name) for v in wanted - kept})
    stages = tuple(replace(one, back=need) for one, need in zip(found.stages, back, strict=True))
    return replace(found, stages=stages)


def _until_loss(graph: ir.Graph) -> list[ir.Node]:
    """Return the nodes up to the last one that the loss depends on.

    Others among them, such as updates of running statistics, are done where they stand.
    """
    nodes = list(graph)
    found: set[ir.Node] = set()
    waiting = [graph.outputs[0]]
    while waiting:
        producer = waiting.pop().producer()
        if producer is not None and producer.graph is graph and producer not in found:
            found.add(producer)
            waiting += read_values(producer)
    last = max((i for i, node in enumerate(nodes) if node in found), default=-1)
    return nodes[: last + 1]


def _producer(value: ir.Value) -> Iterable[ir.Node]:
    node = value.producer()
    return () if node is None else (node,)


def _may_repeat(node: ir.Node) -> bool:
    """Whether a node gives the same again; bodies stay where they are."""
    return not find(node).random and not has_bodies(node)


def seconds_of_work(kernel: Kernel, number: Number) -> float:
    """Return the seconds that a kernel is estimated to take."""
    cost = kernel.work if isinstance(kernel.work, (int, float)) else number(kernel.work)
    return float(1e-9 * (cost + 1e3))


def _planned(kernels: Sequence[Kernel], number: Number) -> tuple[dict[str, int], dict[str, float]]:
    """Return the bytes of values in the arena, and the seconds of nodes, by name."""
    bytes_of: dict[str, int] = {}
    seconds: dict[str, float] = {}
    seen = set()
    for kernel in kernels:
        work = seconds_of_work(kernel, number)
        for name in kernel.nodes:
            seconds[name] = seconds.get(name, 0.0) + work / len(kernel.nodes)
        for pointer in kernel.pointers:
            buffer = pointer.buffer
            if buffer.kind in (Kind.ARENA, Kind.BORDERED) and buffer not in seen:
                seen.add(buffer)
                bytes_of[buffer.name] = bytes_of.get(buffer.name, 0) + number(buffer.bytes)
    return bytes_of, seconds


def _sources(
    nodes: Sequence[ir.Node], sizes: Mapping[ir.Value, int]
) -> dict[ir.Value, frozenset[ir.Value]]:
    """Return the values in memory that a reader of each value needs.

    A view, or an expression that is computed where it is read, needs its sources.
    """
    found: dict[ir.Value, frozenset[ir.Value]] = {}
    for node in nodes:
        if node.op_type in _SHAPES:
            below: frozenset[ir.Value] = frozenset()
        else:
            below = frozenset().union(*(found.get(value, ()) for value in read_values(node)))
        for value in node.outputs:
            found[value] = frozenset([value]) if sizes[value] else below
    return found


def _crossing(
    nodes: Sequence[ir.Node],
    sizes: Mapping[ir.Value, int],
    last: Mapping[ir.Value, int],
    place: Mapping[ir.Node, int],
    kept: set[ir.Value],
) -> list[int]:
    """Return the bytes after each node that later nodes read, and that are not kept anyway."""
    changes = [0] * (len(nodes) + 1)
    for node in nodes:
        for value in node.outputs:
            if value not in kept and last.get(value, -1) > place[node]:
                changes[place[node]] += sizes[value]
                changes[last[value]] -= sizes[value]
    total, found = 0, []
    for change in changes[:-1]:
        total += change
        found.append(total)
    return found


def _ends(
    nodes: Sequence[ir.Node],
    sizes: Mapping[ir.Value, int],
    seconds: Mapping[str, float],
    crossing: Sequence[int],
    small: float,
) -> list[int]:
    """Return the last node of each stage: where little crosses, and something large was made."""
    ends: list[int] = []
    large = False
    for i, node in enumerate(nodes[:-1]):
        large = large or any(sizes[value] > small for value in node.outputs)
        rises = crossing[i + 1] > crossing[i]
        falls = i == 0 or crossing[i] <= crossing[i - 1]
        if large and crossing[i] and (rises or falls) and crossing[i] <= crossing[i + 1]:
            ends.append(i)
            large = False
    return _fewer([*ends, len(nodes) - 1], nodes, seconds)


def _fewer(ends: list[int], nodes: Sequence[ir.Node], seconds: Mapping[str, float]) -> list[int]:
    """Join neighbouring stages that take little time until there are not too many."""
    sums = [0.0]
    for node in nodes:
        sums.append(sums[-1] + seconds.get(name_of(node), 0.0))
    while len(ends) > _MOST_STAGES:
        bounds = [-1, *ends]
        times = [sums[b + 1] - sums[a + 1] for a, b in itertools.pairwise(bounds)]
        ends.pop(min(range(len(ends) - 1), key=lambda i: max(times[i], times[i + 1])))
    return ends


def _divided(
    nodes: Sequence[ir.Node],
    ends: Sequence[int],
    sizes: Mapping[ir.Value, int],
    seconds: Mapping[str, float],
    crossing: Sequence[int],
    last: Mapping[ir.Value, int],
    wanted: set[ir.Value],
    kept: set[ir.Value],
    read_back: frozenset[ir.Value],
) -> Forward:
    stages: list[Stage] = []
    stage_of: dict[ir.Node, int] = {}
    start = 0

    def time(node: ir.Node) -> float:
        return seconds.get(name_of(node), 0.0)

    for end in ends:
        own = nodes[start : end + 1]
        stage_of.update(dict.fromkeys(own, len(stages)))
        made = [v for node in own for v in node.outputs if v not in kept]
        back = [v for v in made if v in wanted]
        leaving = {v for v in made if last.get(v, -1) > end}
        inner = [v for v in back if v not in leaving]
        stages.append(
            Stage(
                seconds=sum(map(time, own)),
                again=sum(time(node) for node in _needed(own, inner)),
                output=float(crossing[end]),
                kept=float(sum(sizes[v] for v in {*back, *leaving})),
                forward=float(max(crossing[start : end + 1]) - crossing[end]),
            )
        )
        start = end + 1
    new = _new(nodes, ends, sizes, last, stage_of, kept)
    return Forward(tuple(nodes), tuple(stages), new, stage_of, frozenset(kept), read_back)


def _back(
    graph: ir.Graph,
    forward: Forward,
    kernels: Sequence[Kernel],
    number: Number,
    saved: Set[str],
) -> list[float]:
    """Return the bytes that going back through each stage needs beside the values saved for it.

    Args:
        graph: The step.
        forward: Its forward half.
        kernels: Of the step.
        number: Gives sizes their numbers.
        saved: Names of the values that the forward half leaves behind for the way back.
    """
    now = len(forward.stages) - 1
    stage_at: dict[str, int] = {}
    for node in graph:
        if node in forward.stage_of:
            continue
        for value in read_values(node):
            if value in forward.read_back and (maker := value.producer()) is not None:
                now = min(now, forward.stage_of[maker])
        stage_at[name_of(node)] = now
    first: dict[Buffer, int] = {}
    last: dict[Buffer, int] = {}
    for index, kernel in enumerate(kernels):
        for pointer in kernel.pointers:
            buffer = pointer.buffer
            if buffer.kind in (Kind.ARENA, Kind.BORDERED) and buffer.name not in saved:
                first.setdefault(buffer, index)
                last[buffer] = index
    changes = [0] * (len(kernels) + 1)
    for buffer, begin in first.items():
        changes[begin] += number(buffer.bytes)
        changes[last[buffer] + 1] -= number(buffer.bytes)
    needs = [0.0] * len(forward.stages)
    live = 0
    for kernel, change in zip(kernels, changes, strict=False):
        live += change
        for name in kernel.nodes:
            if name in stage_at:
                needs[stage_at[name]] = max(needs[stage_at[name]], float(live))
    return needs


def _new(
    nodes: Sequence[ir.Node],
    ends: Sequence[int],
    sizes: Mapping[ir.Value, int],
    last: Mapping[ir.Value, int],
    stage_of: Mapping[ir.Node, int],
    kept: set[ir.Value],
) -> tuple[tuple[float, ...], ...]:
    """Return the bytes that cross each end and were made in or behind each earlier stage."""
    n = len(ends)
    crossing = np.zeros((n, n))  # by the stage that made them, and the end that they cross
    for node in nodes:
        for value in node.outputs:
            if value in kept or not sizes[value]:
                continue
            first = stage_of[node]
            until = bisect_left(ends, last.get(value, -1))
            crossing[first, first:until] += sizes[value]
    sums = np.cumsum(crossing[::-1], axis=0)[::-1]
    return tuple(map(tuple, sums.tolist()))


def _needed(own: Sequence[ir.Node], values: Sequence[ir.Value]) -> set[ir.Node]:
    """Return the nodes of a stage that compute some of its values."""
    found: set[ir.Node] = set()
    inside, waiting = set(own), list(values)
    while waiting:
        producer = waiting.pop().producer()
        if producer in inside and producer not in found:
            found.add(producer)
            waiting += read_values(producer)
    return found


__all__ = ["Forward", "forward_of", "seconds_of_work"]
