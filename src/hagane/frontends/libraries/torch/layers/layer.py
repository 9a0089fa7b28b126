"""The form in which the layers of ``torch.nn`` are declared."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hagane.frontends.libraries.table import View
from hagane.frontends.libraries.torch.operands import (
    FLOAT,
    device_of,
    dtype_of,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import (
    Device,
    DType,
    Tensor,
    Value,
)
from hagane.symbolic import Dim

_MODULE = "torch.nn.Module"


def weight(t: Core, *shape: Dim, dtype: Value = None, device: Value = None) -> Tensor:
    """Return a new parameter."""
    x = t.emit.new(dtype_of(dtype, FLOAT), shape, kind="torch.Tensor", device=device_of(device))
    x.parameter = True
    return x


def buffer(t: Core, *shape: Dim, dtype: Value = None, device: Value = None) -> Tensor:
    """Return a new tensor that is not trained."""
    place = device_of(device)
    return t.emit.new(dtype_of(dtype, FLOAT), shape, kind="torch.Tensor", device=place)


def made_as(x: Tensor) -> dict[str, Value]:
    """Return the arguments that make parameters of an element type and a place."""
    return {"dtype": DType(x.dtype), "device": Device(x.device)}


def layer(*names: str) -> Callable[[Any], Any]:
    """Register a layer of ``torch.nn``."""
    return TORCH.layer(*(f"nn.{name}" for name in names), base=_MODULE)


def functional(
    name: str, function: str, defaults: dict[str, Value] | None = None, *names: str,
    training: bool = False, kept: Mapping[str, str] | None = None, by_name: Sequence[str] = (),
    fixed: Mapping[str, Value] | None = None, shown: Mapping[str, Value] | None = None,
) -> None:  # fmt: skip
    """Register a layer that stores arguments and passes them to a function.

    Args:
        name: The layer.
        function: The function, which gets the input first.
        defaults: The constructor's arguments with their defaults, in order; ``...`` for none.
        names: The function's names for them where they differ.
        training: Whether to pass whether the layer is in training.
        kept: Names of attributes by the constructor's arguments, where they differ.
        by_name: The constructor's arguments that have to be named.
        fixed: What the function is always given, which is an attribute, too.
        shown: Further attributes.
    """
    given, kept, fixed = defaults or {}, kept or {}, fixed or {}
    parameters = [inspect.Parameter("t", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    for key, default in given.items():
        parameters.append(
            inspect.Parameter(
                key,
                inspect.Parameter.KEYWORD_ONLY
                if key in by_name
                else inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=inspect.Parameter.empty if default is ... else default,
            )
        )
    signature = inspect.Signature(parameters)

    def init(t: Core, *arguments: Value, **keywords: Value) -> dict[str, Value]:
        bound = signature.bind(t, *arguments, **keywords)
        bound.apply_defaults()
        own = {kept.get(k, k): value for k, value in bound.arguments.items() if k != "t"}
        return {**own, **fixed, **(shown or {})}

    init.__signature__ = signature  # type: ignore[attr-defined]

    def forward(t: Core, self: View, *inputs: Value, **keywords: Value) -> Value:
        passed = {
            target: getattr(self, name) if default is ... else self.get(name, default)
            for (key, default), target in zip(given.items(), names or given, strict=True)
            if target and (name := kept.get(key, key))
        }
        if training:
            passed["training"] = self.get("training", True)
        return t.call_library(f"torch.{function}", list(inputs), {**fixed, **passed, **keywords})

    layer(name)(type(name, (), {"init": staticmethod(init), "forward": staticmethod(forward)}))
