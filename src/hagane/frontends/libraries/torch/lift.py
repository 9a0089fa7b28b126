"""Real tensors and layers of PyTorch as values of the program."""

from __future__ import annotations

import sys
from functools import partial
from types import FunctionType, MethodDescriptorType
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.libraries.naming import is_of_program
from hagane.frontends.libraries.torch.functions.networks.normalising import spectral_norm
from hagane.frontends.libraries.torch.functions.numbers.given import (
    given_distribution,
    given_transform,
)
from hagane.frontends.libraries.torch.recording import freeze
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.objects import (
    Bound,
    Computed,
    Instance,
    Wrapped,
)
from hagane.frontends.python.values.sizes import Size
from hagane.frontends.python.values.values import (
    MISSING,
    Device,
    DType,
    Library,
    Tensor,
    Value,
)
from hagane.ops.definition import Array

_MAX_KNOWN = 256


def lift_torch(core: Core, found: Any) -> Value:
    """Return the stand-in of a real object of PyTorch, ``MISSING`` if it has no special one."""
    torch = sys.modules["torch"]
    if isinstance(found, torch.Tensor):
        return _tensor(core, torch, found)
    if isinstance(found, torch.dtype):
        return TORCH.constants.get(str(found), MISSING)
    if isinstance(found, torch.device):
        return Device("cuda:0" if str(found) == "cuda" else str(found))
    if isinstance(found, torch.Size):
        return Size(int(n) for n in found)
    if isinstance(found, MethodDescriptorType):  # torch.Tensor.add
        is_tensors = issubclass(torch.Tensor, found.__objclass__)
        return Library(f"torch.Tensor.{found.__name__}") if is_tensors else MISSING
    if isinstance(found, torch._ops.OpOverload):
        return Library(f"torch.ops.{found.namespace}.{found._opname}.{found._overloadname}")
    if isinstance(found, torch._ops.OpOverloadPacket):
        return Library(f"torch.ops.{found._qualified_op_name.replace('::', '.')}")
    if isinstance(found, torch.amp.autocast_mode.autocast):
        settings = [found.device, TORCH.constants[str(found.fast_dtype)], found._enabled]
        return core.call(Library("torch.autocast"), settings, {})
    if isinstance(found, torch.utils._contextlib._DecoratorContextManager):
        mode, still = [found.mode] if hasattr(found, "mode") else [], core.emit.still
        try:
            return core.call(core.lift(type(found)), mode, {})
        finally:
            core.emit.still = still  # which set_grad_enabled changes where it is made
    if isinstance(found, torch.nn.Module):
        cls, computed = type(found), {}
        if torch.nn.utils.parametrize.is_parametrized(found):  # a class made for this object
            cls = cls.__bases__[0]
            computed = _computed(core, torch, found)
        name = core.tables.name_of(cls)
        if name is not None and name in TORCH.layers:
            made = Instance(core.heap.new(computed), Library(name), found)
            forward = getattr(cls, "forward", None)
            if is_of_program(forward, "torch"):  # as in torch.nn.Linear.forward = mine
                core.heap[made]["forward"] = Bound(core.lift(forward), made)
            return made
    if isinstance(found, torch.distributions.Distribution):
        return given_distribution(core, found)
    if isinstance(found, torch.distributions.Transform):
        return given_transform(core, found)
    return MISSING


def _computed(core: Core, torch: Any, found: Any) -> dict[str, Value]:
    """Return the parameters of a module that others compute: at each read where they may change."""
    if not (core.emit.living or (core.emit.builds and found.training)):
        return {n: _tensor(core, torch, getattr(found, n)) for n in found.parametrizations}

    def apply(part: Any, given: list[Value]) -> Value:
        # (Its source writes its vectors in place, which expressions around it might hold.)
        if isinstance(part, torch.nn.utils.parametrizations._SpectralNorm):
            return spectral_norm(core, core.lift(part), *given)
        return core.call(core.lift(part), given, {})

    def compute(parts: Any) -> Value:
        # As ``ParametrizationList.forward``.
        originals = ["original"] if parts.is_tensor else [
            f"original{i}" for i in range(parts.ntensors)
        ]  # fmt: skip
        made = apply(parts[0], [core.lift(getattr(parts, n)) for n in originals])
        for part in list(parts)[1:]:
            made = apply(part, [made])
        return made

    return {
        name: Computed(partial(compute, parts)) for name, parts in found.parametrizations.items()
    }


# What ``torch.func`` returns, by the function that makes it, and what that keeps.
_TRANSFORMS = {
    "vmap": ("func", "in_dims", "out_dims"),
    **dict.fromkeys(("grad", "grad_and_value", "jacrev", "jacfwd"), ("func", "argnums", "has_aux")),
}


def lift_transformed(core: Core, found: FunctionType) -> Value:
    """Return the stand-in of a function that ``torch.func`` made, ``MISSING`` for others."""
    maker, _, _ = found.__code__.co_qualname.partition(".")
    module = found.__globals__.get("__name__") or ""
    if maker not in _TRANSFORMS or not module.startswith("torch._functorch."):
        return MISSING
    cells = dict(zip(found.__code__.co_freevars, found.__closure__ or (), strict=True))
    if any(name not in cells for name in _TRANSFORMS[maker]):
        return MISSING
    kept = tuple(core.lift(cells[name].cell_contents) for name in _TRANSFORMS[maker])
    return Wrapped("partial", Library(f"torch.func.<{maker}>"), kept)


def _tensor(core: Core, torch: Any, found: Any) -> Tensor:
    dtype = TORCH.constants[str(found.dtype)]
    assert isinstance(dtype, DType)
    if core.emit.builds and found.layout is not torch.strided:
        told = f"a tensor of the layout {found.layout} is read, and graphs have dense ones"
        core.fail("capture", f"{told}: keep its .to_dense()")
    known = None
    small = found.numel() <= _MAX_KNOWN and found.device.type == "cpu"
    trained = isinstance(found, torch.nn.Parameter)
    if (
        small
        and not trained
        and not found.is_floating_point()
        and dtype.dtype != ir.DataType.BFLOAT16
        and found.layout is torch.strided
    ):
        known = np.asarray(found.detach().numpy())
    device = "cuda:0" if str(found.device) == "cuda" else str(found.device)
    made = core.emit.new(
        dtype.dtype,
        tuple(int(n) for n in found.shape),
        kind="torch.Tensor",
        known=known,
        device=device,
    )
    made.parameter = trained
    if trained != found.requires_grad:  # a frozen parameter, or a tensor that is trained
        freeze(core)
    if known is not None:
        made.value = core.emit.settle(made).value
    core.emit.keep(made, found, lambda: _content(torch, found))
    return made


def _content(torch: Any, found: Any) -> Array:
    """Return the content of a tensor as an array."""
    plain = found.detach().cpu()
    if plain.dtype == torch.bfloat16:
        return np.asarray(plain.view(torch.int16).numpy()).view(ir.DataType.BFLOAT16.numpy())
    return np.asarray(plain.numpy())
