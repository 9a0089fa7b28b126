"""The compiled training step: loss, gradients and update as one program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hagane.training.step.links.step import LinkStep
    from hagane.training.step.modules.step import TorchStep

__all__ = ["LinkStep", "TorchStep"]


def __getattr__(name: str) -> Any:
    """Return a class, imported when it is asked for: steps of PyTorch need no links."""
    if name == "LinkStep":
        from hagane.training.step.links.step import LinkStep

        return LinkStep
    if name == "TorchStep":
        from hagane.training.step.modules.step import TorchStep

        return TorchStep
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
