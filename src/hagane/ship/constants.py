"""Inputs that a build has as constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir

from hagane.errors import InvalidArgument
from hagane.graph import ModelSource, load
from hagane.ops.definition import Array


def parse_constants(texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Read ``INPUT=16000`` settings; several numbers are separated by commas.

    Raises:
        InvalidArgument: One is malformed.
    """
    found: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, equals, value = text.rpartition("=")
        numbers = tuple(part.strip() for part in value.split(",") if part.strip())
        if not equals or not name or not numbers:
            raise InvalidArgument(f"--constant '{text}': expected INPUT=16000")
        if name in found:
            raise InvalidArgument(f"--constant {name}: the input is given twice")
        found[name] = numbers
    return found


def with_constants(source: ModelSource, constants: Mapping[str, Sequence[str]]) -> ModelSource:
    """Return a model some of whose inputs are initializers; the source itself if none is.

    Args:
        source: An ONNX file, or a model.
        constants: Numbers by input, in the order of its elements; one fills an input of any shape.

    Raises:
        InvalidArgument: An input is unknown, or the numbers do not fit it.
        ModelError: The file cannot be read.
    """
    if not constants:
        return source
    model = load(source)
    inputs = {str(value.name): value for value in model.graph.inputs}
    for name, numbers in constants.items():
        value = inputs.get(name)
        if value is None:
            raise InvalidArgument(
                f"--constant {name}: the model has no such input; it has: "
                f"{', '.join(inputs) or 'none'}"
            )
        value.const_value = ir.tensor(_array(name, value, numbers), name=name)
        model.graph.inputs.remove(value)
        model.graph.register_initializer(value)
    return model


def _array(name: str, value: ir.Value, numbers: Sequence[str]) -> Array:
    dims = None if value.shape is None else list(value.shape)
    if dims is None or value.dtype is None or not all(isinstance(dim, int) for dim in dims):
        raise InvalidArgument(
            f"--constant {name}: expected an input whose sizes are numbers, got "
            f"{'no shape' if dims is None else list(map(str, dims))}"
        )
    shape = tuple(int(str(dim)) for dim in dims)
    try:
        array = np.array([float(text) for text in numbers])
        exact = np.array([int(text) for text in numbers]) if value.dtype.is_integer() else array
        made = exact.astype(value.dtype.numpy())
        return np.full(shape, made[0]) if made.size == 1 else made.reshape(shape)
    except ValueError:
        raise InvalidArgument(
            f"--constant {name}: expected {value.dtype.name} numbers for shape {list(shape)}, got "
            f"{','.join(numbers)}"
        ) from None
