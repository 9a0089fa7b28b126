"""``hagane rtl``: test patterns for circuits."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from hagane.cli.numbers import finite
from hagane.cli.terminal.width import show, terminal_width
from hagane.errors import InvalidArgument
from hagane.machine.whole_files import write_whole
from hagane.tools.rtl import Budget, Result, cover, read_sources, to_json
from hagane.tools.rtl.circuit.elaborate import find_top
from hagane.tools.rtl.report import write_report
from hagane.tools.rtl.search.search import Report
from hagane.tools.rtl.waivers import read_waivers

_LONGEST = 10**7  # seconds, about four months: more than any timer of this machine has to take

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)


@app.callback()
def _group() -> None:
    """Test patterns for SystemVerilog circuits."""


@app.command("cover")
def cover_command(
    files: Annotated[list[Path], typer.Argument(help="Source files, packages first.")],
    top: Annotated[
        str | None,
        typer.Option(help="The module to test; if none is named, that in which all others are."),
    ] = None,
    include: Annotated[
        list[Path] | None, typer.Option("-I", help="Folder of included files.")
    ] = None,
    define: Annotated[list[str] | None, typer.Option("-D", help="Macro: NAME or NAME=X.")] = None,
    parameter: Annotated[
        list[str] | None, typer.Option("-G", help="Parameter of the top module: NAME=VALUE.")
    ] = None,
    assertion: Annotated[
        list[str] | None,
        typer.Option(
            "--assert",
            help="Expression over the top module's names, searched for inputs that break it.",
        ),
    ] = None,
    cycles: Annotated[int, typer.Option(help="Most cycles to look ahead after reset.")] = 24,
    seconds: Annotated[
        float,
        typer.Option(help="Time limit of everything, building included.", callback=finite),
    ] = 60.0,
    covered: Annotated[
        list[Path] | None,
        typer.Option(
            "--covered",
            help="Coverage of existing tests (coverage.dat or UCIS XML), not sought again.",
        ),
    ] = None,
    power_on: Annotated[
        str,
        typer.Option(
            help="What registers without an initial value begin with: 'zero', or 'any' value."
        ),
    ] = "zero",
    waive: Annotated[
        Path | None, typer.Option(help="TOML file of points that need no test, with reasons.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for tests and reports.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the random tests.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Find tests that reach every point of a circuit, and replay them in a simulator.

    The status is 1 if an assertion is broken, of --assert or of the source.
    """
    if cycles < 1:
        raise InvalidArgument(f"--cycles: expected a number of at least 1, got {cycles}")
    if not 0 < seconds <= _LONGEST:
        raise InvalidArgument(
            f"--seconds: expected a time above 0 and of at most {_LONGEST:,}, got {seconds:g}"
        )
    if power_on not in ("zero", "any"):
        raise InvalidArgument(f"--power-on: expected 'zero' or 'any', got '{power_on}'")
    parameters = dict(_pair(text) for text in parameter or [])
    waivers = read_waivers(waive)
    sources = read_sources(files, top or "", include or [], define or [], parameters)
    if top is None:
        top = find_top(sources)
        sources = replace(sources, top=top)
    if out is not None:
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidArgument(f"--out {out}: cannot be made: {error.strerror}") from None
    with _progress() as report:
        result = cover(
            sources,
            Budget(seconds, cycles),
            assertions=assertion or [],
            seed=seed,
            report=report,
            covered=covered or [],
            waivers=waivers,
            any_start=power_on == "any",
        )
    if out is not None:
        write_whole(out / "tests.csv", result.csv)
        write_whole(out / "tb.sv", result.testbench)
        write_whole(out / f"test_{top}.py", result.cocotb)
        if result.ports:
            write_whole(out / f"{top}_ports.sv", result.ports)
        write_whole(out / "report.html", write_report(result))
    if as_json:
        print(json.dumps(to_json(result), indent=2))
    else:
        _show(result)
    if any(item.status == "violated" for item in result.assertions):
        raise typer.Exit(1)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InvalidArgument(f"-G: expected NAME=VALUE, got '{text}'")
    return name, value


@contextmanager
def _progress() -> Iterator[Report | None]:
    """Show how many points are covered, dead and unknown, if standard error is a terminal."""
    import sys

    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    with Progress(
        TextColumn("points"),
        BarColumn(),
        TextColumn(
            "{task.fields[covered]} covered, {task.fields[dead]} dead, "
            "{task.fields[unknown]} unknown"
        ),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as progress:
        task = progress.add_task("search", covered=0, dead=0, unknown=0)

        def report(covered: int, dead: int, unknown: int) -> None:
            progress.update(
                task, total=covered + dead + unknown, completed=covered + dead,
                covered=covered, dead=dead, unknown=unknown,
            )  # fmt: skip

        yield report


_COLUMNS = {
    "total": ("total", 7),
    "covered": ("covered", 8),
    "dead": ("dead", 6),
    "reachable": ("reachable", 10),
    "waived": ("waived", 7),
    "unknown": ("unknown", 8),
    "dead_within_cycles": ("dead in K cycles only", 22),
}


def _table(counts: Mapping[str, Mapping[str, int]], width: int | None) -> Iterator[str]:
    """Yield the points by kind; columns of zeros are left out where they do not fit."""
    columns = dict(_COLUMNS)

    def wide() -> bool:
        return width is not None and 10 + sum(each + 1 for _, each in columns.values()) > width

    if wide():
        columns["dead_within_cycles"] = ("in K cycles", 12)
    for name in ("waived", "reachable", "dead_within_cycles"):
        if wide() and not any(row[name] for row in counts.values()):
            del columns[name]
    yield " ".join([f"{'':10}", *(f"{title:>{each}}" for title, each in columns.values())])
    for kind, row in counts.items():
        numbers = (f"{row[name]:{each}}" for name, (_, each) in columns.items())
        yield " ".join([f"{kind:10}", *numbers])


def _show(result: Result) -> None:
    for line in _table(result.counts(), terminal_width()):
        print(line)
    cycles = sum(len(test) for test in result.tests)
    print(f"{len(result.tests)} tests, {cycles} cycles, {result.seconds:.1f} s")
    show(f"replayed in {result.simulator or 'no simulator: nothing counts as covered'}")
    for standing in result.assertions:
        where = f" by test {standing.test} in cycle {standing.cycle}" if standing.inputs else ""
        show(f"assertion {standing.name}: {standing.status}{where} {standing.why}".rstrip())
        for name, value in (standing.inputs or {}).items():
            print(f"    {name} = 0x{value:x}")
    for item in result.statuses:
        if item.status == "unknown":
            show(f"unknown: {item.kind} {item.where}: {item.why}")
    for text in result.defects:
        show(f"difference: {text}")
    for text in result.notices:
        show(f"notice: {text}")
