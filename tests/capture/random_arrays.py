"""Random programs over NumPy's arrays and scalars: types that mix, writes in place, other names."""

from __future__ import annotations

from random import Random

# The arguments of each program, and the types of the examples that stand for them.
ARGUMENTS = {
    "x": "float64", "y": "float32", "i": "int64", "j": "int32", "b": "bool", "u": "uint8",
}  # fmt: skip


class Writer:
    """Writes one program.

    Args:
        seed: Decides what it is.
    """

    def __init__(self, seed: int):
        self.random = Random(seed)
        self.lines: list[str] = []
        self.depth = 1
        self.count = 0
        self.scalars: list[str] = []
        self.arrays: list[str] = []  # those that the program made, and may write
        self.lists: list[str] = []

    def program(self) -> str:
        """Return the source of a function ``program``."""
        for _ in range(self.random.randrange(4, 10)):
            self.statement()
        results = [*self.scalars[-3:], *self.arrays[-4:]]
        results += [f"np.array({name})" for name in self.lists[-1:]]
        self.put(f"return {', '.join([*results, self.array(0), 'x'])}")
        head = f"import numpy as np\n\n\ndef program({', '.join(ARGUMENTS)}):\n"
        return head + "\n".join(self.lines) + "\n"

    def put(self, line: str) -> None:
        """Add a line at the present depth."""
        self.lines.append("    " * self.depth + line)

    def new(self, stem: str) -> str:
        """Return a name that is not taken."""
        self.count += 1
        return f"{stem}{self.count}"

    def one_of(self, *choices: str) -> str:
        """Return one of some texts."""
        return self.random.choice(choices)

    def place(self) -> str:
        """Return the place of an element."""
        return self.one_of("0", "-1", "i[0] % len(x)", "len(x) // 2", "len(x) - 1")

    def condition(self) -> str:
        """Return a condition."""
        name = self.one_of(*ARGUMENTS)
        return self.one_of(
            f"{name}[{self.place()}] > {self.one_of('0', '1', '0.5')}", "x.sum() > 1", "b[0]",
            "len(x) > 2", "i[-1] % 2 == 0", "b.any() and x[0] < 1", "not b[-1]",
        )  # fmt: skip

    def scalar(self, depth: int) -> str:
        """Return a number of Python or NumPy."""
        if depth > 2:
            return self.one_of("0.5", "1", "2", "-1", *self.scalars)
        one, other = self.scalar(depth + 1), self.scalar(depth + 1)
        held = self.one_of(*ARGUMENTS, *self.arrays)
        return self.one_of(
            f"{held}[{self.place()}]",
            f"{held}.{self.one_of('sum', 'max', 'min', 'mean')}()",
            f"({one} {self.one_of('+', '-', '*')} {other})",
            f"({one} if {self.condition()} else {other})",
            f"{self.one_of('min', 'max')}({one}, {other})",
            f"{self.one_of('float', 'int', 'np.float32', 'np.float64', 'np.int32')}({one})",
            f"({one} / {self.one_of('2', '4.0', 'np.float32(2)')})",
            f"({one} {self.one_of('//', '%')} {self.one_of('2', '3', '2.5')})",
            f"abs({one})", "len(x)", "2.5", *self.scalars,
        )  # fmt: skip

    def array(self, depth: int) -> str:
        """Return an array as long as the arguments, or one that the program made."""
        if depth > 2:
            return self.one_of(*ARGUMENTS)
        one, other = self.array(depth + 1), self.array(depth + 1)
        sign, number = self.one_of("+", "-", "*"), self.scalar(1)
        held = self.one_of(*ARGUMENTS)
        return self.one_of(
            f"({one} {sign} {number})", f"({one} {sign} {number})", f"({one} {sign} {other})",
            f"np.where({held} > 1, {one}, {number})", f"np.full(len(x), {number})",
            f"{held}.astype({self.one_of('np.float32', 'float', 'int', 'np.int16')})",
            f"np.{self.one_of('maximum', 'minimum')}({one}, {number})", f"np.cumsum({one})",
            f"({one} {self.one_of('/', '//', '%')} {self.one_of('2', '2.5', 'np.float32(2)')})",
        )  # fmt: skip

    def statement(self) -> None:
        """Write a statement."""
        kind = self.random.randrange(12)
        if kind == 0 and self.depth < 3:
            self.put(f"if {self.condition()}:")
            self.block()
            if self.random.random() < 0.6:
                self.put("else:")
                self.block()
        elif kind == 1 and self.depth < 3:
            name = self.new("v")
            held = self.one_of(*ARGUMENTS)
            self.put(f"for {name} in {self.one_of(held, 'range(len(x))', 'range(3)')}:")
            self.block(name)
        elif kind == 2 and self.scalars:
            name = self.one_of(*self.scalars)
            self.put(f"{name} {self.one_of('+=', '-=', '*=', '=')} {self.scalar(0)}")
        elif kind in (3, 4) and self.arrays:
            part = self.one_of(f"[{self.place()}]", "[:]", "[1:]", "[::2]", "[::-1]", "")
            sign = self.one_of("+=", "*=") if not part else self.one_of("=", "+=", "*=")
            self.put(f"{self.one_of(*self.arrays)}{part} {sign} {self.scalar(1)}")
        elif kind == 5 and self.arrays:
            name = self.new("w")
            self.put(f"{name} = {self.one_of(*self.arrays)}{self.one_of('', '[:]', '[::-1]')}")
            self.arrays.append(name)
        elif kind == 6:
            name = self.new("a")
            self.put(f"{name} = {self.array(0)} + 0")
            self.arrays.append(name)
        elif kind == 7:
            name = self.new("l")
            self.put(f"{name} = [{self.scalar(0)}, {self.scalar(0)}]")
            self.lists.append(name)
        elif kind == 8 and self.lists:
            self.put(f"{self.one_of(*self.lists)}.append({self.scalar(0)})")
        elif kind == 9:
            function, name = self.new("f"), self.new("s")
            self.put(f"{function} = lambda q: q {self.one_of('+', '*')} {self.scalar(0)}")
            self.put(f"{name} = {function}({self.scalar(0)})")
            self.scalars.append(name)
        else:
            name = self.new("s")
            self.put(f"{name} = {self.scalar(0)}")
            self.scalars.append(name)

    def block(self, name: str = "") -> None:
        """Write the body of a branch or loop, whose new names are its own."""
        before = list(self.scalars), list(self.arrays), list(self.lists)
        self.scalars += [name] if name else []
        self.depth += 1
        for _ in range(self.random.randrange(1, 4)):
            self.statement()
        self.depth -= 1
        self.scalars, self.arrays, self.lists = before
