"""``torch.no_grad`` and its like: programs that compute without gradients for a while."""

from __future__ import annotations

from hagane.frontends.libraries.table import View
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.objects import Wrapped
from hagane.frontends.python.values.values import Value


def _need_flag(t: Core, value: Value, name: str) -> bool:
    if not isinstance(value, bool):
        t.fail("type", f"{name}: expected True or False, got {t.show(value)}")
    return value


_BASE = "utils._contextlib._DecoratorContextManager"


@TORCH.layer(_BASE)
class Mode:
    """A context with or without gradients, which is a decorator too."""

    @staticmethod
    def __enter__(t: Core, self: View) -> Value:
        content = t.heap[self.instance()]
        content["outer"] = (*content["outer"], t.emit.still)
        t.emit.enter(still=bool(content["still"]))
        return self.instance()

    @staticmethod
    def __exit__(t: Core, self: View, *_: Value) -> Value:
        content = t.heap[self.instance()]
        if content["outer"]:
            t.emit.still = content["outer"][-1]
            content["outer"] = content["outer"][:-1]
        return None

    @staticmethod
    def __call__(t: Core, self: View, function: Value) -> Value:
        """Return a function that runs within the context."""
        return Wrapped("within", function, (self.instance(),))


def _still(t: Core, still: bool) -> dict[str, Value]:
    return {"still": still, "outer": ()}


@TORCH.layer("no_grad", "autograd.no_grad", "autograd.grad_mode.no_grad",
             base=f"torch.{_BASE}")  # fmt: skip
class NoGrad:
    """A context without gradients."""

    @staticmethod
    def init(t: Core, orig_func: Value = None) -> dict[str, Value]:
        """Return the attributes."""
        return _still(t, still=True)


@TORCH.layer("enable_grad", "autograd.enable_grad", "autograd.grad_mode.enable_grad",
             base=f"torch.{_BASE}")  # fmt: skip
class EnableGrad:
    """A context with gradients."""

    @staticmethod
    def init(t: Core, orig_func: Value = None) -> dict[str, Value]:
        """Return the attributes."""
        return _still(t, still=False)


@TORCH.layer("inference_mode", "autograd.inference_mode", "autograd.grad_mode.inference_mode",
             base=f"torch.{_BASE}")  # fmt: skip
class InferenceMode:
    """A context without gradients, if it is to be one."""

    @staticmethod
    def init(t: Core, mode: Value = True) -> dict[str, Value]:
        """Return the attributes."""
        return _still(t, still=_need_flag(t, mode, "inference_mode"))


@TORCH.layer("set_grad_enabled", "autograd.set_grad_enabled",
             "autograd.grad_mode.set_grad_enabled")  # fmt: skip
class SetGradEnabled:
    """A context with gradients or without; it begins where it is made."""

    @staticmethod
    def init(t: Core, mode: Value) -> dict[str, Value]:
        """Return the attributes."""
        made = _still(t, still=not _need_flag(t, mode, "set_grad_enabled"))
        before = t.emit.still
        t.emit.enter(still=bool(made["still"]))
        return {**made, "outer": (before,)}

    @staticmethod
    def __enter__(t: Core, self: View) -> Value:
        t.emit.enter(still=bool(t.heap[self.instance()]["still"]))
        return self.instance()

    @staticmethod
    def __exit__(t: Core, self: View, *_: Value) -> Value:
        t.emit.still = t.heap[self.instance()]["outer"][-1]
        return None

    @staticmethod
    def __call__(t: Core, self: View, function: Value) -> Value:
        """Return a function that runs within the context, which ends here."""
        t.emit.still = t.heap[self.instance()]["outer"][-1]
        return Wrapped("within", function, (self.instance(),))


__all__ = ["Mode"]
