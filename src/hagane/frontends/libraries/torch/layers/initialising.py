"""``torch.nn.init``, and functions over parameters that return them unchanged."""

from __future__ import annotations

from hagane.frontends.libraries.torch.operands import FLOAT
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Host, Many, Real, Tensor, Value


def _fills(name: str) -> None:
    def function(t: Core, tensor: Value, *_: Value, **__: Value) -> Value:
        return tensor

    TORCH.function(f"nn.init.{name}")(function)


for _name in (
    "normal_", "uniform_", "constant_", "zeros_", "ones_", "eye_", "dirac_", "xavier_uniform_",
    "xavier_normal_", "kaiming_uniform_", "kaiming_normal_", "orthogonal_", "sparse_",
    "trunc_normal_", "xavier_uniform", "xavier_normal", "kaiming_uniform", "kaiming_normal",
    "normal", "uniform", "constant", "orthogonal",
):  # fmt: skip
    _fills(_name)


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
    """Return whether a value is of a type, for the compiler of scripts."""
    return t.call(Host(isinstance), [obj, target_type], {})


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


@TORCH.function("nn.utils.clip_grad_norm_", "nn.utils.clip_grad_value_", "nn.utils.clip_grad_norm")
def clip_grad(t: Core, parameters: Value, *_: Value, **__: Value) -> Value:
    """Clip gradients; nothing here has any."""
    return t.emit.new(TORCH.constants["torch.float32"].dtype, ())
