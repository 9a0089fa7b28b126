"""Errors of simulated clusters.

::

    HaganeError
    └── ClusterError
        ├── InvalidManifest   (ValueError)     an object, profile, trace or configuration is wrong
        ├── SchedulerFault    (RuntimeError)   a scheduler broke a rule of the cluster
        └── ExtenderFault     (RuntimeError)   a scheduler extender failed or answered nonsense
"""

from __future__ import annotations

from hagane.errors import HaganeError


class ClusterError(HaganeError):
    """Base of the errors of ``hagane cluster``."""


class InvalidManifest(ClusterError, ValueError):
    """An object, profile, trace or configuration that cannot be used."""


class SchedulerFault(ClusterError, RuntimeError):
    """A scheduler broke a rule; the offending object and the rule are named."""

    def __init__(self, rule: str, message: str):
        super().__init__(f"{message} (rule: {rule})")
        self.rule = rule


class ExtenderFault(ClusterError, RuntimeError):
    """A scheduler extender failed, timed out or answered something unusable."""


def unreadable(path: object, error: Exception) -> InvalidManifest:
    """Return the error about a file that cannot be read, in the words of the system."""
    return InvalidManifest(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}")
