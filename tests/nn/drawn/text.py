"""The text of a program under construction, and the values that its lines have named."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Value:
    """A variable of the program: its name and shape."""

    name: str
    shape: Shape


@dataclass
class Text:
    """Lines of a model: those of ``__init__`` and those of ``forward``.

    Attributes:
        random: The source of all choices.
        made: Lines that make links, persistent values and arrays in ``__init__``.
        lines: Lines of ``forward``.
        values: What these have named so far, oldest first.
        smooth: Whether functions with kinks or random numbers are left out.
        indent: Blanks in front of a line.
    """

    random: random.Random
    smooth: bool = False
    made: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    indent: str = ""
    count: int = 0

    def number(self) -> int:
        """Return a number that no name has yet."""
        self.count += 1
        return self.count

    def line(self, text: str) -> None:
        """Write a line of ``forward``."""
        self.lines.append(self.indent + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Write a compound statement; values named in it are known in it alone."""
        self.line(head)
        before, known = self.indent, list(self.values)
        self.indent += "    "
        yield
        self.indent, self.values = before, known

    def let(self, text: str, shape: Sequence[int]) -> Value:
        """Name the value of an expression."""
        value = Value(f"v{self.number()}", tuple(shape))
        self.line(f"{value.name} = {text}")
        self.values.append(value)
        return value

    def link(self, text: str) -> str:
        """Make a link in ``__init__``; return its name."""
        name = f"l{self.number()}"
        self.made.append(f"{name} = {text}")
        return f"self.{name}"

    def array(self, shape: Sequence[int], low: float = -1, high: float = 1) -> str:
        """Return an expression of a constant array of the model's element type."""
        seed = self.random.randrange(1000)
        return f"drawn({seed}, {tuple(shape)}, {low}, {high})"

    def pick(self, rank: int | None = None) -> Value | None:
        """Return one of the values, recent ones rather, of a number of axes."""
        fitting = [one for one in self.values if rank is None or len(one.shape) == rank]
        if not fitting:
            return None
        return self.random.choice(fitting[-4:] if self.random.random() < 0.75 else fitting)

    def other(self, shape: Shape) -> str:
        """Return an operand of a shape: a value of it or a constant."""
        fitting = [one.name for one in self.values if one.shape == shape]
        return self.random.choice(fitting) if fitting else self.array(shape)
