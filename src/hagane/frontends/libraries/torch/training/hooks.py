"""Hooks of modules: they run around ``forward``, and may change its arguments and result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import onnx_ir as ir

from hagane.frontends.libraries.memory.writing import rename
from hagane.frontends.libraries.table import View
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.libraries.torch.training.gradients import fitted
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.memory import memory_of, share
from hagane.frontends.python.values.objects import Instance
from hagane.frontends.python.values.values import (
    MISSING,
    Library,
    Tensor,
    Unknown,
    Value,
)
from hagane.ops.builder import interpreting
from hagane.ops.control.own_gradient import HOOKED, own_gradient

_MODULE = "torch.nn.Module"
_HANDLE = "torch.utils.hooks.RemovableHandle"
_ON_TENSOR = "<on a tensor>"
BEFORE, AFTER = "<hooks before>", "<hooks after>"


@TORCH.layer("utils.hooks.RemovableHandle")
class Handle:
    """The handle that removes a hook."""

    @staticmethod
    def remove(t: Core, self: View) -> Value:
        """Remove the hook."""
        if _ON_TENSOR in t.heap[self.instance()] and t.emit.builds:
            t.fail("capture", "register_hook: a hook that is removed in the loss is not followed",
                   remedy="leave it, as a tensor of the loss is gone with it")  # fmt: skip
        owner, kind, key = (t.heap[self.instance()].get(n) for n in ("owner", "kind", "key"))
        if isinstance(owner, Instance):
            left = tuple(one for one in t.heap[owner].pop(kind, ()) if one[0] != key)
            if left:
                t.heap[owner][kind] = left
        return None

    @staticmethod
    def __enter__(t: Core, self: View) -> Value:
        return self.instance()

    @staticmethod
    def __exit__(t: Core, self: View, *_: Value) -> Value:
        return Handle.remove(t, self)


@TORCH.method("__call__", "_call_impl", "_wrapped_call_impl", of=_MODULE)
def called(t: Core, self: Value, *arguments: Value, **keywords: Value) -> Value:
    """Call ``forward``, between the hooks."""
    assert isinstance(self, Instance)
    own = t.own_attribute(self, "forward")
    method = t.method_of(self, "forward") if own is MISSING else own
    if method is MISSING:
        name = self.cls.name.rpartition(".")[2]
        t.fail("call", f"NotImplementedError: {name} has no forward, which a call of it runs",
               remedy="define it, or call its items")  # fmt: skip
    return run(t, self, method, arguments, keywords)


def _added(t: Core, self: Value, kind: str, hook: Value, keywords: bool, first: bool) -> Value:
    content = {"owner": self, "kind": kind}
    made = Instance(t.heap.new(content), Library(_HANDLE))
    content["key"] = made.key
    t.heap[made]["key"] = made.key
    held = t.heap[self].get(kind, ())
    own = ((made.key, hook, keywords),)
    t.heap[self][kind] = (*own, *held) if first else (*held, *own)
    return made


@TORCH.method("register_forward_pre_hook", of=_MODULE)
def register_forward_pre_hook(
    t: Core, self: Value, hook: Value, *, prepend: Value = False, with_kwargs: Value = False
) -> Value:
    """Let a function run before ``forward``."""
    return _added(t, self, BEFORE, hook, with_kwargs is True, prepend is True)


@TORCH.method("register_forward_hook", of=_MODULE)
def register_forward_hook(
    t: Core, self: Value, hook: Value, *, prepend: Value = False, with_kwargs: Value = False,
    always_call: Value = False,
) -> Value:  # fmt: skip
    """Let a function run after ``forward``."""
    return _added(t, self, AFTER, hook, with_kwargs is True, prepend is True)


@TORCH.method("register_backward_hook", "register_full_backward_hook",
              "register_full_backward_pre_hook", "register_load_state_dict_pre_hook",
              "register_load_state_dict_post_hook", "register_state_dict_pre_hook",
              "register_state_dict_post_hook", "_register_load_state_dict_pre_hook",
              "_register_state_dict_hook", of=_MODULE)  # fmt: skip
def other_hook(t: Core, self: Value, hook: Value, *_: Value, **__: Value) -> Value:
    """Return a handle: gradients and states are not followed."""
    return Instance(t.heap.new({}), Library(_HANDLE))


@TORCH.method("register_post_accumulate_grad_hook")
def register_post_accumulate_grad_hook(t: Core, self: Value, hook: Value) -> Value:
    """Let a function see a parameter after its gradient has come."""
    gradient = t.emit.new(self.dtype, self.shape, kind=self.kind, device=self.device)
    t.call(hook, [gradient], {})
    return Instance(t.heap.new({}), Library(_HANDLE))


@TORCH.method("register_hook")
def register_hook(t: Core, self: Value, hook: Value) -> Value:
    """Let a function see, and perhaps change, the gradient, which has the type of the tensor.

    In a loss it is the gradient of all that is computed from the tensor: what has its name from
    here on has the same content, and a gradient of its own.
    """
    handle = Instance(t.heap.new({_ON_TENSOR: True}), Library(_HANDLE))
    if not t.emit.builds:
        gradient = t.emit.new(self.dtype, self.shape, kind=self.kind, device=self.device)
        t.call(hook, [gradient], {})
        return handle
    value = t.emit.value_of(self)
    _check_hooked(t, value)
    bare, earlier = value.meta.get(HOOKED, (self, ()))
    hooks = (*earlier, hook)

    def backward(gradient: Tensor) -> list[Tensor]:
        for one in hooks:
            gradient = replace(gradient, kind=self.kind, device=self.device)
            found = t.settle(t.call(one, [gradient], {}))
            if found is not None:
                gradient = fitted(t, "register_hook", found, self)
        return [gradient]

    with interpreting(t.emit):
        (made,) = own_gradient([bare], [bare], backward)
    made = replace(made, kind=self.kind, device=self.device)
    t.emit.value_of(made).meta[HOOKED] = bare, hooks
    share(made.value, memory_of(self.value))
    rename(t, {self.value: made})
    return handle


def _check_hooked(t: Core, value: ir.Value) -> None:
    """Refuse a hook on the gradient of a tensor that a graph cannot give another one."""
    remedy = ""
    if t.emit.training is None:
        told, remedy = "is followed in compiled steps of training alone", "remove it"
    elif value.producer() is None:
        told, remedy = (
            "of an argument or a parameter is not followed in a loss",
            ("register one on a parameter before the step, or one on what is computed from it"),
        )
    elif any(node.op_type not in ("Shape", "Size") for node, _ in value.uses()):
        told, remedy = "that something was computed from before is not followed", (
            "register it where the tensor is made")  # fmt: skip
    else:
        return
    t.fail("capture", f"register_hook: a hook on the gradient of a tensor {told}", remedy=remedy)


def held(t: Core, module: Instance, kind: str) -> Sequence[tuple[Value, Value, bool]]:
    """Return the hooks of a module, those of a real one included."""
    own: tuple[tuple[Value, Value, bool], ...] = t.heap[module].get(kind, ())
    host = module.host
    if host is None or not hasattr(host, "_forward_hooks"):
        return own
    real = host._forward_pre_hooks if kind == BEFORE else host._forward_hooks
    if not real:
        return own
    spread = (
        host._forward_pre_hooks_with_kwargs if kind == BEFORE else host._forward_hooks_with_kwargs
    )
    # Those of PyTorch itself compute weights: types are known without them.
    kept = {
        key: hook
        for key, hook in real.items()
        if not (getattr(hook, "__module__", None) or "").startswith("torch.")
    }
    unread = [h for k, h in real.items() if k not in kept and not _computes(h)]
    if t.emit.builds and unread:
        inner = unread[0]
        t.fail(
            "capture",
            f"the {type(host).__name__} has a forward hook of PyTorch "
            f"({getattr(inner, '__qualname__', type(inner).__name__)}), which is not followed; "
            "remove it first, as torch.nn.utils.remove_spectral_norm does",
        )
    return (*((key, t.lift(hook), key in spread) for key, hook in kept.items()), *own)


def _computes(hook: object) -> str:
    """Return which hook of PyTorch's it is: ``norm`` or ``mask`` of weights, empty for another."""
    for cls in type(hook).__mro__:
        if (cls.__module__, cls.__name__) == ("torch.nn.utils.weight_norm", "WeightNorm"):
            return "norm" if cls is type(hook) else ""
        if (cls.__module__, cls.__name__) == ("torch.nn.utils.prune", "BasePruningMethod"):
            own = all(getattr(type(hook), n) is getattr(cls, n) for n in ("__call__", "apply_mask"))
            return "mask" if own else ""
    return ""


