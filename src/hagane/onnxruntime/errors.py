"""ONNX Runtime's errors; hagane raises those of ``raised.py``, which inherit from these."""

from __future__ import annotations


class Fail(Exception):
    """Something failed for no reason of its own class."""


class InvalidArgument(Exception):
    """A model, an input or an option that cannot be used."""


class NoSuchFile(Exception):
    """There is no such file."""


class NoModel(Exception):
    """A session without a model."""


class EngineError(Exception):
    """An engine failed."""


class RuntimeException(Exception):
    """An exception while a node ran."""


class InvalidProtobuf(Exception):
    """Bytes that are no model."""


class ModelLoaded(Exception):
    """A session that has a model already."""


class NotImplemented(Exception):
    """A function that is not implemented."""


class InvalidGraph(Exception):
    """A malformed graph."""


class EPFail(Exception):
    """An execution provider failed."""


class ModelLoadCanceled(Exception):
    """Loading was cancelled."""


class ModelRequiresCompilation(Exception):
    """A model that has to be compiled first."""


class NotFound(Exception):
    """A file or name that was not found."""


class DeviceReset(Exception):
    """A device was reset."""
