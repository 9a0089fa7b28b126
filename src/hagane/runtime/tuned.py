"""What tuning found, kept between runs: a file of choices by processor and layer."""

from __future__ import annotations

import json
import logging
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from hagane.machine import data_folder, processor_name
from hagane.native import Choice, choice_from_json, choice_to_json

_FORMAT = 1


class TuningCache:
    """A JSON file ``{"format": 1, "processors": {name: {layer: choice}}}``.

    It may be copied to other machines: what was found on another processor is not used there.

    Args:
        path: The file; in the user's cache folder if empty.
        logger: Where a notice goes if it cannot be read or written.
    """

    def __init__(self, path: str, logger: logging.Logger):
        self.path = Path(path) if path else data_folder("tuning") / "choices.json"
        self._logger = logger
        self._processor = processor_name()

    def load(self) -> dict[str, Choice]:
        """Return what is known of this processor; nothing if the file is not usable."""
        found = self._read().get(self._processor, {})
        choices: dict[str, Choice] = {}
        for key, item in found.items():
            try:
                choices[key] = choice_from_json(item)
            except ValueError as error:
                self._notice(f"its entry '{key}' is passed over: {error}")
        return choices

    def store(self, choices: Mapping[str, Choice]) -> None:
        """Add choices for this processor; other processes may do the same meanwhile."""
        processors = self._read()
        own = processors.setdefault(self._processor, {})
        own.update({key: choice_to_json(choice) for key, choice in choices.items()})
        text = json.dumps({"format": _FORMAT, "processors": processors}, indent=1, sort_keys=True)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.path.parent, prefix="choices-")
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    file.write(text)
                os.replace(name, self.path)
            except BaseException:
                with suppress(OSError):
                    os.unlink(name)
                raise
        except OSError as error:
            self._notice(f"it cannot be written ({error}): what was measured is not kept")

    def _read(self) -> dict[str, dict[str, Any]]:
        try:
            found = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            self._notice(f"it cannot be read ({error}): layers are measured anew")
            return {}
        if not isinstance(found, dict) or found.get("format") != _FORMAT:
            self._notice(f"expected format {_FORMAT}: layers are measured anew")
            return {}
        processors = found.get("processors")
        if not isinstance(processors, dict) or not all(
            isinstance(own, dict) for own in processors.values()
        ):
            self._notice("expected a table of processors: layers are measured anew")
            return {}
        return processors

    def _notice(self, text: str) -> None:
        self._logger.warning("the tuning cache '%s' is not usable as it is: %s", self.path, text)


@contextmanager
def progress() -> Iterator[Callable[[int, int], None]]:
    """Yield a function that shows how many layers are done, on a terminal only."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("tuning", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
