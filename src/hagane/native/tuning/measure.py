"""Finding the fastest form of each large kernel of a model by running them all.

Candidates of one layer take turns, so that a change of the machine's load meets all of them; a
measurement of the machine's peak before and after tells whether something else was running.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.graph.types import TensorType
from hagane.machine import Level
from hagane.native.lowering.choices import BY_RULE, Choice, Choices
from hagane.native.lowering.facts import Facts, NotNative
from hagane.native.lowering.state import Lowering
from hagane.native.plan.apply_rules import lower_nodes
from hagane.native.plan.partition import Draft, Target, draft_nodes
from hagane.native.rules.convolution.choose import reads_blocks, sizes_of, winograd_sizes
from hagane.native.rules.convolution.few_outputs import has_few_outputs
from hagane.native.rules.convolution.window import convolution_key, is_depthwise
from hagane.native.rules.onednn.calls import usable
from hagane.native.rules.onednn.convolution import divided_convolution
from hagane.native.rules.onednn.product import divided_product
from hagane.native.rules.products.packed import product_key
from hagane.native.run.context import Spent
from hagane.native.run.engine import compile_kernels
from hagane.native.run.loaded import Loaded
from hagane.native.tuning.peak import peak_flops
from hagane.ops import infer_types
from hagane.ops.builder import Nodes, interpreting, new_input, op
from hagane.ops.definition import Array
from hagane.ops.inference import GraphTypes
from hagane.symbolic import product

# A form is taken in the place of the rule's if it is faster by this factor.
_GAIN = 1.03
# Something else runs if the machine's peak falls below this share of the best that was seen.
_QUIET = 0.9
# Layers of less work than this, in operations, are not worth measuring.
_LEAST_FLOPS = 1.0e6
_BY_LIBRARY = (
    Choice(library="onednn", order="groups"),
    Choice(library="onednn", order="pixels"),
)
_ROUNDS = {"fast": 6, "full": 20}


@dataclass(frozen=True, slots=True)
class Settings:
    """The conditions of tuning.

    Attributes:
        level: Vector instructions.
        threads: How many a run uses.
        pairs: Whether products may be computed in bfloat16.
        mode: ``fast`` tries the likely forms, ``full`` all.
        seconds: After this long, layers that are left are decided by rule.
        library: Whether oneDNN is one of the forms.
    """

    level: Level
    threads: int
    pairs: bool
    mode: str
    seconds: float
    library: bool = True


@dataclass(frozen=True, slots=True)
class Tuned:
    """The findings.

    Attributes:
        choices: Of the layers that were measured; by rule where nothing was faster.
        gains: For each of these, the time of the rule's form over that of the choice.
        disturbed: Layers in whose measurement something else was running.
        left: Layers that there was no time for.
        layers: The keys of the graph's layers, large or small, known or measured.
    """

    choices: dict[str, Choice]
    gains: dict[str, float]
    disturbed: frozenset[str]
    left: int
    layers: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Layer:
    """A layer of its own: a model of one node, its key and its forms, the rule's first."""

    key: str
    model: ir.Model
    feed: Array
    flops: float
    forms: tuple[Choice, ...]


