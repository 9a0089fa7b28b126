"""A generic log of jobs, as CSV or Parquet.

Columns: ``submit_time`` and ``duration`` in seconds, ``cpu`` in cores, ``memory`` in bytes or as a
quantity, ``gpu`` in devices; ``name``, ``user``, ``namespace``, ``priority``, ``group`` and
``min_member`` are optional.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hagane.errors import MissingExtra
from hagane.tools.cluster.errors import InvalidManifest
from hagane.tools.cluster.model.objects import Phase, Pod
from hagane.tools.cluster.model.quantity import amount
from hagane.tools.cluster.trace.openb import rows

_NEEDED = ("submit_time", "duration")


def read_jobs(path: Path | str, resource: str = "nvidia.com/gpu") -> Iterator[tuple[float, Pod]]:
    """Yield (arrival, pod) of a log.

    Raises:
        InvalidManifest: if a column is missing or a value malformed; file and line are named.
    """
    source = _parquet(path) if str(path).endswith(".parquet") else rows(path, _NEEDED)
    for line, row in source:
        where = f"{path}:{line}"
        arrival, duration = (_number(where, row, name) for name in _NEEDED)
        requests: dict[str, int] = {}
        for column, name in (("cpu", "cpu"), ("memory", "memory"), ("gpu", resource)):
            text = row.get(column)
            if text not in (None, ""):
                try:
                    requests[name] = amount(name, str(text))
                except InvalidManifest as error:
                    raise InvalidManifest(f"{where}: {column}: {error}") from None
        yield (
            arrival,
            Pod(
                str(row.get("name") or f"job-{line}"),
                str(row.get("namespace") or "default"),
                requests=requests,
                scored=(requests.get("cpu", 0), requests.get("memory", 0)),
                priority=int(_number(where, row, "priority", signed=True)),
                phases=(Phase(duration),),
                restart_policy="Never",
                user=str(row.get("user") or ""),
                group=str(row.get("group") or ""),
                min_member=int(_number(where, row, "min_member")),
            ),
        )


def _parquet(path: Path | str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise MissingExtra("reading Parquet", "cluster") from None
    try:
        file = parquet.ParquetFile(path)
    except (OSError, ValueError) as error:
        raise InvalidManifest(
            f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from None
    missing = [c for c in _NEEDED if c not in file.schema_arrow.names]
    if missing:
        raise InvalidManifest(f"{path}: column {missing[0]!r} is missing")
    line = 1
    for batch in file.iter_batches():
        for row in batch.to_pylist():
            line += 1
            yield line, row


def _number(where: str, row: Mapping[str, Any], column: str, signed: bool = False) -> float:
    value = row.get(column)
    if value in (None, ""):
        return 0.0
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if number != number or (number < 0 and not signed):
        raise InvalidManifest(f"{where}: {column}: expected a number of at least 0, got {value!r}")
    return number
