"""Real objects of libraries that are imported: their names, their stand-ins."""

from __future__ import annotations

import sys
from functools import cached_property
from types import FunctionType, MethodDescriptorType, WrapperDescriptorType
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.libraries.naming import READ, Names
from hagane.frontends.python.values.objects import Instance
from hagane.frontends.python.values.values import (
    MISSING,
    DType,
    Library,
    Tensor,
    Value,
)

if TYPE_CHECKING:
    from hagane.frontends.python.interpret.core import Core

# Functions that the interpreter itself knows, because they take functions or decide branches.
_SPECIAL = ("torch._assert", "torch._assert_async", "torch.utils.checkpoint.checkpoint")
# The objects of each module that a table is about, by name; None may be loaded later.
_RESOLVED: dict[Any, dict[str, Any]] = {}


class RealNames(Names):
    """Real functions, classes, tensors and layers, as the tables have them."""

    @cached_property
    def _real_names(self) -> dict[int, tuple[Any, str]]:
        names: dict[int, tuple[Any, str]] = {}
        for root in self.tables:
            if _module_of(root) is not sys.modules.get("hagane"):
                self._add_names(names, root)
        return names

    @cached_property
    def _own_names(self) -> dict[int, tuple[Any, str]]:
        """The names of what hagane has in Chainer's place, most of it imported when it is used."""
        names: dict[int, tuple[Any, str]] = {}
        for root in self.tables:
            if _module_of(root) is sys.modules.get("hagane"):
                self._add_names(names, root)
        return names

    def _add_names(self, names: dict[int, tuple[Any, str]], root: str) -> None:
        module, table = _module_of(root), self.tables[root]
        if module is None or root in READ:
            return
        known = _RESOLVED.setdefault(module, {})
        wanted = [*table.functions, *table.layers, *table.bases.values(), table.tensor]
        for name in [*wanted, *table.transparent, *_SPECIAL]:
            found = known.get(name)
            if found is None:
                found = known[name] = _resolve(name)
            if found is not None:
                names.setdefault(id(found), (found, name))

    def name_of(self, found: Any) -> str | None:
        """Return the name under which a table knows a real function or class."""
        if not callable(found) or isinstance(found, Tensor):
            return None
        known = self._real_names.get(id(found))
        if known is None and _module_named(found).startswith("hagane"):
            known = self._own_names.get(id(found))
        return known[1] if known is not None and known[0] is found else None

    def lift_object(self, core: Core, found: Any) -> Value:
        """Return the stand-in of a real tensor, layer, element type or device."""
        module = type(found).__module__  # of a class that computes it, no text
        root = module.partition(".")[0] if isinstance(module, str) else ""
        if isinstance(found, FunctionType | MethodDescriptorType | WrapperDescriptorType) and (
            named := self._method_of_tensor(found)
        ):
            return Library(named)
        if isinstance(found, FunctionType) and "torch._functorch" in sys.modules:
            from hagane.frontends.libraries.torch.lift import lift_transformed

            return lift_transformed(core, found)
        if "torch" in sys.modules and (
            isinstance(found, MethodDescriptorType)
            or root == "torch"
            or isinstance(found, sys.modules["torch"].Tensor)
        ):
            from hagane.frontends.libraries.torch.lift import lift_torch

            return lift_torch(core, found)
        if isinstance(found, np.dtype) and found.kind in "biufc":
            return DType(ir.DataType.from_numpy(found), "numpy")
        if root not in ("chainer", "hagane", "einops"):
            return MISSING
        if hasattr(found, "array") and hasattr(found, "creator_node"):
            return self.lift_array(core, found, "chainer.Variable")
        known = self.name_of(type(found))
        tables = (self.tables[name] for name in ("chainer", "einops"))
        if known is not None and any(known in table.layers for table in tables):
            return Instance(core.heap.new({}), Library(known), found)
        return MISSING

    def _method_of_tensor(self, found: Any) -> str:
        """Return the name of a method of PyTorch's own that tensors have, empty for others."""
        torch, name = sys.modules.get("torch"), found.__name__
        table = self.tables.get("torch")  # programs of probabilities have none
        if torch is None or table is None or name not in table.methods["torch.Tensor"]:
            return ""
        if isinstance(found, FunctionType):
            is_own = found.__globals__.get("__name__") == "torch._tensor"
            is_own = is_own and vars(torch.Tensor).get(name) is found
        else:
            is_own = found.__objclass__ in torch.Tensor.__mro__[:-1]
        return f"torch.Tensor.{name}" if is_own else ""

    def lift_array(self, core: Core, found: Any, kind: str) -> Value:
        """Return a tensor for a real array; small ones keep their content."""
        from hagane.frontends.libraries.arrays import lift_array

        return lift_array(core, found, kind)


def _module_of(root: str) -> Any:
    """Return the module that a table is about, if it is loaded; hagane succeeds Chainer."""
    if root == "chainer" and root not in sys.modules and "hagane.nn" in sys.modules:
        return sys.modules["hagane"]
    return sys.modules.get(root)


def _module_named(found: Any) -> str:
    """Return the name of the module of a real object."""
    try:
        return str(getattr(found, "__module__", ""))
    except Exception:  # of a __getattr__ that raises, as those of packages that are not there do
        return ""


def _resolve(name: str) -> Any:
    parts = name.split(".")
    found: Any = _module_of(parts[0])
    for part in parts[1:]:
        if found is not None and found is sys.modules.get("torch") and part not in vars(found):
            # Its compiler takes a second to import, and nobody has objects of it before.
            found = sys.modules.get(f"torch.{part}")
        else:
            found = getattr(found, part, None)
        if found is None:
            return None
    return found


__all__ = ["RealNames"]
