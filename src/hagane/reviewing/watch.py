"""Check the files that a change concerns, until the caller ends it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from hagane.reviewing.files import Target, real
from hagane.reviewing.review import Review, Reviewed, changes_between, state_of


def watch(
    review: Review,
    targets: Callable[[], Sequence[Target]],
    wait: Callable[[], None] = lambda: time.sleep(0.5),
) -> Iterator[tuple[list[Path], list[Reviewed]]]:
    """Yield the findings in all targets, then in the targets of each change.

    Args:
        review: The check.
        targets: The files to check; asked for again after each wait, since files come and go.
        wait: Waits between two looks at the files.

    Yields:
        The files that changed, those that targets import included, none the first time, and the
        results.
    """
    named = targets()
    outside = _outside(review, named)
    before = state_of([*(target.file for target in named), *outside])
    yield [], list(review.run(named))
    while True:
        wait()
        named = targets()
        after = state_of([*(target.file for target in named), *outside])
        changed = changes_between(before, after)
        if not changed:
            continue
        gone = [path for path in changed if path not in after]
        files = [*(target.file for target in named), *gone]
        # What a file that is gone was read by is known of the imports before.
        concerned = {real(path) for path in review.imports.dependants(gone)}
        review = replace(review, files=files, _imports=None)
        concerned |= {real(path) for path in review.imports.dependants(changed)}
        again = [target for target in named if real(target.file) in concerned]
        outside = _outside(review, named)
        before = state_of([*(target.file for target in named), *outside])
        yield changed, list(review.run(again))


def _outside(review: Review, named: Sequence[Target]) -> list[Path]:
    """Return the files that are read by the targets, and are none of them."""
    own = {real(target.file) for target in named}
    read = {path for target in named for path in review.imports.read_by(target.file)}
    return sorted(read - own)


def counted(
    before: Mapping[Path, int], changed: Sequence[Path], results: Sequence[Reviewed]
) -> dict[Path, int]:
    """Return the errors of each file after a change: of those that it concerns, and of others.

    Args:
        before: The errors of each file before it.
        changed: The files that changed, of which some may be gone.
        results: What was found in the files that the change concerns.
    """
    gone = {real(path) for path in changed}
    left = {path: count for path, count in before.items() if path not in gone}
    found: dict[Path, int] = {}
    for one in results:
        file = real(one.file)
        found[file] = found.get(file, 0) + len(one.report.errors)
    return left | found
