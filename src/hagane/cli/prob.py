"""``hagane prob``: programs that draw random numbers, and the claims of their types."""

from __future__ import annotations

import json
import sys
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Annotated, Any

import typer

from hagane.cli.terminal.width import show, terminal_width
from hagane.errors import HaganeError, InvalidArgument, NoSuchFile
from hagane.machine.whole_files import write_whole
from hagane.tools.prob.claims.checker import check, load_program, solve
from hagane.tools.prob.claims.export import export_prism
from hagane.tools.prob.claims.verdict import Report, Verdict
from hagane.tools.prob.engines.histogram import draw_histogram
from hagane.tools.prob.engines.ledger import main_unit
from hagane.tools.prob.engines.run import exact_text
from hagane.tools.prob.engines.sampling import sample
from hagane.tools.prob.integrals.closed import Closed
from hagane.tools.prob.language.program import Program
from hagane.tools.prob.language.ratios import Number, Ratio
from hagane.tools.prob.language.source import ProgramError

app = typer.Typer(
    no_args_is_help=True,
    help="Bound probabilities by types: check, run and export probabilistic programs.",
)

_File = Annotated[Path, typer.Argument(metavar="FILE.pml", help="The program; - reads stdin.")]
_At = Annotated[
    list[str] | None,
    typer.Option("--at", metavar="P=VALUE", help="The value of a parameter, as in p=1/3."),
]
_Engine = Annotated[
    str,
    typer.Option(
        help="auto (by size), dynamic (tables), diagram (decision diagrams), enumerate (all runs), "
        "chain (linear equations) or storm (needs stormpy)."
    ),
]
_AsJson = Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")]


@app.callback()
def _prepare(context: typer.Context) -> None:
    # Exact probabilities may have more digits than Python prints by default.
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    context.call_on_close(lambda: sys.set_int_max_str_digits(before))


@app.command("check")
def check_command(
    file: _File,
    engine: _Engine = "auto",
    at: _At = None,
    as_json: _AsJson = False,
) -> None:
    """Decide the claims of a program: exit 0 if all hold, 1 if some fail, 2 on an error.

    A program is an expression with a type that says how likely its values are:

    rand(0, 5) : {x:int | Prob(x % 2 = 0) = 1/2}
    """
    try:
        report = check(_load(file, at), engine)
    except HaganeError as error:
        if as_json:
            print(json.dumps({"verdicts": [], "error": _error_json(error)}))
        raise
    if as_json:
        print(json.dumps(_report_json(report)))
    else:
        _show(report)
    raise typer.Exit(0 if report.holds else 1)


@app.command("solve")
def solve_command(
    file: _File, engine: _Engine = "auto", at: _At = None, as_json: _AsJson = False
) -> None:
    """Print the distribution of a program's value and its mean; types are not checked.

    Of a program with parameters (param p;) these are formulas, with the values for which they hold.
    """
    try:
        solution = solve(_load(file, at), engine)
    except HaganeError as error:
        if as_json:
            print(json.dumps({"distribution": [], "error": _error_json(error)}))
        raise
    if not as_json:
        show(str(solution))
        return
    distribution = [
        {"value": value, **_number_json(weight)} for value, weight in solution.distribution.items()
    ]
    mean = None if solution.mean is None else _number_json(solution.mean)
    unending = _number_json(solution.unending)
    print(
        json.dumps(
            {
                "distribution": distribution,
                "mean": mean,
                "where": solution.where,
                "unending": unending,
                "engine": solution.engine,
            }
        )
    )


@app.command("run")
def run_command(
    file: _File,
    runs: Annotated[int, typer.Option("-n", "--runs", min=1, help="How many runs.")] = 10_000,
    seed: Annotated[int | None, typer.Option(help="Seed; the same one draws the same.")] = None,
    at: _At = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Run a program many times and draw how often each value came; types are not checked."""
    program = _closed(_load(file, at), "run")
    counts, rejected = sample(program, main_unit(program), runs, Random(seed))
    if as_json:
        ordered = sorted(counts.items(), key=lambda item: repr(item[0]))
        histogram = [{"value": value, "count": count} for value, count in ordered]
        print(json.dumps({"runs": runs, "rejected": rejected, "histogram": histogram}))
        return
    for line in draw_histogram(counts, terminal_width()):
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
    at: _At = None,
) -> None:
    """Write a program, its functions and types as a model and properties for PRISM or Storm."""
    del prism
    model = export_prism(_closed(_load(file, at), "export"))
    if properties is not None:
        _write("--properties", properties, model.properties)
    if output is not None:
        _write("--output", output, model.text)
        return
    print(model.text, end="")
    if properties is None:
        for line in model.properties.splitlines():
            print(line if line.startswith("//") else f"// {line}")


def _closed(program: Program, command: str) -> Program:
    """Refuse parameters whose value is not given."""
    if program.parameters is not None:
        name = program.parameters.names[0]
        raise InvalidArgument(
            f"'{program.source.name}': '{command}' needs a value for each parameter, and "
            f"'{name}' has none; give it, as in --at {name}=1/2"
        )
    return program


def _values(at: list[str] | None) -> dict[str, Fraction]:
    found: dict[str, Fraction] = {}
    for given in at or []:
        name, equals, text = given.partition("=")
        try:
            value = Fraction(text.strip())
        except (ValueError, ZeroDivisionError):
            equals = ""
        if not equals:
            raise InvalidArgument(f"--at: expected NAME=NUMBER, as in p=1/3; got '{given}'")
        found[name.strip()] = value
    return found


def _load(file: Path, at: list[str] | None = None) -> Program:
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
    return load_program(text.replace("\r\n", "\n"), name, _values(at))


def _write(option: str, path: Path, text: str) -> None:
    try:
        write_whole(path, text)
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


def _number_json(number: Number | Closed) -> dict[str, Any]:
    if isinstance(number, Closed):
        if number.number is None:
            low, high = (float(end) for end in number.enclosure(32))
            return {"formula": number.text or None, "decimal": float(number), "from": [low, high]}
        number = number.number
    if isinstance(number, Ratio):
        constant = number.number
        if constant is None:
            return {"formula": str(number)}
        number = constant
    return {"exact": exact_text(number), "decimal": _decimal(number)}


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
        "formulas": [{"term": each.term, "formula": each.text} for each in verdict.formulas],
        "where": verdict.where,
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
        show(f"{source.name}:{line}:{column}: notice: {notice.message}")
        show(source.caret(notice.span))
    for verdict in report.verdicts:
        show(f"{source.name}:{verdict.line}:{verdict.column}: {verdict}")
    if not report.verdicts:
        print(
            f"{source.name}: no types to check; claim something, as in "
            "(…) : {x:int | Prob(x > 0) <= 1/10}"
        )
