"""Check a caller's feeds against the model's inputs."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.errors import InvalidArgument, InvalidFeed
from hagane.graph.types import (
    MapType,
    OptionalType,
    SequenceType,
    TensorType,
    Type,
    dtype_name,
)
from hagane.ops.definition import Array, RuntimeValue
from hagane.ops.schema import tensor_dtype
from hagane.ops.values import array_dtype, strings, texts
from hagane.runtime.values.described import NodeArg
from hagane.runtime.values.value import OrtValue

# Kinds of elements of arrays that kernels take as they are.
_NUMBERS = "fiub"


@dataclass(frozen=True, slots=True)
class Input:
    """An input of a model: its name and declared type."""

    name: str
    type: Type | None


@dataclass(frozen=True, slots=True)
class PlainInput:
    """An input of numbers or texts, or a list of such: its name and the arrays that it takes.

    Attributes:
        name: Of the input.
        dtype: Of arrays, in native byte order.
        rank: How many axes they have; None for any number.
        sizes: Those that are numbers, with their axes.
        listed: Whether it is a list of arrays.
    """

    name: str
    dtype: np.dtype[Any]
    rank: int | None
    sizes: tuple[tuple[int, int], ...]
    listed: bool = False


def plain_inputs(inputs: Sequence[Input]) -> Sequence[PlainInput] | None:
    """Return inputs if all are tensors of numbers or texts of known rank, or lists of any."""
    found = []
    for item in inputs:
        listed = isinstance(item.type, SequenceType)
        type_ = item.type.element if isinstance(item.type, SequenceType) else item.type
        if not isinstance(type_, TensorType) or (type_.shape is None and not listed):
            return None
        texts = type_.dtype == ir.DataType.STRING
        dtype = np.dtype(object) if texts else type_.dtype.numpy()
        if dtype.kind not in _NUMBERS and not texts:
            return None
        shape = type_.shape
        sizes = tuple((axis, dim) for axis, dim in enumerate(shape or ()) if isinstance(dim, int))
        rank = None if shape is None else len(shape)
        found.append(PlainInput(item.name, dtype, rank, sizes, listed))
    return found


def as_they_are(inputs: Sequence[PlainInput], feed: object) -> list[RuntimeValue] | None:
    """Return the arrays of a feed if they need no conversion; None if ``bind`` must look at it."""
    if type(feed) is not dict or len(feed) != len(inputs):
        return None
    values: list[RuntimeValue] = []
    for item in inputs:
        value = feed.get(item.name)
        if not item.listed:
            if not _is_plain(item, value):
                return None
            values.append(value)
            continue
        if type(value) is not list:
            return None
        for each in value:
            if not _is_plain(item, each):
                return None
        values.append(value.copy())
    return values


def _is_plain(item: PlainInput, value: object) -> bool:
    """Whether a value is an array that an input takes as it is."""
    if type(value) is not np.ndarray:
        return False
    # (Arrays from other processes have a type of their own that equals it.)
    if value.dtype is not item.dtype and value.dtype != item.dtype:
        return False
    if value.ndim != item.rank and item.rank is not None:
        return False
    for axis, size in item.sizes:
        if value.shape[axis] != size:
            return False
    return item.dtype.kind != "O" or _are_texts(value)


def bind(
    inputs: Sequence[Input], optional: Mapping[str, Input], feed: Mapping[str, Any]
) -> dict[str, RuntimeValue]:
    """Return the values of ``feed``, each checked and in native byte order.

    Args:
        inputs: The inputs that have to be fed.
        optional: The inputs that may be fed: initializers that are declared as inputs too.
        feed: Values by name.

    Raises:
        InvalidFeed: A name is unknown or missing, or a value does not fit; the message says which.
    """
    if not isinstance(feed, Mapping):
        raise InvalidFeed(
            f"expected the feed to map input names to arrays, got {type(feed).__name__}"
        )
    if len(feed) == len(inputs) and all(item.name in feed for item in inputs):
        return {item.name: _check(item.name, item.type, feed[item.name]) for item in inputs}
    known = {item.name: item for item in inputs} | dict(optional)
    unknown = [str(name) for name in feed if name not in known]
    if unknown:
        raise InvalidFeed(
            f"unknown input {', '.join(map(repr, unknown))}; the model takes: "
            f"{', '.join(f'{item.name}: {item.type}' for item in inputs) or 'nothing'}"
        )
    absent = [item for item in inputs if item.name not in feed]
    missing = [item for item in absent if not isinstance(item.type, OptionalType)]
    if missing:
        raise InvalidFeed(
            "missing input " + ", ".join(f"{item.name!r} ({item.type})" for item in missing)
        )
    needed = {item.name for item in inputs}
    given = {
        name: check(known[name], value)
        for name, value in feed.items()
        if value is not None or name in needed  # None leaves an initializer as it is
    }
    return given | {item.name: None for item in absent}


def check(item: Input, value: Any) -> RuntimeValue:
    """Return ``value`` as the kernels take it, or raise ``InvalidFeed``."""
    return _check(item.name, item.type, value)


def _check(name: str, expected: Type | None, value: Any) -> RuntimeValue:
    if type(value) is np.ndarray and type(expected) is TensorType:
        dtype = value.dtype
        if dtype.kind in _NUMBERS and dtype.isnative:
            plain = _scalar(expected, value)
            _check_tensor(name, expected, plain)
            return plain
    if isinstance(value, OrtValue):
        value = value.content
    if isinstance(expected, OptionalType):
        return None if value is None else _check(name, expected.element, value)
    if isinstance(expected, SequenceType):
        if not isinstance(value, list | tuple):
            raise InvalidFeed(f"input '{name}': expected a list ({expected}), got {_kind(value)}")
        return [_check(f"{name}[{i}]", expected.element, v) for i, v in enumerate(value)]
    if isinstance(expected, MapType):
        return _map(name, expected, value)
    if expected is None and isinstance(value, dict | list):
        return value  # a type that graphs cannot declare, such as a map: kernels check it
    if value is None:
        raise InvalidFeed(f"input '{name}': expected {expected}, got None")
    array = _as_array(name, expected, value)
    if isinstance(expected, TensorType):
        array = _scalar(expected, array)
        _check_tensor(name, expected, array)
    return array


def _map(name: str, expected: MapType, value: Any) -> dict[Any, Any]:
    """Return a map with keys and values of its type."""
    if not isinstance(value, Mapping):
        raise InvalidFeed(f"input '{name}': expected a dict ({expected}), got {_kind(value)}")
    key = _element(expected.key)
    item = _element(expected.value.dtype) if isinstance(expected.value, TensorType) else None
    try:
        return {key(k): v if item is None else item(v) for k, v in value.items()}
    except (TypeError, ValueError) as error:
        raise InvalidFeed(f"input '{name}': expected a dict ({expected}), got {error}") from error


def _element(dtype: ir.DataType) -> Callable[[Any], Any]:
    """Return a function that gives a key or value of a map the type of its kind."""
    if dtype != ir.DataType.STRING:
        made: Callable[[Any], Any] = dtype.numpy().type
        whole = dtype.is_integer()
        return lambda value: made(operator.index(value) if whole else _number(value))

    def text(value: Any) -> str:
        if not isinstance(value, str):
            raise TypeError(f"{value!r} ({type(value).__name__}) in the place of a text")
        return value

    return text


def _number(value: Any) -> Any:
    if isinstance(value, str | bytes):
        raise TypeError(f"{value!r} ({type(value).__name__}) in the place of a number")
    return value


def _scalar(expected: TensorType, array: Array) -> Array:
    """Return one number without axes where a scalar is expected: many models are fed [16000]."""
    return array.reshape(()) if expected.shape == () and array.size == 1 else array


def _kind(value: Any) -> str:
    return f"an array of {value.dtype}" if isinstance(value, np.ndarray) else type(value).__name__


def _as_array(name: str, expected: Type | None, value: Any) -> Array:
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
    else:
        if not hasattr(value, "__array__") and not isinstance(
            value, list | tuple | int | float | bool | str
        ):
            raise InvalidFeed(
                f"input '{name}': expected a NumPy array ({expected}), got {_kind(value)}"
            )
        try:
            array = np.asarray(value)
            if (
                isinstance(expected, TensorType)
                and expected.dtype != ir.DataType.STRING
                and not hasattr(value, "__array__")
                and array.dtype.kind in "iufb"
            ):
                array = np.asarray(value, dtype=expected.dtype.numpy())
        except (ValueError, OverflowError, TypeError) as error:
            raise InvalidFeed(
                f"input '{name}': cannot make {expected} of the given {_kind(value)}: {error}"
            ) from error
    if array.dtype.kind in "UST":  # T: texts of any length, since NumPy 2
        text = [v.decode() if isinstance(v, bytes) else str(v) for v in array.ravel()]
        return strings(text).reshape(array.shape)
    if array.dtype.kind not in "VO" and not array.dtype.isnative:
        return array.astype(array.dtype.newbyteorder("="))
    return array


def _check_tensor(name: str, expected: TensorType, array: Array) -> None:
    found = array_dtype(array)
    if found != expected.dtype:
        kind = str(array.dtype) if found == ir.DataType.UNDEFINED else _type_of(array)
        raise InvalidFeed(
            f"input '{name}': expected {expected}, got {kind}; convert it first, for instance "
            f"with .astype('{dtype_name(expected.dtype)}')"
        )
    if found == ir.DataType.STRING and not _are_texts(array):
        raise InvalidFeed(f"input '{name}': expected {expected}, got objects that are not str")
    if expected.shape is None:
        return
    if len(expected.shape) != array.ndim:
        raise InvalidFeed(
            f"input '{name}': expected {expected} ({len(expected.shape)} axes), "
            f"got {_type_of(array)} ({array.ndim} axes)"
        )
    for axis, (dim, size) in enumerate(zip(expected.shape, array.shape, strict=True)):
        if isinstance(dim, int) and dim != size:
            raise InvalidFeed(
                f"input '{name}': expected {expected}, got {_type_of(array)}: axis {axis} has "
                f"size {size}, expected {dim}"
            )


def _are_texts(array: Array) -> bool:
    module = texts()
    if module is not None:
        return bool(module.are_texts(array))
    return all(issubclass(kind, str) for kind in set(map(type, array.ravel().tolist())))


def _type_of(array: Array) -> str:
    return f"{dtype_name(array_dtype(array))}[{', '.join(map(str, array.shape))}]"


def check_sizes(inputs: Sequence[NodeArg], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse measuring a model some of whose sizes nobody chose, and shapes of inputs it lacks.

    Raises:
        InvalidArgument: An input has open sizes that ``shapes`` leaves so; the text names all.
    """
    unknown = shapes.keys() - {item.name for item in inputs}
    if unknown:
        raise InvalidArgument(
            f"--shape: the model has no input {', '.join(map(repr, sorted(unknown)))}; it has: "
            f"{', '.join(item.name for item in inputs)}"
        )
    asked = [
        f"--shape {item.name}={','.join('?' if dim is None else str(dim) for dim in item.shape)}"
        for item in inputs
        if item.name not in shapes and any(not isinstance(dim, int) for dim in item.shape)
    ]
    if asked:
        raise InvalidArgument(
            "the model leaves sizes open, and its time depends on them; give each a number: "
            f"{' '.join(asked)}"
        )