def _weight(t: Core, module: Instance, hook: Any) -> tuple[str, Value]:
    """Return the name of a weight that a hook computes, and its value."""
    if _computes(hook) == "norm":
        g, v = (t.attribute(module, f"{hook.name}_{part}") for part in "gv")
        return hook.name, t.call_library("torch._weight_norm", [v, g, hook.dim])
    name = hook._tensor_name
    mask, whole = (t.attribute(module, f"{name}_{part}") for part in ("mask", "orig"))
    return name, t.call_library("torch.mul", [t.op("CastLike", mask, whole), whole])


def run(
    t: Core,
    module: Instance,
    method: Value,
    arguments: Sequence[Value],
    keywords: Mapping[str, Value],
) -> Value:
    """Call ``forward`` between its hooks."""
    hooks = getattr(module.host, "_forward_pre_hooks", None)
    computing = [hook for hook in (hooks or {}).values() if _computes(hook)]
    if not computing or not t.emit.builds:
        return _run(t, module, method, arguments, keywords)
    # Weights follow from others in each call, which needs not know what they were; only training
    # changes them from call to call.
    weights = dict(_weight(t, module, hook) for hook in computing)
    t.heap[module].update(weights)
    try:
        return _run(t, module, method, arguments, keywords)
    finally:
        for name in () if t.emit.training is not None else weights:
            t.heap[module].pop(name, None)


def _run(
    t: Core,
    module: Instance,
    method: Value,
    arguments: Sequence[Value],
    keywords: Mapping[str, Value],
) -> Value:
    named = dict(keywords)
    for _, hook, spread in held(t, module, BEFORE):
        found = t.settle(
            t.call(hook, [module, tuple(arguments), *([t.new_dict(named)] if spread else [])], {})
        )
        if isinstance(found, Unknown):
            return found
        if found is None:
            continue
        if spread and isinstance(found, tuple) and len(found) == 2:
            arguments, named = found[0], dict(t.mapping(found[1]) or {})
        else:
            arguments = found if type(found) is tuple else (found,)
    result = t.call(method, list(arguments), named)
    for _, hook, spread in held(t, module, AFTER):
        middle = [t.new_dict(named)] if spread else []
        found = t.settle(t.call(hook, [module, tuple(arguments), *middle, result], {}))
        result = result if found is None else found
    return result
