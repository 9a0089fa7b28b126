"""The metrics formats of k8s-cluster-simulator: ``JSON``, ``humanReadable`` and ``table``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from hagane.tools.cluster.model.quantity import parse_quantity
from hagane.tools.cluster.sim.ports import Metrics

Formatter = Callable[[Metrics], str]
_MIB = 1 << 20


def as_json(metrics: Metrics) -> str:
    """Return the metrics as one line, keys in order, as Go's ``encoding/json`` writes maps."""
    parts = {name: metrics[name] for name in sorted(metrics)}
    return json.dumps(parts, separators=(",", ":"))


def as_text(metrics: Metrics) -> str:
    """Return the metrics in indented lines."""
    out = [f"Metrics {metrics['Clock']}", "  Nodes"]
    for name, node in metrics["Nodes"].items():
        counts = f"{node['RunningPodsNum']}({node['TerminatingPodsNum']})"
        line = f"    {name}: Pods {counts}/{_value(node['Allocatable'], 'pods')}"
        for resource in node["Allocatable"]:
            if resource != "pods":
                line += _triple(
                    resource,
                    node["TotalResourceUsage"],
                    node["TotalResourceRequest"],
                    node["Allocatable"],
                )
        out.append(f"{line}, Failed {node['FailedPodsNum']}")
    out.append("  Pods")
    for name, pod in metrics["Pods"].items():
        line = (
            f"    {name}: prio {pod['Priority']}, bound at {pod['BoundAt']} on {pod['Node']}, "
            f"status {pod['Status']}, elapsed {pod['ExecutedSeconds']} s"
        )
        for resource in pod["ResourceRequest"]:
            line += _triple(
                resource, pod["ResourceUsage"], pod["ResourceRequest"], pod["ResourceLimit"]
            )
        out.append(line)
    out += ["  Queue", f"    PendingPods {metrics['Queue']['PendingPodsNum']}", ""]
    return "\n".join(out)


def as_table(metrics: Metrics) -> str:
    """Return the metrics as two tables and the queue."""
    nodes, pods = metrics["Nodes"], metrics["Pods"]
    names = sorted({r for n in nodes.values() for r in n["Allocatable"]} - {"pods"})
    titles = ["memory (MB)" if n == "memory" else n for n in names]
    rule = "-" * (45 + 30 * len(names))
    out = [metrics["Clock"], ""]
    out.append(
        "Node             Pods   Termi- Failed Capa-  " + "".join(f"{t:<29} " for t in titles)
    )
    out.append(
        "                        nating        city   "
        + "Usage    Request  Allocatable " * len(names)
    )
    out.append(rule)
    for name, node in sorted(nodes.items()):
        line = (
            f"{name:<16} {node['RunningPodsNum']:<6} {node['TerminatingPodsNum']:<6} "
            f"{node['FailedPodsNum']:<6} {_value(node['Allocatable'], 'pods'):<6} "
        )
        for resource in names:
            used, asked, offered = (
                _value(node[part], resource, scaled=True)
                for part in ("TotalResourceUsage", "TotalResourceRequest", "Allocatable")
            )
            line += f"{used:<8} {asked:<8} {offered:<11} "
        out.append(line)
    out.append("")
    out.append(
        "Pod                  Status       Priority Node     BoundAt                   Executed "
        + "".join(f"{t:<26} " for t in titles)
    )
    out.append(" " * 78 + "Seconds  " + "Usage    Request  Limit    " * len(names))
    out.append("-" * (87 + 27 * len(names)))
    for name, pod in sorted(pods.items()):
        line = (
            f"{name:<20} {pod['Status']:<12} {pod['Priority']:<8} {pod['Node']:<8} "
            f"{pod['BoundAt']:<25} {pod['ExecutedSeconds']:<8} "
        )
        for resource in names:
            used, asked, limit = (
                _value(pod[part], resource, scaled=True)
                for part in ("ResourceUsage", "ResourceRequest", "ResourceLimit")
            )
            line += f"{used:<8} {asked:<8} {limit:<8} "
        out.append(line)
    out += ["", "      PendingPods ", "-" * 18]
    out += [f"Queue {metrics['Queue']['PendingPodsNum']:<8} ", ""]
    return "\n".join(out) + "\n"


FORMATTERS: Mapping[str, Formatter] = {
    "JSON": as_json,
    "humanReadable": as_text,
    "table": as_table,
}


def _value(amounts: Mapping[str, Any], resource: str, scaled: bool = False) -> int:
    value = parse_quantity(str(amounts.get(resource, 0)))
    whole = -(-value.numerator // value.denominator)
    return whole // _MIB if scaled and resource == "memory" else whole


def _triple(resource: str, *parts: Mapping[str, Any]) -> str:
    values = [_value(part, resource, scaled=True) for part in parts]
    name = "memMB" if resource == "memory" else resource
    return f", {name} {values[0]}/{values[1]}/{values[2]}"
