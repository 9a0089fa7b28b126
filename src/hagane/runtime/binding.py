"""Inputs and outputs bound once and used in many runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hagane.errors import InvalidArgument
from hagane.runtime.port import CPU, Device
from hagane.runtime.value import OrtValue, device_of

if TYPE_CHECKING:
    from hagane.ops.definition import Array, RuntimeValue
    from hagane.runtime.session import InferenceSession


class IOBinding:
    """The values that one session reads and writes."""

    def __init__(self, session: InferenceSession):
        self._known_inputs = {item.name for item in session.get_inputs()}
        self._known_outputs = {item.name for item in session.get_outputs()}
        self.inputs: dict[str, OrtValue] = {}
        self.outputs: dict[str, OrtValue | None] = {}
        self._devices: dict[str, Device] = {}

    def bind_cpu_input(self, name: str, arr_on_cpu: Array) -> None:
        """Read input ``name`` from an array."""
        self.bind_ortvalue_input(name, OrtValue(np.asarray(arr_on_cpu)))

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Read input ``name`` from a value."""
        if name not in self._known_inputs:
            raise InvalidArgument(
                f"unknown input '{name}'; the model takes: {', '.join(sorted(self._known_inputs))}"
            )
        self.inputs[name] = ortvalue

    def bind_output(self, name: str, device_type: str | Device = "cpu", *_: Any, **__: Any) -> None:
        """Let the session make room for output ``name`` on a device."""
        self._check_output(name)
        self._devices[name] = device_of(device_type)
        self.outputs[name] = None

    def fill(self, name: str, result: RuntimeValue) -> None:
        """Take output ``name`` of a run: into the value that is bound, or a new one."""
        target = self.outputs[name]
        if target is None:
            device = self._devices[name]
            self.outputs[name] = OrtValue(device.put(result), device)
        else:
            target.update_inplace(np.asarray(result))

    def targets(self) -> list[RuntimeValue]:
        """Return for each output the value on the CPU that it is bound to, or None."""
        return [
            None if value is None or value.device is not CPU else value.content
            for value in self.outputs.values()
        ]

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Write output ``name`` into a value."""
        self._check_output(name)
        self.outputs[name] = ortvalue

    def _check_output(self, name: str) -> None:
        if name not in self._known_outputs:
            raise InvalidArgument(
                f"unknown output '{name}'; the model has: {', '.join(sorted(self._known_outputs))}"
            )

    def synchronize_inputs(self) -> None:
        """Wait for the inputs: a device waits where it is read."""

    def synchronize_outputs(self) -> None:
        """Wait for the outputs: a device waits where it is read."""

    def clear_binding_inputs(self) -> None:
        """Forget the inputs."""
        self.inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Forget the outputs."""
        self.outputs.clear()

    def get_outputs(self) -> Sequence[OrtValue]:
        """Return the outputs of the last run, in the order of binding."""
        return [value for value in self.outputs.values() if value is not None]

    def copy_outputs_to_cpu(self) -> list[Array]:
        """Return the outputs of the last run as arrays."""
        return [value.numpy() for value in self.get_outputs()]
