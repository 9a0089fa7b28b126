"""``hagane check``: types and symbolic shapes of a model before it runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from hagane.checking import Request, check_imported, check_source, explore
from hagane.errors import InvalidArgument
from hagane.frontends.python.report.findings import Report
from hagane.frontends.python.report.render import (
    render_text,
    render_types,
    report_json,
    report_sarif,
)
from hagane.frontends.python.values.type_text import parse_type


def command(
    target: Annotated[
        str,
        typer.Argument(
            metavar="FILE.py[:Class[.method]|:function]",
            help="What to check; without a name, everything whose arguments carry shapes.",
        ),
    ],
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            help="The type of an argument, as x=float32[batch, 3, height=224, width=224]; "
            "numbers behind = are sizes in an example. May be repeated.",
        ),
    ] = None,
    make: Annotated[
        str, typer.Option(help="An expression that makes the object, as 'Model(10)'.")
    ] = "",
    sizes: Annotated[
        list[str] | None,
        typer.Option("--size", help="The size of a name in the example, as batch=2."),
    ] = None,
    show_types: Annotated[
        bool, typer.Option("--show-types", help="Print the source with the type of everything.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
    sarif: Annotated[
        Path | None, typer.Option(help="Where to write the findings as SARIF, for editors.")
    ] = None,
    exploring: Annotated[
        bool,
        typer.Option(
            "--explore",
            help="Look for sizes that reach other branches, and replay errors for real.",
        ),
    ] = False,
    no_import: Annotated[
        bool, typer.Option("--no-import", help="Work from the source alone; run nothing of it.")
    ] = False,
) -> None:
    """Check types and shapes of a model before it runs: exit 0 clean, 1 errors, 2 not checked.

    hagane check model.py:Net --make 'Net(10)' --input 'x=float32[batch, 3, height, width]'
    """
    request = _request(target, inputs or [], make, sizes or [])
    report = _checked(request, exploring=exploring, no_import=no_import)
    if sarif is not None:
        _write(sarif, json.dumps(report_sarif(report), indent=2))
    if as_json:
        print(json.dumps(report_json(report)))
    elif show_types and report.types:
        for line in render_types(report, str(request.file)):
            print(line)
        for line in render_text(report):
            print(line)
    else:
        for line in render_text(report):
            print(line)
    raise typer.Exit(report.exit_code)


def _checked(request: Request, *, exploring: bool, no_import: bool) -> Report:
    """Check from source; import only where that leaves the object unknown, or to replay."""
    if exploring:
        return explore(request, replay=not no_import)
    report = check_source(request)
    if no_import or report.errors or (report.checked and not report.unknown):
        return report
    return check_imported(request, report)


def _request(target: str, inputs: list[str], make: str, sizes: list[str]) -> Request:
    path, _, name = target.rpartition(":") if ":" in target else (target, "", "")
    if not path or path.endswith((":", "\\")):
        path, name = target, ""
    request = Request(Path(path), name.strip(), make=make)
    given: dict[str, str] = {}
    for text in inputs:
        argument, equals, type_text = text.partition("=")
        if not equals or not argument.strip().isidentifier():
            raise InvalidArgument(
                f"--input '{text}': expected NAME=TYPE, as x=float32[batch, 3, 224, 224]"
            )
        parse_type(type_text)
        given[argument.strip()] = type_text
    numbers: dict[str, int] = {}
    for text in sizes:
        size, _, value = text.partition("=")
        if not value.strip().isdigit():
            raise InvalidArgument(f"--size '{text}': expected NAME=NUMBER, as batch=2")
        numbers[size.strip()] = int(value)
    return replace(request, inputs=given, sizes=numbers)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidArgument(f"--sarif: cannot write '{path}' ({error.strerror})") from None
