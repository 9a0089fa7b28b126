"""Parts of ``logging`` that classes of programs derive from, as programs that keep settings.

https://docs.python.org/3/library/logging.html
"""

from __future__ import annotations

from typing import Any


class Filter:
    """``logging.Filter``."""

    def __init__(self, name: str = ""):
        self.name = name

    def filter(self, record: Any) -> bool:
        """Whether a record is told."""
        return True


class Formatter:
    """``logging.Formatter``."""

    def __init__(
        self, fmt: Any = None, datefmt: Any = None, style: str = "%", validate: bool = True, *,
        defaults: Any = None,
    ):  # fmt: skip
        self._fmt, self.datefmt = fmt, datefmt

    def format(self, record: Any) -> str:
        """Return the text of a record."""
        return ""

    def formatTime(self, record: Any, datefmt: Any = None) -> str:
        """Return the time of a record as text."""
        return ""

    def formatException(self, ei: Any) -> str:
        """Return an exception as text."""
        return ""


class Handler:
    """``logging.Handler`` and the handlers that derive from it."""

    def __init__(self, *given: Any, **settings: Any):
        self.level, self.formatter, self.stream = 0, None, None
        self.filters: list[Any] = []
        self.terminator, self.name, self.baseFilename = "", None, ""

    def setLevel(self, level: Any) -> None:
        """Set the least level that is told."""
        self.level = level

    def setFormatter(self, fmt: Any) -> None:
        """Set how records become texts."""
        self.formatter = fmt

    def addFilter(self, filter: Any) -> None:
        """Add a filter."""

    def format(self, record: Any) -> str:
        """Return the text of a record."""
        return ""

    def emit(self, record: Any) -> None:
        """Tell a record."""

    def handle(self, record: Any) -> None:
        """Tell a record that passes the filters."""

    def handleError(self, record: Any) -> None:
        """Tell of an error."""

    def acquire(self) -> None:
        """Wait for others."""

    def release(self) -> None:
        """Let others go on."""

    def flush(self) -> None:
        """Write what is left."""

    def close(self) -> None:
        """Let go of it."""


_BASES = {
    "Filter": Filter, "Formatter": Formatter, "Handler": Handler, "StreamHandler": Handler,
    "FileHandler": Handler,
}  # fmt: skip


def as_logging(found: Any) -> Any:
    """Return the program that a class of ``logging`` stands for as a base, None without one."""
    if getattr(found, "__module__", None) != "logging" or not isinstance(found, type):
        return None
    return _BASES.get(found.__name__)


class _Silent:
    """A logger, or a part of one: no call returns anything."""

    __module__ = "logging"
    __name__ = "logger"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _OF_LOGGERS.get(name, self)

    def __call__(self) -> None:
        raise NotImplementedError


SILENT = _Silent()
_OF_LOGGERS: dict[str, Any] = {
    "handlers": [], "filters": [], "name": "root", "level": 20, "propagate": True, "parent": None,
    "disabled": False,
}  # fmt: skip


__all__ = ["SILENT", "as_logging"]
