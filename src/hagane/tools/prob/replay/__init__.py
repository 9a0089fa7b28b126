"""Python functions as Markov chains, by running them again for each sequence of draws."""

from hagane.tools.prob.replay.functions import replayed, replayed_with_parameters
from hagane.tools.prob.replay.integrated import integrated
from hagane.tools.prob.replay.marked import marked
from hagane.tools.prob.replay.runs import Unrepeatable

__all__ = ["Unrepeatable", "integrated", "marked", "replayed", "replayed_with_parameters"]
