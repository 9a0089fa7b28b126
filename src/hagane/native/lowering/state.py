"""Nodes to kernels: the state that all lowering rules share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import onnx_ir as ir

from hagane.native.kernels.elementwise_loops import emit_copy
from hagane.native.kernels.recorder import Recorder
from hagane.native.lowering.facts import Facts, NotNative
from hagane.native.lowering.forms import Forms
from hagane.ops.definition import Array
from hagane.symbolic import Dim, minimum, symbols_of


class Done:
    """Nodes that are lowered, in their order."""

    def __init__(self) -> None:
        self._nodes: dict[ir.Node, None] = {}

    def __contains__(self, node: ir.Node) -> bool:
        return node in self._nodes

    def __len__(self) -> int:
        return len(self._nodes)

    def add(self, *nodes: ir.Node) -> None:
        """Count nodes as lowered."""
        self._nodes.update(dict.fromkeys(nodes))

    def take_back(self, count: int) -> None:
        """Leave so many nodes: a rule that gave up has lowered none of the others."""
        while len(self._nodes) > count:
            self._nodes.popitem()


@dataclass
class Lowering:
    """One segment or body on its way to kernels.

    Attributes:
        facts: Knowledge of its values, and the target of generation.
        lower_nodes: Appends the kernels of nodes, and returns nodes without kernel, with reasons;
            rules that have bodies need it.
        recorder: The kernels, in order.
        forms: Where values lie.
        done: Nodes that are lowered, on their own or with others.
        found: Names of sizes that kernels find in the data.
        compared: Nodes whose sizes a branch compares, if it is taken.
        finders: Nodes whose kernels find sizes, with the names of these; they compare what depends
            on these.
        stretched: Nodes whose kernels find out in a run which operands have axes of length one.
    """

    facts: Facts
    lower_nodes: LowerNodes
    recorder: Recorder
    forms: Forms
    done: Done = field(default_factory=Done)
    found: set[str] = field(default_factory=set)
    compared: set[ir.Node] = field(default_factory=set)
    finders: dict[ir.Node, set[str]] = field(default_factory=dict)
    stretched: set[ir.Node] = field(default_factory=set)

    @classmethod
    def of(cls, facts: Facts, lower_nodes: LowerNodes) -> Lowering:
        """Return the state in which a segment begins."""
        recorder = Recorder(facts.level)
        return cls(facts, lower_nodes, recorder, Forms(facts, recorder))

    def only_use(self, value: ir.Value) -> ir.Node | None:
        """Return the one node of this segment that reads a value, if nothing else does."""
        if self.facts.uses(value) != 1 or value in self.facts.outputs:
            return None
        (use,) = value.uses()
        node = use.node
        # (Rules look for readers among operators of ONNX, by their names.)
        known = node.domain == "" or node.op_type == "SelectGreater"
        return node if known and node in self.facts.nodes and node not in self.done else None

    def finish(self) -> dict[ir.Value, str]:
        """Bring every output of the segment into memory that the caller gets.

        Returns:
            The outputs that kernels cannot hold, with reasons.
        """
        forms, refused = self.forms, dict[ir.Value, str]()
        for value in sorted(self.facts.outputs, key=lambda v: str(v.name)):
            try:
                found = forms.plain(value)
                if found.buffer is forms.results.get(value) and found.contiguous:
                    continue
                emit_copy(self.recorder, found, forms.result(value))
            except NotNative as reason:
                refused[value] = str(reason)
        return refused

    def for_body(self, nodes: Sequence[ir.Node], known: Mapping[ir.Value, Array]) -> Lowering:
        """Return the state in which the body of one of the nodes begins.

        Args:
            nodes: The body's.
            known: All constants that it reads, those of outer graphs included.
        """
        facts = replace(self.facts, constants=known, outputs=frozenset(), nodes=frozenset(nodes))
        recorder = self.recorder.for_body()
        forms = Forms(facts, recorder, inner=True, planes=self.forms.planes, grown=self.forms.grown)
        return Lowering(
            facts,
            self.lower_nodes,
            recorder,
            forms,
            found=set(self.found),
            compared=self.compared,
            finders=self.finders,
            stretched=self.stretched,
        )

    def assumed(self, node: ir.Node) -> Sequence[tuple[Dim, Dim]]:
        """Return the sizes that a node needs to be equal, without those that its kernel compares."""
        if node in self.compared:
            return ()
        pairs, own = self.facts.types.assumed.get(node, ()), self.finders.get(node)
        if own is None:
            return pairs
        return [pair for pair in pairs if not any(symbols_of(dim) & own for dim in pair)]

    def equal_sizes(self, node: ir.Node) -> Iterator[tuple[Dim, Dim]]:
        """Yield the sizes that the kernels of a node take for equal, and nothing shows to be."""
        free = self.facts.types.broadcast.get(node, ()) if node in self.stretched else ()
        for left, right in self.assumed(node):
            if (left, right) in free:
                # Equal, or the smaller one is 1: the larger one is the result's in either case.
                yield (left - right) * (minimum(left, right) - 1), 0
            else:
                yield left, right


LowerNodes: TypeAlias = Callable[[Lowering, Sequence[ir.Node]], dict[ir.Node, str]]
Rule: TypeAlias = Callable[[Lowering, ir.Node], None]
