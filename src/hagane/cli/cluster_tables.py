"""Tables of ``hagane cluster`` for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from hagane.tools.cluster.kube.explain import Explanation, short_name
from hagane.tools.cluster.report.compare import Difference


def show_explanation(result: Explanation) -> None:
    """Print one line a node: reasons, or scores and their sum."""
    plugins = list(
        dict.fromkeys(name for verdict in result.nodes.values() for name in verdict.scores)
    )
    table = Table("node", *plugins, "total", "filters")
    for name, verdict in result.nodes.items():
        scores = []
        for plugin in plugins:
            raw, scaled = verdict.scores.get(plugin, (None, None))
            scores.append("" if raw is None else f"{raw} → {scaled}" if raw != scaled else f"{raw}")
        reasons = "; ".join(f"{rule}: {why}" for rule, why in verdict.filters.items())
        mark = " *" if name == result.chosen else ""
        table.add_row(name + mark, *scores, str(verdict.total) if verdict.scores else "", reasons)
    console = Console()
    console.print(table)
    if result.chosen is not None:
        console.print(f"chosen: {result.chosen}")
    elif result.preemption_node is not None:
        victims = ", ".join(short_name(p) for p in result.victims)
        console.print(
            f"fits nowhere; preemption would evict {victims} from {result.preemption_node}"
        )
    else:
        console.print("fits nowhere; preemption does not help")


def show_summary(summary: Mapping[str, Any]) -> None:
    """Print the sums of a run."""
    table = Table("metric", "value")
    for name, value in _flat(summary):
        table.add_row(name, f"{value:,.4g}" if isinstance(value, float) else str(value))
    Console().print(table)


def show_differences(differences: Sequence[Difference], confidence: float) -> None:
    """Print one line a metric."""
    table = Table("metric", "A", "B", "B - A", f"{confidence:.0%} interval", "")
    for item in differences:
        table.add_row(
            item.metric,
            f"{item.a:,.4g}",
            f"{item.b:,.4g}",
            f"{item.difference:+,.4g}",
            f"[{item.low:+,.4g}, {item.high:+,.4g}]".replace("[", "\\["),
            "*" if item.significant else "",
        )
    Console().print(table)


def _flat(value: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    out: list[tuple[str, Any]] = []
    for name, inner in value.items():
        if isinstance(inner, Mapping):
            out += _flat(inner, f"{prefix}{name}.")
        else:
            out.append((prefix + name, inner))
    return out