def tune(
    graph: ir.Graph,
    types: GraphTypes,
    constants: Mapping[ir.Value, Array],
    settings: Settings,
    known: Choices,
    advance: Callable[[int, int], None] = lambda done, total: None,
) -> Tuned:
    """Measure the layers of a graph whose best form is not known yet.

    Args:
        graph: Legalised and type-checked, with sizes that are numbers.
        types: The types that inference found for it.
        constants: Arrays of its initializers.
        settings: The conditions of tuning.
        known: Choices that were made before.
        advance: Called with the layers done and the layers in all.
    """
    facts = Facts(settings.level, types, constants, frozenset(), settings.threads, settings.pairs)
    low = Lowering.of(facts, lower_nodes)
    layers: dict[str, _Layer] = {}
    keys: set[str] = set()
    for node in graph:
        layer = _layer(low, node, settings)
        if layer is None:
            continue
        keys.add(layer.key)
        several = len(layer.forms) > 1
        if several and layer.key not in known and layer.flops >= _LEAST_FLOPS:
            layers.setdefault(layer.key, layer)
    ordered = sorted(layers.values(), key=lambda layer: -layer.flops)
    end = time.monotonic() + settings.seconds
    choices: dict[str, Choice] = {}
    gains: dict[str, float] = {}
    left = 0
    best_peak = 0.0
    disturbed: set[str] = set()
    for number, layer in enumerate(ordered):
        if time.monotonic() >= end:
            left = len(ordered) - number
            break
        segments = _segments(layer, settings)
        before = peak_flops(settings.level, settings.threads, rounds=3)
        times = _measure(segments, layer.feed, _ROUNDS[settings.mode], end)
        after = peak_flops(settings.level, settings.threads, rounds=3)
        best_peak = max(best_peak, before, after)
        if min(before, after) < _QUIET * best_peak:
            times = {
                choice: min(old, new)
                for (choice, old), new in zip(
                    times.items(),
                    _measure(segments, layer.feed, _ROUNDS[settings.mode], end).values(),
                    strict=True,
                )
            }
            if peak_flops(settings.level, settings.threads, rounds=3) < _QUIET * best_peak:
                disturbed.add(layer.key)
        fastest = min(times, key=lambda choice: times[choice])
        gain = times[BY_RULE] / times[fastest]
        choices[layer.key] = fastest if gain > _GAIN else BY_RULE
        gains[layer.key] = gain if gain > _GAIN else 1.0
        advance(number + 1, len(ordered))
    return Tuned(choices, gains, frozenset(disturbed), left, frozenset(keys))


def _layer(low: Lowering, node: ir.Node, settings: Settings) -> _Layer | None:
    try:
        if node.op_type == "Conv":
            return _convolution(low, node, settings)
        if node.op_type in ("MatMul", "Gemm"):
            return _product(low, node, settings)
    except NotNative:
        pass
    return None


def _convolution(low: Lowering, node: ir.Node, settings: Settings) -> _Layer | None:
    window = sizes_of(low, node)
    if window is None or has_few_outputs(low, window) or is_depthwise(window):
        return None
    shapes = [low.facts.fixed_shape(node.inputs[0]), low.facts.fixed_shape(node.inputs[1])]
    forms: list[Choice] = []
    if reads_blocks(low, node) is not None:
        forms += [Choice(winograd=0, blocks=n, order=o) for n, o in _tiles(settings)]  # type: ignore[arg-type]
        forms += [Choice(winograd=n) for n in winograd_sizes(window)]  # type: ignore[arg-type]
    if settings.library and usable(low) and divided_convolution(low, window) is not None:
        forms += _BY_LIBRARY
    flops = 2.0 * np.prod(low.facts.fixed_shape(node.outputs[0])) * np.prod(shapes[1][1:])
    model, feed = _alone(node, shapes)
    return _Layer(convolution_key(low, window), model, feed, float(flops), (BY_RULE, *forms))


def _product(low: Lowering, node: ir.Node, settings: Settings) -> _Layer | None:
    weight = low.facts.constant(node.inputs[1])
    if weight is None or weight.ndim != 2 or not low.facts.is_float(node.inputs[0]):
        return None
    if node.op_type == "Gemm" and low.facts.attributes(node)["transA"]:
        return None
    rows = product(low.facts.fixed_shape(node.inputs[0])[:-1])
    transposed = node.op_type == "Gemm" and low.facts.attributes(node)["transB"]
    k, n = weight.shape[::-1] if transposed else weight.shape
    read = ("packed",) if settings.pairs else ("packed", "direct")
    forms = [
        Choice(blocks=blocks, order=order, rows=how)  # type: ignore[arg-type]
        for (blocks, order), how in itertools.product(_tiles(settings), read)
    ]
    if settings.library and usable(low) and divided_product(low, rows, k, n) is not None:
        forms += _BY_LIBRARY
    model, feed = _alone(node, [low.facts.fixed_shape(node.inputs[0]), weight.shape])
    flops = 2.0 * int(rows) * k * n
    return _Layer(product_key(low, rows, k, n), model, feed, flops, (BY_RULE, *forms))


