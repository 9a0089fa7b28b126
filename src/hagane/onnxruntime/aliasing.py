"""``import onnxruntime`` that finds hagane."""

from __future__ import annotations

import importlib
import importlib.abc
import sys
import types
from collections.abc import Iterable, Sequence
from importlib import metadata
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

from hagane.errors import InvalidArgument
from hagane.onnxruntime.environment import INTERFACE
from hagane.onnxruntime.submodules import MADE, THEIRS, installed, refusing


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds ``onnxruntime`` and the modules below it."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: Any = None
    ) -> ModuleSpec | None:
        first, _, inner = name.partition(".")
        if first != "onnxruntime":
            return None
        if inner.partition(".")[0] in THEIRS and installed():
            return None  # the installed package has it in Python: found there by the path
        known = not inner or name in MADE or inner.partition(".")[0] in THEIRS
        return ModuleSpec(name, self, is_package=True) if known else None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return types.ModuleType(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        if module.__name__ == "onnxruntime":
            _fill(module)
        elif module.__name__ in MADE:
            MADE[module.__name__](module)
        else:
            refusing(module)

    def find_distributions(
        self, context: metadata.DistributionFinder.Context | None = None
    ) -> Iterable[metadata.Distribution]:
        """Yield a distribution ``onnxruntime`` where none is installed: packages ask for one."""
        name = None if context is None else context.name
        if name in (None, "onnxruntime") and not _is_installed():
            yield _Distribution()


class _Distribution(metadata.Distribution):
    """The metadata of ``onnxruntime`` where hagane stands in for it."""

    def read_text(self, filename: str) -> str | None:
        if filename != "METADATA":
            return None
        return (
            f"Metadata-Version: 2.1\nName: onnxruntime\nVersion: {INTERFACE}\n"
            "Summary: hagane in the place of ONNX Runtime\n"
        )

    def locate_file(self, path: Any) -> Any:
        return Path(__file__).parent / path


def _is_installed() -> bool:
    finders = [one for one in sys.meta_path if one is not _FINDER]
    context = metadata.DistributionFinder.Context(name="onnxruntime")
    return any(
        next(iter(found(context)), None) is not None
        for one in finders
        if (found := getattr(one, "find_distributions", None)) is not None
    )


def _fill(module: types.ModuleType) -> None:
    """Give the module ``onnxruntime`` the names of ``hagane.onnxruntime``."""
    surface = importlib.import_module("hagane.onnxruntime")
    module.__doc__ = surface.__doc__
    module.__path__ = installed()
    for name in surface.__all__:
        setattr(module, name, getattr(surface, name))
    for name in (
        "__author__",
        "__version__",
        "cuda_version",
        "import_capi_exception",
        "package_name",
        "version",
    ):
        setattr(module, name, getattr(surface, name))
    vars(module)["__getattr__"] = lambda name: getattr(surface, name)
    vars(module)["__dir__"] = lambda: sorted({*vars(module), *dir(surface)})
    capi = importlib.import_module("onnxruntime.capi")
    validation = importlib.import_module("onnxruntime.capi.onnxruntime_validation")
    for name in (
        "_pybind_state",
        "onnxruntime_inference_collection",
        "onnxruntime_pybind11_state",
        "onnxruntime_validation",
    ):
        setattr(capi, name, importlib.import_module(f"onnxruntime.capi.{name}"))
    vars(module).update(capi=capi, onnxruntime_validation=validation)


_FINDER = _Finder()


def install_as_onnxruntime() -> None:
    """Let ``import onnxruntime``, and the modules below it, find hagane in this process.

    ``importlib.metadata`` gives for the version of ``onnxruntime`` that of the
    installed package, else that of the interface. A second call changes nothing.

    Raises:
        InvalidArgument: ``onnxruntime`` was imported before, and objects of it may be in use.
    """
    if _FINDER in sys.meta_path:
        return
    if "onnxruntime" in sys.modules:
        raise InvalidArgument(
            "install_as_onnxruntime: onnxruntime was imported already; call it first, before "
            "other packages are imported, or run the script with "
            "`hagane run-python --as-onnxruntime SCRIPT`"
        )
    sys.meta_path.insert(0, _FINDER)
