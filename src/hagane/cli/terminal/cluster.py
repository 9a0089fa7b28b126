"""Tables of ``hagane cluster`` for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from hagane.tools.cluster.kube.explain import Explanation, short_name
from hagane.tools.cluster.report.compare import Difference, readable

_SHOWN = 20


def show_explanation(result: Explanation) -> None:
    """Print the nodes that fit, the best first, with scores; then why the others do not."""
    console = Console()
    fitting = sorted(
        ((name, verdict) for name, verdict in result.nodes.items() if not verdict.filters),
        key=lambda pair: (-pair[1].total, pair[0] != result.chosen),
    )
    if fitting:
        table = Table("node that fits", "total", "scores but zeros (raw → normalised)")
        table.columns[0].overflow = "fold"
        for name, verdict in fitting[:_SHOWN]:
            scores = (
                f"{plugin} {raw}" if raw == scaled else f"{plugin} {raw} → {scaled}"
                for plugin, (raw, scaled) in verdict.scores.items()
                if raw or scaled
            )
            mark = " *" if name == result.chosen else ""
            table.add_row(escape(name) + mark, str(verdict.total), escape(", ".join(scores)))
        console.print(table)
        if len(fitting) > _SHOWN:
            console.print(f"and {len(fitting) - _SHOWN:,} more nodes that fit: --json shows all")
    rejected: dict[tuple[str, ...], list[str]] = {}
    for name, verdict in result.nodes.items():
        if verdict.filters:
            why = tuple(f"{rule}: {reason}" for rule, reason in verdict.filters.items())
            rejected.setdefault(why, []).append(name)
    if rejected:
        table = Table("nodes that don't fit", "why")
        table.columns[0].overflow = table.columns[1].overflow = "fold"
        for why, names in rejected.items():
            some = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
            count = f"{len(names):,}: " if len(names) > 1 else ""
            table.add_row(escape(count + some), escape("\n".join(why)))
        console.print(table)
    if result.chosen is not None:
        console.print(f"chosen: {escape(result.chosen)}")
    elif result.preemption_node is not None:
        victims = ", ".join(short_name(p) for p in result.victims)
        console.print(
            escape(f"fits nowhere; preemption would evict {victims} from {result.preemption_node}")
        )
    else:
        console.print("fits nowhere; preemption does not help")


def show_summary(summary: Mapping[str, Any]) -> None:
    """Print the sums of a run."""
    table = Table("metric", "value")
    for name, value in _flat(summary):
        table.add_row(name, readable(value) if isinstance(value, float) else f"{value}")
    Console().print(table)


def show_differences(differences: Sequence[Difference], confidence: float) -> None:
    """Print one line a metric."""
    table = Table("metric", "A", "B", f"B - A, {confidence:.0%} interval", "")
    table.columns[0].overflow = "fold"
    for item in differences:
        table.add_row(
            item.metric,
            readable(item.a),
            readable(item.b),
            escape(
                f"{readable(item.difference, '+')} "
                f"[{readable(item.low, '+')}, {readable(item.high, '+')}]"
            ),
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
