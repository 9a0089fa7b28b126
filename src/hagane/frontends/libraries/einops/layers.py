"""Patterns as layers of PyTorch."""

from __future__ import annotations

from hagane.frontends.libraries.einops.functions import EINOPS, rearrange, reduce
from hagane.frontends.libraries.table import View
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Value


@EINOPS.layer("layers.torch.Rearrange", base="torch.nn.Module")
class Rearrange:
    """``rearrange`` as a layer."""

    @staticmethod
    def init(t: Core, pattern: Value, **axes_lengths: Value) -> dict[str, Value]:
        """Return the attributes."""
        return {"pattern": pattern, "axes_lengths": t.new_dict(dict(axes_lengths))}

    @staticmethod
    def forward(t: Core, self: View, input: Value) -> Value:
        """Apply the layer."""
        return rearrange(t, input, self.pattern, **self.axes_lengths)


@EINOPS.layer("layers.torch.Reduce", base="torch.nn.Module")
class Reduce:
    """``reduce`` as a layer."""

    @staticmethod
    def init(t: Core, pattern: Value, reduction: Value, **axes_lengths: Value) -> dict[str, Value]:
        """Return the attributes."""
        return {"pattern": pattern, "reduction": reduction,
                "axes_lengths": t.new_dict(dict(axes_lengths))}  # fmt: skip

    @staticmethod
    def forward(t: Core, self: View, input: Value) -> Value:
        """Apply the layer."""
        return reduce(t, input, self.pattern, self.reduction, **self.axes_lengths)


__all__ = ["Rearrange", "Reduce"]
