"""Random programs over lists three deep, in dicts and objects, that functions of theirs change.

Numbers are small whole ones, held so by remainders. Every list may come to have several names; the
results show what all of them hold.
"""

from __future__ import annotations

import random

_START = """class Box:
    def __init__(self, items, rows):
        self.items = items
        self.rows = rows
        self.count = 0

    def take(self, item):
        self.items.append(item)
        self.count += 1
        return self.items


def chosen(first, second, condition):
    return first if condition else second


def grown(target, item):
    target.append(item)
    return target


def exchanged(target, other):
    target[0], other[-1] = other[-1], target[0]


def folded(total, value):
    if isinstance(value, list):
        for one in value:
            total = folded(total, one)
        return total
    return (total * 7 + value) % 10007


def program(x):
    n = len(x)
    total = 0
    a, b = [1, 2], [3, 4]
    rows, more = [[0, 5], [6, 7]], {more}
    cube = {cube}
    kept = {{"items": {items}, "rows": {rows}}}
    box = Box({box_items}, {box_rows})
"""
_END = """    for one in (cube, rows, more, kept["rows"], box.rows):
        total = folded(total, one)
    for each in (a, b, kept["items"], box.items):
        total = folded(total, each)
    return total, len(cube), len(rows), len(box.items), box.count, {seen}
"""
# Attributes and items that hold lists so deep.
_HELD = {1: ['kept["items"]', "box.items"], 2: ['kept["rows"]', "box.rows"]}


