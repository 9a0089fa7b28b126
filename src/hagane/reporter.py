"""Values that models report."""

from hagane.nn.reporter import (
    DictSummary,
    Reporter,
    Summary,
    get_current_reporter,
    report,
    report_scope,
)

__all__ = [
    "DictSummary",
    "Reporter",
    "Summary",
    "get_current_reporter",
    "report",
    "report_scope",
]
