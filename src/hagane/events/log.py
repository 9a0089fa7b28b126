"""An append-only log of events: one JSON object a line, the same bytes for the same run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any

# Made once: json.dumps would make one for every record.
_ENCODE = json.JSONEncoder(separators=(",", ":"), default=str).encode


class EventLog:
    """Writes events as JSON lines and keeps their digest.

    Every record is written whole, so a log that ends early (an error, a kill) is a correct log of
    the events until then. Without a path the records stay in memory.

    Attributes:
        count: records written so far.
    """

    def __init__(self, path: Path | str | None = None, keep: bool | None = None):
        self.count = 0
        self._digest = hashlib.sha256()
        self._file: IO[str] | None = None
        if path is not None:
            self._file = open(path, "w", encoding="utf-8", newline="\n")  # noqa: SIM115
        self._records: list[dict[str, Any]] | None = (
            [] if (keep if keep is not None else path is None) else None
        )

    def write(self, time: float, kind: str, **fields: object) -> None:
        """Append one record; ``time`` and ``kind`` come first, the fields in the order given."""
        record = {"time": time, "kind": kind, **fields}
        line = _ENCODE(record) + "\n"
        self._digest.update(line.encode())
        if self._file is not None:
            self._file.write(line)
        if self._records is not None:
            self._records.append(record)
        self.count += 1

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return iter(self._records or ())

    def digest(self) -> str:
        """Return the SHA-256 of all lines so far, in hexadecimal."""
        return self._digest.hexdigest()

    def flush(self) -> None:
        """Flush written records to the operating system."""
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        """Flush and close the file; the log in memory stays readable."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> EventLog:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
