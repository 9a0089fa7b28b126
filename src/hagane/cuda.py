"""Answers to programs that ask for a GPU, under an old name."""

from hagane.backends.cuda import *  # noqa: F403
from hagane.backends.cuda import __all__ as __all__
