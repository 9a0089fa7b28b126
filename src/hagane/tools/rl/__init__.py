"""Agents of reinforcement learning, watched in the browser while they act: ``hagane rl``."""

from hagane.tools.rl.agents.protocol import Agent
from hagane.tools.rl.errors import (
    AgentFault,
    EnvironmentFault,
    InvalidLog,
    NoSuchRollout,
    NotExplainable,
    RlError,
)
from hagane.tools.rl.launch import launch_visualizer, serve_agents

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
