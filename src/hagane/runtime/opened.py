"""A model that was read and built: what its runs need beside the short way.

A session from the cache does without, until a run asks for what was not kept.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hagane.errors import InvalidArgument
from hagane.graph import files_beside, write
from hagane.graph.types import TensorType
from hagane.graph.walk import all_nodes
from hagane.machine import Lock
from hagane.native.ready.caller import Caller, make_entry
from hagane.ops.values import tensor_to_array
from hagane.runtime.backends.native import NativePart
from hagane.runtime.device import CPU
from hagane.runtime.execute import execute, outputs_of
from hagane.runtime.kept import Fed, Kept
from hagane.runtime.options import GraphOptimizationLevel
from hagane.runtime.pipeline import ReadModel, read
from hagane.runtime.settings import settings_of
from hagane.runtime.shapes.repeats import Past
from hagane.runtime.shapes.specialize import Programs
from hagane.runtime.shapes.views import Stamp, View, is_small, rankless, repeated, view_of, viewed
from hagane.runtime.values.feeds import Input, as_they_are, bind, plain_inputs
from hagane.runtime.values.metadata import (
    largest_value,
    model_metadata,
    output_argument,
    unnamed_sizes,
)
from hagane.runtime.values.value import OrtValue

if TYPE_CHECKING:
    import logging

    import onnx_ir as ir

    from hagane.graph import ModelSource
    from hagane.ops.definition import Array, RuntimeValue
    from hagane.runtime.options import SessionOptions
    from hagane.runtime.port import Observer
    from hagane.runtime.program import Program
    from hagane.runtime.shapes.beside import Beside
    from hagane.runtime.values.needed import Needed

# Builds for inputs as feeds have them, of one session.
_MOST_OTHERS = 8


class Opened:
    """A model that was read, and the programs of its runs.

    Args:
        source: Of the model.
        options: Those of the session.
        logger: Is told of faults that do not end the opening.
        finds_beside: From the names of the inputs that have to be fed, a function that finds a way
            to compile in other processes.

    Attributes:
        inputs: The inputs that have to be fed.
        overridable: Initializers that may be fed too, by name.
        arguments: The declaration of each of both.
        outputs: Those of the outputs.
        metadata: The model's description of itself.
        largest: The node whose output takes most memory.
        programs: By the shapes of inputs.

    Raises:
        ModelError: One of the errors below it names the model's fault.
    """

    def __init__(
        self,
        source: ModelSource,
        options: SessionOptions,
        logger: logging.Logger,
        finds_beside: Callable[[Sequence[str]], Callable[[], Beside | None]],
    ):
        settings = settings_of(options, logger)
        found = read(source, settings)
        graph = found.model.graph
        inputs = [Input(name, type_) for name, type_ in found.inputs.items()]
        self.inputs = [item for item in inputs if item.name not in graph.initializers]
        self.overridable = {item.name: item for item in inputs if item.name in graph.initializers}
        self.arguments = found.arguments
        unnamed = unnamed_sizes(self.arguments.values())
        self.outputs = [
            output_argument(
                value, found.outputs.get(str(value.name)), found.types.invented, unnamed
            )
            for value in graph.outputs
        ]
        self.metadata = model_metadata(found.model)
        self.largest = largest_value(graph, found.types)
        self._beside = files_beside(found.model)
        self._names = [str(value.name) for value in graph.inputs]
        self._needed = self._needs(found)
        self._defaults = {
            str(value.name): value.const_value
            for value in graph.inputs
            if value.const_value is not None
        }
        fed = all(item.name not in graph.initializers for item in inputs)
        self._plain = plain_inputs(inputs) if fed else None
        self._defaulted: dict[str, Array] = {}
        self._stamp = Stamp.of(source, self._beside)
        self._options, self._logger = options, logger
        self._open_ranks, self._shared = rankless(self.inputs), repeated(self.inputs)
        if not (self._stamp.path or self._open_ranks or self.overridable or is_small(source)):
            source, self._shared = b"", []  # large models in memory are not held a second time
        self._varies = bool(self._open_ranks or self.overridable or self._shared)
        self._source = self._stamp.path or source
        self._others: dict[View, tuple[Opened, Caller | None]] = {}
        self._lock = Lock()
        self.programs = Programs(
            found,
            settings,
            logger,
            specialize=options.specialize,
            beside=finds_beside(self.fed),
        )
        if options.optimized_model_filepath:
            basic = options.graph_optimization_level == GraphOptimizationLevel.ORT_ENABLE_BASIC
            rereads = basic and isinstance(source, str | bytes | os.PathLike)
            _write(lightly(read(source, settings)) if rereads else found.model, options)

    @property
    def fed(self) -> list[str]:
        """The names of the inputs that have to be fed."""
        return [item.name for item in self.inputs]

    def entry(self, *, ready: bool = True) -> Caller | None:
        """Return the short way to run the model, if there may be one.

        Args:
            ready: Whether it has the tables of the program for all shapes before the first run,
                which does not ask for a program of its own shape then.
        """
        # Its function must not lead back to the session: the collector does not see references of
        # C functions.
        programs, inputs, every = self.programs, self.inputs, self._names
        defaults, defaulted = self._defaults, self._defaulted
        names, last = self.fed, [argument.name for argument in self.outputs]
        fed = [every.index(name) for name in names]
        if not programs.may_have_frames():
            return None

        def fit(
            arrays: Sequence[Array], owner: object, full: bool, *past: int
        ) -> tuple[Any, ...] | None:
            values = bind(inputs, {}, dict(zip(names, arrays, strict=True)))
            checked = (values[name] for name in names)
            if any(
                isinstance(value, np.ndarray) and value.ndim != array.ndim
                for value, array in zip(checked, arrays, strict=True)
            ):
                return None  # one number for a scalar, as an array: a frame would keep its axes
            given = _arguments(every, values, defaults, defaulted)
            return programs.frame(every, given, fed, owner, full, Past(*past))

        front = programs.ending()
        outputs = last if front is None else [str(name) for name in front.names]
        types = [item.type for item in inputs]
        likely = [
            (type_.dtype.numpy().name, type_.shape)
            for type_ in types
            if isinstance(type_, TensorType) and type_.shape is not None
        ]
        if len(likely) < len(types) or not ready:
            likely = []
        entry = make_entry(names, outputs, fit, OrtValue, CPU, likely=likely)
        if entry is None or front is None or front.ending is None:
            return entry
        made: Caller = front.ending.after(entry, last, names)
        return made

    @staticmethod
    def _needs(found: ReadModel) -> Needed | None:
        if all(node.domain == "" for node in all_nodes(found.model.graph)):
            return None
        from hagane.runtime.values.needed import Needed  # most models have ONNX's operators alone

        return Needed.of(found.model, found.types)

    def run(
        self, feed: Mapping[str, Any], wanted: Sequence[int], observer: Observer | None
    ) -> list[RuntimeValue]:
        """Return some of the outputs, by their positions, for a feed that is checked."""
        other = self._other(feed)
        if other is not None:
            built, entry = other
            if entry is not None and observer is None:
                ready = entry(feed, [self.outputs[i].name for i in wanted])
                if ready is not None:
                    return list(ready)
            return built.run(feed, wanted, observer)
        program, arguments = self._bound(feed)
        if self._needed is not None:
            self._needed.check(arguments)
        results = execute(program, arguments, observe=observer)
        return outputs_of(
            [results[i] for i in wanted], [*arguments, *(value for _, value in program.constants)]
        )

    def runner(self, feed: Mapping[str, Any]) -> Callable[[Observer | None], object]:
        """Return a function that runs the model on a feed again and again, watched."""
        other = self._other(feed)
        if other is not None:
            return other[0].runner(feed)
        program, arguments = self._bound(feed)
        if self._needed is not None:
            self._needed.check(arguments)
        return lambda observe: execute(program, arguments, observe=observe)

    def prepare(self, shapes: Mapping[str, Sequence[int]]) -> None:
        """Give inputs of these shapes kernels of their own."""
        self.programs.prepare(self._names, shapes)

    def kept(self) -> Kept | None:
        """Return the session for the cache, if it is one native part."""
        inputs = []
        for item in self.inputs:
            if not isinstance(item.type, TensorType) or item.type.shape is None:
                return None
            dims = tuple(dim if isinstance(dim, int) else None for dim in item.type.shape)
            inputs.append(Fed(item.name, item.type.dtype.numpy().name, dims))
        found = self.programs.whole()
        if found is None or not isinstance(found.part, NativePart):
            return None
        return Kept(
            found.part.segment,
            found.own,
            found.order,
            tuple(inputs),
            tuple(self.overridable),
            tuple(self.arguments.values()),
            tuple(self.outputs),
            self.metadata,
            self.largest,
            self.programs.specializes,
            self._beside,
        )

    def _other(self, feed: Mapping[str, Any]) -> tuple[Opened, Caller | None] | None:
        """Return the build for inputs as a feed has them, if this one is not.

        Raises:
            InvalidModel: The model's file was changed meanwhile.
            InvalidFeed: The feed does not fit the inputs.
        """
        if not self._varies or not isinstance(feed, Mapping):
            return None
        view = view_of(self._open_ranks, list(self.overridable), self._shared, feed)
        if view is None:
            return None
        found = self._others.get(view)
        if found is None:
            bind(self.inputs, self.overridable, feed)
            with self._lock:
                found = self._others.get(view)
                if found is None:
                    self._stamp.check()
                    model = viewed(self._source, view)
                    built = Opened(model, self._options, self._logger, lambda _: lambda: None)
                    if len(self._others) == _MOST_OTHERS:
                        del self._others[next(iter(self._others))]
                    found = self._others[view] = built, built.entry()
        return found

    def _bound(self, feed: Mapping[str, Any]) -> tuple[Program, list[RuntimeValue]]:
        """Return the program for a feed, and its arguments."""
        given = None if self._plain is None else as_they_are(self._plain, feed)
        if given is not None:
            return self.programs.for_shapes(self._names, given), given
        values = bind(self.inputs, self.overridable, feed)
        arguments = _arguments(self._names, values, self._defaults, self._defaulted)
        return self.programs.for_shapes(self._names, arguments), arguments


def lightly(found: ReadModel) -> ir.Model:
    """Return a model without what computes nothing new: other tools know its operators."""
    from hagane.ops import infer_types  # a session from the cache needs neither
    from hagane.passes import optimize

    optimize(found.model.graph, found.types, rooms=("folding", "removing"))
    infer_types(found.model)
    return found.model


def _write(model: ir.Model, options: SessionOptions) -> None:
    path = options.optimized_model_filepath
    kind = options.entries.get("session.save_model_format", "")
    ort_format = kind.upper() == "ORT" or (not kind and path.lower().endswith(".ort"))
    entry = "session.optimized_model_external_initializers_"
    write(
        model,
        path,
        weights=options.entries.get(f"{entry}file_name", ""),
        smallest=_bytes(options.entries, f"{entry}min_size_in_bytes"),
        ort_format=ort_format,
    )


def _bytes(entries: Mapping[str, str], key: str) -> int:
    text = entries.get(key, "1024")
    if not text.isdecimal():
        raise InvalidArgument(f"{key}: expected a number of bytes, got '{text}'")
    return int(text)


def _arguments(
    names: Sequence[str],
    values: Mapping[str, RuntimeValue],
    defaults: Mapping[str, ir.TensorProtocol],
    known: dict[str, Array],
) -> list[RuntimeValue]:
    """Return a value for each input: the given one, or the initializer of that name.

    Args:
        names: Of the inputs.
        values: By name.
        defaults: The initializers.
        known: Their arrays as far as they were needed; more are added.
    """
    found: list[RuntimeValue] = []
    for name in names:
        if name in values:
            found.append(values[name])
            continue
        array = known.get(name)
        if array is None:
            array = known[name] = tensor_to_array(defaults[name])
        found.append(array)
    return found
