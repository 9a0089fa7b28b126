"""Models of floats as models that compute with bytes, calibrated on data."""

from hagane.ship.quantize.insert import Scheme
from hagane.ship.quantize.quantize import METHODS, QuantizeOptions, quantize
from hagane.ship.quantize.report import Report, check_report, table_lines

__all__ = [
    "METHODS",
    "QuantizeOptions",
    "Report",
    "Scheme",
    "check_report",
    "quantize",
    "table_lines",
]
