"""``hagane prob``: programs that draw random numbers, and the claims of their types."""

from __future__ import annotations

import json
import sys
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Annotated, Any

import typer

from hagane.errors import HaganeError, InvalidArgument, NoSuchFile
from hagane.tools.prob.claims.checker import check, load_program
from hagane.tools.prob.claims.export import export_prism
from hagane.tools.prob.claims.verdict import Report, Verdict
from hagane.tools.prob.engines.histogram import draw_histogram
from hagane.tools.prob.engines.ledger import main_unit
from hagane.tools.prob.engines.run import exact_text
from hagane.tools.prob.engines.sampling import sample
from hagane.tools.prob.language.program import Program
from hagane.tools.prob.language.source import ProgramError

app = typer.Typer(
    no_args_is_help=True,
    help="Bound probabilities by types: check, run and export probabilistic programs.",
)

_File = Annotated[Path, typer.Argument(metavar="FILE.pml", help="The program; - reads stdin.")]


@app.callback()
def _prepare(context: typer.Context) -> None:
    # Exact probabilities may have more digits than Python prints by default.
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    context.call_on_close(lambda: sys.set_int_max_str_digits(before))


@app.command("check")
def check_command(
    file: _File,
    engine: Annotated[
        str,
        typer.Option(
            help="auto (by size), dynamic (tables), diagram (decision diagrams), enumerate (all "
            "runs) or storm (needs stormpy)."
        ),
    ] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdicts as JSON.")] = False,
) -> None:
    """Decide the claims of a program: exit 0 if all hold, 1 if some fail, 2 on an error.

    A program is an expression with a type that says how likely its values are:
    rand(0, 5) : {x:int | Prob(x % 2 = 0) = 1/2}
    """
    try:
        report = check(_load(file), engine)
    except HaganeError as error:
        if as_json:
            print(json.dumps({"verdicts": [], "error": _error_json(error)}))
        raise
    if as_json:
        print(json.dumps(_report_json(report)))
    else:
        _show(report)
    raise typer.Exit(0 if report.holds else 1)


@app.command("run")
def run_command(
    file: _File,
    runs: Annotated[int, typer.Option("-n", "--runs", min=1, help="How many runs.")] = 10_000,
    seed: Annotated[int | None, typer.Option(help="Seed; the same one draws the same.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Run a program many times and draw how often each value came; types are not checked."""
    program = _load(file)
    counts, rejected = sample(program, main_unit(program), runs, Random(seed))
    if as_json:
        ordered = sorted(counts.items(), key=lambda item: repr(item[0]))
        histogram = [{"value": value, "count": count} for value, count in ordered]
        print(json.dumps({"runs": runs, "rejected": rejected, "histogram": histogram}))
        return
    for line in draw_histogram(counts):
        print(line)
    kept = runs - rejected
    print(f"{runs} runs" + (f", {kept} after observation" if rejected else ""))


@app.command("export")
def export_command(
    file: _File,
    prism: Annotated[
        bool, typer.Option("--prism", help="Write a PRISM model; the only format, for now.")
    ] = True,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Where to; the default is the screen.")
    ] = None,
    properties: Annotated[
        Path | None, typer.Option(help="Where to write the properties that decide the claims.")
    ] = None,
) -> None:
    """Write a program, its functions and types as a model and properties for PRISM or Storm."""
    del prism
    model = export_prism(_load(file))
    if properties is not None:
        _write("--properties", properties, model.properties)
    if output is not None:
        _write("--output", output, model.text)
        return
    print(model.text, end="")
    if properties is None:
        for line in model.properties.splitlines():
            print(line if line.startswith("//") else f"// {line}")


def _load(file: Path) -> Program:
    name = "<stdin>" if str(file) == "-" else str(file)
    try:
        stream = typer.get_binary_stream("stdin")
        data = stream.read() if name == "<stdin>" else file.read_bytes()
    except FileNotFoundError:
        raise NoSuchFile(f"there is no file '{file}'; expected a program, as text") from None
    except OSError as error:
        raise InvalidArgument(
            f"'{file}' cannot be read ({error.strerror}); expected a program, as text"
        ) from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidArgument(
            f"'{name}' is not UTF-8 text: byte {error.start} is 0x{data[error.start]:02x}; "
            "expected a program, as text"
        ) from None
    return load_program(text.replace("\r\n", "\n"), name)


def _write(option: str, path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidArgument(f"{option}: cannot write '{path}' ({error.strerror})") from None


def _error_json(error: HaganeError) -> dict[str, Any]:
    if not isinstance(error, ProgramError):
        return {"kind": type(error).__name__, "message": str(error)}
    return {
        "kind": type(error).__name__,
        "line": error.line,
        "column": error.column,
        "message": error.message,
    }


def _report_json(report: Report) -> dict[str, Any]:
    source = report.program.source
    notices = []
    for notice in report.notices:
        line, column = source.position(notice.span.start)
        notices.append({"line": line, "column": column, "message": notice.message})
    return {"verdicts": [_verdict_json(v) for v in report.verdicts], "notices": notices}


def _decimal(value: Fraction) -> float | None:
    try:
        return float(value)
    except OverflowError:  # an expectation beyond the range of JSON's numbers
        return None


def _verdict_json(verdict: Verdict) -> dict[str, Any]:
    return {
        "line": verdict.line,
        "column": verdict.column,
        "type": verdict.type,
        "holds": verdict.holds,
        "probabilities": [
            {
                "event": item.event,
                "value": exact_text(item.value),
                "decimal": _decimal(item.value),
                "within": exact_text(item.within),
            }
            for item in verdict.probabilities
        ],
        "engine": verdict.engine,
        "reason": verdict.reason,
        "subject": verdict.subject,
        "role": verdict.role,
        "at": {name.partition("#")[0]: value for name, value in verdict.circumstances.items()},
        "cases": verdict.cases,
        "exhaustive": verdict.exhaustive,
        "from_types": [
            None if bounds is None else [exact_text(bound) for bound in bounds]
            for bounds in verdict.ranges
        ],
        "note": verdict.note,
        "outcome": None
        if verdict.culprit is None
        else {
            "text": verdict.culprit.text,
            "probability": exact_text(verdict.culprit.probability),
            "run": verdict.culprit.run,
        },
    }


def _show(report: Report) -> None:
    source = report.program.source
    for notice in report.notices:
        line, column = source.position(notice.span.start)
        print(f"{source.name}:{line}:{column}: notice: {notice.message}")
        print(source.caret(notice.span))
    for verdict in report.verdicts:
        print(f"{source.name}:{verdict.line}:{verdict.column}: {verdict}")
    if not report.verdicts:
        print(
            f"{source.name}: no types to check; claim something, as in "
            "(…) : {x:int | Prob(x > 0) <= 1/10}"
        )
