"""The programs of a session: one for all shapes, and some for shapes that were met."""

from __future__ import annotations

import logging
import os
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import onnx_ir as ir

from hagane.errors import InvalidArgument
from hagane.graph.types import TensorType
from hagane.graph.weights import stored_weights
from hagane.machine import (
    Level,
    Lock,
    NoCompiler,
    level_named,
    multiplies_bfloat16,
    usable_cores,
)
from hagane.native import (
    Caller,
    Choices,
    Plan,
    Settings,
    SizesUnknown,
    has_numbers,
    library_obstacle,
    make_caller,
    peak_flops,
    plan_graph,
    tune,
    widen_halves,
)
from hagane.ops import infer_types
from hagane.ops.definition import Array, RuntimeValue
from hagane.ops.inference import GraphTypes
from hagane.ops.values import tensor_to_array
from hagane.passes import optimize
from hagane.runtime.options import GraphOptimizationLevel, SessionOptions
from hagane.runtime.program import NativeStep, Program, compile_graph
from hagane.runtime.tuned import TuningCache, progress
from hagane.symbolic import Expr

# How many input shapes get a program of their own; later ones share the general one.
_MOST_SHAPES = 16
PRECISIONS = ("fp32", "bf16")


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """What a session's compiled parts take.

    Attributes:
        weights: Bytes of packed weights.
        values: Bytes of everything that one run at a time computes on its way.
    """

    weights: int
    values: int

    @property
    def peak(self) -> int:
        """Bytes in all; inputs and outputs belong to the caller."""
        return self.weights + self.values


class Programs:
    """Compiles a model once for all shapes, and again for shapes whose sizes kernels must know.

    Args:
        model: Legalised and type-checked.
        types: What inference found.
        options: The session's settings.
        logger: Where a notice goes if there is no compiler.
    """

    def __init__(
        self,
        model: ir.Model,
        types: GraphTypes,
        options: SessionOptions,
        logger: logging.Logger,
    ):
        self._model, self._options, self._logger = model, options, logger
        self._lock = Lock()
        self._by_shape: dict[tuple[tuple[int, ...], ...], Program] = {}
        self.refused: dict[ir.Node, str] = {}
        self._native = is_native(options)
        _check_tuning(options)
        self._pairs = self._native and _rounds(options, logger)
        self._types = types
        # Passes take initializers for constants, those that may be overridden too.
        overridable = any(value.is_graph_input() for value in model.graph.initializers.values())
        self._as_given = model.clone() if overridable else model
        self._specializes = False
        self._lacks_library = False
        self._general: Program | None = None
        try:
            self._general = self._compile(model, types, wait_for_sizes=True)
        except SizesUnknown:
            self._specializes = True

    @property
    def general(self) -> Program:
        """The program for all shapes; compiled late where single shapes have programs."""
        if self._general is None:
            self._general = self._compile(self._model, self._types)
        return self._general

    def _compile(
        self, model: ir.Model, types: GraphTypes, *, wait_for_sizes: bool = False
    ) -> Program:
        if not self._native:
            return compile_graph(model.graph)
        types = simplified(model, types)
        widen_halves(model.graph, types)
        threads = self._threads
        level = level_of(self._options)
        stores = stored_weights(model.graph)

        def settle() -> None:
            for store in stores:
                store.forget()

        choices = self._choices(model, types)

        def planner(graph: ir.Graph, constants: Mapping[ir.Value, Array]) -> Plan:
            plan = plan_graph(
                graph,
                types,
                constants,
                level=level,
                threads=threads,
                pairs=self._pairs,
                choices=choices,
                wait_for_sizes=wait_for_sizes,
                settle=settle,
            )
            self.refused.update(plan.refused)
            return plan

        try:
            return compile_graph(model.graph, planner)
        except NoCompiler as error:
            self._logger.warning("the model runs on the slow reference kernels: %s", error)
            self._native = False
            return compile_graph(model.graph)
        finally:
            for store in stores:
                store.close()

    def _choices(self, model: ir.Model, types: GraphTypes) -> Choices:
        """Return what was measured of the model's layers, now or before."""
        options = self._options
        if options.tune == "off" or not has_numbers(types, model.graph):
            return {}
        cache = TuningCache(options.tune_cache, self._logger)
        known = cache.load()
        budget = (
            _TUNE_SECONDS[options.tune] if options.tune_seconds is None else options.tune_seconds
        )
        settings = Settings(level_of(options), self._threads, self._pairs, options.tune, budget)
        constants = {
            value: tensor_to_array(value.const_value)
            for value in model.graph.initializers.values()
            if value.const_value is not None
        }
        try:
            with progress() as advance:
                found = tune(model.graph, types, constants, settings, known, advance)
        except NoCompiler:
            return {}  # said when the model itself is compiled
        kept = {key: choice for key, choice in found.choices.items() if key not in found.disturbed}
        if kept:
            cache.store(kept)
        if found.disturbed:
            self._logger.warning(
                "something else was running while %d of %d layers were measured: their choices "
                "serve this session and are not kept",
                len(found.disturbed),
                len(found.choices),
            )
        self._notice_library(found.layers, known)
        if found.left:
            self._logger.warning(
                "there was no time to measure %d layers; set SessionOptions.tune_seconds above %g, "
                "or make the session again",
                found.left,
                budget,
            )
        return {**known, **found.choices}

    def _notice_library(self, layers: Container[str], known: Choices) -> None:
        """Say that oneDNN was chosen for layers before, if it cannot be used now."""
        named = [key for key in known if key in layers and known[key].library == "onednn"]
        reason = library_obstacle() if named else None
        if reason is not None and not self._lacks_library:
            self._lacks_library = True
            self._logger.warning(
                "oneDNN was measured to be fastest for %d layers, which are computed by other "
                "kernels now: %s",
                len(named),
                reason,
            )

    @property
    def _threads(self) -> int:
        return self._options.intra_op_num_threads or usable_cores()

    def peak_flops(self) -> float:
        """Return the operations a second that the session's threads do at most, measured."""
        try:
            return peak_flops(level_of(self._options), self._threads)
        except NoCompiler:
            return float("inf")

    def caller(self, names: Sequence[str]) -> Caller | None:
        """Return the short way to run the model, if it is one compiled part of fixed shapes.

        Args:
            names: The graph's inputs.
        """
        if not self._native or self._specializes:
            return None
        program = self.general
        if len(program.steps) != 1:
            return None
        (step,) = program.steps
        if not isinstance(step, NativeStep) or set(step.inputs) != set(program.inputs):
            return None
        if not set(program.outputs) <= set(step.outputs):
            return None
        own = [names[program.inputs.index(slot)] for slot in step.inputs]
        order = [step.outputs.index(slot) for slot in program.outputs]
        return make_caller(step.part.segment, own, order)

    def memory_plan(self, shapes: Mapping[str, Sequence[int]]) -> MemoryPlan:
        """Return the memory that the compiled parts need for inputs of some shapes."""
        sizes: dict[str, int] = {}
        arguments = []
        for value in self._model.graph.inputs:
            found = self._types.types.get(value)
            shape = found.shape if isinstance(found, TensorType) else None
            if shape is None:
                raise InvalidArgument(f"input '{value.name}': its rank is not known")
            given = list(shapes.get(str(value.name), shape))
            if len(given) != len(shape) or not all(isinstance(dim, int) for dim in given):
                raise InvalidArgument(
                    f"input '{value.name}': expected the sizes of {found} as numbers, got {given}"
                )
            for dim, size in zip(shape, given, strict=True):
                sizes.update({str(dim): int(size)} if isinstance(dim, Expr) else {})
            arguments.append(np.broadcast_to(np.float32(0), [int(dim) for dim in given]))
        names = [str(value.name) for value in self._model.graph.inputs]
        weights = values = 0
        for part in self.for_shapes(names, arguments).native_parts():
            own, run = part.segment.memory(sizes)
            weights, values = weights + own, values + run
        return MemoryPlan(weights, values)

    @cached_property
    def reference(self) -> Program:
        """The model on its reference kernels; its initializers may be overridden."""
        return compile_graph(self._as_given.graph)

    def for_shapes(self, names: Sequence[str], arguments: Sequence[RuntimeValue]) -> Program:
        """Return the program for arguments of these shapes."""
        if not self._specializes:
            return self.general
        arrays = [value for value in arguments if isinstance(value, np.ndarray)]
        if len(arrays) != len(arguments):
            return self.general
        key = tuple(array.shape for array in arrays)
        with self._lock:
            program = self._by_shape.get(key)
            if program is None and len(self._by_shape) >= _MOST_SHAPES:
                return self.general
            if program is None:
                model = self._model.clone()
                shapes = dict(zip(names, key, strict=True))
                program = self._compile(model, infer_types(model, shapes=shapes, lenient=True))
                self._by_shape[key] = program
            return program


