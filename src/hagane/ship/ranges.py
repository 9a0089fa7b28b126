"""The sizes of inputs that a build is for."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from hagane.errors import InvalidArgument, UnsupportedModel
from hagane.graph.types import TensorType
from hagane.ops.inference import GraphTypes
from hagane.symbolic import Dim, Expr, line_in, number_of, symbol, symbols_of

# The largest size that an axis is built for where nobody says.
LARGEST = 65536
MOST_AXES = 16


@dataclass(frozen=True, slots=True)
class Axis:
    """The sizes of one axis of an input, both ends included."""

    least: int
    most: int

    @property
    def fixed(self) -> bool:
        """Whether there is one size."""
        return self.least == self.most


@dataclass(frozen=True, slots=True)
class InputRange:
    """An input of a model.

    Attributes:
        name: Of the input.
        dtype: Its element type.
        dims: Its sizes, as the model declares them.
        axes: The range of each; None for one that nobody limited.
    """

    name: str
    dtype: ir.DataType
    dims: tuple[Dim, ...]
    axes: tuple[Axis | None, ...]

    @property
    def shape(self) -> tuple[Dim, ...]:
        """The sizes that the program is made for: numbers where there is one alone."""
        return tuple(
            axis.least if axis is not None and axis.fixed else dim
            for dim, axis in zip(self.dims, self.axes, strict=True)
        )


def parse_ranges(texts: Sequence[str]) -> dict[str, tuple[Axis, ...]]:
    """Read ``INPUT=1..8,3,224,32..640`` settings.

    Raises:
        InvalidArgument: One is malformed.
    """
    found: dict[str, tuple[Axis, ...]] = {}
    for text in texts:
        name, equals, value = text.rpartition("=")
        if not equals or not name:
            raise InvalidArgument(f"--shape '{text}': expected INPUT=1..8,3,224,224")
        if name in found:
            raise InvalidArgument(f"--shape {name}: the input is given twice")
        found[name] = tuple(_axis(name, part) for part in value.split(",") if value.strip())
    return found


def _axis(name: str, text: str) -> Axis:
    low, dots, high = text.strip().partition("..")
    try:
        least = int(low)
        axis = Axis(least, int(high) if dots else least)
    except ValueError:
        raise InvalidArgument(
            f"--shape {name}: expected sizes as 3 or 1..8, separated by commas, got '{text}'"
        ) from None
    if not 0 <= axis.least <= axis.most:
        raise InvalidArgument(
            f"--shape {name}: expected a range from a smaller to a larger size, got '{text}'"
        )
    return axis


def input_ranges(
    graph: ir.Graph, types: GraphTypes, given: Mapping[str, Sequence[Axis]]
) -> tuple[InputRange, ...]:
    """Return the inputs of a model with the ranges that a caller gave.

    Args:
        graph: Of the model; initializers among its inputs are constants.
        types: Of its values.
        given: Ranges by input.

    Raises:
        InvalidArgument: A name is unknown, or a range does not fit the model.
        UnsupportedModel: An input is no tensor.
    """
    inputs = [value for value in graph.inputs if str(value.name) not in graph.initializers]
    names = [str(value.name) for value in inputs]
    for name in given:
        if name not in names:
            raise InvalidArgument(
                f"--shape {name}: the model has no such input; it has: {', '.join(names) or 'none'}"
            )
    found = []
    for value in inputs:
        name, type_ = str(value.name), types.types.get(value)
        if not isinstance(type_, TensorType):
            raise UnsupportedModel([f"input '{name}' is {type_}: a build takes tensors"])
        axes = given.get(name)
        dims = type_.shape
        if dims is None and axes is None:
            raise InvalidArgument(
                f"input '{name}' has no shape in the model: give one as --shape {name}=1..8,3,224"
            )
        if dims is None:
            assert axes is not None
            dims = tuple(symbol(f"{name}_axis_{i}") for i in range(len(axes)))
        if len(dims) > MOST_AXES:
            raise UnsupportedModel([f"input '{name}' has {len(dims)} axes, {MOST_AXES} at most"])
        found.append(InputRange(name, type_.dtype, dims, _ranges(name, dims, axes)))
    return _joined(found)


def _ranges(name: str, dims: Sequence[Dim], axes: Sequence[Axis] | None) -> tuple[Axis | None, ...]:
    if axes is not None and len(axes) != len(dims):
        raise InvalidArgument(
            f"--shape {name}: expected {len(dims)} sizes for [{', '.join(map(str, dims))}], "
            f"got {len(axes)}"
        )
    ranges: list[Axis | None] = []
    for i, dim in enumerate(dims):
        axis = None if axes is None else axes[i]
        if isinstance(dim, int):
            if axis is not None and (axis.least, axis.most) != (dim, dim):
                raise InvalidArgument(
                    f"--shape {name}: axis {i} is {dim} in the model, got "
                    f"{axis.least if axis.fixed else f'{axis.least}..{axis.most}'}"
                )
            axis = Axis(dim, dim)
        ranges.append(axis)
    return tuple(ranges)


def _joined(inputs: Sequence[InputRange]) -> tuple[InputRange, ...]:
    """Return the inputs, axes of one name with one range."""
    ranges: dict[Dim, Axis] = {}
    for each in inputs:
        for dim, axis in zip(each.dims, each.axes, strict=True):
            if axis is None or isinstance(dim, int):
                continue
            old = ranges.get(dim, axis)
            both = Axis(max(old.least, axis.least), min(old.most, axis.most))
            if both.least > both.most:
                raise InvalidArgument(
                    f"--shape {each.name}: '{dim}' is {axis.least}..{axis.most} here and "
                    f"{old.least}..{old.most} in another input; both are one size in the model"
                )
            ranges[dim] = both
    return tuple(
        InputRange(
            each.name,
            each.dtype,
            each.dims,
            tuple(
                axis if isinstance(dim, int) else ranges.get(dim)
                for dim, axis in zip(each.dims, each.axes, strict=True)
            ),
        )
        for each in inputs
    )


def with_most(inputs: Sequence[InputRange], most: int) -> tuple[InputRange, ...]:
    """Return the inputs, open axes from 1 to ``most``."""
    return tuple(
        InputRange(
            each.name,
            each.dtype,
            each.dims,
            tuple(Axis(1, most) if axis is None else axis for axis in each.axes),
        )
        for each in inputs
    )


def open_axes(inputs: Sequence[InputRange]) -> list[str]:
    """Return the axes that nobody limited, as texts."""
    return [
        f"{each.name} axis {i} ({dim})"
        for each in inputs
        for i, (dim, axis) in enumerate(zip(each.dims, each.axes, strict=True))
        if axis is None
    ]


def name_ranges(inputs: Sequence[InputRange]) -> dict[str, Axis]:
    """Return the ranges of the named sizes that inputs tell."""
    found: dict[str, Axis] = {}
    for each in inputs:
        for dim, axis in zip(each.dims, each.axes, strict=True):
            for name in symbols_of(dim):
                line = line_in(dim, name)
                if axis is not None and line is not None:
                    factor, distance = line
                    least, most = ((size - distance) // factor for size in (axis.least, axis.most))
                    found[name] = Axis(max(0, least), most)
    return found


def all_shapes(inputs: Sequence[InputRange]) -> Iterator[tuple[InputRange, ...]]:
    """Yield the inputs with one size for each axis, for all combinations."""
    ranges = dict.fromkeys(
        (dim, axis)
        for each in inputs
        for dim, axis in zip(each.dims, each.axes, strict=True)
        if isinstance(dim, Expr) and axis is not None
    )
    choices = [range(axis.least, axis.most + 1) for _, axis in ranges]
    for sizes in itertools.product(*choices):
        chosen: dict[Dim, Axis | None] = {
            dim: Axis(size, size) for (dim, _), size in zip(ranges, sizes, strict=True)
        }
        yield tuple(
            InputRange(
                each.name,
                each.dtype,
                each.dims,
                tuple(chosen.get(d, a) for d, a in zip(each.dims, each.axes, strict=True)),
            )
            for each in inputs
        )


def count_shapes(inputs: Sequence[InputRange]) -> int:
    """Return how many combinations of sizes there are."""
    ranges = {
        dim: axis.most - axis.least + 1
        for each in inputs
        for dim, axis in zip(each.dims, each.axes, strict=True)
        if isinstance(dim, Expr) and axis is not None
    }
    count = 1
    for size in ranges.values():
        count *= size
    return count


def bounds(dims: Sequence[Dim], names: Mapping[str, Axis]) -> list[Axis | None]:
    """Return the sizes that expressions may have; None where a run tells alone.

    The ends of ranges are tried in all combinations, of many names the two extreme ones.
    """
    found: list[Axis | None] = []
    for dim in dims:
        used = sorted(symbols_of(dim))
        if not all(name in names for name in used):
            found.append(None)
            continue
        ends = [(names[name].least, names[name].most) for name in used]
        corners = itertools.product(*ends) if len(ends) <= 8 else zip(*ends, strict=True)
        sizes = [number_of(dim, dict(zip(used, corner, strict=True))) for corner in corners]
        found.append(Axis(max(0, min(sizes)), max(sizes)))
    return found
