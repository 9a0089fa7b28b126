"""Hooks around functions, under the names of Chainer."""

from hagane.nn.hooks import FunctionTimer as TimerHook
from hagane.nn.hooks import PrintHook

__all__ = ["PrintHook", "TimerHook"]
