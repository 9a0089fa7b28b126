"""Adapters: weights in a file of their own, which a run takes in the place of a model's.

The files are FlatBuffers with the identifier ``TORT``; the numbers of fields below are those of
ONNX Runtime's schema ``adapter_schema.fbs``.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.errors import InvalidModel
from hagane.graph.flat import Table, root_of
from hagane.graph.flat_written import NewTable, Number, Numbers, written
from hagane.machine.whole_files import write_whole
from hagane.onnxruntime.raised import BoundError
from hagane.onnxruntime.values import OrtValue

_IDENTIFIER = b"TORT"
_VERSION = 1


class AdapterFormat:
    """The content of an adapter's file: values by the names of inputs, and two versions."""

    def __init__(self, adapter: AdapterFormat | None = None):
        self._format_version = _VERSION
        self._adapter_version = self._model_version = 0
        self._parameters: dict[str, OrtValue] = {}
        if adapter is not None:
            vars(self).update(vars(adapter))

    @staticmethod
    def read_adapter(file_path: str | os.PathLike[str]) -> AdapterFormat:
        """Return the content of a file.

        Raises:
            RuntimeError: There is no such file, or it holds no adapter.
        """
        path = Path(file_path)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise BoundError(f"the adapter '{path}' cannot be read: {error.strerror}") from None
        if data[4:8] != _IDENTIFIER:
            raise BoundError(
                f"'{path}' does not appear to be an adapter: expected the identifier "
                f"{_IDENTIFIER.decode()} at byte 4, got {data[4:8]!r}; "
                "AdapterFormat.export_adapter writes one"
            )
        found = AdapterFormat()
        try:
            root = root_of(memoryview(data))
            found._format_version = root.integer(0)
            found._adapter_version = root.integer(1)
            found._model_version = root.integer(2)
            found._parameters = dict(_read(one, path) for one in root.tables(3))
        except InvalidModel as error:
            raise BoundError(f"'{path}' is a damaged adapter: {error}") from error
        if found._format_version != _VERSION:
            raise BoundError(
                f"'{path}' has the format version {found._format_version}, expected {_VERSION}"
            )
        return found

    def export_adapter(self, file_path: str | os.PathLike[str]) -> None:
        """Write the content to a file.

        Raises:
            RuntimeError: It cannot be written, or a value holds no tensor of numbers.
        """
        root = NewTable(
            {
                0: Number("i", self._format_version),
                1: Number("i", self._adapter_version),
                2: Number("i", self._model_version),
                3: [_written(name, value) for name, value in self._parameters.items()],
            }
        )
        try:
            write_whole(file_path, written(root, _IDENTIFIER))
        except OSError as error:
            raise BoundError(f"Failed to open file: '{file_path}' for writing: {error}") from None

    def get_format_version(self) -> int:
        """Return the version of the file format."""
        return self._format_version

    def set_adapter_version(self, adapter_version: int) -> None:
        """Set the version of the adapter."""
        self._adapter_version = int(adapter_version)

    def get_adapter_version(self) -> int:
        """Return the version of the adapter."""
        return self._adapter_version

    def set_model_version(self, model_version: int) -> None:
        """Set the version of the model that the adapter is for."""
        self._model_version = int(model_version)

    def get_model_version(self) -> int:
        """Return the version of the model that the adapter is for."""
        return self._model_version

    def set_parameters(self, params: Mapping[str, OrtValue]) -> None:
        """Set the values by the names of a model's inputs."""
        for name, value in params.items():
            if not isinstance(value, OrtValue):
                raise AttributeError(
                    f"parameter '{name}': expected an OrtValue, got {type(value).__name__}"
                )
        self._parameters = dict(params)

    def get_parameters(self) -> dict[str, OrtValue]:
        """Return the values by name."""
        return dict(self._parameters)


class LoraAdapter:
    """An adapter for ``RunOptions.add_active_adapter``."""

    def __init__(self) -> None:
        self._values: dict[str, OrtValue] = {}

    def Load(self, arg0: str) -> None:  # noqa: N802
        """Read the adapter's file.

        Raises:
            RuntimeError: There is no such file, or it holds no adapter.
        """
        self._values = AdapterFormat.read_adapter(arg0).get_parameters()

    @property
    def values(self) -> dict[str, OrtValue]:
        """The values by the names of a model's inputs."""
        return self._values


def _read(table: Table, path: Path) -> tuple[str, OrtValue]:
    name, number = table.text(0), table.integer(2)
    dims = [int(size) for size in table.numbers(1, "q")]
    data = table.content(3) or b""
    try:
        dtype = ir.DataType(number).numpy()
        if dtype.kind == "O" or min(dims, default=0) < 0:
            raise ValueError(number)
        if len(data) != math.prod(dims) * dtype.itemsize:
            raise ValueError(len(data))
    except (TypeError, ValueError):
        raise BoundError(
            f"'{path}': parameter '{name}' has {len(data)} bytes for the element type {number} and "
            f"the shape {dims}"
        ) from None
    return name, OrtValue(np.frombuffer(data, dtype).reshape(dims).copy())


def _written(name: str, value: OrtValue) -> NewTable:
    if not value.is_tensor() or value.data_type() == "tensor(string)":
        raise BoundError(
            f"parameter '{name}': expected a tensor of numbers, the value holds {value.data_type()}"
        )
    array: Any = value.numpy()
    return NewTable(
        {
            0: name,
            1: Numbers("q", [int(size) for size in array.shape]),
            2: Number("i", value.element_type()),
            3: np.ascontiguousarray(array).tobytes(),
        }
    )
