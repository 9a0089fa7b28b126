"""Nodes that are compiled together: their kernels, and the values that these read and write."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx_ir as ir

from hagane.graph.types import TensorType
from hagane.graph.walk import all_nodes, read_values
from hagane.machine import Level
from hagane.native.kernels.control import changing_names
from hagane.native.kernels.kernel import Call
from hagane.native.kernels.sizes import names_of_sizes
from hagane.native.kernels.tensor import Buffer, Kind
from hagane.native.lowering.choices import Choices
from hagane.native.lowering.facts import Facts, NotNative
from hagane.native.lowering.found import given_sizes, has_nameless_sizes, settle
from hagane.native.lowering.state import Lowering
from hagane.native.plan.apply_rules import lower_nodes
from hagane.native.ready.context import BY_REFERENCE
from hagane.native.ready.mapped import Library, WeightStore
from hagane.native.run.compiled import Compiled, Port, place_weights
from hagane.native.run.engine import compile_kernels, kernel_name, load_engine
from hagane.native.run.loaded import Loaded
from hagane.ops.definition import Array
from hagane.ops.inference import GraphTypes
from hagane.symbolic import Dim, product, symbols_of


@dataclass(frozen=True, slots=True)
class Target:
    """The machine and the form that kernels are generated for.

    Attributes:
        level: Vector instructions.
        threads: How many threads a run may use.
        pairs: Whether products may be computed in bfloat16.
        choices: Forms of kernels that were found to be fastest.
    """

    level: Level
    threads: int = 1
    pairs: bool = False
    choices: Choices = field(default_factory=dict)


@dataclass
class Draft:
    """Kernels of some nodes that are generated and not compiled yet.

    Attributes:
        low: The kernels in order.
        inputs: Values that they read.
        outputs: Values that others read.
        equal: Sizes that the kernels take for equal.
        again: Makes the same draft of other constants, and says which nodes are refused.
    """

    low: Lowering
    inputs: tuple[ir.Value, ...]
    outputs: tuple[ir.Value, ...]
    equal: tuple[tuple[Dim, Dim], ...]
    again: Callable[[Mapping[ir.Value, Array]], tuple[Draft, dict[ir.Node, str]]]

    @property
    def varies(self) -> bool:
        """Whether inputs may have shapes, or content, that the kernels are not for."""
        kernels = self.low.recorder.kernels
        if any(kernel.failure == BY_REFERENCE for kernel in kernels):
            return True
        shapes = [shape for _, shape, _ in (*self._ports(self.inputs), *self._results())]
        names = names_of_sizes(kernels, shapes, self.equal)
        return bool(names - changing_names([kernel.control for kernel in kernels]).keys())

    def _ports(self, values: Sequence[ir.Value]) -> list[Port]:
        facts, places = self.low.facts, self.low.forms.inputs
        return [(places[value], facts.shape(value), facts.dtype(value)) for value in values]

    def _results(self) -> list[Port]:
        low = self.low
        return [
            (low.forms.results[value], _size_before_run(low, value), low.facts.dtype(value))
            for value in self.outputs
        ]

    def compile(self, *, library: Library | None = None, replaceable: bool = False) -> Compiled:
        """Return the kernels as compiled data.

        Args:
            library: The kernels' compiled code, if it is there already.
            replaceable: Find out which constants may be replaced later; generates the kernels
                once more.

        Raises:
            NoCompiler: They cannot be compiled on this machine.
        """
        library = library or compile_kernels(self.low.recorder.kernels, self.low.facts.level)
        return self.data(library.path, load_engine().path, replaceable=replaceable)

    def data(self, library: Path, engine: Path, *, replaceable: bool = False) -> Compiled:
        """Return the kernels as data about code that others compiled.

        Args:
            library: The kernels' machine code.
            engine: The engine's.
            replaceable: As ``compile`` has it.
        """
        facts, kernels = self.low.facts, self.low.recorder.kernels
        named = named_constants(facts.constants)
        changing = self._replaceable() if replaceable else frozenset()
        weights, weight_bytes, sources = place_weights(kernels, named, changing)
        return Compiled(
            facts.level.needs,
            facts.threads,
            tuple(Call.of(each, kernel_name(each.code) if each.code else None) for each in kernels),
            tuple(self._ports(self.inputs)),
            tuple(self._results()),
            self.equal,
            weights,
            weight_bytes,
            sources,
            library,
            engine,
        )

    def load(
        self,
        settle: Callable[[], None] = lambda: None,
        *,
        library: Library | None = None,
        replaceable: bool = False,
        store: WeightStore | None = None,
    ) -> Loaded:
        """Return the kernels compiled and loaded in this process.

        Args:
            settle: Called now and then while weights are copied, to let go of pages that were read.
            library: The kernels' compiled code, if it is there already.
            replaceable: Keep the arrays of weights, so that they can be replaced.
            store: Packed weights that other programs of the session have, and shall have.

        Raises:
            NoCompiler: They cannot be compiled on this machine.
        """
        kernels, level = self.low.recorder.kernels, self.low.facts.level
        library = library or compile_kernels(kernels, level)
        engine = load_engine()  # which a thread may be compiling meanwhile
        compiled = self.compile(library=library, replaceable=replaceable)
        return Loaded(
            compiled, settle, library=library, engine=engine, keep_sources=replaceable, store=store
        )

    def _replaceable(self) -> frozenset[str]:
        """Return the names of constants whose content leads to no other kernels."""
        facts = self.low.facts
        names = named_constants(facts.constants)
        nodes = frozenset(all_nodes(facts.nodes))
        own = {
            value: array
            for value, array in facts.constants.items()
            if value.name in names
            and value.producer() is None
            and array.dtype != object
            and all(use.node in nodes for use in value.uses())
        }
        want = self._form()
        if self._form_with(own) == want:
            return frozenset(str(value.name) for value in own)
        return frozenset(
            str(value.name) for value in own if self._form_with({value: own[value]}) == want
        )

    def _form_with(self, arrays: Mapping[ir.Value, Array]) -> object:
        """Return the kernels and recipes for other contents of some constants."""
        changed = {value: _other_content(array) for value, array in arrays.items()}
        draft, refused = self.again({**self.low.facts.constants, **changed})
        return None if refused else draft._form()

    def _form(self) -> object:
        """Return all that content may decide: code, tables, recipes, values computed ahead."""
        kernels = self.low.recorder.kernels
        weights, _, sources = place_weights(kernels, named_constants(self.low.facts.constants))
        computed = [None if each.name else each.array.tobytes() for each in sources]
        tables = [
            (each.code, each.sizes, each.tasks, each.scratch, [p.offset for p in each.pointers])
            for each in kernels
        ]
        recipes = [(each.offset, each.packing.function, each.packing.arguments) for each in weights]
        return tables, recipes, computed, [each.name for each in sources]


def named_constants(constants: Mapping[ir.Value, Array]) -> dict[str, Array]:
    """Return constants by name; names that several bodies have are left out."""
    found: dict[str, Array] = {}
    twice: set[str] = set()
    for value, array in constants.items():
        name = str(value.name or "")
        if name in found and found[name] is not array:
            twice.add(name)
        found.setdefault(name, array)
    return {name: array for name, array in found.items() if name and name not in twice}


def _other_content(array: Array) -> Array:
    """Return an array of the same shape and type with other content, none of it special."""
    random = np.random.default_rng(array.size)
    if array.dtype.kind in "iub":
        top = 2 if array.dtype.kind == "b" else 100
        return random.integers(0, top, array.shape).astype(array.dtype)
    return random.uniform(0.5, 1.5, array.shape).astype(array.dtype)


def draft_nodes(
    graph: ir.Graph,
    nodes: Sequence[ir.Node],
    outputs: frozenset[ir.Value],
    types: GraphTypes,
    constants: Mapping[ir.Value, Array],
    target: Target,
) -> tuple[Draft, dict[ir.Node, str]]:
    """Return the kernels of some nodes, and the nodes that have none, with reasons.

    The draft is of use only if no node was refused.

    Args:
        graph: The graph or body that they belong to.
        nodes: In order.
        outputs: The values of these that others read.
        types: The types that inference found.
        constants: Arrays that are known.
        target: The machine to generate for.
    """
    given_types = types
    if has_nameless_sizes(graph, nodes, types):
        from hagane.native.plan.input_sizes import name_input_sizes  # few models need it

        types = name_input_sizes(graph, nodes, types)
    if any(node.op_type in ("Loop", "Scan") for node in all_nodes(nodes)):
        from hagane.native.rules.control.steady_sizes import with_steady_sizes  # few models need it

        types = with_steady_sizes(nodes, types)
    facts = Facts(
        target.level,
        types,
        constants,
        outputs,
        target.threads,
        target.pairs,
        target.choices,
        nodes=frozenset(nodes),
        given=given_sizes(graph, nodes, types),
    )
    low = Lowering.of(facts, lower_nodes)
    refused = lower_nodes(low, nodes)
    for value, reason in low.finish().items():
        producer = value.producer()
        assert producer is not None
        refused[producer] = reason

    def again(changed: Mapping[ir.Value, Array]) -> tuple[Draft, dict[ir.Node, str]]:
        return draft_nodes(graph, nodes, outputs, given_types, changed, target)

    if refused:
        return Draft(low, (), (), (), again), refused
    equal = tuple(pair for node in all_nodes(nodes) for pair in low.equal_sizes(node))
    try:
        equal = _settle_found(low, equal)
    except NotNative as reason:
        culprits = [node for node in nodes if _has_found_sizes(low, node)]
        return Draft(low, (), (), (), again), dict.fromkeys(culprits, str(reason))
    _read_sizes(low, graph, nodes, equal)
    results = tuple(sorted(low.facts.outputs, key=lambda value: str(value.name)))
    return Draft(low, tuple(low.forms.inputs), results, equal, again), {}


def _has_found_sizes(low: Lowering, node: ir.Node) -> bool:
    """Whether a result has a size that is found while a part runs."""
    found = (low.facts.types.types.get(value) for value in node.outputs)
    shapes = [each.shape for each in found if isinstance(each, TensorType) and each.shape]
    return any(symbols_of(dim) & low.found for shape in shapes for dim in shape)


def _settle_found(low: Lowering, equal: Sequence[tuple[Dim, Dim]]) -> tuple[tuple[Dim, Dim], ...]:
    """Let kernels know sizes that are found; return the sizes that have to be equal before a run."""
    results = {low.forms.results[value]: low.facts.shape(value) for value in low.facts.outputs}
    grown = settle(low.recorder, results, equal)
    for value in low.facts.outputs:
        if low.forms.results[value] in grown:
            shape = low.facts.shape(value)
            low.forms.grown[value] = tuple(0 if symbols_of(d) & low.found else d for d in shape)
    return tuple(pair for pair in equal if not any(symbols_of(dim) & low.found for dim in pair))


def _size_before_run(low: Lowering, value: ir.Value) -> tuple[Dim, ...]:
    """Return the shape of an output, 0 in the place of a size that the run finds."""
    return low.forms.grown.get(value) or low.facts.shape(value)


def _read_sizes(
    low: Lowering,
    graph: ir.Graph,
    members: Sequence[ir.Node],
    equal: Sequence[tuple[Dim, Dim]],
) -> None:
    """Make values inputs of a part whose shapes alone it needs, to know its named sizes."""
    shapes = [low.facts.shape(value) for value in low.forms.inputs]
    shapes += [_size_before_run(low, value) for value in low.facts.outputs]
    needed = names_of_sizes(low.recorder.kernels, shapes, equal)
    needed -= low.found
    needed -= {str(dim) for value in low.forms.inputs for dim in low.facts.shape(value)}
    made = {value for node in members for value in node.outputs}
    read = [value for node in members for value in read_values(node) if value not in made]
    for value in (*read, *graph.inputs):
        found = low.facts.types.types.get(value)
        if not needed or not isinstance(found, TensorType) or found.shape is None:
            continue
        given = needed & {str(dim) for dim in found.shape}
        if given and value not in low.forms.inputs and value not in low.facts.constants:
            with contextlib.suppress(NotNative):
                size = product(found.shape) * low.facts.dtype(value).itemsize
                low.forms.inputs[value] = Buffer(str(value.name), size, Kind.INPUT)
                needed -= given
