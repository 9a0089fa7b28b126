"""The work of a pod over time, from its annotations.

``simSpec`` is the format of k8s-cluster-simulator: a YAML list of ``seconds`` and
``resourceUsage``. ``hagane.dev/duration-seconds`` gives a plain duration instead.
"""

from __future__ import annotations

from collections.abc import Mapping

from hagane.tools.cluster.errors import InvalidManifest
from hagane.tools.cluster.model.documents import Place, parse_documents
from hagane.tools.cluster.model.objects import Phase
from hagane.tools.cluster.model.reader import Reader

SIM_SPEC = "simSpec"
DURATION = "hagane.dev/duration-seconds"


def read_phases(annotations: Mapping[str, str], place: Place) -> tuple[Phase, ...] | None:
    """Return the phases of a pod, or None if its annotations say nothing.

    Raises:
        InvalidManifest: if an annotation is malformed; the annotation is named.
    """
    if SIM_SPEC in annotations:
        return parse_sim_spec(annotations[SIM_SPEC], place)
    if DURATION in annotations:
        text = annotations[DURATION]
        try:
            seconds = float(text)
        except ValueError:
            seconds = -1.0
        if not seconds >= 0:
            raise (place / DURATION).error(f"expected seconds of at least 0, got {text!r}")
        return (Phase(seconds),)
    return None


def parse_sim_spec(text: str, place: Place) -> tuple[Phase, ...]:
    """Return the phases that a ``simSpec`` lists.

    Raises:
        InvalidManifest: if it is not a list of objects with ``seconds`` and ``resourceUsage``.
    """
    here = place / SIM_SPEC
    try:
        documents = parse_documents(text, SIM_SPEC)
    except InvalidManifest as error:
        raise here.error(str(error)) from None
    value = documents[0].value if documents else []
    if not isinstance(value, list):
        raise here.error(f"expected a list of phases, got {value!r}")
    phases = []
    for index, item in enumerate(value):
        reader = Reader(item, here / index)
        for name in reader.value:
            if name not in ("seconds", "resourceUsage"):
                raise (here / index / str(name)).error(
                    f"unknown field {name!r}: expected seconds and resourceUsage"
                )
        if not reader.has("resourceUsage"):
            raise (here / index / "resourceUsage").error("required value is missing")
        phases.append(Phase(reader.number("seconds", low=0), reader.amounts("resourceUsage")))
    return tuple(phases)
