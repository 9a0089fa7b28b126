"""Test patterns for SystemVerilog circuits by concolic execution, replayed in a simulator."""

from hagane.tools.rtl.circuit.elaborate import Sources, read_sources
from hagane.tools.rtl.cover import Result, Status, cover, to_json
from hagane.tools.rtl.errors import InvalidDesign, RtlError, SimulatorError, UnsupportedDesign
from hagane.tools.rtl.search.search import Budget

__all__ = [
    "Budget",
    "InvalidDesign",
    "Result",
    "RtlError",
    "SimulatorError",
    "Sources",
    "Status",
    "UnsupportedDesign",
    "cover",
    "read_sources",
    "to_json",
]
