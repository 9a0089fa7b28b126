"""Inputs and outputs bound once and used in many runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hagane import runtime
from hagane.errors import InvalidArgument
from hagane.onnxruntime.devices import cpu_only
from hagane.onnxruntime.raised import BoundError, as_bound
from hagane.onnxruntime.values import OrtValue, OrtValueVector

if TYPE_CHECKING:
    from hagane.onnxruntime.compiled import CompiledBinding
    from hagane.onnxruntime.session import InferenceSession


class IOBinding(runtime.IOBinding):
    """The values that one session reads and writes."""

    def __init__(self, session: InferenceSession):
        super().__init__(session)
        self.session = session
        self._unknown: str | None = None

    @property
    def _iobinding(self) -> CompiledBinding:
        from hagane.onnxruntime.compiled import CompiledBinding  # which needs this module

        return CompiledBinding(self.session, self)

    def bind_cpu_input(self, name: str, arr_on_cpu: Any) -> None:
        """Read input ``name`` from an array."""
        with as_bound():
            super().bind_cpu_input(name, arr_on_cpu)

    def bind_ortvalue_input(self, name: str, ortvalue: runtime.OrtValue) -> None:
        """Read input ``name`` from a value."""
        if not isinstance(ortvalue, runtime.OrtValue):
            raise AttributeError(
                f"input '{name}': expected an OrtValue, got {type(ortvalue).__name__}"
            )
        with as_bound():
            super().bind_ortvalue_input(name, ortvalue)

    def bind_input(  # type: ignore[override]
        self,
        name: str,
        device_type: str,
        device_id: int,
        element_type: Any,
        shape: Sequence[int],
        buffer_ptr: int,
    ) -> None:
        """Read input ``name`` from memory of the caller's, which has to stay while it is bound."""
        cpu_only(device_type)
        with as_bound():
            super().bind_input(name, "cpu", device_id, element_type, shape, buffer_ptr)

    def bind_output(  # type: ignore[override]
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: Any = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Write output ``name`` into memory of the caller's, or make room for it in each run."""
        cpu_only(device_type)
        if buffer_ptr is not None and (element_type is None or shape is None):
            raise ValueError(
                f"bind_output '{name}': a buffer needs element_type and shape beside buffer_ptr"
            )
        with as_bound():
            super().bind_output(name, "cpu", device_id, element_type, shape, buffer_ptr)

    def bind_ortvalue_output(self, name: str, ortvalue: runtime.OrtValue) -> None:
        """Write output ``name`` into a value."""
        with as_bound():
            super().bind_ortvalue_output(name, ortvalue)

    def _check_output(self, name: str) -> None:
        # ONNX Runtime notices in the run.
        try:
            super()._check_output(name)
        except InvalidArgument as error:
            self._unknown = str(error)

    def clear_binding_outputs(self) -> None:
        """Forget the outputs."""
        self._unknown = None
        super().clear_binding_outputs()

    def get_outputs(self) -> list[OrtValue]:
        """Return the outputs of the last run, in the order of binding."""
        return [
            value if isinstance(value, OrtValue) else OrtValue(value.content)
            for value in super().get_outputs()
        ]

    def get_outputs_as_ortvaluevector(self) -> OrtValueVector:
        """Return the outputs of the last run as a vector."""
        return OrtValueVector(self.get_outputs())


def check_owner(binding: IOBinding, session: InferenceSession) -> None:
    """Refuse a binding of another session, or of an output that it does not have."""
    if binding.session is not session:
        raise BoundError("expected a binding of this session, got one of another session")
    if binding._unknown is not None:
        raise BoundError(binding._unknown)
