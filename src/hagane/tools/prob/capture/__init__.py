"""Python functions as probabilistic programs, by running them in the abstract interpreter."""

from hagane.tools.prob.capture.runner import Typed, any_value
from hagane.tools.prob.capture.translate import Translated, kind_of, translate

__all__ = ["Translated", "Typed", "any_value", "kind_of", "translate"]
