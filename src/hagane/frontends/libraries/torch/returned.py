"""Results of PyTorch's functions whose items have names."""

from __future__ import annotations

import sys

from hagane.frontends.python.values.values import Fields, Value


def returned(name: str, made: Value) -> Value:
    """Return the result of a function or method with the class that PyTorch gives it.

    ``torch.max(x, 0)`` is a ``torch.return_types.max``.
    """
    if not isinstance(made, Fields) or made.real is not None or not name.startswith("torch."):
        return made
    last = name.removeprefix("torch.").removeprefix("Tensor.").replace(".", "_")
    real = getattr(getattr(sys.modules.get("torch"), "return_types", None), last, None)
    fits = getattr(real, "n_sequence_fields", None) == len(made)
    return Fields(made, made.names, real) if fits else made


__all__ = ["returned"]
