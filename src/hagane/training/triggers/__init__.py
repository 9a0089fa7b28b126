"""Triggers: when a trainer calls an extension, or stops."""

from hagane.training.triggers.early_stopping import EarlyStoppingTrigger
from hagane.training.triggers.interval import IntervalTrigger, get_trigger
from hagane.training.triggers.points import ManualScheduleTrigger, OnceTrigger, TimeTrigger
from hagane.training.triggers.values import BestValueTrigger, MaxValueTrigger, MinValueTrigger

__all__ = [
    "BestValueTrigger",
    "EarlyStoppingTrigger",
    "IntervalTrigger",
    "ManualScheduleTrigger",
    "MaxValueTrigger",
    "MinValueTrigger",
    "OnceTrigger",
    "TimeTrigger",
    "get_trigger",
]