def any_feed(inputs: Sequence[NodeArg], shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Array]:
    """Return random content for every input, the same each time.

    Raises:
        InvalidArgument: A size that the model leaves open is not given; the text names all.
    """
    asked = [
        f"'{item.name}': ({', '.join('?' if dim is None else str(dim) for dim in item.shape)})"
        for item in inputs
        if item.name not in shapes and any(not isinstance(dim, int) for dim in item.shape)
    ]
    if asked:
        raise InvalidArgument(
            "the model leaves sizes open, and its time depends on them: give an input_feed, or a "
            f"number for each, shapes={{{', '.join(asked)}}}"
        )
    return random_feed(inputs, shapes, np.random.default_rng(0))


def feed_shapes(
    inputs: Sequence[NodeArg], shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, tuple[int, ...]]:
    """Return the shape of each input: the one given, or its own, open sizes as 1."""
    return {
        item.name: shapes.get(
            item.name, tuple(dim if isinstance(dim, int) else 1 for dim in item.shape)
        )
        for item in inputs
    }


def random_feed(
    inputs: Sequence[NodeArg],
    shapes: Mapping[str, tuple[int, ...]],
    generator: np.random.Generator,
) -> dict[str, Array]:
    """Return random content for every input; see ``random_value``."""
    return {item.name: random_value(item, shapes.get(item.name), generator) for item in inputs}


def random_value(
    item: NodeArg, shape: tuple[int, ...] | None, generator: np.random.Generator
) -> Array:
    """Return random content: standard normal floats, small integers, coin flips.

    Sizes that the model leaves open are 1 unless ``shape`` sets them.
    """
    dtype = tensor_dtype(item.type)
    if dtype is None:
        raise InvalidArgument(
            f"cannot make a random value for input '{item.name}' of type {item.type}; give one"
        )
    if shape is None:
        shape = tuple(dim if isinstance(dim, int) else 1 for dim in item.shape)
    if dtype == ir.DataType.STRING:
        return strings(["text"] * int(np.prod(shape))).reshape(shape)
    if dtype == ir.DataType.BOOL:
        return generator.integers(0, 2, shape).astype(np.bool_)
    if dtype.is_integer():
        return generator.integers(0, 2, shape).astype(dtype.numpy())
    return generator.standard_normal(shape).astype(dtype.numpy())
