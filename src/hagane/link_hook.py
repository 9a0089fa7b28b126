"""The base of hooks around links."""

from hagane.nn.model.hooks import (
    ForwardPostprocess as _ForwardPostprocessCallbackArgs,
)
from hagane.nn.model.hooks import (
    ForwardPreprocess as _ForwardPreprocessCallbackArgs,
)
from hagane.nn.model.hooks import LinkHook

__all__ = ["LinkHook", "_ForwardPostprocessCallbackArgs", "_ForwardPreprocessCallbackArgs"]
