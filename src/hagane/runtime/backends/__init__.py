"""The backends of hagane's own: compiled kernels, and the reference kernels that take the rest."""

from hagane.runtime.backends.native import NativeBackend, NativePart
from hagane.runtime.backends.reference import ReferenceBackend, ReferencePart

__all__ = ["NativeBackend", "NativePart", "ReferenceBackend", "ReferencePart"]
