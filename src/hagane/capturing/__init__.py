"""``hagane.capture``: Python source as a model."""

from hagane.capturing.capture import capture, model_of
from hagane.capturing.difference import difference

__all__ = ["capture", "difference", "model_of"]
