"""Additions to modules and optimizers of PyTorch that a compiled step would pass over."""

from __future__ import annotations

from typing import Any

from hagane.errors import InvalidArgument


def check_hooks(optimizer: Any) -> None:
    """Fail if an optimizer or one of its parameters calls functions around its step.

    Raises:
        InvalidArgument: There is such a hook; it is named.
    """
    for kind in ("pre", "post"):
        for hook in getattr(optimizer, f"_optimizer_step_{kind}_hooks", {}).values():
            raise InvalidArgument(
                f"step: the optimizer has the hook '{_name(hook)}' (register_step_{kind}_hook), "
                "which a compiled step does not call: remove it; gradients are clipped by "
                "hagane.compile(loss, optimizer, max_norm=...)"
            )
    for number, group in enumerate(optimizer.param_groups):
        for index, parameter in enumerate(group["params"]):
            hooks = getattr(parameter, "_backward_hooks", None) or {}
            more = getattr(parameter, "_post_accumulate_grad_hooks", None) or {}
            for hook in (*hooks.values(), *more.values()):
                raise InvalidArgument(
                    f"step: parameter {index} of group {number} of the optimizer has the hook "
                    f"'{_name(hook)}' on its gradient, which a compiled step does not call: "
                    "remove it"
                )


def check_parametrizations(module: Any, prefix: str) -> None:
    """Fail if a parameter of a module is computed from others, as by ``weight_norm``.

    Raises:
        InvalidArgument: One is, and depends on something that is trained; it is named.
    """
    for path, part in module.named_modules(prefix=prefix):
        for name, computed in (getattr(part, "parametrizations", None) or {}).items():
            if any(parameter.requires_grad for parameter in computed.parameters()):
                kinds = ", ".join(type(one).__name__.lstrip("_") for one in computed)
                raise InvalidArgument(
                    f"step: '{path}.{name}' is computed by {kinds} "
                    "(torch.nn.utils.parametrizations), through which a compiled step has no "
                    "gradient: compute it in forward, or call "
                    f"torch.nn.utils.parametrize.remove_parametrizations(module, {name!r})"
                )


def _name(hook: Any) -> str:
    return str(getattr(hook, "__qualname__", type(hook).__qualname__))
