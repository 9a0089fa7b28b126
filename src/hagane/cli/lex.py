"""``hagane lex``: make a lexer from a specification."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from hagane.errors import InvalidArgument, NoSuchFile
from hagane.lexgen import Lexer, diagnose
from hagane.lexgen.lexing.draw import draw_stages
from hagane.machine.whole_files import write_whole


def command(
    specification: Annotated[
        Path,
        typer.Argument(
            help=r"The specification, a .l file: definitions, a line %%, then rules such as "
            r"'\d+ NUMBER' and '\s+ skip' (docs/lexgen.md)."
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="The module to write: Python, or Rust if NAME.rs."),
    ] = None,
    native: Annotated[
        bool, typer.Option("--c", help="Add tokenize_arrays, compiled from C, to the module.")
    ] = False,
    dot: Annotated[
        bool, typer.Option("--dot", help="Draw each stage beside the output, as .dot and .svg.")
    ] = False,
    test: Annotated[
        Path | None, typer.Option(help="Tokenize this file and show the tokens.")
    ] = None,
    ambiguities: Annotated[
        bool, typer.Option("--ambiguities", help="List all pairs of rules with common texts.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Make a lexer from a specification.

    Findings about the rules go to standard error. The exit code is 0, or 2 if the specification or
    a file cannot be used.
    """
    started = time.perf_counter()
    lexer = Lexer.from_file(specification)
    compiled = lexer.compiled
    findings = diagnose(compiled, ambiguities)
    report: dict[str, Any] = {
        "specification": str(specification),
        "rules": len(compiled.specification.rules),
        "kinds": list(lexer.kinds),
        "conditions": list(compiled.specification.conditions),
        "states": compiled.dfa.n_states,
        "classes": compiled.dfa.n_classes,
        "diagnostics": [asdict(finding) for finding in findings],
        "files": [],
    }
    rust = output is not None and output.suffix == ".rs"
    if rust and native:
        raise InvalidArgument("--c: expected a Python module after -o, got a name that ends in .rs")
    if output is not None:
        _write(output, lexer.rust_source() if rust else lexer.python_source(native))
        report["files"].append(str(output))
    elif native:
        raise InvalidArgument("--c: expected -o FILE, the module to write, got none")
    if dot:
        base = (output or specification).with_suffix("")
        for suffix, text in draw_stages(compiled).items():
            path = base.with_name(f"{base.name}.{suffix}")
            _write(path, text)
            report["files"].append(str(path))
    report["seconds"] = time.perf_counter() - started
    if test is not None:
        report["tokens"] = [token._asdict() for token in lexer.tokenize(_read(test))]
    if as_json:
        print(json.dumps(report))
        return
    for finding in findings:
        print(f"warning: {finding.where}: {finding.message}", file=sys.stderr)
    for token in report.get("tokens", ()):
        print(f"{token['line']}:{token['column']}\t{token['kind']}\t{token['text']!r}")
    if test is None:
        print(
            f"{specification.name}: {report['rules']} rules, {report['states']} states, "
            f"{report['classes']} classes; {len(findings)} findings; {report['seconds']:.2f} s"
        )
        for path in report["files"]:
            print(f"wrote {path}")


def _write(path: Path, text: str) -> None:
    try:
        write_whole(path, text)
    except OSError as error:
        raise InvalidArgument(f"cannot write '{path}': {error.strerror}") from None


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise NoSuchFile(f"--test: there is no file '{path}'") from None
    except OSError as error:
        raise InvalidArgument(f"--test: cannot read '{path}': {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"--test: '{path}' is not UTF-8: {error}") from None
