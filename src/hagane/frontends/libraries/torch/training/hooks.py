"""Hooks of modules: they run around ``forward``, and may change its arguments and result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hagane.frontends.libraries.table import View
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import MISSING, Instance, Library, Unknown, Value

_MODULE = "torch.nn.Module"
_HANDLE = "torch.utils.hooks.RemovableHandle"
BEFORE, AFTER = "<hooks before>", "<hooks after>"


@TORCH.layer("utils.hooks.RemovableHandle")
class Handle:
    """The handle that removes a hook."""

    @staticmethod
    def remove(t: Core, self: View) -> Value:
        """Remove the hook."""
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


@TORCH.method("register_hook", "register_post_accumulate_grad_hook")
def register_hook(t: Core, self: Value, hook: Value) -> Value:
    """Let a function see the gradient, which has the type of the tensor."""
    gradient = t.emit.new(self.dtype, self.shape, kind=self.kind, device=self.device)
    if not t.emit.builds:
        t.call(hook, [gradient], {})
    return Instance(t.heap.new({}), Library(_HANDLE))


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
    unread = [h for k, h in real.items() if k not in kept and not _is_weight_norm(h)]
    if t.emit.builds and unread:
        inner = unread[0]
        t.fail(
            "capture",
            f"the {type(host).__name__} has a forward hook of PyTorch "
            f"({getattr(inner, '__qualname__', type(inner).__name__)}), which is not followed; "
            "remove it first, as torch.nn.utils.remove_spectral_norm does",
        )
    return (*((key, t.lift(hook), key in spread) for key, hook in kept.items()), *own)


def _is_weight_norm(hook: object) -> bool:
    """Whether a hook is the one of ``torch.nn.utils.weight_norm``."""
    cls = type(hook)
    return (cls.__module__, cls.__name__) == ("torch.nn.utils.weight_norm", "WeightNorm")


def run(
    t: Core,
    module: Instance,
    method: Value,
    arguments: Sequence[Value],
    keywords: Mapping[str, Value],
) -> Value:
    """Call ``forward`` between its hooks."""
    hooks = getattr(module.host, "_forward_pre_hooks", None)
    norms = [hook for hook in (hooks or {}).values() if _is_weight_norm(hook)]
    if not norms or not t.emit.builds:
        return _run(t, module, method, arguments, keywords)
    # Weights follow from their lengths and directions in each call; no call changes what they are.
    for hook in norms:
        g, v = (t.attribute(module, f"{hook.name}_{part}") for part in "gv")
        weight = t.call_library("torch._weight_norm", [v, g, hook.dim])
        t.heap[module][hook.name] = weight
    try:
        return _run(t, module, method, arguments, keywords)
    finally:
        for hook in norms:
            t.heap[module].pop(hook.name, None)


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
