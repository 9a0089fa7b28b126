"""``hagane.rl``: watch agents act, under its short name (see ``hagane.tools.rl``)."""

from hagane.tools.rl import (
    Agent,
    AgentFault,
    EnvironmentFault,
    InvalidLog,
    NoSuchRollout,
    NotExplainable,
    RlError,
    launch_visualizer,
    serve_agents,
)

__all__ = [
    "Agent",
    "AgentFault",
    "EnvironmentFault",
    "InvalidLog",
    "NoSuchRollout",
    "NotExplainable",
    "RlError",
    "launch_visualizer",
    "serve_agents",
]
