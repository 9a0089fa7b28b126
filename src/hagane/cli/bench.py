"""``hagane bench``: time a model beside other engines, all in one run."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from hagane.cli.feeds import parse_shapes
from hagane.cli.numbers import finite
from hagane.cli.terminal.width import show
from hagane.errors import InvalidArgument
from hagane.runtime.bench import BUILD, ENGINES, compare, time_build
from hagane.runtime.options import Precision
from hagane.runtime.values.feeds import check_sizes, feed_shapes


def command(
    context: typer.Context,
    model: Annotated[Path, typer.Argument(help="The ONNX model, or the folder of a build.")],
    vs: Annotated[
        str, typer.Option(help=f"Engines to compare with: {', '.join(ENGINES[1:])}, or none.")
    ] = "onnxruntime",
    build: Annotated[
        list[Path] | None, typer.Option(help="A build of the model, timed beside it.")
    ] = None,
    shape: Annotated[
        list[str] | None, typer.Option(help="NAME=1,3,224,224: sizes of an input.")
    ] = None,
    threads: Annotated[int, typer.Option(help="Threads of each engine; 0 takes all.")] = 0,
    rounds: Annotated[int, typer.Option(help="Rounds; the engines take turns in each.")] = 7,
    seconds: Annotated[
        float, typer.Option(help="Time of one engine in one round.", callback=finite)
    ] = 0.3,
    precision: Annotated[
        Precision, typer.Option(help="fp32, or bf16: products of constant weights in bfloat16.")
    ] = "fp32",
    profile: Annotated[
        bool, typer.Option("--profile", help="Show the time of each kernel instead.")
    ] = False,
    trace: Annotated[
        Path | None, typer.Option(help="With --profile: a file for Perfetto or Chrome.")
    ] = None,
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
    if profile or trace is not None:
        _profile(model, parse_shapes(shape or []), count, precision, trace, as_json)
        return
    if (model / "manifest.json").is_file():
        if build:
            raise InvalidArgument(f"--build: '{model}' is a build itself; expected an ONNX model")
        with _progress(rounds) as advance:
            report = time_build(model, parse_shapes(shape or []), count, rounds, seconds, advance)
        compared = f"it reads no builds: hagane bench MODEL --build {model} compares"
        report["skipped"] = dict.fromkeys(others, compared)
        if as_json:
            print(json.dumps(report, indent=1))
        else:
            _show(report)
        return
    engines = ["hagane", *(f"{BUILD}:{folder}" for folder in build or ()), *others]
    plugins = [str(path) for path in context.find_root().params.get("plugin") or ()]
    prepare = functools.partial(_load_plugins, plugins) if plugins else None
    with _progress(rounds * len(engines)) as advance:
        report = compare(
            model,
            engines,
            parse_shapes(shape or []),
            count,
            rounds,
            seconds,
            advance,
            precision,
            prepare,
        )
    if as_json:
        print(json.dumps(report, indent=1))
    else:
        _show(report)


def _load_plugins(paths: Sequence[str]) -> None:
    """Register the operators of some files, in a process that times an engine."""
    from hagane.plugins import load_plugin

    for path in paths:
        load_plugin(path)


def _profile(
    model: Path,
    shapes: dict[str, tuple[int, ...]],
    threads: int,
    precision: Precision,
    trace: Path | None,
    as_json: bool,
) -> None:
    """Print where the time of a model goes."""
    import numpy as np

    from hagane.runtime import InferenceSession, SessionOptions
    from hagane.runtime.values.feeds import random_feed

    options = SessionOptions(intra_op_num_threads=threads, precision=precision)
    session = InferenceSession(model, options)
    check_sizes(session.get_inputs(), shapes)
    feed = random_feed(session.get_inputs(), shapes, np.random.default_rng(0))
    report = session.profile(feed)
    if trace is not None:
        report.write(trace)
    if as_json:
        print(json.dumps(dataclasses.asdict(report), indent=1))
    else:
        show(_inputs_line(feed_shapes(session.get_inputs(), shapes)))
        print(report)
        if trace is not None:
            print(f"trace: {trace}")


class _progress:  # noqa: N801  # reads as a verb at its only call
    """A progress bar over all turns of all engines, on a terminal only."""

    def __init__(self, total: int):
        from rich.console import Console
        from rich.progress import Progress

        console = Console(stderr=True)  # elsewhere, an empty line would be left
        self._bar = Progress(console=console, transient=True, disable=not console.is_terminal)
        self._task = self._bar.add_task("measuring", total=total)

    def __enter__(self) -> Any:
        self._bar.start()
        return lambda: self._bar.advance(self._task)

    def __exit__(self, *_: object) -> None:
        self._bar.stop()


def _inputs_line(shapes: Mapping[str, Sequence[int]]) -> str:
    return "inputs: " + ", ".join(f"{name}[{', '.join(map(str, s))}]" for name, s in shapes.items())


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
    show(_inputs_line(report["shapes"]))
    console.print(table)
    for name, ratio in report["ratios"].items():
        console.print(f"{name}: {ratio:.2f}")
    for name, reason in report["skipped"].items():
        console.print(f"{name} was left out: {reason}")
