"""Additions to modules and optimizers of PyTorch that a compiled step would pass over."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hagane.errors import InvalidArgument
from hagane.training.step.modules.hooks import hooks_on, name_of


def check_groups(optimizer: Any) -> None:
    """Fail if functions are called around all modules, or an optimizer has a parameter twice.

    Raises:
        InvalidArgument: It is so; the hook or the group is named.
    """
    _check_global_hooks()
    for number, group in enumerate(optimizer.param_groups):
        if len(set(map(id, group["params"]))) < len(group["params"]):
            raise InvalidArgument(
                f"step: group {number} of the optimizer has a parameter twice, which would be "
                "updated twice: list each parameter once"
            )


def check_module_hooks(modules: Iterable[Any], root: Any, prefix: str) -> None:
    """Fail if a module has hooks on gradients.

    Args:
        modules: Those that the loss calls.
        root: The module that has them, or most of them.
        prefix: Its name.

    Raises:
        InvalidArgument: There is such a hook; it is named.
    """
    for module in modules:
        for kind, hooks in (("", module._backward_hooks), ("_pre", module._backward_pre_hooks)):
            for hook in hooks.values():
                full = "" if not kind and module._is_full_backward_hook is False else "full_"
                raise InvalidArgument(
                    f"step: the module '{_path(module, root, prefix)}' has the hook "
                    f"'{name_of(hook)}' (register_{full}backward{kind}_hook), which a compiled "
                    "step does not call: remove it"
                )


def check_parameter_hooks(
    modules: Iterable[Any], root: Any, prefix: str, groups: Sequence[Mapping[str, Any]]
) -> None:
    """Fail if a parameter that the optimizer does not have has hooks on its gradient.

    Args:
        modules: Those that the loss calls.
        root: The module that has them, or most of them.
        prefix: Its name.
        groups: Of the optimizer.

    Raises:
        InvalidArgument: There is such a hook; it is named.
    """
    for module in modules:
        for name, parameter in module._parameters.items():
            if parameter is None or not parameter.requires_grad:
                continue
            for hook in hooks_on(parameter):
                if not any(parameter is p for group in groups for p in group["params"]):
                    raise InvalidArgument(
                        f"step: the parameter '{_path(module, root, prefix)}.{name}' has the hook "
                        f"'{name_of(hook)}' on its gradient, and the optimizer does not have the "
                        "parameter, so that a compiled step has no gradient of it: remove the "
                        "hook, or set requires_grad to False"
                    )


def _path(module: Any, root: Any, prefix: str) -> str:
    """Return the path of a module, the name of its class if the root does not have it."""
    found = (path for path, part in root.named_modules(prefix=prefix) if part is module)
    return next(found, type(module).__name__)


def check_arguments(arguments: Mapping[str, Any], groups: Sequence[Mapping[str, Any]]) -> None:
    """Fail if an argument of a step is a parameter of the optimizer.

    Args:
        arguments: By name.
        groups: Of the optimizer.

    Raises:
        InvalidArgument: One is; it is named.
    """
    for name, given in arguments.items():
        if not getattr(given, "requires_grad", False):
            continue
        for number, group in enumerate(groups):
            if any(given is parameter for parameter in group["params"]):
                raise InvalidArgument(
                    f"step: the argument '{name}' is a parameter of group {number} of the "
                    "optimizer, and a compiled step trains no arguments: make it an attribute of "
                    "the module, or let the loss read it by a name outside"
                )


def check_memory(arrays: Iterable[tuple[str, Any]], remedy: str) -> None:
    """Fail if a tensor does not lie in this machine's memory as a step reads it.

    Args:
        arrays: Tensors and arrays with their paths.
        remedy: How one on another device would, in words.

    Raises:
        InvalidArgument: One does not; it is named.
    """
    for name, given in arrays:
        device, layout = getattr(given, "device", "cpu"), str(getattr(given, "layout", ""))
        if type(given).__name__.startswith("Uninitialized"):
            raise InvalidArgument(
                f"step: '{name}' has no sizes yet, as those of a lazy module before its first "
                "call: call the module once before the first step"
            )
        if not isinstance(device, str) and device.type != "cpu":
            raise InvalidArgument(
                f"step: '{name}' lies on the device '{device}', and a compiled step computes on "
                f"the CPU: {remedy}"
            )
        if layout not in ("", "torch.strided"):
            raise InvalidArgument(
                f"step: '{name}' is a tensor of the layout {layout}, and a compiled step takes "
                "dense ones: pass its .to_dense()"
            )


def check_computed(
    given: Iterable[tuple[str, Any]],
    groups: Sequence[Mapping[str, Any]],
    foreign: Sequence[str],
    remedy: str,
) -> None:
    """Fail if gradients would go from a tensor back to parameters that the optimizer has.

    Args:
        given: Tensors and arrays by their names in a message: arguments, or others that the loss
            reads.
        groups: Of the optimizer.
        foreign: Parameters of the optimizer that the loss does not read, in words.
        remedy: What to do instead, in words.

    Raises:
        InvalidArgument: One was computed with gradients of such a parameter; both are named.
    """
    for name, tensor in given:
        made = getattr(tensor, "grad_fn", None)
        if made is None:
            continue
        leaves, whole = _leaves(made)
        reached = next(
            (
                f"parameter {index} of group {number} of the optimizer"
                for number, group in enumerate(groups)
                for index, parameter in enumerate(group["params"])
                if id(parameter) in leaves
            ),
            None,
        )
        if reached is None and not whole and foreign:
            reached = foreign[0]
        if reached is not None:
            raise InvalidArgument(
                f"step: {name} was computed with gradients ({type(made).__name__}) before the "
                f"call, from {reached}; a compiled step has no gradients beyond what the loss "
                f"computes: {remedy}"
            )


def _leaves(made: Any) -> tuple[set[int], bool]:
    """Return the identities of the leaves behind a node of gradients, and whether it tells all."""
    waiting, seen, leaves, whole = [made], {made}, set[int](), True
    while waiting:
        node = waiting.pop()
        if (leaf := getattr(node, "variable", None)) is not None:
            leaves.add(id(leaf))
        whole &= type(node).__name__ != "CheckpointFunctionBackward"  # which hides parameters
        for behind, _ in node.next_functions:
            if behind is not None and behind not in seen:
                seen.add(behind)
                waiting.append(behind)
    return leaves, whole


def _check_global_hooks() -> None:
    """Raise ``InvalidArgument`` if hooks of PyTorch run for all modules."""
    module = sys.modules.get("torch.nn.modules.module")
    for kind in ("forward_pre", "forward", "backward_pre", "backward"):
        for hook in getattr(module, f"_global_{kind}_hooks", {}).values():
            raise InvalidArgument(
                f"step: PyTorch has the hook '{name_of(hook)}' for all modules "
                f"(register_module_{'full_' * kind.startswith('back')}{kind}_hook), which a "
                "compiled step does not call: remove it"
            )
