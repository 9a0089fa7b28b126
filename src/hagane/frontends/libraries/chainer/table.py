"""The table of Chainer."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from hagane.frontends.libraries.table import Table
from hagane.frontends.python.interpret.core import Core

VARIABLE = "chainer.Variable"
CHAINER = Table("chainer", VARIABLE)
CHAINER.constants.update({"chainer.__version__": "7.8.1"})
CHAINER.transparent.update(
    f"chainer.{name}"
    for name in (
        "using_device", "function_hooks.TimerHook",
        "backends.cuda.get_device_from_id", "cuda.get_device_from_id", "cuda.get_device",
        "backends.cuda.get_device", "static_graph", "static_code",
    )
)  # fmt: skip
_F = TypeVar("_F", bound=Callable[..., Any])


def function(*names: str) -> Callable[[_F], _F]:
    """Register a function of ``chainer.functions``; its ``t_`` is Chainer's ``t``."""

    def add(run: _F) -> _F:
        registered = _with_targets(run) if "t_" in inspect.signature(run).parameters else run
        CHAINER.function(*(f"functions.{name}" for name in names))(registered)
        return run

    return add


def _with_targets(run: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with ``t_`` named ``t``, as the program knows it."""
    parameters = list(inspect.signature(run).parameters.values())
    core = parameters[0].replace(name="core", kind=inspect.Parameter.POSITIONAL_ONLY)
    rest = [p.replace(name="t") if p.name == "t_" else p for p in parameters[1:]]

    @wraps(run)
    def renamed(core: Core, /, *arguments: Any, **keywords: Any) -> Any:
        if "t" in keywords:
            keywords["t_"] = keywords.pop("t")
        return run(core, *arguments, **keywords)

    renamed.__signature__ = inspect.Signature([core, *rest])  # type: ignore[attr-defined]
    return renamed
