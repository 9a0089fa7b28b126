"""``torch.nn.init``, and functions over parameters that return them unchanged."""

from __future__ import annotations

from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.core import Core
from hagane.frontends.python.values import Real, Value


def _fills(name: str) -> None:
    def function(t: Core, tensor: Value, *_: Value, **__: Value) -> Value:
        return tensor

    TORCH.function(f"nn.init.{name}")(function)


for _name in (
    "normal_", "uniform_", "constant_", "zeros_", "ones_", "eye_", "dirac_", "xavier_uniform_",
    "xavier_normal_", "kaiming_uniform_", "kaiming_normal_", "orthogonal_", "sparse_",
    "trunc_normal_",
):  # fmt: skip
    _fills(_name)


@TORCH.function("nn.init.calculate_gain")
def calculate_gain(t: Core, nonlinearity: Value, param: Value = None) -> Value:
    """Return the factor for a nonlinearity."""
    return Real()


@TORCH.function("nn.utils.clip_grad_norm_", "nn.utils.clip_grad_value_")
def clip_grad(t: Core, parameters: Value, *_: Value, **__: Value) -> Value:
    """Clip gradients; nothing here has any."""
    return t.emit.new(TORCH.constants["torch.float32"].dtype, ())
