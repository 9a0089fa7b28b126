"""Places of arrays that programs ask for; only this machine's memory is there."""

from hagane.backends import cuda, intel64

__all__ = ["cuda", "intel64"]
