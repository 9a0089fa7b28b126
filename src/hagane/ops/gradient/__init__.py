"""Reverse accumulation: gradients of recorded calls, by the operators' own rules.

Three steps, of which callers take any:

- ``recording()`` notes every call that the builder makes, in any interpretation.
- ``accumulate(calls, outputs, gradients, inputs)`` walks calls back and returns the gradients of
  ``inputs``. It knows values by identity only, so calls may come from a recording, from a tape of
  variables, or from the nodes of a graph.
- ``pull_back(function, *inputs)`` does both for one Python function.

Rules of operators are written over the builder: while they run under an interpreter that records,
second derivatives follow.
"""

from hagane.ops.gradient.accumulate import accumulate
from hagane.ops.gradient.record import Recorder, pull_back, recording

__all__ = ["Recorder", "accumulate", "pull_back", "recording"]
