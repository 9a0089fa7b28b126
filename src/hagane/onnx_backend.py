"""hagane as a backend of ``onnx.backend``: the entry of the ONNX conformance tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
from onnx.backend.base import Backend, BackendRep

from hagane.runtime import InferenceSession, SessionOptions


class HaganeBackendRep(BackendRep):  # type: ignore[misc]
    """A prepared model."""

    def __init__(self, session: InferenceSession):
        self._session = session

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Run the model on one value an input, in order, or on a mapping by name."""
        if not isinstance(inputs, dict):
            names = [item.name for item in self._session.get_inputs()]
            values = inputs if isinstance(inputs, list | tuple) else [inputs]
            inputs = dict(zip(names, values, strict=False))
        feed = {name: _value(value) for name, value in inputs.items()}
        return tuple(self._session.run(None, feed))


def _value(value: Any) -> Any:
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


class HaganeBackend(Backend):  # type: ignore[misc]
    """The whole of hagane's inference behind ONNX's backend interface."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether the model can be tried."""
        return device == "CPU"

    @classmethod
    def prepare(
        cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any
    ) -> HaganeBackendRep:
        """Return the model, ready to run.

        Args:
            model: The model to run.
            device: ``CPU``.
            kwargs: ``backends``: backends that are asked first which nodes they compute.
        """
        options = SessionOptions(backends=kwargs.get("backends", ()))
        return HaganeBackendRep(InferenceSession(model, options))

    @classmethod
    def run_model(
        cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any
    ) -> tuple[Any, ...]:
        """Prepare and run a model once."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[Any, tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Run one node on arrays."""
        arrays = [np.asarray(value) for value in inputs]
        names = [name for name in node.input if name]
        graph = onnx.helper.make_graph(
            [node],
            "node",
            [
                onnx.helper.make_tensor_value_info(
                    name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
                )
                for name, array in zip(names, arrays, strict=True)
            ],
            [onnx.ValueInfoProto(name=name) for name in node.output if name],
        )
        model = onnx.helper.make_model(graph)
        return cls.run_model(model, dict(zip(names, arrays, strict=True)), device)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether models can run on the device."""
        return device == "CPU"


is_compatible = HaganeBackend.is_compatible
prepare = HaganeBackend.prepare
run = HaganeBackend.run_model
supports_device = HaganeBackend.supports_device
