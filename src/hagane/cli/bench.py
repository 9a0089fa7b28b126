"""``hagane bench``: time a model beside other engines, all in one run."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from hagane.cli.feeds import parse_shapes
from hagane.errors import InvalidArgument
from hagane.runtime.bench import ENGINES, compare


def command(
    model: Annotated[Path, typer.Argument(help="The ONNX model.")],
    vs: Annotated[
        str, typer.Option(help=f"Engines to compare with: {', '.join(ENGINES[1:])}, or none.")
    ] = "onnxruntime",
    shape: Annotated[
        list[str] | None, typer.Option(help="NAME=1,3,224,224: sizes of an input.")
    ] = None,
    threads: Annotated[int, typer.Option(help="Threads of each engine; 0 takes all.")] = 0,
    rounds: Annotated[int, typer.Option(help="Rounds; the engines take turns in each.")] = 7,
    seconds: Annotated[float, typer.Option(help="Time of one engine in one round.")] = 0.3,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Time a model: medians, the share of the machine's peak, ratios to other engines."""
    others = [name.strip() for name in vs.split(",") if name.strip() and name.strip() != "none"]
    unknown = [name for name in others if name not in ENGINES]
    if unknown:
        raise InvalidArgument(
            f"--vs: unknown engine {', '.join(unknown)}; known: {', '.join(ENGINES[1:])}"
        )
    if rounds < 1 or seconds <= 0:
        raise InvalidArgument("--rounds and --seconds have to be positive")
    count = threads or len(os.sched_getaffinity(0))
    engines = ["hagane", *others]
    with _progress(rounds * len(engines)) as advance:
        report = compare(model, engines, parse_shapes(shape or []), count, rounds, seconds, advance)
    if as_json:
        print(json.dumps(report, indent=1))
    else:
        _show(report)


class _progress:  # noqa: N801  # reads as a verb at its only call
    """A progress bar over all turns of all engines, on a terminal only."""

    def __init__(self, total: int):
        from rich.console import Console
        from rich.progress import Progress

        self._bar = Progress(console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task("measuring", total=total)

    def __enter__(self) -> Any:
        self._bar.start()
        return lambda: self._bar.advance(self._task)

    def __exit__(self, *_: object) -> None:
        self._bar.stop()


def _show(report: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("engine", "version", "precision", "median ms", "min ms", "share of peak")
    for row in report["results"]:
        share = "?" if row["peak_share"] is None else f"{row['peak_share']:.1%}"
        table.add_row(
            row["engine"],
            row["version"],
            row["precision"],
            f"{row['median_ms']:.3f}",
            f"{row['min_ms']:.3f}",
            share,
        )
    console = Console()
    console.print(table)
    for name, ratio in report["ratios"].items():
        console.print(f"{name}: {ratio:.2f}")
    for name, reason in report["skipped"].items():
        console.print(f"{name} was left out: {reason}")
