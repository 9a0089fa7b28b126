"""The form of an answer that a client asks for by its header ``Accept``.

Answers are JSON: objects, or tables for kubectl to print. Clients that prefer Protocol Buffers name
JSON behind them; those that name nothing that is served are told so, since they could not read the
answer.

Source: Kubernetes API concepts (1.34), "Alternate representations of resources" and "Receiving
resources as Tables"; RFC 9110, section 12.5.1 (weights and wildcards).
"""

from __future__ import annotations

from hagane.tools.cluster.link.objects.refusal import Refused

_SERVED = {"application/json": 0, "application/*": 1, "*/*": 2}


def wants_table(accept: str) -> bool:
    """Return whether the form that a client prefers among those that are served is a table.

    Args:
        accept: The client's header ``Accept``; empty for a client that takes anything.

    Raises:
        Refused: Nothing that the client accepts is served (406).
    """
    best: tuple[float, int, int] | None = None
    table = False
    for place, text in enumerate(accept.split(",")):
        kind, *parts = (part.strip().lower() for part in text.split(";"))
        details = dict(part.partition("=")[::2] for part in parts)
        form, weight = details.get("as", ""), _weight(details.get("q", "1"))
        if kind not in _SERVED or form not in ("", "table") or not weight > 0:
            continue
        if best is None or (-weight, _SERVED[kind], place) < best:
            best = (-weight, _SERVED[kind], place)
            table = form == "table"
    if best is None and accept.strip():
        raise Refused(
            406,
            "NotAcceptable",
            "only the following media types are accepted: application/json, "
            f"application/json;as=Table; got {accept}",
        )
    return table


def _weight(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
