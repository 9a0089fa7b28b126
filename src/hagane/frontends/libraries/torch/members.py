"""Members of modules that PyTorch refuses to set, and tensors that its layers do not take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.objects import Instance
from hagane.frontends.python.values.values import Tensor, Value

if TYPE_CHECKING:
    from hagane.frontends.libraries.objects import Objects

_MODULE = "torch.nn.Module"
# Losses whose first setting is a tensor, and layers that take whatever their modules take.
_WEIGHED = ("NLLLoss", "NLLLoss2d", "CrossEntropyLoss", "BCELoss", "BCEWithLogitsLoss",
            "MultiLabelSoftMarginLoss")  # fmt: skip
_PASSING = frozenset(
    ("Module", "Sequential", "Identity", "DataParallel", "DistributedDataParallel", "ModuleList",
     "ModuleDict")
)  # fmt: skip


def refuse_member(tables: Objects, core: Core, receiver: Instance, name: str, value: Value) -> None:
    """Refuse an attribute that ``Module.__setattr__`` refuses."""
    if receiver.host is not None:
        return
    trained = isinstance(value, Tensor) and value.parameter
    module = isinstance(value, Instance) and _MODULE in tables.libraries_of(core, value)
    held = core.heap[receiver].get(name)
    replaced = isinstance(held, Tensor) and held.parameter and isinstance(value, Tensor)
    if not (trained or module or replaced) or _MODULE not in tables.libraries_of(core, receiver):
        return
    message, recorded = "", core.emit.recorded
    unready: set[int] = set() if recorded is None else recorded.unready
    if (trained or module) and receiver.key in unready:
        unready.discard(receiver.key)  # one mistake for all of its members
        kind = "parameter" if trained else "module"
        message = (
            f"AttributeError: '{name}' is a {kind}, which a module cannot hold before "
            "Module.__init__() is called"
        )
        remedy = "begin __init__ with super().__init__()"
    elif replaced and not trained:
        message = (
            f"TypeError: '{name}' is a parameter: expected nn.Parameter or None, got "
            f"{core.show(value)}"
        )
        remedy = "wrap it in nn.Parameter, or copy_() it under torch.no_grad()"
    if message:
        core.heap[receiver][name] = value
        raise CheckError("attribute" if "Attr" in message else "type", message, remedy=remedy)


def refuse_arrays(
    core: Core, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value]
) -> None:
    """Refuse arrays of NumPy where functions and layers for networks take tensors."""
    parts = name.split(".")
    if core.emit.builds or not core.runs_modules:  # what an input's type names is a guess
        return
    if name[:9] != "torch.nn." or parts[2] in ("init", "utils", "parameter"):
        return
    owner = parts[-2] if parts[-1] == "forward" else parts[-1]
    if owner in _PASSING or not (parts[-1] == "forward" or parts[2] == "functional"):
        return
    for value in (*arguments, *keywords.values()):
        if isinstance(value, Tensor) and value.kind == "numpy.ndarray":
            core.fail("type", f"{name}: expected torch.Tensor, got {core.show(value)}", value,
                      remedy="make it one with torch.from_numpy(x)")  # fmt: skip


def refuse_data(core: Core, name: str, arguments: Sequence[Value]) -> None:
    """Refuse the data of a loss where its class takes settings."""
    last = name.rpartition(".")[2]
    tensors = [value for value in arguments if isinstance(value, Tensor)]
    if core.emit.builds or not last.endswith("Loss") or len(tensors) <= (last in _WEIGHED):
        return
    core.fail("call", f"{last} takes settings, got {', '.join(map(core.show, tensors))}", *tensors,
              remedy=f"make it first, then call it: {last}()(input, target)")  # fmt: skip


__all__ = ["refuse_arrays", "refuse_data", "refuse_member"]
