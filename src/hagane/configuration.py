"""Configuration of define-by-run programs."""

from hagane.nn.autograd.configuration import (
    GlobalConfig,
    LocalConfig,
    config,
    global_config,
    using_config,
)

__all__ = ["GlobalConfig", "LocalConfig", "config", "global_config", "using_config"]
