"""Inputs and outputs of a build, as header, manifest and tables describe them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hagane.errors import UnsupportedModel
from hagane.graph.types import TensorType
from hagane.ship.manifest import TENSOR_TYPES, Argument
from hagane.ship.program import RangeProgram
from hagane.ship.ranges import MOST_AXES, InputRange, bounds, name_ranges


def input_argument(found: InputRange) -> Argument:
    """Return the description of an input.

    Raises:
        UnsupportedModel: Its elements are no numbers.
    """
    dtype = str(found.dtype.numpy().name) if found.dtype.value in TENSOR_TYPES.values() else ""
    if dtype not in TENSOR_TYPES:
        raise UnsupportedModel(
            [f"input '{found.name}' has elements of {found.dtype.name}: a build takes numbers"]
        )
    shape = tuple(
        axis.least if axis is not None and axis.fixed else str(dim)
        for dim, axis in zip(found.dims, found.axes, strict=True)
    )
    return Argument(found.name, TENSOR_TYPES[dtype], dtype, shape, found.axes)


def output_arguments(programs: Sequence[RangeProgram]) -> tuple[Argument, ...]:
    """Return the descriptions of the outputs, with the sizes that they have in any program.

    Raises:
        UnsupportedModel: One is no tensor of numbers of known rank.
    """
    found: list[Argument] = []
    for program in programs:
        names = name_ranges(program.inputs)
        for i, value in enumerate(program.built.model.graph.outputs):
            type_ = program.built.types.types.get(value)
            if not isinstance(type_, TensorType) or type_.shape is None:
                raise UnsupportedModel(
                    [f"output '{value.name}' is {type_}: a build gives tensors of known rank"]
                )
            if type_.dtype.value not in TENSOR_TYPES.values() or len(type_.shape) > MOST_AXES:
                raise UnsupportedModel(
                    [f"output '{value.name}' is {type_}: a build cannot hold it"]
                )
            axes = tuple(bounds(type_.shape, names))
            shape = tuple(dim if isinstance(dim, int) else str(dim) for dim in type_.shape)
            made = Argument(
                str(value.name), type_.dtype.value, str(type_.dtype.numpy().name), shape, axes
            )
            if i >= len(found):
                found.append(made)
                continue
            joined = tuple(
                None
                if a is None or b is None
                else replace(a, least=min(a.least, b.least), most=max(a.most, b.most))
                for a, b in zip(found[i].axes, axes, strict=True)
            )
            shape = tuple(
                a if a == b else f"size_{k}"
                for k, (a, b) in enumerate(zip(found[i].shape, shape, strict=True))
            )
            found[i] = replace(found[i], shape=shape, axes=joined)
    return tuple(found)
