"""Names of ONNX Runtime's that hagane does not offer, with the reason."""

from __future__ import annotations

from typing import Any

from hagane.onnxruntime.raised import offered_not

_PACKAGES = (
    "packages of models are chosen by ONNX Runtime's execution providers; give InferenceSession "
    "the .onnx file of one variant"
)
_COMPILED = (
    "it holds what an execution provider compiled, which runs on that provider only; hagane "
    "compiles when a session is made and keeps the code in the user's cache (docs/machine.md)"
)
_ASSIGNED = "`hagane inspect MODEL` shows where the nodes of a model run"
_PACKING = (
    "it packs weights for kernels of ONNX Runtime's own; hagane packs weights when a session is "
    "made"
)
_TABLES = "docs/operators.md lists the operators of hagane"

CLASSES: dict[str, str] = {
    "ModelPackage": _PACKAGES,
    "ModelPackageComponentContext": _PACKAGES,
    "ModelPackageContext": _PACKAGES,
    "ModelPackageOptions": _PACKAGES,
    "OrtEpAssignedNode": _ASSIGNED,
    "OrtEpAssignedSubgraph": _ASSIGNED,
    "OrtEpContextData": _COMPILED,
    "OrtEpContextDataBuffer": _COMPILED,
    "SessionObjectInitializer": "it is internal to ONNX Runtime",
}

FUNCTIONS: dict[str, str] = {
    "get_all_operator_schema": _TABLES,
    "get_all_opkernel_def": _TABLES,
    "get_compatibility_info_from_model": _COMPILED,
    "get_compatibility_info_from_model_bytes": _COMPILED,
    "get_hardware_device_ep_incompatibility_details": "models run on the CPU",
    "get_model_compatibility_for_ep_devices": _COMPILED,
    "get_registered_ep_kernel_defs": _TABLES,
    "get_session_initializer": "it is internal to ONNX Runtime",
    "opkernel": _TABLES,
    "pack_fp4_weights_for_cuda_moe_gemm": _PACKING,
    "register_execution_provider_library": (
        "libraries of execution providers are made for ONNX Runtime's C interface; "
        "SessionOptions.backends adds backends (docs/backends.md)"
    ),
    "schemadef": _TABLES,
    "unregister_execution_provider_library": "no library can be registered",
}


def absent(name: str) -> Any:
    """Return the stand-in of a name: a class or function that says why when it is used."""
    if name in CLASSES:
        return refusing_class(name, CLASSES[name])
    if name in FUNCTIONS:
        return _refusing_function(name, FUNCTIONS[name])
    raise AttributeError(f"module 'onnxruntime' has no attribute '{name}'")


class _Refusing(type):
    """The class of classes whose every use says why they are not there."""

    reason: str

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"type object '{cls.__name__}' has no attribute '{name}'")

        def refuse(*_: Any, **__: Any) -> Any:
            raise offered_not(f"{cls.__name__}.{name}", cls.reason)

        return refuse


def refusing_class(name: str, reason: str) -> Any:
    """Return a class that can be named and inherited from, and raises when it is made or asked."""

    def refuse(self: object, *_: Any, **__: Any) -> None:
        raise offered_not(name, reason)

    return _Refusing(name, (), {"__init__": refuse, "reason": reason, "__doc__": f"Not: {reason}."})


def _refusing_function(name: str, reason: str) -> Any:
    def refuse(*_: Any, **__: Any) -> Any:
        raise offered_not(name, reason)

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"Not offered: {reason}."
    return refuse