class Drawn:
    """A program being drawn.

    Args:
        seed: Decides it.
    """

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.numbers = ["n", "total", "len(cube)", "2", "1", "box.count", "int(x[0, 0])"]
        self.names = {1: ["a", "b"], 2: ["rows", "more"], 3: ["cube"]}

    def program(self) -> str:
        """Return its source."""
        pick = self.random.choice
        first = _START.format(
            more=pick(["[[k, 1] for k in range(n)]", "[a, b]", "[[2]] * 2", "[[8, 9]]"]),
            cube=pick(
                [
                    "[rows, more]",
                    "[[[i, k] for k in range(2)] for i in range(n)]",
                    "[[[1, 2], [3]], [[4]]]",
                    "[rows, [[0] * n]]",
                    "[rows] * 2",
                ]
            ),
            items=pick(["a", "rows[0]", "[5, 5]"]),
            rows=pick(["rows", "more", "[a, [6]]"]),
            box_items=pick(["b", "rows[-1]", "[7, 2]"]),
            box_rows=pick(["rows", "cube[0]", "cube[-1]", "[b, [1]]"]),
        )
        for _ in range(self.random.randint(2, 6)):
            self.statement("    ", 2)
        return first + "".join(self.lines) + _END.format(seen=f"{self.list(1)}[0]")

    def number(self) -> str:
        """Return an expression of a number."""
        kind = self.random.randrange(6)
        if kind == 0:
            return f"{self.list(1)}[{self.random.choice(['0', '-1', '0'])}]"
        if kind == 1:
            return f"({self.number()} + {self.random.choice(self.numbers)})"
        if kind == 2:
            return f"len({self.list(self.random.choice([1, 1, 2]))})"
        return self.random.choice(self.numbers)

    def place(self, of: str) -> str:
        """Return an expression of the place of an item of a list that has one."""
        return self.random.choice(["0", "-1", f"{self.number()} % len({of})"])

    def list(self, depth: int, simple: bool = False) -> str:
        """Return an expression of a list, ``depth`` deep, that has an item."""
        kind = self.random.randrange(4 if simple else 9)
        if kind in (0, 1):
            return self.random.choice(self.names[depth])
        if kind in (2, 3) and depth < 3:
            return self.random.choice(_HELD[depth])
        if kind in (4, 5) and depth < 3:
            whole = self.list(depth + 1, simple=True)
            return f"{whole}[{self.place(whole)}]"
        if kind == 6:
            first, second = self.list(depth, simple=True), self.list(depth, simple=True)
            return f"chosen({first}, {second}, {self.condition()})"
        if kind == 7:
            return f"list({self.list(depth, simple=True)})"
        if kind == 8:
            return f"[{self.item(depth)}, {self.item(depth)}]"
        return self.random.choice(self.names[depth])

    def item(self, depth: int) -> str:
        """Return an expression of an item of a list that is ``depth`` deep."""
        return f"{self.number()} % 11" if depth == 1 else self.list(depth - 1)

    def condition(self) -> str:
        """Return a condition, which the data decide."""
        return self.random.choice(
            [f"{self.number()} % 2 == 0", "x[0, 0] > 1", "x[-1, 1] > 1", "n > 2", "total % 3 == 1",
             f"{self.list(1)} is {self.list(1, simple=True)}", f"len({self.list(2)}) > 2"]
        )  # fmt: skip

    def statement(self, indent: str, depth: int) -> None:
        """Add a statement."""
        say = self.lines.append
        deep = self.random.choice([1, 1, 2, 2, 3])
        whole = self.list(deep, simple=self.random.random() < 0.6)
        kind = self.random.randrange(16)
        if kind == 0:
            say(f"{indent}{whole}.append({self.item(deep)})\n")
        elif kind in (1, 2):
            say(f"{indent}{whole}[{self.random.choice(['0', '-1'])}] = {self.item(deep)}\n")
        elif kind == 3:
            say(f"{indent}{self.list(1)}[0] += {self.number()} % 5\n")
        elif kind == 4:
            name = self.random.choice(self.names[deep])
            say(f"{indent}{name} = {self.list(deep)}\n")
        elif kind == 5:
            say(f"{indent}grown({whole}, {self.item(deep)})\n")
        elif kind == 6:
            say(f"{indent}exchanged({whole}, {self.list(deep)})\n")
        elif kind == 7:
            say(f"{indent}total = (total * 3 + {self.number()}) % 101\n")
        elif kind == 8:
            deep = self.random.choice([1, 2])
            say(f"{indent}{self.random.choice(_HELD[deep])} = {self.list(deep)}\n")
        elif kind == 9:
            say(f"{indent}{whole}.insert(0, {self.item(deep)})\n")
        elif kind == 10:
            say(f"{indent}if len({whole}) > 1:\n")
            say(f"{indent}    {whole}.pop({self.random.choice(['', '0'])})\n")
        elif kind == 11:
            say(f"{indent}{self.random.choice(self.names[1])} = box.take({self.number()} % 9)\n")
        elif kind == 12 and depth:
            say(f"{indent}if {self.condition()}:\n")
            self.block(indent, depth)
            if self.random.random() < 0.5:
                say(f"{indent}else:\n")
                self.block(indent, depth)
        elif kind == 13 and depth:
            name, count = f"i{depth}", self.random.choice(["n", "n", "3", "len(cube)"])
            say(f"{indent}for {name} in range({count}):\n")
            self.numbers.append(name)
            self.block(indent, depth)
            self.numbers.remove(name)
            if self.random.random() < 0.3:
                say(f"{indent}    if {self.condition()}:\n")
                say(f"{indent}        {self.random.choice(['break', 'continue'])}\n")
        elif kind == 14 and depth:
            many = self.random.choice([2, 2, 3])
            name = f"each{depth}"
            say(f"{indent}for {name} in {self.list(many)}:\n")
            self.names[many - 1].append(name)
            self.block(indent, depth)
            self.names[many - 1].remove(name)
        else:
            say(f"{indent}total += len({whole})\n")

    def block(self, indent: str, depth: int) -> None:
        """Add the statements of a body."""
        for _ in range(self.random.randint(1, 3)):
            self.statement(indent + "    ", depth - 1)


def drawn(seed: int) -> str:
    """Return the source of a random program."""
    return Drawn(seed).program()
