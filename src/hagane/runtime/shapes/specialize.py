"""The programs of a session: one for all shapes, and some for shapes that come again and again.

The program for all shapes is compiled when the session is made, and takes any of them. A program
for one shape has numbers in the place of its sizes and may be some per cent faster, or more where
the forms of kernels depend on sizes. It is built beside the runs, which go on meanwhile: in another
process (``beside.py``), or in a thread where that cannot be.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakMethod

import numpy as np
import onnx_ir as ir

from hagane.errors import InvalidArgument
from hagane.graph.types import TensorType
from hagane.graph.walk import all_nodes
from hagane.native.run.loaded import Loaded
from hagane.ops import infer_types
from hagane.ops.definition import RuntimeValue
from hagane.runtime.backends.native import NativePart
from hagane.runtime.execute import Front, front_of, whole_of
from hagane.runtime.pipeline import Built, ReadModel, build
from hagane.runtime.port import Memory
from hagane.runtime.program import REFERENCE, Program
from hagane.runtime.settings import Settings
from hagane.runtime.shapes.repeats import Past, Repeats, Shapes
from hagane.symbolic import Expr, line_in, symbols_of

if TYPE_CHECKING:
    from hagane.runtime.shapes.beside import Beside

# A size, or the least and the largest of a range.
Sizes = int | tuple[int, int]

# Sizes that a plan of memory is made for, of ranges.
_MOST_PLANS = 256
# Operators whose kernels are faster, or of another form, where sizes are numbers.
_BY_SIZE = frozenset(
    {
        *("AveragePool", "Conv", "ConvInteger", "ConvTranspose", "DeformConv", "GRU", "LSTM"),
        *("MaxPool", "QLinearConv", "RNN", "Resize"),
    }
)


class Programs:
    """Builds a model for all shapes, and again for shapes that come again and again.

    Args:
        read: The model; changed in place.
        settings: Those of the pipeline.
        logger: Where a notice goes if there is no compiler.
        specialize: Whether shapes get programs of their own.
        beside: Finds a way to make these in other processes; returns None if there is none.
    """

    def __init__(
        self,
        read: ReadModel,
        settings: Settings,
        logger: logging.Logger,
        *,
        specialize: bool = True,
        beside: Callable[[], Beside | None] = lambda: None,
    ):
        self._model, self._types = read.model, read.types
        self._settings, self._logger = settings, logger
        self._beside = beside
        self.refused: dict[ir.Node, str] = {}
        # Whether backends compute parts; without a compiler they do not.
        self.native = bool(settings.backends)
        self.general: Program = self._build_general()
        self._specializes = specialize and self.native and self._has_open_sizes()
        self.repeats: Repeats[Program] = Repeats(
            _weakly(WeakMethod(self._build_beside)), logger, self._specializes
        )

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
        past: Past,
    ) -> tuple[Any, ...] | None:
        """Return the short way for arguments of some shapes, if the model is one part that has one.

        Args:
            names: The graph's inputs.
            arguments: A value for each.
            fed: Which of them are given in each run.
            owner: Of a short way whose memory may be taken, or None.
            full: Whether it must be.
            past: The runs of these shapes by themselves since the last time, a coming one included.
        """
        program = self.for_shapes(names, arguments, past)
        found = front_of(program, fed)
        arrays = [value for i in fed if isinstance(value := arguments[i], np.ndarray)]
        if found is None or len(arrays) != len(fed):
            return None
        ending = self.ending()
        order = found.order
        if ending is not None:
            try:
                order = tuple(found.order[found.names.index(name)] for name in ending.names)
            except ValueError:
                return None  # a part for one size may end elsewhere
        elif found.ending is not None:
            return None
        lease = 0
        if self._specializes:
            shapes = (each.shape for each in arguments if isinstance(each, np.ndarray))
            lease = self.repeats.lease(tuple(shapes))
        general = program is self.general
        return found.part.frame(arrays, found.own, order, owner, full, lease, general=general)

    @property
    def specializes(self) -> bool:
        """Whether shapes that come again and again get programs of their own."""
        return self._specializes

    def whole(self) -> Front | None:
        """Return the part that is the model for all shapes, if there is one."""
        return whole_of(self.general, self._fed()) if self.native else None

    def may_have_frames(self) -> bool:
        """Whether there may be a short way for some shapes, apart from the ending."""
        if not self.native or not self.general.steps:
            return False
        first, *rest = self.general.steps
        if not rest and (first.part.backend != REFERENCE.name or self._specializes):
            return True
        return self.ending() is not None

    def ending(self) -> Front | None:
        """Return the part that the program for all shapes begins with, if an ending follows it."""
        found = front_of(self.general, self._fed())
        return None if found is None or found.ending is None else found

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
                for name in symbols_of(dim):
                    if (line := line_in(dim, name)) is not None:
                        ranges.setdefault(name, _told(size, *line))
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

    def for_shapes(
        self, names: Sequence[str], arguments: Sequence[RuntimeValue], past: Past | None = None
    ) -> Program:
        """Return the program for arguments of these shapes.

        Args:
            names: The graph's inputs.
            arguments: A value for each.
            past: The runs of this shape since the last time, the coming one included.
        """
        if not self._specializes:
            return self.general
        arrays = [value for value in arguments if isinstance(value, np.ndarray)]
        if len(arrays) != len(arguments):
            return self.general
        key = tuple(array.shape for array in arrays)
        return self.repeats.find(key, past or Past(runs=1)) or self.general

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
        if self._specializes and key not in self.repeats:
            made = self._build_own(key)
            if made is not None:
                self.repeats.keep(key, *made)

    def wait(self) -> None:
        """Wait until no program is being built beside the runs."""
        self.repeats.wait()

    def _build_beside(self, key: Shapes) -> tuple[Program, int] | None:
        beside, whole = self._beside(), self.whole()
        if beside is None or whole is None or not isinstance(whole.part, NativePart):
            return self._build_own(key)
        names = [str(value.name) for value in self._model.graph.inputs]
        made = beside.make(dict(zip(names, key, strict=True)), whole.part.segment.store)
        if made is None:
            return None
        return self._program_of(made.loaded, made.own, made.order), made.bytes

    def _fed(self) -> list[int]:
        """Return which inputs are given in each run."""
        initializers = self._model.graph.initializers
        inputs = enumerate(self._model.graph.inputs)
        return [i for i, value in inputs if value.name not in initializers]

    def _program_of(self, loaded: Loaded, own: Sequence[int], order: Sequence[int]) -> Program:
        """Return the program that is one part, which other processes compiled."""
        (step,) = self.general.steps
        fed = [self.general.inputs[i] for i in self._fed()]
        outputs = [-1] * len(loaded.outputs)
        for slot, which in zip(self.general.outputs, order, strict=True):
            outputs[which] = slot
        return replace(
            self.general,
            steps=(
                replace(
                    step,
                    part=NativePart.of(step.part.nodes, loaded),
                    inputs=tuple(fed[i] for i in own),
                    outputs=tuple(outputs),
                ),
            ),
        )

    def _build_own(self, key: Shapes) -> tuple[Program, int] | None:
        names = [str(value.name) for value in self._model.graph.inputs]
        model = self._model.clone()
        types = infer_types(model, shapes=dict(zip(names, key, strict=True)), lenient=True)
        built: Built = build(model, types, self._settings)
        if built.obstacle is not None:
            return None
        return built.program, sum(part.memory({}).peak for part in built.program.parts())


def _is_size(size: object) -> bool:
    """Whether something is a size, or the least and the largest of a range."""
    if isinstance(size, int):
        return size >= 0
    if not isinstance(size, tuple | list) or len(size) != 2:
        return False
    low, high = size
    return isinstance(low, int) and isinstance(high, int) and 0 <= low <= high


def _told(size: Sizes, factor: int, distance: int) -> Sizes:
    """Return the name's part in a size, or in the least and the largest."""
    if isinstance(size, int):
        return (size - distance) // factor
    least, most = size
    return (least - distance) // factor, (most - distance) // factor


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


_Make: TypeAlias = Callable[[Shapes], tuple[Program, int] | None]


def _weakly(method: WeakMethod[_Make]) -> _Make:
    """Return a method as a function that does not keep its object."""

    def call(shapes: Shapes) -> tuple[Program, int] | None:
        found = method()
        return None if found is None else found(shapes)

    return call
