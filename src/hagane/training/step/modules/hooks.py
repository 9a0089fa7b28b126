"""Functions of a program around updates: hooks on gradients of parameters, and of optimizers.

Where there are some, the optimizer's own step follows the compiled gradients (``Rule.by_itself``).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from hagane.errors import InvalidArgument


def has_hooks(optimizer: Any, alone: str) -> bool:
    """Return whether functions are called around the step of an optimizer or with its gradients.

    Args:
        optimizer: Of PyTorch.
        alone: The setting of the compiled step under which gradients come to hooks as others than
            in PyTorch, if it has one; empty otherwise.

    Raises:
        InvalidArgument: It has one, and there are hooks on gradients.
    """
    found = False
    for number, group in enumerate(optimizer.param_groups):
        for index, parameter in enumerate(group["params"]):
            for hook in hooks_on(parameter):
                if alone:
                    raise InvalidArgument(
                        f"step: parameter {index} of group {number} of the optimizer has the hook "
                        f"'{name_of(hook)}' on its gradient, which is to see the gradient of one "
                        f"call, and with {alone} a compiled step has others: change gradients in a "
                        "hook of the optimizer (register_step_pre_hook), or leave the setting out"
                    )
                found = True
    module = sys.modules["torch.optim.optimizer"]
    return found or any(
        getattr(optimizer, f"_optimizer_step_{kind}_hooks", None)
        or getattr(module, f"_global_optimizer_{kind}_hooks", None)
        for kind in ("pre", "post")
    )


def follow(optimizer: Any, gradients: Mapping[int, Any]) -> None:
    """Let an optimizer follow gradients by its own step, and leave ``.grad`` as it was.

    Args:
        optimizer: Of PyTorch.
        gradients: Tensors by the identities of parameters; states may hold them.
    """
    import torch

    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    before = [p.grad for p in parameters]
    try:
        for parameter in parameters:
            parameter.grad = None
        with torch.no_grad():
            for parameter in reversed(parameters):  # as a way back comes to them, more or less
                if id(parameter) in gradients:
                    _arrive(parameter, gradients[id(parameter)])
        optimizer.step()
    finally:
        for parameter, grad in zip(parameters, before, strict=True):
            parameter.grad = grad


def _arrive(parameter: Any, gradient: Any) -> None:
    """Give a parameter its gradient, by way of the hooks on it."""
    for hook in list((parameter._backward_hooks or {}).values()):
        changed = hook(gradient)
        gradient = gradient if changed is None else changed
    parameter.grad = gradient
    for hook in list((getattr(parameter, "_post_accumulate_grad_hooks", None) or {}).values()):
        hook(parameter)


def hooks_on(parameter: Any) -> Iterator[Any]:
    """Yield the hooks on the gradient of a parameter."""
    yield from (getattr(parameter, "_backward_hooks", None) or {}).values()
    yield from (getattr(parameter, "_post_accumulate_grad_hooks", None) or {}).values()


def name_of(hook: Any) -> str:
    """Return the name of a hook as messages have it."""
    return str(getattr(hook, "__qualname__", type(hook).__qualname__))
