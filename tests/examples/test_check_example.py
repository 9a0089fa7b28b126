"""The example of the checker, and its page, say what the command prints."""

from __future__ import annotations

from pathlib import Path

from hagane.checking import Request, check_source
from hagane.frontends.python.report.render import render_text

ROOT = Path(__file__).parents[2]


def test_the_recogniser_has_its_mistakes_at_the_lines_that_tell_them() -> None:
    path = Path("examples/check/recogniser.py")
    report = check_source(Request(ROOT / path, "Recogniser", make="Recogniser(40)"))
    marked = {
        number
        for number, line in enumerate((ROOT / path).read_text().splitlines(), 1)
        if line.rstrip().endswith(("is missing", "lack the last axis"))
    }
    assert marked <= {problem.place.line for problem in report.errors}
    assert report.exit_code == 1
    text = "\n".join(render_text(report)).replace(f"{ROOT}/", "")
    page = (ROOT / "docs" / "check.md").read_text()
    quoted = page.partition("```\nexamples/check/")[2].partition("```")[0]
    assert f"examples/check/{quoted}".strip() in text
