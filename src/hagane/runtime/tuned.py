"""The findings of tuning, kept between runs: a file of choices by processor and layer."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx_ir as ir

from hagane.machine import NoCompiler, data_folder, processor_name
from hagane.native import (
    Choice,
    Choices,
    Settings,
    Target,
    choice_from_json,
    choice_to_json,
    has_numbers,
    library_obstacle,
    tune,
)
from hagane.ops.inference import GraphTypes
from hagane.ops.values import tensor_to_array

_FORMAT = 1


class TuningCache:
    """A JSON file ``{"format": 1, "processors": {name: {layer: choice}}}``.

    It may be copied to other machines: measurements of another processor are not used there.

    Args:
        path: The file; in the user's cache folder if empty.
        logger: Where a notice goes if it cannot be read or written.
        kind: Names findings that are kept apart from those of sessions.
        elsewhere: Whether findings of another processor serve where there are none of this one.
    """

    def __init__(
        self, path: str, logger: logging.Logger, kind: str = "", *, elsewhere: bool = False
    ):
        self.path = Path(path) if path else data_folder("tuning") / "choices.json"
        self._logger = logger
        self._kind = f", {kind}" if kind else ""
        self._elsewhere = elsewhere
        self._processor = processor_name() + self._kind

    def load(self) -> dict[str, Choice]:
        """Return the findings for this processor; none if the file is not usable."""
        processors = self._read()
        found = processors.get(self._processor, {})
        others = [name for name in processors if name.endswith(self._kind)]
        if self._elsewhere and not found and len(others) == 1:
            self._logger.info("'%s': the findings are those of %s", self.path, others[0])
            found = processors[others[0]]
        choices: dict[str, Choice] = {}
        for key, item in found.items():
            try:
                choices[key] = choice_from_json(item)
            except ValueError as error:
                self._notice(f"its entry '{key}' is passed over: {error}")
        return choices

    def store(self, choices: Mapping[str, Choice]) -> None:
        """Add choices for this processor; other processes may do the same meanwhile."""
        from hagane.machine.whole_files import write_whole  # sessions that only run need none

        processors = self._read()
        own = processors.setdefault(self._processor, {})
        own.update({key: choice_to_json(choice) for key, choice in choices.items()})
        text = json.dumps({"format": _FORMAT, "processors": processors}, indent=1, sort_keys=True)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self.path, text)
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


@dataclass(frozen=True, slots=True)
class Tuning:
    """How the forms of kernels are chosen by measuring.

    Attributes:
        mode: ``fast`` measures the likely forms, ``full`` all.
        seconds: Time for that; layers that are left are decided by rule. With 0 nothing is
            measured.
        cache: The file of findings.
        logger: Where notices go.
        shipped: Whether the kernels are for a build, which calls no library: the choices are then
            those of the graph's layers alone.
    """

    mode: str
    seconds: float
    cache: TuningCache
    logger: logging.Logger
    shipped: bool = False
    _said: set[str] = field(default_factory=set, init=False, repr=False, compare=False)

    def choices(self, graph: ir.Graph, types: GraphTypes, target: Target) -> Choices:
        """Return the measurements of a graph's layers, of now or before."""
        if not has_numbers(types, graph):
            return {}
        known = self.cache.load()
        settings = Settings(
            target.level,
            target.threads,
            target.pairs,
            self.mode,
            self.seconds,
            library=not self.shipped,
        )
        constants = {
            value: tensor_to_array(value.const_value)
            for value in graph.initializers.values()
            if value.const_value is not None
        }
        try:
            with progress() as advance:
                found = tune(graph, types, constants, settings, known, advance)
        except NoCompiler:
            return {}  # said when the model itself is compiled
        kept = {key: choice for key, choice in found.choices.items() if key not in found.disturbed}
        if kept:
            self.cache.store(kept)
        if found.disturbed:
            self.logger.warning(
                "something else was running while %d of %d layers were measured: their choices "
                "serve this session and are not kept",
                len(found.disturbed),
                len(found.choices),
            )
        self._notice_library(found.layers, known)
        if found.left and self.seconds:
            self.logger.warning(
                "there was no time to measure %d layers; set SessionOptions.tune_seconds above %g, "
                "or make the session again",
                found.left,
                self.seconds,
            )
        together = {**known, **found.choices}
        if self.shipped:
            return {key: together[key] for key in sorted(found.layers & together.keys())}
        return together

    def _notice_library(self, layers: Container[str], known: Choices) -> None:
        """Say once that oneDNN was chosen for layers before, if it cannot be used now."""
        named = [key for key in known if key in layers and known[key].library == "onednn"]
        reason = library_obstacle() if named else None
        if reason is not None and "onednn" not in self._said:
            self._said.add("onednn")
            self.logger.warning(
                "oneDNN was measured to be fastest for %d layers, which are computed by other "
                "kernels now: %s",
                len(named),
                reason,
            )
