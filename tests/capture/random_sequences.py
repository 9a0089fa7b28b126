"""Random sequences of calls, with changes between them of everything that a program may read.

A program has some of the features of its subject, each a statement and the changes that may come
between two calls.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

Weighted = tuple[tuple[str, int], ...]


class Feature(NamedTuple):
    """A statement of a program that reads something, and changes of what it reads."""

    statement: str
    changes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Subject:
    """Programs of one kind.

    Attributes:
        top: The text before the statements, which ends with the head of a function.
        lines: Statements; below each, indented, the changes of what it reads.
        end: The text behind the statements.
        calls: Texts of the first argument, with their weights.
        more: Texts of the arguments after it, with theirs.
        indent: The depth of the statements.
    """

    top: str
    lines: str
    end: str
    calls: Weighted
    more: Weighted
    indent: int = 8

    @cached_property
    def features(self) -> list[Feature]:
        """The features of the lines."""
        made: list[Feature] = []
        for line in self.lines.strip().splitlines():
            if line.startswith(" "):
                more = tuple(line.strip().split(" ;; "))
                made[-1] = made[-1]._replace(changes=made[-1].changes + more)
            else:
                made.append(Feature(line))
        return made

    def sequence(self, seed: int) -> tuple[str, list[str]]:
        """Return the text of a program, and lines to run in it.

        Lines that begin with ``call(`` are calls of the program, the others changes.
        """
        draw = random.Random(seed)
        chosen = [draw.choice(self.features) for _ in range(draw.randint(1, 4))]
        parts = [" " * self.indent + feature.statement + "\n" for feature in chosen]
        text = self.top + "".join(parts) + self.end
        changes = [change for feature in chosen for change in feature.changes]
        lines = []
        for number in range(draw.randint(4, 9)):
            if changes and number and draw.random() < 0.7:
                lines.append(draw.choice(changes))
            x = _drawn(draw, self.calls if draw.random() < 0.5 else self.calls[:1])
            more = _drawn(draw, self.more if draw.random() < 0.5 else self.more[:1])
            lines.append(f"call({x}{more})".format(n=number))
        return text, lines


def _drawn(draw: random.Random, weighted: Weighted) -> str:
    return draw.choices([text for text, _ in weighted], [weight for _, weight in weighted])[0]
