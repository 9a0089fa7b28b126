"""``torch.nn.init``, and functions over parameters that return them unchanged."""

from __future__ import annotations

import inspect
import types
from typing import Union, get_args, get_origin

from hagane.frontends.libraries.torch.operands import FLOAT, need_tensor
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.objects import Instance
from hagane.frontends.python.values.values import (
    Host,
    Many,
    Real,
    Tensor,
    Value,
)

# Parameters of each after the tensor with their defaults, ``...`` for none; of axes of the tensor
# the least and the greatest number.
_FILLS: dict[str, tuple[dict[str, Value], int, int]] = {
    "normal": ({"mean": 0.0, "std": 1.0, "generator": None}, 0, 99),
    "uniform": ({"a": 0.0, "b": 1.0, "generator": None}, 0, 99),
    "constant": ({"val": ...}, 0, 99), "zeros": ({}, 0, 99), "ones": ({}, 0, 99),
    "eye": ({}, 2, 2), "dirac": ({"groups": 1}, 3, 5),
    "xavier_uniform": (_GAIN := {"gain": 1.0, "generator": None}, 2, 99),
    "xavier_normal": (_GAIN, 2, 99), "orthogonal": (_GAIN, 2, 99),
    "kaiming_uniform": (
        _FAN := {"a": 0, "mode": "fan_in", "nonlinearity": "leaky_relu", "generator": None}, 2, 99
    ),
    "kaiming_normal": (_FAN, 2, 99),
    "sparse": ({"sparsity": ..., "std": 0.01, "generator": None}, 2, 2),
    "trunc_normal": (
        {"mean": 0.0, "std": 1.0, "a": -2.0, "b": 2.0, "generator": None}, 0, 99
    ),
}  # fmt: skip
_DEPRECATED = ("xavier_uniform", "xavier_normal", "kaiming_uniform", "kaiming_normal", "normal",
               "uniform", "constant", "orthogonal")  # fmt: skip


def _fills(name: str, settings: dict[str, Value], least: int, most: int) -> None:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    own = [
        inspect.Parameter(key, kind, default=inspect.Parameter.empty if value is ... else value)
        for key, value in settings.items()
    ]
    first = [inspect.Parameter("t", kind), inspect.Parameter("tensor", kind)]

    def function(t: Core, *arguments: Value, **keywords: Value) -> Value:
        bound = signature.bind(t, *arguments, **keywords).arguments
        x = need_tensor(t, bound["tensor"], "tensor")
        if x.shape is not None and not least <= len(x.shape) <= most:
            count = f"{least}" if least == most else f"at least {least}"
            t.fail("rank", f"{name} takes a tensor of {count} axes, got {t.show(x)}", x)
        if bound.get("mode", "fan_in") not in ("fan_in", "fan_out"):
            t.fail("value", f"expected mode 'fan_in' or 'fan_out', got {bound['mode']!r}")
        return bound["tensor"]

    signature = inspect.Signature([*first, *own])
    function.__signature__ = signature  # type: ignore[attr-defined]
    names = (f"{name}_", name) if name in _DEPRECATED else (f"{name}_",)
    TORCH.function(*(f"nn.init.{each}" for each in names))(function)


for _name, (_settings, _least, _most) in _FILLS.items():
    _fills(_name, _settings, _least, _most)


@TORCH.function("_C._log_api_usage_once")
def nothing(t: Core, *_: Value, **__: Value) -> Value:
    """Return None."""
    return None


@TORCH.function("jit.annotate")
def annotate(t: Core, the_type: Value, the_value: Value) -> Value:
    """Return the value: a type for the compiler of scripts."""
    return t.wrap(the_value)


@TORCH.function("jit.isinstance")
def is_of_type(t: Core, obj: Value, target_type: Value) -> Value:
    """Return whether a value is of a type, or one of several, and its items of those in it."""
    wanted = target_type if isinstance(target_type, tuple) else (target_type,)
    return any(_is_of(t, t.wrap(obj), one) for one in wanted)


def _is_of(t: Core, value: Value, wanted: Value) -> bool:
    """Whether a value is of a type as ``typing`` writes it, with the types of items."""
    real = wanted.object if isinstance(wanted, Host) else wanted
    if value is None and get_origin(real) is None:
        return real in (None, type(None))
    origin, inner = get_origin(real), [t.lift(part) for part in get_args(real)]
    if origin in (Union, types.UnionType):
        return any(_is_of(t, value, one) for one in inner)
    if origin is None or not inner:
        told = t.call(Host(isinstance), [value, wanted], {})
        if not isinstance(told, bool) and not isinstance(value, Tensor):
            t.fail("capture", "torch.jit.isinstance of a value whose class the data decide")
        return told is True
    if t.call(Host(isinstance), [value, Host(origin)], {}) is not True:
        return False
    if origin is dict:
        content = t.mapping(value) or {}
        pairs = [(key, inner[0]) for key in content] + [(v, inner[1]) for v in content.values()]
    else:
        items = t.sequence(value)
        if isinstance(items, Many):
            items = [items.element]
        if origin is tuple and len(items) != len(inner):
            return False
        pairs = list(zip(items, inner if origin is tuple else inner * len(items), strict=True))
    return all(_is_of(t, item, one) for item, one in pairs)


@TORCH.function("nn.init.calculate_gain")
def calculate_gain(t: Core, nonlinearity: Value, param: Value = None) -> Value:
    """Return the factor for a nonlinearity."""
    return Real()


@TORCH.function("nn.utils.parameters_to_vector")
def parameters_to_vector(t: Core, parameters: Value) -> Tensor:
    """Return all parameters in one vector."""
    found = t.sequence(t.wrap(parameters))
    if isinstance(found, Many):
        return t.emit.new(FLOAT, (t.emit.fresh("parameters"),))
    return t.call_library("torch.cat", [[t.call_library("torch.flatten", [x]) for x in found]])


@TORCH.function(
    "nn.utils.remove_weight_norm",
    "nn.utils.remove_spectral_norm",
    "nn.utils.fuse_conv_bn_eval",
)
def unwrapped(t: Core, module: Value, *_: Value, **__: Value) -> Value:
    """Return the module."""
    return module


@TORCH.function("nn.SyncBatchNorm.convert_sync_batchnorm")
def convert_sync_batchnorm(t: Core, module: Value, process_group: Value = None) -> Value:
    """Return a module whose normalisations count over all processes: shapes and types stay."""
    return module


@TORCH.function("nn.utils.clip_grad_norm_", "nn.utils.clip_grad_norm")
def clip_grad_norm(
    t: Core, parameters: Value, max_norm: Value, norm_type: Value = 2.0,
    error_if_nonfinite: Value = False, foreach: Value = None,
) -> Value:  # fmt: skip
    """Clip gradients; return their norm."""
    if isinstance(parameters, Instance) and "torch.nn.Module" in t.tables.libraries_of(
        t, parameters
    ):
        t.fail("type", "TypeError: expected parameters to clip, got a module",
               remedy="pass model.parameters()")  # fmt: skip
    return t.emit.new(FLOAT, (), kind="torch.Tensor")


@TORCH.function("nn.utils.clip_grad_value_")
def clip_grad_value(t: Core, parameters: Value, clip_value: Value, foreach: Value = None) -> Value:
    """Clip each element of gradients."""
    return None
