"""Choices by the options of a session and the environment: engine, threads, instructions."""

from __future__ import annotations

import os
import sys

from hagane.machine import Level, level_named, usable_cores
from hagane.runtime.options import GraphOptimizationLevel, SessionOptions


def is_native(options: SessionOptions) -> bool:
    """Whether a session with these options compiles its model."""
    chosen = options.entries.get("hagane.engine") or os.environ.get("HAGANE_ENGINE", "native")
    level = options.graph_optimization_level
    return chosen != "reference" and level != GraphOptimizationLevel.ORT_DISABLE_ALL


def threads_of(options: SessionOptions) -> int:
    """Return how many threads a run uses."""
    return options.intra_op_num_threads or usable_cores()


def level_of(options: SessionOptions) -> Level:
    """Return the vector instructions that a session's kernels use."""
    chosen = options.entries.get("hagane.instructions") or os.environ.get("HAGANE_INSTRUCTIONS")
    return level_named(chosen)


def can_repeat(options: SessionOptions) -> bool:
    """Whether another process builds the same from the model and these options alone."""
    registry = sys.modules.get("hagane.ops.registry")  # much else would load with it
    if registry is not None and registry.operators().own:
        return False  # functions of this process
    return not options.backends and options.tune == "off" and is_native(options)
