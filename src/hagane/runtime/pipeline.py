"""A model from its file to parts that run, the one way to run models.

``read`` loads a model, brings it to the current opset and infers types; ``build`` applies the
passes, lets the backends adapt the graph and measure its layers, places its nodes and makes the
parts ready. Sessions, ``hagane inspect`` and ``hagane bench`` call these two. Each stage's effect
is recorded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import onnx_ir as ir

from hagane.graph import ModelSource, load
from hagane.graph.types import Shape, TensorType, Type, from_ir_shape
from hagane.graph.verify import verify_declarations
from hagane.graph.weights import stored_weights
from hagane.machine import NoCompiler
from hagane.ops import GraphTypes, infer_types
from hagane.ops.inference import compare_declared, read_declared
from hagane.passes import Change, optimize
from hagane.passes.expanding.expand_composed import expand_node
from hagane.passes.legalise import legalise
from hagane.runtime.port import Backend, Refusal
from hagane.runtime.program import REFERENCE, Planner, Program
from hagane.runtime.settings import Settings
from hagane.runtime.values.described import NodeArg
from hagane.runtime.values.metadata import (
    declared_types,
    fix_dimensions,
    input_argument,
    open_untold,
    told_sizes,
)
from hagane.symbolic import Dim, symbols_of

# Metadata of a model that passes were applied to, and that must stay as it is.
PASSED = "hagane.passed"
_NO_KERNEL = Refusal("there is no kernel for it")
_NOT_ASKED = Refusal("the reference engine was chosen")
# How often passes are applied where they show sizes that were unknown.
_INFERENCES = 3
# How often nodes without kernels are taken apart: compositions may have such nodes.
_EXPANSIONS = 3


@dataclass(frozen=True, slots=True)
class Stage:
    """A step of the pipeline.

    Attributes:
        name: ``load``, ``legalise``, ``infer``, ``passes``, ``adapt``, ``plan`` or ``open``.
        seconds: Its time.
        changes: The effects of each pass.
    """

    name: str
    seconds: float
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadModel:
    """A model in the current form of every operator, with types.

    Attributes:
        model: ``build`` changes it in place.
        types: Types and symbolic shapes of its values.
        opsets: Versions that the file imports, by domain.
        inputs: The declared type of each input by name, initializers included.
        arguments: The declaration of each input by name.
        outputs: The declared shape of each output by name.
        stages: The work done.
    """

    model: ir.Model
    types: GraphTypes
    opsets: Mapping[str, int]
    inputs: Mapping[str, Type | None]
    arguments: Mapping[str, NodeArg]
    outputs: Mapping[str, Sequence[Dim | None] | None]
    stages: tuple[Stage, ...]


@dataclass(frozen=True, slots=True)
class Built:
    """A model as parts in order.

    Attributes:
        model: As the passes and the backends left it.
        types: Types and symbolic shapes of its values.
        program: The parts.
        backends: That planned them, in order of preference.
        refused: Nodes that a backend claimed and did not take, with the reason of the first.
        stages: The work done.
        obstacle: Why nothing was compiled, if that was tried and failed.
    """

    model: ir.Model
    types: GraphTypes
    program: Program
    backends: tuple[Backend, ...]
    refused: Mapping[ir.Node, Refusal]
    stages: tuple[Stage, ...]
    obstacle: str | None = None

    def on_reference(self) -> dict[ir.Node, Refusal]:
        """Return the nodes that run on their reference kernels, and why."""
        reason = _NO_KERNEL if self.backends else _NOT_ASKED
        return {
            node: self.refused.get(node, reason)
            for part in self.program.parts(REFERENCE.name)
            for node in part.nodes
        }


class _Clock:
    """Stages as they come."""

    def __init__(self) -> None:
        self.stages: list[Stage] = []

    @contextmanager
    def stage(self, name: str) -> Iterator[list[Change]]:
        """Note a stage; its changes are put into the list."""
        changes: list[Change] = []
        started = time.perf_counter()
        yield changes
        self.stages.append(Stage(name, time.perf_counter() - started, tuple(changes)))


def read(source: ModelSource, settings: Settings) -> ReadModel:
    """Return a model in the current form of every operator, with types.

    Args:
        source: A path of an ``.onnx`` file, its bytes, a ``ModelProto`` or an ``onnx_ir.Model``.
        settings: Its sizes and shapes are used.

    Raises:
        ModelError: One of the errors below it names the model's fault.
    """
    clock = _Clock()
    with clock.stage("load"):
        model = load(source)
    opsets = dict(model.opset_imports)
    fix_dimensions(model, settings.sizes, settings.denoted)
    inputs = declared_types(model, settings.sizes)
    arguments = {str(v.name): input_argument(v, inputs[str(v.name)]) for v in model.graph.inputs}
    open_untold(model)
    inputs = declared_types(model, settings.sizes)
    outputs = {str(v.name): from_ir_shape(v.shape) for v in model.graph.outputs}
    verify_declarations(model)
    declared = read_declared(model, shapes=settings.strict)
    with clock.stage("legalise"):
        legalise(model)
    with clock.stage("infer"):
        types = infer_types(model, sizes=settings.sizes, shapes=settings.shapes)
        if told := told_sizes(model, types):
            sizes = {**settings.sizes, **told}
            fix_dimensions(model, sizes, {})
            inputs = declared_types(model, sizes)
            types = infer_types(model, sizes=sizes, shapes=settings.shapes)
        compare_declared(declared, types)
    return ReadModel(model, types, opsets, inputs, arguments, outputs, tuple(clock.stages))


def build(
    model: ir.Model,
    types: GraphTypes,
    settings: Settings,
    *,
    wait_for_sizes: bool = False,
    ready: bool = True,
) -> Built:
    """Return the parts of a model that was read.

    Args:
        model: Changed in place.
        types: The types that inference found for it.
        settings: Its backends, and whether passes are applied.
        wait_for_sizes: Give up if some node could be taken by a backend once sizes are known.
        ready: Compile the parts and load their weights. If a compiler is needed and there is none,
            all nodes run on reference kernels.

    Raises:
        SizesUnknown: ``wait_for_sizes``, and there is such a node.
    """
    clock = _Clock()
    stores = stored_weights(model.graph)
    if PASSED in model.metadata_props:
        settings = replace(settings, optimize=False)

    def settle() -> None:
        for store in stores:
            store.forget()

    try:
        if settings.optimize:
            with clock.stage("passes") as changes:
                types, found = simplify(model, types)
                changes += found
        with clock.stage("adapt"):
            backends = tuple(each.adapt(model.graph, types) for each in settings.backends)
        planner = Planner(backends, types, wait_for_sizes)
        with clock.stage("plan"):
            program = planner.program(model.graph)
        waits = any(found.needs_sizes for found in planner.refused.values())
        for _ in range(_EXPANSIONS):
            # Operators without kernels, as their compositions, which may have such operators too.
            if not settings.optimize or not backends or waits:
                break
            if not _expand_refused(program, types):
                break
            types, _ = simplify(model, types)
            backends = tuple(each.adapt(model.graph, types) for each in settings.backends)
            planner = Planner(backends, types, wait_for_sizes)
            program = planner.program(model.graph)
        built = Built(model, types, program, backends, planner.refused, tuple(clock.stages))
        return _opened(built, clock, settle) if ready else built
    finally:
        for store in stores:
            store.close()


def simplify(model: ir.Model, types: GraphTypes) -> tuple[GraphTypes, list[Change]]:
    """Apply all passes to a model in place; return the types of the result, and the changes."""
    changes: dict[str, Change] = {}
    for _ in range(_INFERENCES):
        made = optimize(model.graph, types)
        for change in made:
            before = changes[change.name].nodes if change.name in changes else ()
            changes[change.name] = replace(change, nodes=before + change.nodes)
        if any(change.count for change in made):
            types = _inferred_again(model, types)
        if not any(change.count for change in made if change.shows):
            break
    return types, list(changes.values())


def _inferred_again(model: ir.Model, types: GraphTypes) -> GraphTypes:
    """Return the types of what passes made of a model, which needs what it needed of its inputs."""
    shapes = _input_shapes(model, types)
    found = infer_types(model, shapes=shapes, lenient=True)
    given = {name for shape in shapes.values() for dim in shape for name in symbols_of(dim)}
    found.needed = {pair for pair in types.needed if all(symbols_of(dim) <= given for dim in pair)}
    if found.needed:
        found.need(model.graph, sorted(found.needed, key=str))
    return found


def _expand_refused(program: Program, types: GraphTypes) -> int:
    """Write nodes that no backend takes as their compositions; return how many there are."""
    nodes = {node for part in program.parts(REFERENCE.name) for node in part.nodes}
    return sum(
        expand_node(node.graph, node, types) for node in nodes if isinstance(node.graph, ir.Graph)
    )


def _opened(built: Built, clock: _Clock, settle: Callable[[], None]) -> Built:
    try:
        with clock.stage("open"):
            built.program.open(settle)
    except NoCompiler as error:
        plain = Planner((), built.types).program(built.model.graph)
        return replace(built, program=plain, backends=(), obstacle=str(error))
    return replace(built, stages=tuple(clock.stages))


def _input_shapes(model: ir.Model, types: GraphTypes) -> dict[str, Shape]:
    """Return the shapes of inputs as they were inferred, given ones included."""
    return {
        str(value.name): found.shape
        for value in model.graph.inputs
        if isinstance(found := types.types.get(value), TensorType) and found.shape is not None
    }
