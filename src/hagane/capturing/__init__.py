"""``hagane.capture`` and ``hagane.compile``: Python source as a model."""

from hagane.capturing.capture import capture, model_of
from hagane.capturing.compiling import Compiled, CompileNotice, compile  # noqa: A004
from hagane.capturing.difference import difference

__all__ = ["CompileNotice", "Compiled", "capture", "compile", "difference", "model_of"]
