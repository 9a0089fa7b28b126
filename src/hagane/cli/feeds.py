"""Inputs from the command line: files, values, random numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.errors import InvalidArgument, MissingExtra
from hagane.ops.definition import Array
from hagane.ops.schema import tensor_dtype
from hagane.ops.values import strings
from hagane.runtime import NodeArg
from hagane.runtime.values.feeds import random_value


def parse_pair(text: str, option: str) -> tuple[str, str]:
    """Split ``NAME=VALUE``."""
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise InvalidArgument(f"{option}: expected NAME=VALUE, got '{text}'")
    return name, value


def parse_shapes(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Read ``NAME=1,3,224,224`` settings."""
    shapes = {}
    for text in texts:
        name, value = parse_pair(text, "--shape")
        try:
            shape = tuple(int(dim) for dim in value.replace("x", ",").split(",") if dim.strip())
        except ValueError:
            raise InvalidArgument(
                f"--shape {name}: expected integers separated by commas, got '{value}'"
            ) from None
        if any(dim < 0 for dim in shape):
            raise InvalidArgument(f"--shape {name}: sizes are not negative, got '{value}'")
        shapes[name] = shape
    return shapes


def read_feed(
    inputs: Sequence[NodeArg],
    given: Sequence[str],
    shapes: Mapping[str, tuple[int, ...]],
    seed: int | None,
) -> dict[str, Any]:
    """Return a value for every input: given ones from files or text, the others random.

    Raises:
        InvalidArgument: An input is unknown, unreadable, or neither given nor to be random.
    """
    known = {item.name: item for item in inputs}
    feed: dict[str, Any] = {}
    for text in given:
        name, source = parse_pair(text, "--input")
        if name not in known:
            raise InvalidArgument(
                f"--input {name}: the model has no such input; it takes: {', '.join(known)}"
            )
        feed[name] = _read(known[name], source)
    for name in shapes:
        if name not in known:
            raise InvalidArgument(
                f"--shape {name}: the model has no such input; it takes: {', '.join(known)}"
            )
    missing = [item for item in inputs if item.name not in feed]
    if missing and seed is None and not shapes:
        raise InvalidArgument(
            f"no value for {', '.join(item.name for item in missing)}: pass "
            f"--input {missing[0].name}=FILE, or --random SEED for random numbers"
        )
    generator = np.random.default_rng(seed or 0)
    for item in missing:
        feed[item.name] = random_value(item, shapes.get(item.name), generator)
    return feed


def _read(item: NodeArg, source: str) -> Any:
    path = Path(source)
    suffix = path.suffix.lower()
    if suffix in (".npy", ".npz", ".json", ".png", ".jpg", ".jpeg", ".bmp", ".pb"):
        if not path.is_file():
            raise InvalidArgument(f"--input {item.name}: there is no file '{source}'")
        if suffix == ".npy":
            return np.load(path, allow_pickle=False)
        if suffix == ".npz":
            content = np.load(path, allow_pickle=False)
            return content[item.name if item.name in content else content.files[0]]
        if suffix == ".pb":
            return _read_tensor(path)
        if suffix == ".json":
            return _from_literal(item, json.loads(path.read_text(encoding="utf-8")))
        return _read_picture(item, path)
    try:
        value = json.loads(source)
    except ValueError:
        value = source
    return _from_literal(item, value)


def _read_tensor(path: Path) -> Array:
    import onnx

    tensor = onnx.TensorProto()
    tensor.ParseFromString(path.read_bytes())
    return np.asarray(onnx.numpy_helper.to_array(tensor))


def _from_literal(item: NodeArg, value: Any) -> Array:
    dtype = tensor_dtype(item.type)
    if dtype == ir.DataType.STRING:
        array = np.asarray(value, dtype=np.str_)
        return strings([str(v) for v in array.ravel()]).reshape(array.shape)
    if dtype is None:
        raise InvalidArgument(f"--input {item.name}: {item.type} cannot be given as text")
    try:
        array = np.asarray(value, dtype=np.float64 if not dtype.is_integer() else None)
        array = array.astype(dtype.numpy())
    except (ValueError, TypeError):
        raise InvalidArgument(
            f"--input {item.name}: expected numbers for {item.type}, got '{value}'"
        ) from None
    missing_axes = len(item.shape) - array.ndim
    if missing_axes > 0 and array.size == 1:
        return array.reshape((1,) * len(item.shape))
    return array


def _read_picture(item: NodeArg, path: Path) -> Array:
    """Return a picture as the input wants it: (1, 3, height, width) in [0, 1], or bytes as is."""
    try:
        from PIL import Image
    except ImportError:
        raise MissingExtra(f"reading the picture '{path}'", "image") from None
    if len(item.shape) != 4:
        raise InvalidArgument(
            f"--input {item.name}: a picture needs an input of four axes, got {item.shape}"
        )
    channels_first = item.shape[3] not in (1, 3) or item.shape[1] in (1, 3)
    channels, height, width = (
        item.shape[1:] if channels_first else (item.shape[3], *item.shape[1:3])
    )
    picture = Image.open(path).convert("L" if channels == 1 else "RGB")
    if isinstance(height, int) and isinstance(width, int):
        picture = picture.resize((width, height), Image.Resampling.BILINEAR)
    pixels = np.atleast_3d(np.asarray(picture))
    if channels_first:
        pixels = pixels.transpose(2, 0, 1)
    dtype = tensor_dtype(item.type)
    if dtype is not None and dtype.is_floating_point():
        return (pixels[None] / 255).astype(dtype.numpy())
    return pixels[None]
