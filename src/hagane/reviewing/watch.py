"""Check the files that a change concerns, until the caller ends it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from hagane.reviewing.files import Target
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
        The files that changed, none the first time, and the results.
    """
    named = targets()
    before = state_of(target.file for target in named)
    yield [], list(review.run(named))
    while True:
        wait()
        named = targets()
        after = state_of(target.file for target in named)
        changed = changes_between(before, after)
        if not changed:
            continue
        before = after
        review = replace(review, files=[target.file for target in named], _imports=None)
        concerned = {path.resolve() for path in review.imports.dependants(changed)}
        again = [target for target in named if target.file.resolve() in concerned]
        yield changed, list(review.run(again))
