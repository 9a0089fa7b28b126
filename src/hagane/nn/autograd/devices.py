"""Where arrays lie: in this machine's memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import numpy as np

from hagane.errors import InvalidArgument, NoDevice


class Device:
    """A place of arrays."""

    xp: Any = np
    name = "@numpy"
    supported_array_types = (np.ndarray,)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    def __str__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other.name == self.name

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.name)

    def create_context(self) -> Any:
        """Return a context in which the device is the current one."""
        return using_device(self)

    def use(self) -> None:
        """Make the device the current one."""

    def is_array_supported(self, array: Any) -> bool:
        """Return whether an array lies on the device."""
        return isinstance(array, self.supported_array_types)

    def send(self, arrays: Any) -> Any:
        """Return arrays, and tuples and lists of them, on the device; other values as they are.

        Raises:
            TypeError: Something is not an array.
        """
        if isinstance(arrays, list | tuple):
            return type(arrays)(self.send(array) for array in arrays)
        if arrays is None or isinstance(arrays, np.ndarray):
            return arrays
        if isinstance(arrays, int | float | complex | np.generic):
            return np.asarray(arrays)
        raise TypeError(f"cannot send {type(arrays)} to a device: expected a numpy.ndarray")

    def send_array(self, array: Any) -> Any:
        """Return an array on the device."""
        return self.send(array)


class CpuDevice(Device):
    """This machine's memory."""

    @staticmethod
    def from_array(array: Any) -> Any:
        """Return the device of an array of NumPy, else None."""
        return cpu if isinstance(array, np.ndarray) else None


class GpuDevice(Device):
    """A GPU, of which hagane has none yet; the class stands for checks of programs."""

    name = "@cupy:0"

    @staticmethod
    def from_device_id(device_id: int) -> Device:
        """Refuse: there is no GPU.

        Raises:
            NoDevice: Always.
        """
        return cast(Device, get_device(f"@cupy:{device_id}"))


class ChainerxDevice(Device):
    """A device of ChainerX, of which hagane has none; the class stands for checks of programs."""

    name = "chainerx"


class Intel64Device(Device):
    """iDeep's, of which hagane has none; the class stands for checks of programs."""

    name = "@intel64"


def to_chx(arrays: Any) -> Any:
    """Refuse to make arrays of ChainerX.

    Raises:
        InvalidArgument: Always.
    """
    raise InvalidArgument("to_chx: hagane has no arrays of ChainerX; use those of NumPy")


def from_chx(arrays: Any) -> Any:
    """Return arrays, none of which are ChainerX's."""
    return arrays


cpu = CpuDevice()


def get_device(device_spec: Any = None) -> Any:
    """Return the device of a specifier: ``@numpy``, -1, ``native`` or a device.

    Without one, the name of the device of sessions: ``CPU``.

    Raises:
        NoDevice: It names no device, or one that is not there.
        TypeError: It is none of these.
    """
    spec = device_spec
    if spec is None:
        return "CPU"
    if isinstance(spec, Device):
        return spec
    # Scripts pass a number as the text of their command line.
    if isinstance(spec, str) and spec.lstrip("-").isdecimal():
        spec = int(spec)
    if spec in ("@numpy", "native", "native:0", "@intel64", "@ideep") or (
        isinstance(spec, int) and spec < 0
    ):
        return cpu
    text = str(spec)
    if not isinstance(spec, int | str):
        raise TypeError(f"device: expected a Device, a name or a number, got {spec!r}")
    if isinstance(spec, int) or text.startswith(("@cupy", "cuda")):
        raise NoDevice(
            f"device {spec!r}: hagane computes on the CPU and has no CUDA device; "
            "use '@numpy' (or -1 on the command line)"
        )
    raise NoDevice(f"device {spec!r}: expected '@numpy', the only device there is")


@contextmanager
def using_device(device_spec: Any) -> Iterator[Device]:
    """Make a device the current one in a ``with`` block."""
    yield get_device(device_spec)


def get_device_from_array(*arrays: Any) -> Device:
    """Return the device on which arrays lie."""
    return cpu


def get_array_module(*arrays: Any) -> Any:
    """Return NumPy, the module of all arrays."""
    return np


def copyto(destination: Any, source: Any) -> None:
    """Copy the elements of an array into another.

    Raises:
        TypeError: One is not an array.
    """
    for array in (destination, source):
        if not isinstance(array, np.ndarray):
            raise TypeError(f"copyto: expected numpy.ndarray, got {type(array)}")
    np.copyto(destination, source, casting="unsafe")
