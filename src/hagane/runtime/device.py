"""Places where values lie."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from hagane.ops.definition import RuntimeValue

# Values that a part reads and writes: a RuntimeValue on the CPU, a device's own elsewhere.
Value: TypeAlias = Any


class Device(Protocol):
    """A place for tensors; others read them after ``get``."""

    @property
    def name(self) -> str:
        """The name that ``OrtValue.device_name`` gives, such as ``cpu`` or ``cuda``."""

    def put(self, value: RuntimeValue) -> Value:
        """Return a value of the CPU as one of this device."""

    def get(self, value: Value) -> RuntimeValue:
        """Return a value of this device as one of the CPU; waits until it is computed."""


class _Cpu:
    """Main memory: values are arrays and containers of arrays as they are."""

    name = "cpu"

    def put(self, value: RuntimeValue) -> Value:
        return value

    def get(self, value: Value) -> RuntimeValue:
        found: RuntimeValue = value
        return found


CPU: Device = _Cpu()
