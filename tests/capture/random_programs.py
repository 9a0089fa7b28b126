"""Random programs: statements, nesting and types are drawn, and run in Python as in the graph.

Every number is a small whole one, held so by clips and remainders: both results are equal, not
merely close, and no branch depends on a rounding.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

Draw = Callable[[st.SearchStrategy[str]], str]

_VECTORS, _FLOATS, _INTS, _FLAGS = ("u", "v"), ("s", "t"), ("a", "b"), ("p", "q")
_ERRORS = ("ZeroDivisionError", "ValueError", "IndexError")
_START = """import numpy as np


def program(x, n):
    u, v = x, x[::-1] * 2 - 1
    s, t = float(x[0]), float(x.max())
    a, b = n, int(x[1])
    p, q = a > b, bool(x[2] > 0)
    kept = [x]
    names = {"first": x, "count": n}
"""
_END = """    return {"u": u, "v": v, "s": s, "t": t, "a": a, "b": b, "p": p, "q": q,
            "kept": np.stack(kept).sum(0), "length": len(kept), **names}
"""


class _Writer:
    """Draws statements; the deeper they lie, the smaller they are.

    Args:
        draw: Draws one of several texts.
        errors: Whether statements may raise errors, and take them.
    """

    def __init__(self, draw: Draw, *, errors: bool = False):
        self.draw, self.errors = draw, errors
        self.loops = 0

    def one(self, *choices: str) -> str:
        return self.draw(st.sampled_from(choices))

    def vector(self, depth: int = 1) -> str:
        if depth == 0:
            return self.one(*_VECTORS, "x", 'names["first"]', "kept[-1]")
        match self.one("name", "arithmetic", "extreme", "where", "scaled", "moved", "unary"):
            case "arithmetic":
                op = self.one("+", "-", "*")
                return f"({self.vector(depth - 1)} {op} {self.vector(depth - 1)})"
            case "extreme":
                name = self.one("maximum", "minimum")
                return f"np.{name}({self.vector(depth - 1)}, {self.vector(depth - 1)})"
            case "where":
                parts = [self.vector(depth - 1) for _ in range(3)]
                return f"np.where({parts[0]} > {self.constant()}, {parts[1]}, {parts[2]})"
            case "scaled":
                return f"({self.vector(depth - 1)} * np.float32({self.whole(0)}))"
            case "moved":
                inner = self.vector(depth - 1)
                return self.one(f"np.cumsum({inner})", f"{inner}[::-1]", f"np.sort({inner})",
                                f"np.concatenate([{inner}[1:], {inner}[:1]])")  # fmt: skip
            case "unary":
                return f"{self.one('np.abs', '-', 'np.sign')}({self.vector(depth - 1)})"
        return self.vector(0)

    def whole(self, depth: int = 2) -> str:
        """An int."""
        if depth == 0:
            return self.one(*_INTS, "n", self.constant(), 'names["count"]')
        match self.one("name", "arithmetic", "division", "element", "choice", "builtin", "size"):
            case "arithmetic":
                op = self.one("+", "-", "*")
                return f"({self.whole(depth - 1)} {op} {self.whole(depth - 1)})"
            case "division":
                divisor = self.one("2", "3", "-3", "5", "-2")
                return f"({self.whole(depth - 1)} {self.one('//', '%')} {divisor})"
            case "element":
                return f"int({self.vector(0)}[{self.whole(depth - 1)} % 3])"
            case "choice":
                ends = self.whole(0), self.whole(depth - 1)
                return f"({ends[0]} if {self.condition(depth - 1)} else {ends[1]})"
            case "builtin":
                name = self.one("min", "max")
                return f"{name}({self.whole(depth - 1)}, {self.whole(0)})"
            case "size":
                return self.one("len(x)", "u.shape[0]", "len(kept)", "int(u.argmax())",
                                "int((v > 0).sum())")  # fmt: skip
        return self.whole(0)

    def real(self, depth: int = 1) -> str:
        """A float."""
        if depth == 0:
            return self.one(*_FLOATS, f"{self.constant()}.0")
        match self.one("name", "arithmetic", "reduced", "mixed", "choice", "divided"):
            case "arithmetic":
                op = self.one("+", "-", "*")
                return f"({self.real(depth - 1)} {op} {self.real(depth - 1)})"
            case "reduced":
                return f"float({self.vector(depth - 1)}.{self.one('sum', 'max', 'min')}())"
            case "mixed":
                return f"({self.real(depth - 1)} {self.one('+', '-', '*')} {self.whole(0)})"
            case "choice":
                ends = self.real(0), self.real(depth - 1)
                return f"({ends[0]} if {self.condition(depth - 1)} else {ends[1]})"
            case "divided":
                return f"({self.real(depth - 1)} // {self.one('2', '-3', '4.0')})"
        return self.real(0)

    def condition(self, depth: int = 1) -> str:
        if depth == 0:
            return self.one(*_FLAGS)
        match self.one("name", "ints", "floats", "both", "not", "chain", "any", "truth"):
            case "ints":
                op = self.one("<", ">=", "==", "!=")
                return f"({self.whole(depth - 1)} {op} {self.whole(0)})"
            case "floats":
                return f"({self.real(0)} {self.one('<', '>', '<=')} {self.real(depth - 1)})"
            case "both":
                op = self.one("and", "or")
                return f"({self.condition(depth - 1)} {op} {self.condition(depth - 1)})"
            case "not":
                return f"(not {self.condition(depth - 1)})"
            case "chain":
                return f"({self.constant()} < {self.whole(0)} <= {self.whole(0)})"
            case "any":
                return f"bool(({self.vector(0)} > {self.constant()}).{self.one('any', 'all')}())"
            case "truth":
                return f"bool({self.whole(0)})"
        return self.condition(0)

    def constant(self) -> str:
        return self.one("0", "1", "-1", "2", "3", "-4")

    def assignment(self) -> str:
        match self.one("vector", "int", "float", "flag", "swap", "item", "store"):
            case "vector":
                return f"{self.one(*_VECTORS)} = np.clip({self.vector()}, -9, 9)"
            case "int":
                return f"{self.one(*_INTS)} = ({self.whole()}) % 13 - 6"
            case "float":
                return f"{self.one(*_FLOATS)} = min(max({self.real()}, -20.0), 20.0)"
            case "flag":
                return f"{self.one(*_FLAGS)} = {self.condition()}"
            case "swap":
                return self.one("a, b = b, a", "u, v = v, u", "s, t = t, s", "p, q = q, p")
            case "store":
                name, value = self.one("first", "count"), self.vector(0)
                return f'names["{name}"] = {value if name == "first" else self.one(*_INTS)}'
        vector, place = self.one(*_VECTORS), self.whole(0)
        return f"{vector} = {vector}.copy(); {vector}[{place} % 3] = {self.whole(0)}"

    def block(self, depth: int, inside: bool) -> list[str]:
        count = int(self.one("1", "1", "2"))
        return [line for _ in range(count) for line in self.statement(depth, inside)]

    def statement(self, depth: int, inside: bool) -> list[str]:
        kinds = ["assign", "assign", "append"]
        if depth:
            kinds += ["if", "if", "for", "rows", "while"]
        if inside:
            kinds += ["leave"]
        if self.errors:
            kinds += ["risk", "try", "try"] if depth else ["risk"]
        match self.one(*kinds):
            case "append":
                return [f"kept.append({self.one(*_VECTORS)})"]
            case "if":
                lines = [f"if {self.condition()}:", *_in(self.block(depth - 1, inside))]
                if self.one("", "elif"):
                    lines += [f"elif {self.condition()}:", *_in(self.block(depth - 1, inside))]
                if self.one("", "else"):
                    lines += ["else:", *_in(self.block(depth - 1, inside))]
                return lines
            case "leave":
                return [f"if {self.condition(1)}:", f"    {self.one('break', 'continue')}"]
            case "assign":
                return [self.assignment()]
            case "risk":
                return self.risk()
            case "try":
                return self.handled(depth, inside)
            case kind:
                return self.loop(kind, depth)

    def risk(self) -> list[str]:
        """A statement that may raise an error."""
        match self.one("raise", "whole", "float", "item", "number", "unpack", "found"):
            case "raise":
                return [f"if {self.condition(1)}:", f"    raise {self.one(*_ERRORS)}('drawn')"]
            case "whole":
                op = self.one("//", "%")
                return [f"{self.one(*_INTS)} = ({self.whole(1)} {op} {self.one(*_INTS)}) % 13 - 6"]
            case "float":
                return [f"{self.one(*_FLOATS)} = {self.constant()}.0 // {self.one(*_FLOATS)}"]
            case "item":
                return [f"s = [1.0, 2.0, 3.0][{self.one(*_INTS)}]"]
            case "number":
                return [f"a = [0, 2, 1].index({self.one(*_INTS)})"]
            case "unpack":
                return [f"s, t = [float(i) for i in x if i > {self.constant()}]"]
        return [f"s = max([float(i) for i in x if i > {self.one(*_INTS)}])"]

    def handled(self, depth: int, inside: bool) -> list[str]:
        """A ``try`` with one or two handlers."""
        lines = ["try:", *_in([*self.risk(), *self.block(depth - 1, inside)])]
        for _ in range(int(self.one("1", "2"))):
            lines += [f"except {self.one(*_ERRORS, '(ValueError, IndexError)', 'Exception')}:"]
            lines += _in(self.block(0, inside))
        if self.one("", "else"):
            lines += ["else:", *_in([self.assignment()])]
        if self.one("", "", "finally"):
            lines += ["finally:", *_in([self.assignment()])]
        return lines

    def loop(self, kind: str, depth: int) -> list[str]:
        self.loops += 1
        name = f"i{self.loops}"
        if kind == "for":
            ends = self.one("3", "len(x)", "n", "1, 4", "4, 0, -2", "a % 4", "a, b")
            head, first = f"for {name} in range({ends}):", [f"a = (a + {name}) % 7"]
        elif kind == "rows":
            head, first = f"for {name} in x:", [f"s = min(s + float({name}), 20.0)"]
        else:
            head = f"while {name} < {self.one('3', 'n', 'b')} and {self.condition(1)}:"
            first = [f"{name} += 1"]
        lines = [f"{name} = 0"] if kind == "while" else []
        lines += [head, *_in([*first, *self.block(depth - 1, True)])]
        if self.one("", "else"):
            lines += ["else:", *_in([self.assignment()])]
        return lines


def _in(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


@st.composite
def programs(draw: Draw, *, errors: bool = False) -> str:
    """Return the text of a module with a function ``program(x, n)``.

    Args:
        draw: Draws one of several texts.
        errors: Whether it may raise errors.
    """
    writer = _Writer(draw, errors=errors)
    lines = [line for _ in range(2) for line in writer.statement(2, False)]
    return _START + "\n".join(_in(lines)) + "\n" + _END


__all__ = ["programs"]
