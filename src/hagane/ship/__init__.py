"""Models on their way to other programs: builds, their C interface, 8-bit models."""

from hagane.ship.build import build_model
from hagane.ship.loaded import BuiltModel, load_built
from hagane.ship.options import BuildOptions
from hagane.ship.refit import refit

__all__ = ["BuildOptions", "BuiltModel", "build_model", "load_built", "refit"]
