"""Random programs with continuous draws, and what they give in many runs of NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

_COMPARISONS = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}


@dataclass(frozen=True)
class Term:
    """An expression: its text, and its value in each run."""

    text: str
    values: Array


class Region:
    """A program drawn by a seed: continuous draws, sums of them, comparisons, observations.

    Attributes:
        text: The program.
        kind: The type of its value: ``bool``, ``int`` or ``real``.
        values: Its value in each run that its observations admit.
    """

    def __init__(self, seed: int, runs: int):
        self._random = random = Random(seed)
        self._numbers, self._runs = np.random.default_rng(seed), runs
        self._named: dict[str, Array] = {}
        self._real: list[str] = []
        self._lines: list[str] = []
        admitted = np.ones(runs, bool)
        for _ in range(random.randint(1, 3)):
            self._draw()
        if random.random() < 0.3:
            self._bind(self._discrete(), real=False)
        if random.random() < 0.3:
            self._bind(self._number(1), real=True)
        if random.random() < 0.35:
            condition = self._condition(1)
            self._lines.append(f"observe {condition.text};")
            admitted &= condition.values
        kind = random.random()
        self.kind = "bool" if kind < 0.4 else "int" if kind < 0.7 else "real"
        if self.kind == "bool":
            value = self._condition(2)
        else:
            value = self._choice() if self.kind == "int" else self._number(2)
        self.text = " ".join([*self._lines, value.text])
        self.values = value.values[admitted]

    def _constant(self) -> Fraction:
        divisor = self._random.choice([1, 1, 2, 3, 4])
        return Fraction(self._random.randint(-2 * divisor, 3 * divisor), divisor)

    def _bind(self, term: Term, *, real: bool) -> None:
        name = "abcdefgh"[len(self._named)]
        self._lines.append(f"let {name} = {term.text} in")
        self._named[name] = term.values
        if real:
            self._real.append(name)

    def _draw(self) -> None:
        random, numbers, runs = self._random, self._numbers, self._runs
        kind = random.random()
        if kind < 0.45:
            low, width = self._constant(), Fraction(random.randint(1, 6), 2)
            values = numbers.uniform(float(low), float(low + width), runs)
            made = Term(f"uniform({low}, {low + width})", values)
        elif kind < 0.7:
            rate = random.choice([Fraction(1, 2), Fraction(1), Fraction(2), Fraction(3, 2)])
            made = Term(f"exponential({rate})", numbers.exponential(1 / float(rate), runs))
        elif kind < 0.9 or not self._real:
            mean, deviation = self._constant(), random.choice([Fraction(1, 2), Fraction(2)])
            values = numbers.normal(float(mean), float(deviation), runs)
            made = Term(f"normal({mean}, {deviation})", values)
        else:
            name = random.choice(self._real)
            made = Term(f"normal({name}, 1/2)", numbers.normal(self._named[name], 0.5))
        self._bind(made, real=True)

    def _discrete(self) -> Term:
        top = self._random.randint(1, 3)
        return Term(f"rand(0, {top})", self._numbers.integers(0, top + 1, self._runs))

    def _number(self, depth: int) -> Term:
        random, kind = self._random, self._random.random()
        if depth == 0 or kind < 0.4:
            name = random.choice(list(self._named))
            return Term(name, self._named[name].astype(float))
        if kind < 0.75:
            a, b, sign = self._number(depth - 1), self._number(depth - 1), random.choice("+-")
            values = a.values + b.values if sign == "+" else a.values - b.values
            return Term(f"({a.text} {sign} {b.text})", values)
        if kind < 0.88:
            a, factor = self._number(depth - 1), self._constant() or Fraction(2)
            return Term(f"({a.text} * ({factor}))", a.values * float(factor))
        c, a, b = self._condition(0), self._number(depth - 1), self._number(depth - 1)
        values = np.where(c.values, a.values, b.values)
        return Term(f"(if {c.text} then {a.text} else {b.text})", values)

    def _condition(self, depth: int) -> Term:
        random, kind = self._random, self._random.random()
        if depth == 0 or kind < 0.5:
            a, sign = self._number(1), random.choice(list(_COMPARISONS))
            if random.random() < 0.5:
                b = self._number(1)
            else:
                constant = self._constant()
                b = Term(f"({constant})", np.float64(constant))
            if a.text == b.text:
                return self._condition(depth)
            return Term(f"({a.text} {sign} {b.text})", _COMPARISONS[sign](a.values, b.values))
        if kind < 0.85:
            a, b = self._condition(depth - 1), self._condition(depth - 1)
            if kind < 0.7:
                return Term(f"({a.text} /\\ {b.text})", a.values & b.values)
            return Term(f"({a.text} \\/ {b.text})", a.values | b.values)
        if kind < 0.93:
            a = self._condition(depth - 1)
            return Term(f"(not {a.text})", ~a.values)
        return Term("flip(1/3)", self._numbers.random(self._runs) < 1 / 3)

    def _choice(self) -> Term:
        a, b, drawn = self._condition(1), self._condition(1), self._discrete()
        values = np.where(a.values, drawn.values, np.where(b.values, 5, 7))
        return Term(f"(if {a.text} then {drawn.text} else if {b.text} then 5 else 7)", values)
