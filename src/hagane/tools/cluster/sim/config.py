"""Configuration files."""

from __future__ import annotations

from pathlib import Path

from hagane.tools.cluster.sim.simulation import Simulation


def read_config(path: Path, seed: int | None, log: Path | None) -> Simulation:
    """Return the simulation that a file describes."""
    raise NotImplementedError
