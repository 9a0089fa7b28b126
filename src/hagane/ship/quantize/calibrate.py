"""Feeds through a model, and its values for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx import helper

from hagane.errors import InvalidArgument, InvalidFeed
from hagane.graph.types import from_ir_shape
from hagane.ops.definition import Array
from hagane.ops.inference import declared_type
from hagane.runtime import InferenceSession
from hagane.runtime.values.feeds import Input, bind
from hagane.ship.quantize.graph import Source
from hagane.ship.quantize.thresholds import Observed
from hagane.symbolic import Dim, symbol

Feed = Mapping[str, Any]
# Data that have given so many feeds, or so many bytes, are taken for ones that never end.
_MOST_FEEDS, _MOST_BYTES = 100_000, 16 << 30


def checked_feeds(source: Source, given: Iterable[Feed], where: str) -> tuple[Feed, ...]:
    """Return feeds that a calibration can use.

    Args:
        source: The model.
        given: The result of the user's function.
        where: Its name.

    Raises:
        InvalidArgument: There is none, or no end of them; one is no feed of the model, has NaN, or
            an input never changes.
    """
    inputs, optional = _inputs(source.model)
    feeds = _collected(given, where)
    if not feeds:
        raise InvalidArgument(
            f"{where} gave no feed: calibration needs some, a hundred typical ones for instance"
        )
    seen: dict[str, tuple[float, float]] = {}
    empty = 0
    for number, feed in enumerate(feeds):
        if not isinstance(feed, Mapping):
            raise InvalidArgument(
                f"{where}: expected a feed {{input: array}}, got {type(feed).__name__} as number "
                f"{number}"
            )
        try:
            bind(inputs, optional, feed)
        except InvalidFeed as error:
            raise InvalidArgument(
                f"{where}: feed {number}: {error}; expected a feed as the model itself takes it"
            ) from None
        empty += bool(feed) and not any(np.size(value) for value in feed.values())
        for name, value in feed.items():
            array = np.asarray(value)
            if array.dtype.kind != "f" or not array.size:
                continue
            bad = int(np.size(array) - np.isfinite(array).sum())
            if bad:
                raise InvalidArgument(
                    f"{where}: input '{name}' of feed {number} has {bad} numbers that are NaN or "
                    "infinite: leave such feeds out, or mend how they are made"
                )
            low, high = seen.get(name, (np.inf, -np.inf))
            seen[name] = min(low, float(array.min())), max(high, float(array.max()))
    if empty == len(feeds):
        raise InvalidArgument(
            f"{where}: none of {empty} feeds has a number in it: calibrate with data as the model "
            "will see them"
        )
    constant = [name for name, (low, high) in seen.items() if low == high]
    if seen and len(constant) == len(seen):
        low, _ = seen[constant[0]]
        raise InvalidArgument(
            f"{where}: input '{constant[0]}' is {low:g} everywhere in all {len(feeds)} feeds: "
            "calibrate with data as the model will see them"
        )
    return feeds


def _collected(given: Iterable[Feed], where: str) -> tuple[Feed, ...]:
    try:
        left = iter(given)
    except TypeError:
        raise InvalidArgument(
            f"{where}: expected an iterable of feeds {{input: array}}, got {type(given).__name__}"
        ) from None
    found: list[Feed] = []
    held = 0
    for feed in left:
        found.append(feed)
        if isinstance(feed, Mapping):
            held += sum(getattr(value, "nbytes", 0) for value in feed.values())
        if len(found) > _MOST_FEEDS or held > _MOST_BYTES:
            raise InvalidArgument(
                f"{where} gave {len(found)} feeds of {held >> 20} MiB and more: expected some "
                "hundreds; an iterator that begins again, as those of training do, needs "
                "repeat=False"
            )
    return tuple(found)


def _inputs(model: onnx.ModelProto) -> tuple[list[Input], dict[str, Input]]:
    """Return the inputs that have to be fed, and the optional ones."""
    constant = {item.name for item in model.graph.initializer}
    bare = onnx.GraphProto(name="inputs")
    bare.input.extend(model.graph.input)
    graph = ir.serde.deserialize_graph(bare)
    found = {}
    for value in graph.inputs:
        name, dims = str(value.name), from_ir_shape(value.shape)
        shape: tuple[Dim, ...] | None = None
        if dims is not None:
            shape = tuple(symbol(f"{name}_{i}") if d is None else d for i, d in enumerate(dims))
        found[name] = Input(name, declared_type(value.type, shape))
    needed = [item for name, item in found.items() if name not in constant]
    return needed, {name: item for name, item in found.items() if name in constant}


def observe(
    source: Source, names: Sequence[str], feeds: Sequence[Feed], *, counted: bool
) -> dict[str, Observed]:
    """Return the observations of some values of a model.

    Args:
        source: The model.
        names: Of values.
        feeds: Of the model.
        counted: Whether histograms are wanted; the feeds go through the model once more.

    Raises:
        InvalidArgument: A value is NaN or infinite.
    """
    found = {name: Observed() for name in names}
    for number, values in enumerate(values_of(source, names, feeds)):
        for name, array in values.items():
            if not np.isfinite(array).all():
                raise InvalidArgument(
                    f"'{name}' is NaN or infinite for feed {number}: leave the feed out, or mend "
                    "the model"
                )
            found[name].note_range(array)
    for values in values_of(source, names, feeds if counted else ()):
        for name, array in values.items():
            found[name].note_counts(array)
    return found


def values_of(
    source: Source, names: Sequence[str], feeds: Sequence[Feed]
) -> Iterator[dict[str, Array]]:
    """Yield some values of a model for each feed."""
    inputs = {value.name for value in source.model.graph.input}
    computed = [name for name in names if name not in inputs]
    if not feeds:
        return
    session = InferenceSession(_with_outputs(source.model, computed)) if computed else None
    for feed in feeds:
        results = session.run(computed, feed) if session is not None else []
        given = {name: np.asarray(feed[name]) for name in names if name in inputs}
        yield given | dict(zip(computed, results, strict=True))


def _with_outputs(model: onnx.ModelProto, names: Sequence[str]) -> onnx.ModelProto:
    """Return a copy of a model that has some values as outputs too."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    known = {value.name for value in made.graph.output}
    for name in names:
        if name not in known:
            made.graph.output.append(
                helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)
            )
    return made
