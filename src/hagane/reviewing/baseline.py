"""Findings that are known already, in a file, so that only new ones are reported."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from hagane.errors import InvalidArgument
from hagane.frontends.python.report.findings import Problem
from hagane.machine.whole_files import write_whole
from hagane.reviewing.cells import notebook_of
from hagane.reviewing.files import real

_VERSION = 1


def fingerprint(problem: Problem, root: Path) -> str:
    """Return a mark that identifies a finding while the lines around it move.

    It is of the file, the code, the source line and the message.
    """
    file = Path(notebook_of(problem.place.file))
    if file.is_absolute() and file.is_relative_to(real(root)):
        file = file.relative_to(real(root))
    return json.dumps([file.as_posix(), problem.code, problem.text.strip(), problem.message])


def read_baseline(path: Path) -> Counter[str]:
    """Return the findings of a file, each with how often it is known.

    Raises:
        InvalidArgument: There is no such file, or it is none that ``--write-baseline`` wrote.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if found["version"] != _VERSION:
            raise KeyError("version")
        entries = [json.dumps(list(entry[:4])) for entry in found["findings"]]
        return Counter(dict(zip(entries, [entry[4] for entry in found["findings"]], strict=True)))
    except OSError as error:
        raise InvalidArgument(
            f"--baseline: cannot read '{path}' ({error.strerror}); make it with --write-baseline"
        ) from None
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise InvalidArgument(
            f"--baseline: '{path}' is none that --write-baseline {path} writes ({error!r})"
        ) from None


def write_baseline(path: Path, problems: Iterable[Problem], root: Path) -> int:
    """Write findings as known, and return how many they are."""
    counted = Counter(fingerprint(problem, root) for problem in problems)
    entries = [[*json.loads(one), count] for one, count in sorted(counted.items())]
    try:
        text = json.dumps({"version": _VERSION, "findings": entries}, indent=1)
        write_whole(path, text + "\n")
    except OSError as error:
        raise InvalidArgument(
            f"--write-baseline: cannot write '{path}' ({error.strerror})"
        ) from None
    return sum(counted.values())


def without_known(
    problems: Iterable[Problem], known: Counter[str], root: Path
) -> tuple[list[Problem], int]:
    """Return the findings that are new, and how many are known; each counts once."""
    left, rest, seen = [], Counter(known), 0
    for problem in problems:
        mark = fingerprint(problem, root)
        if rest[mark] > 0:
            rest[mark] -= 1
            seen += 1
        else:
            left.append(problem)
    return left, seen
