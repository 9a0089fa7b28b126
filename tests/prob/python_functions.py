"""Random Python functions that draw, and their distributions by running every sequence of draws."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from random import Random, randint
from typing import Any
from unittest.mock import patch

from hagane.tools.prob import ObservationFailed, draws

HEAD = """
from fractions import Fraction
from hagane import prob


def gap(x, y=1):
    if x > y:
        return x - y
    if x == y:
        return -y
    return min(x, y) % 3


def halves(x):
    return x // 2, -x % 2


def middle(values):
    return sorted(values)[1]


def f():
    shift = lambda v: v - k
    k = 1
    a, b, c = prob.rand(-1, 1), 2, -1
    p = b > a
    xs = [0, a, 2]
"""


class TooMany(Exception):
    """More sequences of draws than a test may run."""


class _Every:
    """A source of draws that repeats a sequence and then takes the first of each later draw."""

    def __init__(self) -> None:
        self.path: list[int] = []
        self.sizes: list[int] = []
        self.at = 0

    def randrange(self, size: int) -> int:
        if self.at == len(self.path):
            self.path.append(0)
            self.sizes.append(size)
        self.at += 1
        return self.path[self.at - 1]

    def randint(self, low: int, high: int) -> int:
        return low + self.randrange(high - low + 1)

    def advance(self) -> bool:
        self.at = 0
        while self.path and self.path[-1] + 1 == self.sizes[-1]:
            self.path.pop()
            self.sizes.pop()
        if not self.path:
            return False
        self.path[-1] += 1
        return True


def distribution(function: Callable[[], Any], most: int = 20_000) -> dict[Any, Fraction]:
    """Return how likely each result is, given the observations; empty if none is met."""
    every = _Every()
    found: Counter[Any] = Counter()
    shared = randint.__self__  # type: ignore[attr-defined]
    of_prob = patch.object(draws, "generator", every)
    of_bits = patch("random.getrandbits", lambda bits: every.randrange(1 << bits))
    with of_prob, of_bits, patch.object(shared, "_randbelow", every.randrange):
        for _ in range(most):
            weight = Fraction(1)
            result = None
            try:
                result = function()
            except ObservationFailed:
                weight = Fraction(0)
            for size in every.sizes:
                weight /= size
            if weight:
                found[result] += weight
            if not every.advance():
                total = sum(found.values())
                return {value: share / total for value, share in found.items()}
    raise TooMany


class Writer:
    """Writes one function.

    Args:
        random: Where its choices come from.
    """

    def __init__(self, random: Random):
        self.random = random
        self.draws = 0
        self.loops = 0
        self.names = ["a", "b", "c"]

    def text(self) -> str:
        """Return a module with a function ``f``."""
        lines = self.block(4, 3)
        return HEAD + "\n".join(["    " + line for line in lines]) + f"\n    return {self.int(2)}\n"

    def block(self, length: int, depth: int, loop: str = "") -> list[str]:
        lines: list[str] = []
        for _ in range(self.random.randint(1, length)):
            lines += self.statement(depth, loop)
        return lines

    def statement(self, depth: int, loop: str) -> list[str]:
        name = self.random.choice("abc")
        forms = ["assign", "assign", "add", "truth", "item", "observe", "swap", "halves", "append"]
        if depth:
            forms += ["if", "if", "if", "return", "for", "while", "random for"]
        if loop:
            forms += ["break", "continue"]
        match self.random.choice(forms):
            case "assign":
                return [f"{name} = {self.int(2)}"]
            case "add":
                return [f"{name} {self.random.choice('+-')}= {self.int(1)}"]
            case "truth":
                return [f"p = {self.bool(2)}"]
            case "item":
                place = self.random.choice(["a % 3", "0", "-1", "b % 2 - 2", self.rand(0, 2)])
                return [f"xs[{place}] {self.random.choice(['=', '+='])} {self.int(1)}"]
            case "observe":
                return [f"prob.observe({self.bool(1)} or b > -9)"] + (
                    [f"prob.observe({self.bool(1)})"] * (self.random.random() < 0.3)
                )
            case "swap":
                return [f"a, (b, c) = b, (a, {self.int(1)})"]
            case "halves":
                return [f"a, b = halves({self.int(1)})"]
            case "append":
                return [f"c = len([v for v in xs if v is not None]) + gap({self.int(1)})"]
            case "if":
                lines = [f"if {self.bool(2)}:", *self.inner(depth, loop)]
                if self.random.random() < 0.3:
                    lines += [f"elif {self.bool(1)}:", *self.inner(depth, loop)]
                if self.random.random() < 0.5:
                    lines += ["else:", *self.inner(depth, loop)]
                return lines
            case "return":
                return [f"if {self.bool(1)}:", f"    return {self.int(1)}"]
            case "for":
                over = self.random.choice(["range(2)", "xs[:2]", "enumerate(xs[1:])", "(1, -2)"])
                target = "i, c" if "enumerate" in over else "c"
                return [f"for {target} in {over}:", *self.inner(depth, "for"), *self.orelse()]
            case "random for":
                bound = self.random.choice(["a % 3", f"{self.rand(0, 2)}", "min(b, 2)"])
                return [f"for c in range({bound}):", *self.inner(depth, "for"), *self.orelse()]
            case "while":
                self.loops += 1
                w = f"w{self.loops}"
                self.names.append(w)
                start = self.random.choice(["0", "a % 2", self.rand(0, 1)])
                more = self.random.choice(["", " and p", f" and b != {w}"])
                step = self.random.choice(["1", self.rand(1, 2)])
                return [
                    f"{w} = {start}",
                    f"while {w} < 3{more}:",
                    f"    {w} += {step}",
                    *self.inner(depth, "while"),
                    *self.orelse(),
                ]
            case word:
                return [f"if {self.bool(1)}:", f"    {word}"]

    def inner(self, depth: int, loop: str) -> list[str]:
        names = list(self.names)
        lines = ["    " + line for line in self.block(2, depth - 1, loop)]
        self.names = names
        return lines

    def orelse(self) -> list[str]:
        if self.random.random() < 0.7:
            return []
        return ["else:", f"    b = {self.int(1)}"]

    def rand(self, low: int, high: int) -> str:
        self.draws += 1
        return f"prob.rand({low}, {high})" if self.draws <= 4 else str(high)

    def int(self, depth: int) -> str:
        one = self.random.choice
        if depth == 0:
            return one([*self.names, *self.names, str(self.random.randint(-3, 3)), "xs[1]"])
        x, y = self.int(depth - 1), self.int(depth - 1)
        return one(
            [
                f"({x} {one('+-*')} {y})",
                f"({x} {one('+-*')} {y})",
                f"({x} {one(['//', '%'])} {one(['2', '3', '-2', '-3'])})",
                f"{one(['min', 'max'])}({x}, {y})",
                f"{one(['min', 'max', 'sum', 'len', 'middle'])}([{x}, {y}, c])",
                f"abs({x})",
                f"-{x}",
                f"gap({x})",
                f"gap(y={x}, x={y})",
                f"shift({x})",
                f"({x} if {self.bool(depth - 1)} else {y})",
                f"(({self.bool(depth - 1)}) + (a > 0))",
                f"sum(v > {x} for v in xs)",
                f"xs[{one(['b % 3', '0', '-2', '(a > b) - 1'])}]",
                f"(7 {one(['//', '%'])} ({x} if {x} != 0 else 2))",
                f"prob.rand(0, abs({x}) % 2)" if self.rand(0, 0)[0] == "p" else "a",
                self.rand(-2, 1),
                f"prob.choose((Fraction(1, 3), {x}), ('2/3', {y}))"
                if self.rand(0, 0)[0] == "p"
                else "b",
                f"{{0: {x}, 1: 5}}[a % 2]",
                f"xs.count({x})",
            ]
        )

    def bool(self, depth: int) -> str:
        one = self.random.choice
        if depth == 0:
            return one(["p", "not p", "a > 0", "b == c", "True", f"{self.names[-1]} > 1"])
        x, y = self.int(depth - 1), self.int(depth - 1)
        return one(
            [
                f"{x} {one(['<', '<=', '==', '!=', '>', '>='])} {y}",
                f"{x} < {y} {one(['<=', '!='])} {self.int(0)}",
                f"({self.bool(depth - 1)} and {self.bool(depth - 1)})",
                f"({self.bool(depth - 1)} or {self.bool(depth - 1)})",
                f"not ({self.bool(depth - 1)})",
                f"{x} in (0, 2, b)",
                f"any(v == {x} for v in xs)",
                f"all([{self.bool(depth - 1)}, p])",
                f"({x} != 0 and 6 // {x} > 1)" if "prob" not in x else "p",
                "prob.flip(Fraction(1, 3))" if self.rand(0, 0)[0] == "p" else "p",
                f"p {one(['==', '!=', '^', '&', '|'])} ({self.bool(depth - 1)})",
            ]
        )
