"""Errors of watching an agent.

::

    HaganeError
    └── RlError
        ├── AgentFault        (RuntimeError)   an agent cannot be loaded, or breaks its protocol
        ├── EnvironmentFault  (RuntimeError)   an environment cannot be made, or fails
        ├── InvalidLog        (ValueError)     a log, or a part of one, cannot be used
        ├── NoSuchRollout     (LookupError)    there is no such rollout, picture or explanation
        └── NotExplainable    (ValueError)     an explanation needs outputs that the agent lacks
"""

from __future__ import annotations

from hagane.errors import HaganeError


class RlError(HaganeError):
    """Base of the errors of ``hagane rl``."""


class AgentFault(RlError, RuntimeError):
    """An agent that cannot be loaded, or that breaks the protocol of agents."""


class EnvironmentFault(RlError, RuntimeError):
    """An environment that cannot be made, or that fails."""


class InvalidLog(RlError, ValueError):
    """A log, or a part of one, that cannot be used."""


class NoSuchRollout(RlError, LookupError):
    """A rollout, picture or explanation that is not in the log folder."""


class NotExplainable(RlError, ValueError):
    """An explanation that needs outputs missing in the agent or the log."""