def _tiles(settings: Settings) -> Iterator[tuple[int, str]]:
    """Yield blocks of a tile and orders of loops that are worth trying."""
    widest = (2, 3) if settings.mode == "fast" else (1, 2, 3, 4)
    yield from itertools.product(widest, ("groups", "pixels"))


def _alone(node: ir.Node, shapes: Sequence[tuple[int, ...]]) -> tuple[ir.Model, Array]:
    """Return a model of one node like this, its weights made up, and its input."""
    random = np.random.default_rng(0)
    types, attributes = GraphTypes(), dict[str, Any](node.attributes)
    x = new_input("x", TensorType(ir.DataType.FLOAT, tuple(shapes[0])), types)
    weight = random.standard_normal(shapes[1]).astype(np.float32)
    graph = ir.Graph([x], [], nodes=[], opset_imports={"": 28}, name="layer")
    with interpreting(Nodes(graph, types, name=_NAME)):
        graph.outputs.append(op(node.op_type, x, weight, **attributes))
    feed = random.standard_normal(shapes[0]).astype(np.float32)
    return ir.Model(graph, ir_version=10), feed


_NAME = "measured"


def _segments(layer: _Layer, settings: Settings) -> dict[Choice, Loaded]:
    """Return the compiled forms of a layer, the rule's first; of equal ones the first alone."""
    types = infer_types(layer.model)
    graph = layer.model.graph
    constants = {
        value: value.const_value.numpy()
        for value in graph.initializers.values()
        if value.const_value is not None
    }
    (node,) = graph
    drafts: dict[Choice, Draft] = {}
    seen: set[tuple[str, ...]] = set()
    for form in layer.forms:
        choices = {} if form == BY_RULE else {layer.key: form}
        target = Target(settings.level, settings.threads, settings.pairs, choices)
        draft, refused = draft_nodes(
            graph, [node], frozenset(graph.outputs), types, constants, target
        )
        assert not refused, "layers have kernels"
        codes = tuple(kernel.code for kernel in draft.low.recorder.kernels)
        if codes not in seen:
            seen.add(codes)
            drafts[form] = draft
    kernels = [kernel for draft in drafts.values() for kernel in draft.low.recorder.kernels]
    library = compile_kernels(kernels, settings.level)  # all at once, in parallel
    return {form: draft.load(library=library) for form, draft in drafts.items()}


def _measure(
    segments: Mapping[Choice, Loaded], feed: Array, rounds: int, end: float
) -> dict[Choice, float]:
    """Return the seconds of each form, without bringing the image into blocks and back."""
    found: dict[Choice, list[float]] = {form: [] for form in segments}
    for number in range(rounds):
        if number > 1 and time.monotonic() > end:
            break
        for form, segment in segments.items():
            times: list[Spent] = []
            segment.run([feed], times)
            own = [
                taken.nanoseconds
                for kernel, taken in zip(segment.kernels, times, strict=True)
                if not kernel.label.startswith(("to blocks", "from blocks"))
            ]
            found[form].append(sum(own) * 1e-9)
    # The first run of each has cold caches.
    return {
        form: statistics.quantiles(times[1:] + times[-1:], n=4)[0] for form, times in found.items()
    }


def has_numbers(types: GraphTypes, graph: ir.Graph) -> bool:
    """Whether all sizes of a graph's inputs are numbers, so that its layers can be measured."""
    shapes = [types.types.get(value) for value in graph.inputs]
    return all(
        isinstance(found, TensorType)
        and found.shape is not None
        and all(isinstance(dim, int) for dim in found.shape)
        for found in shapes
    )
