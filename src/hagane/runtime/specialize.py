"""The programs of a session: one for all shapes, and some for shapes that come again and again.

The program for all shapes is compiled when the session is made, and takes any of them. A program
for one shape has numbers in the place of its sizes and may be some per cent faster, or more where
the forms of kernels depend on sizes. It is built beside the runs, which go on meanwhile.
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.errors import InvalidArgument
from hagane.graph.types import TensorType
from hagane.graph.walk import all_nodes
from hagane.machine import Lock
from hagane.ops import infer_types
from hagane.ops.definition import RuntimeValue
from hagane.runtime.pipeline import Built, ReadModel, build
from hagane.runtime.port import Memory, Part
from hagane.runtime.program import Planner, Program
from hagane.runtime.repeats import LEASE, MOST_COUNTED, RUNS, Shapes, step_back
from hagane.runtime.settings import Settings
from hagane.symbolic import Expr

# A size, or the least and the largest of a range.
Sizes = int | tuple[int, int]

# For how many runs the short way of a program for one shape is not asked for again, so that those
# in use are known.
_LONG_LEASE = 64
# How many shapes have programs of their own, and the bytes that these take together, at most.
_MOST_PROGRAMS, _MOST_BYTES = 8, 256 << 20
# Sizes that a plan of memory is made for, of ranges.
_MOST_PLANS = 256
# Operators whose kernels are faster, or of another form, where sizes are numbers.
_BY_SIZE = frozenset(
    {
        *("AveragePool", "Conv", "ConvInteger", "ConvTranspose", "DeformConv", "GRU", "LSTM"),
        *("MaxPool", "QLinearConv", "RNN", "Resize"),
    }
)


@dataclass(frozen=True, slots=True)
class _Own:
    """A program for one shape, and the bytes that it takes."""

    program: Program
    bytes: int


class Programs:
    """Builds a model for all shapes, and again for shapes that come again and again.

    Args:
        read: The model; changed in place.
        settings: Those of the pipeline.
        logger: Where a notice goes if there is no compiler.
        specialize: Whether shapes get programs of their own.
    """

    def __init__(
        self,
        read: ReadModel,
        settings: Settings,
        logger: logging.Logger,
        *,
        specialize: bool = True,
    ):
        self._model, self._types = read.model, read.types
        self._settings, self._logger = settings, logger
        self._lock = Lock()
        self._own: OrderedDict[Shapes, _Own] = OrderedDict()
        self._met: OrderedDict[Shapes, int] = OrderedDict()
        self._building: threading.Thread | None = None
        self.refused: dict[ir.Node, str] = {}
        # Whether backends compute parts; without a compiler they do not.
        self.native = bool(settings.backends)
        # Passes take initializers for constants, overridable ones too.
        initializers = self._model.graph.initializers.values()
        overridable = any(value.is_graph_input() for value in initializers)
        self._as_given = self._model.clone() if overridable else self._model
        self.general: Program = self._build_general()
        self._specializes = specialize and self.native and self._has_open_sizes()

    def _build_general(self) -> Program:
        settings = self._settings if self.native else Settings(optimize=False)
        built = build(self._model, self._types, settings)
        self.refused.update({node: found.reason for node, found in built.refused.items()})
        if built.obstacle is not None:
            self._logger.warning("the model runs on the slow reference kernels: %s", built.obstacle)
            self.native = False
        return built.program

    def _has_open_sizes(self) -> bool:
        """Whether inputs have open sizes and kernels may gain by numbers for them."""
        shapes = [self._shape(value) for value in self._model.graph.inputs]
        if not any(isinstance(dim, Expr) for shape in shapes for dim in shape or ()):
            return False
        return any(node.op_type in _BY_SIZE for node in all_nodes(self._model.graph))

    def _shape(self, value: ir.Value) -> Sequence[int | Expr] | None:
        found = self._types.types.get(value)
        return found.shape if isinstance(found, TensorType) else None

    def frame(
        self,
        names: Sequence[str],
        arguments: Sequence[RuntimeValue],
        fed: Sequence[int],
        owner: object,
        full: bool,
        runs: int,
    ) -> tuple[Any, ...] | None:
        """Return the short way for arguments of some shapes, if the model is one part that has one.

        Args:
            names: The graph's inputs.
            arguments: A value for each.
            fed: Which of them are given in each run.
            owner: Of a short way whose memory may be taken, or None.
            full: Whether it must be.
            runs: How often arguments of these shapes have run by themselves since the last time.
        """
        program = self.for_shapes(names, arguments, runs + 1)
        found = _whole(program, fed)
        arrays = [value for i in fed if isinstance(value := arguments[i], np.ndarray)]
        if found is None or len(arrays) != len(fed):
            return None
        part, own, order = found
        lease = 0
        if self._specializes:
            lease = LEASE if program is self.general else _LONG_LEASE
        return part.frame(arrays, own, order, owner, full, lease, general=program is self.general)

    @property
    def specializes(self) -> bool:
        """Whether shapes that come again and again get programs of their own."""
        return self._specializes

    def whole(self, fed: Sequence[int]) -> tuple[Part, tuple[int, ...], tuple[int, ...]] | None:
        """Return the part that is the model for all shapes, if there is one.

        Also which of the inputs that are given it reads, and which of its outputs the model has.

        Args:
            fed: Which of the graph's inputs are given in each run.
        """
        return _whole(self.general, fed) if self.native else None

    def may_have_frames(self) -> bool:
        """Whether there may be a short way for some shapes."""
        return self.native and len(self.general.steps) == 1

    # ---- memory ----

    def memory_plan(self, shapes: Mapping[str, Sequence[Sizes]]) -> Memory:
        """Return the memory that the parts need for inputs of some shapes, or of any in a range.

        Of a range of many sizes a part is tried, the smallest and largest among them.

        Raises:
            InvalidArgument: A size is left open, or is no size.
        """
        ranges: dict[str, Sizes] = {}
        for value in self._model.graph.inputs:
            for dim, size in self._given(value, shapes):
                if isinstance(dim, Expr):
                    ranges.setdefault(str(dim), size)
        plans = [self._memory(sizes) for sizes in _spread(ranges)]
        return Memory(max(plan.weights for plan in plans), max(plan.values for plan in plans))

    def _memory(self, sizes: Mapping[str, int]) -> Memory:
        parts = [part.memory(sizes) for part in self.general.parts()]
        return Memory(sum(part.weights for part in parts), sum(part.values for part in parts))

    def _given(
        self, value: ir.Value, shapes: Mapping[str, Sequence[Sizes]]
    ) -> Iterator[tuple[int | Expr, Sizes]]:
        """Yield the dimensions of an input with the sizes that are given for them."""
        shape = self._shape(value)
        if shape is None:
            raise InvalidArgument(f"input '{value.name}': its rank is not known")
        given = list(shapes.get(str(value.name), shape))
        if len(given) != len(shape) or not all(map(_is_size, given)):
            raise InvalidArgument(
                f"input '{value.name}': expected the sizes of {self._types.types[value]} as "
                f"numbers, or as pairs of the least and the largest, got {given}"
            )
        yield from zip(shape, given, strict=True)

    # ---- programs ----

    @cached_property
    def reference(self) -> Program:
        """The model on its reference kernels; its initializers may be overridden."""
        return Planner((), self._types).program(self._as_given.graph)

    def for_shapes(
        self, names: Sequence[str], arguments: Sequence[RuntimeValue], runs: int = 1
    ) -> Program:
        """Return the program for arguments of these shapes.

        Args:
            names: The graph's inputs.
            arguments: A value for each.
            runs: How many runs of this shape it stands for, those since the last time included.
        """
        if not self._specializes:
            return self.general
        arrays = [value for value in arguments if isinstance(value, np.ndarray)]
        if len(arrays) != len(arguments):
            return self.general
        key = tuple(array.shape for array in arrays)
        with self._lock:
            own = self._own.get(key)
            if own is not None:
                self._own.move_to_end(key)
                return own.program
            count = self._met[key] = self._met.pop(key, 0) + runs
            if len(self._met) > MOST_COUNTED:
                self._met.popitem(last=False)
            # (Another one is being built: the next run of this shape asks again.)
            if count >= RUNS and self._building is None:
                self._building = threading.Thread(
                    target=self._build_beside, args=(names, key), name="hagane-specialize"
                )
                self._building.daemon = True
                self._building.start()
        return self.general

    def prepare(self, names: Sequence[str], shapes: Mapping[str, Sequence[int]]) -> None:
        """Give inputs of some shapes a program of their own; returns when it is there.

        Raises:
            InvalidArgument: A size is left open.
        """
        key = tuple(
            tuple(int(size) for _, size in self._given(value, shapes) if isinstance(size, int))
            for value in self._model.graph.inputs
        )
        ranks = [len(self._shape(value) or ()) for value in self._model.graph.inputs]
        if [len(shape) for shape in key] != ranks:
            raise InvalidArgument(f"prepare: expected one number for each size, got {dict(shapes)}")
        if self._specializes and key not in self._own:
            self._keep(key, self._build_own(names, key))

    def wait(self) -> None:
        """Wait until no program is being built beside the runs."""
        thread = self._building
        if thread is not None:
            thread.join()

    def _build_beside(self, names: Sequence[str], key: Shapes) -> None:
        step_back()
        try:
            self._keep(key, self._build_own(names, key))
        except Exception as error:  # the general program serves; nobody waits for this one
            self._specializes = False
            if "interpreter shutdown" not in str(error):  # (Python ends: no compiler starts then.)
                self._logger.warning("no program of its own for shapes %s", key, exc_info=True)
        finally:
            self._building = None

    def _build_own(self, names: Sequence[str], key: Shapes) -> Program | None:
        model = self._model.clone()
        types = infer_types(model, shapes=dict(zip(names, key, strict=True)), lenient=True)
        built: Built = build(model, types, self._settings)
        return None if built.obstacle is not None else built.program

    def _keep(self, key: Shapes, program: Program | None) -> None:
        """Keep the program of a shape, and let go of the least recently used ones."""
        if program is None:
            return
        plans = [part.memory({}) for part in program.parts()]
        own = _Own(program, sum(plan.peak for plan in plans))
        with self._lock:
            self._own[key] = own
            self._met.pop(key, None)
            while len(self._own) > 1 and (
                len(self._own) > _MOST_PROGRAMS
                or sum(each.bytes for each in self._own.values()) > _MOST_BYTES
            ):
                self._own.popitem(last=False)


def _is_size(size: object) -> bool:
    """Whether something is a size, or the least and the largest of a range."""
    if isinstance(size, int):
        return size >= 0
    if not isinstance(size, tuple | list) or len(size) != 2:
        return False
    low, high = size
    return isinstance(low, int) and isinstance(high, int) and 0 <= low <= high


def _spread(ranges: Mapping[str, Sizes]) -> Iterator[dict[str, int]]:
    """Yield sizes within ranges: all there are, or evenly spread ones, first and last included."""
    counts = [1 if isinstance(size, int) else size[1] - size[0] + 1 for size in ranges.values()]
    wide = sum(count > 1 for count in counts)
    most = _MOST_PLANS
    if wide:
        most = max(2, int(_MOST_PLANS ** (1 / wide)))
    steps = []
    for size, count in zip(ranges.values(), counts, strict=True):
        low = size if isinstance(size, int) else size[0]
        tried = min(count, most)
        steps.append([low + (count - 1) * i // max(1, tried - 1) for i in range(tried)])
    for chosen in itertools.product(*steps):
        yield dict(zip(ranges, chosen, strict=True))


def _whole(
    program: Program, fed: Sequence[int]
) -> tuple[Part, tuple[int, ...], tuple[int, ...]] | None:
    if len(program.steps) != 1:
        return None
    (step,) = program.steps
    slots = [program.inputs[i] for i in fed]
    # (Other values need memory that a frame has none of.)
    if not set(step.inputs) <= set(slots) or set(program.outputs) != set(step.outputs):
        return None
    if len(set(program.outputs)) != len(program.outputs):
        return None
    own = tuple(slots.index(slot) for slot in step.inputs)
    return step.part, own, tuple(step.outputs.index(slot) for slot in program.outputs)