def simplified(model: ir.Model, types: GraphTypes) -> GraphTypes:
    """Apply all passes to a model and return the types of what is left."""
    changes = optimize(model.graph, types)
    if not any(change.count for change in changes):
        return types
    shapes = {
        str(value.name): found.shape
        for value in model.graph.inputs
        if isinstance(found := types.types.get(value), TensorType) and found.shape is not None
    }
    return infer_types(model, shapes=shapes, lenient=True)


def is_native(options: SessionOptions) -> bool:
    """Whether a session with these settings compiles its model."""
    chosen = options.entries.get("hagane.engine") or os.environ.get("HAGANE_ENGINE", "native")
    level = options.graph_optimization_level
    return chosen != "reference" and level != GraphOptimizationLevel.ORT_DISABLE_ALL


_TUNE_SECONDS = {"fast": 10.0, "full": 120.0}


def _check_tuning(options: SessionOptions) -> None:
    if options.tune not in ("off", *_TUNE_SECONDS):
        raise InvalidArgument(
            f"SessionOptions.tune: expected 'off', 'fast' or 'full', got {options.tune!r}"
        )
    seconds = options.tune_seconds
    if seconds is not None and not seconds > 0:
        raise InvalidArgument(
            f"SessionOptions.tune_seconds: expected a positive number, got {seconds!r}"
        )


def _rounds(options: SessionOptions, logger: logging.Logger) -> bool:
    """Whether products may be computed in bfloat16."""
    if options.precision not in PRECISIONS:
        raise InvalidArgument(
            f"SessionOptions.precision: expected {' or '.join(map(repr, PRECISIONS))}, "
            f"got {options.precision!r}"
        )
    if options.precision == "fp32":
        return False
    if multiplies_bfloat16(level_of(options)):
        return True
    logger.warning(
        "SessionOptions.precision is 'bf16', but this processor has no products of bfloat16 "
        "(avx512_bf16): the model runs in fp32"
    )
    return False


def level_of(options: SessionOptions) -> Level:
    """Return the vector instructions that a session's kernels use."""
    chosen = options.entries.get("hagane.instructions") or os.environ.get("HAGANE_INSTRUCTIONS")
    return level_named(chosen)
