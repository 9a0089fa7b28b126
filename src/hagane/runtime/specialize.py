"""The programs of a session: one for all shapes, and some for shapes that were met."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.errors import InvalidArgument
from hagane.graph.types import TensorType
from hagane.machine import Lock
from hagane.ops import infer_types
from hagane.ops.definition import RuntimeValue
from hagane.ops.inference import GraphTypes
from hagane.runtime.pipeline import Built, ReadModel, build
from hagane.runtime.port import Memory, Part, SizesUnknown
from hagane.runtime.program import Planner, Program
from hagane.runtime.settings import Settings
from hagane.symbolic import Expr

# How many input shapes get a program of their own; later ones share the general one.
_MOST_SHAPES = 16


class Programs:
    """Builds a model once for all shapes, and again for shapes whose sizes kernels must know.

    Args:
        read: The model; changed in place.
        settings: Those of the pipeline.
        logger: Where a notice goes if there is no compiler.
    """

    def __init__(self, read: ReadModel, settings: Settings, logger: logging.Logger):
        self._model, self._types = read.model, read.types
        self._settings, self._logger = settings, logger
        self._lock = Lock()
        self._by_shape: dict[tuple[tuple[int, ...], ...], Program] = {}
        self.refused: dict[ir.Node, str] = {}
        # Whether backends compute parts; without a compiler they do not.
        self.native = bool(settings.backends)
        # Passes take initializers for constants, those that may be overridden too.
        initializers = self._model.graph.initializers.values()
        overridable = any(value.is_graph_input() for value in initializers)
        self._as_given = self._model.clone() if overridable else self._model
        self._specializes = False
        self._general: Program | None = None
        try:
            self._general = self._build(self._model, self._types, wait_for_sizes=True)
        except SizesUnknown:
            self._specializes = True

    @property
    def general(self) -> Program:
        """The program for all shapes; compiled late where single shapes have programs."""
        if self._general is None:
            self._general = self._build(self._model, self._types)
        return self._general

    def _build(
        self, model: ir.Model, types: GraphTypes, *, wait_for_sizes: bool = False
    ) -> Program:
        settings = self._settings if self.native else Settings(optimize=False)
        built = build(model, types, settings, wait_for_sizes=wait_for_sizes)
        self._note(built)
        return built.program

    def _note(self, built: Built) -> None:
        self.refused.update({node: found.reason for node, found in built.refused.items()})
        if built.obstacle is not None:
            self._logger.warning("the model runs on the slow reference kernels: %s", built.obstacle)
            self.native = False

    def frame(
        self,
        names: Sequence[str],
        arguments: Sequence[RuntimeValue],
        fed: Sequence[int],
        owner: object,
        full: bool,
    ) -> tuple[Any, ...] | None:
        """Return the short way for arguments of some shapes, if the model is one part that has one.

        Args:
            names: The graph's inputs.
            arguments: A value for each.
            fed: Which of them are given in each run.
            owner: Of a short way whose memory may be taken, or None.
            full: Whether it must be.
        """
        found = _whole(self.for_shapes(names, arguments), fed)
        arrays = [value for i in fed if isinstance(value := arguments[i], np.ndarray)]
        if found is None or len(arrays) != len(fed):
            return None
        part, own, order = found
        return part.frame(arrays, own, order, owner, full)

    def whole(self, fed: Sequence[int]) -> tuple[Part, tuple[int, ...], tuple[int, ...]] | None:
        """Return the part that is the model for all shapes, if there is one.

        Also which of the inputs that are given it reads, and which of its outputs the model has.

        Args:
            fed: Which of the graph's inputs are given in each run.
        """
        return _whole(self.general, fed) if self.native and not self._specializes else None

    def may_have_frames(self) -> bool:
        """Whether there may be a short way for some shapes."""
        return self.native and (self._specializes or len(self.general.steps) == 1)

    def memory_plan(self, shapes: Mapping[str, Sequence[int]]) -> Memory:
        """Return the memory that the parts need for inputs of some shapes."""
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
        parts = [part.memory(sizes) for part in self.for_shapes(names, arguments).parts()]
        return Memory(sum(part.weights for part in parts), sum(part.values for part in parts))

    @cached_property
    def reference(self) -> Program:
        """The model on its reference kernels; its initializers may be overridden."""
        return Planner((), self._types).program(self._as_given.graph)

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
                types = infer_types(model, shapes=shapes, lenient=True)
                program = self._by_shape[key] = self._build(model, types)
            return program


def _whole(
    program: Program, fed: Sequence[int]
) -> tuple[Part, tuple[int, ...], tuple[int, ...]] | None:
    if len(program.steps) != 1:
        return None
    (step,) = program.steps
    slots = [program.inputs[i] for i in fed]
    if not set(step.inputs) <= set(slots) or not set(program.outputs) <= set(step.outputs):
        return None
    if len(set(program.outputs)) != len(program.outputs):
        return None
    own = tuple(slots.index(slot) for slot in step.inputs)
    return step.part, own, tuple(step.outputs.index(slot) for slot in program.outputs)
