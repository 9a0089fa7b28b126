"""Inputs and outputs bound once and used in many runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hagane.errors import InvalidArgument
from hagane.runtime.device import CPU, Device
from hagane.runtime.values.value import OrtValue, device_of, value_at

if TYPE_CHECKING:
    from hagane.ops.definition import Array, RuntimeValue
    from hagane.runtime.session import InferenceSession


class IOBinding:
    """The values that one session reads and writes."""

    def __init__(self, session: InferenceSession):
        readable = [*session.get_inputs(), *session.get_overridable_initializers()]
        self._known_inputs = {item.name for item in readable}
        self._known_outputs = {item.name for item in session.get_outputs()}
        self.inputs: dict[str, OrtValue] = {}
        self.outputs: dict[str, OrtValue | None] = {}
        self._devices: dict[str, Device] = {}
        self._made: dict[str, OrtValue] = {}
        self._shown: set[str] = set()  # outputs whose values the caller has: later runs write them
        self._given: set[str] = set()  # outputs whose arrays the caller has: these stay as they are

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

    def bind_input(
        self,
        name: str,
        device_type: str | Device,
        device_id: int,
        element_type: Any,
        shape: Sequence[int],
        buffer_ptr: int,
    ) -> None:
        """Read input ``name`` from memory of the caller's, which has to stay while it is bound.

        Args:
            name: The input.
            device_type: Where the memory lies: ``cpu``.
            device_id: Accepted.
            element_type: A type of NumPy's, or the number of one of ONNX's.
            shape: The sizes of the tensor.
            buffer_ptr: The address of its first element.
        """
        device_of(device_type)
        self.bind_ortvalue_input(name, value_at(buffer_ptr, shape, element_type))

    def bind_output(
        self,
        name: str,
        device_type: str | Device = "cpu",
        device_id: int = 0,
        element_type: Any = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Write output ``name`` into memory of the caller's, or make room for it in each run.

        Args:
            name: The output.
            device_type: Where it shall lie.
            device_id: Accepted.
            element_type: A type of NumPy's, or the number of one of ONNX's, if there is memory.
            shape: The sizes of the tensor, if there is memory.
            buffer_ptr: The address of its first element; the session makes room if None.
        """
        self._check_output(name)
        self._forget(name)
        self._devices[name] = device_of(device_type)
        if buffer_ptr is None:
            self.outputs[name] = None
            return
        if element_type is None or shape is None:
            raise InvalidArgument(
                f"bind_output '{name}': a buffer needs element_type and shape beside buffer_ptr"
            )
        self.outputs[name] = value_at(buffer_ptr, shape, element_type)

    def fill(self, name: str, result: RuntimeValue) -> None:
        """Take output ``name`` of a run: into the value that is bound, or a new one."""
        target = self.outputs[name]
        if target is None:
            device, made = self._devices[name], self._made.get(name)
            if made is not None and name in self._shown and _fits(made, result):
                made.update_inplace(np.asarray(result))
                return
            self._forget(name)
            self._made[name] = OrtValue(device.put(result), device)
            return
        try:
            target.update_inplace(np.asarray(result))
        except InvalidArgument as error:
            raise InvalidArgument(f"output '{name}' does not fit its buffer: {error}") from None

    def targets(self) -> list[RuntimeValue]:
        """Return for each output the value on the CPU that it is bound to, or None."""
        return [
            None if value is None or value.device is not CPU else value.content
            for value in self.outputs.values()
        ]

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Write output ``name`` into a value."""
        self._check_output(name)
        self._forget(name)
        self.outputs[name] = ortvalue

    def _forget(self, name: str) -> None:
        self._made.pop(name, None)
        self._shown.discard(name)
        self._given.discard(name)

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
        self._made.clear()
        self._shown.clear()
        self._given.clear()

    def get_outputs(self) -> Sequence[OrtValue]:
        """Return the outputs of the last run, in the order of binding.

        Later runs write into these values where the sizes stay the same, until the output is bound
        again.
        """
        for name in self._given - self._shown:
            made = self._made[name]
            if made.device is CPU and isinstance(made.content, np.ndarray):
                self._made[name] = OrtValue(made.content.copy())
        self._given.clear()
        self._shown.update(self._made)
        return self._current()

    def _current(self) -> list[OrtValue]:
        found = [self._made.get(name, bound) for name, bound in self.outputs.items()]
        return [value for value in found if value is not None]

    def copy_outputs_to_cpu(self) -> list[Array]:
        """Return the outputs of the last run as arrays, which later runs leave as they are."""
        bound = {id(value) for value in self.outputs.values()}
        bound |= {id(self._made[name]) for name in self._shown}
        self._given.update(self._made.keys() - self._shown)
        return [
            value.numpy().copy() if id(value) in bound else value.numpy()
            for value in self._current()
        ]


def _fits(value: OrtValue, result: RuntimeValue) -> bool:
    """Whether a value on the CPU has the type and the sizes of a result."""
    held = value.content if value.device is CPU else None
    return (
        isinstance(held, np.ndarray)
        and isinstance(result, np.ndarray)
        and held.dtype == result.dtype
        and held.shape == result.shape
        and held.flags.writeable
    )
