"""The openb trace: a GPU-sharing cluster of Alibaba, published in 2023.

Nodes: ``sn,cpu_milli,memory_mib,gpu,model``. Pods: ``name,cpu_milli,memory_mib,num_gpu,gpu_milli,
gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time``, times in seconds. A pod with
``gpu_milli`` below 1000 shares one device; ``gpu_spec`` lists the models it accepts.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path

from hagane.tools.cluster.errors import InvalidManifest
from hagane.tools.cluster.model.objects import GpuShare, Node, NodeAffinity, Phase, Pod
from hagane.tools.cluster.model.read_pod import GPU_COUNT, GPU_MILLI
from hagane.tools.cluster.model.selectors import NodeTerm, Requirement

MODEL_LABEL = "alibabacloud.com/gpu-card-model"
_MIB = 1024 * 1024
_NODE = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
_POD = (
    "name",
    "cpu_milli",
    "memory_mib",
    "num_gpu",
    "gpu_milli",
    "gpu_spec",
    "qos",
    "pod_phase",
    "creation_time",
    "deletion_time",
    "scheduled_time",
)


def read_nodes(path: Path | str) -> list[Node]:
    """Return the nodes of a node list.

    Raises:
        InvalidManifest: if a column is missing or a number malformed; file and line are named.
    """
    nodes = []
    seen: set[str] = set()
    for line, row in rows(path, _NODE):
        name = row["sn"]
        if name in seen:
            raise InvalidManifest(f"{path}:{line}: duplicate node {name!r}")
        seen.add(name)
        gpus = whole(path, line, row, "gpu")
        model = row["model"] or "none"
        offered = {
            "cpu": whole(path, line, row, "cpu_milli"),
            "memory": whole(path, line, row, "memory_mib") * _MIB,
            "pods": 1000,
        }
        if gpus:
            offered |= {GPU_COUNT: gpus, GPU_MILLI: gpus * 1000}
        labels = {"kubernetes.io/hostname": name}
        if gpus:
            labels[MODEL_LABEL] = model
        nodes.append(Node(name, labels, allocatable=offered, devices=gpus))
    return nodes


def read_pods(path: Path | str) -> Iterator[tuple[float, Pod]]:
    """Yield (arrival, pod) of a pod list in order of the file; raises as :func:`read_nodes`."""
    accepted: dict[str, NodeAffinity] = {}
    seen: set[str] = set()
    for line, row in rows(path, _POD):
        name = row["name"]
        if name in seen:
            raise InvalidManifest(f"{path}:{line}: duplicate pod {name!r}")
        seen.add(name)
        gpus, milli = whole(path, line, row, "num_gpu"), whole(path, line, row, "gpu_milli")
        if milli > 1000 or (gpus > 1 and milli != 1000):
            raise InvalidManifest(
                f"{path}:{line}: pod {name!r} asks {milli} thousandths of each of {gpus} GPUs: "
                "expected 1 to 1000, and 1000 for more than one"
            )
        created = whole(path, line, row, "creation_time")
        deleted = whole(path, line, row, "deletion_time") if row["deletion_time"] else None
        begun = whole(path, line, row, "scheduled_time") if row["scheduled_time"] else created
        if deleted is not None and deleted < created:
            raise InvalidManifest(
                f"{path}:{line}: pod {name!r} is deleted at {deleted}, before its creation at "
                f"{created}"
            )
        cpu, memory = whole(path, line, row, "cpu_milli"), whole(path, line, row, "memory_mib")
        requests = {"cpu": cpu, "memory": memory * _MIB}
        share = None
        if gpus:
            requests[GPU_MILLI] = gpus * milli
            share = GpuShare(gpus, milli)
        spec = row["gpu_spec"]
        if spec not in accepted:
            wanted = Requirement(MODEL_LABEL, "In", tuple(spec.split("|")))
            accepted[spec] = NodeAffinity((NodeTerm((wanted,)),) if spec else None)
        yield (
            float(created),
            Pod(
                name,
                labels={"qos": row["qos"]},
                requests=requests,
                scored=(cpu, memory * _MIB),
                node_affinity=accepted[spec],
                created=float(created),
                phases=None if deleted is None else (Phase(float(max(deleted - begun, 0))),),
                restart_policy="Never",
                gpu=share,
                user=row["qos"],
            ),
        )


def rows(path: Path | str, columns: tuple[str, ...]) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Yield (line number, row) of a CSV file that has at least the given columns.

    Raises:
        InvalidManifest: if the file or a column is missing, it is no text, or a line is too short.
    """
    try:
        file = open(path, newline="", encoding="utf-8-sig")  # noqa: SIM115
    except OSError as error:
        raise InvalidManifest(
            f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from None
    with file:
        reader = csv.DictReader(file)
        try:
            missing = [c for c in columns if c not in (reader.fieldnames or ())]
            if missing:
                raise InvalidManifest(
                    f"{path}:1: column {missing[0]!r} is missing: expected {','.join(columns)}"
                )
            for row in reader:
                if any(row[c] is None for c in columns):
                    raise InvalidManifest(
                        f"{path}:{reader.line_num}: expected {len(columns)} columns, got "
                        f"{sum(v is not None for v in row.values())}"
                    )
                yield reader.line_num, row
        except (UnicodeDecodeError, csv.Error) as error:
            raise InvalidManifest(
                f"{path}: cannot be read: expected a table of comma-separated values as text in "
                f"UTF-8, behind line {reader.line_num}: {error}"
            ) from None


def whole(path: Path | str, line: int, row: Mapping[str, str], column: str) -> int:
    """Return a count in a row; raises InvalidManifest naming the line and the column."""
    text = row[column]
    try:
        value = float(text or 0)
        if value < 0 or value != value or value == float("inf"):
            raise ValueError
    except ValueError:
        raise InvalidManifest(
            f"{path}:{line}: {column}: expected a number of at least 0, got {text!r}"
        ) from None
    return int(value)
