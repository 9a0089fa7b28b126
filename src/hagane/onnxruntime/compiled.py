"""The classes of ONNX Runtime's compiled module, where they differ from those of its package.

Packages reach them as ``onnxruntime.capi._pybind_state`` (``C.OrtDevice``, ``C.SessionIOBinding``),
as ``session._sess`` and as ``binding._iobinding``; their arguments come in another order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hagane.onnxruntime.binding import IOBinding
from hagane.onnxruntime.devices import OrtDevice
from hagane.onnxruntime.raised import BoundError
from hagane.onnxruntime.session import InferenceSession
from hagane.onnxruntime.values import OrtValueVector

_NAMES = {0: "cpu", 1: "cuda", 2: "fpga", 3: "npu", 4: "dml"}


class CompiledDevice(OrtDevice):
    """A device by the number of its kind, the kind of its memory and its own number.

    Args:
        kind: ``OrtDevice.cpu()`` or another one.
        memory: ``OrtDevice.default_memory()``; it has no effect.
        rest: The device's number, behind that of its maker where there are two.
    """

    def __init__(self, kind: int, memory: int, *rest: int):
        if kind not in _NAMES or len(rest) not in (1, 2):
            raise TypeError(
                "OrtDevice: expected a kind (OrtDevice.cpu()), a kind of memory "
                f"(OrtDevice.default_memory()) and a number, got {(kind, memory, *rest)}"
            )
        vendor = 0x1414 if _NAMES[kind] == "dml" else 0
        super().__init__(_NAMES[kind], rest[-1], rest[0] if len(rest) == 2 else vendor)

    @staticmethod
    def cpu() -> int:
        """Return the number of the CPU."""
        return 0

    @staticmethod
    def cuda() -> int:
        """Return the number of GPUs."""
        return 1

    gpu = webgpu = cuda

    @staticmethod
    def fpga() -> int:
        """Return the number of FPGAs."""
        return 2

    @staticmethod
    def dml() -> int:
        """Return the number of GPUs under DirectX."""
        return 4

    @staticmethod
    def npu() -> int:
        """Return the number of NPUs."""
        return 3

    cann = npu

    @staticmethod
    def default_memory() -> int:
        """Return the number of a device's own memory."""
        return 0

    def mem_type(self) -> int:
        """Return the kind of its memory."""
        return self.device_mem_type()

    def vendor_id(self) -> int:
        """Return the number of its maker on the PCI bus."""
        return self.device_vendor_id()


class CompiledSession:
    """A session that is made in two steps, or that an ``InferenceSession`` holds.

    Args:
        options: Settings.
        model: A path or the bytes of a model.
        rest: Whether it is a path, and whether the model has settings; they have no effect.
    """

    def __init__(self, options: Any, model: Any, *rest: bool):
        self._given: tuple[Any, Any] | None = (model, options)
        self._made: InferenceSession | None = None

    @classmethod
    def of(cls, session: InferenceSession) -> CompiledSession:
        """Return the one that a session holds."""
        made = cls(None, None)
        made._given, made._made = None, session
        return made

    def initialize_session(
        self, providers: Sequence[str], options: Sequence[Mapping[str, str]], disabled: Any = ()
    ) -> None:
        """Read and compile the model."""
        if self._given is None:
            raise BoundError("the session was initialized before")
        (model, settings), self._given = self._given, None
        if isinstance(model, bytearray):
            model = bytes(model)
        self._made = InferenceSession(
            model, settings, list(providers) or None, list(options) or None
        )

    @property
    def made(self) -> InferenceSession:
        """The session itself."""
        if self._made is None:
            raise BoundError("Session not initialized: call initialize_session first")
        return self._made

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"'InferenceSession' object has no attribute '{name}'")
        return getattr(self.made, name)

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], options: Any = None
    ) -> list[Any]:
        """Run the model on arrays."""
        return self.made.run(output_names or None, input_feed, options)

    def run_with_ort_values(
        self, feed: Mapping[str, Any], output_names: Sequence[str] | None, options: Any = None
    ) -> OrtValueVector:
        """Run the model on values."""
        return OrtValueVector(self.made.run_with_ort_values(output_names or None, feed, options))

    def run_with_iobinding(self, binding: Any, options: Any = None) -> None:
        """Run the model on bound values."""
        inside = binding.binding if isinstance(binding, CompiledBinding) else binding
        self.made.run_with_iobinding(inside, options)

    @property
    def inputs_meta(self) -> list[Any]:
        """The inputs."""
        return self.made.get_inputs()

    @property
    def outputs_meta(self) -> list[Any]:
        """The outputs."""
        return self.made.get_outputs()

    @property
    def overridable_initializers(self) -> list[Any]:
        """The initializers that may be fed too."""
        return self.made.get_overridable_initializers()

    @property
    def model_meta(self) -> Any:
        """The model's description of itself."""
        return self.made.get_modelmeta()

    @property
    def session_options(self) -> Any:
        """The settings."""
        return self.made.get_session_options()

    @property
    def get_profiling_start_time_ns(self) -> int:
        """The time at which profiling began."""
        return self.made.get_profiling_start_time_ns()


class CompiledBinding:
    """Bound inputs and outputs, by arrays, values and addresses.

    Args:
        session: Whose they are.
        binding: One that is there already.
    """

    def __init__(self, session: Any, binding: IOBinding | None = None):
        made = session.made if isinstance(session, CompiledSession) else session
        self.binding = made.io_binding() if binding is None else binding

    def bind_input(self, name: str, *where: Any) -> None:
        """Read an input from an array, or from memory: device, type, shape, address."""
        if len(where) == 1:
            self.binding.bind_cpu_input(name, where[0])
            return
        device, kind, shape, address = where
        self.binding.bind_input(name, device, 0, kind, shape, address)

    def bind_output(self, name: str, *where: Any) -> None:
        """Make room for an output, or write it into memory: device, type, shape, address."""
        device, *rest = where or ("cpu",)
        self.binding.bind_output(name, device, 0, *rest)

    def get_outputs(self) -> OrtValueVector:
        """Return the outputs of the last run."""
        return self.binding.get_outputs_as_ortvaluevector()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"'SessionIOBinding' object has no attribute '{name}'")
        return getattr(self.binding, name)
