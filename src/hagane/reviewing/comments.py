"""Comments that accept a finding: ``# hagane: ignore[shape-mismatch] checked by the caller``."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hagane.frontends.python.report.findings import Note, Problem
from hagane.frontends.python.values.values import Place

_COMMENT = re.compile(r"#\s*hagane:\s*ignore(?:\[(?P<codes>[^\]]*)\])?(?P<reason>.*)$")


@dataclass(frozen=True, slots=True)
class Ignored:
    """A comment that accepts findings of its line.

    Attributes:
        line: Where it stands.
        codes: The codes that it accepts; all if empty.
        reason: Why; one without is not followed.
    """

    line: int
    codes: frozenset[str]
    reason: str


def comments_of(source: str) -> list[Ignored]:
    """Return the comments of a source that accept findings."""
    found = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            match = _COMMENT.match(token.string) if token.type == tokenize.COMMENT else None
            if match:
                codes = (match["codes"] or "").split(",")
                named = frozenset(code.strip() for code in codes if code.strip())
                found.append(Ignored(token.start[0], named, match["reason"].strip(" :-–—")))
    except (tokenize.TokenError, SyntaxError):
        pass  # the check itself reports text that is no Python
    return found


def without_ignored(
    problems: Iterable[Problem],
    file: str,
    comments_in: Callable[[str], Iterable[Ignored]],
    *,
    is_read: Callable[[], bool] = lambda: False,
) -> tuple[list[Problem], list[Note], int]:
    """Return the findings that no comment accepts, notes about comments, and how many are accepted.

    A comment accepts the findings that begin on its line, or end there, whichever file was checked.
    It has to give a reason: one that gives none is noted where a finding meets it.

    Args:
        problems: The findings of one check.
        file: The file that was checked: comments of it that accept nothing are noted.
        comments_in: Gives the comments of a file.
        is_read: Says whether checks of other files follow its functions, whose findings its
            comments may be for; asked for comments that no finding meets.
    """
    by_file: dict[str, dict[int, Ignored]] = {}

    def by_line(name: str) -> dict[int, Ignored]:
        if name not in by_file:
            by_file[name] = {comment.line: comment for comment in comments_in(name)}
        return by_file[name]

    used: set[int] = set()
    bare: dict[tuple[str, int], Ignored] = {}  # comments without a reason, by file and line
    left: list[Problem] = []
    accepted = 0
    for problem in problems:
        place = problem.place
        lines = by_line(place.file)
        comment = next((lines[n] for n in (place.line, place.end_line) if n in lines), None)
        if comment is None or (comment.codes and problem.code not in comment.codes):
            left.append(problem)
            continue
        if place.file == file:
            used.add(comment.line)
        if comment.reason:
            accepted += 1
        else:
            left.append(problem)
            bare[place.file, comment.line] = comment
    idle = [comment for comment in by_line(file).values() if comment.line not in used]
    idle = idle if idle and not is_read() else []
    bare |= {(file, comment.line): comment for comment in idle if not comment.reason}
    notes = [
        _note(
            *where,
            "the comment has no reason and is not followed: write it behind the bracket, as in "
            f"# hagane: ignore[{next(iter(sorted(comment.codes)), 'shape-mismatch')}] checked by f",
        )
        for where, comment in bare.items()
    ]
    notes += [
        _note(
            file, comment.line, "the comment accepts nothing: no finding of its codes begins here"
        )
        for comment in idle
        if comment.reason
    ]
    return left, notes, accepted


def _note(file: str, line: int, message: str) -> Note:
    return Note(Place(file, line, 1, line, 1), message)
