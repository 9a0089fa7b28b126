"""The modules below ``onnxruntime`` that packages import, and the names in each of them."""

from __future__ import annotations

import os
import types
from collections.abc import Callable
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

import hagane.onnxruntime as surface
from hagane.onnxruntime import state, values
from hagane.onnxruntime.absent import refusing_class
from hagane.onnxruntime.environment import get_build_info, package_version
from hagane.onnxruntime.providers import check_and_normalize_provider_args
from hagane.onnxruntime.raised import BoundError, offered_not

# Python of ONNX Runtime's package, over sessions: loaded from it where it is installed.
THEIRS = ("quantization", "tools", "transformers", "datasets")

_MISSING = (
    "it is written in Python in the package onnxruntime, which is not installed; install that "
    "beside hagane, and it runs over hagane's sessions"
)


def installed() -> list[str]:
    """Return the folders of the installed package ``onnxruntime``; none if there is none."""
    spec = PathFinder.find_spec("onnxruntime")
    return [] if spec is None else list(spec.submodule_search_locations or ())


def _capi(module: types.ModuleType) -> None:
    module.__path__ = []


def _state(module: types.ModuleType) -> None:
    """Give a module the names of the compiled one, each when it is asked for."""
    names = [name for name in dir(state) if not name.startswith("_")]
    vars(module)["__getattr__"] = lambda name: getattr(state, name)
    vars(module)["__dir__"] = lambda: names
    vars(module)["__all__"] = names


def _collection(module: types.ModuleType) -> None:
    for name in ("InferenceSession", "IOBinding", "OrtDevice", "OrtValue", "SparseTensor"):
        setattr(module, name, getattr(surface, name))
    vars(module)["Session"] = surface.InferenceSession
    vars(module)["OrtValueVector"] = values.OrtValueVector
    vars(module)["copy_tensors"] = surface.copy_tensors
    vars(module)["AdapterFormat"] = state.AdapterFormat
    vars(module)["ModelCompiler"] = state.ModelCompiler
    vars(module)["OrtDeviceVendorId"] = surface.OrtDeviceVendorId
    vars(module)["check_and_normalize_provider_args"] = check_and_normalize_provider_args
    vars(module)["get_ort_device_type"] = lambda name: surface.OrtDevice.make(name, 0).device_type()


def _validation(module: types.ModuleType) -> None:
    vars(module)["get_package_name_and_version_info"] = lambda: (
        "onnxruntime",
        package_version(),
        "",
    )
    vars(module)["check_distro_info"] = lambda: None
    vars(module)["package_name"] = "onnxruntime"
    vars(module)["version"] = package_version()
    vars(module)["cuda_version"] = ""


def _build(module: types.ModuleType) -> None:
    vars(module)["package_name"] = "onnxruntime"
    vars(module)["__version__"] = package_version()
    vars(module)["build_info"] = get_build_info()


def _backend(module: types.ModuleType) -> None:
    from hagane import onnx_backend

    class OnnxRuntimeBackendRep(onnx_backend.HaganeBackendRep):
        """A prepared model, whose runs give lists."""

        def run(self, inputs: Any, **kwargs: Any) -> list[Any]:  # type: ignore[override]
            names = [item.name for item in self._session.get_inputs()]
            if not isinstance(inputs, list):
                if len(names) != 1:
                    raise RuntimeError(
                        f"Model expect {len(names)} inputs: give a list of them, in order"
                    )
                inputs = [inputs]
            return list(super().run(dict(zip(names, inputs, strict=False)), **kwargs))

    class OnnxRuntimeBackend(onnx_backend.HaganeBackend):
        """A backend that takes sessions, prepared models, paths and bytes too."""

        @classmethod
        def prepare(cls, model: Any, device: str | None = None, **kwargs: Any) -> Any:
            if device is not None and not cls.supports_device(device):
                raise BoundError(f"expected the device 'CPU', got '{device}'")
            if isinstance(model, onnx_backend.HaganeBackendRep):
                return model
            if not isinstance(model, surface.InferenceSession):
                data = model if isinstance(model, str | bytes | os.PathLike) else None
                model = surface.InferenceSession(data or model.SerializeToString())
            return OnnxRuntimeBackendRep(model)

        @classmethod
        def run_model(cls, model: Any, inputs: Any, device: Any = None, **kwargs: Any) -> Any:
            return cls.prepare(model, device, **kwargs).run(inputs)

        run = run_model

    module.__path__ = []
    for name in ("is_compatible", "prepare", "run", "run_model", "run_node", "supports_device"):
        setattr(module, name, getattr(OnnxRuntimeBackend, name))
    vars(module).update(
        OnnxRuntimeBackend=OnnxRuntimeBackend, OnnxRuntimeBackendRep=OnnxRuntimeBackendRep
    )


MADE: dict[str, Callable[[types.ModuleType], None]] = {
    "onnxruntime.capi": _capi,
    "onnxruntime.capi._ld_preload": lambda module: None,
    "onnxruntime.capi._pybind_state": _state,
    "onnxruntime.capi.build_and_package_info": _build,
    "onnxruntime.capi.onnxruntime_inference_collection": _collection,
    "onnxruntime.capi.onnxruntime_pybind11_state": _state,
    "onnxruntime.capi.onnxruntime_validation": _validation,
    "onnxruntime.backend": _backend,
    "onnxruntime.backend.backend": _backend,
    "onnxruntime.backend.backend_rep": _backend,
}


def refusing(module: types.ModuleType) -> None:
    """Fill a module of a part that is not installed: its names exist, and say so when used."""
    inside = module.__name__.removeprefix("onnxruntime.")
    module.__path__ = []

    def missing(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module '{module.__name__}' has no attribute '{name}'")
        made = refusing_class(f"{inside}.{name}", _MISSING)
        setattr(module, name, made)
        return made

    vars(module)["__getattr__"] = missing
    if inside.partition(".")[0] == "quantization":
        from hagane.onnxruntime import quantization

        for name in quantization.OFFERED:
            setattr(module, name, getattr(quantization, name))
    if inside == "datasets":
        vars(module)["get_example"] = _get_example


def _get_example(name: str) -> str:
    for folder in installed():
        path = Path(folder) / "datasets" / os.fspath(name)
        if path.is_file():
            return str(path)
    raise offered_not(f"datasets.get_example('{name}')", _MISSING)
