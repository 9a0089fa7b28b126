"""Random programs over lists of lists, objects in lists, and names for what the data choose.

Numbers are small whole ones, held so by remainders. Statements append, set, exchange, pop, choose
between two names, and give second names to rows; results show every row.
"""

from __future__ import annotations

import random

_START = """def program(x):
    n = len(x)
    a, b = [1, 2], [3, 4]
    rows = [[0, 5], [6, 7], [8, 9]]
    table = {table}
    row, other = {row}, {other}
    total = 0
"""
_END = """    shown = total
    for one in rows:
        for value in one:
            shown = (shown * 7 + value) % 10007
    for one in table:
        for value in one:
            shown = (shown * 5 + value) % 10007
    for value in a + b:
        shown = (shown * 3 + value) % 10007
    return shown, len(table), len(a), {seen}
"""


class Drawn:
    """A program being drawn.

    Args:
        seed: Decides it.
    """

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.numbers = ["n", "total", "len(table)", "2", "1"]

    def program(self) -> str:
        """Return its source."""
        names = ["a", "b", "rows[0]", "rows[n % 3]", "table[0]", "table[-1]", "[0, 1]"]
        first = _START.format(
            table=self.random.choice(
                [
                    "[[k, 1] for k in range(n)]",
                    "[[0] * n for _ in range(n)]",
                    "[[3]] * 2",
                    "[[2, 4]]",
                ]
            ),
            row=self.random.choice(names),
            other=self.random.choice(names),
        )
        for _ in range(self.random.randint(2, 5)):
            self.statement("    ", 2)
        seen = self.random.choice(["row[0]", "other[-1]", "total", "rows[1][0]"])
        return first + "".join(self.lines) + _END.format(seen=seen)

    def number(self) -> str:
        """Return an expression of a number."""
        kind = self.random.randrange(6)
        if kind == 0:
            return f"{self.list()}[{self.random.choice(['0', '-1', '0'])}]"
        if kind == 1:
            return f"({self.number()} + {self.random.choice(self.numbers)})"
        return self.random.choice(self.numbers)

    def list(self) -> str:
        """Return an expression of a list that has an item."""
        return self.random.choice(
            ["a", "b", "row", "other", "rows[n % 3]", "rows[1]", "table[0]", "table[-1]",
             f"table[{self.random.choice(self.numbers)} % len(table)]",
             f"rows[{self.random.choice(self.numbers)} % 3]"]
        )  # fmt: skip

    def condition(self) -> str:
        """Return a condition that the data decide."""
        return self.random.choice(
            [f"{self.number()} % 2 == 0", "x[0, 0] > 1", "x[-1, 1] > 1", "n > 2", "total % 3 == 1"]
        )

    def statement(self, indent: str, depth: int) -> None:
        """Add a statement."""
        kind = self.random.randrange(11)
        one = self.list()
        say = self.lines.append
        if kind == 0:
            say(f"{indent}{one}.append({self.number()} % 11)\n")
        elif kind in (1, 2):
            say(f"{indent}{one}[{self.random.choice(['0', '-1'])}] = {self.number()} % 13\n")
        elif kind == 3:
            say(f"{indent}{one}[0] += {self.number()} % 5\n")
        elif kind == 4:
            name = self.random.choice(["row", "other"])
            text = self.random.choice(
                [f"{one} if {self.condition()} else {self.list()}", one, f"[{self.number()} % 7]"]
            )
            say(f"{indent}{name} = {text}\n")
        elif kind == 5:
            made = self.random.choice([f"[{self.number()} % 7, 2]", "row", "list(other)", one])
            say(f"{indent}table.append({made})\n")
        elif kind == 6:
            say(f"{indent}total = (total * 3 + {self.number()}) % 101\n")
        elif kind == 7:
            place = f"{self.random.choice(self.numbers)} % 3"
            say(f"{indent}rows[{place}], rows[0] = rows[0], rows[{place}]\n")
        elif kind == 8 and depth:
            say(f"{indent}if {self.condition()}:\n")
            self.block(indent, depth)
            if self.random.random() < 0.5:
                say(f"{indent}else:\n")
                self.block(indent, depth)
        elif kind == 9 and depth:
            name, count = f"i{depth}", self.random.choice(["n", "n", "3", "len(table)"])
            say(f"{indent}for {name} in range({count}):\n")
            self.numbers.append(name)
            self.block(indent, depth)
            self.numbers.remove(name)
        elif kind == 10 and depth:
            say(f"{indent}for each in {self.random.choice(['table', 'rows', 'table'])}:\n")
            say(f"{indent}    each[0] = (each[0] + {self.number()}) % 17\n")
        else:
            say(f"{indent}total += len({one})\n")

    def block(self, indent: str, depth: int) -> None:
        """Add the statements of a body."""
        for _ in range(self.random.randint(1, 3)):
            self.statement(indent + "    ", depth - 1)


def drawn(seed: int) -> str:
    """Return the source of a random program."""
    return Drawn(seed).program()
